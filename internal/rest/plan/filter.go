package plan

import (
	"strconv"
	"strings"

	"github.com/socle-dev/socle/internal/rest/catalog"
	"github.com/socle-dev/socle/internal/rest/query"
)

// field writes a column, or the value at a JSON path in it. The keys of a path are part of the SQL
// text, so that PostgreSQL can use an index on the expression and group by it.
func (b *builder) field(n *node, f *query.Field) {
	if len(f.Path) == 0 {
		b.member(n, f.Name)
		return
	}

	b.text("(")

	if c := n.column(f.Name); c != nil && (c.BaseType == "json" || c.BaseType == "jsonb") {
		b.column(n.alias, f.Name)
	} else {
		b.text("pg_catalog.to_jsonb(")
		b.member(n, f.Name)
		b.text(")")
	}

	for _, s := range f.Path {
		if s.Text {
			b.text("->>")
		} else {
			b.text("->")
		}

		if s.IsKey {
			b.literal(s.Key)
		} else {
			b.text("(")
			b.sql = strconv.AppendInt(b.sql, int64(s.Index), 10)
			b.text(")")
		}
	}

	b.text(")")
}

// member writes a column or computed column of a node's rows. A computed column takes a row of the
// relation's own type, which the rows of a function's CTE no longer are.
func (b *builder) member(n *node, name string) {
	if n.cte != calledCTE || n.rel == nil || n.rel.ByName[name] != nil {
		b.column(n.alias, name)
		return
	}

	b.text("(cast(row(")
	b.row(n.alias)
	b.text(") as ")
	b.name(n.name)
	b.text(")).")
	b.quote(name)
}

// filter writes the WHERE clause of a node's rows. If joins is set, the statement also joins the
// embedded relations that it can; otherwise all inner ones become EXISTS conditions.
func (b *builder) filter(n *node, joins bool) {
	start := len(b.sql)
	b.text(" where ")
	first := len(b.sql)

	and := func() {
		if len(b.sql) > first {
			b.text(" and ")
		}
	}

	b.linked(n)

	for _, c := range n.where {
		and()
		b.condition(n, c)
	}

	for _, c := range n.children {
		if c.inner() && !(joins && c.joined()) {
			and()
			b.exists(c)
		}
	}

	if len(b.sql) == first {
		b.sql = b.sql[:start]
	}
}

// exists writes the condition that an embedded relation has rows for its parent's row.
func (b *builder) exists(c *node) {
	b.text("exists(select 1 from ")
	b.source(c)
	b.filter(c, false)
	b.limit(query.Limit{Limit: c.limit, Offset: c.offset})
	b.text(")")
}

func (b *builder) condition(n *node, c query.Condition) {
	switch c := c.(type) {
	case *query.Group:
		b.conditions(n, c)
	case *query.Comparison:
		if c.Not {
			b.text("not (")
			b.comparison(n, c)
			b.text(")")

			return
		}

		b.comparison(n, c)
	}
}

func (b *builder) conditions(n *node, g *query.Group) {
	if g.Not {
		b.text("not ")
	}

	b.text("(")

	for i, c := range g.Conditions {
		switch {
		case i == 0:
		case g.Or:
			b.text(" or ")
		default:
			b.text(" and ")
		}

		b.condition(n, c)
	}

	b.text(")")
}

// operators are the infix SQL operators.
var operators = map[string]string{
	"eq": " = ", "neq": " <> ", "gt": " > ", "gte": " >= ", "lt": " < ", "lte": " <= ", "like": " like ",
	"ilike": " ilike ", "match": " ~ ", "imatch": " ~* ", "in": " = ", "isdistinct": " is distinct from ", "cs": " @> ",
	"cd": " <@ ", "ov": " && ", "sl": " << ", "sr": " >> ", "nxr": " &< ", "nxl": " &> ", "adj": " -|- ",
}

var states = map[string]string{
	"null": " is null", "not_null": " is not null", "true": " is true", "false": " is false", "unknown": " is unknown",
}

var searches = map[string]string{
	"fts": "to_tsquery(", "plfts": "plainto_tsquery(", "phfts": "phraseto_tsquery(", "wfts": "websearch_to_tsquery(",
}

func (b *builder) comparison(n *node, c *query.Comparison) {
	switch c.Operator {
	case "is":
		if child := n.existsTarget(c); child != nil {
			b.text("not ")
			b.exists(child)

			return
		}

		b.field(n, &c.Field)

		if states[c.Value] == "" {
			b.fail(noOperator(c))
		}

		b.text(states[c.Value])
	case "fts", "plfts", "phfts", "wfts":
		b.search(n, c)
	default:
		op := operators[c.Operator]
		if op == "" {
			b.fail(noOperator(c))
		}

		b.field(n, &c.Field)
		b.text(op)
		b.operand(n, c)
	}
}

// noOperator returns the error for an operator that the grammar does not have.
func noOperator(c *query.Comparison) error {
	return &query.Error{
		Status:  400,
		Code:    "PGRST100",
		Message: `"failed to parse filter (` + c.Operator + "." + c.Value + `)" (line 1, column 1)`,
	}
}

// existsTarget returns the embedded relation whose existence a comparison tests, or nil if the
// comparison is about a column.
func (n *node) existsTarget(c *query.Comparison) *node {
	if c.Value != "null" || len(c.Field.Path) > 0 || n.cte == changedCTE && n.link == nil {
		return nil
	}
	return n.child(c.Field.Name)
}

// operand writes the value that a field is compared with. PostgreSQL infers its type from the
// field, so that it uses indexes and rejects invalid values. Only of a composite it would infer any
// record, and of an object identifier its number.
func (b *builder) operand(n *node, c *query.Comparison) {
	from, mapped := n.fromText(&c.Field)
	cast := n.operandType(&c.Field)
	switch c.Operator {
	case "eq", "neq", "gt", "gte", "lt", "lte", "isdistinct", "in":
	default:
		mapped, cast = false, ""
	}

	quantifier := c.Quantifier
	if c.Operator == "in" {
		quantifier = "any"
	}

	if quantifier != "" {
		b.text(quantifier)
		b.text("(")
		defer b.text(")")
	}

	switch {
	case !mapped:
		b.argOf(c)
		b.text(cast)
		if cast != "" && quantifier != "" {
			b.text("[]")
		}
	case quantifier != "":
		b.mappedArray(from, c)
	default:
		b.name(from)
		b.text("(")
		b.argOf(c)
		b.text(")")
	}
}

// argOf writes the placeholder of a comparison's value.
func (b *builder) argOf(c *query.Comparison) {
	b.arg(valueOf(c))
	b.origins[len(b.origins)-1].comparison = c
}

// valueOf returns a comparison's value as PostgreSQL parses it. A list is one argument.
func valueOf(c *query.Comparison) string {
	value := c.Value
	if c.Operator == "in" || c.Quantifier != "" && c.List != nil {
		value = array(c.List)
	}
	if c.Operator == "like" || c.Operator == "ilike" {
		value = strings.ReplaceAll(value, "*", "%")
	}

	return value
}

// fromText returns the function that reads a field's domain from text.
func (n *node) fromText(f *query.Field) (catalog.Name, bool) {
	c := n.column(f.Name)
	if c == nil || len(f.Path) > 0 || c.FromText.Name == "" {
		return catalog.Name{}, false
	}

	return c.FromText, true
}

// operandType returns the cast of a value that a field is compared with, if it needs one.
func (n *node) operandType(f *query.Field) string {
	c := n.column(f.Name)
	if c == nil || len(f.Path) > 0 || !(c.Composite || strings.HasPrefix(c.BaseType, "reg")) {
		return ""
	}

	return "::" + c.BaseType
}

func (b *builder) mappedArray(from catalog.Name, c *query.Comparison) {
	b.text("array(select ")
	b.name(from)
	b.text("(v) from unnest(")
	b.argOf(c)
	b.text("::text[]) as v)")
}

// search writes a full-text search.
func (b *builder) search(n *node, c *query.Comparison) {
	if col := n.column(c.Field.Name); len(c.Field.Path) > 0 || col != nil && col.BaseType != "tsvector" {
		b.text("to_tsvector(")
		b.config(c)
		b.field(n, &c.Field)
		b.text(")")
	} else {
		b.field(n, &c.Field)
	}

	b.text(" @@ ")

	if longSearch(c) {
		b.text("(select ")
		defer b.text(")")
	}

	b.text(searches[c.Operator])
	b.config(c)
	b.argOf(c)
	b.text(")")
}

// longSearch reports whether a full-text search has so many terms that PostgreSQL should parse them
// once, not once per row. For a short search, the planner needs to see the terms.
func longSearch(c *query.Comparison) bool { return searches[c.Operator] != "" && len(c.Value) > 1<<10 }

// config writes the text search configuration, as text: an index on the expression has it so.
func (b *builder) config(c *query.Comparison) {
	if c.Config != "" {
		b.literal(c.Config)
		b.text("::regconfig, ")
	}
}
