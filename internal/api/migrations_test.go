package api_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/socle-dev/socle/internal/api/apitest"
)

// migrationFile is a file of a migration in a request.
type migrationFile struct {
	Version string `json:"version"`
	Name    string `json:"name"`
	SQL     string `json:"sql"`
}

// migrationsBody returns a request with migrations, whose versions count from 1.
func migrationsBody(t *testing.T, options string, texts ...string) string {
	t.Helper()

	files := []migrationFile{}
	for i, sql := range texts {
		files = append(files, migrationFile{fmt.Sprintf("202611231015%02d", i+1), fmt.Sprintf("step_%d", i+1), sql})
	}

	text, err := json.Marshal(files)
	if err != nil {
		t.Fatal(err)
	}

	return `{"migrations": ` + string(text) + options + `}`
}

// diff returns the files that diffMigrations writes.
func diff(t *testing.T, a *apitest.API, texts ...string) (files []string, warnings string) {
	t.Helper()

	reply := a.Post("/migrations/diff", migrationsBody(t, "", texts...)).Want(200)
	for _, f := range reply.Get("files").([]any) {
		files = append(files, f.(string))
	}

	for _, w := range reply.Get("warnings").([]any) {
		warnings += fmt.Sprintln(w.(map[string]any)["message"], "|", w.(map[string]any)["statement"])
	}
	for _, d := range reply.Get("differences").([]any) {
		warnings += fmt.Sprintln("still differs:", d)
	}

	return files, warnings
}

// TestDiffMigrations: the files of pull and diff turn an empty project into the same one, and what
// they can't is told. Package migration has the kinds of objects.
func TestDiffMigrations(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	a.Post("/migrations", migrationsBody(t, "", `
		create extension if not exists pg_trgm with schema extensions;
		create type mood as enum ('sad', 'happy');
		create table books (id serial primary key, title text, mood mood default 'sad');
		create table sizes (size integer);
		create index books_search on books using gin (title extensions.gin_trgm_ops);
		create function total() returns bigint language plpgsql stable as 'begin return (select count(*) from books); end';
		create materialized view a_total as select total() as n;`)).Want(200)

	files, warnings := diff(t, a)
	b := a.WithProject(a.CreateProject("copy"))
	b.Post("/migrations", migrationsBody(t, "", files...)).Want(200)
	if more, warnings := diff(t, b, files...); len(more) > 0 || warnings != "" {
		t.Errorf("diff of the copy: got %q, warnings\n%s", more, warnings)
	}

	if want := "runs the query of the view | REFRESH MATERIALIZED VIEW public.a_total\n"; warnings != want {
		t.Errorf("pull: got warnings\n%s, want %s", warnings, want)
	}

	runSQL(t, a, "alter type mood add value 'angry' before 'happy'")
	runSQL(t, a, "drop table books cascade; drop table sizes")
	runSQL(t, a, "create table sizes (size integer) partition by list (size)")
	a.Delete("/extensions/pg_trgm").Want(200)

	changes, warnings := diff(t, a, files...)
	if len(changes) != 3 { // new values of an enum, the rest, the extension
		t.Errorf("got %d files, want 3:\n%s", len(changes), strings.Join(changes, "=====\n"))
	}

	const left = "still differs: map[kind:table message:its partitioning differs name:public.sizes]\n"
	for _, want := range []string{"destroys data | DROP TABLE public.books", left} {
		if !strings.Contains(warnings, want) {
			t.Errorf("warnings: %q is missing in\n%s", want, warnings)
		}
	}

	all := append(files, changes...)
	b.Post("/migrations", migrationsBody(t, "", all...)).Want(200)
	if more, warnings := diff(t, a, all...); len(more) > 0 || warnings != left {
		t.Errorf("diff after up: got %q, warnings\n%s", more, warnings)
	}
}

// runSQL runs a statement that may write.
func runSQL(t *testing.T, a *apitest.API, sql string) {
	t.Helper()

	body, err := json.Marshal(map[string]any{"query": sql, "read_only": false})
	if err != nil {
		t.Fatal(err)
	}

	a.Post("/sql", string(body)).Want(200)
}

// TestApplyMigrations: migrations apply once, in order, and only as they were applied before.
func TestApplyMigrations(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	one, two := "create table one (id int);", "create table two (id int);\ninsert into two values (1);"
	apply := func(options string, texts ...string) *apitest.Reply {
		t.Helper()
		return a.Post("/migrations", migrationsBody(t, options, texts...))
	}

	apply("", one).Want(200).Content("applied.0.version", "20261123101501").Content("applied.0.appliedBy", a.User).
		Content("alreadyApplied", 0)
	apply("", one, two).Want(200).Content("applied.0.version", "20261123101502").Content("alreadyApplied", 1)
	apply("", one, two).Want(200).Content("alreadyApplied", 2)
	a.Get("/migrations").Want(200).Total(2).Content("0.name", "step_1").Content("1.name", "step_2")
	a.Get("/migrations?sort=appliedAt&limit=1&page=2").Want(200).Total(2).Content("0.name", "step_2")

	r := apply("", one+" -- changed", two).Want(409).Code("migration_changed")
	if r.Metadata("appliedChecksum") == r.Metadata("fileChecksum") || r.Metadata("version") != "20261123101501" {
		t.Errorf("a changed migration: got %s", r.Body)
	}

	older := `{"migrations": [{"version": "20261123101400", "name": "older", "sql": "create table older ()"}]`
	a.Post("/migrations", older+"}").Want(409).Code("out_of_order")
	a.Post("/migrations", older+`, "allow_out_of_order": true}`).Want(200).Content("applied.0.name", "older")

	apply(`, "record_only": true`, one, two, "create table three ()").Want(200).Content("applied.0.name", "step_3")
	a.Get("/tables/three").Want(404)

	bad := "create table five (id int);\n\nselect * form two;"
	r = apply("", one, two, "create table three ()", "create table four ()", bad).Want(422).Code("sql_error").
		Field("migrations.4.sql")
	report, _ := r.Metadata("postgres").(map[string]any)
	if fmt.Sprintln(report["position"], report["statement"], r.Metadata("applied"), r.Metadata("name")) !=
		"39 2 [20261123101504] step_5\n" {
		t.Errorf("a migration that fails: got %s", r.Body)
	}

	a.Get("/tables/five").Want(404)
	a.Get("/tables/four").Want(200)
	a.Get("/migrations?limit=10").Want(200).Total(5)
}

// TestApplyMigrationsOfTools: versions and names are those of files of any tool, in the order of a
// folder, and of a file with two directions only one runs.
func TestApplyMigrationsOfTools(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	files := []migrationFile{
		{"001", "", "create table one (id int)"},
		{"20240104", "größe v1.2", "-- +goose Up\ncreate table two (id int);\n-- +goose Down\ndrop table two;"},
		{"20240105120000", "c", "-- migrate:up\ncreate table three (id int);\n-- migrate:down\ndrop table three;"},
		{"20240105", "d", "drop table three"},
	}
	body := func(files ...migrationFile) string {
		text, err := json.Marshal(map[string]any{"migrations": files})
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}

	a.Post("/migrations", body(files[0], files[1], files[3], files[2])).Want(422).Field("migrations.3.version")
	a.Post("/migrations", body(files...)).Want(200).Content("applied.1.name", "größe v1.2").
		Content("applied.3.name", "d")
	a.Post("/migrations", body(files...)).Want(200).Content("alreadyApplied", 4)
	a.Post("/migrations", body(migrationFile{"20240105110000", "late", ""})).Want(409).Code("out_of_order")
	a.Get("/migrations").Want(200).Total(4).Content("0.version", "001").Content("2.version", "20240105120000").
		Content("3.version", "20240105")
	a.Get("/tables/two").Want(200)

	bad := migrationFile{"3", "", "-- é\n-- migrate:up\nselect 1;\nselect * form two;\n-- migrate:down\n"}
	r := a.Post("/migrations", body(bad)).Want(422).Field("migrations.0.sql")
	if report, _ := r.Metadata("postgres").(map[string]any); fmt.Sprint(report["position"]) != "39" {
		t.Errorf("a section: got %v", report)
	}
}

// foreignMigration is what tools of Supabase write, of each kind that a project leaves out or
// changes.
const foreignMigration = `begin;
drop extension if exists pg_net;
create extension if not exists pg_cron with schema pg_catalog;
create extension if not exists moddatetime schema extensions;
comment on extension moddatetime is 'x';
set session_replication_role = replica;

create table notes (id int primary key, changed timestamptz);
alter table notes owner to postgres;
create trigger changed before update on notes for each row execute function extensions.moddatetime(changed);
grant all on table notes to postgres, anon, supabase_auth_admin;
alter default privileges for role postgres in schema public grant select on tables to anon;
alter default privileges for role supabase_admin in schema public grant all on tables to anon;
alter schema public owner to pg_database_owner;
comment on schema public is 'standard public schema';
grant usage on schema public to postgres, anon, authenticated, service_role;
alter role authenticator set statement_timeout = '8s';
create trigger hook after insert on notes for each row execute function supabase_functions.http_request('http://x', 'POST');
commit;
`

// TestApplyForeignMigrations: a file for Supabase's platform applies unmodified, and the answer has
// a note for all that it does not do here.
func TestApplyForeignMigrations(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	body := migrationsBody(t, "", foreignMigration, "create table later (id int)")
	r := a.Post("/migrations", body).Want(200).Content("applied.1.name", "step_2").Content("omittedNotes", 0)

	var lines []string
	for _, n := range r.Get("notes").([]any) {
		n := n.(map[string]any)
		version, _ := n["version"].(string)
		lines = append(lines, fmt.Sprint(version[13:], ":", n["line"], " ", n["statement"], " ", n["text"]))
	}

	want := []string{
		"1:1 1 BEGIN and its COMMIT are left out: all statements are one transaction",
		"1:2 2 extension pg_net is not installed: there is nothing to drop",
		"1:3 3 extension pg_cron is left out: projects can't have it",
		"1:5 5 comment on extension moddatetime is left out: extensions belong to the platform",
		"1:6 6 session_replication_role is left out: triggers and foreign keys stay active",
		"1:9 8 owner postgres is left out: everything belongs to the project's owner",
		"1:11 10 privileges of postgres, supabase_auth_admin: left out, since the project has no such role",
		"1:12 11 default privileges of postgres: changed to those of the project's owner",
		"1:13 12 default privileges of supabase_admin: left out, since the project has no such role",
		"1:14 13 owner pg_database_owner is left out: everything belongs to the project's owner",
		"1:16 15 privileges of postgres: left out, since the project has no such role",
		"1:17 16 alter role authenticator: left out, since the role belongs to the platform",
	}
	if diff := cmp.Diff(want, lines); diff != "" {
		t.Errorf("notes (-want +got):\n%s", diff)
	}

	got := query[string](t, a, `select concat_ws(' ', has_table_privilege('anon', 'public.notes', 'update'),
		has_table_privilege('anon', 'public.later', 'select'), has_table_privilege('anon', 'public.later', 'update'),
		(select string_agg(tgname, ' ') from pg_trigger where tgrelid = 'public.notes'::regclass))`)
	if got != "t t f changed hook" {
		t.Errorf("got %q: privileges of notes, of later, triggers", got)
	}

	// a file that fails has no notes, those before it have theirs
	r = a.Post("/migrations", migrationsBody(t, "", foreignMigration, "create table later (id int)",
		"alter table later owner to postgres", "alter table later owner to postgres; create extension plperlu")).Want(422)
	if notes, _ := r.Metadata("notes").([]any); len(notes) != 1 {
		t.Errorf("a file fails: got the notes %v, want one", r.Metadata("notes"))
	}

	if changes, _ := diff(t, a, foreignMigration, "create table later (id int)", "select 1"); len(changes) > 0 {
		t.Errorf("the scratch copy differs:\n%s", strings.Join(changes, "\n"))
	}
}

// TestSchemaOfExtension: an extension is in the schema that its statement names, else in public,
// where functions with a fixed search path find its types.
func TestSchemaOfExtension(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	files := []string{
		`create extension postgis; create schema app; create table names (name text);
		create function near(geography) returns float language sql set search_path = public as $$ select st_area($1::geography) $$`,
		`create extension if not exists citext; create extension pg_trgm with schema public; create extension hstore schema app;
		create extension if not exists pgcrypto; create extension cube; create extension earthdistance;
		create table places (name public.citext, more app.hstore, at public.earth); create index on places using gin (name public.gin_trgm_ops)`,
		`create extension tablefunc; create extension ltree schema later; create extension isn schema auth;
		create extension if not exists "uuid-ossp" schema public`,
	}
	r := a.Post("/migrations", migrationsBody(t, "", files...)).Want(200)

	var notes []string
	for _, n := range r.Get("notes").([]any) {
		notes = append(notes, n.(map[string]any)["text"].(string))
	}
	want := []string{
		"extension tablefunc is in the schema extensions, not in public", "extension ltree is in the schema extensions, not in later",
		"extension isn is in the schema extensions, not in auth", "extension uuid-ossp is in the schema extensions, not in public",
	}
	if diff := cmp.Diff(want, notes); diff != "" {
		t.Errorf("notes (-want +got):\n%s", diff)
	}

	const schemas = `select string_agg(e.extname || ' ' || n.nspname, ', ' order by n.nspname, e.extname) from pg_extension e
		join pg_namespace n on n.oid = e.extnamespace where e.extname <> 'plpgsql'`
	if got, want := query[string](t, a, schemas), "hstore app, isn extensions, ltree extensions, pgcrypto extensions, tablefunc extensions, "+
		"uuid-ossp extensions, citext public, cube public, earthdistance public, pg_trgm public, postgis public"; got != want {
		t.Errorf("got the extensions %s, want %s", got, want)
	}

	if changes, _ := diff(t, a, files...); len(changes) > 0 {
		t.Errorf("the scratch copy differs:\n%s", strings.Join(changes, "\n"))
	}
}

// TestExtensionsBesideCode: the script of an extension that can't move never runs beside functions
// of the project's owner, and a name that is taken keeps an extension where it is.
func TestExtensionsBesideCode(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	r := a.Post("/migrations", migrationsBody(t, "", "create function similarity(text, text) returns real language sql as 'select 1::real'",
		"create extension postgis; create extension pg_trgm")).Want(200)
	r.Content("notes.0.text", "extension postgis is in the schema extensions, not in public").
		Content("notes.1.text", "extension pg_trgm is in the schema extensions, not in public")
}

// TestApplyForeignBlocks: DO blocks, roles, event triggers and changes of extensions for Supabase's
// platform apply unmodified.
func TestApplyForeignBlocks(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	files := []string{
		`create table t (id int); create schema api authorization postgres; create role app_worker nologin;
		grant app_worker to authenticator; grant select on t to app_worker, anon; create policy p on t to app_worker using (true);
		create function f() returns event_trigger language plpgsql as 'begin end';
		create event trigger ensure_rls on ddl_command_end execute function f();`,
		`do $$ begin
			execute 'alter table t owner to postgres'; execute format('alter table %I owner to supabase_admin', 't');
			if not exists (select from pg_extension where extname = 'hstore') then create extension hstore schema extensions; end if;
			begin create extension plperlu; exception when insufficient_privilege then null; end;
			if not exists (select from pg_extension where extname = 'pg_cron') then raise exception 'no pg_cron'; end if;
			if not exists (select from pg_roles where rolname = 'postgres') then raise exception 'no role postgres'; end if;
			execute 'alter default privileges for role supabase_admin revoke all on tables from anon';
		end $$; create table h (a extensions.hstore);`,
		`create extension pg_trgm with schema public; alter extension pg_trgm set schema extensions; alter extension pg_trgm update;
		alter extension pg_trgm set schema extensions; drop extension pg_graphql; alter extension pg_net set schema extensions;
		create extension citext; drop extension if exists citext; create table w (a text); create index on w using gin (a extensions.gin_trgm_ops)`,
	}
	r := a.Post("/migrations", migrationsBody(t, "", files...)).Want(200)

	var notes []string
	for _, n := range r.Get("notes").([]any) {
		notes = append(notes, n.(map[string]any)["text"].(string))
	}
	want := []string{
		"owner postgres is left out: everything belongs to the project's owner",
		"create role app_worker: left out, since a project has no roles of its own",
		"membership of app_worker is left out: the project has no such role",
		"privileges of app_worker: left out, since the project has no such role",
		"policy p on t of app_worker: left out, since the project has no such role",
		"event trigger ensure_rls is left out: projects have none, and row level security is on for new tables anyway",
		"owner postgres is left out: everything belongs to the project's owner",
		"owner supabase_admin is left out: everything belongs to the project's owner",
		"extension pg_cron counts as installed: the project has its functions",
		"role postgres: the project's owner stands for it",
		"default privileges of supabase_admin: left out, since the project has no such role",
		"extension plperlu is left out: ",
		"update of extension pg_trgm is left out: extensions belong to the platform",
		"extension pg_trgm is in the schema extensions already",
		"extension pg_graphql is not installed: there is nothing to drop",
		"extension pg_net is left out: projects can't have it",
	}
	for i := range max(len(want), len(notes)) {
		if i >= len(notes) || i >= len(want) || !strings.HasPrefix(notes[i], want[i]) {
			t.Fatalf("got the notes\n%s\nwant\n%s", strings.Join(notes, "\n"), strings.Join(want, "\n"))
		}
	}

	const installed = `select string_agg(extname, ' ' order by extname) from pg_extension`
	if got := query[string](t, a, installed); got != "hstore pg_trgm pgcrypto plpgsql uuid-ossp" {
		t.Errorf("got the extensions %s", got)
	}
	if changes, _ := diff(t, a, files...); len(changes) > 0 {
		t.Errorf("the scratch copy differs:\n%s", strings.Join(changes, "\n"))
	}

	// Nothing is created, dropped or moved by a query that only reads.
	for _, q := range []string{"do 'begin create extension cube; end'", "drop extension pg_trgm",
		"alter extension pg_trgm set schema public"} {
		a.Post("/sql", sqlBody(q)).Want(422)
	}
	a.Post("/migrations", migrationsBody(t, "", append(files, "alter extension ltree set schema public")...)).
		Want(422).Field("migrations.3.sql")
	a.Post("/migrations", migrationsBody(t, "", append(files, "drop extension if exists hstore")...)).
		Want(422).Field("migrations.3.sql")
}

// TestMigrationsShareNoState: a migration finds nothing of the session of the one before it,
// neither in the project nor in a scratch copy.
func TestMigrationsShareNoState(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	const change = "create temp table left_over (id int); set search_path = pg_catalog"
	files := []string{change, "-- socle: no-transaction\n" + change,
		"create table made as select to_regclass('pg_temp.left_over') as id"}

	a.Post("/migrations", migrationsBody(t, "", files...)).Want(200).Content("applied.2.name", "step_3")
	if found := query[bool](t, a, "select id is not null from public.made"); found {
		t.Error("the third migration finds the temporary table of another one")
	}

	if changes, _ := diff(t, a, files...); len(changes) > 0 {
		t.Errorf("got the difference\n%s", strings.Join(changes, "\n"))
	}
}

// TestApplyMigrationsRefuses: nothing runs if a file is not valid.
func TestApplyMigrationsRefuses(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	file := func(members string) string { return `{"migrations": [{` + members + `}]}` }
	for _, test := range []struct{ body, field string }{
		{file(`"version": "1a", "name": "a", "sql": ""`), "migrations.0.version"},
		{file(`"version": "", "name": "a", "sql": ""`), "migrations.0.version"},
		{file(`"version": "20261123101501", "name": "a\nb", "sql": ""`), "migrations.0.name"},
		{file(`"version": "20261123101501", "name": "a", "sql": "select 1", "checksum": "abc"`), "migrations.0.checksum"},
		{file(`"version": "20261123101501", "name": "a", "sql": "begin; select 1"`), "migrations.0.sql"},
		{file(`"version": "20261123101501", "name": "a", "sql": "copy t from stdin"`), "migrations.0.sql"},
		{file(`"version": "20261123101501", "name": "a", "sql": "select '\u0000'"`), "migrations.0.sql"},
		{file(`"version": "20261123101501", "name": "a", "sql": "do 'begin commit; end'"`), "migrations.0.sql"},
		{file(`"version": "20261123101501", "name": "a", "sql": "drop extension pg_trgm"`), "migrations.0.sql"},
		{file(`"version": "20261123101501", "name": "a", "sql": "create extension plperlu"`), "migrations.0.sql"},
		{file(`"version": "20261123101502", "name": "a", "sql": ""}, {"version": "20261123101501", "name": "a", "sql": ""`),
			"migrations.1.version"},
		{file(`"version": "20261123", "name": "a", "sql": ""}, {"version": "20261123101501", "name": "b", "sql": ""`),
			"migrations.1.version"},
		{migrationsBody(t, "", "-- socle: no-transaction\nbegin; commit"), "migrations.0.sql"},
		{migrationsBody(t, "", strings.Repeat("select 1;", 20_001)), "migrations.0.sql"},
	} {
		a.Post("/migrations", test.body).Want(422).Field(test.field)
	}

	a.Post("/migrations/diff", migrationsBody(t, "", "select * form t")).Want(422).Field("migrations.0.sql")
	a.Get("/migrations").Want(200).Total(0)
}

// TestApplyMigrationsWithoutTransaction: a file that stops halfway keeps its changes, and runs
// again from its start, changed or not.
func TestApplyMigrationsWithoutTransaction(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	const first = "-- socle: no-transaction\ncreate table if not exists items (id int);\n" +
		"create index concurrently if not exists items_id on items (id);\n"

	a.Post("/migrations", migrationsBody(t, "", first+"select 1/0;")).Want(422).Field("migrations.0.sql")
	a.Get("/tables/items").Want(200)
	a.Get("/migrations").Want(200).Total(1).Content("0.durationMs", nil)

	a.Post("/migrations", migrationsBody(t, "", first+"create extension if not exists citext; drop extension citext;")).
		Want(200).Content("applied.0.name", "step_1")
	a.Post("/migrations", migrationsBody(t, "", first)).Want(409).Code("migration_changed")
}

// TestApplyConcurrentIndex: a file with one statement that PostgreSQL refuses in a transaction runs
// without one, a file of several fails with a hint.
func TestApplyConcurrentIndex(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	files := []string{"create table items (id int)", "-- fast\ncreate unique index concurrently if not exists items_id on items (id);\n-- end",
		"drop index concurrently items_id", "reindex table concurrently items"}
	a.Post("/migrations", migrationsBody(t, "", files...)).Want(200)
	r := a.Post("/migrations", migrationsBody(t, "", append(files, "select 1; create index concurrently on items (id)")...)).Want(422)
	if hint, _ := r.Metadata("postgres.hint").(string); !strings.Contains(hint, "socle: no-transaction") {
		t.Errorf("got the hint %q", hint)
	}

	large := "-- " + strings.Repeat("x", 2<<20) + "\nselect 1"
	a.Post("/migrations", migrationsBody(t, "", append(files, large)...)).Want(200)
	r = a.Post("/migrations", migrationsBody(t, "", append(files, large, large+large)...)).
		Want(422).Field("migrations.5.sql")
	if got := r.Metadata("name"); got != "step_6" {
		t.Errorf("a text is too large: got the name %v", got)
	}
}

// TestConcurrentMigrations: of two requests at once, one waits and applies nothing twice.
func TestConcurrentMigrations(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	holder := a.ConnectProject()
	defer holder.Close(t.Context())

	lock := func(sql string) {
		t.Helper()
		if _, err := holder.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}

	lock("select pg_advisory_lock(7)")

	body := migrationsBody(t, "", "select pg_advisory_xact_lock(7)", "create table made (id int)")
	replies := make(chan *apitest.Reply, 2)
	for range 2 {
		go func() {
			r := a.Post("/migrations", body)
			for r.Status == 429 { // a third one was first
				r = a.Post("/migrations", body)
			}

			replies <- r
		}()
	}

	until(t, "a migration waits", func() bool {
		return query[int](t, a, "select count(*)::int from pg_locks where database = (select oid from pg_database where datname = current_database()) and locktype = 'advisory' and not granted") == 1
	})

	for _, path := range []string{"/migrations", "/migrations/diff"} {
		until(t, "a third request is refused", func() bool {
			r := a.Post(path, `{"migrations": []}`)
			return r.Status == 429 && r.Metadata("code") == "busy"
		})
	}

	lock("select pg_advisory_unlock(7)")

	applied := 0
	for range 2 {
		applied += len((<-replies).Want(200).Get("applied").([]any))
	}

	if applied != 2 {
		t.Errorf("two requests: got %d migrations applied, want 2", applied)
	}
}

// TestDiffMigrationsWaits: two requests have one scratch copy after the other and a third one is
// refused, a locked table is reported, and the copy that a killed server left behind is dropped.
func TestDiffMigrationsWaits(t *testing.T) {
	t.Parallel()

	a := apitest.New(t)
	a.CreateTable("held")

	wantStatuses(t, concurrently(3, func(int) *apitest.Reply {
		return a.Post("/migrations/diff", `{"migrations": []}`)
	}), 200, 429)

	holder := lockTables(t, a)
	a.Post("/migrations/diff", `{"migrations": []}`).Want(409).Code("busy")
	release(t, holder)

	name := a.DatabaseName() + "_scratch_0000000000000000"
	a.Exec(`create database ` + name)
	a.RunMaintenance()

	if apitest.Value[bool](a, "select exists (select from pg_database where datname = '"+name+"')") {
		t.Error("the scratch copy is there after the clean-up")
	}
}

// TestMigrationOfLostClient: a migration ends when its client leaves, and nothing of it remains.
func TestMigrationOfLostClient(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	ctx, leave := context.WithCancel(t.Context())
	defer leave()

	body := migrationsBody(t, "", "create table made (id int); select pg_sleep(3600)")
	r := a.Request("POST", "/migrations", strings.NewReader(body)).WithContext(ctx)
	lost := make(chan error)
	go func() {
		res, err := http.DefaultClient.Do(r)
		if err == nil {
			err = res.Body.Close()
		}
		lost <- err
	}()

	sessions := func() int {
		return query[int](t, a, `
			select count(*)::int from pg_stat_activity where datname = current_database() and wait_event = 'PgSleep'`)
	}
	until(t, "the migration runs", func() bool { return sessions() == 1 })
	leave()

	if err := <-lost; err == nil {
		t.Error("the client got an answer")
	}

	until(t, "the migration ends", func() bool { return sessions() == 0 })
	a.Get("/migrations").Want(200).Total(0)
	a.Get("/tables/made").Want(404)
}
