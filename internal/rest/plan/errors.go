package plan

import (
	"maps"
	"slices"
	"strings"

	"socle/internal/rest/catalog"
	"socle/internal/rest/query"
)

func notEmbedded(name string) error {
	return &query.Error{Status: 400, Code: "PGRST108", Message: "'" + name + "' is not an embedded resource in this request",
		Hint: "Verify that '" + name + "' is included in the 'select' query parameter."}
}

func notToOne(n *node, relation string) error {
	return &query.Error{Status: 400, Code: "PGRST118", Message: "A related order on '" + relation + "' is not possible",
		Details: "'" + n.name.Name + "' and '" + relation + "' do not form a many-to-one or one-to-one relationship"}
}

func noAggregates() error {
	return &query.Error{Status: 400, Code: "PGRST123", Message: "Use of aggregate functions is not allowed"}
}

func noSpreadAggregates() error {
	return &query.Error{Status: 400, Code: "PGRST127", Message: "Feature not implemented",
		Details: "Aggregates are not implemented for one-to-many or many-to-many spreads."}
}

func noColumn(rel *catalog.Relation, column string) error {
	return &query.Error{Status: 400, Code: "PGRST204",
		Message: "Could not find the '" + column + "' column of '" + rel.Name.Name + "' in the schema cache"}
}

// noRelation is the failure to find a relation. Its hint names one that is spelled much like it, if the schema
// isn't so large that looking for it would cost.
func noRelation(c *catalog.Catalog, name catalog.Name) error {
	const most, alike = 500, 0.75
	var hint any
	if len(c.Relations) < most {
		var names []string
		for n := range c.Relations {
			if n.Schema == name.Schema {
				names = append(names, n.Name)
			}
		}
		if like := likeliest(names, name.Name, alike); like != "" {
			hint = "Perhaps you meant the table '" + name.Schema + "." + like + "'"
		}
	}
	return &query.Error{Status: 404, Code: "PGRST205", Hint: hint,
		Message: "Could not find the table '" + name.Schema + "." + name.Name + "' in the schema cache"}
}

// noLink is the failure to find a way from a node to the relation of an item.
func (b *builder) noLink(n *node, item *query.Item) error {
	const alike = 0.33
	schema := b.r.Target.Schema
	var hint any
	if _, known := b.c.Relations[catalog.Name{Schema: schema, Name: item.Relation}]; !known {
		names := map[string]bool{}
		for _, l := range b.c.Links[n.name] {
			if l.To.Schema == schema {
				names[l.To.Name] = true
			}
		}
		if like := likeliest(slices.Collect(maps.Keys(names)), item.Relation, alike); like != "" {
			hint = "Perhaps you meant '" + like + "' instead of '" + item.Relation + "'."
		}
	}
	using := ""
	if item.Hint != "" {
		using = " using the hint '" + item.Hint + "'"
	}
	between := "between '" + n.name.Name + "' and '" + item.Relation + "'"
	return &query.Error{Status: 400, Code: "PGRST200",
		Message: "Could not find a relationship " + between + " in the schema cache",
		Details: "Searched for a foreign key relationship " + between + using + " in the schema '" + schema + "', but no matches were found.",
		Hint:    hint}
}

// likeliest returns the name that is most like one that isn't there, or "" if none is alike enough.
func likeliest(names []string, wrong string, alike float64) string {
	const longest = 256 // of what a client may have us compare
	if len(wrong) > longest {
		return ""
	}
	slices.Sort(names)
	best, score := "", alike
	for _, n := range names {
		if s := likeness(strings.ToLower(n), strings.ToLower(wrong)); s > score || s == score && best == "" {
			best, score = n, s
		}
	}
	return best
}

// likeness is 1 of equal texts, 0 of those with nothing in common: the share of bytes that need no edit.
func likeness(a, b string) float64 {
	most := max(len(a), len(b))
	if most == 0 {
		return 1
	}
	edits := make([]int, len(b)+1)
	for j := range edits {
		edits[j] = j
	}
	for i := range len(a) {
		corner := edits[0]
		edits[0] = i + 1
		for j := range len(b) {
			change := corner
			if a[i] != b[j] {
				change++
			}
			corner = edits[j+1]
			edits[j+1] = min(change, corner+1, edits[j]+1)
		}
	}
	return 1 - float64(edits[len(b)])/float64(most)
}
