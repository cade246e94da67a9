package api_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/socle-dev/socle/internal/api/apitest"
)

func TestUpdateColumn(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	a.CreateTable("orders", "note text", "number text")
	asOwner(t, a, `insert into public.orders values (1, 'a', ' 7 '), (2, 'b', '8')`)

	const note, number = "/tables/orders/columns/note", "/tables/orders/columns/number"

	a.Put(number,
		`{"type": "integer", "not_null": true, "unique": true, "default_value": "5", "name": "count", "comment": "how many"}`).Want(200).
		Content("name", "count").Content("type", "integer").Content("notNull", true).Content("unique", true).
		Content("defaultValue", "5").Content("position", 3)

	if got := query[string](t, a, "select string_agg(count::text, ',' order by id) from public.orders"); got != "7,8" {
		t.Errorf("got %s", got)
	}

	a.Put("/tables/orders/columns/count", `{"type": "bigint"}`).Want(200).Content("type", "bigint").
		Content("defaultValue", "5").Content("notNull", true)
	a.Put("/tables/orders/columns/count", `{"unique": false, "notNull": false, "defaultValue": null}`).Want(200).
		Content("unique", false).Content("notNull", false).Content("defaultValue", "")
	a.Put("/tables/orders/columns/count", `{"type": "timestamptz", "using": "epoch_seconds"}`).Want(200).
		Content("type", "timestamptz")

	if got := a.Get("/tables/orders/columns").Metadata("comments.count"); got != "how many" {
		t.Errorf("got %v", got)
	}

	a.Put(note, `{"defaultValue": "draft"}`).Want(200).Content("defaultValue", "draft")
	a.Put(note, `{"type": "varchar(20)"}`).Want(200).Content("type", "varchar(20)").Content("defaultValue", "draft")
	a.Put(note, `{"type": "text[]", "using": "one_element"}`).Want(200).Content("type", "text[]").
		Content("defaultValue", "{draft}")
	a.Put(note, `{"type": "jsonb", "using": "json", "defaultValue": ""}`).Want(200).Content("type", "jsonb")

	if got := query[string](t, a, "select note::text from public.orders where id = 1"); got != `["a"]` {
		t.Errorf("got %s", got)
	}

	a.Put("/tables/orders/columns/id", `{"name": "key"}`).Want(200).Content("primary", true)
}

func TestUpdateColumnRefuses(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	a.CreateTable("orders", "note text", "other text")
	asOwner(t, a, `insert into public.orders values (1, '12', null), (2, 'much too long', 'x'), (3, null, 'x');
		create view public.seen as select other from public.orders`)

	const note = "/tables/orders/columns/note"
	before := databaseState(t, a)
	r := a.Put(note, `{"type": "integer", "name": "changed"}`).Want(422).Code("cast_fails").Field("type")
	if got := fmt.Sprint(r.Metadata("failing"), r.Metadata("example.id")); got != "12" && got != "1 2" {
		t.Errorf("got %s", r.Body)
	}

	a.Put(note, `{"type": "varchar(3)"}`).Want(422).Code("cast_fails").Field("type")
	a.Put(note, `{"notNull": true}`).Want(422).Code("null").Field("notNull")
	a.Put("/tables/orders/columns/other", `{"unique": true}`).Want(422).Code("not_unique")
	r = a.Put("/tables/orders/columns/other", `{"type": "varchar(3)"}`).Want(409).Code("in_use")
	if got := fmt.Sprint(r.Metadata("dependents")); got != "[map[kind:view name:public.seen]]" {
		t.Errorf("got %s", got)
	}

	a.Put("/tables/orders/columns/id", `{"type": "uuid"}`).Want(422).Code("no_cast").Field("type")
	a.Put("/tables/orders/columns/id", `{"notNull": false}`).Want(422).Field("notNull")
	a.Put("/tables/orders/columns/id", `{"unique": false}`).Want(422).Field("unique")
	a.Put(note, `{"name": "id"}`).Want(409).Code("already_exists").Field("name")
	a.Put(note, `{"using": "trimmed"}`).Want(422).Field("using")
	a.Put(note, `{"type": "text", "using": "note::text, drop column id"}`).Want(422).Field("using")
	a.Put(note, `{}`).Want(422)

	for _, name := range append(hostileNames, "", "ctid", "oid", "xmin", "tableoid", strings.Repeat("n", 64)) {
		a.Put(note, `{"name": `+quoted(name)+`}`).Want(422).Field("name")
	}

	for _, typ := range []string{"", "nope", "text; drop table orders", "text using 1", "setof text", "record",
		"varchar(0)", "numeric(1001)", "text[][][][][][]", "serial", "integer default 1", "integer -- x"} {
		a.Put(note, `{"type": `+quoted(typ)+`}`).Want(422).Field("type")
	}

	for _, value := range []string{
		"1, ADD COLUMN x text", "1) CHECK (true", "1 REFERENCES orders", "$$x$$ NOT NULL", "';", "(select 1)",
		"pg_sleep(1)",
	} {
		a.Put(note, `{"defaultValue": `+quoted(value)+`}`).Want(422).Field("defaultValue")
	}

	a.Put("/tables/orders/columns/nope", `{"name": "x"}`).Want(404).Code("not_found")
	a.Put("/tables/orders/columns/ctid", `{"name": "x"}`).Want(404)
	a.Put("/tables/orders/columns/x%22;drop", `{"name": "x"}`).Want(404)
	a.Put("/tables/auth.users/columns/id", `{"name": "x"}`).Want(400).Field("table")

	if after := databaseState(t, a); after != before {
		t.Errorf("a refused request changed\n%s\ninto\n%s", before, after)
	}
}

func TestDeleteColumn(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	a.CreateTable("orders", "note text", "plain text")
	asOwner(t, a,
		`create view public.seen as select note from public.orders; create table public.lines (id integer references public.orders);
		alter table public.orders add column "a""; drop table lines; --" text`)

	r := a.Delete("/tables/orders/columns/note").Want(409).Code("in_use")
	if got := fmt.Sprint(r.Metadata("dependents")); got != "[map[kind:view name:public.seen]]" {
		t.Errorf("got %s", got)
	}

	r = a.Delete("/tables/orders/columns/id").Want(409).Code("in_use")
	if got := fmt.Sprint(r.Metadata("dependents")); got !=
		"[map[kind:table constraint name:lines_id_fkey on public.lines]]" {
		t.Errorf("got %s", got)
	}

	a.Delete("/tables/orders/columns/note?cascade=true").Want(200).Content("name", "note")
	a.Delete("/tables/orders/columns/note").Want(404)
	a.Delete("/tables/orders/columns/a%22;%20drop%20table%20lines;%20--").Want(200)
	a.Get("/tables/lines").Want(200)
	a.Delete("/tables/orders/columns/id?cascade=maybe").Want(400).Field("cascade")

	counts := concurrently(10, func(int) *apitest.Reply { return a.Delete("/tables/orders/columns/plain") })
	wantCounts(t, counts, map[int]int{200: 1, 404: 9})

	if got := query[int](t, a,
		"select count(*) from pg_constraint where conrelid = 'public.lines'::regclass"); got != 1 {
		t.Errorf("got %d constraints", got)
	}
}

// TestUpdateColumnConcurrently renames one column to ten names concurrently, then ten columns to
// one name.
func TestUpdateColumnConcurrently(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	a.CreateTable("orders", "a text", "b text", "c text", "d text")
	counts := concurrently(4, func(i int) *apitest.Reply {
		return a.Put("/tables/orders/columns/"+string(rune('a'+i)), `{"name": "one"}`)
	})

	wantCounts(t, counts, map[int]int{200: 1, 409: 3})
	counts = concurrently(4, func(i int) *apitest.Reply {
		return a.Put("/tables/orders/columns/one", fmt.Sprintf(`{"name": "n%d"}`, i))
	})

	wantCounts(t, counts, map[int]int{200: 1, 404: 3})
}

// TestUpdateGeneratedColumn changes the type of a generated column, whose values are computed anew.
func TestUpdateGeneratedColumn(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	asOwner(t, a, `
		create table public.lines (id integer primary key, price integer,
			twice integer generated always as (price * 2) stored);
		insert into public.lines values (1, 40000)`)

	const path = "/tables/lines/columns/twice"
	a.Put(path, `{"type": "smallint"}`).Want(422).Code("invalid_type").Field("type")
	a.Put(path, `{"type": "bigint", "using": "trimmed"}`).Want(422).Code("not_applicable").Field("using")
	a.Put(path, `{"type": "point"}`).Want(422).Code("invalid_type").Field("type")
	a.Put(path, `{"type": "bigint"}`).Want(200).Content("type", "bigint").Content("defaultValue", "(price * 2)")

	if got := query[int64](t, a, "select twice from public.lines"); got != 80000 {
		t.Errorf("got %d, want 80000", got)
	}
}
