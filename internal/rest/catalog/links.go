package catalog

import (
	"cmp"
	"slices"
)

// reference is a many-to-one link with its foreign key.
type reference struct {
	*Link
	key uint32
}

// link adds the links for all foreign keys, in both directions and between all faces of their
// tables, and the links through join tables.
func (c *Catalog) link(list []constraint, faces map[uint32][]*face) {
	unique := unique(list)
	references := map[Name][]reference{}
	for _, k := range list {
		if k.Kind != 'f' {
			continue
		}

		kind, back := ManyToOne, OneToMany
		columns := slices.Sorted(slices.Values(k.Columns))
		if slices.ContainsFunc(unique[k.RelationID], func(set []int16) bool { return slices.Equal(set, columns) }) {
			kind, back = OneToOne, OneToOne
		}

		for _, near := range faces[k.RelationID] {
			nearChoices := near.choices(k.Columns)
			for _, far := range faces[k.TargetID] {
				farChoices := far.choices(k.TargetColumns)
				for _, from := range nearChoices {
					for _, to := range farChoices {
						l := &Link{Kind: kind, From: near.relation.Name, To: far.relation.Name, Constraint: k.Name,
							Pairs: pair(from, to), Forward: kind == OneToOne}
						c.addLink(l)
						c.addLink(&Link{Kind: back, From: l.To, To: l.From, Constraint: k.Name, Pairs: pair(to, from)})

						if kind == ManyToOne {
							references[l.From] = append(references[l.From], reference{l, k.ID})
						}
					}
				}
			}
		}
	}

	for join, links := range references {
		c.linkThrough(c.Relations[join], links)
	}
}

// linkThrough adds a join table's many-to-many links: one for each pair of foreign keys whose
// columns are in its primary key.
func (c *Catalog) linkThrough(join *Relation, references []reference) {
	inKey := func(p Pair) bool { return slices.Contains(join.PrimaryKey, p.From) }
	references = slices.DeleteFunc(references, func(r reference) bool {
		return slices.ContainsFunc(r.Pairs, func(p Pair) bool { return !inKey(p) })
	})
	for _, a := range references {
		for _, b := range references {
			if a.key == b.key {
				continue
			}

			c.addLink(&Link{Kind: ManyToMany, From: a.To, To: b.To, Constraint: a.Constraint, Pairs: reversed(a.Pairs),
				Through: join.Name, ThroughConstraint: b.Constraint, ThroughPairs: b.Pairs})
		}
	}
}

func (c *Catalog) addLink(l *Link) { c.Links[l.From] = append(c.Links[l.From], l) }

// computed is a function that takes a row and returns rows.
type computed struct {
	function *Function
	from, to Name
	single   bool
}

// linkComputed adds links by functions. They replace links by foreign keys with the same name.
func (c *Catalog) linkComputed(list []computed) {
	for _, f := range list {
		c.Links[f.from] = slices.DeleteFunc(c.Links[f.from], func(l *Link) bool {
			return l.Kind != Computed && l.To == f.function.Name
		})
		c.addLink(&Link{Kind: Computed, From: f.from, To: f.to, Function: f.function, Single: f.single})
	}
}

// sortLinks makes the order of links independent of the constraints' creation order.
func (c *Catalog) sortLinks() {
	for _, links := range c.Links {
		slices.SortStableFunc(links, func(a, b *Link) int {
			return cmp.Or(a.To.Compare(b.To), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Constraint, b.Constraint),
				a.Through.Compare(b.Through), cmp.Compare(a.ThroughConstraint, b.ThroughConstraint))
		})
	}
}

// pair pairs columns with the columns that they must equal.
func pair(from, to []string) []Pair {
	pairs := make([]Pair, len(from))
	for i := range from {
		pairs[i] = Pair{from[i], to[i]}
	}

	return pairs
}

func reversed(pairs []Pair) []Pair {
	back := make([]Pair, len(pairs))
	for i, p := range pairs {
		back[i] = Pair{p.To, p.From}
	}

	return back
}
