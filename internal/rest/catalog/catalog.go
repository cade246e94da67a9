// Package catalog is the rows API's view of a database: its tables and views with their columns,
// the links between them, and its functions. A Catalog is read once and immutable; a newer one
// replaces it.
package catalog

import "cmp"

// Name is the schema-qualified name of a relation, function or type.
type Name struct{ Schema, Name string }

// Compare orders names by schema, then by name.
func (n Name) Compare(other Name) int {
	return cmp.Or(cmp.Compare(n.Schema, other.Schema), cmp.Compare(n.Name, other.Name))
}

// Catalog is the exposed part of a database.
type Catalog struct {
	Schemas   []string             // exposed, the default one first
	Relations map[Name]*Relation   // exposed relations
	Comments  map[string]string    // by schema, if it has one
	Links     map[Name][]*Link     // by their From relation; both ends and join tables are exposed
	Functions map[Name][]*Function // overloads by name; only those that a request can call
	Handlers  []Handler            // custom media types, in schema order
	GeoJSON   Name                 // PostGIS function that converts a row to a feature; zero if absent
}

// Relation is a table, view, materialized view, foreign or partitioned table.
type Relation struct {
	Name
	Description string
	Kind        byte // pg_class.relkind
	Columns     []*Column
	ByName      map[string]*Column
	// PrimaryKey holds the key columns. A view has the columns of every base table key that it
	// shows whole.
	PrimaryKey                       []string
	Insertable, Updatable, Deletable bool
	// Constrained reports whether constraints hold for all rows. They do not for a view, which can
	// repeat a row, nor for a table with inheritance children.
	Constrained bool
	// ReadRunsUserCode reports whether a plain read runs user code that probably changes the
	// session: volatile functions in policies, views and rows. Code that those call is not
	// examined.
	ReadRunsUserCode bool
	// InertRead and InertWrite report whether a plain read or write runs only PostgreSQL's own
	// functions, none of which changes the session. They are false in case of doubt.
	InertRead, InertWrite bool
}

// Column is a relation's column.
type Column struct {
	Name        string
	Description string
	Type        string // SQL text, as printed by format_type, schema-qualified where needed
	BaseType    string // base type of a domain, without length; otherwise Type
	NotNull     bool
	HasDefault  bool // a default, identity or generated expression
	// SQL text; "" for a generated expression, which has no meaning outside its row
	Default   string
	Generated bool // always generated, as an identity or by an expression: not writable
	MaxLength int  // 0: none
	Enum      []string
	Composite bool // or a domain over a composite type
	// ToJSON, FromJSON and FromText are a domain's cast functions: its representation, and its
	// conversion from JSON and from text. Zero means none.
	ToJSON, FromJSON, FromText Name
}

// LinkKind classifies links.
type LinkKind uint8

const (
	ManyToOne LinkKind = iota
	OneToMany
	OneToOne
	ManyToMany
	Computed // by a function that takes the row
)

// Link is a relationship from one relation to another.
type Link struct {
	Kind       LinkKind
	From, To   Name
	Constraint string // name of the foreign key; ManyToMany: the one on From's side
	Pairs      []Pair // columns in From and To; ManyToMany: in From and Through
	Forward    bool   // OneToOne: the foreign key is on From's side

	Through           Name   // ManyToMany: the join table
	ThroughConstraint string // foreign key on To's side
	ThroughPairs      []Pair // columns in Through and To

	Function *Function // function that computes the column
	Single   bool      // Computed: the function promises at most one row
}

// Pair is a column and the column that it must equal.
type Pair struct{ From, To string }

// Function is a callable function. Procedures are not callable: they can end the request's
// transaction.
type Function struct {
	Name
	Description string
	// Params are the in, inout and variadic parameters. All have names, or a single json, jsonb,
	// text, xml or bytea parameter is unnamed.
	Params     []Parameter
	Returns    Returned
	Volatility byte // i, s, v
	Variadic   bool
	// Settings are the function's own hoisted settings: statement_timeout,
	// default_transaction_isolation …
	Settings map[string]string
}

// Parameter is a function parameter.
type Parameter struct {
	Name     string // "" if unnamed
	Type     string
	Required bool // without a default
	Variadic bool
}

// Returned is a function's result type.
type Returned struct {
	Set  bool
	Void bool
	// rows with columns: Relation's, another composite type's, or the out parameters
	Composite bool
	Relation  Name // relation that defines a row type, also under a domain; exposed or not
	Type      string
	Columns   []Parameter // the out parameters
}

// Handler is a function that produces a custom media type.
type Handler struct {
	MediaType string // lower case, "*/*" for any
	Function  Name   // an aggregate, or a function
	// for an aggregate, the relation whose rows it takes, zero: any; for a function, its own name
	For    Name
	Binary bool // it returns bytea
	XML    bool // it returns xml
}
