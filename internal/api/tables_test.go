package api_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/api/apitest"
)

func TestRenameTable(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	created := a.CreateTable("orders", "note text")
	id, asUUID := fmt.Sprint(created.Get("id")), created.Metadata("uuid").(string)
	execute(t, a, "insert into public.orders values (1, 'kept')")

	r := a.Put("/tables/orders/rename", `{"name": "sales"}`).Want(200).Content("name", "sales").
		Content("schema", "public").
		Content("id", id).Content("estimatedRows", 0)
	if got := r.Metadata("uuid"); got != asUUID {
		t.Errorf("the UUID became %v, was %v", got, asUUID)
	}
	if !strings.HasSuffix(r.Get("totalSize").(string), " kB") {
		t.Errorf("got totalSize %v", r.Get("totalSize"))
	}

	a.Put("/tables/public.sales/rename", `{"name": "by_full_name", "projectUUID": "`+a.Project+`"}`).Want(200)
	a.Put("/tables/"+id+"/rename", `{"name": "by_id"}`).Want(200).Content("name", "by_id")
	a.Put("/tables/"+asUUID+"/rename", `{"name": "ByUUID", "schema": "other", "id": 7, "estimatedRows": 7}`).Want(200).
		Content("name", "ByUUID").Content("schema", "public").Content("id", id)
	a.Put("/tables/"+strings.ToUpper(asUUID)+"/rename", `{"name": "ByUUID"}`).Want(200).Content("name", "ByUUID")
	a.Put("/tables/public.ByUUID/rename", `{"name": "`+strings.Repeat("n", 63)+`"}`).Want(200)
	a.Put("/tables/"+id+"/rename", `{"name": "select"}`).Want(200).Content("name", "select")

	if got := query[string](t, a, `select note from public."select"`); got != "kept" {
		t.Errorf("got %q", got)
	}
}

func TestRenameTableRefuses(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	a.CreateTable("orders")
	a.CreateTable("taken")
	execute(t, a,
		"create view public.seen as select 1; create type public.mood as enum ('good'); create schema app; create table app.orders ()")

	before := databaseState(t, a)

	for _, name := range append(hostileNames, "", strings.Repeat("n", 64), strings.Repeat("é", 32), "1st",
		"a b", "ünï") {
		r := a.Put("/tables/orders/rename", `{"name": `+quoted(name)+`}`)
		if r.Status != 422 {
			t.Errorf("name %q: got %d, want 422\n%s", name, r.Status, r.Body)
			continue
		}

		r.Field("name")
	}

	for body, field := range map[string]string{
		`{}`: "name", `{"name": null}`: "name", `{"name": 7}`: "name", `{"name": ["a"]}`: "name",
		`{"name": {"a": 1}}`: "name", `{"name": true}`: "name", `{"Name": "sales"}`: "name",
		`{"name": "a\u0000"}`: "name",
	} {
		a.Put("/tables/orders/rename", body).Want(422).Field(field)
	}

	for _, name := range []string{"taken", "seen", "mood"} {
		a.Put("/tables/orders/rename", `{"name": "`+name+`"}`).Want(422).Code("already_exists").Field("name")
	}

	for _, body := range malformed {
		a.Put("/tables/orders/rename", body).Want(400)
	}

	for _, ref := range badTables {
		if r := a.Put("/tables/"+ref+"/rename", `{"name": "sales"}`); r.Status != 400 {
			t.Errorf("table %q: got %d, want 400\n%s", ref, r.Status, r.Body)
		}
	}

	for _, ref := range []string{
		"missing", "app.missing", "missing.orders", "999999999", "1259", apitest.MissingUUID, uuid.NewString(),
		"seen", "taken_pkey",
	} {
		// Existence is checked before the fields.
		a.Put("/tables/"+ref+"/rename", `{"name": ""}`).Want(400).Code("not_found")
	}

	a.Anonymous().Put("/tables/a%00b/rename", `{`).Want(401)

	if after := databaseState(t, a); after != before {
		t.Errorf("a refused request changed\n%s\ninto\n%s", before, after)
	}
}

// hostileNames are invalid names that try to escape into a statement.
var hostileNames = []string{
	`x"; drop table orders; --`, `x'`, "x;y", "x--", "x/*", "a.b", "$$", `\`, "a\nb", " sales", "sales ", "sales\t",
	"\u202esales", "sa\u200bles", "\U0001F600", "\ufeffsales", "%", "a%00b",
}

// malformed are bodies that are not a JSON object.
var malformed = []string{``, `{`, `null`, `[]`, `"x"`, `1`, `{"name": "a"} {}`, `{"name": "a", "name": "b"}`,
	`{'name': 'a'}`, `{"name": NaN}`, "{\"name\": \"\xff\"}", `{"name": "\ud800"}`, `{"name": "a",}`, "\ufeff{}",
	`{"name": "a"} // b`}

// badTables are references to tables that do not exist or belong to the platform.
var badTables = []string{"pg_catalog.pg_class", "information_schema.tables", "auth.users", "storage.files",
	"forms.fields", "socle.migrations", "realtime.x", "a.b.c", "a.b.c.d", "%22orders%22", "orders;", "orders'", "a%00b",
	"a%2Fb", "%2F", "public.", ".orders", "%20orders", "99999999999999999999", "-1", "%D0%BE", "%FF",
	strings.Repeat("a", 64), strings.Repeat("a", 10_000)}

func TestRenameTableConcurrently(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	id := fmt.Sprint(a.CreateTable("orders").Get("id"))
	t.Run("one table, ten names", func(t *testing.T) {
		counts := concurrently(10, func(i int) *apitest.Reply {
			return a.Put("/tables/"+id+"/rename", fmt.Sprintf(`{"name": "name%d"}`, i))
		})
		wantCounts(t, counts, map[int]int{200: 10})

		if name := query[string](t, a, "select relname from pg_class where oid = $1",
			id); !strings.HasPrefix(name, "name") {
			t.Errorf("got table name %q", name)
		}
	})

	t.Run("one name's table, ten names", func(t *testing.T) {
		a.Put("/tables/"+id+"/rename", `{"name": "orders"}`).Want(200)
		counts := concurrently(10, func(i int) *apitest.Reply {
			return a.Put("/tables/orders/rename", fmt.Sprintf(`{"name": "name%d"}`, i))
		})

		wantCounts(t, counts, map[int]int{200: 1, 400: 9})
	})

	t.Run("two tables, one name", func(t *testing.T) {
		a.CreateTable("left")
		a.CreateTable("right")

		counts := concurrently(2, func(i int) *apitest.Reply {
			return a.Put("/tables/"+[]string{"left", "right"}[i]+"/rename", `{"name": "middle"}`)
		})
		wantCounts(t, counts, map[int]int{200: 1, 422: 1})
	})

	t.Run("twenty tables of one name", func(t *testing.T) {
		counts := concurrently(20, func(int) *apitest.Reply {
			return a.Post("/tables", `{"name": "twenty", "columns": [{"name": "id", "type": "integer"}]}`)
		})
		wantCounts(t, counts, map[int]int{201: 1, 409: 19})
	})
}

// TestRenameLockedTable checks that the rename of a locked table gives up after the lock timeout.
func TestRenameLockedTable(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	a.CreateTable("orders")

	holder, err := a.ConnectProject().Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}

	if _, err := holder.Exec(t.Context(), "lock table public.orders in access share mode"); err != nil {
		t.Fatal(err)
	}

	a.Put("/tables/orders/rename", `{"name": "sales"}`).Want(422).Code("busy")
	a.Get("/tables/orders").Want(200)

	if err := holder.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}

	a.Put("/tables/orders/rename", `{"name": "sales"}`).Want(200)
}

func TestCreateTable(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	a.CreateTable("customers")

	r := a.Post("/tables", `{"name": "orders", "columns": [
		{"name": "id", "type": "bigserial", "primary": true},
		{"name": "customer", "type": "int", "not_null": true, "reference_table": "customers", "referenceColumn": "id"},
		{"name": "tags", "type": "text[]", "default_value": "{}"},
		{"name": "code", "type": "varchar(8)", "unique": true}]}`).Want(201).
		Content("name", "orders").Content("schema", "public").Content("estimatedRows", 0)

	uuid.MustParse(r.Metadata("uuid").(string))
	columns := a.Get("/tables/orders/columns").Want(200)
	if got, want := values(columns, "name"), []string{"id", "customer", "tags", "code"}; !slices.Equal(got, want) {
		t.Errorf("got columns %q, want %q", got, want)
	}

	if got, want := values(columns, "type"), []string{
		"bigint", "integer", "text[]", "varchar(8)",
	}; !slices.Equal(got, want) {
		t.Errorf("got types %q, want %q", got, want)
	}
	if got, want := values(columns, "referenceTable"), []string{
		"<nil>", "public.customers", "<nil>", "<nil>",
	}; !slices.Equal(got, want) {
		t.Errorf("got references to %q, want %q", got, want)
	}

	closed := query[bool](t, a, `select relrowsecurity and relowner::regrole::text like '%_owner' and not exists (
			select from pg_policy where polrelid = c.oid)
		and not has_table_privilege('anon', c.oid, 'select, insert, update, delete, truncate')
		and not has_table_privilege('authenticated', c.oid, 'select, insert, update, delete, truncate')
		from pg_class c where oid = 'public.orders'::regclass`)
	if !closed {
		t.Error("the new table is accessible to other roles")
	}
}

func TestCreateTableRefuses(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	a.CreateTable("taken")
	before := databaseState(t, a)

	const id = `[{"name": "id", "type": "integer"}]`
	for body, field := range map[string]string{
		`{"columns": ` + id + `}`:                                                  "name",
		`{"name": "a"}`:                                                            "columns",
		`{"name": "a", "columns": []}`:                                             "columns",
		`{"name": "a", "columns": {}}`:                                             "columns",
		`{"name": "a", "columns": [7]}`:                                            "columns.0",
		`{"name": "a", "columns": [{"name": "id"}]}`:                               "columns.0.type",
		`{"name": "a", "columns": [{"type": "text"}]}`:                             "columns.0.name",
		`{"name": "a", "columns": [{"name": "b", "type": "nope"}]}`:                "columns.0.type",
		`{"name": "a", "columns": [{"name": "b", "type": "text", "not_null": 1}]}`: "columns.0.notNull",
		`{"name": "a", "columns": [{"name": "b", "type": "text"}, {"name": "b", "type": "text"}]}`:                    "columns.1.name",
		`{"name": "a", "columns": [{"name": "b", "type": "int", "foreign": true}]}`:                                   "columns.0.referenceTable",
		`{"name": "a", "columns": [{"name": "b", "type": "int", "referenceTable": "none", "referenceColumn": "id"}]}`: "columns.0.referenceTable",
		`{"name": "a;", "columns": ` + id +
			`}`: "name",
		`{"name": "a", "schema": "missing", "columns": ` + id +
			`}`: "schema",
		`{"name": "a", "schema": "x;y", "columns": ` + id +
			`}`: "schema",
		`{"name": "a", "schema": 7, "columns": ` + id +
			`}`: "schema",
		`{"name": "a", "columns": [` + strings.Repeat(`{"name": "x", "type": "text"},`, 1600) + id[1:] +
			`}`: "columns",
	} {
		a.Post("/tables", body).Want(422).Field(field)
	}

	for _, schema := range []string{
		"auth", "storage", "forms", "realtime", "socle", "pg_catalog", "pg_anything", "information_schema",
	} {
		a.Post("/tables", `{"name": "a", "schema": "`+schema+`", "columns": `+id+`}`).Want(400).Code("reserved").
			Field("schema")
	}

	a.Post("/tables", `{"name": "taken", "columns": `+id+`}`).Want(409).Code("already_exists").Field("name")
	a.Post("/tables", `{`).Want(400).Code("malformed_json")

	if after := databaseState(t, a); after != before {
		t.Errorf("a refused request changed\n%s\ninto\n%s", before, after)
	}
}

func TestGetTable(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	r := a.CreateTable("orders")
	for _, ref := range []string{"orders", "public.orders", fmt.Sprint(r.Get("id")), r.Metadata("uuid").(string)} {
		got := a.Get("/tables/"+ref).Want(200).Content("name", "orders")
		if got.Metadata("uuid") != r.Metadata("uuid") {
			t.Errorf("%s: got the UUID %v", ref, got.Metadata("uuid"))
		}
	}

	a.Get("/tables/missing").Want(404).Code("not_found")
	a.Get("/tables/" + apitest.MissingUUID).Want(404)
	a.Get("/tables/pg_catalog.pg_class").Want(400).Field("table")
	a.Get("/tables/missing/columns").Want(404).Code("not_found")
	a.Get("/tables/auth.users/columns").Want(400).Field("table")
	a.OtherUser().Get("/tables/orders").Want(401)
	a.Anonymous().Get("/tables/orders/columns").Want(401)
}

func TestListTables(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	r := a.Get("/tables").Want(200)
	if got := r.Get("").([]any); len(got) != 0 || r.Metadata("total") != json.Number("0") ||
		r.Metadata("totalPages") != json.Number("0") {
		t.Errorf("got tables in a new project: %s", r.Body)
	}

	for _, name := range []string{"c", "a", "b"} {
		a.CreateTable(name)
	}

	asOwner(t, a,
		`create schema app; create table app.a (); create table public."x""; drop table a; --" (); create view public.v as select 1`)

	r = a.Get("/tables").Want(200)
	if got, want := values(r, "name"), []string{"a", "a", "b", "c", `x"; drop table a; --`}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}

	a.Get("/tables?search=PP.A").Want(200).Total(1).Content("0.schema", "app")
	a.Get("/tables?search=public.&limit=1&page=4").Want(200).Total(4).Content("0.name", `x"; drop table a; --`)
	a.Get("/tables?search=%25&page=2").Want(200).Total(0)

	uuids := r.Metadata("uuids").(map[string]any)
	if len(uuids) != 5 {
		t.Errorf("got uuids %v", uuids)
	}

	for name, id := range uuids {
		if got := a.Get("/tables/" + id.(string)).
			Want(200); got.Get("schema").(string)+"."+got.Get("name").(string) != name {
			t.Errorf("got table of %s: %s", name, got.Body)
		}
	}

	a.Put("/tables/"+uuids[`public.x"; drop table a; --`].(string)+"/rename", `{"name": "tame"}`).Want(200).
		Content("name", "tame")
	a.Get("/tables?sort=schema&order=desc&limit=1&page=5").Want(200).Content("0.schema", "app")
	wantPages(t, a, "/tables", "name", []string{"name", "schema", "id", "estimatedRows"}, 5)
}

// wantPages fails the test unless a list with this total follows the rules of lists. first is the
// default sort.
func wantPages(t *testing.T, a *apitest.API, path, first string, sorts []string, total int) {
	t.Helper()

	whole := a.Get(path).Want(200)
	wantPage(t, whole, 1, 20, total, first, "asc")

	if len(whole.Get("").([]any)) != total {
		t.Errorf("%s: got %s", path, whole.Body)
	}

	for _, sort := range sorts {
		for _, order := range []string{"asc", "desc"} {
			seen := map[string]bool{}
			for page := 1; page <= total+1; page++ {
				r := a.Get(fmt.Sprintf("%s?page=%d&limit=1&sort=%s&order=%s", path, page, sort, order)).Want(200)
				wantPage(t, r, page, 1, total, sort, order)

				for _, item := range r.Get("").([]any) {
					seen[fmt.Sprint(item)] = true
				}
			}

			if len(seen) != total { // overlapping pages repeat one item and skip another
				t.Errorf("%s by %s %s: got %d different items in %d pages", path, sort, order, len(seen), total)
			}
		}
	}

	wantPage(t, a.Get(path+"?limit=100&page=100000000").Want(200), 100000000, 100, total, first, "asc")

	for _, name := range []string{"page", "limit"} {
		for _, value := range []string{
			"", "0", "-1", "1.5", "1e2", "1e9", "9223372036854775808", "18446744073709551617", "abc", "%00",
			"1%3Bselect", "+1", "0x1", "%D9%A1",
		} {
			a.Get(path + "?" + name + "=" + value).Want(400).Field(name)
		}

		a.Get(path + "?" + name + "=1&" + name + "=1").Want(400).Field(name)
	}

	a.Get(path + "?limit=101").Want(400).Field("limit")

	for _, value := range []string{"", "ASC", "down", "asc,desc", "asc%3B", "%27"} {
		a.Get(path + "?order=" + value).Want(400).Field("order")
	}

	for _, value := range []string{
		"", "nothing", "uuid", "Name", "name%3Bdrop", "name%20desc", "1", "(select%201)", "%22name%22", "%00",
	} {
		a.Get(path + "?sort=" + value).Want(400).Field("sort")
	}

	a.Get(path + "?sort=" + first + "&sort=" + first).Want(400).Field("sort")
	a.Get(path + "?offset=1").Want(400).Code("invalid_value").Field("offset")
	a.Get(path + "?page=0&limit=0&sort=x&order=y").Want(400)
}

func wantPage(t *testing.T, r *apitest.Reply, page, limit, total int, sort, order string) {
	t.Helper()

	got := fmt.Sprintln(r.Metadata("page"), r.Metadata("limit"), r.Metadata("total"), r.Metadata("totalPages"),
		r.Metadata("sort"), r.Metadata("order"))
	if want := fmt.Sprintln(page, limit, total, (total+limit-1)/limit, sort, order); got != want {
		t.Errorf("got page, limit, total, totalPages, sort, order %s, want %s", got, want)
	}
}
