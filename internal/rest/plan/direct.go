package plan

import (
	"bytes"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/socle-dev/socle/internal/rest/catalog"
)

// directArgs returns the members of a body's single object as arguments, one per column. A
// parameter of the column's type then holds the same value as json_to_record would produce. A
// single-row change becomes plain SQL, and PostgreSQL parses no JSON for it. direct returns nil for
// any other body, and for a value that json_to_record converts differently.
func (p *payload) directArgs(rel *catalog.Relation) []any {
	if len(p.values) == 0 || len(p.values) != len(p.names) {
		return nil
	}

	args := make([]any, len(p.names))
	for i, name := range p.names {
		c := rel.ByName[name]
		if c == nil || c.FromJSON.Name != "" {
			return nil
		}

		ok := false
		if args[i], ok = jsonArg(c, p.values[i]); !ok {
			return nil
		}
	}

	return args
}

// jsonArg converts a JSON value to an argument for a column. ok is false if json_to_record would
// convert it differently.
func jsonArg(c *catalog.Column, value jsontext.Value) (arg any, ok bool) {
	switch kind := value.Kind(); {
	case kind == 'n':
		return nil, true
	case strings.HasPrefix(c.BaseType, "bit"):
		// the checks for length and for invalid digits run in another order
		return nil, false
	case c.BaseType == "json" || c.BaseType == "jsonb":
		// a string would keep its escapes, which json_to_record rewrites
		return string(value), kind != '"' || bytes.IndexByte(value, '\\') < 0
	case kind == '"':
		text, err := jsontext.AppendUnquote(nil, value)
		return string(text), err == nil && bytes.IndexByte(text, 0) < 0
	case kind == '{' || kind == '[':
		return nil, false
	}

	name, _, _ := strings.Cut(c.BaseType, "(") // length and precision are enforced on assignment
	return string(value), textTypes[name]
}

// textTypes lists the types that accept JSON numbers and booleans: PostgreSQL parses their text.
var textTypes = map[string]bool{
	"smallint": true, "integer": true, "bigint": true, "numeric": true, "real": true, "double precision": true,
	"boolean": true, "text": true, "character varying": true, "money": true, "oid": true,
}
