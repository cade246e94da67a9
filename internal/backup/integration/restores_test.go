package integration_test

import (
	"bytes"
	"fmt"
	"mime/multipart"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/api/apitest"
	"github.com/socle-dev/socle/internal/pg"
)

// waitForRestore waits until a restore has a status, and returns it.
func waitForRestore(t *testing.T, a *apitest.API, id string, statuses ...string) *apitest.Reply {
	t.Helper()

	return waitForStatus(t, a, "/restores/"+id, statuses)
}

// makeBackup makes a backup and returns its UUID.
func makeBackup(t *testing.T, a *apitest.API) string {
	t.Helper()

	id := startBackup(t, a)
	waitForBackup(t, a, id, "completed", "failed").Content("status", "completed")

	return id
}

// restoreInPlace restores a backup in place.
func restoreInPlace(t *testing.T, a *apitest.API, id string) string {
	t.Helper()

	r := a.Post("/backups/"+id+"/restore", `{"target": "in_place"}`).Want(201).Content("status", "pending").
		Content("error", "").Get("uuid").(string)
	waitForRestore(t, a, r, "completed", "failed").Content("status", "completed").Content("error", "")

	return r
}

// upload uploads a file into a container.
func upload(t *testing.T, a *apitest.API, container, name, content string) string {
	t.Helper()

	var body bytes.Buffer
	w := multipart.NewWriter(&body)
	if err := w.WriteField("full_file_name", name); err != nil {
		t.Fatal(err)
	}

	f, err := w.CreateFormFile("file", "file")
	if err != nil {
		t.Fatal(err)
	}

	fmt.Fprint(f, content)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}

	return a.Send("POST", "/containers/"+container+"/files", body.String(), "Content-Type: "+w.FormDataContentType()).
		Want(201).Get("uuid").(string)
}

// execAsOwner executes statements as the project's owner.
func execAsOwner(t *testing.T, a *apitest.API, sql string) {
	t.Helper()

	conn, err := a.Server.Projects().Open(uuid.MustParse(a.Project)).Owner().Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()

	if _, err := conn.Conn().PgConn().Exec(t.Context(), sql).ReadAll(); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

// connectOwner connects as the project's owner.
func connectOwner(t *testing.T, a *apitest.API) *pgx.Conn {
	t.Helper()

	pool := a.Server.Projects().Open(uuid.MustParse(a.Project)).Owner()
	conn, err := pgx.ConnectConfig(t.Context(), pool.Config().ConnConfig.Copy())
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() { conn.Close(t.Context()) })
	return conn
}

// query runs a query in the project's database directly, bypassing the server.
func query(t *testing.T, a *apitest.API, sql string) string {
	t.Helper()

	text, err := pg.Value[string](t.Context(), a.ProjectPool(), sql)
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}

	return text
}

// databases returns the databases of a project.
func databases(t *testing.T, a *apitest.API) string {
	t.Helper()

	return query(t, a,
		`select string_agg(datname, ',' order by datname) from pg_database where datname like '`+a.DatabaseName()+
			`%' and datname !~ '_(proof|asked)_'`)
}

// fingerprint has everything in a project's database that a restore has to bring back: definitions,
// privileges and rows.
func fingerprint(t *testing.T, a *apitest.API) string {
	t.Helper()

	conn := a.ProjectPool()

	var all strings.Builder
	const users = ` !~ '^(pg_|information_schema)'`
	acl := func(column string) string {
		return "(select array_agg(x order by x::text) from unnest(" + column + ") x)"
	}
	for _, sql := range []string{
		`select row(nspname, nspowner::regrole, ` + acl("nspacl") + `)::text from pg_namespace where nspname` + users,
		`select row(oid::regclass, relkind, relpersistence, relrowsecurity, relforcerowsecurity, relispopulated, relowner::regrole, ` + acl(`coalesce(relacl, acldefault(case relkind when 'S' then 's' else 'r' end::"char", relowner))`) + `, pg_get_expr(relpartbound, oid), obj_description(oid, 'pg_class'),
			case when relkind in ('v', 'm') then pg_get_viewdef(oid) when relkind in ('i', 'I') then pg_get_indexdef(oid) end)::text from pg_class where relnamespace::regnamespace::text` + users,
		`select row(attrelid::regclass, attname, format_type(atttypid, atttypmod), attnotnull, attidentity, attgenerated, ` + acl("attacl") + `, pg_get_expr(d.adbin, d.adrelid), col_description(attrelid, attnum))::text
			from pg_attribute join pg_class c on c.oid = attrelid left join pg_attrdef d on d.adrelid = attrelid and d.adnum = attnum
			where attnum > 0 and not attisdropped and relnamespace::regnamespace::text` + users,
		`select row(conrelid::regclass, contypid::regtype, conname, pg_get_constraintdef(oid))::text from pg_constraint where connamespace::regnamespace::text` + users,
		`select row(oid::regprocedure, proowner::regrole, ` + acl("proacl") +
			`, prosecdef, case when prokind <> 'a' then pg_get_functiondef(oid) end)::text from pg_proc where pronamespace::regnamespace::text` + users,
		`select p::text from pg_policies p`,
		`select row(tgrelid::regclass, pg_get_triggerdef(oid), tgenabled)::text from pg_trigger where not tgisinternal`,
		`select row(evtname, evtenabled, evtfoid::regproc)::text from pg_event_trigger`,
		`select row(oid::regtype, typtype, ` + acl("typacl") +
			`, typowner::regrole, (select array_agg(enumlabel order by enumsortorder) from pg_enum where enumtypid = t.oid))::text from pg_type t
			where typcategory <> 'A' and typnamespace::regnamespace::text` + users,
		`select row(defaclrole::regrole, nullif(defaclnamespace, 0)::regnamespace, defaclobjtype, ` + acl("defaclacl") +
			`)::text from pg_default_acl`,
		`select s::text from pg_sequences s where sequencename not in ('audit_pending_id_seq', 'catalogue_changes')`,
		`select row(setrole::regrole, setconfig)::text from pg_db_role_setting s join pg_database d on d.oid = s.setdatabase where datname = current_database()`,
		`select row(castsource::regtype, casttarget::regtype, castcontext)::text from pg_cast where oid >= 16384`,
	} {
		lines, err := pg.Values[string](t.Context(), conn, sql)
		if err != nil {
			t.Fatalf("%s: %v", sql, err)
		}

		slices.Sort(lines)
		all.WriteString(strings.Join(lines, "\n") + "\n")
	}

	tables, err := pg.Values[string](t.Context(), conn,
		`select oid::regclass::text from pg_class where relkind in ('r', 'm') and relispopulated and relnamespace::regnamespace::text !~ '^(pg_|information_schema)'
			and relname not in ('vault_keys', 'opened_vault_keys') order by 1`) // a new project has a key of its own
	if err != nil {
		t.Fatal(err)
	}

	for _, table := range tables {
		// not the user's
		if strings.HasSuffix(table, "migrations") || strings.HasSuffix(table, "catalogue_version") ||
			strings.Contains(table, "audit") || table == "storage.uploads" || table == "storage.variants" {
			continue
		}

		row := "t"
		switch table {
		case "storage.files":
			row = "to_jsonb(t) - 'blob_uuid' - 'version'" // replaced by a restore
		case "cron.job":
			row = "to_jsonb(t) - 'next_run_at'" // computed again
		}

		sum, err := pg.Value[string](t.Context(), conn,
			"select count(*) || ' ' || coalesce(md5(string_agg(("+row+")::text, '|' order by ("+row+
				")::text)), '') from only "+table+" t")
		if err != nil {
			t.Fatal(err)
		}

		all.WriteString(table + " " + sum + "\n")
	}

	return all.String()
}

// gifPixel is a picture.
const gifPixel = "GIF89a\x01\x00\x01\x00\x80\x00\x00\x00\x00\x00\xff\xff\xff,\x00\x00\x00\x00\x01\x00\x01\x00\x00\x02\x02D\x01\x00;"

// TestRestoreInPlace restores a project to an earlier state: tables, forms, files, and responses of
// the rows API.
func TestRestoreInPlace(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	a.DisableProofs()
	a.CreateTable("orders", "note text")
	execAsOwner(t, a,
		`insert into public.orders values (1, 'first'); grant select on public.orders to anon; create policy all_of_it on public.orders to anon using (true)`)

	form := a.Create("/forms", `{"name": "contact"}`)
	container := a.Create("/containers", `{"name": "reports"}`)
	kept := upload(t, a, container, "a.txt", "as it was")
	gone := upload(t, a, container, "b.txt", "to be deleted")
	variant := "/containers/" + container + "/files/" + upload(t, a, container, "dot.gif", gifPixel) +
		"/download?format=png"
	a.Get(variant).Want(200)

	id := makeBackup(t, a)
	before := fingerprint(t, a)

	execAsOwner(t, a, `update public.orders set note = 'changed'; create table public.later ()`)
	a.Delete("/forms/" + form).Want(200)

	later := a.Create("/forms", `{"name": "later"}`)
	a.Delete("/containers/" + container + "/files/" + gone).Want(200)
	r := restoreInPlace(t, a, id)

	if diff := cmp.Diff(before, fingerprint(t, a)); diff != "" {
		t.Errorf("the restored database differs (-want +got):\n%s", diff)
	}

	a.Get("/forms/"+form).Want(200).Content("name", "contact")
	a.Get("/forms/" + later).Want(404)

	for file, want := range map[string]string{kept: "as it was", gone: "to be deleted"} {
		if got := a.Get("/containers/" + container + "/files/" + file + "/download").
			Want(200); string(got.Body) != want {
			t.Errorf("got content %q, want %q", got.Body, want)
		}
	}

	a.Get("/tables/orders").Want(200)
	a.CreateTable("after") // the owner's login still works

	// The replaced database is kept until it is discarded.
	if n := query(t, a, "select count(*)::text from storage.variants"); n != "0" {
		t.Errorf("got %s variants, whose blobs belong to the replaced database", n)
	}

	a.Get(variant).Want(200)

	if n := len(strings.Split(databases(t, a), ",")); n != 2 {
		t.Errorf("got %d databases, want 2: %s", n, databases(t, a))
	}
	if a.Get("/restores/"+r).Want(200).Get("keptUntil") == nil {
		t.Error("keptUntil is missing")
	}
	if files := a.StoredFiles("files/*/*"); len(files) < 3 {
		t.Errorf("got blobs %v, want those of both databases", files)
	}

	a.Delete("/restores/" + r).Want(200)
	runCleanUp(t, a)
	waitUntil(t, "the replaced database is dropped", func() bool { return !strings.Contains(databases(t, a), ",") })
	waitUntil(t, "keptUntil is null", func() bool { return a.Get("/restores/"+r).Want(200).Get("keptUntil") == nil })
	a.Delete("/restores/" + r).Want(409).Code("nothing_kept")

	if got := a.Get("/containers/" + container + "/files/" + kept + "/download").
		Want(200); string(got.Body) != "as it was" {
		t.Errorf("got content %q", got.Body)
	}
	if files := a.StoredFiles("files/*/*"); len(files) != 3+1 {
		t.Errorf("got blobs %v, want those of 3 files and a variant", files)
	}
}

// waitUntil waits for a condition.
func waitUntil(t *testing.T, condition string, met func() bool) {
	t.Helper()

	apitest.Until(t, condition, met)
}

// unusualObjects has objects of a user's database that a careless restore loses.
const unusualObjects = `
	create type public.mood as enum ('sad', 'ok', 'happy');
	create table public.people (id int generated always as identity primary key, by_default int generated by default as identity (start 100 increment 7), mood public.mood not null default 'ok');
	insert into public.people (mood) values ('sad'), ('happy');
	create table public.measured (at date not null, n int) partition by range (at);
	create table public.measured_2025 partition of public.measured for values from ('2025-01-01') to ('2026-01-01');
	create table public.measured_rest partition of public.measured default;
	create index on public.measured (n);
	insert into public.measured values ('2025-05-05', 1), ('2030-01-01', 2);
	create materialized view public.summed as select sum(n) from public.measured;
	create materialized view public.unpopulated as select 1 as n with no data;
	create unlogged table public.quick (id serial, b bytea); insert into public.quick (b) values ('\x00ff');
	create table public.parent (id int); create table public.child (more text) inherits (public.parent); insert into public.child values (1, 'x'); insert into public.parent values (2);
	create table public.forced (id int); insert into public.forced values (1), (2); alter table public.forced force row level security;
	create table public.open (id int); alter table public.open disable row level security;
	create policy mine on public.people for select to authenticated using (id > 1);
	create policy owners on public.people to current_user using (true);
	grant select on public.people to anon; grant update (mood) on public.people to authenticated; revoke all on public.quick from service_role;
	revoke insert on public.forced from current_user;
	create schema private; grant usage on schema private to authenticated; revoke usage on schema public from anon;
	create function private.add(a int, b int default 1) returns int language sql stable as 'select a + b';
	grant execute on function private.add(int, int) to anon with grant option;
	create procedure private.act() language plpgsql security definer as 'begin end';
	create aggregate private.total(int) (sfunc = int4pl, stype = int);
	create domain public.small as int check (value < 10); revoke usage on type public.small from anon;
	create type public.span as range (subtype = int, multirange_type_name = public.spans); create type public.period as range (subtype = date, multirange_type_name = private."Periods");
	do $d$ begin
		if current_setting('server_version_num')::int < 170000 then -- then a multirange has privileges of its own, of which pg_dump says nothing
			revoke usage on type public.spans from public; grant usage on type public.spans to anon with grant option; grant usage on type private."Periods" to authenticated, service_role;
		end if;
	end $d$;
	alter default privileges grant select on tables to anon; alter default privileges revoke all on functions from service_role; alter default privileges in schema private grant execute on functions to authenticated;
	create sequence public.counted increment 5 cycle; select nextval('public.counted'), nextval('public.counted'); grant usage on sequence public.counted to authenticated;
	create view public.seen with (security_barrier) as select id from public.people; grant select on public.seen to anon;
	create rule nothing as on insert to public.seen do instead nothing;
	create function public.touch() returns trigger language plpgsql as 'begin return new; end';
	create trigger touch before update on public.people for each row execute function public.touch(); alter table public.people disable trigger touch;
	create constraint trigger later after insert on public.people deferrable initially deferred for each row execute function public.touch();
	alter table public.child add constraint positive check (id > 0) not valid;
	create statistics public.stats on id, mood from public.people;
	comment on table public.people is E'it''s\nthem'; comment on column public.people.mood is 'of today'; comment on schema private is 'hidden';
	create table public.doubled (n int); insert into public.doubled values (1), (1);
	create table public.kinds (gone int, f float8, twice float8 generated always as (f * 2) stored, g real, m money, at timestamptz, i interval, j json, x xml, a text[],
		r tstzrange, b bytea, v tsvector, c "char", n numeric, o regclass, primary key (f));
	alter table public.kinds drop gone;
	insert into public.kinds (f, g, m, at, i, j, x, a, r, b, v, c, n, o) select n / 3.0, n / 7.0, n::money, timestamptz '2026-03-29 01:30+01' + n * interval '1 h', n * interval '1 day 3 s', '{"a" :  1}', '<a b="c"/>', array['x', null, '\N', E'\t"'],
		tstzrange(timestamptz '2026-01-01 00:00+00' - n * interval '1 year', null), decode('00ff', 'hex'), 'a:1 b:2', 'c', case n when 0 then 'NaN' else n / 7.0 end, 'public.people'
		from generate_series(0, 40) n;
	create table public.wide (n int, t text); alter table public.wide alter t set storage plain;
	insert into public.wide select n, repeat('x', case when n % 3 = 0 then 5000 else 10 end) from generate_series(1, 60) n;
	create table public."two
lines" ("a""b" int, "$(id)" text); insert into public."two
lines" select n, 'it''s ' || n from generate_series(1, 10) n;
	create table public."-rf" (id int); create table public."--all" (id int); create table public."dbname=x" (id int);
	create schema "odd;schema"; create table "odd;schema".t as select 1 as n; create schema "storage x"; create table "storage x".files (n int); insert into "storage x".files values (1);
	grant select on "storage x".files to anon; create schema "storage
x"; create table public."two; drop schema public" (); grant select on public."two
lines" to anon`

// TestRestoreUnusual restores unusual objects with equal fingerprints, in place and as a new
// project.
func TestRestoreUnusual(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	execAsOwner(t, a, unusualObjects)

	conn := connectOwner(t, a)
	if _, err := conn.Exec(t.Context(), "create unique index concurrently invalid on public.doubled (n)"); err == nil {
		t.Fatal("the index is valid")
	}

	before := fingerprint(t, a)
	id := makeBackup(t, a)
	conn.Close(t.Context())

	n := a.Post("/backups/"+id+"/restore", `{"target": "new", "name": "copied"}`).Want(201).Content("target", "new")
	waitForRestore(t, a, n.Get("uuid").(string), "completed", "failed").Content("status", "completed").
		Content("error", "").
		Content("keptUntil", nil)

	copied := a.WithProject(n.Get("projectUuid").(string))
	requireSame(t, before, strings.ReplaceAll(fingerprint(t, copied), copied.DatabaseName(), a.DatabaseName()))
	copied.Get("/tables/people").Want(200)
	copied.CreateTable("after")
	waitUntil(t, "the empty database is dropped", func() bool { return !strings.Contains(databases(t, copied), ",") })

	execAsOwner(t, a, `drop table public.people cascade`)
	restoreInPlace(t, a, id)
	requireSame(t, before, fingerprint(t, a))
	a.Get("/tables/people").Want(200)
	waitUntil(t, "the backup is proven", func() bool {
		return a.Get("/backups/"+id).Want(200).Metadata("triedAt") != nil
	})

	if why := a.Get("/backups/" + id).Metadata("proofError"); why != "" {
		t.Errorf("got proof error %v", why)
	}
}

// requireSame fails the test unless two fingerprints are equal except for an index that was
// invalid.
func requireSame(t *testing.T, want, got string) {
	t.Helper()

	lines := func(text string) []string {
		return slices.DeleteFunc(strings.Split(text, "\n"), func(line string) bool {
			return strings.Contains(line, "INDEX invalid") || strings.HasPrefix(line, "(invalid,") ||
				strings.HasPrefix(line, "(public.invalid,")
		})
	}
	if diff := cmp.Diff(lines(want), lines(got)); diff != "" {
		t.Errorf("the restored database differs (-want +got):\n%s", diff)
	}
}
