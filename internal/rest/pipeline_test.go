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

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/socle-dev/socle/internal/pgtest"
	"github.com/socle-dev/socle/internal/rest/catalog"
)

// litterSQL has user code litter wherever requests run some.
const litterSQL = pgtest.LitterSQL + `;
	create function litter_row() returns trigger language plpgsql as $$ begin perform litter(); return new; end $$;
	create function litter_late() returns trigger language plpgsql as $$ begin
		if current_setting('request.jwt.claims')::json->>'sub' <> 'ann' then raise 'whose claims are these?'; end if;
		perform litter();
		return null;
	end $$;
	create table plain (id int primary key);
	insert into plain values (1);
	create table guarded (id int);
	insert into guarded values (1);
	alter table guarded enable row level security;
	create policy littering on guarded for select using (litter());
	create view seen as select id, litter() from plain;
	create function untold(plain) returns boolean language sql volatile as 'select litter()';
	create table triggered (id int primary key);
	create trigger littering before insert or update on triggered for each row execute function litter_row();
	create table deferred (id int primary key check (id < 100));
	create constraint trigger littering after insert or update on deferred deferrable initially deferred for each row execute function litter_late();
	create table failing (id int primary key);
	create function fail_late() returns trigger language plpgsql as $$ begin perform litter(); raise 'no'; end $$;
	create constraint trigger littering after insert on failing deferrable initially deferred for each row execute function fail_late();
	create table defaulted (id int, left_behind boolean default litter());
	create function litter_steadily(int) returns boolean language plpgsql immutable as $$ begin return litter(); end $$;
	create table checked (id int check (litter_steadily(id)));
	create table indexed (id int);
	create index on indexed (litter_steadily(id));
	create table parent (id int primary key);
	insert into parent values (1);
	create table child (id int references parent on delete cascade);
	insert into child values (1);
	create trigger littering after delete on child for each row execute function litter_row();
	create domain littered as int check (litter_steadily(value));
	create table domained (id littered);
	grant all on plain, guarded, seen, triggered, deferred, failing, defaulted, checked, indexed, parent, domained to authenticated`

// wantClean fails the test if the session of a pool of one connection has leftovers.
func (a *api) wantClean(pool *pgxpool.Pool, after string) {
	a.Helper()

	var left string
	err := pool.QueryRow(a.Context(), "select public.leftovers()", pgx.QueryExecModeExec).Scan(&left)
	if err != nil || left != pgtest.NoLeftovers {
		a.Errorf("after %s: got the leftovers %q, %v, want none", after, left, err)
	}
}

func TestSessionIsCleanedAfterUserCode(t *testing.T) {
	t.Parallel()

	a := newAPI(t, litterSQL, func(c *Config) { c.Features.TxOverride = true })
	pool := singleConnection(a)
	for _, step := range []struct {
		method, path, body, prefer string
		status                     int
	}{
		{"GET", "/guarded", "", "", 200},
		{"HEAD", "/guarded", "", "count=exact", 200},
		{"GET", "/guarded?limit=1", "", "count=planned", 206},
		{"GET", "/seen", "", "", 200},
		{"GET", "/plain?select=id,untold", "", "", 200},
		{"GET", "/plain?untold=is.true", "", "", 200},
		{"GET", "/rpc/litter", "", "", 200},
		{"POST", "/rpc/litter", "", "", 200},
		{"POST", "/triggered", `{"id":1}`, "", 201},
		{"POST", "/triggered", `{"id":1}`, "", 409},
		{"PATCH", "/triggered?id=eq.1", `{"id":2}`, "handling=strict, max-affected=1", 204},
		{"PATCH", "/triggered?id=eq.2", `{"id":3}`, "handling=strict, max-affected=0", 400},
		{"POST", "/triggered", `{"id":5}`, "tx=rollback", 201},
		{"POST", "/deferred", `{"id":1}`, "", 201},
		{"PATCH", "/deferred?id=eq.1", `{"id":2}`, "handling=strict, max-affected=1", 204},
		{"POST", "/deferred", `{"id":3}`, "tx=rollback", 201},
		{"POST", "/deferred", `{"id":100}`, "", 400},
		{"POST", "/defaulted", `{"id":1}`, "", 201},
		{"POST", "/checked", `{"id":1}`, "", 201},
		{"POST", "/indexed", `{"id":1}`, "", 201},
		{"DELETE", "/parent?id=eq.1", "", "", 204},
		{"POST", "/domained", `{"id":1}`, "", 201},
		{"PATCH", "/domained", `[{"id":2}]`, "", 204},
		{"POST", "/failing", `{"id":1}`, "", 400},
		{"POST", "/failing", `{"id":1}`, "tx=rollback", 400},
		{"POST", "/failing", `[{"id":1}]`, "return=representation", 400},
	} {
		got := a.do(step.method, step.path, step.body, "Prefer", step.prefer)
		if got.status != step.status {
			t.Errorf("%s %s (%s): got %+v, want %d", step.method, step.path, step.prefer, got, step.status)
		}

		a.wantClean(pool, step.method+" "+step.path+" "+step.prefer)
	}

	a.wantOneConnection(pool)
}

// TestSessionIsCleanedAfterCatalogChange checks user code added to a table that had none: its
// leftovers stay in the session only until the catalog is read again.
func TestSessionIsCleanedAfterCatalogChange(t *testing.T) {
	t.Parallel()

	a := newAPI(t, litterSQL, func(c *Config) { c.Catalog.ListenOn("", nil) })
	pool := singleConnection(a)
	if got := a.do("GET", "/plain", ""); got.body != `[{"id":1}]` {
		t.Fatal(got)
	}

	a.exec("alter table public.plain enable row level security; create policy littering on public.plain using (public.litter())")

	if got := a.do("GET", "/plain", ""); got.body != `[{"id":1}]` {
		t.Fatal(got)
	}

	old := a.server.Catalog.Known()
	a.server.Catalog.Reload()
	a.await(func() bool { return a.server.Catalog.Known() != old })

	a.do("POST", "/rpc/nothing", "") // resets the session first
	a.wantClean(pool, "a new catalog")
	a.wantOneConnection(pool)
}

// TestDeferredConstraintFails checks that a constraint that fails at COMMIT fails the request and
// leaves no changes.
func TestDeferredConstraintFails(t *testing.T) {
	t.Parallel()

	a := newAPI(t, `
		create table owner (id int primary key);
		create table owned (id int primary key, owner_id int not null references owner deferrable initially deferred);
		grant all on owner, owned to authenticated`)
	pool := singleConnection(a)

	for _, step := range [][2]string{
		{"", `{"id":1,"owner_id":1}`}, {"return=representation", `{"id":1,"owner_id":1}`},
		{"", `[{"id":1,"owner_id":1},{"id":2,"owner_id":1}]`},
	} {
		if got := a.do("POST", "/owned", step[1], "Prefer", step[0]); got.status != http.StatusConflict ||
			!strings.Contains(got.body, `"code":"23503"`) {
			t.Errorf("%v: got %+v, want 409 23503", step, got)
		}
		if got := a.do("GET", "/owned", ""); got.body != "[]" {
			t.Errorf("after %v: got %s, want []", step, got.body)
		}
	}

	a.wantOneConnection(pool)
}

// TestNestedPreparedStatements checks that statements prepared by nested functions are removed from
// time to time.
func TestNestedPreparedStatements(t *testing.T) {
	t.Parallel()

	a := newAPI(t, `
		create function prepares() returns boolean language plpgsql as $$ begin execute format('prepare %I as select 1', gen_random_uuid()); return true; end $$;
		create function calls() returns boolean language sql stable as 'select prepares()';
		create table behind (id int); insert into behind values (1);
		alter table behind enable row level security;
		create policy calling on behind for select using (calls());
		create view left_behind as select count(*) from pg_prepared_statements where from_sql;
		grant select on behind, left_behind to authenticated`)

	singleConnection(a)
	left := 0

	const interval = 100 // requests of a connection between searches for prepared statements
	for range 5 * interval / 2 {
		if got := a.do("GET", "/behind", ""); got.body != `[{"id":1}]` {
			t.Fatal(got)
		}
	}

	body := a.do("GET", "/left_behind", "").body
	if _, err := fmt.Sscanf(body, `[{"count":%d}]`, &left); err != nil || left >= interval {
		t.Errorf("got %s statements after %d requests, want less than %d (%v)",
			body, 5*interval/2, interval, err)
	}
}

// TestLockIsHeldUntilCommit checks that a session lock taken by a trigger protects the rows until
// they are committed.
func TestLockIsHeldUntilCommit(t *testing.T) {
	t.Parallel()

	a := newAPI(t, `
		create table once (id int);
		create function only_one() returns trigger language plpgsql as $$ begin
			perform pg_advisory_lock(4712);
			if exists (select from once) then raise 'there is one'; end if;
			return new;
		end $$;
		create trigger only_one before insert on once for each row execute function only_one();
		grant all on once to authenticated`)

	for range 20 {
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() { a.do("POST", "/once", `{"id":1}`) })
		}

		all.Wait()

		if got := a.do("GET", "/once", "").body; got != `[{"id":1}]` {
			t.Fatalf("got %s, want one row", got)
		}

		a.exec("truncate public.once")
	}
}

// TestPolicyDeallocatesStatements checks that cleanup works without its prepared statements.
func TestPolicyDeallocatesStatements(t *testing.T) {
	t.Parallel()

	a := newAPI(t, `
		create function forget() returns boolean language plpgsql as $$ begin execute 'deallocate all'; perform pg_advisory_lock(4711); return true; end $$;
		create table guarded (id int);
		insert into guarded values (1);
		alter table guarded enable row level security;
		create policy forgetting on guarded using (forget());
		grant all on guarded to authenticated`)

	singleConnection(a)

	for i := range 3 {
		if got := a.do("GET", "/guarded", ""); got.body != `[{"id":1}]` {
			t.Errorf("read %d: got %+v", i, got)
		}
		if got := a.do("PATCH", "/guarded?id=eq.1", `{"id":1}`); got.status != http.StatusNoContent {
			t.Errorf("write %d: got %+v, want 204", i, got)
		}
		if got := a.do("POST", "/rpc/residue", "").body; !strings.Contains(got, `"locks" : 0`) {
			t.Errorf("after round %d: got %s, want no locks", i, got)
		}
	}
}

// TestConnectionsThatDied checks that a request on a connection that died while idle runs once, on
// another one.
func TestConnectionsThatDied(t *testing.T) {
	t.Parallel()

	a := newAPI(t, "create table events (id int); grant all on events to authenticated")
	for round := range 5 {
		var busy sync.WaitGroup
		for range 2 {
			busy.Go(func() { a.do("GET", "/clients?select=id", "") })
		}

		busy.Wait()
		a.exec("select pg_terminate_backend(pid, 10000) from pg_stat_activity where datname = current_database() and usename = 'request'")

		var all sync.WaitGroup
		for i := range 4 {
			all.Go(func() {
				if i%2 == 0 {
					if got := a.do("GET", "/clients?id=eq.1&select=id", ""); got.body != `[{"id":1}]` {
						t.Errorf("round %d: read: got %+v", round, got)
					}
				} else if got := a.do("POST", "/events", `{"id":1}`); got.status != http.StatusCreated {
					t.Errorf("round %d: write: got %+v, want 201", round, got)
				}
			})
		}

		all.Wait()

		if got, want := a.do("HEAD", "/events", "", "Prefer",
			"count=exact").header.Get("Content-Range"), fmt.Sprintf("0-%d/%d", 2*round+1, 2*round+2); got != want {
			t.Errorf("round %d: %s, want %s", round, got, want)
		}
	}
}

// TestRetriesOnlyUnstarted checks that a request is retried only if it did not start.
func TestRetriesOnlyUnstarted(t *testing.T) {
	t.Parallel()

	a := newAPI(t, "create table events (id int); grant all on events to authenticated;"+
		"create function die() returns void language sql security definer as 'select pg_terminate_backend(pg_backend_pid())'")
	singleConnection(a)

	if got := a.do("POST", "/rpc/die", ""); got.status != http.StatusServiceUnavailable {
		t.Errorf("statement that terminates its connection: got %+v, want 503", got)
	}
	if got := a.do("GET", "/clients?id=eq.1&select=id", ""); got.body != `[{"id":1}]` {
		t.Errorf("next request: got %+v", got)
	}
}

// TestFullDuplex checks that notices sent by PostgreSQL while it receives a long body cause no
// deadlock.
func TestFullDuplex(t *testing.T) {
	t.Parallel()

	a := newAPI(t, `create table texts (body text); grant all on texts to authenticated;
		create function talk() returns void language plpgsql as $$ begin
			for i in 1 .. 10000 loop raise notice '%', repeat('x', 200); end loop; end $$`, func(c *Config) {
		c.PreRequest = catalog.Name{Schema: "public", Name: "talk"}
	})

	body := `{"body":"` + strings.Repeat("y", 4<<20) + `"}`
	for range 2 {
		if got := a.do("POST", "/texts", body); got.status != http.StatusCreated {
			t.Errorf("%.300v", got)
		}
	}

	if got := a.do("GET", "/texts?select=body&limit=1", ""); len(got.body) != 4<<20+len(`[{"body":""}]`) {
		t.Errorf("got a response of %d bytes", len(got.body))
	}
	if got := a.do("POST", "/nowhere", body); got.status != http.StatusNotFound {
		t.Errorf("%.300v", got)
	}
}

// TestClientLeavesWhileAcquiring checks that the request of a disconnected client stops waiting for
// a connection.
func TestClientLeavesWhileAcquiring(t *testing.T) {
	t.Parallel()

	a := newAPI(t, "", func(c *Config) { c.Session.AcquireTimeout = time.Hour })
	pool := singleConnection(a)
	a.do("GET", "/clients", "")

	conn, err := pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}

	ctx, leave := context.WithCancel(t.Context())
	r := httptest.NewRequestWithContext(ctx, "GET", "/clients", nil)
	r.Header.Set("Authorization", "Bearer authenticated:ann")
	done := make(chan struct{})

	go func() {
		defer close(done)

		a.server.ServeHTTP(httptest.NewRecorder(), r)
	}()

	a.await(func() bool { return pool.Stat().EmptyAcquireCount() > 0 || pool.Stat().AcquiredConns() > 0 })
	leave()

	<-done
	conn.Release()

	if got := a.do("GET", "/clients?id=eq.1&select=id", ""); got.body != `[{"id":1}]` {
		t.Errorf("next request: got %+v", got)
	}
}
