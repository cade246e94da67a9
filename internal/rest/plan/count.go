package plan

import "github.com/socle-dev/socle/internal/rest/query"

// total writes the total row count, if the statement must return it. A subquery counts the rows
// outside the page only if the page does not imply the count: PostgreSQL evaluates a subquery in a
// CASE branch on demand.
func (b *builder) total(root *node, page query.Limit) {
	if b.r.Count != Exact && b.r.Count != Estimated {
		b.text("null::bigint")
		return
	}

	if page.Limit == nil && page.Offset == 0 {
		b.text("count(*)")
		return
	}

	b.text("case when ")

	if page.Limit != nil {
		b.text("count(*) < ")
		b.intArg(*page.Limit)
		b.text("::bigint")
	}

	if page.Offset > 0 {
		if page.Limit != nil {
			b.text(" and ")
		}
		b.text("count(*) > 0")
	}

	b.text(" then count(*) + ")
	b.intArg(page.Offset)
	b.text("::bigint else (select count(*) from (")
	b.matching(root)

	if m := b.r.MaxRows; m != nil && b.r.Count == Estimated && root.cte == "" {
		b.limit(query.Limit{Limit: estimateLimit(*m)})
	}

	b.text(") as ")
	b.quote(row)
	b.text(") end")
}

// estimateLimit returns the row limit of the count behind an estimate.
func estimateLimit(threshold int64) *int64 {
	threshold++
	return &threshold
}

// matching writes a SELECT of all rows of the root, without outputs and without a page.
func (b *builder) matching(root *node) {
	if root.grouped {
		b.allRows(root)
		return
	}

	b.text("select 1 from ")
	b.source(root)
	b.filter(root, false)
}
