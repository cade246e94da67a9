package object

import (
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/pgtest"
)

// createReading creates a policy for reading whose function has a body.
func (a *application) createReading(body string) {
	a.t.Helper()

	if _, err := a.project.Owner().Exec(a.t.Context(), `
		create or replace function public.reading() returns boolean language plpgsql as $$ begin `+body+` return true; end $$;
		grant execute on function public.reading to anon, authenticated;
		drop policy if exists reading on storage.objects;
		create policy reading on storage.objects as restrictive for select using ((select public.reading()))`,
		pgx.QueryExecModeSimpleProtocol); err != nil {
		a.t.Fatal(err)
	}
}

// TestSessionsAreReset has the code of policies change the session that the next questions use.
func TestSessionsAreReset(t *testing.T) {
	t.Parallel()

	a := newApplication(t)
	name := a.ann.Subject + "/a"
	a.mustPut(a.ann, name, "1")

	if _, err := a.project.Owner().Exec(t.Context(), pgtest.LitterSQL+`;
		grant usage on schema public to public`, pgx.QueryExecModeSimpleProtocol); err != nil {
		t.Fatal(err)
	}

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
		`execute 'deallocate all; prepare object_0 as select 1; prepare object_6 as select 2';`,
	} {
		for range 3 {
			a.createReading(body)
			_, err := GetObject(t.Context(), a.project, a.ann, a.found, name)
			if fault.Ignore(err, fault.NotFound) != nil {
				t.Errorf("%s: got %v", body, err)
			}

			a.wantClean(body)
			a.createReading("")
			if _, err := GetObject(t.Context(), a.project, a.ann, a.found, name); err != nil {
				t.Errorf("after %s: got %v", body, err)
			}
			if _, err := GetObject(t.Context(), a.project, a.bob, a.found, name); !fault.Is(err, fault.NotFound) {
				t.Errorf("after %s: got %v for another user, want NotFound", body, err)
			}
			a.mustPut(a.ann, name, "2")
		}
	}

	locks, err := pg.Values[string](t.Context(), a.project.Trusted(),
		`select locktype from pg_locks where locktype = 'advisory' and objid = 1`)
	if err != nil || len(locks) > 0 {
		t.Errorf("got the locks %v, %v, want none", locks, err)
	}
}

// wantClean fails the test if an idle session of the pool for questions has leftovers.
func (a *application) wantClean(after string) {
	a.t.Helper()

	for _, conn := range a.project.Questions().AcquireAllIdle(a.t.Context()) {
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
	name := a.ann.Subject + "/a"
	a.mustPut(a.ann, name, "1")
	if _, err := a.project.Owner().Exec(t.Context(),
		`create table public.reads (n int); grant all on public.reads to authenticated`); err != nil {
		t.Fatal(err)
	}

	a.createReading(`insert into public.reads values (1);`)
	_, err := GetObject(t.Context(), a.project, a.ann, a.found, name)
	a.wantKind("a policy that writes", err, fault.Unprocessable)
}

// TestPoliciesApplyAtOnce changes policies between questions of prepared statements, by users in
// two roles.
func TestPoliciesApplyAtOnce(t *testing.T) {
	t.Parallel()

	a := newApplication(t)
	name := a.ann.Subject + "/a"
	a.mustPut(a.ann, name, "1")

	found := func(actor Actor) []string {
		t.Helper()

		names, err := FindObjects(t.Context(), a.project, actor, a.found, []string{name})
		if err != nil {
			t.Fatal(err)
		}

		return names
	}

	for range 10 { // PostgreSQL may choose a generic plan after five
		if got := found(a.ann); !slices.Equal(got, []string{name}) {
			t.Errorf("got %q for the owner", got)
		}
		if got := append(found(a.bob), found(Actor{Role: "anon"})...); len(got) > 0 {
			t.Errorf("got %q for others, want none", got)
		}
	}

	if _, err := a.project.Owner().Exec(t.Context(),
		`create policy everybody on storage.objects for select to anon using (true)`); err != nil {
		t.Fatal(err)
	}
	if got := append(found(a.bob), found(Actor{Role: "anon"})...); !slices.Equal(got, []string{name}) {
		t.Errorf("got %q for others, want that of anon", got)
	}
}
