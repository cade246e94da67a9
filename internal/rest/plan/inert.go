package plan

import (
	"socle/internal/rest/catalog"
	"socle/internal/rest/query"
)

// inertRequest reports whether the statement for a tree of relations runs no code of the database's: then nothing has to be taken from the
// session after it, nobody can have set what the answer's headers and status are, and a change needs no transaction of its own. Only what is
// asked for most is looked at; all else is said to run something.
func (b *builder) inertRequest(root *node) bool {
	switch b.r.Format {
	case JSON, Object, StrippedJSON, StrippedObject:
	default:
		return false
	}

	// by the text of defaults, whose functions others may stand in for
	completes := b.r.Missing && b.r.Query.Columns != nil
	if b.r.Before || completes || root.cte == changed && (root.rel == nil || !root.rel.InertWrite) {
		return false
	}

	return b.inert(root)
}

func (b *builder) inert(n *node) bool {
	if n.rel == nil || !n.rel.InertRead || n.grouped {
		return false
	}

	if l := n.link; l != nil {
		through := b.c.Relations[l.Through]
		if l.Kind == catalog.Computed || l.Kind == catalog.ManyToMany && (through == nil || !through.InertRead) {
			return false
		}
	}

	for i := range n.outputs {
		o := &n.outputs[i]
		if !o.star && o.child == nil && (o.cast != "" || o.aggregate != "" || !n.stored(&o.field)) {
			return false
		}
	}

	if n.cte == changed { // the filters are those of the change
		for i := range b.r.Query.Filters {
			if f := &b.r.Query.Filters[i]; len(f.Path) == 0 && !n.compares(f.Condition) {
				return false
			}
		}
	}

	for _, c := range n.where {
		if !n.compares(c) {
			return false
		}
	}

	for i := range n.order {
		t, of := &n.order[i], n
		if t.Relation != "" {
			of = n.child(t.Relation)
		}

		if !of.stored(&t.Field) {
			return false
		}
	}

	for _, c := range n.children {
		if !b.inert(c) {
			return false
		}
	}

	return true
}

// stored reports whether a field is a column, or what a path finds in one of JSON, rather than something computed.
func (n *node) stored(f *query.Field) bool {
	c := n.column(f.Name)
	return c != nil && (len(f.Path) == 0 || c.BaseType == "json" || c.BaseType == "jsonb")
}

// compares reports whether a condition does no more than compare what is stored.
func (n *node) compares(c query.Condition) bool {
	switch c := c.(type) {
	case *query.Group:
		for _, one := range c.Conditions {
			if !n.compares(one) {
				return false
			}
		}

		return true
	case *query.Comparison:
		return c.Operator == "is" && n.tested(c) != nil || n.stored(&c.Field) && searches[c.Operator] == ""
	}

	return false
}
