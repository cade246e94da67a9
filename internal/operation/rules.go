package operation

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"
	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/fault"
)

// rules validates values against their schemas in the OpenAPI document, and collects invalid
// fields.
type rules struct {
	registry huma.Registry
	faults   []fault.Field
}

// maxFaults limits the number of reported fields; further invalid fields are omitted.
const maxFaults = 100

func (r *rules) fail(path, code, format string, args ...any) {
	if len(r.faults) < maxFaults {
		r.faults = append(r.faults, fault.Field{Name: path, Code: code, Message: fmt.Sprintf(format, args...)})
	}
}

func (r *rules) checkValue(path string, s *huma.Schema, v any) {
	for s.Ref != "" {
		s = r.registry.SchemaFromRef(s.Ref)
	}

	if len(s.OneOf) > 0 {
		r.checkOneOf(path, s, v)
		return
	}

	if v == nil {
		if !s.Nullable && s.Type != "" { // a schema without a type accepts any value
			r.fail(path, "invalid_type", "must be %s, not null", article(s.Type))
		}
		return
	}

	switch s.Type {
	case huma.TypeBoolean:
		if _, ok := v.(bool); !ok {
			r.wrongType(path, s)
		}
	case huma.TypeInteger:
		n, ok := v.(number)
		if !ok {
			r.wrongType(path, s)
			return
		}

		r.checkInteger(path, s, string(n))
	case huma.TypeString:
		text, ok := v.(string)
		if !ok {
			r.wrongType(path, s)
			return
		}

		r.checkString(path, s, text)
	case huma.TypeArray:
		array, ok := v.([]any)
		if !ok {
			r.wrongType(path, s)
			return
		}

		r.checkArray(path, s, array)
	case huma.TypeObject:
		object, ok := v.(map[string]any)
		if !ok {
			r.wrongType(path, s)
			return
		}

		r.checkObject(path, s, object)
	}
}

// checkOneOf checks a scalar that one of several schemas must accept.
func (r *rules) checkOneOf(path string, s *huma.Schema, v any) {
	var kinds []string
	for _, one := range s.OneOf {
		attempt := rules{registry: r.registry}
		if attempt.checkValue(path, one, v); len(attempt.faults) == 0 {
			return
		}

		kinds = append(kinds, article(one.Type))
	}

	r.fail(path, "invalid_type", "must be %s", strings.Join(kinds, " or "))
}

func (r *rules) wrongType(path string, s *huma.Schema) {
	r.fail(path, "invalid_type", "must be %s", article(s.Type))
}

func article(kind string) string {
	if strings.ContainsRune("aeiou", rune(kind[0])) {
		return "an " + kind
	}
	return "a " + kind
}

var integerPattern = regexp.MustCompile(`^(0|-?[1-9][0-9]*)$`)

func (r *rules) checkInteger(path string, s *huma.Schema, text string) {
	if !integerPattern.MatchString(text) {
		r.fail(path, "invalid_type", "must be an integer, written without fraction or exponent")
		return
	}

	n, err := strconv.ParseInt(text, 10, 64)
	switch {
	case err != nil:
		r.fail(path, "out_of_range", "must be an integer of at most 64 bits")
	case s.Minimum != nil && n < int64(*s.Minimum):
		r.fail(path, "out_of_range", "must be at least %d", int64(*s.Minimum))
	case s.Maximum != nil && n > int64(*s.Maximum):
		r.fail(path, "out_of_range", "must be at most %d", int64(*s.Maximum))
	}
}

func (r *rules) checkString(path string, s *huma.Schema, text string) {
	length := utf8.RuneCountInString(text)
	switch {
	case strings.ContainsRune(text, 0):
		r.fail(path, "invalid_format", "must not contain the character NUL")
	case s.MinLength != nil && length < *s.MinLength && *s.MinLength == 1:
		r.fail(path, "too_short", "must not be empty")
	case s.MinLength != nil && length < *s.MinLength:
		r.fail(path, "too_short", "must be at least %d characters", *s.MinLength)
	case s.MaxLength != nil && length > *s.MaxLength:
		r.fail(path, "too_long", "must be at most %d characters", *s.MaxLength)
	case s.Format == "date-time" && !isTimestamp(text):
		r.fail(path, "invalid_format", "must be an RFC 3339 time such as 2026-11-21T05:20:00Z")
	case s.Format == "uuid" && !isUUID(text):
		r.fail(path, "invalid_format", "must be a UUID")
	case len(s.Enum) > 0 && !slices.Contains(s.Enum, any(text)):
		r.fail(path, "not_allowed", "must be one of %s", joinValues(s.Enum))
	}
}

func (r *rules) checkArray(path string, s *huma.Schema, array []any) {
	switch {
	case s.MinItems != nil && len(array) < *s.MinItems && *s.MinItems == 1:
		r.fail(path, "too_short", "must not be empty")
		return
	case s.MinItems != nil && len(array) < *s.MinItems:
		r.fail(path, "too_short", "must have at least %d items", *s.MinItems)
		return
	case s.MaxItems != nil && len(array) > *s.MaxItems:
		r.fail(path, "too_many", "must have at most %d items", *s.MaxItems)
		return
	}

	for i, item := range array {
		r.checkValue(joinPath(path, strconv.Itoa(i)), s.Items, item)
	}
}

func (r *rules) checkObject(path string, s *huma.Schema, object map[string]any) {
	for _, name := range s.Required {
		if _, ok := object[name]; !ok {
			r.fail(joinPath(path, name), "required", "is required")
		}
	}

	for _, name := range sortedKeys(s.Properties) {
		if v, ok := object[name]; ok {
			r.checkValue(joinPath(path, name), s.Properties[name], v)
		}
	}

	values := valuesOf(s)
	if values == nil {
		return
	}

	for _, name := range sortedKeys(object) {
		if strings.ContainsRune(name, 0) {
			r.fail(path, "invalid_format", "must not contain the character NUL in names")
			continue
		}
		r.checkValue(joinPath(path, name), values, object[name])
	}
}

func joinPath(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

func joinValues(values []any) string {
	var b strings.Builder
	for i, v := range values {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprint(&b, v)
	}

	return b.String()
}

// mustImplement panics if a schema has a keyword that rules does not check. The panic comes at
// start: a documented rule is an enforced one.
func mustImplement(s *huma.Schema) {
	unknownFormat := !slices.Contains([]string{"", "uuid", "date-time", "int32", "int64"}, s.Format)
	if s.Pattern != "" || s.ExclusiveMinimum != nil || s.ExclusiveMaximum != nil || s.MultipleOf != nil ||
		s.UniqueItems || s.AnyOf != nil || s.AllOf != nil || s.Not != nil ||
		s.MinProperties != nil || s.MaxProperties != nil || s.Type == huma.TypeNumber ||
		len(s.DependentRequired) > 0 || unknownFormat {
		panic(fmt.Sprintf("operation: a schema has a rule that is not implemented: %+v", *s))
	}

	for _, one := range s.OneOf {
		if one.Type != huma.TypeBoolean && one.Type != huma.TypeInteger && one.Type != huma.TypeString {
			panic(fmt.Sprintf("operation: a schema is one of others than scalars: %+v", *s))
		}
	}
}

// isUUID reports whether text is a UUID in canonical form; other forms that parsers accept are
// rejected.
func isUUID(text string) bool {
	return len(text) == 36 && uuid.Validate(text) == nil
}

// isTimestamp reports whether text is an RFC 3339 timestamp.
func isTimestamp(text string) bool {
	_, err := time.Parse(time.RFC3339Nano, text)
	return err == nil
}
