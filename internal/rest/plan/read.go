package plan

import (
	"github.com/socle-dev/socle/internal/actor"
	"github.com/socle-dev/socle/internal/rest/catalog"
	"github.com/socle-dev/socle/internal/rest/query"
)

// Read plans a read of a relation's rows.
func Read(c *catalog.Catalog, r *Request) (*Plan, error) {
	rel := c.Relations[r.Target]
	if rel == nil {
		return nil, NoRelation(c, r.Target)
	}

	b := newBuilder(c, r)
	// CSV reads rows again for the body, after the column that releases the locks
	b.releasesLocks = r.Format != CSV

	root := &node{name: rel.Name, rel: rel}
	if err := b.resolve(root, true); err != nil {
		return nil, err
	}

	b.noUserCode = b.inertRequest(root)
	b.answer(root)

	return b.plan(root)
}

// plan returns the plan of the statement written so far.
func (b *builder) plan(root *node) (*Plan, error) {
	if b.err != nil {
		return nil, b.err
	}

	p := &Plan{
		SQL:             string(b.sql),
		Args:            b.args,
		ReleasesLocks:   b.releasesLocks,
		Inert:           b.noUserCode,
		CountOnly:       b.countOnly,
		DeprecatedNames: b.deprecatedNames,
		origins:         b.origins,
	}

	if root != nil && (b.r.Count == Planned || b.r.Count == Estimated) && root.cte == "" {
		b.sql, b.args, b.origins = b.sql[:0], nil, nil
		b.matching(root)
		p.CountSQL, p.CountArgs, p.countOrigins = string(b.sql), b.args, b.origins
	}

	return p, nil
}

// answer writes the outermost SELECT, over the rows of the root.
func (b *builder) answer(root *node) {
	page := b.page(root)
	if b.r.Format == CSV { // reads the first row before the others
		b.text(b.with(root))
		b.text("page as materialized (")
		b.rows(root, page)
		b.text(") ")
	}

	b.openSizeCheck()
	b.text("select ")
	b.total(root, page)
	b.text(", count(*), null::text")
	b.settings()
	b.bodyOf(root, page)
}

// bodyOf writes the body column and the FROM clause that feeds it.
func (b *builder) bodyOf(root *node, page query.Limit) {
	b.text(", ")
	b.body()

	if b.r.Format == CSV {
		b.text(" from page as ")
	} else {
		b.text(" from (")
		b.rows(root, page)
		b.text(") as ")
	}

	b.quote(row)
	b.closeSizeCheck()
}

// with returns the keyword before another CTE: WITH for the first one, else a comma.
func (b *builder) with(root *node) string {
	if root.cte == "" {
		return "with "
	}
	return ", "
}

// settings writes the columns between location and body.
func (b *builder) settings() {
	if b.noUserCode { // no user code set headers or took a lock
		b.text(", null::text, null::text, null::bigint")
		return
	}

	b.text(
		", pg_catalog.current_setting('response.headers', true), pg_catalog.current_setting('response.status', true), ",
	)

	if b.releasesLocks { // no user code runs after it: the body's aggregate is complete
		b.text(actor.UnlockAdvisory)
		return
	}

	b.text("null::bigint")
}

// page returns the requested page of the rows, capped by the row limit.
func (b *builder) page(root *node) query.Limit {
	if root.cte == changedCTE {
		return query.Limit{}
	}
	return b.atMost(b.r.Range)
}

// atMost caps a page by the row limit.
func (b *builder) atMost(p query.Limit) query.Limit {
	if m := b.r.MaxRows; m != nil && (p.Limit == nil || *m < *p.Limit) {
		p.Limit = m
	}
	return p
}

// rows writes the SELECT of a node's rows.
func (b *builder) rows(n *node, page query.Limit) {
	b.allRows(n)
	b.order(n)
	b.limit(page)
}

// allRows is rows without order and page.
func (b *builder) allRows(n *node) {
	b.text("select ")
	b.outputs(n)
	b.text(" from ")
	b.source(n)

	for _, c := range n.children {
		b.join(c)
	}

	b.filter(n, true)
	b.group(n)
}

func (b *builder) limit(page query.Limit) {
	if page.Limit != nil {
		b.text(" limit ")
		b.length(*page.Limit)
	}

	if page.Offset != 0 {
		b.text(" offset ")
		b.intArg(page.Offset)
	}
}

// outputs writes the columns of a node's rows. Columns of a spread node are numbered, since names
// can be ambiguous in the parent's rows.
func (b *builder) outputs(n *node) {
	for i := range n.outputs {
		o := &n.outputs[i]
		b.comma(i)

		switch {
		case o.star:
			b.row(n.alias)
		case n.spread():
			b.value(n, o)
			b.text(" as ")
			b.number(i)
		default:
			b.aggregate(n, o)
			b.text(" as ")
			b.quote(o.name)
		}
	}
}

// number writes the name of a spread node's output.
func (b *builder) number(i int) {
	b.text("c")
	b.int(int64(i + 1))
}

// value writes an output without its aggregate.
func (b *builder) value(n *node, o *output) {
	switch {
	case o.child != nil && o.sub >= 0:
		b.spreadValue(n, o)
	case o.child != nil:
		b.embedded(o)
	case o.cast != "":
		b.text("cast(")
		b.shown(n, o)
		b.text(" as ")
		b.cast(o.cast)
		b.text(")")
	case o.field.Name == "": // count()
		b.text("1")
	case o.aggregate != "": // aggregates take stored values: JSON has no order and no sum
		b.field(n, &o.field)
	default:
		b.shown(n, o)
	}
}

// shown writes a field in its shown representation.
func (b *builder) shown(n *node, o *output) {
	if !o.represented() {
		b.field(n, &o.field)
		return
	}

	b.name(o.column.ToJSON)
	b.text("(")
	b.column(n.alias, o.field.Name)
	b.text(")")
}

// source writes the FROM item of a node.
func (b *builder) source(n *node) {
	switch {
	case n.cte != "":
		b.text(n.cte)
	case n.link == nil || n.link.Kind != catalog.Computed:
		b.name(n.name)
	default:
		b.name(n.link.Function.Name)
		b.text("(cast(")
		b.row(n.parent.alias)
		b.text(" as ")
		b.name(n.link.From)
		b.text("))")
	}

	b.text(" as ")
	b.quote(n.alias)

	if n.through == "" {
		return
	}

	b.text(" join ")
	b.name(n.link.Through)
	b.text(" as ")
	b.quote(n.through)
	b.text(" on ")

	for i, p := range n.link.ThroughPairs {
		b.equal(i, n.through, p.From, n.alias, p.To)
	}
}

// linked writes the join condition between a node and its parent.
func (b *builder) linked(n *node) {
	if n.link == nil || n.link.Kind == catalog.Computed {
		return
	}

	far := n.alias
	if n.through != "" {
		far = n.through
	}

	for i, p := range n.link.Pairs {
		b.equal(i, far, p.To, n.parent.alias, p.From)
	}
}

func (b *builder) equal(i int, near, column, far, other string) {
	if i > 0 {
		b.text(" and ")
	}

	b.column(near, column)
	b.text(" = ")
	b.column(far, other)
}

// order writes the ORDER BY clause of a node.
func (b *builder) order(n *node) {
	for i := range n.order {
		t := &n.order[i]

		if i == 0 {
			b.text(" order by ")
		}

		b.comma(i)

		if t.Relation != "" {
			b.related(n.child(t.Relation), &t.Field)
		} else {
			b.field(n, &t.Field)
		}

		if t.Descending {
			b.text(" desc")
		}

		if t.Nulls == "first" {
			b.text(" nulls first")
		} else if t.Nulls == "last" {
			b.text(" nulls last")
		}
	}
}
