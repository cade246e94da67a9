package rest

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/socle-dev/socle/internal/pgtest"
)

// singleConnection gives all roles a pool of one connection, so that requests follow one another on
// it.
func singleConnection(a *api) *pgxpool.Pool {
	role, _ := a.server.Auth.Role("authenticated")
	config := role.Pool.Config()
	config.MaxConns = 1

	pool, err := pgxpool.NewWithConfig(a.Context(), config)
	if err != nil {
		a.Fatal(err)
	}

	a.Cleanup(pool.Close)
	a.server.Auth.Role = func(string) (Role, bool) { return Role{Pool: pool}, true }

	return pool
}

// wantOneConnection fails the test if more than one connection was opened.
func (a *api) wantOneConnection(pool *pgxpool.Pool) {
	a.Helper()

	if n := pool.Stat().NewConnsCount(); n != 1 {
		a.Errorf("%d connections were opened, want 1", n)
	}
}

func TestSessionIsCleanedAfterFunctions(t *testing.T) {
	t.Parallel()

	a := newAPI(t,
		"create function leave_and_fail() returns void language plpgsql as $$ begin perform leave(); raise 'no'; end $$;")
	pool := singleConnection(a)
	want := `{"setting" : null, "locks" : 0, "channels" : 0, "prepared" : 0, "cursors" : 0}`
	for _, step := range []struct {
		path, prefer string
		status       int
	}{
		{"/rpc/residue", "", 200}, {"/rpc/leave", "", 204}, {"/rpc/leave_and_fail", "", 400},
		{"/rpc/leave", "handling=lenient", 204}, {"/rpc/leave", "tx=rollback", 204},
	} {
		if got := a.do("POST", step.path, "", "Prefer", step.prefer); got.status != step.status {
			t.Fatalf("%s: %+v", step.path, got)
		}
		if got := a.do("POST", "/rpc/residue", ""); strings.ReplaceAll(got.body, `"setting" : ""`,
			`"setting" : null`) != want {
			t.Errorf("after %s: %s, want %s", step.path, got.body, want)
		}
	}

	a.wantOneConnection(pool)
}

// TestSessionIsCleanedAfterPolicies checks that policies leave as little in the session as
// functions do.
func TestSessionIsCleanedAfterPolicies(t *testing.T) {
	t.Parallel()

	a := newAPI(t, `
		create table guarded (id int);
		insert into guarded values (1);
		alter table guarded enable row level security;
		create policy littering on guarded for select using (set_config('app.left', 'behind', false) is not null and pg_advisory_lock(4711) is not null);
		grant select on guarded to authenticated`)

	pool := singleConnection(a)

	if got := a.do("GET", "/guarded", ""); got.body != `[{"id":1}]` {
		t.Fatal(got)
	}

	want := `{"setting" : "", "locks" : 0, "channels" : 0, "prepared" : 0, "cursors" : 0}`
	if got := a.do("POST", "/rpc/residue", ""); got.body != want {
		t.Errorf("got %s, want %s", got.body, want)
	}

	a.wantOneConnection(pool)
}

// TestSeedEndsWithRequest checks that a request whose code has called setseed foresees no random
// number of later ones.
func TestSeedEndsWithRequest(t *testing.T) {
	t.Parallel()

	a := newAPI(t, `
		create function sow() returns void language sql as 'select setseed(0.25)';
		create function draw() returns float8 language sql as 'select random()';
		create table sown (id int);
		insert into sown values (1);
		alter table sown enable row level security;
		create policy sows on sown for select using (setseed(0.25) is not null);
		grant select on sown to authenticated`)

	pool := singleConnection(a)
	for _, sow := range []struct{ method, path, prefer string }{
		{"POST", "/rpc/sow", ""}, {"POST", "/rpc/sow", "tx=rollback"}, {"GET", "/sown", ""},
		{"GET", "/sown?limit=1", "count=exact"},
	} {
		draw := func() string {
			if got := a.do(sow.method, sow.path, "", "Prefer", sow.prefer); got.status >= 300 {
				t.Fatalf("%+v: %+v", sow, got)
			}
			return a.do("POST", "/rpc/draw", "").body
		}
		if first, second := draw(), draw(); first == second {
			t.Errorf("after %+v: got %s twice", sow, first)
		}
	}

	a.wantOneConnection(pool)
}

func TestStatementTimeout(t *testing.T) {
	t.Parallel()

	a := newAPI(t, `
		create function insist() returns void language plpgsql as $$ begin perform set_config('statement_timeout', '0', false), pg_sleep(60); end $$;
		create function bounce() returns void language plpgsql as $$ begin
			loop
				begin perform pg_sleep(60); exception when query_canceled then null; end;
			end loop; end $$;
		create view endless as with recursive n(i) as (select 1::bigint union all select i + 1 from n) select count(*) from n;
		create view wide as select count(*) from generate_series(1, 1000000000000) a, generate_series(1, 1000000000000) b;
		grant select on endless, wide to authenticated`, func(c *Config) { c.Limits.Timeout = 50 * time.Millisecond })
	if _, err := a.server.Catalog.Get(t.Context()); err != nil {
		t.Fatal(err)
	}

	for _, test := range [][2]string{
		{"POST", "/rpc/sleep"}, {"POST", "/rpc/insist"}, {"POST", "/rpc/bounce"}, {"GET", "/endless"}, {"GET", "/wide"},
	} {
		got := a.do(test[0], test[1], "")
		if got.status != http.StatusInternalServerError || !strings.Contains(got.body, `"code":"57014"`) {
			t.Errorf("%s beyond the timeout: got %+v, want 500 57014", test[1], got)
		}
	}

	a.awaitNoSleepers()
	a.server.Limits.Timeout = time.Nanosecond

	if got := a.do("GET", "/clients", ""); got.status != http.StatusInternalServerError ||
		!strings.Contains(got.body, `"code":"57014"`) {
		t.Errorf("connection acquired after the timeout: got %+v, want 500 57014", got)
	}
}

func TestTerminated(t *testing.T) {
	t.Parallel()

	a := newAPI(t, "")
	got := make(chan reply)
	go func() { got <- a.do("POST", "/rpc/sleep", "") }()

	a.await(func() bool { return a.sleepers() == 1 })
	a.exec("select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and wait_event = 'PgSleep'")

	if got := <-got; got.status != http.StatusServiceUnavailable || !strings.Contains(got.body, "57P01") {
		t.Errorf("%+v", got)
	}
	if got := a.do("GET", "/clients?id=eq.1&select=id", ""); got.body != `[{"id":1}]` {
		t.Errorf("after it: %+v", got)
	}
}

func TestClientLeavesWhileExecuting(t *testing.T) {
	t.Parallel()

	a := newAPI(t, "")
	ctx, leave := context.WithCancel(t.Context())
	r := httptest.NewRequestWithContext(ctx, "POST", "/rpc/sleep", nil)
	r.Header.Set("Authorization", "Bearer authenticated:ann")
	done := make(chan struct{})

	go func() {
		defer close(done)

		a.server.ServeHTTP(httptest.NewRecorder(), r)
	}()

	a.await(func() bool { return a.sleepers() == 1 })
	leave()
	<-done
	a.awaitNoSleepers()
}

func (a *api) sleepers() (n int) {
	a.Helper()

	if err := a.admin.QueryRow(a.Context(), `select count(*) from pg_stat_activity
		where datname = current_database() and usename = 'request' and wait_event = 'PgSleep'`).Scan(&n); err != nil {
		a.Fatal(err)
	}

	return n
}

// awaitNoSleepers waits until no statement sleeps.
func (a *api) awaitNoSleepers() {
	a.Helper()

	a.await(func() bool { return a.sleepers() == 0 })
}

func (a *api) await(done func() bool) {
	a.Helper()

	pgtest.Eventually(a, "the condition of the test", done)
}

func TestChangedSchema(t *testing.T) {
	t.Parallel()

	a := newAPI(t, "")
	if got := a.do("GET", "/clients?id=eq.1&select=id", ""); got.body != `[{"id":1}]` {
		t.Fatal(got)
	}

	a.await(func() bool { return a.server.Catalog.listener.listening.Load() })
	// Without a notification: prepared statements detect the change by themselves.
	a.exec("alter table public.projects drop column client_id; alter table public.clients alter column id type text")

	if got := a.do("GET", "/clients?id=eq.1&select=id", ""); got.body != `[{"id":"1"}]` {
		t.Errorf("after the change of the column type: got %+v", got)
	}

	a.exec(
		"create table public.later (id int); grant all on public.later to authenticated; notify pgrst, 'reload schema'",
	)

	a.await(func() bool { return a.do("GET", "/later", "").status == http.StatusOK })
	a.exec("create table public.latest (id int); grant all on public.latest to authenticated")
	a.server.Catalog.Reload()

	if got := a.do("GET", "/latest", ""); got.status != http.StatusOK {
		t.Errorf("table created during a read of the catalog: got %+v, want 200", got)
	}

	a.exec("drop table public.latest")

	if got := a.do("GET", "/latest", ""); got.status != http.StatusNotFound || !strings.Contains(got.body, "42P01") {
		t.Errorf("dropped table: got %+v, want 404 42P01", got)
	}
}

func (a *api) exec(sql string) {
	a.Helper()

	if _, err := a.admin.Exec(a.Context(), sql); err != nil {
		a.Fatal(err)
	}
}

func TestDeallocated(t *testing.T) {
	t.Parallel()

	a := newAPI(t,
		"create function forget() returns void language plpgsql as $$ begin execute 'deallocate all'; end $$;")
	singleConnection(a)

	for range 2 {
		for _, request := range [][2]string{
			{"POST", "/rpc/forget"}, {"GET", "/clients?id=eq.1"}, {"GET", "/clients?id=eq.1"},
		} {
			if got := a.do(request[0], request[1], ""); got.status >= 300 {
				t.Errorf("%v: %+v", request, got)
			}
		}
	}
}

func TestManyStatements(t *testing.T) {
	t.Parallel()

	a := newAPI(t, "")
	singleConnection(a)

	for i := range 250 { // more than a connection keeps prepared
		path := fmt.Sprintf("/clients?select=a%d:id&id=eq.1", i)
		if got, want := a.do("GET", path, "").body, fmt.Sprintf(`[{"a%d":1}]`, i); got != want {
			t.Fatalf("%s: %s, want %s", path, got, want)
		}
	}

	if got := a.do("GET", "/rpc/setting?name=role", ""); got.body != `"authenticated"` {
		t.Error(got)
	}
}

func TestParallel(t *testing.T) {
	t.Parallel()

	a := newAPI(t, "")
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			sub := []string{"ann", "ben"}[i%2]
			want := map[string]string{"ann": `[{"body":"hers"}]`, "ben": `[{"body":"his"}]`}[sub]
			for range 25 {
				if got := a.do("GET", "/notes?select=body", "", "Authorization",
					"Bearer authenticated:"+sub); got.body != want {
					t.Errorf("%s: got %s, want %s", sub, got.body, want)
				}
				if got := a.do("GET", "/notes", "", "Authorization", ""); got.status != 401 {
					t.Errorf("anon: got %+v, want 401", got)
				}
			}
		})
	}

	all.Wait()
}

// TestTooLargeResponse checks that a change whose response exceeds MaxResponse is rolled back, in
// each format.
func TestTooLargeResponse(t *testing.T) {
	t.Parallel()

	a := newAPI(t, handlersSQL+`;
		create table bulky (id int primary key, note text not null);
		create table watched (like bulky including all);
		create function look() returns trigger language plpgsql as 'begin return new; end';
		create trigger look before insert or update on watched for each row execute function look();
		create domain "application/vnd.bare" as text;
		create function bare_step(state "application/vnd.bare", next bulky) returns "application/vnd.bare" language sql immutable as 'select next.note';
		create aggregate bare(bulky) (sfunc = bare_step, stype = "application/vnd.bare");
		create function long(n int) returns text language sql volatile as $$ insert into bulky select 1000, 'called'; select repeat('x', n) $$;
		create function longs(n int) returns setof text language sql volatile as $$ insert into bulky select 1000, 'called'; select repeat('x', n / 2) from generate_series(1, 2) $$;
		create function wide(n int, out a text, out b text) returns record language sql volatile as $$ insert into bulky select 1000, 'called'; select repeat('x', n / 2), repeat('y', n / 2) $$;
		create function any_record(n int) returns record language sql volatile as $$ insert into bulky select 1000, 'called'; select repeat('x', n / 2), repeat('y', n / 2) $$;
		create function bulky(n int) returns setof bulky language sql volatile as $$ insert into bulky select 1000, 'called'; select 7, repeat('x', n) $$;
		grant all on bulky, watched to authenticated`, func(c *Config) { c.Session.MaxResponse = 1 << 16 })

	pool := singleConnection(a)
	const before = `[{"id":1,"note":"as it was"}]`

	for _, table := range []string{"bulky", "watched"} {
		a.exec("insert into public." + table + " values (1, 'as it was')")
	}

	x := strings.Repeat("x", 1<<16)
	row := func(id int) string { return fmt.Sprintf(`{"id":%d,"note":"x%s"}`, id, x) }
	for _, test := range []struct{ method, path, body, prefer, accept string }{
		{"POST", "/bulky", row(2), "", ""},
		{"POST", "/bulky?select=note", row(2), "count=exact", "application/vnd.pgrst.object+json"},
		{"POST", "/bulky", "[" + row(2) + "]", "", "application/vnd.pgrst.array+json;nulls=stripped"},
		{"POST", "/bulky", "[" + row(2) + "]", "", "text/csv"},
		{"POST", "/bulky", "[" + row(2) + "]", "", "application/vnd.bare"},
		{"POST", "/bulky", row(1), "resolution=merge-duplicates", ""},
		{"POST", "/watched", row(2), "", ""},
		{"POST", "/watched", row(1), "resolution=merge-duplicates", "text/csv"},
		{"PUT", "/bulky?id=eq.1", row(1), "", ""},
		{"PATCH", "/bulky?id=eq.1", `{"note":"` + x + `"}`, "", ""},
		{"PATCH", "/watched", `{"note":"` + x + `"}`, "handling=strict, max-affected=1",
			"application/vnd.pgrst.object+json;nulls=stripped"},
		{"DELETE", "/bulky?select=note:id::text,a:note,b:note", "", "", ""},
		{"DELETE", "/bulky", "", "", "application/vnd.bare"},
		{"POST", "/rpc/long", `{"n":65535}`, "", ""},
		{"POST", "/rpc/long", `{"n":65535}`, "tx=rollback", "text/csv"},
		{"POST", "/rpc/longs", `{"n":65535}`, "", "application/vnd.pgrst.array+json;nulls=stripped"},
		{"POST", "/rpc/longs?limit=2", `{"n":65535}`, "count=exact", ""},
		{"POST", "/rpc/wide", `{"n":65535}`, "", ""},
		{"POST", "/rpc/any_record", `{"n":65535}`, "", ""},
		{"POST", "/rpc/bulky?select=note", `{"n":65535}`, "", ""},
		{"POST", "/rpc/bulky?select=note", `{"n":65535}`, "handling=strict, max-affected=1", "text/csv"},
		{"POST", "/rpc/bulky", `{"n":70000}`, "", "application/vnd.bare"},
	} {
		if test.method == "DELETE" {
			a.exec("update public.bulky set note = repeat('x', 70000)")
		}

		got := a.do(test.method, test.path, test.body, "Prefer", "return=representation, "+test.prefer, "Accept",
			test.accept, "Content-Type", "application/json")

		const refused = `{"code":"54000","details":"Nothing was changed. An answer has at most 65536 bytes.",` +
			`"hint":"Ask for fewer columns with select, or for none with return=minimal.","message":"the answer is too large"}`
		if got.status != 500 || got.body != refused {
			t.Errorf("%s %s %s: %.300v", test.method, test.path, test.accept, got)
		}
		if test.method == "DELETE" {
			a.exec("update public.bulky set note = 'as it was' where id = 1")
		}

		for _, table := range []string{"/bulky", "/watched"} {
			if got := a.do("GET", table, ""); got.body != before {
				t.Fatalf("%s after %s %s %s: %.300v", table, test.method, test.path, test.accept, got)
			}
		}
	}

	// The quotes count.
	for n, want := range map[int]int{1<<16 - 2: http.StatusOK, 1<<16 - 1: http.StatusInternalServerError} {
		if got := a.do("POST", "/rpc/long", fmt.Sprintf(`{"n":%d}`, n), "Prefer", "tx=rollback"); got.status != want ||
			(want == http.StatusOK && len(got.body) != 1<<16) {
			t.Errorf("string of %d bytes: got %d, %d bytes, want %d", n, got.status, len(got.body), want)
		}

		a.exec("delete from public.bulky where id = 1000")
	}

	if got := a.do("POST", "/bulky", row(3), "Prefer", "return=minimal"); got.status != http.StatusCreated {
		t.Errorf("return=minimal: got %.300v, want 201", got)
	}

	a.wantOneConnection(pool)
}

// TestOtherEncoding reads and writes a database whose encoding is not UTF-8. The conversion can
// enlarge a response: a change whose response exceeds MaxResponse only by that is committed and
// answered.
func TestOtherEncoding(t *testing.T) {
	t.Parallel()

	server := open(t, pgtest.Server().URL("postgres"), "", 1)
	if _, err := server.Exec(t.Context(),
		`create database latin template template0 encoding 'LATIN1' locale 'C'`); err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() {
		if _, err := server.Exec(context.WithoutCancel(t.Context()), `drop database latin with (force)`); err != nil {
			t.Error(err)
		}
	})

	a := newAPIAt(t, pgtest.Server().URL("latin"),
		`create table "städte" (id int primary key, name text not null); grant all on "städte" to authenticated; insert into "städte" values (1, chr(228) || 'ö')`,
		func(c *Config) { c.Session.MaxResponse = 1 << 16 })
	if got := a.do("GET", "/st%C3%A4dte?name=like.*%C3%B6", ""); got.status != http.StatusOK ||
		got.body != `[{"id":1,"name":"äö"}]` {
		t.Errorf("got %v", got)
	}

	for i, note := range []string{"é", "ÿ"} {
		long := strings.Repeat(note, 40_000) // bytes in LATIN1, twice as many in UTF-8
		want := fmt.Sprintf(`[{"id":%d,"name":"%s"}]`, 2+i, long)
		if got := a.do("POST", "/städte", want, "Prefer", "return=representation", "Content-Type",
			"application/json"); got.status != http.StatusCreated || got.body != want {
			t.Errorf("change: got %d, %d bytes, %.200s, want 201, %d bytes",
				got.status, len(got.body), got.body, len(want))
		}
	}

	if got := a.do("GET", "/städte?select=id", ""); got.body != "[{\"id\":1}, \n {\"id\":2}, \n {\"id\":3}]" {
		t.Errorf("got %v", got)
	}
	if got := a.do("POST", "/städte", `{"id":4,"name":"€"}`, "Content-Type", "application/json"); got.status !=
		http.StatusBadRequest {
		t.Errorf("character that LATIN1 lacks: got %v, want 400", got)
	}
}

func TestNoDatabase(t *testing.T) {
	t.Parallel()

	a := newAPI(t, "")
	if _, err := a.server.Catalog.Get(t.Context()); err != nil {
		t.Fatal(err)
	}

	config := singleConnection(a).Config()
	config.ConnConfig.Password = "wrong"
	closed, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	defer closed.Close()

	a.server.Auth.Role = func(string) (Role, bool) { return Role{Pool: closed}, true }
	got := a.do("GET", "/clients", "")
	if diff := cmp.Diff(`{"code":"PGRST000","details":null,"hint":null,"message":"Database connection error."}`,
		got.body); got.status != 503 || diff != "" {
		t.Errorf("status %d: %s", got.status, diff)
	}
}
