package typescript

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/socle-dev/socle/internal/rest/catalog"
)

// row returns the type for a relation's rows.
func (w *writer) row(r *catalog.Relation) string {
	kind := "Tables"
	if r.Kind == 'v' || r.Kind == 'm' {
		kind = "Views"
	}

	return "Database[" + quoted(r.Schema) + "][" + quoted(kind) + "][" + quoted(r.Name.Name) + `]["Row"]`
}

func (w *writer) column(col *catalog.Column) string {
	t := w.typeOf(col.BaseType)
	if col.ToJSON != (catalog.Name{}) {
		t = "Json"
	}
	if !col.NotNull {
		t += " | null"
	}

	return t
}

// typeOf returns the TypeScript type of an SQL type's JSON value.
func (w *writer) typeOf(sql string) string {
	if element, ok := strings.CutSuffix(sql, "[]"); ok {
		if t := w.typeOf(element); !strings.Contains(t, " | ") {
			return t + "[]"
		}
		return "(" + w.typeOf(element) + ")[]"
	}

	plain, _, _ := strings.Cut(sql, "(")
	for _, name := range []string{sql, plain} {
		if t, ok := w.types[name]; ok {
			return w.named(t)
		}
	}

	switch plain {
	case "smallint", "integer", "bigint", "real", "double precision", "numeric":
		return "number"
	case "boolean":
		return "boolean"
	case "json", "jsonb":
		return "Json"
	case "record":
		return "Record<string, unknown>"
	case "anyelement", "anyarray", "anynonarray", "anyenum", "anycompatible", "unknown":
		return "unknown"
	}

	return "string"
}

// named returns the TypeScript type for a database type: a reference if its schema is exposed.
func (w *writer) named(t catalog.Type) string {
	isExposed := slices.Contains(w.catalog.Schemas, t.Schema)
	relation := w.catalog.Relations[t.Name]
	switch {
	case t.JSON && t.Kind == 'b':
		return "Json"
	case t.Kind == 'd':
		return w.typeOf(t.Base)
	case t.Kind == 'e' && isExposed:
		return "Database[" + quoted(t.Schema) + `]["Enums"][` + quoted(t.Name.Name) + "]"
	case t.Kind == 'e':
		return union(t.Values)
	case t.Row && relation != nil:
		return w.row(relation)
	case t.Kind == 'c' && !t.Row && isExposed:
		return "Database[" + quoted(t.Schema) + `]["CompositeTypes"][` + quoted(t.Name.Name) + "]"
	case t.Kind == 'c':
		return "Record<string, unknown>"
	}

	return "string"
}

// union returns a union of string literals.
func union(texts []string) string {
	if len(texts) == 0 {
		return "never"
	}

	all := make([]string, len(texts))
	for i, text := range texts {
		all[i] = quoted(text)
	}

	return strings.Join(all, " | ")
}

// key returns a name as a member name.
func key(name string) string {
	for i, r := range name {
		if r != '_' && r != '$' && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (i == 0 || r < '0' || r > '9') {
			return quoted(name)
		}
	}

	if name == "" {
		return `""`
	}

	return name
}

// quoted returns a string literal that is valid in JavaScript and JSON.
func quoted(text string) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)

	if err := e.Encode(text); err != nil {
		panic("typescript: " + err.Error()) // a string always marshals
	}

	return strings.TrimSuffix(b.String(), "\n")
}
