package api_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/socle-dev/socle/internal/api/apitest"
)

// TestExtensions installs extensions, uses their types, operators and functions in tables without a
// prefix, and removes them.
func TestExtensions(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	a.Get("/extensions?limit=1").Want(200).Content("0.name", "autoinc").Content("0.installedVersion", nil).
		Content("0.schema", nil)

	developer := a.Member(4).WithProject(a.Project)
	created := developer.Post("/extensions", `{"name": "citext"}`).Want(201).Content("schema", "extensions")
	if created.Get("installedVersion") != created.Get("version") || created.Get("description") == "" {
		t.Errorf("got extension %s", created.Body)
	}

	a.Post("/extensions", `{"name": "uuid-ossp"}`).Want(409).Code("already_exists") // a new project has it
	for _, name := range []string{"postgis", "pg_trgm", "earthdistance", "hstore"} {
		a.Post("/extensions", `{"name": "`+name+`"}`).Want(201)
	}

	a.Post("/extensions", `{"name": "citext"}`).Want(409).Code("already_exists").Field("name")
	a.Post("/extensions", `{"name": "cube"}`).Want(409).Code("already_exists") // installed together with earthdistance

	for _, name := range []string{"dblink", "plperlu", "file_fdw", "plpgsql", "no; such", "", "\\u0000"} {
		a.Post("/extensions", `{"name": "`+name+`"}`).Want(422).Field("name")
	}

	if r := a.Post("/extensions", `{"name": "pg_cron"}`).Want(422); !strings.Contains(string(r.Body), "citext, cube") {
		t.Errorf("got %s, want the allowed extensions named", r.Body)
	}

	a.CreateTable("places", "name citext", "at geometry(Point,4326)", "more hstore", "nearby geography(PointZ)[]")

	var types []any
	shown := a.Get("/tables/places/columns").Want(200)
	for i := range 5 {
		types = append(types, shown.Get(fmt.Sprint(i, ".type")))
	}

	if diff := cmp.Diff([]any{"integer", "citext", "geometry(Point,4326)", "hstore", "geography(PointZ,4326)[]"},
		types); diff != "" {
		t.Errorf("types (-want +got):\n%s", diff)
	}

	for _, wrong := range []string{
		"geometry(Nonsense,4326)", "geometry(Point;4326)", "geometry('Point')", "citext(3)", "varchar(Point)",
		"numeric(-Point)",
	} {
		a.Post("/tables/places/columns", `{"columns": [{"name": "wrong", "type": "`+wrong+`"}]}`).Want(422).
			Field("columns.0.type")
	}

	a.Post("/tables/places/indexes",
		`{"method": "gin", "keys": [{"column": "name", "operator_class": "gin_trgm_ops"}]}`).Want(201)
	a.Post("/tables/places/policies",
		`{"name": "near", "roles": ["anon"], "command": "select", "using": "st_srid(at) = 4326"}`).Want(201)
	a.Post("/functions/public",
		`{"name": "alike", "language": "sql", "return_type": "real", "definition": "select similarity(a, 'Berlin')", "parameters": [{"name": "a", "type": "citext"}]}`).Want(201)

	a.Post("/sql",
		sqlBody(
			`insert into places (id, name, at, more) values (1, 'Berlin', 'SRID=4326;POINT(13.4 52.5)', 'a=>1') returning more -> 'a', name = 'BERLIN', alike(name)`, writing,
		)).Want(200)

	a.Post("/sql", sqlBody(`select count(*) from places where name = 'BERLIN' and st_x(at) > 13 and more ? 'a'`)).
		Want(200).Content("results.0.rows.0.0", float64(1))

	// PostGIS functions read with the privileges of their caller. Its tables cannot be changed, and
	// do not count as tables of the project.
	execute(t, a, `set role anon; select extensions.st_transform('SRID=4326;POINT(13 52)'::extensions.geometry, 3857)`)
	asOwner(t, a, `select from extensions.spatial_ref_sys`)

	for _, trap := range []string{
		`insert into extensions.spatial_ref_sys (srid) values (999000)`,
		`create function extensions.lower(text) returns text language sql as 'select 1'`,
		`create table extensions.t ()`,
	} {
		a.Post("/sql", sqlBody(trap, writing)).Want(422)
	}

	a.Get("/tables").Want(200).Total(1)

	if got := a.Delete("/extensions/citext").Want(409).Code("in_use").
		Metadata("dependents"); !strings.Contains(fmt.Sprint(got), "name:public.places.name") {
		t.Errorf("got %v", got)
	}

	a.Delete("/extensions/cube").Want(409).Code("in_use")
	asOwner(t, a, `drop function public.alike; drop table public.places`)

	for _, name := range []string{
		"citext", "postgis", "pg_trgm", "uuid-ossp", "pgcrypto", "earthdistance", "cube", "hstore",
	} {
		developer.Delete("/extensions/"+name).Want(200).Content("name", name)
	}

	a.Delete("/extensions/citext").Want(404)
	a.Delete("/extensions/plpgsql").Want(404)

	if query[bool](t, a, `select exists (select from pg_namespace where nspname = 'extensions')`) {
		t.Error("the schema of the extensions still exists")
	}
}

// TestExtensionScriptsIsolated checks that no extension script runs where it could resolve a name
// to a user's object, and that extensions installed by operators are not removed.
func TestExtensionScriptsIsolated(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	execute(t, a, `create extension dblink schema extensions; create extension cube schema public`)

	a.Delete("/extensions/dblink").Want(403)
	// Its script would find public's functions beside cube, which is in extensions meanwhile.
	asOwner(t, a, `create function public.cube_dim(text) returns int language sql as 'select 1'`)
	a.Post("/extensions", `{"name": "earthdistance"}`).Want(201).Content("schema", "extensions")
	a.Delete("/extensions/earthdistance").Want(200)
	a.Post("/extensions", `{"name": "citext"}`).Want(201)
	a.Delete("/extensions/cube").Want(200).Content("schema", "public")
	a.Post("/extensions", `{"name": "earthdistance"}`).Want(201)

	execute(t, a, `grant create on schema extensions to public`)
	asOwner(t, a, `create function extensions.lower(text) returns text language sql as 'select 1'`)
	a.Post("/extensions", `{"name": "hstore"}`).Want(409).Code("schema_taken")

	other := a.WithProject(a.CreateProject("other"))
	execute(t, other, `drop extension pgcrypto; drop extension "uuid-ossp"; drop schema extensions`)
	asOwner(t, other, `create schema extensions`)
	other.Post("/extensions", `{"name": "hstore"}`).Want(409).Code("schema_taken")
}

// TestCreateExtensionAfterRestore checks that a restore brings the extensions and the publication
// as they were, and that extensions can be installed after it.
func TestCreateExtensionAfterRestore(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	a.DisableProofs()
	a.Post("/extensions", `{"name": "citext"}`).Want(201)
	a.Delete("/extensions/pgcrypto").Want(200)
	a.CreateTable("names", "name citext")
	asOwner(t, a, `alter publication supabase_realtime add table public.names`)
	restoreInPlace(t, a, createBackup(t, a))

	if got := query[string](t, a, `select string_agg(extname, ' ' order by extname) from pg_extension`); got != "citext plpgsql uuid-ossp" {
		t.Errorf("after the restore: got the extensions %s", got)
	}
	if got := query[string](t, a, `select string_agg(tablename, ' ') from pg_publication_tables where pubname = 'supabase_realtime'`); got != "names" {
		t.Errorf("after the restore: got the tables %q of the publication", got)
	}

	asOwner(t, a, `alter publication supabase_realtime drop table public.names`)
	a.Post("/sql", sqlBody(`create table extensions.t ()`, writing)).Want(422)
	a.Post("/extensions", `{"name": "hstore"}`).Want(201)
	a.Delete("/extensions/hstore").Want(200)
}

// emulatedMigration creates extensions that a project can't have, in statements and in a block, and
// depends on their functions.
const emulatedMigration = `create extension if not exists http with schema extensions;
do $$ begin
	if exists (select 1 from pg_available_extensions where name = 'pg_jsonschema') then
		execute 'create extension if not exists pg_jsonschema with schema extensions';
	elsif to_regprocedure('extensions.jsonb_matches_schema(json,jsonb)') is null then
		raise exception 'missing';
	end if;
end $$;
create table public.orders (id int, content jsonb check (extensions.jsonb_matches_schema('{"required": ["total"]}', content)));
insert into public.orders values (1, '{"total": 2}');
create function public.fetch() returns extensions.http_response language plpgsql as
	'begin return extensions.http_get(''https://example.com''); end';
create extension if not exists citext with schema extensions;
drop extension if exists http;
alter extension http set schema public;
`

// TestEmulatedExtensions: functions stand for some extensions, in a project, in a copy of its
// migrations and after a restore.
func TestEmulatedExtensions(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	a.DisableProofs()
	r := a.Post("/migrations", migrationsBody(t, "", emulatedMigration)).Want(200)
	var notes []string
	for _, n := range r.Get("notes").([]any) {
		notes = append(notes, fmt.Sprint(n.(map[string]any)["text"]))
	}
	want := []string{
		"extension http: its functions exist, and fail: SQL sends requests by net.http_get() and net.http_post(), which return at once",
		"extension pg_jsonschema: its functions are in the schema extensions, by Socle's own rules: formats are not checked",
		"extension http is not dropped: functions of the platform stand for it, and stay",
		"extension http stays in the schema extensions",
	}
	if diff := cmp.Diff(want, notes); diff != "" {
		t.Errorf("notes (-want +got):\n%s", diff)
	}

	if files, warnings := diff(t, a, emulatedMigration); len(files) > 0 || warnings != "" {
		t.Errorf("got the difference %q, %s", files, warnings)
	}
	a.Post("/extensions", `{"name": "hstore"}`).Want(201)
	restoreInPlace(t, a, createBackup(t, a))

	check := func() {
		t.Helper()
		a.Post("/sql", sqlBody(`insert into public.orders values (2, '{}')`, writing)).Want(422)
		a.Post("/sql", sqlBody(`insert into public.orders values (2, '{"total": 1}')`, writing)).Want(200)
		a.Post("/sql", sqlBody(`select public.fetch()`, writing)).Want(422)
	}
	check()
	a.Post("/extensions", `{"name": "ltree"}`).Want(201)
	a.Post("/sql", sqlBody(`create or replace function extensions.http_reset_curlopt() returns boolean language sql as 'select false'`, writing)).
		Want(422)
	restoreInPlace(t, a, createBackup(t, a))
	check()
}
