package api_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/socle-dev/socle/internal/api/apitest"
)

func TestCreateIndex(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	a.CreateTable("orders", "note text", "price numeric", "data jsonb", "place point")
	asOwner(t, a, `insert into public.orders values (1, 'x'), (2, 'x')`)

	const path = "/tables/orders/indexes"
	a.Post(path, `{"columns": ["note", "price"]}`).Want(201).Content("name", "orders_note_price_idx").
		Content("status", "ready").
		Content("method", "btree").Content("columns.1", "price").Content("unique", false)
	a.Post(path, `{"name": "by_data", "columns": ["data"], "method": "gin"}`).Want(201).Content("method", "gin")
	a.Post(path, `{"name": "unique_pair", "columns": ["note", "id"], "unique": true}`).Want(201).Content("unique", true)

	if got := fmt.Sprint(values(a.Get(path).Want(200), "name")); got !=
		"[by_data orders_note_price_idx orders_pkey unique_pair]" {
		t.Errorf("got %s", got)
	}

	for body, field := range map[string]string{
		`{}`:                                  "columns",
		`{"columns": []}`:                     "columns",
		`{"columns": ["nope"]}`:               "columns.0",
		`{"columns": ["id", "id"]}`:           "columns.1",
		`{"columns": ["lower(note)"]}`:        "columns.0",
		`{"columns": ["ctid"]}`:               "columns.0",
		`{"columns": ["note) where (true"]}`:  "columns.0",
		`{"columns": ["note"], "name": "x;"}`: "name",
		`{"columns": ["note"], "name": "` + strings.Repeat("n", 64) + `"}`: "name",
		`{"columns": ["note"], "method": "spgist; drop"}`:                  "method",
		`{"columns": ["note"], "method": "gin"}`:                           "method",
		`{"columns": ["note", "id"], "method": "hash"}`:                    "method",
		`{"columns": ["note"], "unique": true, "method": "hash"}`:          "method",
		`{"columns": ["place"]}`:                                           "method",
		`{"columns": ["note"], "unique": true}`:                            "unique",
	} {
		a.Post(path, body).Want(422).Field(field)
	}

	a.Post(path, `{"name": "orders", "columns": ["id"]}`).Want(409).Code("already_exists").Field("name")
	a.Get(path+"/unique_pair").Want(200).Content("unique", true).Content("status", "ready")
	a.Get(path + "/nope").Want(404)
	a.Get("/tables/auth.users/indexes/x").Want(400)
	a.Post("/tables/missing/indexes", `{}`).Want(404)
	a.Post("/tables/auth.users/indexes", `{}`).Want(400)
	a.Get("/tables/auth.users/indexes").Want(400)
	a.Delete("/tables/auth.users/indexes/x").Want(400)
	a.Delete(path + "/nope").Want(404)
	a.Delete(path + "/orders_pkey").Want(409).Code("in_use")
	asOwner(t, a,
		`create table public.lines (note text, id integer, foreign key (note, id) references public.orders (note, id)); create index "x""; drop" on public.orders (lower(note))`)

	r := a.Delete(path + "/unique_pair").Want(409).Code("in_use")
	if got := fmt.Sprint(r.Metadata("dependents")); got !=
		"[map[kind:table constraint name:lines_note_id_fkey on public.lines]]" {
		t.Errorf("got %s", got)
	}

	a.Delete(path + "/x%22;%20drop").Want(200)
	counts := concurrently(10, func(int) *apitest.Reply { return a.Delete(path + "/by_data") })
	wantCounts(t, counts, map[int]int{200: 1, 404: 9})
	counts = concurrently(5, func(int) *apitest.Reply { return a.Post(path, `{"name": "one", "columns": ["id"]}`) })
	wantCounts(t, counts, map[int]int{201: 1, 409: 4})
}

// TestCreateIndexOfExpressions checks that index expressions accept valid SQL, and that no input
// escapes from them.
func TestCreateIndexOfExpressions(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	a.CreateTable("orders", "note text", "kind text", "data jsonb", "price integer")

	asOwner(t, a, `insert into public.orders values (1, 'X', 'a', '{"b": 1}', 0), (2, 'x', null, null, 1);
		create function public.slug(text) returns text language sql immutable as 'select pg_catalog.lower($1)';
		create function public.now_and_then(text) returns text language plpgsql volatile as 'begin return $1; end';
		create function public.refuse(text) returns text language plpgsql immutable as $$ begin raise exception 'the secret row %', $1; end $$`)

	const path = "/tables/orders/indexes"
	for body, want := range map[string]string{
		`{"name": "i1", "keys": [{"expression": "lower(note)"}, {"column": "kind", "descending": true, "nulls": "last"}]}`: `USING btree (lower(note), kind DESC NULLS LAST)`,
		`{"name": "i2", "columns": ["id"], "unique": true, "where": "kind is not null and note <> 'a;b'"}`:                 `UNIQUE INDEX i2 ON public.orders USING btree (id) WHERE ((kind IS NOT NULL) AND (note <> 'a;b'::text))`,
		`{"name": "i3", "keys": [{"column": "note", "operator_class": "text_pattern_ops"}], "include": ["price", "kind"]}`: `USING btree (note text_pattern_ops) INCLUDE (price, kind)`,
		`{"name": "i4", "keys": [{"column": "data", "operator_class": "pg_catalog.jsonb_path_ops"}], "method": "gin"}`:     `USING gin (data jsonb_path_ops)`,
		`{"name": "i5", "keys": [{"expression": "data ->> 'b'"}], "method": "hash"}`:                                       `USING hash (((data ->> 'b'::text)))`,
		`{"name": "i6", "columns": ["kind", "id"], "unique": true, "nulls_not_distinct": true}`:                            `(kind, id) NULLS NOT DISTINCT`,
		`{"name": "i7", "keys": [{"expression": "slug(note)"}], "method": "brin"}`:                                         `USING brin (public.slug(note))`,
		`{"name": "i8", "keys": [{"expression": "to_tsvector('english', note)"}], "method": "gin", "where": "price > 0"}`:  `USING gin (to_tsvector('english'::regconfig, note)) WHERE (price > 0)`,
		`{"name": "i9", "keys": [{"expression": "int4range(price, price + 1)"}], "method": "gist", "include": ["id"]}`:     `USING gist (int4range(price, (price + 1))) INCLUDE (id)`,
	} {
		r := a.Post(path, body).Want(201)
		if got := r.Get("definition").(string); !strings.Contains(got, want) {
			t.Errorf("%s: got %s, want %s", body, got, want)
		}
	}

	a.Get(path).Want(200).Content("0.keys.0", "lower(note)").Content("0.columns.0", "kind").
		Content("1.where", "((kind IS NOT NULL) AND (note <> 'a;b'::text))").
		Content("2.include.0", "price").Content("5.nullsNotDistinct", true)
	a.Post(path, `{"keys": [{"expression": "slug(note)"}, {"column": "id"}]}`).Want(201).
		Content("name", "orders_expr_id_idx")

	key := func(k string) string { return `{"keys": [` + k + `]}` }
	for body, want := range map[string]string{
		key(`{"expression": "nope(note)"}`):                   "keys.0.expression unknown_name",
		key(`{"expression": "note, kind"}`):                   "keys.0.expression unknown_name",
		key(`{"expression": "note) where (true"}`):            "keys.0.expression invalid_expression",
		key(`{"expression": "note); drop table orders; --"}`): "keys.0.expression invalid_expression",
		key(`{"expression": "note -- x"}`):                    "keys.0.expression invalid_expression",
		key(`{"expression": " "}`):                            "keys.0.expression required",
		key(`{"expression": "all note"}`):                     "keys syntax_error",
		key(`{"expression": "(select 1)"}`):                   "keys not_supported",
		key(`{"expression": "count(*)"}`):                     "keys not_supported",
		key(`{"expression": "now_and_then(note)"}`):           "keys not_supported",
		key(`{"expression": "1 / price"}`):                    "keys failed",
		key(`{"expression": "refuse(note)"}`):                 "keys failed",
		key(`{"expression": "note", "column": "note"}`):       "keys.0.expression not_applicable",
		key(`{}`): "keys.0.column not_found",
		key(`{"column": "id"}, {"column": "nope"}`):                           "keys.1.column not_found",
		key(`{"column": "note", "operator_class": "int4_ops"}`):               "keys not_supported",
		key(`{"column": "note", "operator_class": "nope"}`):                   "keys not_supported",
		key(`{"column": "note", "operator_class": "no.nope"}`):                "keys not_supported",
		key(`{"column": "note", "operator_class": "a.b.c"}`):                  "keys.0.operator_class invalid_value",
		key(`{"column": "note", "operator_class": "a b"}`):                    "keys.0.operator_class invalid_format",
		key(`{"column": "note", "nulls": "middle"}`):                          "keys.0.nulls not_allowed",
		`{"keys": [{"column": "note", "descending": true}], "method": "gin"}`: "keys.0 not_applicable",
		`{"columns": ["id"], "keys": [{"column": "id"}]}`:                     "keys not_applicable",
		`{"columns": ["note"], "include": ["id"], "method": "hash"}`:          "include not_applicable",
		`{"columns": ["note"], "include": ["nope"]}`:                          "include.0 not_found",
		`{"columns": ["note"], "nulls_not_distinct": true}`:                   "nulls_not_distinct not_applicable",
		`{"columns": ["kind"], "where": "price"}`:                             "where invalid_type",
		`{"columns": ["kind"], "where": "nope = 1"}`:                          "where unknown_name",
		`{"columns": ["kind"], "where": "now() > '2020-01-01'"}`:              "where not_supported",
		`{"columns": ["kind"], "where": "1 / price > 0"}`:                     "where failed",
	} {
		r := a.Post(path, body).Want(422)
		f := r.Metadata("fields.0").(map[string]any)
		if got := fmt.Sprint(f["field"], " ", f["code"]); got != want {
			t.Errorf("%s: got %s, want %s", body, got, want)
		}
		if strings.Contains(string(r.Body), "secret") {
			t.Errorf("a row's value is revealed: %s", r.Body)
		}
	}

	// A background build resolves names in expressions the same way.
	execute(t, a, `update pg_class set reltuples = 200000 where oid = 'public.orders'::regclass`)
	a.Post(path, key(`{"expression": "now_and_then(note)"}`)).Want(422).Field("keys")

	a.Post(path,
		`{"name": "later", "keys": [{"expression": "slug(note)"}, {"column": "id"}], "include": ["kind"], "where": "slug(kind) = 'a'"}`).Want(201).Content("status", "building").
		Content("keys.0", "slug(note)").Content("columns.0", "id").Content("where", "slug(kind) = 'a'").
		Content("include.0", "kind")

	until(t, "the index is ready", func() bool {
		for _, item := range a.Get(path).Want(200).Get("").([]any) {
			if x := item.(map[string]any); x["name"] == "later" {
				return x["status"] == "ready" && x["where"] == "(public.slug(kind) = 'a'::text)"
			}
		}

		return false
	})
}

// TestCreateIndexInBackground checks that the index of a large table is built in the background.
func TestCreateIndexInBackground(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	a.CreateTable("orders", "note text", "kind text")
	asOwner(t, a, `insert into public.orders values (1, 'x', 'a'), (2, 'y', 'a')`)

	large := func() { execute(t, a, `update pg_class set reltuples = 200000 where oid = 'public.orders'::regclass`) }
	large()

	const path = "/tables/orders/indexes"
	status := func(name string) (status, reason string) {
		for _, item := range a.Get(path).Want(200).Get("").([]any) {
			if x := item.(map[string]any); x["name"] == name {
				return x["status"].(string), x["error"].(string)
			}
		}

		return "", ""
	}

	is := func(name, want string) func() bool {
		return func() bool { got, _ := status(name); return got == want }
	}

	// An uncommitted write blocks the build.
	writer, err := a.ConnectProject().Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}

	if _, err := writer.Exec(t.Context(), "insert into public.orders values (3, 'z', 'a')"); err != nil {
		t.Fatal(err)
	}

	a.Post(path, `{"columns": ["note"], "name": "noted"}`).Want(201).Content("status", "building").
		Content("definition", "")

	a.Post(path, `{"columns": ["note"], "name": "noted"}`).Want(409).Field("name")
	a.Delete(path + "/noted").Want(409).Code("busy")

	if !is("noted", "building")() {
		t.Errorf("got %s", a.Get(path).Body)
	}

	if err := writer.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}

	until(t, "the index is ready", is("noted", "ready"))
	a.Delete(path + "/noted").Want(200)
	large()
	a.Post(path, `{"columns": ["note"], "name": "noted", "unique": true}`).Want(201).Content("status", "building")
	until(t, "the index is ready", is("noted", "ready"))

	large()
	a.Post(path, `{"columns": ["kind"], "name": "kinds", "unique": true}`).Want(201).Content("status", "building")
	until(t, "the index has failed", is("kinds", "failed"))

	if _, reason := status("kinds"); reason != "unique can't be true: the table has rows with duplicate values" {
		t.Errorf("got the reason %q", reason)
	}
	if n := query[int](t, a, "select count(*) from pg_index where not indisvalid"); n != 0 {
		t.Errorf("got %d invalid indexes, want none", n)
	}

	a.Delete(path+"/kinds").Want(200).Content("status", "failed")
	a.Delete(path + "/kinds").Want(404)

	large()
	a.Post(path, `{"columns": ["note"], "method": "gin"}`).Want(422).Field("method")
	a.Post(path, `{"columns": ["note"], "name": "orders_pkey"}`).Want(409).Field("name")

	counts := concurrently(5, func(int) *apitest.Reply { return a.Post(path, `{"columns": ["kind"], "name": "one"}`) })
	wantCounts(t, counts, map[int]int{201: 1, 409: 4})
	until(t, "the index is ready", is("one", "ready"))
}

// TestCreateIndexOnOddNames checks that the default name of an index may have any characters of the
// columns' names.
func TestCreateIndexOnOddNames(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	long := strings.Repeat("日本", 10)
	asOwner(t, a, `create table public.odd (id integer primary key, "first name" text, "`+long+`" text)`)

	a.Post("/tables/odd/indexes", `{"columns": ["first name"]}`).Want(201).Content("name", "odd_first name_idx")
	a.Post("/tables/odd/indexes", `{"columns": ["`+long+`"]}`).Want(201).
		Content("name", "odd_"+strings.Repeat("日本", 9)+"_idx")
	a.Post("/tables/odd/indexes", `{"columns": ["id"], "name": "first name"}`).Want(422).Field("name")
}

// TestIndexOfPartition checks the messages about indexes of partitioned tables and partitions.
func TestIndexOfPartition(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	asOwner(t, a, `
		create table public.events (id integer, kind text) partition by range (id);
		create table public.events_1 partition of public.events for values from (0) to (10);
		create index on public.events (kind)`)

	a.Post("/tables/events/indexes", `{"columns": ["kind"], "unique": true}`).Want(422).Code("not_supported").
		Field("unique")

	r := a.Delete("/tables/events_1/indexes/events_1_kind_idx").Want(409).Code("in_use")
	if got := fmt.Sprint(r.Metadata("detail")); got != "It belongs to a partitioned table: delete it there." {
		t.Errorf("got %s", got)
	}

	a.Delete("/tables/events/indexes/events_kind_idx").Want(200)

	asOwner(t, a, `
		create function public.stamp() returns trigger language plpgsql as 'begin return new; end';
		create trigger stamped after insert on public.events for each row execute function public.stamp()`)
	a.Delete("/tables/events_1/triggers/stamped").Want(409).Code("in_use")
}
