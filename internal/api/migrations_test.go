package api_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

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

// richSchema has an object of nearly every kind.
const richSchema = `
create extension if not exists pg_trgm;
create schema sales;
create type public.mood as enum ('sad', 'happy');
create type public.address as (street text, town text);
create domain public.isbn as text check (value ~ '^[0-9-]+$');
create sequence public.numbers start 100 increment 5;
create function public.stamp() returns trigger language plpgsql as $$ begin new.changed_at = now(); return new; end $$;
create function public.total(price numeric, vat numeric default 0.2) returns numeric language sql immutable as 'select price * (1 + vat)';
create table public.authors (
	id bigint generated always as identity primary key,
	name text not null collate "C",
	mood public.mood not null default 'sad',
	home public.address,
	number integer default nextval('public.numbers'),
	changed_at timestamptz default now()
);
create table sales.books (
	id serial primary key,
	author_id bigint references public.authors on delete cascade,
	title text not null,
	isbn public.isbn,
	price numeric(8,2) not null default 1 check (price > 0),
	gross numeric generated always as (public.total(price)) stored,
	tags text[] default '{}',
	constraint books_title unique (title)
);
alter table sales.books enable row level security;
alter table sales.books force row level security;
alter table public.authors disable row level security;
create index books_search on sales.books using gin (title extensions.gin_trgm_ops);
create index books_cheap on sales.books (price) where price < 10;
create view public.names as select a.id, a.name, count(b.id) as books from public.authors a left join sales.books b on b.author_id = a.id group by a.id;
create materialized view public.moods as select mood, count(*) from public.authors group by mood;
create trigger stamp before update on public.authors for each row execute function public.stamp();
create policy own on sales.books for select to authenticated using (title <> current_user);
create policy write on sales.books for insert to anon with check (price > 5);
grant usage on schema sales to anon, authenticated;
grant select on public.authors to anon;
grant update (name) on public.authors to authenticated;
revoke all on public.names from service_role;
grant execute on function public.total(numeric, numeric) to anon;
alter default privileges in schema sales grant select on tables to anon;
create table sales.log (at date not null, what text) partition by range (at);
create table sales.log_2026 partition of sales.log for values from ('2026-01-01') to ('2027-01-01');
create statistics sales.books_stats on author_id, price from sales.books;
create rule ignore as on delete to sales.log do instead nothing;
comment on table sales.books is 'Books; for sale';
comment on column sales.books.price is 'in euro';
`

// changedSchema changes nearly everything of richSchema.
const changedSchema = `
alter type public.mood add value 'angry' before 'happy';
alter table public.authors alter column mood drop default;
alter table public.authors add column born date;
alter table public.authors alter column name drop not null;
alter table public.authors alter column number type bigint;
alter table public.authors drop column home;
drop type public.address;
drop materialized view public.moods;
alter table sales.books alter column isbn set not null;
alter table sales.books alter column price set default 2;
alter table sales.books drop constraint books_price_check, add constraint positive check (price >= 0);
alter table sales.books drop constraint books_title;
alter table sales.books no force row level security;
drop policy write on sales.books;
drop policy own on sales.books;
alter table sales.books alter column title type varchar(200);
alter sequence public.numbers increment 7;
drop index sales.books_cheap;
create unique index books_isbn on sales.books (isbn);
create or replace function public.stamp() returns trigger language plpgsql as $$ begin new.changed_at = clock_timestamp(); return new; end $$;
drop trigger stamp on public.authors;
create trigger stamp before insert or update on public.authors for each row execute function public.stamp();
create policy own on sales.books for select to anon, authenticated using (price < 3);
revoke select on public.authors from anon;
grant insert on public.authors to authenticated;
grant select on public.names to service_role;
create or replace view public.names as select a.id, a.name, count(b.id) as books, max(b.price) as best from public.authors a left join sales.books b on b.author_id = a.id group by a.id;
comment on table sales.books is null;
comment on column sales.books.price is 'in dollars';
drop rule ignore on sales.log;
create table public.orders (id uuid primary key default gen_random_uuid(), book integer references sales.books);
alter table public.orders disable row level security;
`

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

// TestDiffMigrations: the files of pull and diff turn an empty project into the same one, for a
// schema with objects of nearly every kind.
func TestDiffMigrations(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	a.Post("/migrations", migrationsBody(t, "", richSchema)).Want(200).Content("applied.0.name", "step_1")

	files, warnings := diff(t, a)
	if strings.Contains(warnings, "still differs") {
		t.Errorf("pull: got warnings\n%s", warnings)
	}

	b := a.WithProject(a.CreateProject("copy"))
	b.Post("/migrations", migrationsBody(t, "", files...)).Want(200)
	if more, warnings := diff(t, b, files...); len(more) > 0 || warnings != "" {
		t.Errorf("diff of the copy: got %q, warnings\n%s", more, warnings)
	}
	if more, warnings := diff(t, a, files...); len(more) > 0 || warnings != "" {
		t.Errorf("diff after pull: got %q, warnings\n%s", more, warnings)
	}

	for _, sql := range strings.SplitAfter(changedSchema, ";\n") {
		if strings.TrimSpace(sql) != "" {
			runSQL(t, a, sql)
		}
	}

	runSQL(t, a, "drop index sales.books_search")
	a.Delete("/extensions/pg_trgm").Want(200)

	changes, warnings := diff(t, a, files...)
	if len(changes) != 3 { // new values of an enum, the rest, the extension
		t.Errorf("got %d files, want 3:\n%s", len(changes), strings.Join(changes, "=====\n"))
	}

	for _, want := range []string{"destroys data | DROP TABLE", "destroys data | ALTER TABLE public.authors DROP COLUMN home",
		"still differs"} {
		if strings.Contains(warnings, want) != (want == "destroys data | ALTER TABLE public.authors DROP COLUMN home") {
			t.Errorf("warnings: %q unexpected or missing in\n%s", want, warnings)
		}
	}

	all := append(files, changes...)
	b.Post("/migrations", migrationsBody(t, "", all...)).Want(200)
	if more, warnings := diff(t, a, all...); len(more) > 0 || warnings != "" {
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
		{file(`"version": "1", "name": "a", "sql": ""`), "migrations.0.version"},
		{file(`"version": "20261123101501", "name": "a b", "sql": ""`), "migrations.0.name"},
		{file(`"version": "20261123101501", "name": "a", "sql": "select 1", "checksum": "abc"`), "migrations.0.checksum"},
		{file(`"version": "20261123101501", "name": "a", "sql": "begin; select 1"`), "migrations.0.sql"},
		{file(`"version": "20261123101501", "name": "a", "sql": "copy t from stdin"`), "migrations.0.sql"},
		{file(`"version": "20261123101501", "name": "a", "sql": "select '\u0000'"`), "migrations.0.sql"},
		{file(`"version": "20261123101501", "name": "a", "sql": "do 'begin commit; end'"`), "migrations.0.sql"},
		{file(`"version": "20261123101501", "name": "a", "sql": "drop extension pg_trgm"`), "migrations.0.sql"},
		{file(`"version": "20261123101501", "name": "a", "sql": "create extension plperlu"`), "migrations.0.sql"},
		{file(`"version": "20261123101502", "name": "a", "sql": ""}, {"version": "20261123101501", "name": "a", "sql": ""`),
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
