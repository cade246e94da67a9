package api_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/socle-dev/socle/internal/api/apitest"
)

// endless creates functions that run forever: they trap their cancellation.
const endless = `
	create function public.trap() returns void language plpgsql as $$ begin
		loop begin perform pg_sleep(3600); exception when query_canceled then null; end; end loop;
	end $$;
	create function public.trapped(integer) returns boolean language plpgsql immutable as $$ begin perform public.trap(); return true; end $$;
	create function public.trap_row() returns trigger language plpgsql as $$ begin perform public.trap(); return new; end $$`

// TestEndlessUserCode checks that user code that traps its cancellation ends with its request and
// releases its locks.
func TestEndlessUserCode(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	a.CreateTable("orders", "note text")
	a.CreateTable("filled", "note text")
	asOwner(t, a, endless+
		`; insert into public.orders values (1, 'x'); grant execute on all functions in schema public to public;
		create trigger t before insert on public.filled for each row execute function public.trap_row()`)

	constraint := func() *http.Request {
		return a.Request("POST", "/tables/orders/constraints",
			strings.NewReader(`{"type": "check", "expression": "trapped(id)"}`))
	}

	imported := func() *http.Request {
		r := a.Request("POST", "/tables/filled/import?format=csv", strings.NewReader("id,note\n1,x\n"))
		r.Header.Set("Content-Type", "text/csv")

		return r
	}
	for name, request := range map[string]func() *http.Request{"constraint": constraint, "import": imported} {
		ctx, leave := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)

			reply, err := http.DefaultClient.Do(request().WithContext(ctx))
			if err == nil {
				defer reply.Body.Close()

				t.Errorf("%s: got %s", name, reply.Status)
			}
		}()

		until(t, name+" runs", func() bool {
			return query[bool](t, a,
				"select exists (select from pg_stat_activity where datname = current_database() and usename like '%owner' and wait_event = 'PgSleep')")
		})

		leave()
		<-done

		until(t, "the session of "+name+" has ended", func() bool {
			return query[bool](t, a,
				"select not exists (select from pg_stat_activity where datname = current_database() and usename like '%owner' and state <> 'idle')")
		})

		if query[bool](t, a,
			"select exists (select from pg_locks l join pg_class c on c.oid = l.relation where l.database = (select oid from pg_database where datname = current_database()) and c.relname in ('orders', 'filled') and l.mode <> 'AccessShareLock')") {
			t.Errorf("%s: a lock remains", name)
		}
	}

	a.Post("/tables/orders/constraints", `{"type": "check", "name": "positive", "expression": "id > 0"}`).Want(201)
}

// TestLockTable checks that a session that fills the lock table of the PostgreSQL server is
// terminated with an explanation. It is not parallel: other tests need locks too.
func TestLockTable(t *testing.T) {
	a := apitest.Shared(t)
	other := a.WithProject(a.CreateProject("Bystander"))

	asOwner(t, a,
		`create table public.filled (id integer); create function public.lock_much() returns trigger language plpgsql as $$ begin
		perform pg_advisory_xact_lock(n) from generate_series(1, 80000) n; perform pg_sleep(3600); return new; end $$;
		create trigger t before insert on public.filled for each row execute function public.lock_much()`)

	const much = "do $$ begin perform pg_advisory_lock(n) from generate_series(1, 80000) n; perform pg_sleep(3600); end $$"
	a.Post("/sql", sqlBody(much, writing)).Want(422).Code("session_ended")
	a.Send("POST", "/tables/filled/import?format=csv", "id\n1\n", "Content-Type: text/csv").Want(422).
		Code("session_ended")

	until(t, "its locks are released", func() bool {
		return query[bool](t, a,
			"select not exists (select from pg_locks where locktype = 'advisory' and database = (select oid from pg_database where datname = current_database()))")
	})

	other.CreateTable("t")
	a.Post("/sql", sqlBody("select 1")).Want(200)

	if log := a.Log.String(); !strings.Contains(log, "terminating a project's session") ||
		!strings.Contains(log, "perform pg_advisory_lock(n)") {
		t.Error("the log has no entry for the ended session")
	}
}

// TestHugeMessages checks that an error or a notice of 100 MB is bounded in memory, log and
// response, on every path.
func TestHugeMessages(t *testing.T) {
	t.Parallel()

	a := apitest.New(t)
	a.CreateTable("orders", "note text")

	asOwner(t, a, `
		create function public.shout(id integer, bytes integer) returns boolean language plpgsql immutable as $$ begin
			raise notice '%', repeat('n', bytes); raise exception '%', repeat('e', bytes); end $$;
		insert into public.orders values (1, 'x')`)

	a.Post("/tables/orders/constraints", `{"type": "check", "expression": "shout(id, 17 << 20)"}`).Want(422).
		Code("too_large")

	a.Post("/tables/orders/constraints", `{"type": "check", "expression": "shout(id, 1 << 20)"}`).Want(422)

	const longest = `"timeout_ms": 30000`
	r := a.Post("/sql", sqlBody("select public.shout(1, 1 << 20)", longest)).Want(422).Code("sql_error")
	a.Post("/sql", sqlBody("select public.shout(1, 40 << 20)", longest)).Want(422).Code("too_large")

	if len(r.Body) > 64<<10 || len(a.Log.String()) > 256<<10 {
		t.Errorf("got %d bytes in the response and %d in the log", len(r.Body), len(a.Log.String()))
	}
}
