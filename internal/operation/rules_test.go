package operation

import (
	"bytes"
	"fmt"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"github.com/socle-dev/socle/internal/form"

	"github.com/danielgtaylor/huma/v2"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
)

func TestParseJSON(t *testing.T) {
	t.Parallel()

	for _, text := range []string{
		"", " ", "{", "}", "nul", "'a'", `{"a":1}x`, `{"a":1}{}`, `{"a":1,"a":2}`, `{"a":{"b":1,"b":1}}`,
		`{"a":1,"\u0061":2}`, "{\"a\":\"\xff\"}", `{"a":"\ud800"}`, `{"a":"\udc00\ud800"}`, "\ufeff{}",
		"{\"a\":\"\x00\"}", `{"a":01}`, `{"a":+1}`, `{"a":.5}`, `{"a":NaN}`, `{"a":Infinity}`, `{/**/}`, `{"a":1,}`,
		`[1,]`, "{\x00}", strings.Repeat("[", 10_001) + strings.Repeat("]", 10_001), strings.Repeat("[", 500_000),
		`{"a":` + strings.Repeat("[", 500_000),
	} {
		if v, err := parseJSON([]byte(text), anyValue); err == nil {
			t.Errorf("parseJSON(%.40q) = %v, want an error", text, v)
		}
	}

	known := &shape{kind: huma.TypeObject, members: map[string]*shape{"n": {kind: huma.TypeString},
		"b": {kind: huma.TypeArray, items: anyValue, maxItems: 2}, "s": {kind: huma.TypeString},
		"i": {kind: huma.TypeInteger}, "f": {kind: huma.TypeInteger}, "any": anyValue, "wrong": {kind: huma.TypeArray},
		"deep": {kind: huma.TypeString}, "free": {kind: huma.TypeObject}}}
	got, err := parseJSON([]byte(` {"n": null, "b": [true, false, 1, 2], "s": "\u0000é😀", "i": 9223372036854775808, "f": 1e400, "any": {"A": [ ], "a": "b"},
		"free": {"x": [1 ], "y": 1}, "wrong": {"a": 1}, "deep": [[1]], "unknown": {"n": [{}]}} `), known)

	want := map[string]any{"n": nil, "b": []any{true, false, number("1")}, "s": "\x00é😀",
		"i": number("9223372036854775808"), "f": number("1e400"), "any": jsontext.Value(`{"A": [ ], "a": "b"}`),
		"free": map[string]any{"x": jsontext.Value(`[1 ]`), "y": number("1")}, "wrong": map[string]any{},
		"deep": []any{}}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

// TestParseJSONMemory checks that skipped values are not built, and that the size of the
// others is bounded. It is not parallel, since it measures allocations of the whole process.
func TestParseJSONMemory(t *testing.T) {
	p := New(Config{})
	DescribeAs[form.Opt[string], string](p)
	DescribeAs[form.Opt[bool], bool](p)
	DescribeAs[form.Opt[int64], int64](p)
	DescribeAs[form.Answers, freeObject](p)
	DescribeAs[jsontext.Value, anything](p)

	hostile := strings.Repeat("{},", maxBody/3)
	hostile = hostile[:len(hostile)-1]
	many := &strings.Builder{}
	for i := range 100_000 {
		fmt.Fprintf(many, `,"%d":1`, i)
	}

	for i, body := range []reflect.Type{
		reflect.TypeFor[struct {
			Email    string `json:"email"`
			Password string `json:"password"`
		}](),
		reflect.TypeFor[struct {
			Fields []form.FieldInput `json:"fields" maxItems:"100"`
			ProjectInBody
		}](),
		reflect.TypeFor[struct {
			Answers form.Answers `json:"answers"`
			Partial bool         `json:"partial,omitempty"`
			ProjectInBody
		}](),
		reflect.TypeFor[struct {
			Name        *string   `json:"name,omitempty"`
			IsPublic    *bool     `json:"is_public,omitempty"`
			MaxFileSize *int64    `json:"max_file_size,omitempty"`
			Allowed     *[]string `json:"allowed_mime_types,omitempty"`
			ProjectInBody
		}](),
	} {
		schema := p.registry.Schema(body, false, fmt.Sprint("Body", i))
		known := shapeBuilder{p.registry, map[*huma.Schema]*shape{}}.build(schema)
		known.acceptForms("", nil)

		texts := []string{
			`{"a":[` + hostile + `]}`, `{"a":` + strings.Repeat("[", 5_000) + strings.Repeat("]", 5_000) + "}",
			"{" + many.String()[1:] + "}",
		}

		for name := range known.members {
			texts = append(texts, `{"`+name+`":[`+hostile+`]}`, `{"`+name+`":{`+many.String()[1:]+`}}`)
		}

		for _, text := range texts {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := parseJSON([]byte(text), known)
			runtime.ReadMemStats(&after)

			// Without the race detector it is half of that.
			if took := after.TotalAlloc - before.TotalAlloc; took > 32<<20 {
				t.Errorf("%v: %.30s… of %d bytes took %d bytes (%v)", body, text, len(text), took, err)
			}
		}
	}
}

type freeObject struct{}

func (freeObject) Schema(Registry) *Schema {
	return &Schema{Type: TypeObject, AdditionalProperties: true}
}

type either struct{}

func (either) Schema(Registry) *Schema {
	return &Schema{OneOf: []*Schema{{Type: TypeBoolean}, {Type: TypeInteger}}}
}

type anything struct{}

func (anything) Schema(Registry) *Schema { return &Schema{} }

// FuzzParseJSON checks that parsed text keeps its value: written and parsed again, it is the same.
func FuzzParseJSON(f *testing.F) {
	for _, text := range []string{`{}`, `{"a":[1,-0,1.5e300,"\ud83d\ude00",null,true]}`, `[[[]]]`, `"\u0000"`} {
		f.Add([]byte(text))
	}

	f.Fuzz(func(t *testing.T, text []byte) {
		v, err := parseJSON(text, anyValue)
		if err != nil {
			return
		}

		written, err := json.Marshal(v, numberOptions)
		if err != nil {
			t.Fatalf("%q was parsed as %v: marshal: %v", text, v, err)
		}

		v, err = parseJSON(written, anyValue)
		if err != nil {
			t.Fatalf("parse %q again: %v", written, err)
		}

		repeated, err := json.Marshal(v, numberOptions)
		if err != nil || !bytes.Equal(written, repeated) {
			t.Errorf("%q was written as %q, and then as %q, %v", text, written, repeated, err)
		}
	})
}

func TestRules(t *testing.T) {
	t.Parallel()

	type item struct {
		ID string `json:"id" format:"uuid"`
	}

	type body struct {
		Name  string  `json:"name" minLength:"2" maxLength:"4"`
		Kind  string  `json:"kind,omitempty" enum:"a,b"`
		Count *int64  `json:"count,omitempty" minimum:"-1" maximum:"10"`
		Big   int64   `json:"big,omitempty"`
		Note  *string `json:"note,omitempty" nullable:"true"`
		Yes   bool    `json:"yes,omitempty"`
		Items []item  `json:"items,omitempty" maxItems:"2"`
		Flag  either  `json:"flag,omitempty"`

		Texts map[string]string `json:"texts,omitempty"`
		Named map[string]item   `json:"named,omitempty"`
	}

	_, registry := newOpenAPI()
	schema := registry.Schema(reflect.TypeFor[body](), true, "")
	for text, want := range map[string]string{
		`{"name":"abcd"}`:                                          "",
		`{"name":"ééée","unknown":[1e400]}`:                        "",
		`{"name":"ab","note":null,"count":-1}`:                     "",
		`{}`:                                                       "name required",
		`{"Name":"ab"}`:                                            "name required",
		`{"name":null}`:                                            "name invalid_type",
		`{"name":"a"}`:                                             "name too_short",
		`{"name":"abcde"}`:                                         "name too_long",
		`{"name":"a\u0000b"}`:                                      "name invalid_format",
		`{"name":1}`:                                               "name invalid_type",
		`{"name":"ab","kind":"c"}`:                                 "kind not_allowed",
		`{"name":"ab","count":11}`:                                 "count out_of_range",
		`{"name":"ab","count":-2}`:                                 "count out_of_range",
		`{"name":"ab","count":1.0}`:                                "count invalid_type",
		`{"name":"ab","count":1e1}`:                                "count invalid_type",
		`{"name":"ab","count":"5"}`:                                "count invalid_type",
		`{"name":"ab","count":null}`:                               "count invalid_type",
		`{"name":"ab","big":9223372036854775807}`:                  "",
		`{"name":"ab","big":9223372036854775808}`:                  "big out_of_range",
		`{"name":"ab","big":-9223372036854775809}`:                 "big out_of_range",
		`{"name":"ab","big":` + strings.Repeat("9", 400) + `}`:     "big out_of_range",
		`{"name":"ab","yes":"true"}`:                               "yes invalid_type",
		`{"name":"ab","flag":true}`:                                "",
		`{"name":"ab","flag":7}`:                                   "",
		`{"name":"ab","flag":1.5}`:                                 "flag invalid_type",
		`{"name":"ab","flag":null}`:                                "flag invalid_type",
		`{"name":"ab","flag":[true]}`:                              "flag invalid_type",
		`{"name":"ab","items":{}}`:                                 "items invalid_type",
		`{"name":"ab","items":[{"id":"x"},{}]}`:                    "items.0.id invalid_format items.1.id required",
		`{"name":"ab","items":[1,2,3]}`:                            "items too_many",
		`{"name":"ab","items":[[]]}`:                               "items.0 invalid_type",
		`{"name":"a","kind":1}`:                                    "kind invalid_type name too_short",
		`{"name":"ab","items":[{"id":"urn:uuid:` + zeros + `"}]}`:  "items.0.id invalid_format",
		`{"name":"ab","items":[{"id":"` + zeros + `"}]}`:           "",
		`{"name":"ab","texts":{"a":"x","b":""}}`:                   "",
		`{"name":"ab","texts":{"a":1,"b":null,"c":{},"d":[1]}}`:    "texts.a invalid_type texts.b invalid_type texts.c invalid_type texts.d invalid_type",
		`{"name":"ab","texts":{"a":"\u0000","\u0000":"b"}}`:        "texts invalid_format texts.a invalid_format",
		`{"name":"ab","texts":[]}`:                                 "texts invalid_type",
		`{"name":"ab","named":{"x":{"id":"` + zeros + `","y":1}}}`: "",
		`{"name":"ab","named":{"x":{"id":5},"y":{},"z":7}}`:        "named.x.id invalid_type named.y.id required named.z invalid_type",
	} {
		v, err := parseJSON([]byte(text), shapeBuilder{registry, map[*huma.Schema]*shape{}}.build(schema))
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}

		check := rules{registry: registry}
		check.checkValue("", schema, v)

		var got []string
		for _, f := range check.faults {
			got = append(got, f.Name+" "+f.Code)
		}

		if strings.Join(got, " ") != want {
			t.Errorf("%.80s: got %q, want %q", text, got, want)
		}
	}
}

const zeros = "00000000-0000-0000-0000-000000000000"

// TestUnimplementedRules checks that an operation whose schemas have a keyword that is not checked
// can't be registered.
func TestUnimplementedRules(t *testing.T) {
	t.Parallel()

	for name, value := range map[string]any{
		"pattern": struct {
			V string `pattern:"a+"`
		}{},
		"exclusiveMinimum": struct {
			V int `exclusiveMinimum:"1"`
		}{},
		"exclusiveMaximum": struct {
			V int `exclusiveMaximum:"1"`
		}{},
		"multipleOf": struct {
			V int `multipleOf:"2"`
		}{},
		"uniqueItems": struct {
			V []string `uniqueItems:"true"`
		}{},
		"minProperties": struct {
			V map[string]string `minProperties:"1"`
		}{},
		"maxProperties": struct {
			V map[string]string `maxProperties:"1"`
		}{},
		"dependent": struct {
			V string `dependentRequired:"W"`
			W string
		}{},
		"default": struct {
			V string `default:"a"`
		}{},
		"number": struct{ V float64 }{},
		"format": struct {
			V string `format:"email"`
		}{},
		"nested": struct {
			V []struct {
				W string `format:"email"`
			}
		}{},
	} {
		_, registry := newOpenAPI()
		schema := registry.Schema(reflect.TypeOf(value), false, "Body")
		if !panics(func() { shapeBuilder{registry, map[*huma.Schema]*shape{}}.build(schema) }) {
			t.Errorf("a body with the rule %s is accepted", name)
		}
	}

	for name, s := range map[string]*huma.Schema{
		"oneOf": {OneOf: []*huma.Schema{{}}}, "anyOf": {AnyOf: []*huma.Schema{{}}},
		"allOf": {AllOf: []*huma.Schema{{}}}, "not": {Not: &huma.Schema{}},
	} {
		if !panics(func() { mustImplement(s) }) {
			t.Errorf("a schema with %s is accepted", name)
		}
	}

	type input struct {
		Q string `query:"q" pattern:"a+"`
	}
	_, registry := newOpenAPI()
	if !panics(func() { paramsOf(registry, reflect.TypeFor[input]()) }) {
		t.Error("a parameter with a pattern is accepted")
	}
}

func panics(f func()) (panicked bool) {
	defer func() { panicked = recover() != nil }()

	f()

	return false
}
