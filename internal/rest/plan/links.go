package plan

import (
	"cmp"
	"slices"
	"strings"

	"github.com/socle-dev/socle/internal/rest/catalog"
	"github.com/socle-dev/socle/internal/rest/query"
)

// link finds the link from a node to the relation that an item embeds.
func (b *builder) link(n *node, item *query.Item) (*catalog.Link, error) {
	var found []*catalog.Link
	computed := false
	for _, l := range b.c.Links[n.name] {
		if l.To.Schema != b.r.Target.Schema || !b.selects(l, item.Relation, item.Hint) {
			continue
		}

		if l.Kind == catalog.Computed && !computed {
			computed, found = true, nil
		}
		if computed == (l.Kind == catalog.Computed) {
			found = append(found, l)
		}
	}

	switch len(found) {
	case 0:
		return nil, b.noLink(n, item)
	case 1:
		return found[0], nil
	}

	return nil, manyLinks(n.name.Name, item.Relation, found)
}

// selects reports whether a name and a hint select a link. The name of a foreign key or of its
// column selects the referenced table, never a view of that table.
func (b *builder) selects(l *catalog.Link, name, hint string) bool {
	if l.Kind == catalog.Computed {
		return l.Function.Name.Name == name
	}
	if l.From == l.To {
		return selectsSelf(l, name, hint)
	}
	if hint != "" {
		return name == l.To.Name && hinted(l, hint)
	}
	if name == l.To.Name {
		return true
	}
	if to := b.c.Relations[l.To]; l.Kind == catalog.ManyToMany || to.Kind == 'v' || to.Kind == 'm' {
		return false
	}

	return name == l.Constraint || single(l) && name == l.Pairs[0].From
}

// selectsSelf is selects for a link from a relation to itself. The relation's name selects the
// referring rows, the foreign key column's name the referenced row.
func selectsSelf(l *catalog.Link, name, hint string) bool {
	if l.Kind == catalog.ManyToMany {
		return false
	}
	if hasNearKey(l) {
		return hint == "" && single(l) && name == l.Pairs[0].From
	}

	return name == l.To.Name && (hint == "" || single(l) && hint == l.Pairs[0].To || hint == l.Constraint)
}

func hinted(l *catalog.Link, hint string) bool {
	if l.Kind == catalog.ManyToMany {
		return hint == l.Through.Name
	}
	return hint == l.Constraint || single(l) && (hint == l.Pairs[0].From || hint == l.Pairs[0].To)
}

// hasNearKey reports whether the foreign key is on the link's near side.
func hasNearKey(l *catalog.Link) bool {
	return l.Kind == catalog.ManyToOne || l.Kind == catalog.OneToOne && l.Forward
}

func single(l *catalog.Link) bool { return len(l.Pairs) == 1 }

// manyLinks returns the error for an ambiguous link, with the candidates.
func manyLinks(from, to string, links []*catalog.Link) error {
	slices.SortStableFunc(links, func(a, b *catalog.Link) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), strings.Compare(constraint(a), constraint(b)))
	})

	details := make([]map[string]any, len(links))
	hints := make([]string, len(links))
	for i, l := range links {
		details[i] = map[string]any{
			"cardinality":  cardinality(l),
			"embedding":    l.From.Name + " with " + l.To.Name,
			"relationship": relationship(l),
		}

		hints[i] = "'" + l.To.Name + "!" + constraint(l) + "'"
	}

	return &query.Error{Status: 300, Code: "PGRST201",
		Message: "Could not embed because more than one relationship was found for '" + from + "' and '" + to + "'",
		Details: details,
		Hint: "Try changing '" + to + "' to one of the following: " + strings.Join(hints, ", ") +
			". Find the desired relationship in the 'details' key."}
}

func rank(l *catalog.Link) int {
	return slices.Index([]catalog.LinkKind{
		catalog.OneToMany, catalog.ManyToOne, catalog.OneToOne, catalog.ManyToMany,
	}, l.Kind)
}

func cardinality(l *catalog.Link) string {
	switch l.Kind {
	case catalog.ManyToOne:
		return "many-to-one"
	case catalog.OneToMany:
		return "one-to-many"
	case catalog.OneToOne:
		return "one-to-one"
	}

	return "many-to-many"
}

// constraint returns the hint that selects a link.
func constraint(l *catalog.Link) string {
	switch l.Kind {
	case catalog.ManyToMany:
		return l.Through.Name
	case catalog.Computed:
		return l.Function.Name.Name
	}

	return l.Constraint
}

// relationship describes a link.
func relationship(l *catalog.Link) string {
	near, far := sides(l.Pairs)
	switch l.Kind {
	case catalog.ManyToMany:
		through, _ := sides(l.ThroughPairs)
		return l.Through.Name + " using " + l.Constraint + far + " and " + l.ThroughConstraint + through
	case catalog.Computed:
		return l.Function.Name.Name
	}

	return l.Constraint + " using " + l.From.Name + near + " and " + l.To.Name + far
}

func sides(pairs []catalog.Pair) (from, to string) {
	near, far := make([]string, len(pairs)), make([]string, len(pairs))
	for i, p := range pairs {
		near[i], far[i] = p.From, p.To
	}

	return "(" + strings.Join(near, ", ") + ")", "(" + strings.Join(far, ", ") + ")"
}
