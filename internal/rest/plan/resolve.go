package plan

import (
	"slices"

	"github.com/socle-dev/socle/internal/rest/catalog"
	"github.com/socle-dev/socle/internal/rest/query"
)

// node is a relation of the answer: the root from the URL, or an embedded relation.
type node struct {
	parent       *node
	item         *query.Item // item of an embedded relation
	name         catalog.Name
	rel          *catalog.Relation // nil if the columns are unknown
	cte          string            // name of the CTE that supplies a root's rows
	alias        string
	through      string        // alias of the join table to the parent, if any
	link         *catalog.Link // from parent
	children     []*node       // in the order of the items
	where        []query.Condition
	order        []query.Term
	limit        *int64
	offset       int64
	items        []query.Item
	outputs      []output
	grouped      bool // some outputs are aggregates
	lookups      bool // related rows come from a lookup per parent row, or the page is short
	ordersParent bool // the parent's rows are ordered by it
	aliasesOnly  bool // children with an alias are referenced only by it
}

// output is a column of a node's rows.
type output struct {
	name       string
	star       bool            // all columns, under their own names
	field      query.Field     // unless child is set
	column     *catalog.Column // column of field, if known and without a path
	cast       string          // cast of the field
	child      *node           // an embedded relation: its rows as JSON, or a spread
	sub        int             // index of the spread child's output
	aggregate  string          // applied to the value
	resultCast string          // cast of the aggregate
}

// represented reports whether an output is of a domain with its own JSON representation.
func (o *output) represented() bool { return o.column != nil && o.column.ToJSON.Name != "" }

func (n *node) spread() bool { return n.item != nil && n.item.Kind == query.Spread }

// toOne reports whether a parent row has at most one row of the node.
func (n *node) toOne() bool { return toOne(n.link) }

func toOne(l *catalog.Link) bool {
	switch l.Kind {
	case catalog.ManyToOne, catalog.OneToOne:
		return true
	case catalog.Computed:
		return l.Single
	}

	return false
}

// inner reports whether the parent's rows need a match.
func (n *node) inner() bool { return n.item.Join == query.Inner }

// isEmpty reports whether an embedded relation adds nothing to the answer.
func (n *node) isEmpty() bool {
	return len(n.outputs) == 0
}

// key returns the name of an embedded relation in the answer.
func (n *node) key() string {
	if n.item.Alias != "" {
		return n.item.Alias
	}
	return n.item.Relation
}

// child finds an embedded relation by its key, or by its relation's name. A strict node ignores the
// relation name of a child with an alias.
func (n *node) child(name string) *node {
	for _, c := range n.children {
		if c.key() == name {
			return c
		}
	}

	for _, c := range n.children {
		if c.item.Relation == name && !n.aliasesOnly {
			return c
		}
	}

	return nil
}

// column returns the catalog's column of a name, or nil.
func (n *node) column(name string) *catalog.Column {
	if n.rel == nil {
		return nil
	}
	return n.rel.ByName[name]
}

// resolve builds the tree of relations for a query. If filter is set, the root's filters apply to
// its rows; otherwise the caller writes them.
func (b *builder) resolve(root *node, filter bool) error {
	q := b.r.Query
	root.items = q.Select
	root.alias = b.alias(root.name.Name)
	root.aliasesOnly = b.r.AliasesOnly
	embed(root)

	if err := b.attach(root, q, filter); err != nil {
		return err
	}

	page := b.page(root)
	root.lookups = root.cte == changedCTE || page.Limit != nil && *page.Limit <= maxLookupPage
	if err := b.connect(root); err != nil {
		return err
	}

	if err := related(root); err != nil {
		return err
	}

	return b.output(root)
}

// maxLookupPage is the longest page that looks up related rows one by one. For about 20 rows,
// lookups take less than half the time of a join, which can read the whole other relation. For
// 10,000 rows, they take half as much again.
const maxLookupPage = 200

// embed adds the embedded relations to a node.
func embed(n *node) {
	for i := range n.items {
		item := &n.items[i]
		if item.Kind != query.Embed && item.Kind != query.Spread {
			continue
		}

		c := &node{parent: n, item: item, items: item.Items, aliasesOnly: n.aliasesOnly}
		n.children = append(n.children, c)
		embed(c)
	}
}

// attach assigns filters, orders and limits to the nodes that their paths name.
func (b *builder) attach(root *node, q *query.Query, filter bool) error {
	for i := range q.Filters {
		f := &q.Filters[i]
		n, err := b.find(root, f.Path)
		if err != nil {
			return err
		}

		if n != root || filter {
			n.where = append(n.where, f.Condition)
		}
	}

	for i := range q.Order {
		n, err := b.find(root, q.Order[i].Path)
		if err != nil {
			return err
		}

		n.order = q.Order[i].Terms
	}

	for i := range q.Limits {
		n, err := b.find(root, q.Limits[i].Path)
		if err != nil {
			return err
		}

		if n != root {
			n.limit, n.offset = q.Limits[i].Limit, q.Limits[i].Offset
		}
	}

	return nil
}

// find returns the node at a path from another node.
func (b *builder) find(n *node, path []string) (*node, error) {
	for _, name := range path {
		c := n.child(name)
		if c == nil {
			return nil, notEmbedded(n, name)
		}

		if c.key() != name {
			if said := name + " (" + c.key() + ")"; !slices.Contains(b.deprecatedNames, said) {
				b.deprecatedNames = append(b.deprecatedNames, said)
			}
		}

		n = c
	}

	return n, nil
}

// connect finds the links to the embedded relations.
func (b *builder) connect(n *node) error {
	for _, c := range n.children {
		l, err := b.link(n, c.item)
		if err != nil {
			return err
		}

		c.link, c.name, c.rel = l, l.To, b.c.Relations[l.To]
		c.alias = b.alias(l.To.Name)

		if l.Kind == catalog.ManyToMany {
			c.through = b.alias(l.Through.Name)
		}

		c.lookups = n.lookups || !toOne(l)

		if one := int64(1); l.Single && l.Function.Returns.Set && c.limit == nil {
			// the function promises one row
			c.limit = &one
		}

		if err := b.connect(c); err != nil {
			return err
		}
	}

	return nil
}

// related validates the orders by columns of embedded relations.
func related(n *node) error {
	for _, t := range n.order {
		if t.Relation == "" {
			continue
		}

		c := n.child(t.Relation)
		if c == nil {
			return notEmbedded(n, t.Relation)
		}
		if !c.toOne() {
			return notToOne(n, t.Relation)
		}

		c.ordersParent = true
	}

	for _, c := range n.children {
		if err := related(c); err != nil {
			return err
		}
	}

	return nil
}

// output lists the columns of a node's rows: its own first, then those of embedded relations.
func (b *builder) output(n *node) error {
	n.outputs = make([]output, 0, len(n.items)+1)
	if len(n.items) == 0 && (n.item == nil || !n.item.Empty) {
		n.outputs = append(n.outputs, output{star: true})
	}

	for i := range n.items {
		item := &n.items[i]
		switch item.Kind {
		case query.Star:
			n.outputs = append(n.outputs, output{star: true})
		case query.Column:
			if item.Aggregate != "" && !b.r.Aggregates {
				return noAggregates()
			}
			n.add(item)
		}
	}

	for _, c := range n.children {
		if err := b.output(c); err != nil {
			return err
		}

		switch {
		case c.isEmpty():
		case c.spread():
			if !c.toOne() && c.grouped {
				return noSpreadAggregates()
			}

			for i := range c.outputs {
				o := &c.outputs[i]
				n.outputs = append(n.outputs, output{
					name:       o.name,
					child:      c,
					sub:        i,
					aggregate:  o.aggregate,
					resultCast: o.resultCast,
				})

				n.grouped = n.grouped || o.aggregate != ""
			}
		default:
			n.outputs = append(n.outputs, output{name: c.key(), child: c, sub: -1})
		}
	}

	n.expand()
	return nil
}

// add appends a column or an aggregate to the outputs.
func (n *node) add(item *query.Item) {
	o := output{
		name:       item.Alias,
		field:      item.Field,
		cast:       item.Cast,
		aggregate:  item.Aggregate,
		resultCast: item.AggregateCast,
	}
	if len(o.field.Path) == 0 {
		o.column = n.column(o.field.Name)
	}

	switch {
	case o.name != "":
	case o.aggregate != "":
		o.name = o.aggregate
	default:
		o.name = label(o.field)
	}

	n.grouped = n.grouped || o.aggregate != ""
	n.outputs = append(n.outputs, o)
}

// label returns the name of a field without an alias: the last key of its path.
func label(f query.Field) string {
	for _, s := range slices.Backward(f.Path) {
		if s.IsKey {
			return s.Key
		}
	}

	return f.Name
}

// expand replaces a star by all columns where a star is incorrect: columns with a representation,
// grouped or spread columns, and columns from a CTE with more columns than the relation.
func (n *node) expand() {
	if n.rel == nil || !slices.ContainsFunc(n.outputs, func(o output) bool { return o.star }) {
		return
	}

	shown := slices.ContainsFunc(n.rel.Columns, func(c *catalog.Column) bool { return c.ToJSON.Name != "" })
	if !shown && !n.grouped && !n.spread() && n.cte == "" {
		return
	}

	outputs := make([]output, 0, len(n.outputs)+len(n.rel.Columns))
	for _, o := range n.outputs {
		if !o.star {
			outputs = append(outputs, o)
			continue
		}

		for _, c := range n.rel.Columns {
			outputs = append(outputs, output{name: c.Name, field: query.Field{Name: c.Name}, column: c})
		}
	}

	n.outputs = outputs
}
