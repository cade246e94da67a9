package lifecycle_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/pgcluster"
	"github.com/socle-dev/socle/internal/pgtest"
	"github.com/socle-dev/socle/internal/projectdb/projectdbtest"
)

// platformObject is an object in one of the platform's schemas.
type platformObject struct {
	Kind string // table, sequence, type, function or schema
	ID   uint32
	Name string // quoted, qualified
}

const selectPlatformObjects = `
	with schemas as (select oid, nspname from pg_namespace where nspname in ('socle', 'storage', 'forms', 'auth', 'realtime', 'cron', 'net', 'supabase_functions', 'vault'))
	select case relkind when 'S' then 'sequence' else 'table' end as kind, c.oid as id, format('%I.%I', nspname, relname) as name
	from pg_class c join schemas n on n.oid = c.relnamespace where relkind in ('r', 'p', 'v', 'm', 'S')
	union all
	select 'type', t.oid, format('%I.%I', nspname, typname) from pg_type t join schemas n on n.oid = t.typnamespace
	union all
	select 'function', p.oid, format('%I.%I', nspname, proname) from pg_proc p join schemas n on n.oid = p.pronamespace
	union all
	select 'schema', oid, quote_ident(nspname) from schemas`

// references are statements that make an object depend on another by name, or by OID, which needs
// no privilege.
var references = map[string][]string{
	"table": {
		`create view public.r as select * from $NAME`, `create materialized view public.r as select * from $NAME`,
		`create table public.r (a $NAME)`, `create table public.r (a $NAME[])`,
		`create table public.r () inherits ($NAME)`,
		`create table public.r (a uuid references $NAME)`, `create type public.r as (a $NAME)`,
		`create domain public.r as $NAME`,
		`create function public.r($NAME) returns int language sql as 'select 1'`,
		`create function public.r() returns setof $NAME language plpgsql as 'begin end'`,
		// no dependency
		`create function public.r() returns int language plpgsql as 'declare a $NAME; begin return 1; end'`,
		`create view public.r as select '$ID'::regclass as a`,
		`create materialized view public.r as select '$ID'::regclass as a`,
		`create table public.r (a regclass default '$ID'::regclass)`,
		`create table public.r (a regclass check (a <> '$ID'::regclass))`,
		`create table public.r as select 1 as a; create index on public.r ((a::oid::regclass <> '$ID'::regclass))`,
		`create table public.r (a int); create policy r on public.r using ('$ID'::regclass is not null)`,
		`create table public.r (a int); create rule r as on insert to public.r do instead select '$ID'::regclass`,
		`create function public.r() returns regclass language sql begin atomic select '$ID'::regclass; end`,
		`create function public.r(a regclass default '$ID'::regclass) returns int language sql as 'select 1'`,
		`create temporary view r as select '$ID'::regclass as a`,
	},
	"sequence": {`create table public.r (a bigint default nextval('$NAME'))`,
		`create table public.r (a bigint default nextval('$ID'::regclass))`},
	"type": {
		`create table public.r (a $NAME)`, `create domain public.r as $NAME`,
		`create view public.r as select '$ID'::regtype as a`, `create view public.r as select null::$NAME as a`,
		`create cast ($NAME as text) with inout`,
		`create function public.r(a text) returns $NAME language plpgsql as 'begin end'`,
	},
	"function": {
		`create view public.r as select '$ID'::regprocedure as a`, `create view public.r as select '$ID'::regproc as a`,
		`create table public.r (a int); create trigger r before insert on public.r execute function $NAME()`,
		`create table public.r (a int default '$ID'::regproc::oid::int)`,
	},
	"schema": {
		`create view public.r as select '$ID'::regnamespace as a`, `create table $NAME.r (a int)`,
		`alter default privileges in schema $NAME grant select on tables to anon`,
	},
}

// TestNoReferencesToPlatform checks that no statement of the owner makes an object depend on
// one of the platform.
func TestNoReferencesToPlatform(t *testing.T) {
	t.Parallel()

	p := projectdbtest.New(t)
	inspect, conn := projectdbtest.Connect(t, p, pgcluster.Trusted), projectdbtest.Connect(t, p, pgcluster.Owner)
	objects, err := pg.All[platformObject](t.Context(), inspect, selectPlatformObjects)
	if err != nil {
		t.Fatal(err)
	}

	if len(objects) < 50 {
		t.Fatalf("got %d objects of the platform, want 50 or more", len(objects))
	}

	before := dependents(t, inspect)
	for _, o := range objects {
		fill := strings.NewReplacer("$NAME", o.Name, "$ID", fmt.Sprint(o.ID)).Replace
		for _, template := range references[o.Kind] {
			sql := fill(template)
			if slices.Contains(policyFunctions, o.Name) || o.Name == "storage.update_updated_at_column" ||
				(o.Name == "auth.users" && referencesToUsers.MatchString(sql)) ||
				(slices.Contains(viewedTables, o.Name) && viewsOfTables.MatchString(sql)) ||
				(o.Name == "supabase_functions.http_request" && strings.Contains(sql, "create trigger")) {
				continue // see TestReferencesToEndUsers, TestReferencesForSupabase and package httprequest
			}

			got := pgtest.State(t, conn, "begin; "+sql)
			switch byNumber := strings.Contains(template, "$ID"); {
			case byNumber && got != "42501":
				t.Errorf("%s: got state %q, want 42501", sql, got)
			case got == "" && !slices.Equal(dependents(t, conn), before):
				t.Errorf("%s: created a dependency on the platform", sql)
			}

			pgtest.Exec(t, conn, "rollback")
		}
	}

	if after := dependents(t, inspect); !slices.Equal(after, before) {
		t.Errorf("got dependents %q, want %q", after, before)
	}
}

// viewedTables are the tables that views and rules of the owner's may read, see viewsOfTables.
var viewedTables = []string{"storage.buckets", "storage.objects", "cron.job"}

var viewsOfTables = regexp.MustCompile(` view | rule `)

// referencesToUsers matches the statements that may refer to auth.users: foreign keys, views,
// policies.
var referencesToUsers = regexp.MustCompile(`references| view | policy | rule `)

// policyFunctions are the functions of the platform that a project's objects may call.
var policyFunctions = []string{"auth.jwt", "auth.uid", "auth.role", "auth.email",
	"storage.foldername", "storage.filename", "storage.extension", "realtime.topic"}

// dependents returns the objects outside the platform's schemas that depend on the platform's
// objects.
func dependents(t *testing.T, conn *pgx.Conn) []string {
	t.Helper()

	found, err := pg.Values[string](t.Context(), conn, `
		with platform as (`+selectPlatformObjects+`)
		select i.identity from pg_depend d cross join pg_identify_object(d.classid, d.objid, d.objsubid) i
		where d.refobjid in (select id from platform) and coalesce(i.schema, '') not in ('socle', 'storage', 'forms', 'auth', 'realtime', 'pg_toast')
			and i.identity !~ '(socle|storage|forms|auth|realtime)[.]'
		order by 1`)
	if err != nil {
		t.Fatal(err)
	}

	return found
}

// TestNoReferencesToOtherProjects checks that no policy or privilege of a project refers to a role
// of another project.
func TestNoReferencesToOtherProjects(t *testing.T) {
	t.Parallel()

	r := projectdbtest.NewRegistry(t, 8)
	a, b := projectdbtest.NewIn(t, r), projectdbtest.NewIn(t, r)
	conn := projectdbtest.Connect(t, a, pgcluster.Owner)
	pgtest.Exec(t, conn, `create table public.t (id int); create function public.f() returns int language sql as 'select 1'`)
	own, theirs := pg.Quote(r.OwnerLogin(a.UUID)), pg.Quote(r.Login(b.UUID, pgcluster.Request))

	for _, sql := range []string{
		`create policy p on public.t to $R using (true)`,
		`create policy p on public.t using (true); alter policy p on public.t to anon, $R`,
		`grant select on public.t to $R`,
		`grant select (id) on public.t to $R`,
		`grant execute on function public.f() to $R`,
		`grant usage on schema public to $R`,
		`grant all on all tables in schema public to $R`,
		`alter default privileges grant select on tables to $R`,
		`alter default privileges in schema public grant select on tables to $R`,
		`create schema s create table t (id int) grant select on t to $R`,
		`do 'begin grant select on public.t to $R; end'`,
		`savepoint s; grant select on public.t to $R; release s`,
	} {
		for role, want := range map[string]string{theirs: "42501", own: "", "anon": ""} {
			if got := pgtest.State(t, conn, "begin; "+strings.ReplaceAll(sql, "$R", role)); got != want {
				t.Errorf("%s: got state %q, want %q", strings.ReplaceAll(sql, "$R", role), got, want)
			}
			pgtest.Exec(t, conn, "rollback")
		}
	}

	if got := pgtest.Value[int](t, projectdbtest.Connect(t, a, pgcluster.Trusted), `
		select count(*)::int from pg_shdepend where dbid = (select oid from pg_database where datname = current_database())
			and refobjid in (select oid from pg_roles where rolname like $1)`,
		b.Cluster().Database(b.UUID)+"%"); got != 0 {
		t.Errorf("got %d references to roles of the other project, want 0", got)
	}
}
