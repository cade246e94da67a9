package schema_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/schema"
)

// emulate creates the functions of an emulated extension, twice.
func (p *project) emulate(name string) {
	p.t.Helper()

	for range 2 {
		if err := schema.EmulateExtension(p.t.Context(), p.platform, name); err != nil {
			p.t.Fatal(err)
		}
	}

	present, err := schema.EmulatedExtensions(p.t.Context(), p.platform)
	if err != nil || strings.Join(present, " ") != name {
		p.t.Errorf("got the extensions %q, %v, want %s", present, err, name)
	}
}

// TestJSONSchema validates values by JSON schemas, with the errors of those that do not match.
func TestJSONSchema(t *testing.T) {
	t.Parallel()

	p := newProject(t)
	p.emulate("pg_jsonschema")

	const tree = `{"$defs": {"node": {"properties": {"name": {"type": "string"}, "children": {"items": {"$ref": "#/$defs/node"}}}}}, "$ref": "#/$defs/node"}`
	for _, c := range []struct{ schema, instance, want string }{
		{`true`, `1`, ``}, {`false`, `1`, `$ is not allowed`}, {`{}`, `null`, ``},
		{`{"type": "integer"}`, `1.0`, ``}, {`{"type": "integer"}`, `1.5`, `$ does not satisfy type: "integer"`},
		{`{"type": ["null", "string"]}`, `null`, ``},
		{`{"type": ["null", "string"]}`, `1`, `$ does not satisfy type: ["null", "string"]`},
		{`{"enum": [1, "a"]}`, `"a"`, ``}, {`{"enum": [1, "a"]}`, `"1"`, `$ does not satisfy enum: [1, "a"]`},
		{`{"const": {"a": 1}}`, `{"a": 1.0}`, ``}, {`{"const": null}`, `0`, `$ does not satisfy const: null`},
		{`{"minimum": 2, "maximum": 3}`, `2`, ``}, {`{"minimum": 2}`, `1`, `$ does not satisfy minimum: 2`},
		{`{"exclusiveMaximum": 2}`, `2`, `$ does not satisfy exclusiveMaximum: 2`}, {`{"minimum": 2}`, `"1"`, ``},
		{`{"multipleOf": 0.1}`, `0.3`, ``}, {`{"multipleOf": 2}`, `3`, `$ does not satisfy multipleOf: 2`},
		{`{"minLength": 2, "maxLength": 2}`, `"äö"`, ``},
		{`{"maxLength": 1}`, `"äö"`, `$ does not satisfy maxLength: 1`},
		{`{"pattern": "^a"}`, `"ab"`, ``}, {`{"pattern": "^a"}`, `"ba"`, `$ does not satisfy pattern: ^a`},
		{`{"format": "email"}`, `"x"`, ``}, {`{"title": "x", "x-own": 1}`, `1`, ``},
		{`{"required": ["a", "b"]}`, `{"a": null}`, `$ has no b`}, {`{"required": ["a"]}`, `[]`, ``},
		{`{"properties": {"a": {"type": "string"}}}`, `{"a": 1}`, `$.a does not satisfy type: "string"`},
		{`{"properties": {"a": true}, "patternProperties": {"^x": {"type": "null"}}, "additionalProperties": false}`,
			`{"a": 1, "x1": null, "B": 2}`, `$."B" is not allowed`},
		{`{"additionalProperties": {"minimum": 1}}`, `{"a": 0}`, `$.a does not satisfy minimum: 1`},
		{`{"propertyNames": {"maxLength": 1}}`, `{"ab": 0}`, `the name ab in $ does not satisfy maxLength: 1`},
		{`{"minProperties": 1}`, `{}`, `$ has 0 properties`},
		{`{"dependentRequired": {"a": ["b"]}}`, `{"a": 1}`, `$ has no b`},
		{`{"dependencies": {"a": {"required": ["c"]}, "z": ["y"]}}`, `{"a": 1}`, `$ has no c`},
		{`{"items": {"type": "string"}, "minItems": 1}`, `["a", 1]`, `$[1] does not satisfy type: "string"`},
		{`{"prefixItems": [{"const": 1}], "items": false}`, `[1, 2]`, `$[1] is not allowed`},
		{`{"items": [{"const": 1}], "additionalItems": false}`, `[2]`, `$[0] does not satisfy const: 1`},
		{`{"maxItems": 1}`, `[1, 2]`, `$ has 2 items`},
		{`{"uniqueItems": true}`, `[1, 1.0]`, `$ has items that are equal`},
		{`{"contains": {"const": 1}}`, `[2]`, `$ has 0 items that contains describes`},
		{`{"contains": {"const": 1}, "minContains": 0}`, `[2]`, ``},
		{`{"allOf": [{"minimum": 1}, {"maximum": 2}]}`, `3`, `$ does not satisfy maximum: 2`},
		{`{"anyOf": [{"const": 1}, {"const": 2}]}`, `2`, ``},
		{`{"anyOf": [{"const": 1}]}`, `3`, `$ does not satisfy anyOf: [{"const": 1}]`},
		{`{"oneOf": [{"minimum": 1}, {"minimum": 2}]}`, `1`, ``},
		{`{"oneOf": [true, true]}`, `1`, `$ does not satisfy oneOf: [true, true]`},
		{`{"not": {}}`, `1`, `$ does not satisfy not: {}`},
		{`{"if": {"type": "string"}, "then": {"minLength": 2}, "else": {"minimum": 2}}`, `"a"`, `$ does not satisfy minLength: 2`},
		{`{"if": {"type": "string"}, "then": {"minLength": 2}, "else": {"minimum": 2}}`, `1`, `$ does not satisfy minimum: 2`},
		{tree, `{"name": "a", "children": [{"name": "b", "children": []}]}`, ``},
		{tree, `{"children": [{"children": [{"name": 1}]}]}`, `$.children[0].children[0].name does not satisfy type: "string"`},
		{`{"$defs": {"a/b~": {"const": 1}}, "$ref": "#/$defs/a~1b~0"}`, `1`, ``},
	} {
		got, err := pg.Value[[]string](t.Context(), p.owner,
			`select extensions.jsonschema_validation_errors($1, $2)`, c.schema, c.instance)
		if err != nil || strings.Join(got, "; ") != c.want {
			t.Errorf("%s of %s: got %q, %v, want %q", c.instance, c.schema, got, err, c.want)
		}
	}
}

// TestJSONSchemaFailures: a schema that can't be checked fails with a sentence, and is no success.
func TestJSONSchemaFailures(t *testing.T) {
	t.Parallel()

	p := newProject(t)
	p.emulate("pg_jsonschema")

	for text, want := range map[string]string{
		`{"$ref": "https://example.com/a"}`: "the reference 'https://example.com/a' leads out of the schema",
		`{"$ref": "#/$defs/a"}`:             "the reference '#/$defs/a' leads to no part of the schema",
		`{"unevaluatedProperties": false}`:  "unevaluatedProperties in a JSON schema is not supported",
		`1`:                                 "a JSON schema must be an object or a boolean",
		`{"$ref": "#"}`:                     "stack depth limit exceeded",
	} {
		_, err := p.owner.Exec(t.Context(), `select extensions.jsonb_matches_schema($1, '1')`, text)
		if e, ok := errors.AsType[*pgconn.PgError](err); !ok || e.Message != want {
			t.Errorf("%s: got %v, want %q", text, err, want)
		}
	}

	for text, want := range map[string]string{
		`{"type": "object", "properties": {"a": {"items": {"minimum": 1}}}}`: "true", `{"type": "text"}`: "false",
		`{"properties": {"a": {"required": "b"}}}`: "false", `{"pattern": 1}`: "false", `true`: "true", `"a"`: "false",
	} {
		if got := p.value("extensions.jsonschema_is_valid('" + text + "')"); got != want {
			t.Errorf("%s: got valid %s", text, got)
		}
	}
}

// TestEmulateHTTP: functions of http exist, and those that send a request say what does instead.
func TestEmulateHTTP(t *testing.T) {
	t.Parallel()

	p := newProject(t)
	p.emulate("http")
	p.sql(`create function public.fetch() returns extensions.http_response language plpgsql as
			$$ begin return extensions.http_get('https://example.com'); end $$`,
		`select extensions.http_set_curlopt('CURLOPT_TIMEOUT', '30')`)

	_, err := p.owner.Exec(t.Context(), `select public.fetch()`)
	e, ok := errors.AsType[*pgconn.PgError](err)
	if !ok || e.Code != "0A000" || !strings.Contains(e.Hint, "net.http_get()") {
		t.Errorf("got %v", err)
	}

	for expression, want := range map[string]string{
		`extensions.urlencode('my string''s & äöü?'::varchar)`:    "my+string%27s+%26+%C3%A4%C3%B6%C3%BC%3F",
		`extensions.urlencode('{"a b": 1, "c": null}'::jsonb)`:    "c=&a+b=1",
		`(extensions.http_header('a', 'b')).value`:                "b",
		`extensions.bytea_to_text(extensions.text_to_bytea('ä'))`: "ä",
	} {
		if got := p.value(expression); got != want {
			t.Errorf("%s: got %s, want %s", expression, got, want)
		}
	}
}

// TestEmulationBesideExtensions: functions of the platform are no obstacle for extensions, and
// objects of a user stay one.
func TestEmulationBesideExtensions(t *testing.T) {
	t.Parallel()

	p := newProject(t)
	p.emulate("http")
	if _, err := schema.CreateExtension(t.Context(), p.platform, "citext"); err != nil {
		t.Error(err)
	}

	for object, definition := range map[string]string{
		"function extensions.lower(extensions.http_method)": " returns text language sql as 'select 1'",
		"type extensions.mine":                              " as (a int)",
		"domain extensions.other":                           " as text", "table extensions.t": " ()",
		"view extensions.v": " as select 1", "sequence extensions.s": "",
	} {
		p.run(p.platform, "grant create on schema extensions to public")
		p.sql("create " + object + definition)
		_, err := schema.CreateExtension(t.Context(), p.platform, "hstore")
		if err == nil || !strings.Contains(err.Error(), "the schema extensions has") {
			t.Errorf("%s: got %v", object, err)
		}
		p.sql("drop " + object)
	}
}

// TestOwnFunctionEmulatesNothing: a schema extensions of the project's owner has none of the
// platform's functions, whatever their names.
func TestOwnFunctionEmulatesNothing(t *testing.T) {
	t.Parallel()

	p := newProject(t)
	p.sql(`create schema extensions`,
		`create function extensions.http_set_curlopt(text, text) returns boolean language sql as 'select true'`)
	present, err := schema.EmulatedExtensions(t.Context(), p.platform)
	if err != nil || len(present) > 0 {
		t.Errorf("got %q, %v", present, err)
	}

	err = schema.EmulateExtension(t.Context(), p.platform, "http")
	wantFault(t, "in a schema of the owner", err, fault.Conflict, "", "schema_taken")
}
