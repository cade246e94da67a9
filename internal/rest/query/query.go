// Package query is the rows API's grammar. It parses a request's query string, and the headers
// beside it, into syntax trees without reference to existing tables. It knows neither catalog nor
// SQL.
package query

// Query is a parsed query string. Paths name embedded relations from the outside in, by the names
// or aliases in Select. The empty path is the relation that the URL names.
type Query struct {
	Select     []Item   // nil: all columns
	Filters    []Filter // conjunction; filters on one path in the given order
	Order      []Order  // at most one per path
	Limits     []Limit  // at most one per path
	Columns    []string // columns=, nil if absent
	OnConflict []string // on_conflict=, nil if absent
	// parameters without reserved name or filter syntax: arguments for a function called by GET
	Params []Param
}

// Item is an item of Select.
type Item struct {
	Kind  Kind
	Field Field  // Column's field; for an aggregate the column, or zero for count()
	Alias string // "" if none
	Cast  string // "" if none; applied to the column, before an aggregate
	// Aggregate is avg, count, max, min or sum, or "" if none.
	Aggregate     string
	AggregateCast string

	// Relation and the following fields are for Embed and Spread only.
	Relation string
	Hint     string // name after !, "" if none
	Join     Join
	Items    []Item // nil and not Empty: all columns
	Empty    bool   // relation(): selects nothing, but the relation filters
}

// Kind classifies items.
type Kind uint8

// Kinds of items.
const (
	Column Kind = iota
	Star        // all columns
	Embed       // relation(…)
	Spread      // ...relation(…)
)

// Join is how an embedding handles rows without a match.
type Join uint8

// Kinds of joins.
const (
	DefaultJoin Join = iota // rows are kept, unless the embedded relation is filtered by null
	Inner
	Left
)

// Field is a column, or a JSON path in it.
type Field struct {
	Name string
	Path []Step
}

// Step is a step in a JSON path.
type Step struct {
	Key   string
	Index int
	IsKey bool // Key, else Index, which counts from the end if negative
	Text  bool // ->> instead of ->
}

// Filter is a condition on the relation at a path.
type Filter struct {
	Path      []string
	Condition Condition
}

// Condition is a *Group or a *Comparison.
type Condition interface{ condition() }

// Group is and(…) or or(…).
type Group struct {
	Not        bool
	Or         bool // or instead of and
	Conditions []Condition
}

// Comparison is field.operator.value.
type Comparison struct {
	Not   bool
	Field Field
	// eq, gt, gte, lt, lte, neq, like, ilike, match, imatch, in, is, isdistinct, fts, plfts, phfts,
	// wfts, cs, cd, ov, sl, sr, nxr, nxl, adj
	Operator   string
	Quantifier string   // any, all, or ""
	Config     string   // full-text search configuration, or ""
	Value      string   // as given, unquoted; for is: null, not_null, true, false, unknown
	List       []string // values for in; with a quantifier, Value is the array literal
}

func (*Group) condition()      {}
func (*Comparison) condition() {}

// Order orders the relation at a path.
type Order struct {
	Path  []string
	Terms []Term
}

// Term is an order's term.
type Term struct {
	Relation   string // relation in relation(field), else ""
	Field      Field
	Descending bool
	Nulls      string // first, last, or "" for PostgreSQL's default
}

// Limit is a page from the relation at a path.
type Limit struct {
	Path   []string
	Limit  *int64 // nil if none; non-negative for the empty path
	Offset int64  // non-negative for the empty path
}

// Param is a query string parameter.
type Param struct{ Name, Value string }
