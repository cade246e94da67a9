package plan

import (
	"slices"

	"github.com/socle-dev/socle/internal/rest/catalog"
	"github.com/socle-dev/socle/internal/rest/query"
)

// spreadValue writes a column of a spread relation.
func (b *builder) spreadValue(n *node, o *output) {
	switch {
	case !o.json():
		b.part(o)
	case n.grouped: // grouped by its text
		b.orEmpty(o, "::text")
		b.text("::json")
	case o.child.toOne():
		b.part(o)
	default:
		b.orEmpty(o, "")
	}
}

// orEmpty writes the JSON of an embedded relation; an empty array if a to-many one has no rows.
func (b *builder) orEmpty(o *output, as string) {
	if o.child.toOne() {
		b.part(o)
		b.text(as)

		return
	}

	b.text("coalesce(")
	b.part(o)
	b.text(as)
	b.text(", '[]')")
}

// embedded writes the rows of an embedded relation as JSON.
func (b *builder) embedded(o *output) {
	c := o.child
	switch {
	case c.joined() && c.toOne():
		b.object(c)

		if c.parent.grouped && c.nests() { // grouped by its text
			b.text("::text::json")
		}

		return
	case c.joined():
		b.orEmpty(o, "::text")
		b.text("::json")

		return
	}

	// A value is built after the rows are sorted and limited, a join before.
	if c.toOne() {
		b.wrap("(select pg_catalog.row_to_json(", ") from (")
		b.rows(c, query.Limit{Limit: c.limit, Offset: c.offset})
	} else {
		b.wrap("(select coalesce(pg_catalog.json_agg(", "), '[]') from (")
		b.rows(c, b.toManyPage(c))
	}

	b.text(") as ")
	b.quote(row)
	b.text(")")
}

// object writes the joined row of an embedded relation as JSON.
func (b *builder) object(c *node) {
	b.text("pg_catalog.row_to_json(")
	b.row(c.alias)
	b.text(")")
}

// joined reports whether an embedded relation is joined to its parent instead of being a subquery
// value. A join serves relations that supply several columns, restrict the parent's rows, or have
// many parent rows.
func (c *node) joined() bool {
	switch {
	case c.inner() && c.toOne():
		return true
	case c.isEmpty():
		return false
	case c.spread() || c.parent.grouped:
		return true
	}

	return c.toOne() && (c.ordersParent || !c.parent.lookups || !c.atMostOne())
}

// atMostOne reports whether a to-one relation certainly has at most one row.
func (c *node) atMostOne() bool { return c.link.Kind == catalog.Computed || c.rel.Constrained }

// join writes the join of an embedded relation.
func (b *builder) join(c *node) {
	if !c.joined() {
		return
	}

	if c.inner() {
		b.text(" join lateral (")
	} else {
		b.text(" left join lateral (")
	}

	switch {
	case c.toOne():
		b.rows(c, query.Limit{Limit: c.limit, Offset: c.offset})
	case c.spread():
		b.text("select ")

		for i := range c.outputs {
			b.comma(i)
			b.text("pg_catalog.json_agg(")
			b.quote(row)
			b.text(".")
			b.number(i)
			b.text(") as ")
			b.number(i)
		}

		b.from(c)
	default:
		b.text("select pg_catalog.json_agg(")
		b.row(row)
		b.text(") as j")
		b.from(c)
	}

	b.text(") as ")
	b.quote(c.alias)
	b.text(" on true")
}

// from writes the FROM clause for the aggregates of an embedded relation.
func (b *builder) from(c *node) {
	b.text(" from (")
	b.rows(c, b.toManyPage(c))
	b.text(") as ")
	b.quote(row)

	if c.inner() {
		b.text(" having count(*) > 0")
	}
}

// toManyPage returns the page of a to-many embedded relation.
func (b *builder) toManyPage(c *node) query.Limit {
	return b.atMost(query.Limit{Limit: c.limit, Offset: c.offset})
}

// related writes a field of an embedded relation for the order of its parent's rows.
func (b *builder) related(c *node, f *query.Field) {
	if c.joined() && b.relatedOutput(c, f) {
		return
	}

	b.text("(select ")
	b.field(c, f)
	b.text(" from ")
	b.source(c)
	b.filter(c, false)
	one := int64(1) // a link without a unique constraint can match more rows
	if c.limit != nil {
		one = min(one, *c.limit)
	}

	b.limit(query.Limit{Limit: &one, Offset: c.offset})
	b.text(")")
}

// relatedOutput writes a field as an output of an embedded relation's join, and reports whether the
// join has it.
func (b *builder) relatedOutput(c *node, f *query.Field) bool {
	for i := range c.outputs {
		o := &c.outputs[i]
		switch {
		case c.spread():
			if o.shows(f) || o.name == f.Name && len(f.Path) == 0 && c.column(f.Name) == nil {
				b.part(&output{child: c, sub: i})
				return true
			}
		case o.star:
			if len(f.Path) == 0 && c.column(f.Name) != nil && c.hasOnce(f.Name) {
				b.column(c.alias, f.Name)
				return true
			}
		case o.shows(f) && c.hasOnce(o.name):
			b.column(c.alias, o.name)
			return true
		}
	}

	return false
}

// hasOnce reports whether exactly one output has a name.
func (n *node) hasOnce(name string) bool {
	count := 0
	for i := range n.outputs {
		if o := &n.outputs[i]; o.name == name || o.star && n.column(name) != nil {
			count++
		}
	}

	return count == 1
}

// shows reports whether an output is an unmodified field.
func (o *output) shows(f *query.Field) bool {
	return !o.star && o.child == nil && o.cast == "" && o.aggregate == "" && !o.represented() &&
		o.field.Name == f.Name && slices.Equal(o.field.Path, f.Path)
}
