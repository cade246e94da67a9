package plan

import (
	"slices"

	"github.com/socle-dev/socle/internal/rest/catalog"
	"github.com/socle-dev/socle/internal/rest/query"
)

// changedCTE is the name of the CTE that changes rows and returns them.
const changedCTE = "changed"

// updatedSetting is the transaction-local setting that counts the existing rows of an upsert.
const updatedSetting = "socle.updated"

// Insert plans an insert of the body's rows, or an upsert.
func Insert(c *catalog.Catalog, r *Request) (*Plan, error) {
	b, root, err := change(c, r)
	if err != nil {
		return nil, err
	}

	p, err := b.payload(root.rel)
	if err != nil {
		return nil, err
	}

	var target []string
	if r.Resolve != NoResolution {
		target = root.rel.PrimaryKey
		if r.Query.OnConflict != nil {
			target = r.Query.OnConflict
		}
	}

	merge := r.Resolve == MergeDuplicates && len(target) > 0
	b.begin(!merge)
	b.insert(root, p, nil)

	if len(target) > 0 {
		if !merge {
			p.columns = nil
		}
		b.onConflict(root, p, target)
	}

	changes, err := b.changes(root, " returning ", merge)
	if err == nil {
		changes.Resolved = len(target) > 0
	}

	return changes, err
}

// Put plans an insert or replacement of the single row that the query identifies by its key.
func Put(c *catalog.Catalog, r *Request) (*Plan, error) {
	b, root, err := change(c, r)
	if err != nil {
		return nil, err
	}

	key := root.rel.PrimaryKey
	filters, ok := keyFilters(r.Query, key)
	if !ok {
		return nil, &query.Error{Status: 405, Code: "PGRST105",
			Message: "Filters must include all and only primary key columns with 'eq' operators"}
	}

	p, err := b.payload(root.rel)
	if err != nil {
		return nil, err
	}

	for _, k := range key {
		if !slices.ContainsFunc(p.columns, func(c *catalog.Column) bool { return c.Name == k }) {
			return nil, &query.Error{Status: 400, Code: "PGRST115",
				Message: "Payload values do not match URL in primary key column(s)"}
		}
	}

	p.args = nil // the filters compare values of the body
	b.begin(false)
	b.insert(root, p, filters)
	b.onConflict(root, p, key)

	return b.changes(root, " returning ", true)
}

// keyFilters returns the filters by which a query identifies a row: each key column once, and
// nothing else.
func keyFilters(q *query.Query, key []string) ([]*query.Comparison, bool) {
	if len(key) == 0 || len(q.Filters) != len(key) {
		return nil, false
	}

	filters := make([]*query.Comparison, len(key))
	for i := range q.Filters {
		c, ok := q.Filters[i].Condition.(*query.Comparison)
		if !ok || len(q.Filters[i].Path) > 0 || c.Not || c.Operator != "eq" || c.Quantifier != "" ||
			len(c.Field.Path) > 0 {
			return nil, false
		}

		k := slices.Index(key, c.Field.Name)
		if k < 0 || filters[k] != nil {
			return nil, false
		}

		filters[k] = c
	}

	return filters, true
}

// Update plans an update of the rows that match the query's filters.
func Update(c *catalog.Catalog, r *Request) (*Plan, error) {
	b, root, err := change(c, r)
	if err != nil {
		return nil, err
	}

	p, err := b.payload(root.rel)
	if err != nil {
		return nil, err
	}

	if len(p.columns) == 0 || p.rows == 0 {
		b.begin(false)
		b.changeNoRows(root)

		return b.changes(root, "", false)
	}

	b.begin(true)
	b.text("update ")
	b.target(root)
	b.text(" set ")

	for i, c := range p.columns {
		b.comma(i)
		b.quote(c.Name)
		b.text(" = ")
		b.assigned(p, i)
	}

	if p.args == nil {
		b.text(" from ")
		b.record(p, true)
	}

	b.conditionsOf(root)
	return b.changes(root, " returning ", false)
}

// Delete plans a deletion of the rows that match the query's filters.
func Delete(c *catalog.Catalog, r *Request) (*Plan, error) {
	b, root, err := change(c, r)
	if err != nil {
		return nil, err
	}

	b.begin(true)
	b.text("delete from ")
	b.target(root)
	b.conditionsOf(root)

	return b.changes(root, " returning ", false)
}

// change returns the builder and root of a write.
func change(c *catalog.Catalog, r *Request) (*builder, *node, error) {
	rel := c.Relations[r.Target]
	if rel == nil {
		return nil, nil, NoRelation(c, r.Target)
	}

	b := newBuilder(c, r)

	root := &node{name: rel.Name, rel: rel, cte: changedCTE}
	if err := b.resolve(root, false); err != nil {
		return nil, nil, err
	}

	b.noUserCode = b.inertRequest(root)
	return b, root, nil
}

// begin writes the start of a change. If allowCountOnly is set and only the number of changed rows
// is needed, the statement has no outer SELECT: PostgreSQL takes half the time.
func (b *builder) begin(allowCountOnly bool) {
	if b.countOnly = allowCountOnly && b.noUserCode && b.r.Return == Minimal; !b.countOnly {
		b.text("with changed as (")
	}
}

func (b *builder) target(root *node) {
	b.name(root.name)
	b.text(" as ")
	b.quote(root.alias)
}

// conditionsOf writes the WHERE clause of an update or delete from the root's filters. They do not
// apply to the changed rows in the answer.
func (b *builder) conditionsOf(root *node) {
	first := true
	for i := range b.r.Query.Filters {
		f := &b.r.Query.Filters[i]
		if len(f.Path) > 0 {
			continue
		}

		if first {
			b.text(" where ")
		} else {
			b.text(" and ")
		}

		first = false
		b.condition(root, f.Condition)
	}
}

// insert writes an insert of the body's rows that match the filters.
func (b *builder) insert(root *node, p *payload, filters []*query.Comparison) {
	b.text("insert into ")
	b.target(root)

	if len(p.columns) > 0 {
		b.text(" (")

		for i, c := range p.columns {
			b.comma(i)
			b.quote(c.Name)
		}

		b.text(")")
	}

	if len(p.columns) == 0 && p.rows == 1 {
		b.text(" default values")
		return
	}

	if p.rows == 0 {
		b.text(" select where false")
		return
	}

	if p.args != nil {
		b.text(" values (")

		for i := range p.columns {
			b.comma(i)
			b.assigned(p, i)
		}

		b.text(")")
		return
	}

	b.text(" select ")

	for i := range p.columns {
		b.comma(i)
		b.assigned(p, i)
	}

	b.text(" from ")
	b.record(p, false)

	if len(filters) == 0 {
		return
	}

	b.text(" where ")

	for i, c := range filters {
		if i > 0 {
			b.text(" and ")
		}

		b.bodyValue(root.column(c.Field.Name))
		b.text(" = ")
		b.operand(root, c)
	}
}

// onConflict writes the ON CONFLICT clause: existing rows take the body's columns.
func (b *builder) onConflict(root *node, p *payload, target []string) {
	b.text(" on conflict (")
	b.list(target)
	b.text(") do ")

	if len(p.columns) == 0 {
		b.text("nothing")
		return
	}

	b.text("update set ")

	for i, c := range p.columns {
		b.comma(i)
		b.quote(c.Name)
		b.text(" = excluded.")
		b.quote(c.Name)
	}

	// A row's system columns would tell as well, but need the right to read all columns, and views
	// have none.
	b.text(" where pg_catalog.set_config('" + updatedSetting + "', (")
	b.updates()
	b.text(" + 1)::text, true) is not null")
}

func (b *builder) updates() {
	b.text("coalesce(nullif(pg_catalog.current_setting('" + updatedSetting + "', true), ''), '0')::bigint")
}

// changeNoRows writes a change of no rows.
func (b *builder) changeNoRows(root *node) {
	b.text("select ")
	b.returned(root)

	if b.r.Return != Minimal {
		b.text(" from ")
		b.target(root)
	}

	b.text(" where false")
}

// changes completes a statement that changes rows, with its RETURNING clause and its answer.
func (b *builder) changes(root *node, returning string, upsert bool) (*Plan, error) {
	if b.countOnly {
		return b.plan(nil)
	}

	if returning != "" {
		b.text(returning)
		b.returned(root)
	}

	b.text(")")

	var key []string
	if b.r.Return == HeadersOnly {
		key = b.key(root)
	}

	if b.r.Return == Representation {
		b.represent(root, upsert)
	} else {
		b.text(" select ")
		b.total(root, query.Limit{})
		b.text(", count(*), ")
		b.location(root, key)
		b.writeSettings(upsert)
		b.text(", null::text from changed")
	}

	p, err := b.plan(nil)
	if err != nil {
		return nil, err
	}

	p.Key = key
	return p, nil
}

// represent writes an answer that contains the changed rows.
func (b *builder) represent(root *node, upsert bool) {
	if b.r.Format == CSV {
		b.text(", page as materialized (")
		b.rows(root, query.Limit{})
		b.text(")")
	}

	affected := "count(*)"
	if root.grouped || slices.ContainsFunc(root.children, (*node).inner) {
		affected = "(select count(*) from changed)" // the answer shows only a page of them
	}

	b.text(" ")
	b.openSizeCheck()
	b.text("select ")

	if b.r.Count == Exact || b.r.Count == Estimated {
		b.text(affected)
	} else {
		b.text("null::bigint")
	}

	b.text(", " + affected + ", null::text")
	b.writeSettings(upsert)
	b.bodyOf(root, query.Limit{})
}

// writeSettings is settings for a write, with the inserted rows of an upsert.
func (b *builder) writeSettings(upsert bool) {
	if !upsert {
		b.settings()
		return
	}

	b.text(", pg_catalog.current_setting('response.headers', true), " +
		"pg_catalog.current_setting('response.status', true), count(*) - ")
	b.updates()
}

// returned writes the RETURNING clause, with only the columns that the answer needs: reading them
// takes a privilege.
func (b *builder) returned(root *node) {
	switch b.r.Return {
	case Minimal:
		b.text("1")
		return
	case HeadersOnly:
		b.columns(root, root.rel.PrimaryKey)
		return
	}

	var names []string
	for i := range root.outputs {
		o := &root.outputs[i]
		if o.child == nil && o.field.Name != "" {
			names = append(names, o.field.Name)
		}
	}

	for _, t := range root.order {
		if t.Relation == "" {
			names = append(names, t.Field.Name)
		}
	}

	whole := false
	for _, c := range root.children {
		whole = whole || c.link.Kind == catalog.Computed

		for _, p := range c.link.Pairs {
			names = append(names, p.From)
		}
	}

	if !whole {
		b.columns(root, names)
		return
	}

	// The function takes a row of the relation's type: exactly its columns, in their order.
	b.row(root.alias)

	for _, n := range names {
		if root.column(n) == nil {
			b.fail(&query.Error{Status: 400, Code: "PGRST127", Message: "Feature not implemented",
				Details: "Computed fields are not implemented beside computed relationships of changed rows."})
		}
	}
}

func (b *builder) columns(root *node, names []string) {
	if len(names) == 0 {
		b.text("1")
		return
	}

	count := 0
	for i, n := range names {
		if slices.Contains(names[:i], n) {
			continue
		}

		b.comma(count)
		count++
		b.column(root.alias, n)
		b.text(" as ")
		b.quote(n)
	}
}
