package operation

import (
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"
	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/fault"
)

// param is an operation's path, query or header parameter: a field in its input with the tag path,
// query or header and the type string, int, bool, *string, uuid.UUID or time.Time.
type param struct {
	in, name string
	index    []int // nil: only validated here
	required bool
	schema   *huma.Schema
}

// paramsOf returns an input type's parameters, including those in embedded structs.
func paramsOf(registry huma.Registry, input reflect.Type) []param {
	var params []param
	for _, f := range reflect.VisibleFields(input) {
		for _, in := range []string{"path", "query", "header"} {
			name := f.Tag.Get(in)
			if name == "" || f.Anonymous {
				continue
			}

			s := huma.SchemaFromField(registry, f, "")
			s.Nullable = false
			mustImplement(s)

			required := in == "path" || f.Tag.Get("required") == "true"
			params = append(params, param{in: in, name: name, index: f.Index, required: required, schema: s})
		}
	}

	return params
}

// bind reads and validates a request's parameters, and returns the invalid ones. A repeated
// parameter is invalid. An unknown query parameter is invalid if the operation has query
// parameters, unless it ignores them.
func bind(params []param, r *http.Request, input reflect.Value, ignoreUnknown bool) []fault.Field {
	check := rules{}

	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		check.fail("query", "invalid_format", "is malformed")
		return check.faults
	}

	names := map[string]bool{}
	for _, p := range params {
		var values []string
		switch p.in {
		case "path":
			values = []string{r.PathValue(p.name)}
		case "query":
			values, names[p.name] = query[p.name], true
		case "header":
			values = r.Header.Values(p.name)
		}

		field := reflect.Value{}
		if p.index != nil {
			field = input.FieldByIndex(p.index)
		}

		p.bind(&check, values, field)
	}

	if len(names) > 0 && !ignoreUnknown {
		for _, name := range sortedKeys(query) {
			if !names[name] {
				check.fail(clip(name), "unknown", "is not a parameter of this operation")
			}
		}
	}

	return check.faults
}

func (p param) bind(check *rules, values []string, field reflect.Value) {
	switch {
	case len(values) == 0 && p.required:
		check.fail(p.name, "required", "is required")
		return
	case len(values) == 0:
		if p.schema.Default != nil {
			setField(field, reflect.ValueOf(p.schema.Default))
		}
		return
	case len(values) > 1:
		check.fail(p.name, "repeated", "must be given once")
		return
	}

	value := values[0]
	faults := len(check.faults)
	switch {
	case !utf8.ValidString(value):
		check.fail(p.name, "invalid_format", "must be valid UTF-8")
	case p.schema.Type == huma.TypeInteger:
		check.checkInteger(p.name, p.schema, value)
	case p.schema.Type == huma.TypeBoolean:
		if value != "true" && value != "false" {
			check.fail(p.name, "invalid_format", "must be true or false")
		}
	default:
		check.checkString(p.name, p.schema, value)
	}

	if len(check.faults) > faults || !field.IsValid() {
		return
	}

	switch field.Interface().(type) {
	case uuid.UUID:
		field.Set(reflect.ValueOf(uuid.MustParse(value)))
	case bool:
		field.SetBool(value == "true")
	case time.Time:
		t, _ := time.Parse(time.RFC3339Nano, value) // validated above
		field.Set(reflect.ValueOf(t))
	case int:
		n, _ := strconv.Atoi(value) // validated above
		field.SetInt(int64(n))
	default:
		setField(field, reflect.ValueOf(value))
	}
}

// setField assigns value to a field, or to a new value that a pointer field points to.
func setField(field, value reflect.Value) {
	if field.Kind() == reflect.Pointer {
		field.Set(reflect.New(field.Type().Elem()))
		field = field.Elem()
	}

	field.Set(value.Convert(field.Type()))
}

// document adds the parameters to an OpenAPI operation.
func document(op *huma.Operation, params []param) {
	for _, p := range params {
		op.Parameters = append(op.Parameters, &huma.Param{Name: p.name, In: p.in, Required: p.required,
			Description: p.schema.Description, Schema: p.schema})
	}
}

// clip truncates client input that is echoed in an error.
func clip(s string) string {
	const maxLength = 64
	if len(s) <= maxLength {
		return s
	}

	return s[:maxLength] + "…"
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}

	slices.Sort(keys)
	return keys
}
