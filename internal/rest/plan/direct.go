package plan

import (
	"bytes"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"socle/internal/rest/catalog"
)

// direct returns a body's one object as arguments, one for each of its members, which a parameter of the column's type holds as
// json_to_record would have it: so a change of one row is what anyone would write by hand, and PostgreSQL need not read JSON for it.
// nil if the body is anything else, or has a value that is read in another way.
func (p *payload) direct(rel *catalog.Relation) []any {
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
		if args[i], ok = held(c, p.values[i]); !ok {
			return nil
		}
	}

	return args
}

// held returns a value of JSON as an argument for a column.
func held(c *catalog.Column, value jsontext.Value) (arg any, ok bool) {
	switch kind := value.Kind(); {
	case kind == 'n':
		return nil, true
	case strings.HasPrefix(c.BaseType, "bit"): // what is too long is told from what is no bit in another order
		return nil, false
		// json keeps a string as it is written, of which json_to_record makes it anew
	case c.BaseType == "json" || c.BaseType == "jsonb":
		return string(value), kind != '"' || bytes.IndexByte(value, '\\') < 0
	case kind == '"':
		text, err := jsontext.AppendUnquote(nil, value)
		return string(text), err == nil && bytes.IndexByte(text, 0) < 0
	case kind == '{' || kind == '[':
		return nil, false
	}

	name, _, _ := strings.Cut(c.BaseType, "(") // its length and precision hold when it is written
	return string(value), simple[name]
}

// simple are types whose values can be numbers, true and false in JSON: PostgreSQL reads the text of those.
var simple = map[string]bool{
	"smallint": true, "integer": true, "bigint": true, "numeric": true, "real": true, "double precision": true,
	"boolean": true, "text": true, "character varying": true, "money": true, "oid": true,
}
