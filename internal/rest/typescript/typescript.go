// Package typescript generates TypeScript types for a project's tables, views and functions, in the
// form that the client library @supabase/supabase-js takes as createClient<Database>(…).
package typescript

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/socle-dev/socle/internal/rest/catalog"
)

// version is the PostgREST version in the rows API's contract. The library derives the supported
// features from it.
const version = "14"

// Source returns the declarations for a catalog, for the enums and composite types in its schemas,
// and for the functions that [catalog.ReadComputed] returns. Types in other schemas type its
// columns and parameters.
func Source(c *catalog.Catalog, types []catalog.Type, computed []*catalog.Function) string {
	w := &writer{catalog: c, types: map[string]catalog.Type{}, functions: maps.Clone(c.Functions),
		fields: map[catalog.Name][]*catalog.Function{}}
	for _, t := range types {
		w.types[t.Type] = t
	}
	for _, f := range computed {
		if w.argument(f) != nil {
			w.functions[f.Name] = append(slices.Clip(w.functions[f.Name]), f)
		}
	}
	for _, overloads := range w.functions {
		for _, f := range overloads {
			if r := w.argument(f); r != nil && w.isField(f, r) {
				w.fields[r.Name] = append(w.fields[r.Name], f)
			}
		}
	}

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

// defaultSchema returns a client library's default schema: public if exposed, else the server's
// default.
func defaultSchema(schemas []string) string {
	if len(schemas) == 0 || slices.Contains(schemas, "public") {
		return "public"
	}
	return schemas[0]
}

// helperTypes are shorthands for types in the default schema.
const helperTypes = `
export type Tables<T extends keyof (DefaultSchema["Tables"] & DefaultSchema["Views"])> =
  (DefaultSchema["Tables"] & DefaultSchema["Views"])[T] extends { Row: infer R } ? R : never
export type TablesInsert<T extends keyof DefaultSchema["Tables"]> = DefaultSchema["Tables"][T] extends { Insert: infer I } ? I : never
export type TablesUpdate<T extends keyof DefaultSchema["Tables"]> = DefaultSchema["Tables"][T] extends { Update: infer U } ? U : never
export type Enums<T extends keyof DefaultSchema["Enums"]> = DefaultSchema["Enums"][T]
`

type writer struct {
	catalog   *catalog.Catalog
	types     map[string]catalog.Type // by their SQL text
	functions map[catalog.Name][]*catalog.Function
	fields    map[catalog.Name][]*catalog.Function // that compute a field, by relation
	text      strings.Builder
	depth     int
}

// argument returns the exposed relation whose row is a function's only parameter, nil if there is
// none.
func (w *writer) argument(f *catalog.Function) *catalog.Relation {
	if len(f.Params) != 1 || !w.types[f.Params[0].Type].Row {
		return nil
	}

	return w.catalog.Relations[w.types[f.Params[0].Type].Name]
}

// isField reports whether a function that takes a relation's row can be selected like a column.
func (w *writer) isField(f *catalog.Function, r *catalog.Relation) bool {
	return f.Schema == r.Schema && !f.Returns.Set && !f.Returns.Void &&
		w.catalog.Relations[f.Returns.Relation] == nil && r.ByName[f.Name.Name] == nil
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

// group writes one kind of schema members, or an empty type.
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

	w.functionsOf(schema)

	var enums, composites []catalog.Type
	for _, t := range w.types {
		switch {
		case t.Schema != schema:
		case t.Kind == 'e':
			enums = append(enums, t)
		case t.Kind == 'c' && !t.Row:
			composites = append(composites, t)
		}
	}

	typeByName := func(a, b catalog.Type) int { return cmp.Compare(a.Name.Name, b.Name.Name) }
	slices.SortFunc(enums, typeByName)
	slices.SortFunc(composites, typeByName)

	w.group("Enums", len(enums), func() {
		for _, e := range enums {
			w.line("%s: %s", key(e.Name.Name), union(e.Values))
		}
	})

	w.group("CompositeTypes", len(composites), func() {
		for _, c := range composites {
			w.block(key(c.Name.Name)+":", func() {
				for _, a := range c.Attributes {
					w.line("%s: %s | null", key(a.Name), w.typeOf(a.Type))
				}
			})
		}
	})
}

func (w *writer) relation(r *catalog.Relation, insertable, updatable bool) {
	w.block(key(r.Name.Name)+":", func() {
		columns := slices.SortedFunc(slices.Values(r.Columns), func(a, b *catalog.Column) int {
			return cmp.Compare(a.Name, b.Name)
		})

		fields := slices.SortedFunc(slices.Values(w.fields[r.Name]), func(a, b *catalog.Function) int {
			return cmp.Compare(a.Name.Name, b.Name.Name)
		})

		w.block("Row:", func() {
			for _, col := range columns {
				w.line("%s: %s", key(col.Name), w.column(col))
			}
			for _, f := range fields {
				w.line("%s: %s | null", key(f.Name.Name), w.typeOf(f.Returns.Type))
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

// writableColumn writes a column for an insert or update. An always generated column is not
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
	var references []*catalog.Link
	for _, l := range links {
		if l.Kind == catalog.ManyToOne || l.Kind == catalog.OneToOne && l.Forward {
			references = append(references, l)
		}
	}

	if len(references) == 0 {
		w.line("Relationships: []")
		return
	}

	slices.SortStableFunc(references, func(a, b *catalog.Link) int {
		return cmp.Or(cmp.Compare(a.Constraint, b.Constraint), cmp.Compare(a.To.Name, b.To.Name))
	})

	w.line("Relationships: [")
	w.depth++
	for _, l := range references {
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

func (w *writer) functionsOf(schema string) {
	var names []catalog.Name
	for _, name := range slices.SortedFunc(maps.Keys(w.functions), func(a, b catalog.Name) int {
		return cmp.Compare(a.Name, b.Name)
	}) {
		if name.Schema == schema {
			names = append(names, name)
		}
	}

	w.group("Functions", len(names), func() {
		for _, name := range names {
			var overloads []string
			for _, f := range w.functions[name] {
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

	if r := w.argument(f); r != nil { // the client's form of a computed field
		return `{ "": ` + w.row(r) + " }"
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
	_, isType := w.types[f.Returns.Type]
	switch r := w.catalog.Relations[f.Returns.Relation]; {
	case f.Returns.Void:
		return "undefined"
	case r != nil:
		one = w.row(r)
	case len(f.Returns.Columns) > 0:
		var columns []string
		for _, p := range f.Returns.Columns {
			columns = append(columns, key(p.Name)+": "+w.typeOf(p.Type))
		}

		one = "{ " + strings.Join(columns, "; ") + " }"
	case f.Returns.Composite && !isType:
		one = "Record<string, unknown>"
	default:
		one = w.typeOf(f.Returns.Type)
	}

	if f.Returns.Set {
		return one + "[]"
	}

	return one
}

// rows returns the annotation for a function that returns a relation's rows, which a client can
// filter and embed like the relation: in another relation's rows if it is computed from them.
func (w *writer) rows(f *catalog.Function) string {
	r := w.catalog.Relations[f.Returns.Relation]
	if r == nil {
		return ""
	}

	from, single := "*", !f.Returns.Set
	if a := w.argument(f); a != nil {
		from = a.Name.Name
		single = slices.ContainsFunc(w.catalog.Links[a.Name], func(l *catalog.Link) bool {
			return l.Kind == catalog.Computed && l.Function.Name == f.Name && l.Single
		})
	}

	return fmt.Sprintf(`; SetofOptions: { from: %s; to: %s; isOneToOne: %t; isSetofReturn: %t }`, quoted(from),
		quoted(r.Name.Name), single, f.Returns.Set)
}
