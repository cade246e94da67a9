package api_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/socle-dev/socle/internal/api/apitest"
)

// setDatabaseQuota sets the quota of a project's database to its current size, or back to the
// default.
func setDatabaseQuota(t *testing.T, administrator, a *apitest.API, full bool) {
	t.Helper()

	quota := `{"max_database_bytes": 1}`
	if !full {
		quota = `{"max_database_bytes": 1000000000}`
	}

	administrator.Put("/projects/"+a.Project+"/quota", quota).Want(200)
}

// TestDatabaseQuota checks that a full database refuses requests that make it larger, and allows
// those that make it smaller.
func TestDatabaseQuota(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	administrator := a.Administrator()

	path := "/projects/" + a.Project + "/quota"
	a.CreateTable("orders", "note text")
	a.CreateTable("spare", "note text")
	a.CreateTable("doomed", "note text")

	hook := a.Create("/projects/"+a.Project+"/webhooks", `{"name": "hook", "endpoint": "https://example.com/"}`)
	form := a.Create("/forms", `{"name": "Survey"}`)
	field := a.Create("/forms/"+form+"/fields", `{"label": "Name", "type": "text"}`)
	a.Put("/forms/"+form, `{"state": "open"}`).Want(200)

	partial := a.Post("/forms/"+form+"/responses", `{"answers": {}, "partial": true}`).Want(201)

	size, err := a.Get(path).Want(200).Content("maxDatabaseBytes", 1<<40).Get("databaseBytes").(json.Number).Int64()
	const caches = 256 << 10 // bytes of PostgreSQL's own cache files, which come and go
	if measured := query[int64](t, a, "select pg_database_size(current_database())"); err != nil ||
		size > measured+caches || size < measured/2 {
		t.Errorf("got %d bytes (%v), want about %d", size, err, measured)
	}

	a.Put(path, `{"max_database_bytes": 1}`).Want(403)
	administrator.Put(path, `{"max_database_bytes": -1}`).Want(422).Field("max_database_bytes")
	administrator.Put(path, `{"max_files": 5, "max_database_bytes": 1}`).Want(200).Content("maxFiles", 5).
		Content("maxDatabaseBytes", 1)
	a.Get(path).Want(200).Content("maxFiles", 5).Content("maxDatabaseBytes", 1)

	refused := func(r *apitest.Reply, status int) { t.Helper(); r.Want(status).Code("quota_exceeded") }
	refused(a.Post("/tables/orders/indexes", `{"columns": ["note"]}`), 413)
	refused(a.Post("/tables/orders/constraints", `{"name": "k", "type": "unique", "columns": ["note"]}`), 413)
	refused(a.Post("/tables/orders/duplicate", `{"name": "copy", "with_rows": true}`), 413)
	refused(a.Put("/tables/orders/columns/note", `{"type": "varchar(10)"}`), 413)
	refused(a.Put("/tables/orders/columns/note", `{"unique": true}`), 413)
	refused(a.Post("/extensions", `{"name": "postgis"}`), 413)
	refused(a.Post("/projects/"+a.Project+"/webhooks", `{"name": "more", "endpoint": "https://example.com/"}`), 413)
	refused(a.Post("/projects/"+a.Project+"/webhooks/"+hook+"/test", ""), 413)
	refused(a.Put("/projects/"+a.Project+"/edge-functions/more", `{"code": "Deno.serve(() => new Response());"}`), 413)
	refused(a.Post("/tables/orders/columns", `{"name": "more", "type": "uuid", "defaultValue": "gen_random_uuid()"}`),
		400)

	refused(a.Send("POST", "/tables/orders/import", "id,note\n1,x\n", "Content-Type: text/csv"), 413)
	refused(a.Send("POST", "/tables/import?name=made", "id,note\n1,x\n", "Content-Type: text/csv"), 413)
	refused(a.Post("/forms/"+form+"/responses", `{"answers": {"`+field+`": "Ann"}}`), 413)

	refused(
		a.Put("/forms/"+form+"/responses/"+partial.Get("uuid").(string),
			`{"token": "`+partial.Metadata("token").(string)+`"}`), 413,
	)

	refused(a.Post("/migrations/diff", `{"migrations": []}`), 413)
	refused(a.Post("/migrations", migrationsBody(t, "", "insert into orders select n, repeat('x', 100) from generate_series(1, 1000) n")), 413)
	refused(a.Post("/migrations", migrationsBody(t, "", "-- socle: no-transaction\nselect 1")), 413)
	a.Post("/migrations", migrationsBody(t, "", "delete from orders")).Want(200)

	a.Post("/tables/orders/indexes", `{"columns": "note"}`).Want(422)
	a.Post("/tables/missing/indexes", `{"columns": "note"}`).Want(404)
	a.Post("/tables/missing/indexes", `{"columns": ["note"]}`).Want(413)

	a.CreateTable("small", "note text")
	a.Put("/tables/orders/columns/note", `{"name": "remark"}`).Want(200)
	a.Delete("/tables/orders/columns/remark").Want(200)
	a.Delete("/tables/small").Want(200)
	a.Delete("/forms/" + form + "/responses/" + partial.Get("uuid").(string)).Want(200)

	reports := a.Create("/containers", `{"name": "reports"}`)
	refused(upload(a, reports, "a.txt", "hello"), 413)
	refused(a.Send("PUT", "/files/"+a.Project+"/"+reports+"/a.txt", "hello", "Content-Type: text/plain"), 413)
	refused(a.Send("POST", "/containers/"+reports+"/tus", "", "Tus-Resumable: 1.0.0", "Upload-Length: 5",
		"Upload-Metadata: filename YS50eHQ="), 413)

	setDatabaseQuota(t, administrator, a, false)
	a.Post("/tables/orders/indexes", `{"columns": ["id"]}`).Want(201)
	a.Post("/forms/"+form+"/responses", `{"answers": {"`+field+`": "Ann"}}`).Want(201)
	administrator.Put(path, `{"max_files": 6}`).Want(200).Content("maxDatabaseBytes", 1000000000)
}

// TestDatabaseQuotaOfSQL checks that SQL can free space in a full database, and not use more.
func TestDatabaseQuotaOfSQL(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	administrator := a.Administrator()
	run := func(sql string) *apitest.Reply { return a.Post("/sql", sqlBody(sql, writing)) }

	run(`create table orders (id int primary key, note text); create table others (id int primary key, note text); create table gone (id int);
		insert into orders select n, repeat('x', 100) from generate_series(1, 1000) n; insert into others select * from orders; insert into gone select 1;
		create table parents (id int primary key);
		create function add() returns trigger language plpgsql as $$ begin insert into public.others select n, repeat('y', 100) from generate_series(2000, 3000) n; return null; end $$;
		create constraint trigger later after delete on orders deferrable initially deferred for each row when (old.id = 7) execute function add();
		create function again() returns trigger language plpgsql as $$ begin set constraints public.later deferred; delete from public.orders where id = 7; return null; end $$;
		create constraint trigger twice after delete on orders deferrable initially deferred for each row when (old.id = 8) execute function again()`).Want(200)

	setDatabaseQuota(t, administrator, a, true)

	for name, sql := range map[string]string{
		"rows":                 "insert into orders select n, repeat('x', 100) from generate_series(2000, 3000) n",
		"rows for others":      "delete from others where id < 100; insert into orders select n, repeat('x', 100) from generate_series(2000, 3000) n",
		"updates":              "update orders set note = note || 'y'",
		"a table":              "create table more as select * from orders",
		"an unlogged table":    "create unlogged table more as select * from orders",
		"a temporary table":    "create temporary table more as select * from orders",
		"an index":             "create index on orders (note)",
		"a function":           "do $$ begin execute format('create function f() returns text language sql as %L', 'select ''' || (select string_agg(md5(n::text), '') from generate_series(1, 5000) n) || ''''); end $$",
		"a view of rows":       "create materialized view more as select * from orders",
		"a trigger's rows":     "delete from orders where id = 7",
		"by other operators":   "set search_path = public, pg_catalog; create function never(name, name) returns bool language sql as 'select false'; create operator public.= (leftarg = name, rightarg = name, function = never); create table more as select * from orders",
		"a sequence and a row": "create table more (id serial)",
	} {
		if r := run(sql); r.Status != 413 {
			t.Errorf("%s: got %d %s", name, r.Status, r.Body)
		}
	}

	// After the check at the commit, nothing can be written.
	if r := run("delete from orders where id = 8"); r.Status != 422 || !strings.Contains(string(r.Body), "25006") {
		t.Errorf("a constraint deferred again: got %d %s", r.Status, r.Body)
	}
	if n := query[int](t, a, "select (select count(*) from orders) + (select count(*) from others)"); n != 2000 {
		t.Errorf("got %d rows, want 2000", n)
	}

	run("select count(*) from orders").Want(200)
	run("delete from orders where id > 500").Want(200)
	run("update orders set note = note where false").Want(200)
	run("truncate others").Want(200)
	run("drop table gone").Want(200)

	// fewer rows than before
	run("truncate orders; insert into orders select n, repeat('x', 100) from generate_series(1, 200) n").Want(200)
	// read-only transaction
	a.Post("/sql", sqlBody("insert into orders select n from generate_series(2000, 100000) n")).Want(422)

	// A database that user code enlarges during deletions refuses further deletions until it is
	// small again.
	execute(t, a,
		`do $$ begin execute format('copy (select) to program ''cat >/dev/null; truncate -s 2G base/%s/t0_1''', (select oid from pg_database where datname = current_database())); end $$`)

	a.Get("/projects/" + a.Project + "/quota").Want(200)
	run("delete from orders").Want(413).Code("quota_exceeded")
	a.Post("/sql", sqlBody("select count(*) from orders")).Want(200)
	execute(t, a,
		`do $$ begin execute format('copy (select) to program ''cat >/dev/null; rm base/%s/t0_1''', (select oid from pg_database where datname = current_database())); end $$`)

	a.Get("/projects/" + a.Project + "/quota").Want(200)
	run("delete from orders where id > 100").Want(200)
	setDatabaseQuota(t, administrator, a, false)
	run("insert into orders select n from generate_series(1001, 2000) n").Want(200)
}

// TestDatabaseQuotaIgnoresSharedCatalogs checks that writes of others to shared catalogs do not
// count for the project.
func TestDatabaseQuotaIgnoresSharedCatalogs(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	a.CreateTable("orders", "note text")
	asOwner(t, a, "insert into public.orders select n from generate_series(1, 10) n")
	a.Exec(`update platform.projects set max_database_bytes = 1 where uuid = $1`, a.Project)
	a.Get("/projects/" + a.Project + "/quota").Want(200)

	holder := a.ConnectProject()
	if _, err := holder.Exec(t.Context(), "select pg_advisory_lock(7)"); err != nil {
		t.Fatal(err)
	}

	done := make(chan *apitest.Reply, 1)
	go func() {
		done <- a.Post("/sql", sqlBody("select pg_advisory_xact_lock(7); delete from orders where id = 1", writing))
	}()

	until(t, "the query is waiting", func() bool {
		return query[bool](t, a,
			"select exists (select from pg_locks where locktype = 'advisory' and objid = 7 and not granted and database = (select oid from pg_database where datname = current_database()))")
	})

	execute(t, a, `do $$ begin
		execute format('comment on database %I is %L', current_database(), (select string_agg(md5(random()::text), '') from generate_series(1, 30000)));
	end $$`)

	if _, err := holder.Exec(t.Context(), "select pg_advisory_unlock(7)"); err != nil {
		t.Fatal(err)
	}

	(<-done).Want(200)
}

// TestDatabaseQuotaOfServers checks that each server measures by itself, and sees space freed
// through it at once.
func TestDatabaseQuotaOfServers(t *testing.T) {
	t.Parallel()

	a := apitest.New(t)
	a.CreateTable("orders", "note text")
	other := a.StartServer()
	other.Get("/tables/orders").Want(200)

	limit := func(quota any) {
		a.Exec(`update platform.projects set max_database_bytes = $1::bigint where uuid = $2`, quota, a.Project)
	}
	limit(1)

	if err := other.Server.Services().Lifecycle.MeasureActive(t.Context(), time.Time{}); err != nil {
		t.Fatal(err)
	}

	other.Post("/tables/orders/indexes", `{"columns": ["note"]}`).Want(413).Code("quota_exceeded")
	limit(nil)
	other.Delete("/tables/orders/constraints/orders_pkey").Want(200)
	other.Post("/tables/orders/indexes", `{"columns": ["note"]}`).Want(201)
}
