// Package plan turns what a client asks (package query) of a database (package catalog) into one SQL statement.
// It decides which relations and functions are meant, and fails with the contract's own errors; it runs nothing.
package plan

import (
	"socle/internal/rest/catalog"
	"socle/internal/rest/query"
)

// Plan is a statement that answers a request. Unless it is bare, it returns one row of these columns:
//
//	total    bigint  rows in all, by the wanted count; null if none is wanted
//	page     bigint  rows in this answer, or changed by it
//	location text    the key of the one inserted row, for [Plan.Location]; null if there is none
//	headers  text    setting response.headers after the statement; null or empty if it was not set
//	status   text    setting response.status, likewise
//	inserted bigint  rows that were not there before an upsert; null or empty of any other statement
//	body     text    or json: the answer in its media type; null if none is wanted. It is the last, so that it can be passed on while it comes
type Plan struct {
	SQL  string
	Args []any // string, []byte or nil: text parameters, whose types the server infers
	// CountSQL is the statement without its page, for EXPLAIN, if a planned or estimated count is wanted; else "".
	CountSQL  string
	CountArgs []any
	Key       []string // columns whose values location has
	Resolved  bool     // duplicates are merged or ignored, as was wanted
	Outdated  []string // embedded relations that have an alias and are not named by it, as "name (alias)"
	// Unlocks says that the statement, at its end, gives up the advisory locks that code of the database's took for the session. Only one that
	// reads does: after a write they are needed until it is committed.
	Unlocks bool
	// Inert says that the statement runs no code of the database's, so that nothing is left in the session, and no setting made for the answer.
	Inert bool
	// Bare says that the statement, a change, returns no row: how many rows it changed is what PostgreSQL says at its end.
	Bare bool

	origins, countOrigins []origin // of the arguments
}

// origin is where the value of an argument comes from: a comparison, a member of the body, by its number from 1, or neither.
type origin struct {
	comparison *query.Comparison
	member     int
}

// Request is what a statement is planned for, beside the query string.
type Request struct {
	Target  catalog.Name
	Query   *query.Query
	Format  Format
	Handler *catalog.Handler // of Custom
	Count   Count
	// from the Range header, already merged with limit and offset of the top level; Limit nil: no limit
	Range   query.Limit
	MaxRows *int64 // for the relation and each embedded one; nil: no limit
	// of a write or call by POST: JSON, or what a function's unnamed parameter takes; nil if there is none
	Body   []byte
	Return Return
	Head   bool // no body is wanted of a read or a call
	// bytes of the body; the statement fails for a longer one, see [TooLong]. 0: there is no limit. Equal for all requests of a kind
	MaxBody     int
	Missing     bool // missing=default: absent members take the column's default, else null
	Resolve     Resolution
	Aggregates  bool // whether aggregates are allowed
	Before      bool // code of the database's runs before the statement
	AliasesOnly bool // an embedded relation that has an alias is named by that alone
	Confined    bool // no cast shows the names of roles and hidden objects, or whether they exist
}

// Format is how rows become the body.
type Format uint8

// Formats of a body.
const (
	JSON   Format = iota // an array of objects
	Object               // one object; the caller fails if page is not 1
	CSV
	GeoJSON
	StrippedJSON // JSON without null members
	StrippedObject
	Custom // by a handler of the catalogue
)

// Count is the wanted count of all rows.
type Count uint8

// Kinds of counts.
const (
	NoCount Count = iota
	Exact
	Planned
	Estimated
)

// Return is what a write answers with.
type Return uint8

// Answers to a write.
const (
	Minimal Return = iota
	HeadersOnly
	Representation
)

// Resolution is what an insert does with rows that are there already.
type Resolution uint8

// Resolutions of conflicts.
const (
	NoResolution Resolution = iota
	MergeDuplicates
	IgnoreDuplicates
)
