package rest

import (
	"fmt"
	"io/fs"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/socle-dev/socle/internal/pgtest"
	"github.com/socle-dev/socle/internal/projectdb"
)

// keysSQL creates the functions that keep answers, as in a project's database.
func keysSQL(t testing.TB) string {
	t.Helper()

	migration, err := fs.ReadFile(projectdb.Migrations(), "00062_kept_answers.sql")
	if err != nil {
		t.Fatal(err)
	}

	return batchSQL + "; create schema socle; " + string(migration) + `; grant usage on schema socle to request, service;
		grant execute on all functions in schema socle to request, service;
		create function public.fail_once() returns trigger language plpgsql as $$ begin
			if new.name = 'bad' and (select count(*) from public.clients) < 5 then raise 'not yet'; end if; return new; end $$;
		create trigger fail_once before insert on public.clients for each row execute function public.fail_once();
		create function public.pause(name text) returns int language plpgsql as $$ begin
			insert into public.tags values (name); perform pg_advisory_xact_lock(42); return 1; end $$`
}

// keyed sends a request with a key.
func (a *api) keyed(method, path, body, key string, headers ...string) reply {
	a.Helper()

	return a.do(method, path, body,
		append([]string{"Content-Type", "application/json", "Idempotency-Key", key}, headers...)...)
}

func (r reply) isReplayed() bool { return r.header.Get("Idempotency-Replayed") != "" }

// TestIdempotencyKey repeats requests with a key.
func TestIdempotencyKey(t *testing.T) {
	t.Parallel()

	a := newAPI(t, keysSQL(t), transactions)
	send := a.keyed
	representation := []string{"Prefer", "return=representation"}
	const ann, ben = "Bearer authenticated:ann", "Bearer authenticated:ben"

	for _, test := range []struct {
		name, method, path, body string
		headers                  []string
		status                   int
	}{
		{"insert", "POST", "/projects?select=id,name", `{"name": "a"}`, representation, 201},
		{"insert without a body", "POST", "/projects", `[{"name": "b"}, {"name": "c"}]`,
			[]string{"Prefer", "return=headers-only,count=exact"}, 201},
		{"update", "PATCH", "/clients?id=eq.1", `{"name": "Ada L."}`, nil, 204},
		{"upsert", "PUT", "/clients?id=eq.4", `{"id": 4, "name": "Dan"}`, representation, 201},
		{"delete", "DELETE", "/projects?id=eq.4", ``, representation, 200},
		{"function", "POST", "/rpc/grow", `{"n": 2}`, nil, 200},
		{"function with headers", "POST", "/rpc/cookie", ``, nil, 299},
		{"batch", "POST", "/", `{"operations": [{"method": "POST", "path": "/projects", "body": {"name": "d"}}]}`, nil, 200},
	} {
		first := send(test.method, test.path, test.body, test.name, test.headers...)
		state := a.value(`select (select string_agg(p::text, ';' order by id) from public.projects p) || (select string_agg(c::text, ';' order by id) from public.clients c)`)
		again := send(test.method, test.path, test.body, test.name, test.headers...)
		if first.status != test.status || again.header.Get("Idempotency-Replayed") != "true" {
			t.Errorf("%s: got %d %s, and then %v", test.name, first.status, first.body, again)
		}

		again.header.Del("Idempotency-Replayed")
		if diff := cmp.Diff(fmt.Sprint(first), fmt.Sprint(again)); diff != "" {
			t.Errorf("%s: the repeated answer (-first +repeated):\n%s", test.name, diff)
		}
		if now := a.value(`select (select string_agg(p::text, ';' order by id) from public.projects p) || (select string_agg(c::text, ';' order by id) from public.clients c)`); now != state {
			t.Errorf("%s was made twice", test.name)
		}
	}

	for name, got := range map[string]reply{
		"body":    send("POST", "/projects?select=id,name", `{"name": "z"}`, "insert", representation...),
		"query":   send("POST", "/projects?select=id", `{"name": "a"}`, "insert", representation...),
		"path":    send("POST", "/clients?select=id,name", `{"name": "a"}`, "insert", representation...),
		"method":  send("PATCH", "/projects?select=id,name", `{"name": "a"}`, "insert", representation...),
		"headers": send("POST", "/projects?select=id,name", `{"name": "a"}`, "insert"),
	} {
		if got.status != http.StatusUnprocessableEntity || !strings.Contains(got.body, "idempotency_key_reused") {
			t.Errorf("another %s: got %d %s, want 422", name, got.status, got.body)
		}
	}
	for _, key := range []string{strings.Repeat("x", 256)} {
		if got := send("POST", "/projects", `{"name": "a"}`, key); got.status != http.StatusBadRequest {
			t.Errorf("a key of %d bytes: got %d", len(key), got.status)
		}
	}

	// Another caller's key is another one, and so is that of a read.
	for _, caller := range []string{ann, ben} {
		got := send("POST", "/projects", `{"name": "e"}`, "shared", "Authorization", caller)
		if got.status != 201 || got.isReplayed() {
			t.Errorf("%s: got %d %v", caller, got.status, got.header)
		}
	}
	for range 2 {
		for _, path := range []string{"/clients?id=eq.1", "/rpc/add?a=1&b=2"} {
			if got := send("GET", path, ``, "read"); got.status != 200 || got.isReplayed() {
				t.Errorf("%s: got %d %v", path, got.status, got.header)
			}
		}
		if got := send("POST", "/rpc/add", `{"a": 1, "b": 2}`, "stable"); got.status != 200 || got.isReplayed() {
			t.Errorf("a stable function: got %d %v", got.status, got.header)
		}
	}
}

// TestIdempotencyKeyOfFailures checks that a failed write keeps nothing, and what a long answer
// keeps.
func TestIdempotencyKeyOfFailures(t *testing.T) {
	t.Parallel()

	a := newAPI(t, keysSQL(t), transactions)
	insert := func() reply {
		return a.keyed("POST", "/clients", `{"id": 20, "name": "bad"}`, "k")
	}
	if got := insert(); got.status != 400 {
		t.Errorf("got %d %s", got.status, got.body)
	}
	deferred := func() reply {
		return a.keyed("POST", "/children", `{"id": 1, "parent": 5}`, "d")
	}
	if got := deferred(); got.status != 409 || !strings.Contains(got.body, "23503") {
		t.Errorf("a deferred constraint: got %d %s", got.status, got.body)
	}
	if n := a.value(`select count(*)::text from socle.kept_answers`); n != "0" {
		t.Errorf("failures keep %s answers", n)
	}

	if _, err := a.admin.Exec(t.Context(), `insert into public.clients values (21, 'x'), (22, 'y'); insert into public.parents values (5)`); err != nil {
		t.Fatal(err)
	}
	for _, send := range []func() reply{insert, deferred} {
		if got := send(); got.status != 201 || got.isReplayed() {
			t.Errorf("got %d %s, want the write", got.status, got.body)
		}
	}

	long := func() reply {
		return a.keyed("POST", "/rpc/grow", `{"n": 3000}`, "long")
	}
	if got := long(); got.status != 200 || len(got.body) < maxKeptBody {
		t.Errorf("got %d with %d bytes", got.status, len(got.body))
	}
	if got := long(); got.status != http.StatusConflict || !strings.Contains(got.body, "already_done") {
		t.Errorf("a long answer repeated: got %d %s", got.status, got.body)
	}

	// After a day, the key is free. Expired answers are removed by and by.
	if _, err := a.admin.Exec(t.Context(), `update socle.kept_answers set kept_at = now() - interval '1 day'`); err != nil {
		t.Fatal(err)
	}
	if got := long(); got.status != 200 {
		t.Errorf("after a day: got %d %s", got.status, got.body)
	}
	if n := a.value(`select count(*)::text from socle.kept_answers`); n != "1" {
		t.Errorf("got %s answers after a day, want that of the last request", n)
	}
}

// TestIdempotencyKeyAfterLostAnswer repeats a request whose connection to PostgreSQL ended at its
// commit.
func TestIdempotencyKeyAfterLostAnswer(t *testing.T) {
	t.Parallel()

	a := newAPI(t, keysSQL(t)+`; create sequence public.deaths;
		create function public.die_once() returns trigger language plpgsql security definer as $$ begin
			if nextval('public.deaths') = 1 then perform pg_terminate_backend(pg_backend_pid()); perform pg_sleep(10); end if; return null; end $$;
		create constraint trigger die_once after insert on public.tags deferrable initially deferred for each row execute function public.die_once()`,
		transactions)
	send := func() reply { return a.keyed("POST", "/tags", `{"id": "once"}`, "k") }
	if got := send(); got.status < 500 {
		t.Errorf("a connection that ends at the commit: got %d %s", got.status, got.body)
	}
	var repeated reply
	pgtest.Eventually(t, "the session that holds the key has ended", func() bool {
		repeated = send()
		return repeated.status != http.StatusConflict
	})
	if repeated.status != 201 || repeated.isReplayed() {
		t.Errorf("the repeated request: got %d %s", repeated.status, repeated.body)
	}
	if got := send(); got.status != 201 || !got.isReplayed() {
		t.Errorf("the third request: got %d %s", got.status, got.body)
	}
}

// TestIdempotencyKeyAtOnce sends requests with one key at once: one writes.
func TestIdempotencyKeyAtOnce(t *testing.T) {
	t.Parallel()

	a := newAPI(t, keysSQL(t), transactions)
	lock, err := a.admin.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := lock.Exec(t.Context(), `select pg_advisory_xact_lock(42)`); err != nil {
		t.Fatal(err)
	}

	send := func() reply {
		return a.keyed("POST", "/rpc/pause", `{"name": "once"}`, "k")
	}
	first := make(chan reply, 1)
	go func() { first <- send() }()

	pgtest.Eventually(t, "the lock of the first request", func() bool {
		return a.value(`select count(*)::text from pg_locks where locktype = 'advisory' and not granted`) == "1"
	})
	got := send()
	if got.status != http.StatusConflict || got.header.Get("Retry-After") != "1" ||
		!strings.Contains(got.body, "in_progress") {
		t.Errorf("while the first request runs: got %d %s %v", got.status, got.body, got.header)
	}
	if err := lock.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := <-first; got.status != 200 || got.body != "1" {
		t.Errorf("the first request: got %d %s", got.status, got.body)
	}

	var senders sync.WaitGroup
	for range 8 {
		senders.Go(func() {
			got := a.keyed("POST", "/clients", `{"id": 30, "name": "x"}`, "race")
			if got.status != 201 && got.status != 409 {
				t.Errorf("got %d %s", got.status, got.body)
			}
		})
	}
	senders.Wait()
	if n := a.value(`select count(*)::text from public.clients where id = 30`); n != "1" {
		t.Errorf("got %s rows, want 1", n)
	}
}
