package plan

import "slices"

// aggregate writes an output, wrapped in its aggregate if it has one.
func (b *builder) aggregate(n *node, o *output) {
	if o.aggregate == "" {
		b.value(n, o)
		return
	}

	if o.resultCast != "" {
		b.text("cast(")
	}

	switch o.aggregate {
	case "avg", "count", "max", "min", "sum":
		b.text(o.aggregate)
	default:
		b.fail(noAggregates())
	}

	b.text("(")

	if o.child == nil && o.field.Name == "" {
		b.text("*")
	} else {
		b.value(n, o)
	}

	b.text(")")

	if o.resultCast != "" {
		b.text(" as ")
		b.cast(o.resultCast)
		b.text(")")
	}
}

// group writes the GROUP BY clause of a node: all outputs that are not aggregates. A spread node
// leaves grouping to its parent.
func (b *builder) group(n *node) {
	if !n.grouped || n.spread() {
		return
	}

	first := true
	for i := range n.outputs {
		o := &n.outputs[i]
		if o.aggregate != "" {
			continue
		}

		if first {
			b.text(" group by ")
		} else {
			b.text(", ")
		}

		first = false

		switch {
		case o.star:
			b.row(n.alias)
		case o.child != nil && o.sub < 0 && o.child.toOne():
			if o.child.nests() {
				b.object(o.child)
				b.text("::text")
			} else {
				b.row(o.child.alias)
			}
		case o.json(): // json has no equality operator, its text does
			b.part(o)
			b.text("::text")
		case o.represented() && o.cast == "":
			// the shown representation has no equality operator, the stored value does
			b.field(n, &o.field)
		default:
			b.value(n, o)
		}
	}
}

// json reports whether an output is JSON built from embedded rows.
func (o *output) json() bool {
	return o.child != nil && (o.sub < 0 || !o.child.toOne() || o.child.outputs[o.sub].json())
}

// part writes the column of an embedded relation's join that feeds an output.
func (b *builder) part(o *output) {
	b.quote(o.child.alias)
	b.text(".")

	if o.sub < 0 {
		b.text("j")
		return
	}

	b.number(o.sub)
}

// nests reports whether any output of a node is JSON built from embedded rows.
func (n *node) nests() bool {
	return slices.ContainsFunc(n.outputs, func(o output) bool { return o.json() })
}
