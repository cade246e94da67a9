// Package query is the grammar of the rows API: it reads what a client asks of rows, from a URL's query string and
// the headers beside it, into values that say nothing of tables that exist. It knows no catalogue and no SQL.
package query

// Query is what a query string asks. Paths name embedded relations from the outside in, by the names or aliases that
// Select gives them; the empty path is the relation that the URL names.
type Query struct {
	Select     []Item   // nil: every column
	Filters    []Filter // all must hold; those of one path in the order given
	Order      []Order  // at most one for each path
	Limits     []Limit  // at most one for each path
	Columns    []string // columns=, nil if absent
	OnConflict []string // on_conflict=, nil if absent
	// what is no reserved word and no filter by its form alone: arguments of a function called by GET
	Params []Param
}

// Item is a part of Select.
type Item struct {
	Kind  Kind
	Field Field  // Column; of an aggregate the column, or no name for count()
	Alias string // "" if none
	Cast  string // "" if none; on the column, before an aggregate
	// Aggregate is avg, count, max, min or sum, or "".
	Aggregate     string
	AggregateCast string

	// Embed and Spread only.
	Relation string
	Hint     string // the name behind !, "" if none
	Join     Join
	Items    []Item // nil and not Empty: every column
	Empty    bool   // relation(): nothing is selected, but the relation filters
}

// Kind tells items apart.
type Kind uint8

// Kinds of items.
const (
	Column Kind = iota
	Star        // every column
	Embed       // relation(…)
	Spread      // ...relation(…)
)

// Join says what becomes of rows without a match in an embedded relation.
type Join uint8

// Kinds of joins.
const (
	DefaultJoin Join = iota // kept, unless the embedded relation is filtered by null
	Inner
	Left
)

// Field is a column, or what a JSON path finds in it.
type Field struct {
	Name string
	Path []Step
}

// Step is a step of a JSON path.
type Step struct {
	Key   string
	Index int
	IsKey bool // else Index counts, from the end if negative
	Text  bool // ->>, else ->
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
	Or         bool // else and
	Conditions []Condition
}

// Comparison is field.operator.value.
type Comparison struct {
	Not   bool
	Field Field
	// eq, gt, gte, lt, lte, neq, like, ilike, match, imatch, in, is, isdistinct, fts, plfts, phfts, wfts, cs, cd, ov, sl, sr, nxr, nxl, adj
	Operator   string
	Quantifier string   // any, all, or ""
	Config     string   // of full-text search, or ""
	Value      string   // as given, without quotes that the grammar took off; is: null, not_null, true, false, unknown
	List       []string // of in; of a quantifier Value is the array literal
}

func (*Group) condition()      {}
func (*Comparison) condition() {}

// Order is the order of the relation at a path.
type Order struct {
	Path  []string
	Terms []Term
}

// Term is a part of an order.
type Term struct {
	Relation   string // of relation(field), else ""
	Field      Field
	Descending bool
	Nulls      string // first, last, or "" for PostgreSQL's own
}

// Limit is how much is wanted of the relation at a path.
type Limit struct {
	Path   []string
	Limit  *int64 // nil if there is none; not below zero for the empty path
	Offset int64  // not below zero for the empty path
}

// Param is a name and a value of the query string.
type Param struct{ Name, Value string }
