package api_test

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"github.com/socle-dev/socle/internal/api/apitest"
)

func TestCreateTableWithConstraints(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	a.CreateTable("customers")

	a.Post("/tables", `{"name": "lines", "comment": "what's sold", "columns": [
		{"name": "order_id", "type": "integer", "primary": true}, {"name": "line", "type": "integer", "primary": true, "comment": "from 1"},
		{"name": "customer", "type": "integer"}, {"name": "price", "type": "numeric(10,2)"}], "constraints": [
		{"type": "check", "name": "price_positive", "expression": "price > 0"},
		{"type": "unique", "columns": ["customer", "line"]},
		{"type": "foreign", "columns": ["customer"], "reference_table": "customers", "reference_columns": ["id"], "on_delete": "set null"}]}`).Want(201)

	r := a.Get("/tables/lines").Want(200)
	if got := fmt.Sprint(r.Metadata("comment"), r.Metadata("primaryKey"), r.Metadata("rowLevelSecurity")); got !=
		"what's sold[order_id line] true" {
		t.Errorf("got %s", got)
	}

	if got := a.Get("/tables/lines/columns").Want(200).Metadata("comments.line"); got != "from 1" {
		t.Errorf("got the comment %v", got)
	}

	k := a.Get("/tables/lines/constraints").Want(200)
	if got, want := values(k, "type"), []string{"foreign", "unique", "primary", "check"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}

	k.Content("0.referenceTable", "public.customers").Content("0.onDelete", "set null").
		Content("0.onUpdate", "no action")

	a.Post("/tables",
		`{"name": "bad", "columns": [{"name": "id", "type": "integer"}], "constraints": [{"type": "check", "expression": "nope > 0"}]}`).
		Want(422).Code("unknown_name").Field("constraints.0.expression")

	a.Get("/tables/bad").Want(404)
}

func TestUpdateTable(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	a.CreateTable("orders")
	r := a.Put("/tables/orders", `{"comment": "it's \\ 'so'"}`).Want(200)
	if r.Metadata("comment") != `it's \ 'so'` || r.Metadata("rowLevelSecurity") != true {
		t.Errorf("got %s", r.Body)
	}

	a.Put("/tables/orders", `{"row_level_security": false}`).Want(422).Code("confirmation_required").Field("confirm")
	r = a.Put("/tables/orders", `{"row_level_security": false, "confirm": true}`).Want(200)
	if r.Metadata("rowLevelSecurity") != false || r.Metadata("comment") != `it's \ 'so'` {
		t.Errorf("got %s", r.Body)
	}

	r = a.Put("/tables/orders", `{"row_level_security": true, "comment": ""}`).Want(200)
	if r.Metadata("rowLevelSecurity") != true || r.Metadata("comment") != "" {
		t.Errorf("got %s", r.Body)
	}

	a.Put("/tables/orders", `{}`).Want(422)
	a.Put("/tables/orders", `{"comment": "\u0000"}`).Want(422).Field("comment")
	a.Put("/tables/missing", `{"comment": 7}`).Want(404)
	a.Put("/tables/auth.users", `{"comment": "x"}`).Want(400).Field("table")
}

func TestDuplicateTable(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	a.CreateTable("customers")

	asOwner(t, a, `
		create table public.orders (id bigint generated always as identity primary key, counted serial, customer integer references public.customers,
			parent bigint references public.orders on delete cascade, price numeric default 9.5 check (price > 0), twice numeric generated always as (price * 2) stored);
		create index orders_price on public.orders (price);
		comment on table public.orders is 'sold'; comment on column public.orders.price is 'net';
		insert into public.customers values (1); insert into public.orders (customer, price) values (1, 1), (1, 2);
		create policy everything on public.orders using (true); grant all on public.orders to anon`)

	created := a.Post("/tables/orders/duplicate", `{"name": "copy", "with_rows": true}`).Want(201).
		Content("name", "copy")
	if created.Metadata("comment") != "sold" || created.Metadata("rowLevelSecurity") != true ||
		created.Metadata("uuid") == a.Get("/tables/orders").Metadata("uuid") {
		t.Errorf("got %s", created.Body)
	}

	asOwner(t, a, "insert into public.copy (price, parent) values (3, 1); insert into public.orders (price) values (4)")

	if got := query[string](t, a,
		"select string_agg(id || ' ' || counted || ' ' || price || ' ' || twice, ', ' order by id) from public.copy"); got != "1 1 1 2, 2 2 2 4, 3 3 3 6" {
		t.Errorf("got rows %s", got)
	}

	k := a.Get("/tables/copy/constraints").Want(200)
	if got, want := fmt.Sprint(values(k, "type"),
		values(k,
			"referenceTable")), "[foreign foreign primary check] [public.customers public.copy <nil> <nil>]"; got !=
		want {
		t.Errorf("got %s, want %s", got, want)
	}

	if got := query[int](t, a, "select count(*) from pg_index where indrelid = 'public.copy'::regclass"); got != 2 {
		t.Errorf("got %d indexes", got)
	}
	if query[bool](t, a,
		"select has_table_privilege('anon', 'public.copy', 'select') or exists (select from pg_policy where polrelid = 'public.copy'::regclass)") {
		t.Error("the copy is accessible to other roles")
	}

	a.Post("/tables/orders/duplicate", `{"name": "empty"}`).Want(201)
	asOwner(t, a, "insert into public.empty (price) values (3)")

	if got := query[string](t, a, "select id || ' ' || counted from public.empty"); got != "1 1" {
		t.Errorf("got %s", got)
	}

	a.Post("/tables/orders/duplicate", `{"name": "copy"}`).Want(409).Code("already_exists").Field("name")
	a.Post("/tables/orders/duplicate", `{"name": "x;y"}`).Want(422).Field("name")
	a.Post("/tables/auth.users/duplicate", `{"name": "users"}`).Want(400).Field("table")
	asOwner(t, a, `alter table public.orders add constraint none check (price > 100) not valid`)
	a.Post("/tables/orders/duplicate", `{"name": "broken", "with_rows": true}`).Want(422).Code("not_copied").
		Field("with_rows")

	a.Get("/tables/broken").Want(404)

	counts := concurrently(5, func(int) *apitest.Reply { return a.Post("/tables/orders/duplicate", `{"name": "one"}`) })
	wantCounts(t, counts, map[int]int{201: 1, 409: 4})
}

func TestDeleteTable(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	a.CreateTable("orders")
	asOwner(t, a,
		`create table public.lines (id integer references public.orders); create view public.totals as select count(*) from public.orders;
		create view public.more as select * from public.totals; create policy own on public.orders using (id > 0)`)

	r := a.Delete("/tables/orders").Want(409).Code("in_use")
	if got, want := fmt.Sprint(
		r.Metadata("dependents"),
	), "[map[kind:table constraint name:lines_id_fkey on public.lines] map[kind:view name:public.more] map[kind:view name:public.totals]]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}

	a.Get("/tables/orders").Want(200)
	a.Delete("/tables/orders?cascade=yes").Want(400).Field("cascade")
	r = a.Delete("/tables/orders?cascade=true").Want(200).Content("name", "orders")
	if got := len(r.Metadata("deleted").([]any)); got != 3 {
		t.Errorf("got %s", r.Body)
	}

	a.Get("/tables/orders").Want(404)
	a.Get("/tables/lines").Want(200)
	a.Delete("/tables/pg_catalog.pg_class").Want(400).Field("table")
	asOwner(t, a, `create table public."x""; drop table lines; --" ()`)
	a.Delete("/tables/" + fmt.Sprint(query[uint32](t, a, `select oid from pg_class where relname like 'x"%'`))).
		Want(200)
	a.Get("/tables/lines").Want(200)

	counts := concurrently(20, func(int) *apitest.Reply { return a.Delete("/tables/lines") })
	wantCounts(t, counts, map[int]int{200: 1, 404: 19})
}

// TestTableIfMatch checks that a table that has changed since it was read is not changed.
func TestTableIfMatch(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	a.CreateTable("orders")

	for path, body := range map[string]string{
		"/tables/orders":        `{"comment": "new"}`,
		"/tables/orders/grants": `{"grants": [{"role": "anon", "privileges": ["select"]}]}`,
	} {
		tag := "If-Match: " + a.Get(path).Want(200).Header.Get("ETag")
		a.Send("PUT", path, body, tag).Want(200)
		a.Send("PUT", path, body, tag).Want(412).Code("changed")
	}

	a.Send("DELETE", "/tables/orders", "", `If-Match: "stale"`).Want(412).Code("changed")
	a.Send("DELETE", "/tables/orders", "", "If-Match: "+a.Get("/tables/orders").Want(200).Header.Get("ETag")).Want(200)
}

// TestChangeLockedTable checks that every change of a table gives up after the lock timeout.
func TestChangeLockedTable(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	f := populate(t, a)

	holder, err := a.ConnectProject().Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}

	if _, err := holder.Exec(t.Context(),
		"lock table public.orders, public.old in row exclusive mode; lock table public.orders in share update exclusive mode"); err != nil {
		t.Fatal(err)
	}

	var blocked []call
	for _, c := range f.structureCalls() {
		if c.minRole == 4 && c.id != "createCompaction" /* runs in the background */ &&
			slices.Contains([]string{"/tables/orders", "/tables/old"}, tableOf(c.path)) {
			blocked = append(blocked, c)
		}
	}

	for batch := range slices.Chunk(blocked, 4) { // one per connection of the owner
		counts := concurrently(len(batch), func(i int) *apitest.Reply {
			r := batch[i].send(a)
			if r.Status != 409 || r.Metadata("code") != "busy" {
				t.Errorf("%s: got %s", batch[i].id, r.Body)
			}

			return r
		})

		wantCounts(t, counts, map[int]int{409: len(batch)})
	}

	if err := holder.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}

	for _, c := range blocked {
		if r := c.send(a); r.Status > 201 {
			t.Errorf("%s: got %s", c.id, r.Body)
		}
	}
}

// TestChangesTellMentions: a change answers the functions whose text names what changed, which the
// database does not change.
func TestChangesTellMentions(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	a.CreateTable("orders", "note text")
	a.Post("/enums", `{"name": "mood", "values": ["sad", "fine"]}`).Want(201)
	asOwner(t, a, `
		create function public.notes() returns bigint language plpgsql as
			'begin return (select count(note) from orders); end';
		create function public.moods() returns text language plpgsql as
			$$ begin perform notes(); return 'fine'::mood; end $$`)

	const notes, moods = "[map[kind:function name:public.notes()]]", "[map[kind:function name:public.moods()]]"
	for _, test := range []struct {
		reply *apitest.Reply
		want  string
	}{
		{a.Put("/tables/orders/columns/note", `{"type": "varchar(80)"}`), notes},
		{a.Put("/tables/orders/columns/note", `{"name": "remark"}`), notes},
		{a.Put("/tables/orders/columns/remark", `{"name": "note"}`), ""},
		{a.Put("/tables/orders/columns/note", `{"not_null": true}`), ""},
		{a.Delete("/tables/orders/columns/note"), notes},
		{a.Put("/tables/orders/rename", `{"name": "sales"}`), notes},
		{a.Put("/tables/sales/rename", `{"name": "orders"}`), ""},
		{a.Delete("/tables/orders"), notes},
		{a.Put("/enums/mood/values/fine", `{"value": "good"}`), moods},
		{a.Delete("/enums/mood"), moods},
		{a.Delete("/functions/public/notes"), moods},
	} {
		test.reply.Want(200)
		if test.want == "" {
			if bytes.Contains(test.reply.Body, []byte("mentions")) {
				t.Errorf("got %s, want no mentions", test.reply.Body)
			}
			continue
		}
		if got := fmt.Sprint(test.reply.Metadata("mentions")); got != test.want {
			t.Errorf("%s: got %s, want %s", test.reply.Body, got, test.want)
		}
	}
}
