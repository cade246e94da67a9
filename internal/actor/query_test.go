package actor_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/socle-dev/socle/internal/actor"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// fixture has a table whose rows belong to users, and user code that policies call.
const fixture = pgtest.LitterSQL + `;
	create role anon;
	create role authenticated;
	grant usage, create on schema public to public;
	create table public.notes (name text primary key, owner text);
	alter table public.notes enable row level security;
	grant all on public.notes to anon, authenticated;
	create policy own on public.notes to authenticated
		using (owner = current_setting('request.jwt.claims')::json ->> 'sub');
	create function public.reading() returns boolean language sql as 'select true';
	grant execute on function public.reading to public;
	create policy reading on public.notes as restrictive for select using ((select public.reading()))`

// application is a database with two users, and a note of the first.
type application struct {
	t        *testing.T
	admin    *pgx.Conn
	pool     *pgxpool.Pool
	ann, bob actor.Actor
}

func newApplication(t *testing.T) *application {
	t.Helper()

	url := pgtest.Clone(t, "actor", func(ctx context.Context, url string) error {
		conn, err := pgx.Connect(ctx, url)
		if err != nil {
			return err
		}
		defer conn.Close(ctx)

		_, err = conn.PgConn().Exec(ctx, fixture).ReadAll()
		return err
	})

	admin, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = admin.Close(context.WithoutCancel(t.Context())) })

	config, err := pg.PoolConfig(url, 4)
	if err != nil {
		t.Fatal(err)
	}
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)

	user := func() actor.Actor {
		id := uuid.NewString()
		claims := `{"sub": "` + id + `", "role": "authenticated"}`

		return actor.Actor{Role: "authenticated", Subject: id, Claims: []byte(claims)}
	}

	a := &application{t, admin, pool, user(), user()}
	a.exec(`insert into public.notes values ('first', '` + a.ann.Subject + `')`)

	return a
}

// exec executes statements of the owner of the database.
func (a *application) exec(sql string) {
	a.t.Helper()

	if _, err := a.admin.PgConn().Exec(a.t.Context(), sql).ReadAll(); err != nil {
		a.t.Fatal(err)
	}
}

// setReading sets the body of a function that a policy for reading calls.
func (a *application) setReading(body string) {
	a.t.Helper()

	a.exec(`create or replace function public.reading() returns boolean language plpgsql as $$ begin ` + body +
		` return true; end $$`)
}

// read returns the notes that an actor sees.
func (a *application) read(as actor.Actor) ([]string, error) {
	return pg.Values[string](a.t.Context(), as.On(a.pool), `select name from public.notes where name like @name`,
		pgx.StrictNamedArgs{"name": "%"})
}

// wantNotes fails the test unless an actor sees these notes.
func (a *application) wantNotes(when string, as actor.Actor, want ...string) {
	a.t.Helper()

	if got, err := a.read(as); err != nil || !slices.Equal(got, want) {
		a.t.Errorf("%s: %s %s sees %q, %v, want %q", when, as.Role, as.Subject, got, err, want)
	}
}

// TestSessionsAreReset has the code of policies change the session that the next statements use.
func TestSessionsAreReset(t *testing.T) {
	t.Parallel()

	a := newApplication(t)
	for _, body := range []string{
		`perform public.litter('anon');`,
		`perform set_config('search_path', 'nowhere', false);`,
		`perform set_config('role', 'anon', false);`,
		`perform set_config('request.jwt.claims', '{}', false);`,
		`perform set_config('statement_timeout', '1ms', false);`,
		`perform set_config('default_transaction_read_only', 'on', false);`,
		`perform pg_advisory_lock(1);`,
		`listen somebody;`,
		`execute 'prepare "' || gen_random_uuid() || '" as select 1';`,
		`execute 'deallocate all';`,
		`execute 'deallocate all; prepare actor_0 as select 1; prepare actor_6 as select 2';`,
	} {
		for range 3 {
			a.setReading(body)
			if _, err := a.read(a.ann); err != nil {
				t.Errorf("%s: got %v", body, err)
			}

			a.wantClean(body)
			a.setReading("")
			a.wantNotes("after "+body, a.ann, "first")
			a.wantNotes("after "+body, a.bob)

			changed, err := pg.Exec(t.Context(), a.ann.On(a.pool), `update public.notes set name = name`)
			if err != nil || changed != 1 {
				t.Errorf("after %s: changed %d notes, %v, want 1", body, changed, err)
			}
		}
	}

	locks, err := pg.Values[string](t.Context(), a.admin,
		`select locktype from pg_locks where locktype = 'advisory' and objid = 1`)
	if err != nil || len(locks) > 0 {
		t.Errorf("got the locks %v, %v, want none", locks, err)
	}
}

// wantClean fails the test if an idle session of the pool has leftovers.
func (a *application) wantClean(after string) {
	a.t.Helper()

	for _, conn := range a.pool.AcquireAllIdle(a.t.Context()) {
		left, err := pg.Value[string](a.t.Context(), conn, "select public.leftovers()", pgx.QueryExecModeExec)
		if err != nil || left != pgtest.NoLeftovers {
			a.t.Errorf("after %s: got the leftovers %q, %v, want none", after, left, err)
		}
		conn.Release()
	}
}

// TestReadsAreReadOnly checks that the code of policies changes nothing while it decides about a
// read.
func TestReadsAreReadOnly(t *testing.T) {
	t.Parallel()

	a := newApplication(t)
	a.exec(`create table public.reads (n int); grant all on public.reads to authenticated`)
	a.setReading(`insert into public.reads values (1);`)

	if _, err := a.read(a.ann); !fault.Is(err, fault.Unprocessable) {
		t.Errorf("a policy that writes: got %v, want Unprocessable", err)
	}
}

// TestPoliciesApplyAtOnce changes policies between executions of prepared statements, by users in
// two roles.
func TestPoliciesApplyAtOnce(t *testing.T) {
	t.Parallel()

	a := newApplication(t)
	for range 10 { // PostgreSQL may choose a generic plan after five
		a.wantNotes("before", a.ann, "first")
		a.wantNotes("before", a.bob)
		a.wantNotes("before", actor.Actor{Role: "anon"})
	}

	a.exec(`create policy everybody on public.notes for select to anon using (true)`)
	a.wantNotes("after", a.bob)
	a.wantNotes("after", actor.Actor{Role: "anon"}, "first")
}

// TestFailingPolicies checks that a failing policy fails its own statement only, as the project's
// mistake, and that a lock of the project's owner does not hold requests.
func TestFailingPolicies(t *testing.T) {
	t.Parallel()

	a := newApplication(t)
	for _, c := range []struct {
		what, sql string
		timeout   time.Duration
		want      fault.Kind
	}{
		{"error", `create policy broken on public.notes as restrictive for select using (1 / (length(name) - length(name)) = 1)`,
			0, fault.Unprocessable},
		{"slow policy", `alter policy broken on public.notes using (pg_sleep(60) is null)`,
			200 * time.Millisecond, fault.Unavailable},
		{"locked table", `drop policy broken on public.notes; begin; lock table public.notes`, 0, fault.Conflict},
	} {
		a.exec(c.sql)

		as := a.ann
		as.Timeout = c.timeout
		if _, err := a.read(as); !fault.Is(err, c.want) {
			t.Errorf("%s: got %v, want kind %d", c.what, err, c.want)
		}
	}
}

// TestRefusedChange checks the error of a change that no policy allows.
func TestRefusedChange(t *testing.T) {
	t.Parallel()

	a := newApplication(t)
	_, err := pg.Exec(t.Context(), a.bob.On(a.pool), `insert into public.notes values ('second', @owner)`,
		pgx.StrictNamedArgs{"owner": a.ann.Subject})
	if pg.State(err) != "42501" || !fault.Is(actor.Fault(err), fault.Forbidden) {
		t.Errorf("got %v, want an error of PostgreSQL, and Forbidden", err)
	}
}
