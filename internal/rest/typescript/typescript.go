// Package typescript generates TypeScript types for a project's tables, views and functions, in the
// form that the client library @supabase/supabase-js takes as createClient<Database>(…).
package typescript

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/socle-dev/socle/internal/rest/catalog"
)

// version is the PostgREST version of the rows API's contract. The library derives the supported
// features from it.
const version = "14"

// Source returns the declarations of a catalog and of the enums in its schemas. Enums of other
// schemas type its columns and parameters.
func Source(c *catalog.Catalog, enums []catalog.Enum) string {
	w := &writer{catalog: c, enums: enums}
	w.line("// Types of the project's tables, views and functions. Made by socle gen types; changes are lost " +
		"when it is made anew.")
	w.line("")
	w.line("export type Json = string | number | boolean | null | { [key: string]: Json | undefined } | Json[]")
	w.line("")

	w.block("export type Database =", func() {
		w.line("__InternalSupabase: { PostgrestVersion: %s }", quoted(version))

		for _, schema := range c.Schemas {
			w.block(key(schema)+":", func() { w.schema(schema) })
		}
	})

	w.line("")
	w.line("type DefaultSchema = Database[%s]", quoted(defaultSchema(c.Schemas)))
	w.text.WriteString(helperTypes)

	return w.text.String()
}

// defaultSchema returns the default schema of a client library: public if exposed, else the
// server's default.
func defaultSchema(schemas []string) string {
	if len(schemas) == 0 || slices.Contains(schemas, "public") {
		return "public"
	}
	return schemas[0]
}

// helperTypes are shorthands for the types of the default schema.
const helperTypes = `
export type Tables<T extends keyof (DefaultSchema["Tables"] & DefaultSchema["Views"])> =
  (DefaultSchema["Tables"] & DefaultSchema["Views"])[T] extends { Row: infer R } ? R : never
export type TablesInsert<T extends keyof DefaultSchema["Tables"]> = DefaultSchema["Tables"][T] extends { Insert: infer I } ? I : never
export type TablesUpdate<T extends keyof DefaultSchema["Tables"]> = DefaultSchema["Tables"][T] extends { Update: infer U } ? U : never
export type Enums<T extends keyof DefaultSchema["Enums"]> = DefaultSchema["Enums"][T]
`

type writer struct {
	catalog *catalog.Catalog
	enums   []catalog.Enum
	text    strings.Builder
	depth   int
}

func (w *writer) line(format string, args ...any) {
	line := format
	if len(args) > 0 {
		line = fmt.Sprintf(format, args...)
	}

	if line != "" {
		w.text.WriteString(strings.Repeat("  ", w.depth) + line)
	}

	w.text.WriteByte('\n')
}

// block writes a type with members.
func (w *writer) block(head string, members func()) {
	w.line("%s {", head)
	w.depth++
	members()
	w.depth--
	w.line("}")
}

// group writes the members of a schema of one kind, or an empty type.
func (w *writer) group(name string, n int, members func()) {
	if n == 0 {
		w.line("%s: { [_ in never]: never }", name)
		return
	}

	w.block(name+":", members)
}

func (w *writer) schema(schema string) {
	var tables, views []*catalog.Relation
	for _, r := range w.catalog.Relations {
		switch {
		case r.Schema != schema:
		case r.Kind == 'v' || r.Kind == 'm':
			views = append(views, r)
		default:
			tables = append(tables, r)
		}
	}

	byName := func(a, b *catalog.Relation) int { return cmp.Compare(a.Name.Name, b.Name.Name) }
	slices.SortFunc(tables, byName)
	slices.SortFunc(views, byName)

	w.group("Tables", len(tables), func() {
		for _, r := range tables {
			w.relation(r, true, true)
		}
	})

	w.group("Views", len(views), func() {
		for _, r := range views {
			w.relation(r, r.Insertable, r.Updatable)
		}
	})

	w.functions(schema)

	var enums []catalog.Enum
	for _, e := range w.enums {
		if e.Schema == schema {
			enums = append(enums, e)
		}
	}

	w.group("Enums", len(enums), func() {
		for _, e := range enums {
			w.line("%s: %s", key(e.Name.Name), union(e.Values))
		}
	})

	w.line("CompositeTypes: { [_ in never]: never }")
}

func (w *writer) relation(r *catalog.Relation, insertable, updatable bool) {
	w.block(key(r.Name.Name)+":", func() {
		columns := slices.SortedFunc(slices.Values(r.Columns), func(a, b *catalog.Column) int {
			return cmp.Compare(a.Name, b.Name)
		})

		w.block("Row:", func() {
			for _, col := range columns {
				w.line("%s: %s", key(col.Name), w.column(col))
			}
		})

		if insertable {
			w.block("Insert:", func() {
				for _, col := range columns {
					w.writableColumn(col, !col.NotNull || col.HasDefault)
				}
			})
		}
		if updatable {
			w.block("Update:", func() {
				for _, col := range columns {
					w.writableColumn(col, true)
				}
			})
		}

		w.relationships(w.catalog.Links[r.Name])
	})
}

// writableColumn writes a column of an insert or update. An always generated column is not
// writable.
func (w *writer) writableColumn(col *catalog.Column, optional bool) {
	switch {
	case col.Generated:
		w.line("%s?: never", key(col.Name))
	case optional:
		w.line("%s?: %s", key(col.Name), w.column(col))
	default:
		w.line("%s: %s", key(col.Name), w.column(col))
	}
}

// relationships writes a relation's own foreign keys.
func (w *writer) relationships(links []*catalog.Link) {
	var own []*catalog.Link
	for _, l := range links {
		if l.Kind == catalog.ManyToOne || l.Kind == catalog.OneToOne && l.Forward {
			own = append(own, l)
		}
	}

	if len(own) == 0 {
		w.line("Relationships: []")
		return
	}

	slices.SortStableFunc(own, func(a, b *catalog.Link) int {
		return cmp.Or(cmp.Compare(a.Constraint, b.Constraint), cmp.Compare(a.To.Name, b.To.Name))
	})

	w.line("Relationships: [")
	w.depth++
	for _, l := range own {
		var from, to []string
		for _, p := range l.Pairs {
			from, to = append(from, quoted(p.From)), append(to, quoted(p.To))
		}

		w.line("{")
		w.depth++
		w.line("foreignKeyName: %s", quoted(l.Constraint))
		w.line("columns: [%s]", strings.Join(from, ", "))
		w.line("isOneToOne: %t", l.Kind == catalog.OneToOne)
		w.line("referencedRelation: %s", quoted(l.To.Name))
		w.line("referencedColumns: [%s]", strings.Join(to, ", "))
		w.depth--
		w.line("},")
	}

	w.depth--
	w.line("]")
}

func (w *writer) functions(schema string) {
	var names []catalog.Name
	for _, name := range slices.SortedFunc(maps.Keys(w.catalog.Functions), func(a, b catalog.Name) int {
		return cmp.Compare(a.Name, b.Name)
	}) {
		if name.Schema == schema {
			names = append(names, name)
		}
	}

	w.group("Functions", len(names), func() {
		for _, name := range names {
			var overloads []string
			for _, f := range w.catalog.Functions[name] {
				overloads = append(overloads, "{ Args: "+w.arguments(f)+"; Returns: "+w.returned(f)+w.rows(f)+" }")
			}

			slices.Sort(overloads)
			w.line("%s: %s", key(name.Name), strings.Join(slices.Compact(overloads), " | "))
		}
	})
}

func (w *writer) arguments(f *catalog.Function) string {
	if len(f.Params) == 0 {
		return "never"
	}

	var args []string
	for _, p := range f.Params {
		optional := ""
		if !p.Required {
			optional = "?"
		}

		args = append(args, key(p.Name)+optional+": "+w.typeOf(p.Type))
	}

	return "{ " + strings.Join(args, "; ") + " }"
}

func (w *writer) returned(f *catalog.Function) string {
	var one string
	switch r := w.catalog.Relations[f.Returns.Relation]; {
	case f.Returns.Void:
		return "undefined"
	case r != nil:
		kind := "Tables"
		if r.Kind == 'v' || r.Kind == 'm' {
			kind = "Views"
		}

		one = "Database[" + quoted(r.Schema) + "][" + quoted(kind) + "][" + quoted(r.Name.Name) + `]["Row"]`
	case len(f.Returns.Columns) > 0:
		var columns []string
		for _, p := range f.Returns.Columns {
			columns = append(columns, key(p.Name)+": "+w.typeOf(p.Type))
		}

		one = "{ " + strings.Join(columns, "; ") + " }"
	case f.Returns.Composite:
		one = "Record<string, unknown>"
	default:
		one = w.typeOf(f.Returns.Type)
	}

	if f.Returns.Set {
		return one + "[]"
	}

	return one
}

// rows returns the annotation of a function that returns rows of a relation, which a client can
// filter and embed like the relation.
func (w *writer) rows(f *catalog.Function) string {
	r := w.catalog.Relations[f.Returns.Relation]
	if r == nil {
		return ""
	}

	return fmt.Sprintf(`; SetofOptions: { from: "*"; to: %s; isOneToOne: %t; isSetofReturn: %t }`, quoted(r.Name.Name),
		!f.Returns.Set, f.Returns.Set)
}

func (w *writer) column(col *catalog.Column) string {
	t := w.typeOf(col.BaseType)
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

	if i := slices.IndexFunc(w.enums, func(e catalog.Enum) bool { return e.Type == sql }); i >= 0 {
		return w.enum(w.enums[i])
	}

	plain, _, _ := strings.Cut(sql, "(")
	switch plain {
	case "smallint", "integer", "bigint", "real", "double precision", "numeric", "oid":
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

// enum returns the type of an enum: a reference if its schema is exposed, else a union.
func (w *writer) enum(e catalog.Enum) string {
	if slices.Contains(w.catalog.Schemas, e.Schema) {
		return "Database[" + quoted(e.Schema) + `]["Enums"][` + quoted(e.Name.Name) + "]"
	}
	return union(e.Values)
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
