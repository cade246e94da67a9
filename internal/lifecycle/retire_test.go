package lifecycle_test

import (
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/lifecycle"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/pgcluster"
	"github.com/socle-dev/socle/internal/pgtest"
	"github.com/socle-dev/socle/internal/platform"
	"github.com/socle-dev/socle/internal/projectdb/projectdbtest"
)

// TestRemoveReferencedLogins removes a project whose logins appear in objects of another
// project, as owners could create in earlier releases, while a transaction there locks these
// objects. The removal succeeds, the logins cannot log in, and they are dropped once the locks are
// released.
func TestRemoveReferencedLogins(t *testing.T) {
	t.Parallel()

	i := newInstall(t)
	named, err := i.create(t.Context(), i.healthy)
	if err != nil {
		t.Fatal(err)
	}

	other, err := i.healthy.Create(t.Context(), i.user,
		platform.NewProject{Organization: i.organization, Name: "other"})
	if err != nil {
		t.Fatal(err)
	}

	role := pg.Quote(i.healthy.Registry.Login(named.UUID, pgcluster.Owner))
	p := i.healthy.Registry.Open(other.UUID)
	inspect, tenant := projectdbtest.Connect(t, p, pgcluster.Trusted), projectdbtest.Connect(t, p, pgcluster.Owner)
	policies := 2*lifecycle.PolicyBatch + 1

	pgtest.Exec(t, inspect, fmt.Sprintf(`
		create table public.t (id int);
		alter table public.t owner to %[1]s;
		do 'begin
			for i in 1..%[2]d loop execute format(''create policy named_%%s on public.t to %[3]s using (true)'', i); end loop;
		end';
		create policy shared on public.t to anon, %[3]s using (true);
		grant select on public.t to %[3]s;
		grant usage on schema public to %[3]s;
		alter default privileges for role %[1]s grant select on tables to %[3]s`,
		pg.Quote(i.healthy.Registry.Login(other.UUID, pgcluster.Owner)), policies, role))

	pgtest.Exec(t, tenant, "begin; lock table public.t")

	if _, err := i.healthy.Remove(t.Context(), named.UUID, i.user); err != nil {
		t.Fatal(err)
	}

	login := p.Cluster().Config(named.UUID, pgcluster.Owner)
	login.Database = i.healthy.Registry.Database(other.UUID)
	if _, err := pgx.ConnectConfig(t.Context(), login); pg.State(err) != "28P01" { // invalid_password: it has none
		t.Errorf("a login of the removed project: got %v, want state 28P01", err)
	}

	if err := i.healthy.Finish(t.Context()); err == nil {
		t.Error("a login was dropped while a policy refers to it")
	}

	again, err := i.create(t.Context(), i.healthy)
	if err != nil {
		t.Fatal(err)
	}

	if _, err := i.healthy.Remove(t.Context(), again.UUID, i.user); err != nil {
		t.Error(err)
	}

	pgtest.Exec(t, tenant, "rollback")
	i.exec(`update platform.retired_roles set next_try = now()`)

	if err := i.healthy.Finish(t.Context()); err != nil {
		t.Error(err)
	}

	if got := pgtest.Value[int](t, inspect, `select count(*)::int from pg_roles where rolname like $1`,
		i.healthy.Registry.Database(named.UUID)+"%"); got != 0 {
		t.Errorf("got %d logins, want 0", got)
	}
	if got := pgtest.Value[string](t, tenant,
		`select string_agg(polname || ' ' || polroles::regrole[]::text, ', ') from pg_policy`); got != "shared {anon}" {
		t.Errorf("got policies %s, want the one for another role", got)
	}
	if got := pgtest.Value[int](t, pgtest.Connect(t, i.healthy.Registry.Platform().PlatformConfig()),
		`select count(*)::int from platform.retired_roles`); got != 0 {
		t.Errorf("got %d retired logins, want 0", got)
	}
}
