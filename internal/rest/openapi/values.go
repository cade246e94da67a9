package openapi

import (
	"encoding/json"
	"strings"

	"github.com/socle-dev/socle/internal/rest/catalog"
)

// valueShape describes a type's values, given its SQL text.
func valueShape(sql string) *shape {
	name := withoutModifier(sql)
	s := &shape{Type: jsonTypes[name], Format: name}
	if format := openAPIFormats[name]; format != "" {
		s.Format = format
	}

	if _, ok := jsonTypes[name]; ok {
		return s
	}

	s.Type = "string"
	if item, ok := strings.CutSuffix(name, "[]"); ok {
		s.Type, s.Items = "array", &shape{Type: valueShape(item).Type}
	}

	return s
}

// jsonTypes are the types whose JSON values are not strings; "" means any value.
var jsonTypes = map[string]string{
	"boolean": "boolean", "smallint": "integer", "integer": "integer", "bigint": "integer",
	"numeric": "number", "real": "number", "double precision": "number", "json": "", "jsonb": "",
}

// openAPIFormats are the formats that OpenAPI itself defines.
var openAPIFormats = map[string]string{"smallint": "int32", "integer": "int32", "bigint": "int64"}

// withoutModifier returns a type's SQL name without its modifier.
func withoutModifier(sql string) string {
	inQuotes, depth := false, 0
	name := strings.Map(func(r rune) rune {
		switch {
		case r == '"':
			inQuotes = !inQuotes
		case inQuotes:
		case r == '(':
			depth++
		case r == ')':
			depth--
			return -1
		}

		if depth > 0 {
			return -1
		}

		return r
	}, sql)

	item := strings.TrimRight(name, "[]")
	switch item { // their names without a modifier
	case "bpchar":
		return "character" + name[len(item):]
	case `"bit"`:
		return "bit" + name[len(item):]
	}

	return name
}

// defaultValue returns a column's default as JSON. It returns nil without a default, and for
// expressions that JSON cannot represent.
func defaultValue(c *catalog.Column, s *shape) json.RawMessage {
	if c.Default == "" {
		return nil
	}

	value := c.Default
	for _, name := range []string{withoutModifier(c.Type), withoutModifier(c.BaseType)} {
		literal, ok := strings.CutSuffix(c.Default, "::"+name)
		if ok && len(literal) > 1 && literal[0] == '\'' && literal[len(literal)-1] == '\'' {
			value = strings.ReplaceAll(literal[1:len(literal)-1], "''", "'")
			break
		}
	}

	switch s.Type {
	case "string":
		text, _ := encode(value) // a string has no error
		return text
	case "array":
		return nil
	}

	if !json.Valid([]byte(value)) {
		return nil
	}

	return json.RawMessage(value)
}
