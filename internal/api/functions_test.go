package api_test

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/socle-dev/socle/internal/api/apitest"
)

// functionBody returns the body that creates an SQL function.
func functionBody(name, parameters, definition, returns string) string {
	return fmt.Sprintf(`{"name": %q, "parameters": [%s], "language": "sql", "definition": %q, "return_type": %q}`, name,
		parameters, definition, returns)
}

func TestDeleteFunction(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	a.Post("/functions/public", functionBody("one", "", "select 1", "integer")).Want(201)
	r := a.Delete("/functions/public/one").Want(200).Content("schema", "public").Content("name", "one")
	if got := len(r.Get("").(map[string]any)); got != 2 {
		t.Errorf("got %d members, want 2\n%s", got, r.Body)
	}

	a.Delete("/functions/public/one").Want(400).Code("not_found")
	a.Post("/functions/public", functionBody("one", "", "select 1", "integer")).Want(201)
	a.Member(4).Delete("/functions/public/one").Want(200)

	asOwner(t, a,
		"create schema app; create function app.two() returns int language sql as 'select 2'; create procedure app.work() language sql as 'select 2'")

	a.Delete("/functions/app/two").Want(200)
	a.Delete("/functions/app/work").Want(200)
}

func TestDeleteFunctionOverloaded(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)

	const n, s, many = `{"name": "n", "type": "integer"}`, `{"name": "s", "type": "varchar"}`,
		`{"name": "m", "type": "timestamptz[]"}`
	for _, parameters := range []string{"", n, n + "," + s, many} {
		a.Post("/functions/public", functionBody("f", parameters, "select 1", "integer")).Want(201)
	}

	r := a.Delete("/functions/public/f").Want(400).Code("ambiguous").Field("arguments")
	var signatures []string
	for _, signature := range r.Metadata("signatures").([]any) {
		signatures = append(signatures, signature.(string))
	}

	if want := []string{"", "integer", "integer,varchar", "timestamptz[]"}; !slices.Equal(signatures, want) {
		t.Fatalf("got signatures %q, want %q", signatures, want)
	}

	before := databaseState(t, a)

	for _, arguments := range []string{"text", "integer,integer", "integer,", ",", "nope", "integer);drop table x",
		"integer)", "'", `"`, "--", "integer cascade", "void\x00", "\xff", strings.Repeat("integer,", 500)} {
		if r := a.Delete("/functions/public/f?arguments=" + url.QueryEscape(arguments)); r.Status != 400 {
			t.Errorf("arguments %.40q: got %d, want 400\n%s", arguments, r.Status, r.Body)
		}
	}

	a.Delete("/functions/public/f?arguments=&arguments=integer").Want(400).Field("arguments")
	a.Delete("/functions/public/f?cascade=true").Want(400).Field("cascade")

	if after := databaseState(t, a); after != before {
		t.Errorf("a refused request changed\n%s\ninto\n%s", before, after)
	}

	for i, signature := range slices.Backward(signatures) {
		path := "/functions/public/f?arguments=" + url.QueryEscape(signature)
		if i == 0 {
			path = "/functions/public/f" // the last one is unambiguous
		}

		a.Delete(path).Want(200).Content("name", "f")

		if i > 0 {
			a.Delete(path).Want(400).Code("not_found")
		}
	}
}

func TestDeleteFunctionRefuses(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	a.CreateTable("orders")
	a.Post("/functions/public", functionBody("used", `{"name": "n", "type": "integer"}`, "select n > 0", "boolean")).
		Want(201)

	asOwner(t, a,
		"alter table public.orders add check (public.used(id)); create view public.v as select 1; create aggregate public.total(int) (sfunc = int4pl, stype = int)")

	before := databaseState(t, a)

	a.Delete("/functions/public/used").Want(400).Code("in_use")

	for _, path := range []string{"public/missing", "missing/used", "public/total", "public/v", "public/orders"} {
		if r := a.Delete("/functions/" + path); r.Status != 400 {
			t.Errorf("%s: got %d, want 400\n%s", path, r.Status, r.Body)
		}
	}

	for _, schema := range []string{
		"pg_catalog", "auth", "storage", "forms", "realtime", "socle", "information_schema", "pg_temp",
	} {
		a.Delete("/functions/" + schema + "/now").Want(400).Code("reserved").Field("schema")
	}

	for _, name := range []string{
		"%22used%22", "used'", "used;", "used()", "used(integer)", "a%2Fb", "a%00b", "%FF", "us%20ed", "a.b",
		strings.Repeat("a", 64), strings.Repeat("a", 10_000), "%D0%BE",
	} {
		if r := a.Delete("/functions/public/" + name); r.Status != 400 {
			t.Errorf("%.40s: got %d, want 400\n%s", name, r.Status, r.Body)
		}
		if r := a.Delete("/functions/" + name + "/used"); r.Status != 400 {
			t.Errorf("schema %.40s: got %d, want 400\n%s", name, r.Status, r.Body)
		}
	}

	for _, path := range []string{
		"/functions/public/..", "/functions/../used", "/functions/public/%2e%2e", "/functions//used",
	} {
		if r := a.Delete(path); r.Status != 400 && r.Status != 404 && r.Status != 405 {
			t.Errorf("%s: got %d\n%s", path, r.Status, r.Body)
		}
	}

	a.Anonymous().Delete("/functions/pg_catalog/now").Want(401)

	if after := databaseState(t, a); after != before {
		t.Errorf("a refused request changed\n%s\ninto\n%s", before, after)
	}
	if !query[bool](t, a, "select public.used(1)") {
		t.Error("the function no longer works")
	}
}

func TestDeleteFunctionConcurrently(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	a.Post("/functions/public", functionBody("one", "", "select 1", "integer")).Want(201)
	wantCounts(t, concurrently(20, func(int) *apitest.Reply { return a.Delete("/functions/public/one") }),
		map[int]int{200: 1, 400: 19})
}

func TestCreateFunction(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	a.CreateTable("orders", "total integer")

	a.Post("/functions/public",
		`{"name": "add", "parameters": [{"name": "a", "type": "int"}, {"name": "b", "type": "integer"}],
		"language": "sql", "definition": "select a + b", "return_type": "int"}`).Want(201).
		Content("schema", "public").Content("name", "add").Content("arguments", "integer, integer").
		Content("returnType", "integer").
		Content("language", "sql").Content("definition", "select a + b").Content("parameters.1.name", "b")

	if got := query[int](t, a, "select public.add(3, 4)"); got != 7 {
		t.Errorf("add(3, 4) is %d", got)
	}

	a.Post("/functions/public", `{"name": "sum_all", "language": "plpgsql", "return_type": "bigint",
		"definition": "begin return (select sum(total) from orders); end"}`).Want(201)
	a.Post("/functions/public", functionBody("nothing", "", "delete from orders", "void")).Want(201)
	a.Post("/functions/public", functionBody("all_orders", "", "select * from orders", "setof orders")).Want(201)
	a.Post("/functions/public", functionBody("pairs", "", "select 1, 'a'", "table(n integer, s text)")).Want(201)
	a.Post("/functions/public",
		`{"name": "stamp", "language": "plpgsql", "return_type": "trigger", "definition": "begin return new; end"}`).
		Want(201)

	closed := query[bool](t, a,
		`select prosecdef = false and proowner::regrole::text like '%_owner' and not has_function_privilege('anon', oid, 'execute')
		and not has_function_privilege('authenticated', oid, 'execute') from pg_proc where proname = 'add'`)
	if !closed {
		t.Error("the function has the wrong owner, grants or security")
	}
}

func TestCreateFunctionRefuses(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	a.Post("/functions/public", functionBody("taken", "", "select 1", "integer")).Want(201)
	before := databaseState(t, a)
	a.Post("/functions/public", functionBody("taken", "", "select 2", "text")).Want(409).
		Code("already_exists").Field("name")

	a.Post("/functions/missing", functionBody("f", "", "select 1", "integer")).Want(404).Code("not_found")
	a.Post("/functions/pg_catalog", functionBody("f", "", "select 1", "integer")).Want(400).Field("schema")
	a.Post("/functions/public", `{`).Want(400).Code("malformed_json")

	const rest = `, "language": "sql", "definition": "select 1", "return_type": "integer"}`
	for body, fields := range map[string]string{
		`{}`:                                    "name definition language return_type",
		`{"name": "a b"` + rest:                 "name",
		`{"name": ""` + rest:                    "name",
		`{"name": "f", "parameters": {}` + rest: "parameters",
		`{"name": "f", "parameters": [{"name": "n"}]` +
			rest: "parameters.0.type",
		`{"name": "f", "parameters": [{"name": "n;", "type": "int"}]` +
			rest: "parameters.0.name",
		`{"name": "f", "parameters": [{"name": "n", "type": "nope"}]` +
			rest: "parameters.0.type",
		`{"name": "f", "parameters": [{"name": "n", "type": "int default 1"}]` +
			rest: "parameters.0.type",
		`{"name": "f", "parameters": [{"name": "n", "type": "int"}, {"name": "n", "type": "int"}]` +
			rest: "parameters.1.name",
		`{"name": "f", "language": "c", "definition": "x", "return_type": "integer"}`:                           "language",
		`{"name": "f", "language": "sql", "definition": "", "return_type": "integer"}`:                          "definition",
		`{"name": "f", "language": "sql", "definition": "selec 1", "return_type": "integer"}`:                   "definition",
		`{"name": "f", "language": "sql", "definition": "select 'a'::text", "return_type": "integer"}`:          "definition",
		`{"name": "f", "language": "sql", "definition": "select * from nowhere", "return_type": "integer"}`:     "definition",
		`{"name": "f", "language": "sql", "definition": "select 1", "return_type": "integer language c"}`:       "return_type",
		`{"name": "f", "language": "sql", "definition": "select 1", "return_type": "integer security definer"}`: "return_type",
		`{"name": "f", "language": "sql", "definition": "select 1", "return_type": 7}`:                          "return_type",
		`{"name": "f", "language": "sql", "definition": "$$; drop table x; $$", "return_type": "integer"}`:      "definition",
	} {
		a.Post("/functions/public", body).Want(422).Field(strings.Fields(fields)...)
	}

	if after := databaseState(t, a); after != before {
		t.Errorf("a refused request changed\n%s\ninto\n%s", before, after)
	}
}

func TestReplaceFunction(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	const n = `{"name": "n", "type": "integer"}`
	with := func(members, definition string) string {
		return strings.TrimSuffix(functionBody("f", n, definition, "integer"), "}") + ", " + members + "}"
	}

	executes := func(want string) {
		t.Helper()

		got := query[string](t, a,
			`select string_agg(r.rolname, ' ' order by 1) from pg_roles r where rolname in ('anon', 'authenticated', 'service_role')
			and has_function_privilege(r.oid, 'public.f(integer)', 'execute')`)
		if got != want {
			t.Errorf("got %s with the execute privilege, want %s", got, want)
		}
	}

	a.Post("/functions/public", with(`"replace": true`, "select n")).Want(201).Content("execute", "[]")
	executes("service_role")
	a.Post("/functions/public", functionBody("f", n, "select n + 1", "integer")).Want(409)
	a.Post("/functions/public", with(`"replace": true, "execute": ["anon"]`, "select n + 1")).Want(201).
		Content("execute.0", "anon").Content("definition", "select n + 1")

	executes("anon service_role")
	a.Post("/functions/public", with(`"replace": true`, "select n + 2")).Want(201)
	executes("anon service_role")
	a.Post("/functions/public", with(`"replace": true, "execute": ["authenticated"]`, "select n + 3")).Want(201)
	executes("authenticated service_role")
	a.Post("/functions/public", with(`"replace": true, "execute": []`, "select n + 4")).Want(201)
	executes("service_role")
	a.Post("/functions/public", with(`"execute": ["service_role"]`, "select n")).Want(422).Field("execute.0")
	a.Post("/functions/public", with(`"execute": "anon"`, "select n")).Want(422).Field("execute")

	renamed := strings.Replace(with(`"replace": true`, "select m"), `"n"`, `"m"`, 1)
	a.Post("/functions/public", renamed).Want(422).Code("not_replaceable").Field("return_type")
	a.Post("/functions/public",
		strings.Replace(with(`"replace": true`, "select n"), `"return_type": "integer"`, `"return_type": "bigint"`, 1)).
		Want(422).Code("not_replaceable").Field("return_type")
	a.Post("/functions/public", with(`"replace": true`, "select 'x'::text")).Want(422).Code("result_mismatch").
		Field("definition")

	asOwner(t, a, "create procedure public.p() language sql as 'select 1'")
	a.Post("/functions/public",
		strings.TrimSuffix(functionBody("p", "", "select 1", "integer"), "}")+`, "replace": true}`).
		Want(422).Code("not_replaceable").Field("name")

	if got := query[int](t, a, "select public.f(1)"); got != 5 {
		t.Errorf("f(1) is %d, want 5", got)
	}

	counts := concurrently(10, func(i int) *apitest.Reply {
		return a.Post("/functions/public", with(`"replace": true`, fmt.Sprint("select ", i)))
	})
	wantStatuses(t, counts, 201, 409)
}

func TestListFunctions(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	a.Get("/functions").Want(200).Content("", "[]")
	a.Post("/functions/public",
		functionBody("b", `{"name": "n", "type": "integer"}, {"name": "s", "type": "varchar(5)[]"}`, "select n",
			"setof integer")).Want(201)
	a.Post("/functions/public", functionBody("b", "", "select 1", "integer")).Want(201)
	asOwner(t, a, `create schema app; create procedure app.a(inout x int default 1) language sql as 'select 1';
		create function app."c""; --"(variadic text[], out one int, out two text) stable security definer language sql as $$select 1, 'x'$$; create domain app.d as int;
		create function app.body() returns table (n app.d, "N" int) immutable begin atomic select 1, 2; end; create aggregate app.total(int) (sfunc = int4pl, stype = int)`)

	r := a.Get("/functions?limit=3").Want(200).Content("0.name", "a").Content("0.kind", "procedure").
		Content("0.returnType", "").Content("0.parameters.0.name", "x").
		Content("1.name", "b").Content("1.arguments", "integer, varchar[]").Content("1.returnType", "setof integer").
		Content("1.execute", "[]")
	if got := fmt.Sprint(r.Metadata("total")); got != "5" {
		t.Errorf("got total %s, want 5", got)
	}

	a.Get("/functions?page=2&limit=3").Want(200).Content("1.name", `c"; --`).Content("1.securityDefiner", true).
		Content("1.volatility", "stable").Content("1.arguments", "text[]")
	a.Get("/functions?page=9").Want(200).Content("", "[]")

	if got := values(a.Get("/functions?schema=app").Want(200), "name"); fmt.Sprint(got) != `[a body c"; --]` {
		t.Errorf("got %v", got)
	}

	for _, bad := range []string{"pg_catalog", "auth", "a%22b", "%27"} {
		a.Get("/functions?schema=" + bad).Want(400).Field("schema")
	}

	a.Get("/functions/app/body").Want(200).Content("returnType", `table(n app.d, "N" integer)`).
		Content("volatility", "immutable").Content("language", "sql")

	a.Get("/functions/public/b").Want(400).Code("ambiguous")
	a.Get("/functions/public/b?arguments=").Want(200).Content("definition", "select 1")
	a.Get("/functions/public/b?arguments=int,varchar[]").Want(200).Content("definition", "select n")
	a.Get("/functions/public/b?arguments=text").Want(404)
	a.Get("/functions/public/nothing").Want(404).Code("not_found")
	a.Get("/functions/pg_catalog/now").Want(400).Code("reserved")
	a.Get("/functions/app/total").Want(404)
	a.Get("/languages?page=1").Want(200)
	a.Member(5).Get("/functions/app/body").Want(200)
	a.OtherUser().Get("/functions/app/body").Want(401)

	if got := fmt.Sprint(values(a.Get("/languages").Want(200), "name")); got != "[plpgsql sql]" {
		t.Errorf("got languages %s", got)
	}

	a.WithProject("garbage").Get("/languages").Want(400)
}
