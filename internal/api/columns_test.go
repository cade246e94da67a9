package api_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/socle-dev/socle/internal/api/apitest"
)

func TestCreateColumn(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	a.CreateTable("customers")
	a.CreateTable("orders")

	r := a.Post("/tables/orders/columns", `{"name": "note", "type": "varchar(80)"}`).Want(201).
		Content("name", "note").Content("type", "varchar(80)").Content("position", 2).Content("notNull", false).
		Content("unique", false).
		Content("primary", false).Content("foreign", false).Content("defaultValue", "").Content("referenceTable", nil).
		Content("referenceColumn", nil)
	if got := len(r.Metadata("columns").([]any)); got != 1 {
		t.Errorf("metadata.columns has %d columns, want 1", got)
	}

	a.Post("/tables/public.orders/columns",
		`{"name": "customer", "type": "integer", "notNull": true, "unique": true, "foreign": true,
		"referenceTable": "customers", "referenceColumn": "id", "defaultValue": "7", "position": 77, "projectUUID": "`+
			a.Project+`"}`).Want(201).
		Content("position", 3).Content("notNull", true).Content("unique", true).Content("foreign", true).
		Content("defaultValue", "7").
		Content("referenceTable", "public.customers").Content("referenceColumn", "id")

	a.Post("/tables/orders/columns", `{"name": "snake", "type": "int", "not_null": true, "default_value": "1",
		"reference_table": "public.customers", "reference_column": "id"}`).Want(201).
		Content("notNull", true).Content("defaultValue", "1").Content("referenceTable", "public.customers").
		Content("foreign", true)

	a.Post("/tables/orders/columns", `{"name": "both", "type": "int", "not_null": true, "notNull": false}`).Want(201).
		Content("notNull", false)

	r = a.Post("/tables/orders/columns",
		`{"columns": [{"name": "one", "type": "text[]", "default_value": "{}"}, {"name": "two", "type": "timestamptz", "defaultValue": "now()"}]}`).
		Want(201).Content("name", "one").Content("type", "text[]")
	if got := r.Metadata("columns.1.name"); got != "two" {
		t.Errorf("got the second column %v", got)
	}

	names := values(a.Get("/tables/orders/columns").Want(200), "name")
	if want := []string{"id", "note", "customer", "snake", "both", "one", "two"}; !slices.Equal(names, want) {
		t.Errorf("got columns %q, want %q", names, want)
	}
}

func TestCreateColumnTypes(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	a.CreateTable("orders")
	execute(t, a, "create type public.mood as enum ('good', 'bad'); create domain public.age as int check (value >= 0)")

	for i, c := range []struct{ asked, got string }{
		{"int", "integer"}, {"numeric(10,2)", "numeric(10,2)"}, {"character varying(9)", "varchar(9)"},
		{"timestamp", "timestamp"}, {"timestamp with time zone", "timestamptz"}, {"time with time zone", "timetz"},
		{"time(3)", "time(3)"}, {"char(3)", "char(3)"}, {"double precision", "double precision"}, {"jsonb", "jsonb"},
		{"uuid", "uuid"}, {"text[][]", "text[]"}, {"mood", "mood"}, {"public.age", "age"}, {"INTEGER", "integer"},
		{"bytea", "bytea"}, {"inet", "inet"}, {"interval", "interval"}, {"bit(4)", "bit(4)"},
	} {
		a.Post("/tables/orders/columns", fmt.Sprintf(`{"name": "c%d", "type": %q}`, i, c.asked)).Want(201).
			Content("type", c.got)
	}
}

func TestCreateColumnRefuses(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	a.CreateTable("orders", "note text")
	execute(t, a, "insert into public.orders values (1, 'kept'), (2, 'kept')")
	before := databaseState(t, a)

	for _, c := range []struct{ body, field string }{
		{`{}`, "name type"}, {`{"name": "a"}`, "type"}, {`{"type": "text"}`, "name"},
		{`{"name": "a", "type": ""}`, "type"},
		{`{"name": 1, "type": 2}`, "name type"}, {`{"name": "a", "type": null}`, "type"},
		{`{"name": "a", "type": "text", "notNull": "yes"}`, "notNull"},
		{`{"name": "a", "type": "text", "not_null": 1}`, "notNull"},
		{`{"name": "a", "type": "text", "unique": 0}`, "unique"},
		{`{"name": "a", "type": "text", "primary": []}`, "primary"},
		{`{"name": "a", "type": "text", "foreign": "f"}`, "foreign"},
		{`{"name": "a", "type": "text", "defaultValue": 5}`, "defaultValue"},
		{`{"name": "a", "type": "text", "referenceTable": {}}`, "referenceTable"},
		{`{"name": "a", "type": "text", "referenceColumn": 1}`, "referenceColumn"},
		{`{"columns": []}`, "columns"}, {`{"columns": {}}`, "columns"}, {`{"columns": null}`, "columns"},
		{`{"columns": [{}]}`, "columns.0.name columns.0.type"},
		{`{"columns": [{"name": "a", "type": "text"}, {"name": "b", "type": "nope"}]}`, "columns.1.type"},
		{`{"columns": [{"name": "a", "type": "text"}, {"name": "a", "type": "text"}]}`, "columns.1.name"},
		{`{"columns": [{"name": "a", "type": "text"}, {"name": "note", "type": "text"}]}`, "columns.1.name"},
		{`{"columns": [{"name": "a", "type": "text"}, "b"]}`, "columns.1"},
		{`{"name": "note", "type": "text"}`, "name"},
		{`{"name": "a", "type": "text", "notNull": true}`, "notNull"},
		{`{"name": "a", "type": "int", "unique": true, "defaultValue": "1"}`, "unique"},
		{`{"name": "a", "type": "int", "primary": true, "defaultValue": "1"}`, "primary"},
		{`{"name": "a", "type": "int", "foreign": true}`, "referenceTable"},
		{`{"name": "a", "type": "int", "foreign": true, "referenceTable": "orders"}`, "referenceColumn"},
		{`{"name": "a", "type": "int", "referenceTable": "orders", "referenceColumn": "nope"}`, "referenceColumn"},
		{`{"name": "a", "type": "text", "referenceTable": "orders", "referenceColumn": "note"}`, "referenceColumn"},
		{`{"name": "a", "type": "text", "referenceTable": "orders", "referenceColumn": "id"}`, "type"},
		{`{"name": "a", "type": "int", "referenceTable": "orders", "referenceColumn": "id;"}`, "referenceColumn"},
	} {
		a.Post("/tables/orders/columns", c.body).Want(422).Field(strings.Fields(c.field)...)
	}

	column := func(member, value string) *apitest.Reply {
		parts := map[string]string{"name": "a", "type": "text", member: value}
		if member == "referenceTable" {
			parts["referenceColumn"] = "id"
		}

		var members []string
		for name, text := range parts {
			members = append(members, quoted(name)+": "+quoted(text))
		}

		return a.Post("/tables/orders/columns", "{"+strings.Join(members, ", ")+"}")
	}

	for member, hostile := range map[string][]string{
		"name": append(hostileNames, "", "ctid", "oid", "xmin", "xmax", "cmin", "cmax", "tableoid",
			strings.Repeat("n", 64), "1st"),
		"type": {"text; drop table orders", "text not null", "text default 'x'", "text --", "text/* */", "setof text",
			"anyelement", "record", "void", "trigger", "cstring", "internal", "varchar(0)", "varchar(10485761)",
			"numeric(1001)", "numeric(5,9999)", "int(4)", "text[][][][][][]", "integer, b text", "nope", "public.nope",
			"pg_catalog.pg_class", "storage.files", "auth.users", "socle.migrations", "text collate \"C\"",
			"int generated always as (1) stored", "\"", "''", "text\nnull", strings.Repeat("a", 10_000), "a\x00b"},
		"defaultValue": {"1, ADD COLUMN b text", "1) CHECK (true", "1 REFERENCES orders", "$$x$$ NOT NULL", "';",
			"'a'; drop table orders", "x -- y", "x /* y */", "(select 1)", "pg_sleep(60)",
			"set_config('role', 'postgres', false)", "pg_advisory_lock(1)", "query_to_xml('select 1', true, true, '')",
			"pg_terminate_backend(1)", "current_user", "nextval('x')", "'a' || 'b'", "'a'::integer", "a\x00b"},
		"referenceTable": {"pg_catalog.pg_class", "storage.files", "auth.users", "forms.forms",
			"information_schema.tables", "orders; drop table orders", `"orders"`, "a.b.c", "nope", "orders(id)",
			"app.orders", "1"},
	} {
		for _, value := range hostile {
			if r := column(member, value); r.Status != 422 {
				t.Errorf("%s %.60q: got %d, want 422\n%s", member, value, r.Status, r.Body)
			} else {
				r.Field(member)
			}
		}
	}

	for _, body := range malformed {
		a.Post("/tables/orders/columns", body).Want(400)
	}

	for _, ref := range append(badTables, "missing") {
		if r := a.Post("/tables/"+ref+"/columns", `{"type": 1}`); r.Status != 400 {
			t.Errorf("table %.60q: got %d, want 400\n%s", ref, r.Status, r.Body)
		}
	}

	if after := databaseState(t, a); after != before {
		t.Errorf("a refused request changed\n%s\ninto\n%s", before, after)
	}

	// The next request succeeds.
	a.Post("/tables/orders/columns", `{"name": "a", "type": "text", "notNull": true, "defaultValue": "x"}`).Want(201)
}

// TestCreateColumnOversized checks that an oversized request is refused as a whole.
func TestCreateColumnOversized(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	a.CreateTable("orders")

	columns := func(n int) string {
		all := make([]string, n)
		for i := range all {
			all[i] = fmt.Sprintf(`{"name": "c%d", "type": "int"}`, i)
		}

		return `{"columns": [` + strings.Join(all, ",") + `]}`
	}

	a.Post("/tables/orders/columns", columns(1601)).Want(422).Field("columns")
	a.Post("/tables/orders/columns", `{"name": "`+strings.Repeat("a", 1<<20)+`", "type": "text"}`).Want(400).
		Code("too_large")
	a.Post("/tables/orders/columns", strings.Repeat("[", 10_001)+strings.Repeat("]", 10_001)).Want(400).
		Code("malformed_json")

	a.Post("/tables/orders/columns", `{"name": `+strings.Repeat(`{"a":`, 9_000)+"1"+strings.Repeat("}", 9_001)).
		Want(422).Field("type", "name")

	asOwner(t, a, `do $$ begin execute 'alter table public.orders ' ||
		(select string_agg('add column old' || n || ' int', ', ') from generate_series(1, 1590) n); end $$`)

	a.Post("/tables/orders/columns", columns(20)).Want(422).Field("columns") // together with the existing columns

	if got := query[int](t, a,
		"select count(*) from pg_attribute where attrelid = 'public.orders'::regclass and attnum > 0"); got != 1591 {
		t.Errorf("got %d columns, want 1591", got)
	}
}

func TestCreateColumnConcurrently(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	a.CreateTable("orders")
	counts := concurrently(10, func(int) *apitest.Reply {
		return a.Post("/tables/orders/columns", `{"name": "same", "type": "text"}`)
	})

	wantCounts(t, counts, map[int]int{201: 1, 422: 9})
	counts = concurrently(10, func(i int) *apitest.Reply {
		body := fmt.Sprintf(`{"name": "own%d", "type": "text"}`, i)
		r := a.Post("/tables/orders/columns", body)
		for r.Status == 422 && r.Metadata("code") == "busy" { // on a busy machine, the lock timeout passes
			r = a.Post("/tables/orders/columns", body)
		}

		return r
	})

	wantCounts(t, counts, map[int]int{201: 10})
}

// TestReusedTableName checks that a table with a reused name inherits nothing from its predecessor.
func TestReusedTableName(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	old := a.CreateTable("orders", "note text")
	execute(t, a, `grant all on public.orders to anon; create policy everyone on public.orders using (true);
		insert into public.orders values (1, 'old'); drop table public.orders`)

	created := a.CreateTable("orders", "note text")
	if old.Metadata("uuid") == created.Metadata("uuid") {
		t.Error("the new table has the UUID of the old one")
	}

	a.Get("/tables/" + old.Metadata("uuid").(string)).Want(404)
	clean := query[bool](t, a, `select not has_table_privilege('anon', 'public.orders', 'select')
		and not exists (select from pg_policy) and not exists (select from public.orders)`)
	if !clean {
		t.Error("the new table has the rows, policies or grants of the old one")
	}
}

// TestColumnsByUUID lists and creates columns of a table that is named by its UUID or ID.
func TestColumnsByUUID(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	asOwner(t, a, `create table public."Odd table" (id integer primary key)`)

	list := a.Get("/tables").Want(200)
	for n, ref := range []string{
		list.Metadata("uuids").(map[string]any)["public.Odd table"].(string), fmt.Sprint(list.Get("0.id")),
	} {
		path := "/tables/" + ref + "/columns"
		a.Post(path, fmt.Sprintf(`{"name": "n%d", "type": "text", "comment": "n"}`, n)).Want(201)

		name := fmt.Sprintf("n%d", n)
		a.Get(path).Want(200).Content(fmt.Sprintf("%d.name", n+1), name)
		if got := a.Get(path).Metadata("comments." + name); got != "n" {
			t.Errorf("%s: got the comment %v", ref, got)
		}
	}

	a.Get("/tables/00000000-0000-5000-8000-000000000000/columns").Want(404)
}

// TestCreateColumnOfChild creates a column that a child of the table has with another type.
func TestCreateColumnOfChild(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	asOwner(t, a, `create table public.things (id integer); create table public.books (pages integer) inherits (public.things)`)

	const path = "/tables/things/columns"
	a.Post(path, `{"name": "pages", "type": "text"}`).Want(422).Code("invalid_type").Field("type")
	a.Post(path, `{"name": "pages", "type": "text", "defaultValue": "x"}`).Want(422).Field("type")
	a.Post(path, `{"name": "pages", "type": "integer"}`).Want(201)
}
