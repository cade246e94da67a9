package api_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/socle-dev/socle/internal/api/apitest"
	"github.com/socle-dev/socle/internal/pgtest"
)

// sqlBody returns the body of a query with additional members.
func sqlBody(query string, members ...string) string {
	return `{"query": ` + quoted(query) + strings.Join(append([]string{""}, members...), ", ") + "}"
}

const writing = `"read_only": false`

func TestRunSQL(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	a.Post("/sql",
		sqlBody(
			"create table t (id int primary key, name text); insert into t values (1, 'a''b'), (2, null); select * from t order by id", writing,
		)).Want(200).
		Content("results.0.command", "CREATE TABLE").Content("results.1.command", "INSERT 0 2").
		Content("results.1.rowCount", 2).
		Content("results.2.columns.0.name", "id").Content("results.2.columns.0.type", "integer").
		Content("results.2.columns.1.type", "text").
		Content("results.2.rows.0.0", 1).Content("results.2.rows.0.1", "a'b").Content("results.2.rows.1.1", nil).
		Content("results.2.rowCount", 2).
		Content("results.2.truncated", false).Content("results.2.command", "SELECT 2")

	if query[bool](t, a,
		"select relowner::regrole::text not like '%owner' or not relrowsecurity from pg_class where relname = 't'") {
		t.Error("the table has the wrong owner or grants")
	}

	r := a.Post("/sql",
		sqlBody(`select 9007199254740993::int8, 9007199254740992::int8, 0.1::numeric, 0.10000000000000000001::numeric, 'NaN'::float8, 1.5::float8, true,
		'{"a": [1, 1.00000000000000000001]}'::jsonb, '{"a": 1, "a": 2}'::json, 'x'::char(3), array[1,2], '\x00ff'::bytea, 1e400::numeric, null`)).Want(200)
	got, err := json.Marshal(r.Get("results.0.rows.0"))
	if err != nil {
		t.Fatal(err)
	}

	const want = `["9007199254740993",9007199254740992,0.1,"0.10000000000000000001","NaN",1.5,true,{"a":[1,1.00000000000000000001]},"{\"a\": 1, \"a\": 2}","x  ","{1,2}","\\x00ff","1000`
	if !strings.HasPrefix(string(got), want) {
		t.Errorf("got  %q\nwant %q …", got, want)
	}

	a.Post("/sql",
		sqlBody("select $1::int + 1, $2::text, $3::jsonb, $4::bool, $5::text",
			`"parameters": [41, "it's", {"a": null}, true, null]`)).Want(200).
		Content("results.0.rows.0.0", 42).Content("results.0.rows.0.1", "it's").Content("results.0.rows.0.2.a", nil).
		Content("results.0.rows.0.3", true).Content("results.0.rows.0.4", nil)

	a.Post("/sql", sqlBody("select 1 as a, 2 as a")).Want(200).Content("results.0.columns.1.name", "a").
		Content("results.0.rows.0.1", 2)

	a.Post("/sql", sqlBody("set client_encoding = 'LATIN1'; select 'é'", writing)).Want(200)
	a.Post("/sql", sqlBody("select 'é'")).Want(200).Content("results.0.rows.0.0", "é")
	a.Member(4).Post("/sql", sqlBody("select 1")).Want(200)
	a.Member(5).Post("/sql", sqlBody("select 1")).Want(403)
	a.OtherUser().Post("/sql", sqlBody("select 1")).Want(401)
}

// TestStorageSQL runs the statements on storage.objects of migrations written for Supabase.
func TestStorageSQL(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	a.Post("/sql", sqlBody(`
		alter table storage.objects enable row level security;
		drop policy if exists "Avatars are public" on storage.objects;
		create policy "Avatars are public" on storage.objects for select to public using (bucket_id = 'avatars');
		create policy "Upload your own" on storage.objects for insert to authenticated
			with check (bucket_id = 'avatars' and (select auth.uid()::text) = (storage.foldername(name))[1]);
		create policy "See buckets" on storage.buckets for select to anon, authenticated using (true);
		grant all on storage.objects to authenticated, anon;
		grant usage on schema storage to anon`, writing)).Want(200)

	for _, insert := range []string{
		`insert into storage.objects (bucket_id, name) values ('avatars', 'a.png')`,
		`INSERT INTO "storage"."objects" (bucket_id, full_file_name) VALUES ('avatars', 'a.png')`,
	} {
		r := a.Post("/sql", sqlBody(insert, writing)).Want(200)
		if note := fmt.Sprint(r.Get("notes.0.text")); !strings.Contains(note, "Storage API") {
			t.Errorf("%s: got note %q", insert, note)
		}
	}

	a.Post("/sql", sqlBody(`
		insert into storage.buckets (id, name, public, file_size_limit, allowed_mime_types)
		values ('avatars', 'avatars', true, 5, '{text/*}'), ('posts', 'posts', false, null, null) on conflict (id) do nothing;
		update storage.buckets set public = false where id = 'avatars';
		delete from storage.buckets where id = 'posts'`, writing)).Want(200)
	c := a.Get("/containers").Want(200).Total(1).Content("0.name", "avatars").Content("0.isPublic", false).
		Content("0.maxFileSize", 5).Get("0.uuid").(string)
	upload(a, c, "a.txt", "hello").Want(201)
	upload(a, c, "b.txt", "hello!").Want(413)
	a.Post("/sql", sqlBody(`delete from storage.buckets`, writing)).Want(422)
	a.Put("/containers/"+c, `{"is_public": true}`).Want(200).Content("isPublic", true)
	a.Post("/sql", sqlBody(`select id, public, file_size_limit from storage.buckets`)).Want(200).
		Content("results.0.rows", []any{[]any{"avatars", true, "5"}})
}

// TestOtherProjectsHidden checks that the catalogs visible to every login do not reveal other
// projects.
func TestOtherProjectsHidden(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	other := a.SignUp("other")
	other.Project = other.CreateProject("theirs")
	other.Post("/sql", sqlBody("create table t (id int)", writing)).Want(200) // leaves a pooled session open
	a.Post("/sql", sqlBody("select 1")).Want(200)

	const shown = `
		select d::text from pg_database d union all select r::text from pg_roles r union all select a::text from pg_stat_activity a
		union all select s::text from pg_db_role_setting s union all select c::text from pg_shdescription c`
	r := a.Post("/sql", sqlBody(shown, `"max_rows": 10000`)).Want(200).Content("results.0.truncated", false)
	text := strings.ToLower(string(r.Body))
	if !strings.Contains(text, a.DatabaseName()) || !strings.Contains(text, other.DatabaseName()) {
		t.Fatalf("the databases of the test are not listed: %s", text)
	}

	for _, id := range []string{other.Project, strings.ReplaceAll(other.Project, "-", "")} {
		if strings.Contains(text, id) {
			t.Errorf("%s is listed: %s", id, text)
		}
	}
}

func TestRunSQLLimits(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	a.Post("/sql", sqlBody("select generate_series(1, 1000000000000)", `"max_rows": 3`)).Want(200).
		Content("results.0.truncated", true).Content("results.0.rows.2.0", 3).Content("results.0.rowCount", nil)

	r := a.Post("/sql", sqlBody("select generate_series(1, 5)", `"max_rows": 5`)).Want(200).
		Content("results.0.truncated", false)
	if got := len(r.Get("results.0.rows").([]any)); got != 5 {
		t.Errorf("got %d rows, want 5", got)
	}

	r = a.Post("/sql", sqlBody("select repeat('x', 1000000) from generate_series(1, 100)", `"timeout_ms": 30000`)).
		Want(200).Content("results.0.truncated", true)
	if len(r.Body) > 11<<20 {
		t.Errorf("got %d bytes", len(r.Body))
	}

	a.Post("/sql", sqlBody("select repeat('x', 40000000)", `"timeout_ms": 30000`)).Want(422).Code("too_large")
	a.Post("/sql",
		sqlBody("create table t (n int); insert into t select generate_series(1, 50) returning n", writing,
			`"max_rows": 2`)).Want(200).Content("results.1.truncated", true)

	if got := query[int](t, a, "select count(*) from public.t"); got != 50 {
		t.Errorf("got %d rows, want 50", got)
	}
}

// TestTemporaryFiles checks that a session's temporary files are limited, and that the session
// cannot raise the limit. At the limit only the statement fails.
func TestTemporaryFiles(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	shown := func(want string) {
		t.Helper()

		a.Post("/sql", sqlBody("show temp_file_limit")).Want(200).Content("results.0.rows.0.0", want)
	}

	const bounded = `select count(*) from pg_db_role_setting s join pg_database d on d.oid = s.setdatabase where datname = current_database() and setconfig @> '{temp_file_limit=8GB}'`
	if got := query[int](t, a, bounded); got != 5 {
		t.Errorf("got %d logins with limits, want 5", got)
	}

	shown("8GB")

	for _, sql := range []string{"set temp_file_limit = -1", "select set_config('temp_file_limit', '-1', false)",
		`do $$ begin execute format('alter role current_user in database %I reset temp_file_limit', current_database()); end $$`} {
		a.Post("/sql", sqlBody(sql, writing)).Want(422)
	}

	a.Post("/sql",
		sqlBody(
			`do $$ begin execute format('alter role current_user in database %I reset all', current_database()); end $$`, writing,
		)).Want(200)

	shown("8GB")

	execute(t, a,
		`do $$ begin execute format('alter role %I in database %I set temp_file_limit = 1024', current_database() || '_owner', current_database()); end $$`)

	a.Post("/sql", sqlBody("create table public.sorted as select generate_series(1, 200000) as n", writing)).Want(200)

	const sort = "set local work_mem = '64kB'; select count(*) from (select n from public.sorted order by n desc offset 1) s"
	for _, q := range []string{
		sort, "create table public.more as select * from public.sorted; " + sort,
		"set local maintenance_work_mem = '1MB'; create index on public.sorted (n desc)",
	} {
		r := a.Post("/sql", sqlBody(q, writing)).Want(422)
		if !strings.Contains(string(r.Body), "temp_file_limit") {
			t.Errorf("%s: %s", q, r.Body)
		}
	}

	a.Get("/tables/more").Want(404)
	a.Post("/sql", sqlBody("delete from public.sorted where n > 10; select count(*) from public.sorted", writing)).
		Want(200).Content("results.1.rows.0.0", 10)
}

// TestRunSQLTimeout checks that the server enforces the time limit despite settings and exception
// handlers in the statement.
func TestRunSQLTimeout(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	const trap = `do $$ begin loop begin perform pg_sleep(100); exception when query_canceled then null; end; end loop; end $$`
	for _, q := range []string{"select pg_sleep(100)", "set statement_timeout = 0; select pg_sleep(100)", trap,
		"select count(*) from generate_series(1, 1000000000000)",
		"with recursive r as (select 1 as n union all select n + 1 from r) select count(*) from r",
		"create table half (id int); " + trap} {
		a.Post("/sql", sqlBody(q, writing, `"timeout_ms": 100`)).Want(422).Code("timeout").Field("timeout_ms")
	}

	until(t, "they no longer run", func() bool {
		return query[int](t, a,
			"select count(*) from pg_stat_activity where datname = current_database() and usename like '%owner' and state <> 'idle'") == 0
	})

	if query[bool](t, a, "select to_regclass('public.half') is not null") {
		t.Error("the undone data still exists")
	}

	a.Post("/sql", sqlBody("set statement_timeout = 10; select pg_sleep(100)")).Want(422).Code("cancelled")
	a.Post("/sql", sqlBody("select 1")).Want(200)
}

// TestRunSQLTransaction checks that no statement escapes from its transaction, however it is
// hidden.
func TestRunSQLTransaction(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	a.Post("/sql",
		sqlBody(
			"create table t (n int); create procedure p() language plpgsql as $$ begin insert into t values (9); commit; end $$", writing,
		)).Want(200)

	for _, q := range []string{"commit", "COMMIT; insert into t values (1)", "insert into t values (1); commit",
		"/* a /* b */ */ commit", "-- x\ncommit", "begin", "start transaction", "end", "abort", "rollback",
		"rollback to x", "savepoint x", "release x", "prepare transaction 'x'", "commit prepared 'x'",
		"rollback prepared 'x'", ";;;commit;", "copy t to stdout", "copy t from stdin",
		"copy (select 1) to program 'id'", "copy t from '/etc/passwd'", "select 1; end;", "select ';'; commit",
		"select $a$;$a$; commit"} {
		a.Post("/sql", sqlBody(q, writing)).Want(422).Code("not_allowed").Field("query")
	}

	for q, state := range map[string]string{
		"insert into t values (1); call p()":              "2D000",
		"do $$ begin commit; end $$":                      "2D000",
		"insert into t values (1); select 1/0":            "22012",
		"vacuum t":                                        "25001",
		"create database x":                               "25001",
		"set role nobody":                                 "22023",
		"set session authorization pg_read_all_data":      "42501",
		"alter system set work_mem = '1GB'":               "25001",
		"set local transaction_read_only = off; select $": "42601",
		"do $$ declare s text := 'create extension dblink'; begin execute s; end $$": "42501",
		"insert into socle.queries default values":                                   "42501",
		"select * from auth.passwords":                                               "42501",
		"select pg_terminate_backend(pg_backend_pid())":                              "57P01",
		"execute nothing":   "26000",
		"select 'unended":   "42601",
		"select (1; commit": "42601",
		"create function f() returns int begin atomic select 1; commit; end": "0A000",
	} {
		r := a.Post("/sql", sqlBody(q, writing)).Want(422).Field("query")
		if got := r.Metadata("postgres.sqlstate"); got != state {
			t.Errorf("%s: got %v, want %s\n%s", q, got, state, r.Body)
		}
	}

	if got := query[int](t, a, "select count(*) from public.t"); got != 0 {
		t.Errorf("got %d rows, want none", got)
	}

	a.Post("/sql", sqlBody(`create extension if not exists "plpgsql"; select 1`, writing)).Want(200).
		Content("results.0.command", "CREATE EXTENSION")

	a.Post("/sql", sqlBody("begin; drop extension if exists pg_net;\ncreate extension citext; create extension dblink; "+
		"create table c (name citext); alter table c owner to postgres; commit", writing)).Want(200).
		Content("results.2.command", "CREATE EXTENSION").Content("results.3.command", "").
		Content("results.4.command", "CREATE TABLE").Content("notes.1.line", 1).Content("notes.2.statement", 4).
		Content("notes.3.text", "owner postgres is left out: everything belongs to the project's owner")
	a.Post("/sql", sqlBody("drop extension if exists citext", writing)).Want(422).Field("query")
	a.Post("/sql", sqlBody("create extension plperlu", writing)).Want(422).Field("query")
	a.Post("/sql", sqlBody("create extension hstore")).Want(422).Code("read_only")

	a.Post("/sql",
		sqlBody(
			`create function f() returns int begin atomic select 1; select case when true then 2 else 3 end; end; select f()`, writing,
		)).Want(200).Content("results.1.rows.0.0", 2)

	a.Post("/sql",
		sqlBody(
			"select 'a;b', \"x;y\".n, $q$ ; $q$, e'\\';', 'a'\n'b;' /* ; */ -- ;\n from (values (1)) as \"x;y\"(n); create rule r as on insert to t do also (select 1; select 2)", writing,
		)).
		Want(200).Content("results.0.rows.0.3", "';").Content("results.1.command", "CREATE RULE")
}

func TestRunSQLReadOnly(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	a.Post("/sql", sqlBody("create table t (n int)", writing)).Want(200)

	for _, q := range []string{"insert into t values (1)", "drop table t", "create table u (n int)",
		"set transaction_read_only = off; insert into t values (1)",
		"set default_transaction_read_only = off; insert into t values (1)",
		"do $$ begin set transaction_read_only = off; insert into t values (1); end $$"} {
		r := a.Post("/sql", sqlBody(q)).Want(422)
		if state := r.Metadata("postgres.sqlstate"); state != "25006" && state != "25001" {
			t.Errorf("%s: got %v", q, state)
		}
	}

	a.Post("/sql", sqlBody("select set_config('transaction_read_only', 'off', false); insert into t values (1)")).
		Want(422)

	if got := query[int](t, a, "select count(*) from public.t"); got != 0 {
		t.Errorf("got %d rows, want none", got)
	}
}

// TestRunSQLResidue checks that a query leaves no state in the session for the next one.
func TestRunSQLResidue(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	for range 3 {
		a.Post("/sql",
			sqlBody(`set work_mem = '64kB'; set search_path = pg_temp; create temp table residue (n int); prepare p as select 1; listen channel;
			select pg_advisory_lock(7); declare c cursor with hold for select 1; select set_config('app.x', 'y', false); set datestyle = 'German'`, writing)).Want(200)
	}

	a.Post("/sql",
		sqlBody(`select current_setting('work_mem') <> '64kB', to_regclass('residue') is null, (select count(*) from pg_prepared_statements), (select count(*) from pg_listening_channels()),
		(select count(*) from pg_cursors where is_holdable), coalesce(current_setting('app.x', true), '')`)).Want(200).
		Content("results.0.rows.0.0", true).Content("results.0.rows.0.1", true).Content("results.0.rows.0.2", 0).
		Content("results.0.rows.0.3", 0).Content("results.0.rows.0.4", 0).
		Content("results.0.rows.0.5", "")

	// A session that the pool has closed may end after the response.
	pgtest.Eventually(t, "the locks are released", func() bool {
		return query[int](t, a, `select count(*) from pg_locks where locktype = 'advisory' and objid = 7
			and database = (select oid from pg_database where datname = current_database())`) == 0
	})

	a.CreateTable("as_ever")
}

func TestRunSQLRefuses(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	r := a.Post("/sql", sqlBody("select 'é';\nselect nope from pg_class")).Want(422).Code("sql_error").Field("query")
	if got := fmt.Sprint(r.Metadata("postgres.position"), r.Metadata("postgres.statement"),
		r.Metadata("postgres.sqlstate"),
		r.Metadata("postgres.message"), r.Metadata("postgres.line"),
		r.Metadata("postgres.column")); got != `20242703column "nope" does not exist28` {
		t.Errorf("got %s", got)
	}

	for body, field := range map[string]string{
		`{}`:                       "query",
		sqlBody(""):                "query",
		sqlBody(" ; -- nothing\n"): "query",
		sqlBody(strings.Repeat("select 1;", 20_001)):                    "query",
		sqlBody("select 1", `"timeout_ms": 0`):                          "timeout_ms",
		sqlBody("select 1", `"timeout_ms": 30001`):                      "timeout_ms",
		sqlBody("select 1", `"max_rows": 10001`):                        "max_rows",
		sqlBody("select 1", `"max_rows": "1"`):                          "max_rows",
		sqlBody("select 1", `"read_only": "no"`):                        "read_only",
		sqlBody("select 1", `"parameters": {}`):                         "parameters",
		sqlBody("select 1; select $1", `"parameters": [1]`):             "parameters",
		sqlBody("select $1::text", `"parameters": ["\u0000"]`):          "parameters.0",
		sqlBody("select $1, $2", `"parameters": ["1"]`):                 "query",
		sqlBody("select 1", `"projectUUID": "`+apitest.MissingUUID+`"`): "projectUUID",
	} {
		a.Post("/sql", body).Want(422).Field(field)
	}

	a.Post("/sql", `{`).Want(400)
}

func TestListQueries(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	a.Post("/sql", sqlBody("select 1")).Want(200)
	a.Post("/sql", sqlBody("select nope")).Want(422)
	a.Post("/sql", sqlBody("select $1::text -- "+strings.Repeat("x", 20_000), writing, `"parameters": ["secret"]`)).
		Want(200)

	r := a.Get("/sql/history?limit=2").Want(200).Content("0.query", "select 1").Content("0.rows", 1).
		Content("0.errorCode", nil).Content("0.readOnly", true).Content("0.runBy", a.User).
		Content("1.errorCode", "42703").Content("1.rows", nil)
	if fmt.Sprint(r.Metadata("total")) != "3" {
		t.Errorf("got %v queries, want 3", r.Metadata("total"))
	}

	r = a.Get("/sql/history?order=desc&sort=startedAt&limit=1").Want(200).Content("0.readOnly", false)
	if got := len(r.Get("0.query").(string)); got != 10_000 || strings.Contains(string(r.Body), "secret") {
		t.Errorf("the history has %d characters of the query, or contains its parameters", got)
	}

	execute(t, a,
		"insert into socle.queries (uuid, query, read_only, run_by) select ('00000000-0000-7000-8000-' || lpad(n::text, 12, '0'))::uuid, 'old', true, gen_random_uuid() from generate_series(1, 1200) n")

	a.Post("/sql", sqlBody("select 2")).Want(200)

	if got := query[int](t, a, "select count(*) from socle.queries"); got != 1000 {
		t.Errorf("got %d queries, want 1000", got)
	}

	a.Get("/sql/history?sort=query").Want(400).Field("sort")
	a.Member(5).Get("/sql/history").Want(403)
	a.OtherUser().Get("/sql/history").Want(401)
}
