// Package plan compiles a client's request (package query) against a database (package catalog)
// into one SQL statement. It resolves relations and functions, and fails with the contract's
// errors. It executes nothing.
package plan

import (
	"github.com/socle-dev/socle/internal/rest/catalog"
	"github.com/socle-dev/socle/internal/rest/query"
)

// Plan is a statement that answers a request. Unless Bare is set, it returns one row with these
// columns:
//
//	total    bigint  all rows, by the requested count; null if not requested
//	page     bigint  rows in this answer, or changed by it
//	location text    key of the single inserted row, for [Plan.Location]; null if none
//	headers  text    setting response.headers after the statement; null or empty if not set
//	status   text    setting response.status, likewise
//	inserted bigint  rows that an upsert newly inserted; null or empty for other statements
//	body     text    or json: the answer in its media type; null if not requested. It is the
//	                 last column, so that it can be streamed as it arrives
type Plan struct {
	SQL  string
	Args []any // string, []byte or nil: text parameters whose types PostgreSQL infers
	// CountSQL is the statement without its page, for EXPLAIN, or "" unless a planned or estimated
	// count is requested.
	CountSQL  string
	CountArgs []any
	Key       []string // columns whose values location holds
	Resolved  bool     // duplicates are merged or ignored as requested
	// DeprecatedNames lists embedded relations named by relation despite an alias, as "name
	// (alias)".
	DeprecatedNames []string
	// ReleasesLocks reports that the statement, at its end, releases session-level advisory locks
	// taken by user code. Only reads do so: a write needs the locks until it commits.
	ReleasesLocks bool
	// Inert reports that the statement runs no user code. The session then needs no reset, and no
	// code has set response headers or status.
	Inert bool
	// CountOnly reports that the statement is a change that returns no row. The command tag holds
	// the number of changed rows.
	CountOnly bool

	origins, countOrigins []origin // by argument
}

// origin is the source of an argument's value: a comparison, or a member of the body by its number
// from 1. The zero value means neither.
type origin struct {
	comparison *query.Comparison
	member     int
}

// Request is the input of a plan beside the catalog.
type Request struct {
	Target  catalog.Name
	Query   *query.Query
	Format  Format
	Handler *catalog.Handler // for Custom
	Count   Count
	// from the Range header, merged with the top level's limit and offset; a nil Limit means no
	// limit
	Range   query.Limit
	MaxRows *int64 // limit for the relation and each embedded one; nil means no limit
	// of a write or a call by POST: JSON, or the value of the function's unnamed parameter; nil if
	// absent
	Body   []byte
	Cells  bool // the body's values are texts that the columns' types read, those of json too
	Return Return
	Head   bool // a read or call without a response body
	// maximum length of the response body in bytes; the statement fails beyond it, see [IsTooLong].
	// 0 means no limit. It is the same for all requests of a kind.
	MaxBody      int
	Missing      bool // missing=default: absent members take the column's default, else null
	Resolve      Resolution
	Aggregates   bool // aggregates are allowed
	Before       bool // user code runs before the statement
	AliasesOnly  bool // an embedded relation with an alias is referenced only by it
	SharedOrigin bool // no cast reveals names, or the existence, of roles and hidden objects
}

// Format is the conversion of rows to the response body.
type Format uint8

// Formats of a response body.
const (
	JSON   Format = iota // an array of objects
	Object               // one object; the caller fails if page is not 1
	CSV
	GeoJSON
	StrippedJSON // JSON without null members
	StrippedObject
	Custom // by a handler of the catalog
)

// Count is the requested kind of total row count.
type Count uint8

// Kinds of counts.
const (
	NoCount Count = iota
	Exact
	Planned
	Estimated
)

// Return is the requested content of a write's response.
type Return uint8

// Contents of a write's response.
const (
	Minimal Return = iota
	HeadersOnly
	Representation
)

// Resolution is the handling of an insert's conflicts with existing rows.
type Resolution uint8

// Resolutions of conflicts.
const (
	NoResolution Resolution = iota
	MergeDuplicates
	IgnoreDuplicates
)
