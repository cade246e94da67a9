package openapi

import (
	"testing"

	"github.com/socle-dev/socle/internal/rest/catalog"
)

func TestValueShape(t *testing.T) {
	t.Parallel()

	for sql, want := range map[string]string{
		"integer":                     `{"type":"integer","format":"int32"}`,
		"bigint":                      `{"type":"integer","format":"int64"}`,
		"numeric(8,2)":                `{"type":"number","format":"numeric"}`,
		"character varying(80)":       `{"type":"string","format":"character varying"}`,
		"timestamp(3) with time zone": `{"type":"string","format":"timestamp with time zone"}`,
		`public."odd (name)"`:         `{"type":"string","format":"public.\"odd (name)\""}`,
		"bpchar":                      `{"type":"string","format":"character"}`,
		`"bit"[]`:                     `{"type":"array","format":"bit[]","items":{"type":"string"}}`,
		"numeric(3)[]":                `{"type":"array","format":"numeric[]","items":{"type":"number"}}`,
		"jsonb":                       `{"format":"jsonb"}`,
	} {
		got, err := encode(valueShape(sql))
		if string(got) != want || err != nil {
			t.Errorf("%s: got %s, %v, want %s", sql, got, err, want)
		}
	}
}

func TestDefaultValue(t *testing.T) {
	t.Parallel()

	for _, test := range []struct{ expression, sql, base, want string }{
		{"", "text", "text", ""},
		{"7", "integer", "integer", "7"},
		{"'-1'::integer", "integer", "integer", "-1"},
		{"'it''s <new>'::character varying", "character varying(80)", "character varying(80)", `"it's <new>"`},
		{"'none'::character varying", "public.code", "character varying(4)", `"none"`},
		{"now()", "timestamp", "timestamp", `"now()"`},
		{"nextval('s'::regclass)", "bigint", "bigint", ""},
		{"'{}'::text[]", "text[]", "text[]", ""},
		{`'{"a":1}'::jsonb`, "jsonb", "jsonb", `{"a":1}`},
	} {
		c := &catalog.Column{Default: test.expression, Type: test.sql, BaseType: test.base}
		if got := defaultValue(c, valueShape(test.base)); string(got) != test.want {
			t.Errorf("%s of %s: got %s, want %s", test.expression, test.sql, got, test.want)
		}
	}
}
