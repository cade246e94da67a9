package api_test

import (
	"fmt"
	"testing"

	"github.com/socle-dev/socle/internal/api/apitest"
)

func TestCreateConstraint(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	a.CreateTable("customers", "code text")
	a.CreateTable("orders", "customer integer", "price numeric", "mood text")
	asOwner(t, a,
		`insert into public.orders values (1, 7, -1, 'good'); create type public.mood as enum ('good', 'bad')`)

	const path = "/tables/orders/constraints"
	a.Post(path, `{"type": "check", "name": "dear", "expression": "price > 0"}`).Want(422).Code("violated").
		Field("expression")

	a.Post(path, `{"type": "check", "name": "dear", "expression": "price > 0", "not_valid": true}`).Want(201).
		Content("validated", false).Content("columns.0", "price")

	a.Put(path+"/dear/validate", "").Want(409).Code("violated")
	asOwner(t, a, "update public.orders set price = 1")
	for range 2 {
		a.Put(path+"/dear/validate", "").Want(200).Content("validated", true).
			Content("definition", "CHECK ((price > (0)::numeric))")
	}

	a.Post(path,
		`{"type": "check", "expression": "mood::mood in ('good', 'bad') and (mood ~ '^[a-z'']+$' or mood like '%;--/*')"}`).Want(201)

	a.Post(path, `{"type": "unique", "columns": ["customer", "price"]}`).Want(201).
		Content("name", "orders_customer_price_key")

	const reference = `{"type": "foreign", "columns": ["customer"], "reference_table": "customers", "reference_columns": ["id"], "on_delete": "cascade", "on_update": "restrict"`
	a.Post(path, reference+`}`).Want(422).Code("not_found").Field("columns")
	r := a.Post(path, reference+`, "name": "buyer", "not_valid": true}`).Want(201).Content("onDelete", "cascade").
		Content("onUpdate", "restrict").Content("validated", false)

	a.Put(path+"/buyer/validate", "").Want(409).Code("violated")
	wantEqual(t, a.Get(path).Want(200),
		a.Get("/tables/"+fmt.Sprint(a.Get("/tables/orders").Metadata("uuid"))+"/constraints"))

	if got := fmt.Sprint(values(a.Get(path), "name")); got !=
		"[buyer dear orders_customer_price_key orders_mood_check orders_pkey]" {
		t.Errorf("got %s", got)
	}

	a.Delete("/tables/customers/constraints/customers_pkey").Want(409).Code("in_use")
	a.Delete(path+"/buyer").Want(200).Content("definition", r.Get("definition"))
	a.Delete("/tables/customers/constraints/customers_pkey").Want(200)
	a.Post("/tables/customers/constraints", `{"type": "primary", "columns": ["id", "code"]}`).Want(201)
	a.Delete("/tables/auth.users/constraints/x").Want(400).Field("table")
	a.Get("/tables/auth.users/constraints").Want(400).Field("table")
	a.Put("/tables/auth.users/constraints/x/validate", "").Want(400)
	a.Delete(path + "/nope").Want(404)

	counts := concurrently(10, func(int) *apitest.Reply { return a.Delete(path + "/dear") })
	wantCounts(t, counts, map[int]int{200: 1, 404: 9})
	counts = concurrently(5, func(int) *apitest.Reply {
		return a.Post(path, `{"type": "check", "name": "one", "expression": "true"}`)
	})

	wantCounts(t, counts, map[int]int{201: 1, 409: 4})
}

// TestDeferredConstraints covers deferrable constraints, and the constraints that are dropped with
// a key.
func TestDeferredConstraints(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	a.CreateTable("customers", "code integer")
	a.CreateTable("orders", "customer integer")

	const keys, path = "/tables/customers/constraints", "/tables/orders/constraints"
	a.Post(keys, `{"type": "unique", "name": "codes", "columns": ["code"], "deferrable": true}`).Want(201).
		Content("deferrable", true).Content("initiallyDeferred", false)

	asOwner(t, a, "insert into public.customers values (1, 1), (2, 2); update public.customers set code = 3 - code")

	const reference = `{"type": "foreign", "columns": ["customer"], "reference_table": "customers", "reference_columns": ["id"], "name": `
	a.Post(path, reference+`"buyer", "deferrable": true, "initially_deferred": true}`).Want(201).
		Content("deferrable", true).Content("initiallyDeferred", true)

	asOwner(t, a, "begin; insert into public.orders values (1, 3); insert into public.customers values (3, 3); commit")
	a.Post(path, reference+`"x", "initially_deferred": true}`).Want(422).Code("not_applicable").
		Field("initially_deferred")
	a.Post(path, `{"type": "check", "expression": "true", "deferrable": true}`).Want(422).Code("not_applicable").
		Field("deferrable")

	r := a.Delete(keys + "/customers_pkey").Want(409).Code("in_use")
	a.Delete(keys + "/customers_pkey?cascade=yes").Want(400).Field("cascade")
	deleted := a.Delete(keys + "/customers_pkey?cascade=true").Want(200).Metadata("deleted")
	if got, want := fmt.Sprint(deleted), fmt.Sprint(r.Metadata("dependents")); got != want ||
		got != "[map[kind:table constraint name:buyer on public.orders]]" {
		t.Errorf("got deleted %s, dependents %s", got, want)
	}

	if got := fmt.Sprint(values(a.Get(path), "name")); got != "[orders_pkey]" {
		t.Errorf("got %s", got)
	}
}

// hostileExpressions try to escape from the parentheses of a condition, or do things that a
// condition must not do.
var hostileExpressions = []string{"", " ", "true) not valid, add column x text check (true",
	"true); drop table orders; --", "true) --", "true /* ", "(true", "true)", "true]", "'", `"`, "$$x$$ = $$x$$", "$1",
	"note = E'\\'' or true) --'", "note = U&'x'", `U&"note" = 'x'`, "true; select 1", "note = 'x''", "[true)",
	"note = $a$ ) $a$", "\\", "\x01", "select true", "true, true", "true) check (true", "note", "1", "nope = 1",
	"nope(note)", "nope.x", "note @@@ 'x'", "row_number() over () > 1", "count(*) > 1", "generate_series(1, 3) > 0",
	"true as x", "true from orders", "true union select true"}

func TestCreateConstraintRefuses(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	a.CreateTable("orders", "note text", "other integer")
	a.CreateTable("customers", "code text")
	asOwner(t, a, `insert into public.orders values (1, 'x', null), (2, 'x', null)`)

	const path = "/tables/orders/constraints"
	before := query[int](t, a, "select count(*) from pg_constraint")
	columns := databaseState(t, a)

	for _, text := range append(hostileExpressions, "exists (select 1)") {
		a.Post(path, `{"type": "check", "expression": `+quoted(text)+`}`).Want(422).Field("expression")
	}

	for body, field := range map[string]string{
		`{}`:                                "type",
		`{"type": "exclude"}`:               "type",
		`{"type": "check"}`:                 "expression",
		`{"type": "unique"}`:                "columns",
		`{"type": "unique", "columns": []}`: "columns",
		`{"type": "unique", "columns": ["nope"]}`:                                                                                                        "columns.0",
		`{"type": "unique", "columns": ["id", "id"]}`:                                                                                                    "columns.1",
		`{"type": "unique", "columns": ["note"]}`:                                                                                                        "columns",
		`{"type": "unique", "columns": ["ctid"]}`:                                                                                                        "columns.0",
		`{"type": "unique", "columns": ["id"], "not_valid": true}`:                                                                                       "not_valid",
		`{"type": "unique", "columns": ["id"], "name": "x;y"}`:                                                                                           "name",
		`{"type": "check", "expression": "true", "columns": ["id"]}`:                                                                                     "columns",
		`{"type": "foreign", "columns": ["id"]}`:                                                                                                         "reference_table",
		`{"type": "foreign", "columns": ["id"], "reference_table": "nope", "reference_columns": ["id"]}`:                                                 "reference_table",
		`{"type": "foreign", "columns": ["id"], "reference_table": "storage.files", "reference_columns": ["uuid"]}`:                                      "reference_table",
		`{"type": "foreign", "columns": ["id"], "reference_table": "pg_catalog.pg_class", "reference_columns": ["oid"]}`:                                 "reference_table",
		`{"type": "foreign", "columns": ["id"], "reference_table": "customers", "reference_columns": ["nope"]}`:                                          "reference_columns.0",
		`{"type": "foreign", "columns": ["id"], "reference_table": "customers", "reference_columns": ["id", "code"]}`:                                    "reference_columns",
		`{"type": "foreign", "columns": ["note"], "reference_table": "customers", "reference_columns": ["code"]}`:                                        "reference_columns",
		`{"type": "foreign", "columns": ["note"], "reference_table": "customers", "reference_columns": ["id"]}`:                                          "columns",
		`{"type": "foreign", "columns": ["id"], "reference_table": "customers", "reference_columns": ["id"], "on_delete": "cascade; drop table orders"}`: "on_delete",
	} {
		a.Post(path, body).Want(422).Field(field)
	}

	a.Post(path, `{"type": "primary", "columns": ["note"]}`).Want(409).Code("already_exists").Field("type")
	a.Post(path, `{"type": "check", "expression": "true", "name": "orders_pkey"}`).Want(409).Field("name")
	a.Post("/tables/missing/constraints", `{}`).Want(404)
	a.Post("/tables/auth.users/constraints", `{}`).Want(400)

	if after := query[int](t, a, "select count(*) from pg_constraint"); after != before {
		t.Errorf("got %d constraints, want %d", after, before)
	}
	if after := databaseState(t, a); after != columns {
		t.Errorf("a refused request changed\n%s\ninto\n%s", columns, after)
	}
}

// TestCrossReferences checks that two tables that get references to each other concurrently do
// not deadlock.
func TestCrossReferences(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	a.CreateTable("a")
	a.CreateTable("b")

	counts := concurrently(6, func(i int) *apitest.Reply {
		from, to := "a", "b"
		if i%2 == 1 {
			from, to = to, from
		}

		return a.Post("/tables/"+from+"/constraints",
			fmt.Sprintf(
				`{"type": "foreign", "name": "k%d", "columns": ["id"], "reference_table": %q, "reference_columns": ["id"]}`, i, to,
			))
	})

	wantStatuses(t, counts, 201, 409)

	if counts[201] == 0 {
		t.Errorf("got %v", counts)
	}
}

// TestReferenceToPartitionedTable checks that a foreign key to a partitioned table is one
// constraint, although PostgreSQL has one more for each partition.
func TestReferenceToPartitionedTable(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	asOwner(t, a, `
		create table public.events (id integer primary key, parent integer references public.events) partition by range (id);
		create table public.events_1 partition of public.events for values from (0) to (10);
		create table public.events_2 partition of public.events for values from (10) to (20);
		create table public.notes (id integer primary key, event integer references public.events not null)`)

	const path = "/tables/notes/constraints"
	for table, want := range map[string]string{
		"notes":    "[notes_event_fkey notes_pkey]",
		"events":   "[events_parent_fkey events_pkey]",
		"events_1": "[events_1_pkey events_parent_fkey]",
	} {
		if got := fmt.Sprint(values(a.Get("/tables/"+table+"/constraints").Want(200), "name")); got != want {
			t.Errorf("constraints of %s: got %s, want %s", table, got, want)
		}
	}

	a.Delete(path + "/notes_event_fkey1").Want(404)
	r := a.Delete("/tables/events").Want(409).Code("in_use")
	if got := fmt.Sprint(r.Metadata("dependents")); got !=
		"[map[kind:table constraint name:notes_event_fkey on public.notes]]" {
		t.Errorf("got the dependents %s", got)
	}

	var got []string
	for _, item := range a.Get("/projects/" + a.Project + "/lint").Want(200).Get("").([]any) {
		if f := item.(map[string]any); f["code"] == "foreign_key_without_index" {
			got = append(got, f["object"].(string))
		}
	}
	if fmt.Sprint(got) != "[events_parent_fkey on public.events events_parent_fkey on public.events_1 "+
		"events_parent_fkey on public.events_2 notes_event_fkey on public.notes]" {
		t.Errorf("got the findings %q", got)
	}

	a.Delete(path + "/notes_event_fkey").Want(200)
	a.Delete("/tables/events").Want(200)
}
