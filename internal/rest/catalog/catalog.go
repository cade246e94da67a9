// Package catalog is what the rows API knows of a database: its tables and views with their columns, how they
// refer to each other, and its functions. A Catalog is read once and never changes; a newer one replaces it.
package catalog

import "cmp"

// Name is the name of a relation, function or type, with its schema.
type Name struct{ Schema, Name string }

// Compare puts names in the order of their schemas, and within one in their own.
func (n Name) Compare(other Name) int {
	return cmp.Or(cmp.Compare(n.Schema, other.Schema), cmp.Compare(n.Name, other.Name))
}

// Catalog is the exposed part of a database.
type Catalog struct {
	Schemas   []string             // exposed, the default one first
	Relations map[Name]*Relation   // those of the exposed schemas
	Comments  map[string]string    // of the schemas that have one
	Links     map[Name][]*Link     // by the relation that they lead from; both ends and what is between are exposed
	Functions map[Name][]*Function // overloads, by name; those only that a request can call
	Handlers  []Handler            // custom media types, those of schemas that come first before the others
	GeoJSON   Name                 // PostGIS's function that makes a feature of a row; zero without PostGIS
}

// Relation is a table, view, materialized view, foreign or partitioned table.
type Relation struct {
	Name
	Description string
	Kind        byte // pg_class.relkind
	Columns     []*Column
	ByName      map[string]*Column
	// of a view: the columns that come from its base tables' keys, of those that it shows whole
	PrimaryKey                       []string
	Insertable, Updatable, Deletable bool
	// Whether constraints hold for all of its rows. A view can show a row twice, and a table shows those of tables that inherit from it.
	Constrained bool
	// Whether reading plainly runs code of the database's that is likely to change its session: volatile functions of policies, views and
	// rows. What is behind those is not looked at.
	ReadRuns bool
	// Whether reading, and writing, plainly runs nothing but PostgreSQL's own functions, of which none leaves anything in the session. Whatever
	// is not known to be so is not.
	InertRead, InertWrite bool
}

// Column is a column of a relation.
type Column struct {
	Name        string
	Description string
	Type        string // SQL text, as format_type prints it with its schema where that is needed
	BaseType    string // of a domain, what is under it, without length; else Type
	NotNull     bool
	HasDefault  bool   // a default, identity or generated expression
	Default     string // SQL text; "" for a generated expression, which has no meaning outside of its row
	Generated   bool   // always generated, as an identity or by an expression: can't be written
	MaxLength   int    // 0: none
	Enum        []string
	// Casts of a domain by which its values are shown, read from JSON, and read from text: function names, or zero.
	ToJSON, FromJSON, FromText Name
}

// LinkKind tells links apart.
type LinkKind uint8

// Kinds of links.
const (
	ManyToOne LinkKind = iota
	OneToMany
	OneToOne
	ManyToMany
	Computed // a function of the row
)

// Link is a way from a relation to another.
type Link struct {
	Kind       LinkKind
	From, To   Name
	Constraint string // of a foreign key; of ManyToMany the one on From's side
	Pairs      []Pair // From's columns and To's; ManyToMany: From's and Through's
	Forward    bool   // OneToOne: the foreign key is on From's side

	Through           Name   // ManyToMany
	ThroughConstraint string // the one on To's side
	ThroughPairs      []Pair // Through's columns and To's

	Function *Function // Computed
	Single   bool      // Computed: the function promises one row at most
}

// Pair is a column and the one that it must equal.
type Pair struct{ From, To string }

// Function is a function that can be called. Procedures can't be: they may end the transaction that a request is.
type Function struct {
	Name
	Description string
	// in, inout and variadic ones; all have names, or one of json, jsonb, text, xml or bytea has none
	Params     []Parameter
	Returns    Returned
	Volatility byte // i, s, v
	Variadic   bool
	// of its own, as far as they are hoisted: statement_timeout, default_transaction_isolation …
	Settings map[string]string
}

// Parameter is a parameter of a function.
type Parameter struct {
	Name     string // "" if it has none
	Type     string
	Required bool // no default
	Variadic bool
}

// Returned is what a function returns.
type Returned struct {
	Set       bool
	Void      bool
	Composite bool // rows with columns: of Relation, of another composite type, or of the out parameters
	Relation  Name // of a composite type that a relation made, also under a domain; exposed or not
	Type      string
	Columns   []Parameter // of the out parameters
}

// Handler is a function that makes an answer of a media type of its own.
type Handler struct {
	MediaType string // in lower case, "*/*" for any
	Function  Name   // an aggregate, or a function
	For       Name   // of an aggregate, the relation whose rows it takes, zero: any; of a function, its own name
	Binary    bool   // it makes bytea
}
