package plan

import (
	"slices"
	"strings"

	"github.com/socle-dev/socle/internal/rest/catalog"
	"github.com/socle-dev/socle/internal/rest/query"
)

// notEmbedded returns the error for a name that no embedded relation of a node has, with a hint if
// an alias hides the name.
func notEmbedded(n *node, name string) error {
	for _, c := range n.children {
		if c.item.Relation == name {
			return &query.Error{Status: 400,
				Code: "PGRST108", Message: "'" + name + "' is not an embedded resource in this request",
				Details: "Target names are not allowed in filters if they have an alias",
				Hint:    "Change '" + name + "' to '" + c.key() + "' in filters, orders or limits."}
		}
	}

	return &query.Error{Status: 400,
		Code: "PGRST108", Message: "'" + name + "' is not an embedded resource in this request",
		Hint: "Verify that '" + name + "' is included in the 'select' query parameter."}
}

func notToOne(n *node, relation string) error {
	return &query.Error{Status: 400, Code: "PGRST118", Message: "A related order on '" + relation + "' is not possible",
		Details: "'" + n.name.Name + "' and '" + relation + "' do not form a many-to-one or one-to-one relationship"}
}

func noCast(typ string) error {
	return &query.Error{Status: 403, Code: "42501", Message: "permission denied for type " + typ,
		Hint: "Types that name objects of the database by their numbers can't be asked for. Show a name by a " +
			"computed field or a view."}
}

func noAggregates() error {
	return &query.Error{Status: 400, Code: "PGRST123", Message: "Use of aggregate functions is not allowed"}
}

func noSpreadAggregates() error {
	return &query.Error{Status: 400, Code: "PGRST127", Message: "Feature not implemented",
		Details: "Aggregates are not implemented for one-to-many or many-to-many spreads."}
}

// NoColumn returns the error for a payload column that the relation does not have.
func NoColumn(rel *catalog.Relation, column string) error {
	return &query.Error{Status: 400, Code: "PGRST204",
		Message: "Could not find the '" + excerpt(column) + "' column of '" + rel.Name.Name + "' in the schema cache"}
}

// excerpt returns a name shortened for a message. No valid PostgreSQL name is shortened.
func excerpt(name string) string {
	const maxBytes = 256
	if len(name) <= maxBytes {
		return name
	}

	return strings.ToValidUTF8(name[:maxBytes], "") + "…"
}

// NoRelation returns the error for an unknown relation. Its hint suggests a similar name, unless
// the schema is too large to search.
func NoRelation(c *catalog.Catalog, name catalog.Name) error {
	const maxRelations = 500
	var names []string
	for n := range c.Relations {
		if n.Schema == name.Schema {
			names = append(names, n.Name)
		}
	}

	var hint any
	if len(names) < maxRelations {
		if like := mostSimilar(names, name.Name, minLikeness); like != "" {
			hint = "Perhaps you meant the table '" + name.Schema + "." + like + "'"
		}
	}

	return &query.Error{Status: 404, Code: "PGRST205", Hint: hint,
		Message: "Could not find the table '" + name.Schema + "." + name.Name + "' in the schema cache"}
}

// noLink returns the error for a missing link from a node to an item's relation. Its hint suggests
// a linked relation; if the node has no links at all, a similar relation that has some.
func (b *builder) noLink(n *node, item *query.Item) error {
	schema := b.r.Target.Schema
	wrong, names := item.Relation, b.linkedTo(n.name)
	if len(names) == 0 {
		wrong = n.name.Name

		for from := range b.c.Links {
			if from.Schema == schema && len(b.linkedTo(from)) > 0 {
				names = append(names, from.Name)
			}
		}
	}

	var hint any
	if like := mostSimilar(names, wrong, minPublicLikeness); like != "" && !strings.EqualFold(like, wrong) {
		hint = "Perhaps you meant '" + like + "' instead of '" + wrong + "'."
	}

	using := ""
	if item.Hint != "" {
		using = " using the hint '" + item.Hint + "'"
	}

	between := "between '" + n.name.Name + "' and '" + item.Relation + "'"
	return &query.Error{Status: 400, Code: "PGRST200",
		Message: "Could not find a relationship " + between + " in the schema cache",
		Details: "Searched for a foreign key relationship " + between + using + " in the schema '" + schema +
			"', but no matches were found.",
		Hint: hint}
}

// linkedTo returns the names of the relations in the request's schema that a relation is linked to.
func (b *builder) linkedTo(from catalog.Name) []string {
	var names []string
	for _, l := range b.c.Links[from] {
		if l.To.Schema == b.r.Target.Schema && !slices.Contains(names, l.To.Name) {
			names = append(names, l.To.Name)
		}
	}

	return names
}
