package plan

import (
	"github.com/socle-dev/socle/internal/rest/catalog"
	"github.com/socle-dev/socle/internal/rest/query"
)

// inertRequest reports whether the statement for a tree of relations runs no user code. The session
// then needs no reset, no code can have set response headers or status, and a change needs no
// transaction of its own. It recognizes only the most frequent requests, and returns false for all
// others.
func (b *builder) inertRequest(root *node) bool {
	switch b.r.Format {
	case JSON, Object, StrippedJSON, StrippedObject:
	default:
		return false
	}

	// Defaults are evaluated from their text, where user functions can shadow PostgreSQL's own.
	completes := b.r.Missing && b.r.Query.Columns != nil
	if b.r.Before || completes || root.cte == changedCTE && (root.rel == nil || !root.rel.InertWrite) {
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

	if n.cte == changedCTE { // the change has applied the filters
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

// stored reports whether a field is a column or a path in a JSON column, not computed.
func (n *node) stored(f *query.Field) bool {
	c := n.column(f.Name)
	return c != nil && (len(f.Path) == 0 || c.BaseType == "json" || c.BaseType == "jsonb")
}

// compares reports whether a condition only compares stored fields.
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
		return c.Operator == "is" && n.existsTarget(c) != nil || n.stored(&c.Field) && searches[c.Operator] == ""
	}

	return false
}
