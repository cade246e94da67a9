package pgdump_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/socle-dev/socle/internal/pgdump"
)

// userSchemas are the arguments of pg_dump for the schemas of testdata/rich.sql.
var userSchemas = []string{"--no-owner", "--no-privileges", "-n", "public", "-n", "app", "-n", `"Odd ""schema"""`}

// TestImport imports a rich database in several forms of dumps, and compares the dump of the
// result.
func TestImport(t *testing.T) {
	t.Parallel()

	from := source(t, "rich.sql")
	want := normalize(strings.ReplaceAll(dump(t, from, userSchemas...), "app.hstore", "public.hstore"))

	for name, test := range map[string]struct {
		args    []string
		options pgdump.Options
	}{
		"copy":              {},
		"insert":            {args: []string{"--rows-per-insert", "7", "--quote-all-identifiers"}},
		"insert each":       {args: []string{"--column-inserts", "--no-owner"}},
		"clean, separately": {args: []string{"--clean", "--if-exists"}, options: pgdump.Options{Separately: true}},
		"create":            {args: []string{"--create"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			p := newTarget(t)
			text := dump(t, from, test.args...)

			report, err := p.importDump(text, test.options)
			if err != nil {
				t.Fatal(err)
			}

			got := normalize(dump(t, p.url(), userSchemas...))
			if diff := cmp.Diff(strings.Split(want, "\n"), strings.Split(got, "\n")); diff != "" {
				t.Errorf("the dump of the project differs (-dumped +imported):\n%s", diff)
			}

			// 201 authors, 600 books, 500 events, 10 cities, 4 odd rows
			extensions := []string{"citext", "hstore", "pg_trgm", "uuid-ossp"}
			if !slices.Equal(report.Extensions, extensions) || report.Rows != 1315 {
				t.Errorf("got %d rows and the extensions %q", report.Rows, report.Extensions)
			}

			if name == "copy" {
				p.isAsBefore()
			}
		})
	}
}

// isAsBefore checks privileges and behaviour that a dump without privileges does not show.
func (p target) isAsBefore() {
	p.t.Helper()

	for query, want := range map[string]string{
		`select has_table_privilege('anon', 'app.books', 'select')::text`:                                       "true",
		`select has_function_privilege('authenticated', 'app.total(numeric[])', 'execute')::text`:               "true",
		`select (relrowsecurity and relforcerowsecurity)::text from pg_class where oid = 'app.books'::regclass`: "true",
		`select nextval('app.books_id_seq')::text`:                                                              "601",
	} {
		if got := p.value(query); got != want {
			p.t.Errorf("%s: got %s, want %s", query, got, want)
		}
	}
}

// TestImportOfSupabaseDump imports a dump shaped like one of a Supabase project.
func TestImportOfSupabaseDump(t *testing.T) {
	t.Parallel()

	text, err := os.ReadFile(filepath.Join("testdata", "supabase.sql"))
	if err != nil {
		t.Fatal(err)
	}

	p := newTarget(t)
	report, err := p.importDump(string(text), pgdump.Options{})
	if err != nil {
		t.Fatal(err)
	}

	for query, want := range map[string]string{
		`select string_agg(id || ' ' || username, ',' order by id) from public.profiles`:                                                            "00000000-0000-0000-0000-000000000001 ada,00000000-0000-0000-0000-000000000002 grace",
		`select count(*)::text from public.todos`:                                                                                                   "3",
		`select string_agg(polname, ',' order by polname) from pg_policy where polrelid in ('public.todos'::regclass, 'public.profiles'::regclass)`: "anyone,own,own profile,staff",
		`select string_agg(polname, ',') from pg_policy where polrelid = 'storage.objects'::regclass`:                                               "Anyone can upload an avatar.",
		`select count(id)::text from auth.users`:                                                                                                    "2",
		`select count(*)::text from vault.secrets`:                                                                                                  "0",
		`select to_regnamespace('graphql')::text`:                                                                                                   "null",
		`select string_agg(extname, ',' order by extname) from pg_extension where extname <> 'plpgsql'`:                                             "pgcrypto,uuid-ossp",
		`select string_agg(tablename, ',') from pg_publication_tables where pubname = 'supabase_realtime'`:                                          "todos",
		`select has_table_privilege('anon', 'public.todos', 'select')::text`:                                                                        "true",
		`select string_agg(version, ',') from supabase_migrations.schema_migrations`:                                                                "20250101000000",
	} {
		if got := p.value(query); got != want {
			t.Errorf("%s: got %s, want %s", query, got, want)
		}
	}

	want, err := os.ReadFile(filepath.Join("testdata", "supabase.notes"))
	if err != nil {
		t.Fatal(err)
	}

	var got strings.Builder
	for _, n := range report.Notes {
		if n.Topic != pgdump.Owners && n.Topic != pgdump.Schemas && n.Topic != pgdump.Privileges {
			fmt.Fprintf(&got, "%d %s: %s\n", n.Line, n.Topic, n.Text)
		}
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got.String(), "\n")); diff != "" {
		t.Errorf("notes (-want +got):\n%s", diff)
	}
}

// TestImportOfPlatformRows imports rows of auth and storage, which the platform checks.
func TestImportOfPlatformRows(t *testing.T) {
	t.Parallel()

	const (
		ada   = "00000000-0000-0000-0000-000000000001"
		grace = "00000000-0000-0000-0000-000000000002"
		dump  = `create table public.profiles (id uuid primary key references auth.users);
copy auth.identities (provider_id, user_id, identity_data, provider, unknown, id) from stdin;
7	` + grace + `	{"sub": "7"}	github	x	00000000-0000-0000-0000-0000000000f1
` + ada + `	` + ada + `	{"sub": "` + ada + `"}	email	x	00000000-0000-0000-0000-0000000000f2
\.
copy auth.users (id, email, raw_user_meta_data, "unknown column") from stdin;
` + ada + `	ada@example.com	{"name": "Ada"}	\N
` + grace + `	Grace@example.com	\N	x
\.
insert into auth.users (id, email) values ('00000000-0000-0000-0000-000000000003', 'no address');
insert into public.profiles values ('` + grace + `');
copy storage.buckets (id, name, public, file_size_limit, allowed_mime_types, unknown) from stdin;
avatars	avatars	t	\N	{image/*}	1
\.
copy auth.sessions (id) from stdin;
1
\.
`
	)
	p := newTarget(t)
	if _, err := p.Owner().Exec(t.Context(), `
		insert into auth.users (id, email) values ('`+ada+`', 'old@example.com')`); err != nil {
		t.Fatal(err)
	}

	report, err := p.importDump(dump, pgdump.Options{})
	if err != nil {
		t.Fatal(err)
	}

	for query, want := range map[string]string{
		`select string_agg(email, ',' order by email) from auth.users`:                                           "grace@example.com,old@example.com",
		`select string_agg(concat(user_id, ' ', provider), ',' order by user_id, provider) from auth.identities`: ada + " email," + grace + " email," + grace + " github",
		`select string_agg(id::text, ',') from public.profiles`:                                                  grace,
		`select string_agg(concat_ws('|', id, public, allowed_mime_types), ',') from storage.buckets`:            "avatars|t|{image/*}",
	} {
		if got := p.value(query); got != want {
			t.Errorf("%s: got %s, want %s", query, got, want)
		}
	}

	var got []string
	for _, n := range report.Notes {
		got = append(got, fmt.Sprintf("%d %s: %s", n.Line, n.Topic, n.Text))
	}
	want := []string{
		`10 schemas: insert table auth.users: 'no address' is no e-mail address: it has no @`,
		`15 schemas: copy table auth.sessions`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("notes (-want +got):\n%s", diff)
	}

	p = newTarget(t)
	without := pgdump.Options{ExcludeSchemas: []string{"auth"}}
	if _, err := p.importDump(strings.ReplaceAll(dump, "references auth.users", ""), without); err != nil {
		t.Fatal(err)
	}
	if got := p.value(`select count(*)::text from auth.users`); got != "0" {
		t.Errorf("got %s users of an excluded schema, want 0", got)
	}
}

// TestImportAfterUsers imports the dump into a project that has its users.
func TestImportAfterUsers(t *testing.T) {
	t.Parallel()

	text, err := os.ReadFile(filepath.Join("testdata", "supabase.sql"))
	if err != nil {
		t.Fatal(err)
	}

	p := newTarget(t)
	if _, err := p.EndUsers().Exec(t.Context(), `insert into auth.users (id) values
		('00000000-0000-0000-0000-000000000001'), ('00000000-0000-0000-0000-000000000002')`); err != nil {
		t.Fatal(err)
	}

	report, err := p.importDump(string(text), pgdump.Options{})
	if err != nil {
		t.Fatal(err)
	}

	for query, want := range map[string]string{
		`select string_agg(conname, ',') from pg_constraint where confrelid = 'auth.users'::regclass and connamespace = 'public'::regnamespace`: "profiles_id_fkey",
		`select string_agg(tgname, ',') from pg_trigger where tgrelid = 'auth.users'::regclass and tgname like 'on%'`:                           "on_auth_user_created",
		`select count(*)::text from public.profiles`: "2",
	} {
		if got := p.value(query); got != want {
			t.Errorf("%s: got %s, want %s", query, got, want)
		}
	}
	for _, n := range report.Notes {
		if n.Line == 539 || n.Line == 553 {
			t.Errorf("line %d: %s", n.Line, n.Text)
		}
	}
}

// TestImportOfSchema imports the schema of an application, without rows, into a new project: it
// keeps triggers on auth.users and foreign keys to it.
func TestImportOfSchema(t *testing.T) {
	t.Parallel()

	p := newTarget(t)
	report, err := p.importDump(`
		create table profiles (id uuid primary key references auth.users on delete cascade, name text);
		create table teams (id int primary key, lead uuid);
		alter table teams add constraint teams_lead_fkey foreign key (lead) references auth.users (id);
		create function handle_new_user() returns trigger language plpgsql security definer set search_path = '' as $$
		begin insert into public.profiles (id, name) values (new.id, new.email); return new; end $$;
		create trigger on_auth_user_created after insert on auth.users for each row execute procedure handle_new_user();
		insert into teams values (1, null);`, pgdump.Options{})
	if err != nil || len(report.Notes) > 0 {
		t.Fatalf("got the notes %v, error %v", report.Notes, err)
	}

	if _, err := p.EndUsers().Exec(t.Context(),
		`insert into auth.users (id, email) values (gen_random_uuid(), 'ann@example.com')`); err != nil {
		t.Fatal(err)
	}
	for query, want := range map[string]string{
		`select name from public.profiles`: "ann@example.com",
		`select string_agg(conname, ',' order by conname) from pg_constraint where confrelid = 'auth.users'::regclass and connamespace = 'public'::regnamespace`: "profiles_id_fkey,teams_lead_fkey",
	} {
		if got := p.value(query); got != want {
			t.Errorf("%s: got %s, want %s", query, got, want)
		}
	}
}

// TestImportFails checks that a failure names the line, in PostgreSQL's words, and leaves nothing
// behind.
func TestImportFails(t *testing.T) {
	t.Parallel()

	p := newTarget(t)
	rows := strings.Repeat("1\tx\n", 1000)

	for text, want := range map[string]struct {
		line     int
		position int
		message  string
	}{
		"create table t (id int);\n\nselect 1 from\n  nowhere;":                                           {4, 17, `relation "nowhere" does not exist`},
		"create table t (id int);\ncreat table u ();":                                                     {2, 1, `syntax error at or near "creat"`},
		"create table t (id int);\nselect 1;\nselect 1/0;\nselect 2;":                                     {3, 0, "division by zero"},
		"create table t (id int primary key);\ninsert into t values (1);\n\ninsert into t values (1);":    {4, 0, `duplicate key value violates unique constraint "t_pkey"`},
		"create table t (id int, b text);\ncopy t from stdin;\n" + rows + "x\ty\n\\.\n":                   {1003, 0, `invalid input syntax for type integer: "x"`},
		"create table t (id int, b text);\ncopy t from stdin;\n" + rows + "1\ty\tz\n" + rows + "\\.\n":    {1003, 0, `extra data after last expected column`},
		"create table t (id int, b text);\ncopy u from stdin;\n" + rows + "\\.\n":                         {2, 0, `relation "u" does not exist`},
		"create table t (id int, b text);\ncopy t from stdin;\n" + rows + "1\ty":                          {2, 0, `the dump is cut off in the rows of this COPY`},
		"create table t (id int);\ncreate function f() as $$ begin;\n":                                    {2, 0, `the dump is cut off in this statement`},
		"create table t (id int);\nset client_encoding = 'latin1';\n\\i other.sql":                        {3, 0, `the command \i of psql is not supported`},
		"create table t (id int);\ncreate index concurrently on t (id);":                                  {2, 0, `CREATE INDEX CONCURRENTLY cannot run inside a transaction block`},
		"create table t (id int unique deferrable initially deferred);\ninsert into t values (1), (1);\n": {3, 0, `duplicate key value violates unique constraint "t_id_key"`},
		"create table t (id int);\ncreate table storage.t ();":                                            {2, 0, `the schema storage belongs to the platform: leave it out by --exclude-schema storage, or rename it before you dump`},
		"create table t (id int);\ncreate role x; do $$ begin execute 'create role x'; end $$;":           {2, 0, `permission denied to create role`},
	} {
		_, err := p.importDump(text, pgdump.Options{})

		e, ok := errors.AsType[*pgdump.Error](err)
		if !ok || e.Line != want.line || e.Position != want.position ||
			e.Error() != fmt.Sprintf("line %d: %s", want.line, want.message) {
			t.Errorf("%.60q: got %v, want line %d, position %d: %s", text, err, want.line, want.position, want.message)
		}
		if got := p.value(`select to_regclass('public.t')::text`); got != "null" {
			t.Fatalf("%.60q: the table is there", text)
		}
	}
}

// TestSeparateImportFails checks that the statements before a failure stay.
func TestSeparateImportFails(t *testing.T) {
	t.Parallel()

	p := newTarget(t)
	_, err := p.importDump("create table a (); create table b ();\nbegin; create table c (); rollback;\ncreate table a ();",
		pgdump.Options{Separately: true})

	e, ok := errors.AsType[*pgdump.Error](err)
	if !ok || e.Line != 3 || e.Postgres == nil || e.Postgres.Code != "42P07" {
		t.Errorf("got %v, want duplicate_table in line 3", err)
	}
	if got := p.value(`select string_agg(relname, ',' order by relname) from pg_class where relnamespace = 'public'::regnamespace`); got != "a,b" {
		t.Errorf("got the tables %s, want a,b", got)
	}
}

// TestNotes checks the notes of a dump with settings, an unavailable extension and large objects.
func TestNotes(t *testing.T) {
	t.Parallel()

	p := newTarget(t)
	report, err := p.importDump(`set transaction_timeout_of_19 = 0;
set session_replication_role = replica;
create extension pg_cron with schema cron;
create table a (id int);
set default_tablespace = fast;
set idle_in_transaction_session_timeout = 0;
alter table a owner to postgres;
select pg_catalog.lo_create('16401');
create table b (id int);
copy cron.job (id) from stdin;
1
\.
grant select on a to reporting;
`, pgdump.Options{})
	if err != nil {
		t.Fatal(err)
	}

	var got []string
	for _, n := range report.Notes {
		got = append(got, fmt.Sprintf("%d %s: %s", n.Line, n.Topic, n.Text))
	}
	want := []string{
		`1 settings: set transaction_timeout_of_19 = 0: unrecognized configuration parameter "transaction_timeout_of_19"`,
		`2 settings: set session_replication_role = replica: permission denied to set parameter "session_replication_role"`,
		`3 extensions: extension pg_cron: name is not an extension that projects may install`,
		`5 settings: set default_tablespace = fast: invalid value for parameter "default_tablespace": "fast"`,
		`7 owners: owner postgres`,
		`8 large objects: large objects: store their bytes as files`,
		`10 schemas: copy table cron.job`,
		`13 roles: privileges of reporting: no such role in the project`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("notes (-want +got):\n%s", diff)
	}

	if got := p.value(`select to_regclass('public.b')::text`); got != "b" && got != "public.b" {
		t.Errorf("got the table %s", got)
	}
}

// TestImportOfHalfADump imports the beginning of a dump. It fails wherever the dump is cut, and
// leaves nothing behind.
func TestImportOfHalfADump(t *testing.T) {
	t.Parallel()

	text := dump(t, source(t, "rich.sql"))
	p := newTarget(t)

	const parts = 12
	for part := range parts {
		cut := text[:len(text)*(2*part+1)/(2*parts)]
		_, err := p.importDump(cut, pgdump.Options{})

		e, ok := errors.AsType[*pgdump.Error](err)
		lines := strings.Count(cut, "\n") + 1
		if !ok || e.Postgres != nil || e.Line > lines {
			t.Errorf("cut in line %d: got %v", lines, err)
		}
		if got := p.value(`select count(*)::text from pg_namespace where nspname = 'app'`); got != "0" {
			t.Fatalf("cut in line %d: something is there", lines)
		}
	}
}

// TestImportExtensionRows checks that rows of the extensions' tables are left out, since the tables
// belong to the platform.
func TestImportExtensionRows(t *testing.T) {
	t.Parallel()

	for _, schema := range []string{"public", "extensions"} {
		p := newTarget(t)
		report, err := p.importDump(strings.ReplaceAll(`create extension if not exists postgis with schema SCHEMA;
create table public.places (id int, at SCHEMA.geometry);
copy public.places (id, at) from stdin;
1	POINT(1 2)
\.
copy SCHEMA.spatial_ref_sys (srid, auth_name, auth_srid, srtext, proj4text) from stdin;
990001	mine	1	a	b
\.
insert into SCHEMA.spatial_ref_sys values (990002, 'mine', 2, 'a', 'b');
create table public.st_area (id int);
copy public.st_area (id) from stdin;
1
\.
`, "SCHEMA", schema), pgdump.Options{})
		if err != nil {
			t.Errorf("%s: %v", schema, err)
			continue
		}

		var got []string
		for _, n := range report.Notes {
			if n.Topic == pgdump.Extensions {
				got = append(got, fmt.Sprintf("%d %s", n.Line, n.Text))
			}
		}
		want := []string{"6 rows of " + schema + ".spatial_ref_sys", "9 rows of " + schema + ".spatial_ref_sys"}
		if diff := cmp.Diff(want, got); diff != "" || report.Rows != 2 {
			t.Errorf("%s: %d rows, notes (-want +got):\n%s", schema, report.Rows, diff)
		}
	}
}
