package operation

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/fault"
)

// exampler derives examples from schemas, for the OpenAPI document.
type exampler struct {
	registry huma.Registry
	values   map[string]any // declared examples, see [Config.Examples]
}

const (
	exampleDate = "2026-11-23"
	exampleTime = exampleDate + "T09:30:00.000000Z"
	exampleFile = "the bytes of the file"

	maxExampleDepth = 8 // nesting levels: schemas may be recursive
)

// value returns an example value for a schema. name is the member or parameter with the value.
// Request examples have only the required members.
func (e exampler) value(name string, s *huma.Schema, request bool) any {
	return e.nested(name, "", s, request, 0)
}

// nested returns the example for a member in the object schema called owner.
func (e exampler) nested(name, owner string, s *huma.Schema, request bool, depth int) any {
	if v, ok := e.declaredValue(name, owner, s); ok {
		return v
	}

	for s.Ref != "" {
		owner = s.Ref[strings.LastIndexByte(s.Ref, '/')+1:]
		s = e.registry.SchemaFromRef(s.Ref)
	}

	switch {
	case len(s.Examples) > 0:
		return s.Examples[0]
	case s.Nullable && !request:
		return nil
	case s.Default != nil:
		return s.Default
	case len(s.Enum) > 0:
		return s.Enum[0]
	case len(s.OneOf) > 0:
		return e.nested(name, owner, s.OneOf[0], request, depth)
	}

	switch s.Type {
	case huma.TypeBoolean:
		return false
	case huma.TypeInteger, huma.TypeNumber:
		if s.Minimum != nil {
			return max(1, int64(*s.Minimum))
		}
		return 1
	case huma.TypeString:
		return text(name, owner, s)
	case huma.TypeArray:
		if depth == maxExampleDepth || (s.MaxItems != nil && *s.MaxItems == 0) {
			return []any{}
		}
		return []any{e.nested(name, owner, s.Items, request, depth+1)}
	case huma.TypeObject:
		return e.object(owner, s, request, depth)
	}

	return nil
}

// declaredValue returns the declared example for a member, or for a schema.
func (e exampler) declaredValue(name, owner string, s *huma.Schema) (any, bool) {
	if v, ok := e.values[owner+"."+name]; ok {
		return v, true
	}

	v, ok := e.values[name]
	return v, ok && fits(v, s)
}

// fits reports whether a schema accepts values with v's type.
func fits(v any, s *huma.Schema) bool {
	if s.Ref != "" || s.Format != "" && s.Format != "int64" || len(s.Enum)+len(s.Examples) > 0 {
		return false
	}

	switch v.(type) {
	case string:
		return s.Type == huma.TypeString
	case bool:
		return s.Type == huma.TypeBoolean
	case int:
		return s.Type == huma.TypeInteger
	case []any:
		return s.Type == huma.TypeArray && s.Items.Type == huma.TypeString && s.Items.Format == ""
	}

	return false
}

func (e exampler) object(owner string, s *huma.Schema, request bool, depth int) any {
	object := map[string]any{}
	for name, member := range s.Properties {
		if depth < maxExampleDepth && (!request || slices.Contains(s.Required, name)) {
			object[name] = e.nested(name, owner, member, request, depth+1)
		}
	}

	return object
}

// text returns an example string.
func text(name, owner string, s *huma.Schema) string {
	switch s.Format {
	case "uuid":
		return exampleUUID(name, owner)
	case "date":
		return exampleDate
	case "date-time":
		return exampleTime
	case "binary":
		return exampleFile
	}

	return name
}

// exampleUUID returns the example UUID for a member or parameter: one for each kind of entity.
func exampleUUID(name, owner string) string {
	kind := strings.NewReplacer("uuid", "", "x-", "", "_", "").Replace(strings.ToLower(name))
	switch {
	case kind == "":
		kind = strings.ToLower(owner)
	case strings.HasSuffix(kind, "by"): // createdBy
		kind = "user"
	}

	return uuid.NewSHA1(uuid.NameSpaceURL, []byte(kind)).String()
}

// addExamples adds an example to an operation's bodies and required parameters.
func (rt *route) addExamples(op *huma.Operation) {
	e := exampler{rt.registry, rt.config.Examples}
	for _, p := range op.Parameters {
		if p.Required {
			p.Example = e.value(p.Name, p.Schema, true)
		}
	}

	if op.RequestBody != nil {
		for _, media := range op.RequestBody.Content {
			media.Example = e.value("", media.Schema, true)
		}
		if media, ok := op.RequestBody.Content["application/json"]; ok && rt.op.Example != "" {
			media.Example = json.RawMessage(rt.op.Example)
		}
	}

	for _, response := range op.Responses {
		for _, media := range response.Content {
			media.Example = e.value("", media.Schema, false)
		}
	}
}

// exampleFaults has an example for each failure status.
var exampleFaults = map[int]*fault.Error{
	400: fault.OnField(fault.Invalid, "page", "out_of_range", "must be at least 1"),
	401: fault.New(fault.Unauthenticated, "the access token is not valid"),
	403: fault.New(fault.Forbidden, "this needs the role of admin, and yours is developer"),
	404: fault.Missing(),
	408: fault.New(fault.TooSlow, "the body arrives too slowly"),
	409: fault.OnField(fault.Conflict, "name", "already_exists", "is already in use"),
	412: fault.OnField(fault.Precondition, "If-Match", "changed", "does not match the current state"),
	413: fault.New(fault.TooLarge, "the body is larger than 1048576 bytes"),
	416: fault.OnField(fault.Invalid, "Range", "out_of_range", "is outside of the file"),
	422: fault.OnField(fault.Unprocessable, "name", "required", "is required"),
	429: fault.New(fault.TooMany, "too many requests"),
	500: fault.New(fault.Internal, "an internal error occurred"),
	503: fault.New(fault.Unavailable, "the database is unavailable"),
}

// exampleFailure returns an example response for a failure status.
func exampleFailure(status int) any {
	f := failureOf(exampleFaults[status], exampleUUID("request", ""))
	if f.Fields == nil {
		f.Fields = []fault.Field{}
	}

	return envelope{Content: "null", Errors: []string{messages[status]}, Metadata: f}
}
