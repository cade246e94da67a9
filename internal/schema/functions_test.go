package schema_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/schema"
)

// function creates a function in public that returns an integer.
func (p *project) function(name, definition string, parameters ...schema.Parameter) {
	p.t.Helper()

	_, err := schema.CreateFunction(p.t.Context(), p.owner, schema.NewFunction{Schema: "public",
		Name: name, Parameters: parameters,
		Definition: definition, Language: "sql", ReturnType: "integer"})
	if err != nil {
		p.t.Fatalf("create function %s: %v", name, err)
	}
}

func TestCreateFunction(t *testing.T) {
	t.Parallel()

	p := newProject(t)
	p.sql(`create schema app`, `create type public.mood as enum ('ok')`,
		`create table public.orders (id int, total numeric)`, `insert into public.orders values (1, 5), (2, 7)`)

	type P = schema.Parameter
	type info = schema.FunctionInfo
	for _, test := range []struct {
		new   schema.NewFunction
		want  info
		call  string
		value string
	}{
		{schema.NewFunction{Schema: "public", Name: "add", Parameters: []P{{"a", "int"}, {"b", "integer"}},
			Definition: "select a + b", Language: "sql", ReturnType: "integer"},
			info{Arguments: "integer, integer",
				Parameters: []P{{"a", "integer"}, {"b", "integer"}}, ReturnType: "integer"}, "public.add(1, 2)", "3"},
		{schema.NewFunction{Schema: "public", Name: "add", Parameters: []P{{"a", "text"}},
			Definition: "begin\n  return a || ' it''s $$ \\ ; ';\nend", Language: "plpgsql", ReturnType: "varchar(80)"},
			info{Arguments: "text", Parameters: []P{{"a", "text"}}, ReturnType: "varchar"}, "public.add('x')",
			`x it's $$ \ ; `},
		{schema.NewFunction{Schema: "app", Name: "Sum", Definition: "select sum(total) from orders",
			Language: "sql", ReturnType: "numeric"},
			info{Parameters: []P{}, ReturnType: "numeric"}, `app."Sum"()`, "12"},
		{schema.NewFunction{Schema: "app", Name: "ids", Definition: "select id from orders",
			Language: "sql", ReturnType: "SETOF int4"},
			info{Parameters: []P{}, ReturnType: "setof integer"}, "(select max(i) from app.ids() i)", "2"},
		{schema.NewFunction{Schema: "app", Name: "list", Parameters: []P{{"least", "numeric"}},
			Definition: "select id, total from orders where total > least",
			Language:   "sql", ReturnType: "table (id integer, \"Total\" numeric(10,2))"},
			info{Arguments: "numeric",
				Parameters: []P{{"least", "numeric"}}, ReturnType: `table(id integer, "Total" numeric)`},
			"(select max(id) from app.list(6))", "2"},
		{schema.NewFunction{Schema: "app", Name: "nothing", Definition: "delete from public.orders where false",
			Language: "sql", ReturnType: "void"},
			info{Parameters: []P{}, ReturnType: "void"}, "app.nothing()", "<null>"},
		{schema.NewFunction{Schema: "app", Name: "touch", Definition: "begin return new; end",
			Language: "plpgsql", ReturnType: "trigger"},
			info{Parameters: []P{}, ReturnType: "trigger"}, "'app.touch()'::regprocedure", "app.touch()"},
		{schema.NewFunction{Schema: "app", Name: "moods", Parameters: []P{{"select", "mood[]"}},
			Definition: "select $1[1]", Language: "sql", ReturnType: "public.mood"},
			info{Arguments: "mood[]", Parameters: []P{{"select", "mood[]"}}, ReturnType: "mood"},
			"app.moods('{ok}')", "ok"},
		{schema.NewFunction{Schema: "app", Name: "row", Definition: "select * from orders where id = 1",
			Language: "sql", ReturnType: "setof public.orders"},
			info{Parameters: []P{}, ReturnType: "setof orders"}, "app.row()", "(1,5)"},
	} {
		got, err := schema.CreateFunction(t.Context(), p.owner, test.new)
		want := schema.Function{FunctionInfo: test.want, Definition: test.new.Definition}
		want.Schema, want.Name, want.Language = test.new.Schema, test.new.Name, test.new.Language

		want.Kind, want.Volatility, want.Execute = "function", "volatile", []string{}
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("function %s: %v\n%s", test.new.Name, err, diff)
			continue
		}

		if value := p.value("select (" + test.call + ")::text"); value != test.value {
			t.Errorf("%s: got %q, want %q", test.call, value, test.value)
		}
	}

	if got := p.value(`select bool_and(not prosecdef and pg_get_userbyid(proowner) like 'owner_of_%' and not has_function_privilege('public', oid, 'execute')) from pg_proc
		where pronamespace in ('public'::regnamespace, 'app'::regnamespace)`); got != "true" {
		t.Error("the new function is executable by others, or not security invoker")
	}
}

func TestCreateFunctionRefused(t *testing.T) {
	t.Parallel()

	p := newProject(t)
	p.table("canary", column("id"))
	p.function("taken", "select 1", schema.Parameter{Name: "a", Type: "varchar(5)"})
	p.run(p.platform, `create schema extensions`)
	before := p.snapshot()

	type F = schema.NewFunction
	type P = []schema.Parameter
	fine := F{Schema: "public", Name: "f", Definition: "select 1", Language: "sql", ReturnType: "integer"}
	for label, test := range map[string]struct {
		change func(f *F)
		kind   fault.Kind
		field  string
		code   string
	}{
		"platform's schema": {func(f *F) { f.Schema = "auth" }, fault.Invalid, "schema", "reserved"},
		"catalog":           {func(f *F) { f.Schema = "pg_catalog" }, fault.Invalid, "schema", "reserved"},
		"hostile schema":    {func(f *F) { f.Schema = `public"; --` }, fault.Invalid, "schema", "invalid_format"},
		"no schema":         {func(f *F) { f.Schema = "" }, fault.Invalid, "schema", "required"},
		"unknown schema":    {func(f *F) { f.Schema = "nothing" }, fault.NotFound, "", "not_found"},
		"another's schema":  {func(f *F) { f.Schema = "extensions" }, fault.Unprocessable, "schema", "not_owned"},
		"no name":           {func(f *F) { f.Name = "" }, fault.Unprocessable, "name", "required"},
		"hostile name": {func(f *F) {
			f.Name = "f() returns int as $$"
		}, fault.Unprocessable, "name", "invalid_format"},
		"taken": {func(f *F) {
			f.Name, f.Parameters = "taken", P{{"b", "varchar"}}
		}, fault.Conflict, "name", "already_exists"},
		"taken, other result": {func(f *F) {
			f.Name, f.Parameters, f.ReturnType = "taken", P{{"b", "varchar"}}, "setof integer"
		}, fault.Conflict, "name", "already_exists"},
		"language c": {func(f *F) { f.Language = "c" }, fault.Unprocessable, "language", "not_supported"},
		"hostile language": {func(f *F) {
			f.Language = "sql security definer"
		}, fault.Unprocessable, "language", "not_supported"},
		"parameter's name": {func(f *F) {
			f.Parameters = P{{"a", "text"}, {"b text) --", "text"}}
		}, fault.Unprocessable, "parameters.1.name", "invalid_format"},
		"parameter twice": {func(f *F) {
			f.Parameters = P{{"a", "text"}, {"a", "text"}}
		}, fault.Unprocessable, "parameters.1.name", "duplicate"},
		"parameter's type": {func(f *F) {
			f.Parameters = P{{"a", "text default 'x'"}}
		}, fault.Unprocessable, "parameters.0.type", "invalid_type"},
		"serial parameter": {func(f *F) {
			f.Parameters = P{{"a", "serial"}}
		}, fault.Unprocessable, "parameters.0.type", "invalid_type"},
		"pseudo parameter": {func(f *F) {
			f.Parameters = P{{"a", "internal"}}
		}, fault.Unprocessable, "parameters.0.type", "invalid_type"},
		"101 parameters": {func(f *F) {
			f.Parameters = make(P, 101)
		}, fault.Unprocessable, "parameters", "too_many"},
		"no result": {func(f *F) { f.ReturnType = "" }, fault.Unprocessable, "return_type", "required"},
		"hostile result": {func(f *F) {
			f.ReturnType = "integer security definer"
		}, fault.Unprocessable, "return_type", "invalid_type"},
		"setof void": {func(f *F) {
			f.ReturnType = "setof void"
		}, fault.Unprocessable, "return_type", "invalid_type"},
		"setof setof": {func(f *F) {
			f.ReturnType = "setof setof integer"
		}, fault.Unprocessable, "return_type", "invalid_type"},
		"serial result": {func(f *F) {
			f.ReturnType = "serial"
		}, fault.Unprocessable, "return_type", "invalid_type"},
		"event trigger": {func(f *F) {
			f.ReturnType = "event_trigger"
		}, fault.Unprocessable, "return_type", "invalid_type"},
		"trigger in sql": {func(f *F) {
			f.ReturnType = "trigger"
		}, fault.Unprocessable, "return_type", "invalid_type"},
		"trigger with parameters": {func(f *F) {
			f.ReturnType, f.Language, f.Parameters = "trigger", "plpgsql", P{{"a", "text"}}
		},
			fault.Unprocessable, "parameters", "not_applicable"},
		"empty table": {func(f *F) {
			f.ReturnType = "table()"
		}, fault.Unprocessable, "return_type", "invalid_type"},
		"unclosed table": {func(f *F) {
			f.ReturnType = "table(a integer"
		}, fault.Unprocessable, "return_type", "invalid_type"},
		"table and more": {func(f *F) {
			f.ReturnType = "table(a integer) language c"
		}, fault.Unprocessable, "return_type", "invalid_type"},
		"table of no type": {func(f *F) {
			f.ReturnType = "table(a)"
		}, fault.Unprocessable, "return_type", "invalid_type"},
		"table of serial": {func(f *F) {
			f.ReturnType = "table(a serial)"
		}, fault.Unprocessable, "return_type", "invalid_type"},
		"table, repeated": {func(f *F) {
			f.ReturnType = "table(a integer, a text)"
		}, fault.Unprocessable, "return_type", "duplicate"},
		"table, odd name": {func(f *F) {
			f.ReturnType = `table("a b" integer)`
		}, fault.Unprocessable, "return_type", "invalid_format"},
		"blank definition": {func(f *F) { f.Definition = " \n" }, fault.Unprocessable, "definition", "required"},
		"NUL": {func(f *F) {
			f.Definition = "select 1\x00"
		}, fault.Unprocessable, "definition", "invalid_value"},
		"syntax": {func(f *F) {
			f.Definition = "selct 1"
		}, fault.Unprocessable, "definition", "syntax_error"},
		"unclosed quote": {func(f *F) {
			f.Definition = "select 'a"
		}, fault.Unprocessable, "definition", "syntax_error"},
		"way out of quotes": {func(f *F) {
			f.Definition = "select 1'; drop table public.canary; --"
		}, fault.Unprocessable, "definition", "syntax_error"},
		"way out of dollars": {func(f *F) {
			f.Definition = "select 1 $$; drop table public.canary; $$"
		}, fault.Unprocessable, "definition", "syntax_error"},
		"unknown table": {func(f *F) {
			f.Definition = "select id from nothing"
		}, fault.Unprocessable, "definition", "unknown_name"},
		"unknown function": {func(f *F) {
			f.Definition = "select nothing(1)"
		}, fault.Unprocessable, "definition", "unknown_name"},
		"another result": {func(f *F) {
			f.Definition = "select 'a'::text"
		}, fault.Unprocessable, "definition", "result_mismatch"},
		"no query": {func(f *F) {
			f.Definition = "-- nothing"
		}, fault.Unprocessable, "definition", "result_mismatch"},
		"sql as plpgsql": {func(f *F) {
			f.Language = "plpgsql"
		}, fault.Unprocessable, "definition", "syntax_error"},
	} {
		f := fine
		test.change(&f)
		_, err := schema.CreateFunction(t.Context(), p.owner, f)
		wantFault(t, label, err, test.kind, test.field, test.code)
	}

	if after := p.snapshot(); after != before {
		t.Errorf("rejected functions changed the catalog: got\n%s\nwant\n%s", after, before)
	}
}

// TestDefinitionPlace checks that errors contain their position in the definition.
func TestDefinitionPlace(t *testing.T) {
	t.Parallel()

	p := newProject(t)
	for _, test := range []struct{ language, definition, want string }{
		{"sql", "selct 1", "at line 1 near selct"},
		{"sql", "select 1\nfrom\n  nothing", "at line 3 near nothing"},
		{"sql", "select 'it''s',\n 'ü' ||\n\n missing", "at line 4 near missing"},
		{"sql", "select 'it''s' || '\\\n' frm x y", "at line 2 near x"},
		{"plpgsql", "begin\n  retrun 1;\nend", "at line 2 near retrun"},
		{"plpgsql", "declare\n a text := 'é''';\nbegin\n return 1 +;\nend", "at line 4 near ;"},
		{"plpgsql", "begin\n return 1;\n", "at line 3"},
	} {
		_, err := schema.CreateFunction(t.Context(), p.owner, schema.NewFunction{
			Schema:     "public",
			Name:       "f",
			Definition: test.definition,
			Language:   test.language,
			ReturnType: "integer",
		})
		if detail := fault.Of(err).Detail; !strings.HasSuffix(detail, test.want) {
			t.Errorf("definition %q: got %q, want the suffix %q (%v)", test.definition, detail, test.want, err)
		}
	}
}

func TestDeleteFunction(t *testing.T) {
	t.Parallel()

	p := newProject(t)
	p.sql(`create schema app`, `create type app."Odd, type" as enum ('x')`,
		`create function app.f(int, varchar(9)) returns int language sql as 'select 1'`,
		`create function app.f() returns int language sql as 'select 2'`,
		`create function app.f(a text[], out b int, variadic c timestamptz[]) language sql as 'select 3'`,
		`create function app.f(app."Odd, type") returns int language sql as 'select 4'`,
		`create function app.f(anyelement) returns int language sql as 'select 5'`,
		`create procedure app.p(int) language sql as 'select 1'`,
		`create aggregate app.agg(int) (sfunc = int4pl, stype = int)`,
		`create function app.used() returns int language sql as 'select 1'`,
		`create view app.user as select app.used()`, `create table app.t (a int default app.used())`)

	remove := func(name string, arguments *string) error {
		return schema.DeleteFunction(t.Context(), p.owner, "app", name, arguments)
	}
	err := remove("f", nil)
	wantFault(t, "overloaded", err, fault.Invalid, "arguments", "ambiguous")

	signatures := []string{"integer,varchar", "", "text[],timestamptz[]", `app."Odd, type"`, "anyelement"}
	if diff := cmp.Diff(map[string]any{"signatures": signatures}, fault.Of(err).Extra); diff != "" {
		t.Errorf("signatures:\n%s", diff)
	}

	for _, arguments := range []string{
		"int", "integer,text", "nothing", "integer,varchar,text", "app.nothing", "text[],timestamp[]", "public.mood",
	} {
		wantFault(t, "arguments "+arguments, remove("f", &arguments), fault.NotFound, "", "not_found")
	}

	for _, arguments := range []string{
		"int,", ",", ",int", "int)", "int) cascade; --", "int; drop table x", "'int'", "int int", "integer[][][]",
		"int\x00", "a int", "text(5)", "%", strings.Repeat("int,", 1000),
	} {
		wantFault(t, "arguments "+arguments, remove("f", &arguments), fault.Invalid, "arguments", "invalid_type")
	}

	for i, arguments := range signatures {
		if got := p.value(
			`select count(*) from pg_proc where proname = 'f' and pronamespace = 'app'::regnamespace`,
		); got != string(rune('5'-i)) {
			t.Errorf("got %s functions before deletion %d", got, i)
		}

		if err := remove("f", &arguments); err != nil {
			t.Errorf("arguments %q: %v", arguments, err)
		}
	}

	wantFault(t, "deleted", remove("f", nil), fault.NotFound, "", "not_found")
	none := ""
	wantFault(t, "deleted, without arguments", remove("f", &none), fault.NotFound, "", "not_found")

	if err := remove("p", nil); err != nil {
		t.Errorf("procedure: %v", err)
	}

	wantFault(t, "aggregate", remove("agg", nil), fault.NotFound, "", "not_found")
	wantFault(t, "in use", remove("used", nil), fault.Conflict, "", "in_use")

	if got := p.value(`select used from app.user`); got != "1" {
		t.Errorf("the function in use: got %s", got)
	}
}

func TestDeleteFunctionRefused(t *testing.T) {
	t.Parallel()

	p := newProject(t)
	p.run(p.platform, `create schema extensions`, `grant usage on schema extensions to public`,
		`create function extensions.theirs() returns int language sql as 'select 1'`)

	before := p.snapshot()

	for _, test := range []struct {
		schema, name string
		kind         fault.Kind
		field, code  string
	}{
		{"pg_catalog", "now", fault.Invalid, "schema", "reserved"},
		{"auth", "uid", fault.Invalid, "schema", "reserved"},
		{"socle", "close_new_tables", fault.Invalid, "schema", "reserved"},
		{"information_schema", "_pg_char_max_length", fault.Invalid, "schema", "reserved"},
		{"pg_temp", "f", fault.Invalid, "schema", "reserved"}, {"", "f", fault.Invalid, "schema", "required"},
		{"..", "f", fault.Invalid, "schema", "invalid_format"}, {"a/b", "f", fault.Invalid, "schema", "invalid_format"},
		{`public"`, "f", fault.Invalid, "schema", "invalid_format"},
		{"public", "", fault.Invalid, "functionName", "required"},
		{"public", "f()", fault.Invalid, "functionName", "invalid_format"},
		{"public", "f'; --", fault.Invalid, "functionName", "invalid_format"},
		{"public", "..", fault.Invalid, "functionName", "invalid_format"},
		{"public", strings.Repeat("f", 64), fault.Invalid, "functionName", "invalid_format"},
		{"public", "f\x00", fault.Invalid, "functionName", "invalid_format"},
		{"public", "nothing", fault.NotFound, "", "not_found"}, {"nothing", "f", fault.NotFound, "", "not_found"},
		{"public", "now", fault.NotFound, "", "not_found"},
		{"extensions", "theirs", fault.Unprocessable, "", "not_owned"},
	} {
		wantFault(t, test.schema+"."+test.name,
			schema.DeleteFunction(t.Context(), p.owner, test.schema, test.name, nil), test.kind, test.field, test.code)
	}

	if after := p.snapshot(); after != before {
		t.Errorf("rejected deletions changed the catalog: got\n%s\nwant\n%s", after, before)
	}
}

func TestFunctionRaces(t *testing.T) {
	t.Parallel()

	p := newProject(t)
	for range 10 {
		errs := concurrently(20, func(int) error {
			_, err := schema.CreateFunction(t.Context(), p.owner, schema.NewFunction{
				Schema:     "public",
				Name:       "f",
				Definition: "select 1",
				Language:   "sql",
				ReturnType: "integer",
			})

			return err
		})
		if n := successes(t, errs, fault.Conflict); n != 1 {
			t.Errorf("equal functions created concurrently: got %d of 20, want 1", n)
		}

		errs = concurrently(20, func(int) error {
			return schema.DeleteFunction(t.Context(), p.owner, "public", "f", nil)
		})
		if n := successes(t, errs, fault.NotFound); n != 1 {
			t.Errorf("concurrent deletions: got %d of 20 successes, want 1", n)
		}
	}
}
