package lifecycle_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/lifecycle"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/pgcluster"
	"github.com/socle-dev/socle/internal/pgtest"
	"github.com/socle-dev/socle/internal/projectdb"
	"github.com/socle-dev/socle/internal/projectdb/projectdbtest"
)

// newFormerProject creates a project's database at a migration of an earlier release, and returns
// the platform's connection and a function that provisions the project.
func newFormerProject(t *testing.T, version int64) (conn *pgx.Conn, owner string, provision func() *pgx.Conn) {
	t.Helper()

	r := projectdbtest.NewRegistry(t, 8)
	databases := lifecycle.Databases{Registry: r}
	p := r.Open(projectdbtest.UUID(t))
	admin := pgtest.Connect(t, r.Platform().PlatformConfig())
	t.Cleanup(func() {
		if _, err := databases.Destroy(t.Context(), p.UUID); err != nil && !errors.Is(err, t.Context().Err()) {
			t.Error(err)
		}
	})

	if err := p.Cluster().CreateLogins(t.Context(), admin, p.UUID); err != nil {
		t.Fatal(err)
	}
	pgtest.Exec(t, admin, "create database "+pg.Quote(r.Database(p.UUID))+" template template0 encoding 'UTF8'")
	if err := pg.MigrateTo(t.Context(), p.Cluster().Config(p.UUID, pgcluster.Trusted), projectdb.Schema,
		projectdb.Migrations(), version); err != nil {
		t.Fatal(err)
	}

	return projectdbtest.Connect(t, p, pgcluster.Trusted), pg.Quote(r.OwnerLogin(p.UUID)), func() *pgx.Conn {
		if _, err := databases.Provision(t.Context(), p.UUID); err != nil {
			t.Fatal(err)
		}
		return projectdbtest.Connect(t, p, pgcluster.Owner)
	}
}

// installed selects the extensions of a project with their schemas.
const installed = `
	select coalesce(string_agg(e.extname || ' in ' || n.nspname, ', ' order by e.extname), '')
	from pg_extension e join pg_namespace n on n.oid = e.extnamespace where e.extname <> 'plpgsql'`

// TestExtensionsOfProject checks which extensions a new project has, and one that is migrated.
func TestExtensionsOfProject(t *testing.T) {
	t.Parallel()

	const both = "pgcrypto in extensions, uuid-ossp in extensions"
	conn := projectdbtest.Connect(t, projectdbtest.New(t), pgcluster.Owner)
	if got := pgtest.Value[string](t, conn, installed); got != both {
		t.Errorf("a new project: got %q, want %q", got, both)
	}
	for _, sql := range []string{
		`create extension if not exists "uuid-ossp" with schema extensions; create extension if not exists pgcrypto`,
		`create table public.t (id uuid default extensions.uuid_generate_v4(), hash text default extensions.crypt('x', extensions.gen_salt('bf', 4)))`,
		`insert into public.t default values`,
	} {
		if got := pgtest.State(t, conn, sql); got != "" {
			t.Errorf("%s: got state %s", sql, got)
		}
	}
	for _, sql := range []string{
		`create function extensions.crypt(text) returns text language sql as 'select 1'`,
		`create or replace function extensions.uuid_nil() returns uuid language sql as 'select null::uuid'`,
		`alter extension pgcrypto set schema public`, `drop extension pgcrypto`, `drop schema extensions cascade`,
		`alter function extensions.crypt(text, text) owner to current_user`,
	} {
		if got := pgtest.State(t, conn, sql); got != "42501" {
			t.Errorf("%s: got state %q, want 42501", sql, got)
		}
	}

	for name, test := range map[string]struct{ before, want string }{
		"nothing":      {"", both},
		"an extension": {"create schema extensions; create extension citext schema extensions", "citext in extensions, " + both},
		"pgcrypto in public": {`create extension pgcrypto schema public`,
			`pgcrypto in public, uuid-ossp in extensions`},
		"the owner's schema":    {"create schema extensions authorization OWNER", ""},
		"an object of the user": {"create schema extensions; create function extensions.f() returns int language sql as 'select 1'", ""},
		"open to the owner":     {"create schema extensions; grant create on schema extensions to OWNER", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			platform, owner, provision := newFormerProject(t, 42)
			pgtest.Exec(t, platform, strings.ReplaceAll(test.before, "OWNER", owner))
			if got := pgtest.Value[string](t, provision(), installed); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// TestOwnerPassesRowSecurity checks that no policy applies to the owner of a new project or of one
// that an earlier release has made, and that this opens nothing in the platform's schemas.
func TestOwnerPassesRowSecurity(t *testing.T) {
	t.Parallel()

	platform, owner, provision := newFormerProject(t, 42)
	pgtest.Exec(t, platform, "alter role "+owner+" nobypassrls")

	for name, conn := range map[string]*pgx.Conn{
		"a new project":      projectdbtest.Connect(t, projectdbtest.New(t), pgcluster.Owner),
		"a migrated project": provision(),
	} {
		for _, sql := range []string{
			"create table public.p (id int primary key); alter table public.p force row level security; insert into public.p values (1)",
			`create function public.f() returns int language sql security definer
				as 'insert into public.p values (2); select count(*)::int from public.p'`,
			"select 1 / (public.f() - 1)",
			`set row_security = off; create table public.c (id int); alter table public.c force row level security;
				alter table public.c add foreign key (id) references public.p`,
		} {
			if got := pgtest.State(t, conn, sql); got != "" {
				t.Errorf("%s: %s: got state %s", name, sql, got)
			}
		}

		if got := pgtest.Value[string](t, conn, opened); got != "" {
			t.Errorf("%s: the owner has privileges on %s, which row security closed to it", name, got)
		}
	}
}

// opened selects the tables in the platform's schemas that row security alone would close to the
// current user.
const opened = `
	select coalesce(string_agg(c.oid::regclass::text, ', '), '')
	from pg_class c join pg_namespace n on n.oid = c.relnamespace
	where c.relrowsecurity and not n.nspowner = current_user::regrole and c.relowner <> current_user::regrole
		and (has_table_privilege(c.oid, 'select, insert, update, delete') or has_any_column_privilege(c.oid, 'select, insert, update'))`

// TestReferencesForSupabase checks which objects of the platform a project's own may refer to.
func TestReferencesForSupabase(t *testing.T) {
	t.Parallel()

	_, _, provision := newFormerProject(t, 56)
	for name, conn := range map[string]*pgx.Conn{
		"a new project":      projectdbtest.Connect(t, projectdbtest.New(t), pgcluster.Owner),
		"a migrated project": provision(),
	} {
		for _, test := range []struct{ sql, want string }{
			{"create table public.t (id int, updated_at timestamptz); insert into public.t values (1)", ""},
			{`create trigger u before update on public.t for each row execute function storage.update_updated_at_column();
				update public.t set id = 2; select 1 / (count(updated_at)) from public.t`, ""},
			{"create view public.files as select id, name, metadata ->> 'size' as size from storage.objects; select from public.files", ""},
			{"create materialized view public.b as select b.* from storage.buckets b", ""},
			{"create view public.jobs as select jobid, schedule from cron.job; select from public.jobs", ""},
			{"create rule r as on update to storage.objects do instead nothing", "42501"},
			{"create view public.refused as select * from cron.job_run_details", "42501"},
			{"create view public.refused as select * from socle.audit", "42501"},
			{"create table public.refused (like storage.objects, o storage.objects)", "42501"},
			{"create function public.refused(cron.job) returns int language sql as 'select 1'", "42501"},
			{"drop table storage.objects cascade", "42501"},
		} {
			if got := pgtest.State(t, conn, test.sql); got != test.want {
				t.Errorf("%s: %s: got state %q, want %q", name, test.sql, got, test.want)
			}
		}
	}
}

// TestPublicationOfProject checks that the owner has the publication of a new project, and of one
// that is migrated, and what it can publish.
func TestPublicationOfProject(t *testing.T) {
	t.Parallel()

	platform, owner, provision := newFormerProject(t, 42)
	pgtest.Exec(t, platform, "create publication supabase_realtime; alter publication supabase_realtime owner to "+owner)
	_, _, provisionOther := newFormerProject(t, 42)

	for name, conn := range map[string]*pgx.Conn{
		"a new project":      projectdbtest.Connect(t, projectdbtest.New(t), pgcluster.Owner),
		"a migrated project": provisionOther(), "a publication of the owner": provision(),
	} {
		for _, test := range []struct{ sql, want string }{
			{"create table public.messages (id int primary key, body text); create table public.rooms (id int primary key)", ""},
			{"alter publication supabase_realtime add table public.messages, public.rooms", ""},
			{"alter publication supabase_realtime drop table public.rooms", ""},
			{"alter publication supabase_realtime add table public.messages", "42710"},
			{"alter publication supabase_realtime set table public.rooms", ""},
			{"alter publication supabase_realtime add table storage.objects", "42501"},
			{"alter publication supabase_realtime add table auth.users", "42501"},
			{"create publication everything for all tables", "42501"},
			{"begin; drop publication if exists supabase_realtime; create publication supabase_realtime; commit", ""},
			{"alter publication supabase_realtime add table public.messages (id) where (id > 1)", ""},
			{"select pg_create_logical_replication_slot('s', 'pgoutput')", "42501"},
		} {
			if got := pgtest.State(t, conn, test.sql); got != test.want {
				t.Errorf("%s: %s: got state %q, want %q", name, test.sql, got, test.want)
			}
			pgtest.Exec(t, conn, "rollback")
		}
		if got := pgtest.Value[int](t, conn, "select count(*)::int from pg_replication_slots"); got != 0 {
			t.Errorf("%s: got %d replication slots", name, got)
		}
	}
}
