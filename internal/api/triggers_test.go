package api_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/socle-dev/socle/internal/api/apitest"
)

// stamp is the body that creates a trigger function.
const stamp = `{"name": "stamp", "language": "plpgsql", "return_type": "trigger", "definition": "begin new.note := coalesce(new.note, '') || 'stamped'; return new; end"}`

// triggerBody returns the body that creates a trigger with that function.
func triggerBody(name string, members ...string) string {
	return fmt.Sprintf(`{"name": %q, "timing": "before", "events": ["insert", "update"], "function": "stamp"%s}`, name,
		strings.Join(append([]string{""}, members...), ", "))
}

func TestTriggers(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	a.CreateTable("orders", "note text")
	a.Post("/functions/public", stamp).Want(201)

	const path = "/tables/orders/triggers"
	a.Post(path, triggerBody("stamp", `"columns": ["note", "id"]`)).Want(201).Content("name", "stamp").
		Content("timing", "before").Content("level", "row").Content("events.1", "update").
		Content("columns.0", "note").Content("columns.1", "id").Content("function", "public.stamp").
		Content("enabled", true)

	a.Post(path,
		`{"name": "cleared", "timing": "after", "events": ["truncate", "delete"], "level": "statement", "function": "public.stamp"}`).Want(201)

	a.Get(path).Want(200).Content("0.name", "cleared").Content("0.level", "statement").Content("1.name", "stamp")

	note := func(id int, want string) {
		t.Helper()

		execute(t, a, fmt.Sprintf("insert into public.orders (id) values (%d)", id))

		if got := query[string](t, a, "select coalesce(note, '') from public.orders where id = $1", id); got != want {
			t.Errorf("got note %q, want %q", got, want)
		}
	}

	note(1, "stamped")
	a.Put(path+"/stamp", `{"enabled": false}`).Want(200).Content("enabled", false)
	note(2, "")
	a.Put(path+"/stamp", `{"enabled": false}`).Want(200)
	a.Put(path+"/stamp", `{"enabled": true}`).Want(200).Content("enabled", true)
	note(3, "stamped")
	a.Delete("/functions/public/stamp").Want(400).Code("in_use")
	a.Delete(path+"/stamp").Want(200).Content("name", "stamp")
	a.Delete(path + "/stamp").Want(404).Code("not_found")
	a.Put(path+"/stamp", `{}`).Want(404).Code("not_found")
	note(4, "")
	asOwner(t, a,
		`create trigger "a""b; drop table orders" before insert on public.orders for each row execute function public.stamp()`)

	a.Get(path).Want(200).Content("0.name", `a"b; drop table orders`)
	a.Put(path+`/a%22b;%20drop%20table%20orders`, `{"enabled": false}`).Want(200)
	a.Delete(path + `/a%22b;%20drop%20table%20orders`).Want(200)
	note(5, "")
}

// TestTriggersOfConditions checks the condition, arguments and timing of triggers.
func TestTriggersOfConditions(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	a.CreateTable("orders", "note text", "price integer")
	asOwner(t, a, `create table public.said (what text);
		create function public.say() returns trigger language plpgsql as $$ begin insert into public.said values (array_to_string(tg_argv, '|')); return new; end $$;
		create function public.dear(integer) returns boolean language sql immutable as 'select $1 > 100'`)

	const path = "/tables/orders/triggers"

	with := func(name, events, members string) string {
		return fmt.Sprintf(`{"name": %q, "timing": "after", "events": [%s], "function": "say", %s}`, name,
			events, members)
	}

	a.Post(path,
		with("dear", `"insert", "update"`,
			`"columns": ["price"], "when": "dear(new.price)", "arguments": ["it's", "", "\\", "ü $$"]`)).Want(201).
		Content("arguments.0", "it's").
		Content("arguments.1", "").Content("arguments.2", "\\").Content("arguments.3", "ü $$").
		Content("constraint", false).
		Content("definition",
			`CREATE TRIGGER dear AFTER INSERT OR UPDATE OF price ON public.orders FOR EACH ROW WHEN (public.dear(new.price)) EXECUTE FUNCTION public.say('it''s', '', '\', 'ü $$')`)

	a.Post(path,
		with("raised", `"update"`,
			`"when": "old.* is distinct from new.* and new.price > old.price", "arguments": ["raised"]`)).Want(201)

	a.Post(path,
		with("late", `"insert"`,
			`"constraint": true, "deferrable": true, "initially_deferred": true, "arguments": ["late"]`)).Want(201).
		Content("constraint", true).Content("deferrable", true).Content("initiallyDeferred", true)

	a.Post(path, with("once", `"truncate"`, `"level": "statement", "when": "current_user is null"`)).Want(201)

	said := func(sql, want string) {
		t.Helper()

		asOwner(t, a, sql)

		if got := query[string](t, a, "select coalesce(string_agg(what, ' ; '), '') from public.said"); got != want {
			t.Errorf("%s: got %q, want %q", sql, got, want)
		}

		asOwner(t, a, "truncate public.said")
	}

	said("insert into public.orders values (1, 'x', 101); insert into public.said values ('before')",
		`it's||\|ü $$ ; before ; late`)

	said("update public.orders set price = 100", "")
	said("update public.orders set price = 100; update public.orders set price = 102", `it's||\|ü $$ ; raised`)
	said("truncate public.orders", "")

	for members, want := range map[string]string{
		`"when": "new.nope > 1"`:                            "when unknown_name",
		`"when": "old.price > 1"`:                           "when unknown_name", // an insert has no old row
		`"when": "new.price"`:                               "when invalid_type",
		`"when": "new.price > 1) execute function x(); --"`: "when invalid_expression",
		`"when": "(select true)"`:                           "when not_supported",
		`"when": "count(*) > 1"`:                            "when not_supported",
		`"when": "true", "function": "dear"`:                "function not_found",
		`"arguments": ["a\u0000b"]`:                         "arguments.0 invalid_format",
		`"constraint": true, "timing": "before"`:            "constraint not_applicable",
		`"deferrable": true`:                                "deferrable not_applicable",
		`"constraint": true, "initially_deferred": true`:    "initially_deferred not_applicable",
	} {
		body := map[string]any{"name": "t", "timing": "after", "events": []string{"insert"}, "function": "say"}
		if err := json.Unmarshal([]byte("{"+members+"}"), &body); err != nil {
			t.Fatal(err)
		}

		text, err := json.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}

		f := a.Post(path, string(text)).Want(422).Metadata("fields.0").(map[string]any)
		if got := fmt.Sprint(f["field"], " ", f["code"]); got != want {
			t.Errorf("%s: got %s, want %s", members, got, want)
		}
	}
}

func TestTriggersRefused(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	a.CreateTable("orders", "note text")
	a.Post("/functions/public", stamp).Want(201)
	a.Post("/functions/public", functionBody("one", "", "select 1", "integer")).Want(201)

	const path = "/tables/orders/triggers"
	a.Post(path, triggerBody("taken")).Want(201)
	a.Post(path, triggerBody("taken")).Want(409).Code("already_exists").Field("name")
	a.Post("/tables/missing/triggers", `{}`).Want(404)
	a.Post("/tables/pg_catalog.pg_class/triggers", triggerBody("t")).Want(400)
	a.Get("/tables/missing/triggers").Want(404)
	a.Get("/tables/a;b/triggers").Want(400)
	a.Post(path, `{`).Want(400)
	a.Put(path+"/taken", `{`).Want(400)
	a.Put(path+"/taken", `{}`).Want(422).Field("enabled")
	a.Delete(path + "/" + strings.Repeat("x", 64)).Want(400)

	with := func(members string) string { return `{"name": "t", "timing": "before", ` + members + `}` }
	for body, field := range map[string]string{
		`{"timing": "before", "events": ["insert"], "function": "stamp"}`: "name",
		triggerBody("a b"):                                                             "name",
		triggerBody(strings.Repeat("x", 64)):                                           "name",
		triggerBody("t", `"level": "table"`):                                           "level",
		triggerBody("t", `"columns": ["n"]`):                                           "columns",
		triggerBody("t", `"columns": ["x\" or delete"]`):                               "columns",
		`{"name": "t", "timing": "during", "events": ["insert"], "function": "stamp"}`: "timing",
		with(`"events": [], "function": "stamp"`):                                      "events",
		with(`"events": ["insert", "insert"], "function": "stamp"`):                    "events",
		with(`"events": ["select"], "function": "stamp"`):                              "events.0",
		with(`"events": ["truncate"], "function": "stamp"`):                            "level",
		with(`"events": ["delete"], "columns": ["id"], "function": "stamp"`):           "columns",
		with(`"events": ["delete"], "function": "nothing"`):                            "function",
		with(`"events": ["delete"], "function": "one"`):                                "function",
		with(`"events": ["delete"], "function": "stamp(); drop table orders"`):         "function",
		with(`"events": ["delete"], "function": "socle.close_new_tables"`):             "function",
	} {
		a.Post(path, body).Want(422).Field(field)
	}

	asOwner(t, a,
		"create table public.parts (id int, note text) partition by range (id); create table public.part partition of public.parts for values from (0) to (9)")

	a.Post("/tables/parts/triggers", triggerBody("whole")).Want(201)
	a.Delete("/tables/part/triggers/whole").Want(409).Code("in_use")
	wantCounts(t, concurrently(10, func(int) *apitest.Reply { return a.Delete(path + "/taken") }),
		map[int]int{200: 1, 404: 9})

	tx, err := a.ConnectProject().Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(context.Background())

	if _, err := tx.Exec(t.Context(), "lock table public.parts"); err != nil {
		t.Fatal(err)
	}

	a.Put("/tables/parts/triggers/whole", `{"enabled": false}`).Want(409).Code("busy")
}
