package lifecycle_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/socle-dev/socle/internal/lifecycle"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/pgcluster"
	"github.com/socle-dev/socle/internal/pgtest"
	"github.com/socle-dev/socle/internal/projectdb/projectdbtest"
	"github.com/socle-dev/socle/internal/schema"
)

func TestLoginsReachTheirDatabaseAlone(t *testing.T) {
	t.Parallel()

	r := projectdbtest.NewRegistry(t, 8)
	a, b := projectdbtest.NewIn(t, r), projectdbtest.NewIn(t, r)
	for _, l := range pgcluster.ProjectLogins {
		projectdbtest.Connect(t, a, l)

		for _, name := range []string{b.Cluster().Database(b.UUID), "postgres", "template1", lifecycle.Template()} {
			c := r.Cluster(a.UUID).Config(a.UUID, l)
			c.Database = name
			conn, err := pgx.ConnectConfig(t.Context(), c)
			if err == nil {
				conn.Close(t.Context())
			}

			// insufficient_privilege, or a database that takes no connections
			if got := pg.State(err); got != "42501" && got != "55000" {
				t.Errorf("%s connects to %s: got %v, want an error", l, name, err)
			}
		}
	}
}

// TestDatabaseIsNeverOpen provisions a database step by step and checks that another project's
// login cannot connect after any step.
func TestDatabaseIsNeverOpen(t *testing.T) {
	t.Parallel()

	r := projectdbtest.NewRegistry(t, 8)
	stranger := projectdbtest.NewIn(t, r)
	databases := lifecycle.Databases{Registry: r}
	p := r.Open(projectdbtest.UUID(t))
	t.Cleanup(func() { _, _ = databases.Destroy(t.Context(), p.UUID) })

	conn := projectdbtest.Connect(t, stranger, pgcluster.Trusted)
	c := r.Cluster(stranger.UUID).Config(stranger.UUID, pgcluster.Request)
	c.Database = p.Cluster().Database(p.UUID)
	for i, step := range databases.ProvisionSteps() {
		if err := step(t.Context(), conn, p.UUID); err != nil {
			t.Fatal(err)
		}

		if other, err := pgx.ConnectConfig(t.Context(), c); err == nil {
			other.Close(t.Context())
			t.Errorf("after step %d another project's login can connect", i)
		}
	}

	projectdbtest.Connect(t, p, pgcluster.Owner)
}

func TestRolesOfProject(t *testing.T) {
	t.Parallel()

	p := projectdbtest.New(t)

	type role struct {
		Login                                                      string
		Super, Createdb, Createrole, Replication, Bypass, Inherits bool
		Groups                                                     []string
	}

	got, err := pg.All[role](t.Context(), projectdbtest.Connect(t, p, pgcluster.Trusted), `
		select regexp_replace(rolname, '.*_', '') as login, rolsuper as super, rolcreatedb as createdb, rolcreaterole as createrole,
		       rolreplication as replication, rolbypassrls as bypass, rolinherit as inherits,
		       array(select m.roleid::regrole::text from pg_auth_members m where m.member = r.oid order by 1) as groups
		from pg_roles r
		where rolname like $1 and rolconnlimit > 0
		order by 1`, p.Cluster().Database(p.UUID)+"%")
	if err != nil {
		t.Fatal(err)
	}

	want := []role{
		{Login: "auth", Groups: []string{}},
		{Login: "dump", Bypass: true, Inherits: true, Groups: []string{"pg_read_all_data"}},
		{Login: "owner", Bypass: true, Groups: []string{}},
		{Login: "request", Groups: []string{"anon", "authenticated"}},
		{Login: "service", Groups: []string{"service_role"}},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

// TestDenied executes statements that would exceed a login's privileges and checks that nothing has
// changed.
func TestDenied(t *testing.T) {
	t.Parallel()

	r := projectdbtest.NewRegistry(t, 8)
	a, b := projectdbtest.NewIn(t, r), projectdbtest.NewIn(t, r)
	fill := strings.NewReplacer("$A", a.Cluster().Database(a.UUID), "$B", b.Cluster().Database(b.UUID),
		"$platform", r.Platform().PlatformConfig().User).Replace

	pgtest.Exec(t, projectdbtest.Connect(t, a, pgcluster.Owner),
		"create table public.mine (id int); create function public.f() returns int language sql as 'select 1'")

	pgtest.Exec(t, projectdbtest.Connect(t, b, pgcluster.Owner), "create table public.theirs as select 1 as id")

	other := projectdbtest.Connect(t, b, pgcluster.Owner) // a target for pg_terminate_backend

	inspect := projectdbtest.Connect(t, a, pgcluster.Trusted)
	before := pgtest.Value[string](t, inspect, serverState, a.UUID.String(), r.Database(a.UUID))

	for _, l := range pgcluster.ProjectLogins {
		t.Run(l.String(), func(t *testing.T) {
			conn := projectdbtest.Connect(t, a, l)
			pgtest.Exec(t, conn, "set default_transaction_read_only = off")

			for _, sql := range ignored {
				pgtest.State(t, conn, fill(sql))
			}

			for _, sql := range denied {
				if l.String() == "dump" && readsAll[sql] {
					continue
				}

				sql = fill(sql)
				if got := pgtest.State(t, conn, sql); !refusals[got] {
					t.Errorf("%s: got state %q, want one of the denials", sql, got)
				}
			}

			if pgtest.Value[bool](t, conn, "select pg_has_role(current_user, 'pg_signal_backend', 'member')") {
				t.Error("the login may signal sessions")
			}
			if got := pgtest.State(t, conn,
				"select pg_terminate_backend("+pgtest.Value[string](t, other, "select pg_backend_pid()::text")+
					")"); got != "42501" {
				t.Errorf("terminate another project's session: got state %q, want 42501", got)
			}
		})
	}

	if after := pgtest.Value[string](t, inspect, serverState, a.UUID.String(), r.Database(a.UUID)); after != before {
		t.Error(cmp.Diff(before, after))
	}
	if got := pgtest.Value[int](t, other, "select count(*)::int from public.theirs"); got != 1 {
		t.Errorf("the other project's table has %d rows, want 1", got)
	}
}

// TestInstalledExtensions checks that only statements that certainly do nothing may name
// extensions.
func TestInstalledExtensions(t *testing.T) {
	t.Parallel()

	p := projectdbtest.New(t)
	platform, conn := projectdbtest.Connect(t, p, pgcluster.Trusted), projectdbtest.Connect(t, p, pgcluster.Owner)
	pgtest.Exec(t, platform, "create extension hstore schema extensions")

	const create = "create extension if not exists hstore"
	for sql, want := range map[string]string{
		create: "",
		`-- CreateExtension
			CREATE EXTENSION IF NOT EXISTS "hstore" WITH SCHEMA public CASCADE;`: "",
		create + "; create extension if not exists plpgsql; create table public.t (id int)": "",
		"create/**/extension if not exists hstore":                                          "",
		create + "; create extension citext":                                                "42501",
		create + "; CREATE/**/EXTENSION/**/citext":                                          "42501",
		create + "; create extension if not exists/**/citext":                               "42501",
		create + `; create extension if not exists "citext"`:                                "42501",
		create + `; create extension if not exists U&"citext"`:                              "42501",
		create + `; create extension if not exists "hstore"""`:                              "42501",
		"create extension if not exists hstoré":                                             "42501",
		"alter extension hstore update; " + create:                                          "42501",
		"do $$ begin " + create + "; end $$":                                                "42501",
		create + "; do $$ begin execute 'create exten' || 'sion citext'; end $$":            "42501",
	} {
		if got := pgtest.State(t, conn, sql); got != want {
			t.Errorf("%s: got state %q, want %q", sql, got, want)
		}
	}

	pgtest.Exec(t, conn, "begin isolation level repeatable read; select count(*) from pg_extension")
	pgtest.Exec(t, platform, "drop extension hstore")

	if got := pgtest.State(t, conn, create); got != "42501" {
		t.Errorf("an extension that was dropped after the snapshot: got state %q, want 42501", got)
	}

	pgtest.Exec(t, conn, "rollback; begin")
	pgtest.Exec(t, platform, "create extension hstore schema extensions")
	pgtest.Exec(t, conn, create)
	pgtest.Exec(t, platform, "set lock_timeout = '50ms'")

	if got := pgtest.State(t, platform, "drop extension hstore"); got != "55P03" {
		t.Errorf("drop an extension in use: got state %q, want 55P03", got)
	}
}

// TestRefusedExtensions checks that a client reads which extensions it may have.
func TestRefusedExtensions(t *testing.T) {
	t.Parallel()

	conn := projectdbtest.Connect(t, projectdbtest.New(t), pgcluster.Owner)
	list := "These are " + strings.Join(schema.AllowedExtensions, ", ") + "."
	const installs = "CREATE EXTENSION IF NOT EXISTS installs one as a statement of its own, and so does POST /extensions."
	for sql, want := range map[string][2]string{
		"create extension dblink": {"dblink is not an extension that projects may install", list},
		`create extension if not exists plpgsql; CREATE EXTENSION IF NOT EXISTS "Pg_cron" with schema pg_catalog`: {
			"Pg_cron is not an extension that projects may install", list},
		"do 'begin create extension if not exists pg_net; end'":       {"pg_net is not an extension that projects may install", list},
		"create extension hstore":                                     {"extensions are installed by the platform", installs},
		"create extension if not exists citext cascade":               {"extensions are installed by the platform", installs},
		"do $$ begin execute 'create exten' || 'sion dblink'; end $$": {"extensions are installed by the platform", installs},
	} {
		var e *pgconn.PgError
		if _, err := conn.Exec(t.Context(), sql, pgx.QueryExecModeSimpleProtocol); !errors.As(err, &e) ||
			e.Code != "42501" || [2]string{e.Message, e.Hint} != want {
			t.Errorf("%s: got %v, hint %q; want %q", sql, err, e.Hint, want)
		}
	}
}

// serverState returns the platform's objects in the database of a project and on the server.
const serverState = `
	select jsonb_pretty(jsonb_build_object(
		'project', $1::text,
		'schemas', (select jsonb_agg(jsonb_build_array(nspname, nspowner::regrole, coalesce(nspacl, acldefault('n', nspowner))) order by nspname) from pg_namespace where nspname !~ '^pg_(toast_)?temp'),
		'tables', (select jsonb_agg(jsonb_build_array(c.oid::regclass, c.relowner::regrole, coalesce(c.relacl, acldefault('r', c.relowner)), c.relrowsecurity, c.reltriggers) order by c.oid)
			from (select c.*, (select count(*) from pg_trigger g where g.tgrelid = c.oid) as reltriggers from pg_class c) c
			join pg_namespace n on n.oid = c.relnamespace where n.nspname in ('auth', 'storage', 'forms', 'realtime', 'socle')),
		'functions', (select jsonb_agg(jsonb_build_array(oid::regprocedure, proowner::regrole, proacl) order by oid) from pg_proc where prolang <> 12),
		'triggers', (select jsonb_agg(jsonb_build_array(evtname, evtenabled, evtowner::regrole) order by evtname) from pg_event_trigger),
		'extensions', (select jsonb_agg(extname order by extname) from pg_extension),
		'servers', (select count(*) from pg_foreign_server),
		'database', (select jsonb_build_array(datdba::regrole, datacl, datconnlimit, datallowconn) from pg_database where datname = current_database()),
		'roles', (select jsonb_agg(jsonb_build_array(rolname, rolsuper, rolcreatedb, rolcreaterole, rolcanlogin, rolreplication, rolbypassrls, rolconnlimit, rolconfig,
			(select jsonb_agg(m.roleid::regrole order by m.roleid) from pg_auth_members m where m.member = r.oid)) order by rolname)
			from pg_roles r where rolname in ('anon', 'authenticated', 'service_role') or rolname like $2 || '%'),
		'settings', (select count(*) from pg_file_settings where sourcefile like '%auto.conf')))`

// ignored are statements that PostgreSQL answers with a warning instead of an error, without
// effect.
var ignored = []string{
	`grant connect on database "$A" to public`,
	`revoke connect on database "$A" from "$A_dump"`,
	`grant usage on schema storage to "$A_owner"`,
	`grant select on storage.files to anon`,
	`vacuum pg_catalog.pg_authid`,
	`analyze storage.files`,
}

// readsAll are the statements that only the dump login may execute: it reads everything in its
// database.
var readsAll = map[string]bool{
	`set role "$A_dump"`: true, `set role pg_read_all_data`: true,
	// verifiers of random passwords
	`select * from pg_catalog.pg_authid`: true, `select * from pg_catalog.pg_shadow`: true,
	`select * from storage.files`:    true,
	`select * from socle.migrations`: true, `do 'begin lock table storage.files; end'`: true,
}

// refusals are the SQLSTATEs that count as denied.
var refusals = map[string]bool{
	"42501": true, // insufficient_privilege
	"0LP01": true, // invalid_grant_operation
	"0A000": true, // feature_not_supported
	"42704": true, // undefined_object: not installed
	"42883": true, // undefined_function: not installed
	"58P01": true, // undefined_file: not installed
	"42939": true, // reserved_name
}

// denied are statements that no login of a project may execute. $A and $B stand for the project's
// own database and another one's.
var denied = []string{
	// Files and programs of the machine.
	`copy pg_class to program 'true'`,
	`create temp table pwned (t text); copy pwned from program 'id'`,
	`copy (select 1) to '/tmp/socle-denied'`,
	`create temp table passwd (t text); copy passwd from '/etc/passwd'`,
	`select pg_read_file('/etc/passwd')`,
	`select pg_read_binary_file('postgresql.conf')`,
	`select pg_ls_dir('.')`,
	`select * from pg_stat_file('PG_VERSION')`,
	`select * from pg_ls_logdir()`,
	`select * from pg_ls_waldir()`,
	`select pg_current_logfile()`,
	`select current_setting('data_directory')`,
	`select current_setting('hba_file')`,
	`select * from pg_hba_file_rules`,
	`select * from pg_file_settings`,
	`select lo_import('/etc/passwd')`,
	`select lo_export(1, '/tmp/socle-denied')`,
	`select lo_create(0)`,
	`select lo_creat(-1)`,
	`select lo_from_bytea(0, 'x')`,
	`load 'auto_explain'`,
	`load '/tmp/evil.so'`,
	`create function pg_temp.c() returns int language c as '/lib/x86_64-linux-gnu/libc.so.6', 'system'`,
	`create function pg_temp.i() returns int language internal as 'pg_backend_pid'`,
	// Extensions, languages, other servers.
	`create extension hstore`,
	`create extension pgcrypto`,
	`create extension dblink`,
	`create extension postgres_fdw`,
	`create extension file_fdw`,
	`create extension plperl`,
	`create extension plperlu`,
	`create extension plpython3u`,
	`create extension if not exists hstore`,
	`create extension plpgsql`,
	`alter extension plpgsql update`,
	`drop extension plpgsql`,
	`create language plperl`,
	`select dblink_connect('dbname=$B')`,
	`create foreign data wrapper evil`,
	`create server evil foreign data wrapper postgres_fdw`,
	`create subscription evil connection 'dbname=$B' publication evil`,
	`create publication evil for all tables`,
	`select pg_create_logical_replication_slot('evil', 'pgoutput')`,
	`select pg_create_physical_replication_slot('evil')`,
	// The server.
	`alter system set archive_command = 'true'`,
	`select pg_reload_conf()`,
	`select pg_rotate_logfile()`,
	`select pg_switch_wal()`,
	`select pg_create_restore_point('evil')`,
	`select pg_promote()`,
	`checkpoint`,
	`create tablespace evil location '/tmp'`,
	`create access method evil type index handler bthandler`,
	`create event trigger evil on ddl_command_end execute function public.f()`,
	`set session_replication_role = replica`,
	`set session_preload_libraries = 'evil'`,
	`set log_statement = 'all'`,
	`set temp_file_limit = -1`,
	`select pg_stat_reset_shared('bgwriter')`,
	`update pg_catalog.pg_proc set proowner = 10`,
	`delete from pg_catalog.pg_event_trigger`,
	// Roles.
	`set role "$platform"`,
	`set role "$B_owner"`,
	`set role "$B_service"`,
	`set role "$A_dump"`,
	`set role pg_read_all_data`,
	`select set_config('role', '$B_owner', false)`,
	`set session authorization "$platform"`,
	`set session authorization "$B_owner"`,
	`create role evil`,
	`create user evil superuser`,
	`drop role anon`,
	`drop owned by "$B_owner"`,
	`reassign owned by "$B_owner" to "$A_owner"`,
	`alter role "$A_owner" superuser`,
	`alter role "$A_auth" bypassrls`,
	`alter role "$A_owner" connection limit -1`,
	`alter role anon login`,
	`alter role anon bypassrls`,
	`alter role anon set search_path = public`,
	`alter role "$B_owner" password 'x'`,
	`alter role all set search_path = public`,
	`grant pg_read_server_files to "$A_owner"`,
	`grant pg_execute_server_program to "$A_owner"`,
	`grant "$B_owner" to "$A_owner"`,
	`grant service_role to "$A_request"`,
	`grant "$platform" to "$A_owner"`,
	`select * from pg_catalog.pg_authid`,
	`select * from pg_catalog.pg_shadow`,
	// Databases.
	`create database evil`,
	`create database evil template "$B"`,
	`drop database "$B" with (force)`,
	`alter database "$A" set search_path = public`,
	`alter database "$A" connection limit -1`,
	`alter database "$A" owner to "$A_owner"`,
	`alter database "$B" allow_connections false`,
	`grant connect on database "$B" to "$A_owner"`,
	`comment on database "$A" is 'x'`,
	// The platform's schemas.
	`select * from storage.files`,
	`insert into storage.uploads (blob_uuid) values (gen_random_uuid())`,
	`update storage.containers set is_public = true`,
	`delete from forms.forms`,
	`truncate forms.fields`,
	`do 'begin lock table storage.files; end'`,
	`select * from socle.migrations`,
	`delete from socle.migrations`,
	`create table auth.evil ()`,
	`create view storage.evil as select 1`,
	`create function forms.evil() returns int language sql as 'select 1'`,
	`alter table storage.files disable row level security`,
	`alter table storage.files owner to "$A_owner"`,
	`create trigger evil before insert on storage.files execute function public.f()`,
	`create policy evil on storage.files using (true)`,
	`create rule evil as on select to storage.files do instead select 1`,
	`alter schema storage rename to mine`,
	`alter schema storage owner to "$A_owner"`,
	`drop schema realtime`,
	`drop schema socle cascade`,
	`drop function socle.close_new_tables() cascade`,
	`create or replace function socle.close_new_tables() returns event_trigger language plpgsql as 'begin end'`,
	`alter function socle.close_new_tables() reset search_path`,
	`alter event trigger socle_close_new_tables disable`,
	`drop event trigger socle_refuse_extensions`,
	`alter default privileges for role "$platform" grant all on tables to public`,
	`create schema pg_evil`,
	`create function pg_catalog.evil() returns int language sql as 'select 1'`,
	`create operator pg_catalog.@@@ (leftarg = int, rightarg = int, function = int4pl)`,
	`create table information_schema.evil ()`,
}
