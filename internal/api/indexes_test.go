package api_test

import (
	"fmt"
	"strings"
	"testing"

	"socle/internal/api/apitest"
)

func TestCreateIndex(t *testing.T) {
	t.Parallel()
	a := apitest.New(t)
	a.CreateTable("orders", "note text", "price numeric", "data jsonb", "place point")
	asOwner(t, a, `insert into public.orders values (1, 'x'), (2, 'x')`)
	const path = "/tables/orders/indexes"
	a.Post(path, `{"columns": ["note", "price"]}`).Want(201).Content("name", "orders_note_price_idx").Content("status", "ready").
		Content("method", "btree").Content("columns.1", "price").Content("unique", false)
	a.Post(path, `{"name": "by_data", "columns": ["data"], "method": "gin"}`).Want(201).Content("method", "gin")
	a.Post(path, `{"name": "unique_pair", "columns": ["note", "id"], "unique": true}`).Want(201).Content("unique", true)
	if got := fmt.Sprint(values(a.Get(path).Want(200), "name")); got != "[by_data orders_note_price_idx orders_pkey unique_pair]" {
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
	a.Post("/tables/missing/indexes", `{}`).Want(404)
	a.Post("/tables/auth.users/indexes", `{}`).Want(400)
	a.Get("/tables/auth.users/indexes").Want(400)
	a.Delete("/tables/auth.users/indexes/x").Want(400)
	a.Delete(path + "/nope").Want(404)
	a.Delete(path + "/orders_pkey").Want(409).Code("in_use")
	asOwner(t, a, `create table public.lines (note text, id integer, foreign key (note, id) references public.orders (note, id)); create index "x""; drop" on public.orders (lower(note))`)
	r := a.Delete(path + "/unique_pair").Want(409).Code("in_use")
	if got := fmt.Sprint(r.Metadata("dependents")); got != "[map[kind:table constraint name:lines_note_id_fkey on public.lines]]" {
		t.Errorf("got %s", got)
	}
	a.Delete(path + "/x%22;%20drop").Want(200)
	counts := atOnce(10, func(int) *apitest.Reply { return a.Delete(path + "/by_data") })
	wantCounts(t, counts, map[int]int{200: 1, 404: 9})
	counts = atOnce(5, func(int) *apitest.Reply { return a.Post(path, `{"name": "one", "columns": ["id"]}`) })
	wantCounts(t, counts, map[int]int{201: 1, 409: 4})
}

// TestCreateIndexLater: on a large table an index is built in the background.
func TestCreateIndexLater(t *testing.T) {
	t.Parallel()
	a := apitest.New(t)
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
	// While someone has written and not committed, no index is ready.
	writer, err := a.ProjectDatabase().Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := writer.Exec(t.Context(), "insert into public.orders values (3, 'z', 'a')"); err != nil {
		t.Fatal(err)
	}
	a.Post(path, `{"columns": ["note"], "name": "noted"}`).Want(201).Content("status", "building").Content("definition", "")
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
	if _, reason := status("kinds"); reason != "unique can't be, for the table has rows with the same values" {
		t.Errorf("got the reason %q", reason)
	}
	if n := query[int](t, a, "select count(*) from pg_index where not indisvalid"); n != 0 {
		t.Errorf("%d indexes are left half made", n)
	}
	a.Delete(path+"/kinds").Want(200).Content("status", "failed")
	a.Delete(path + "/kinds").Want(404)

	large()
	a.Post(path, `{"columns": ["note"], "method": "gin"}`).Want(422).Field("method")
	a.Post(path, `{"columns": ["note"], "name": "orders_pkey"}`).Want(409).Field("name")
	counts := atOnce(5, func(int) *apitest.Reply { return a.Post(path, `{"columns": ["kind"], "name": "one"}`) })
	wantCounts(t, counts, map[int]int{201: 1, 409: 4})
	until(t, "the index is ready", is("one", "ready"))
}
