// Package event owns the log of changes in a project's database: their capture, the cursor that
// reads them, their delivery to followers, and their retention.
package event

import (
	"encoding/json"
	"sync"
	"time"
	"weak"

	"github.com/socle-dev/socle/internal/fault"
)

// Types of changes to rows.
const (
	Insert   = "INSERT"
	Update   = "UPDATE"
	Delete   = "DELETE"
	Truncate = "TRUNCATE"
	Any      = "*" // in a [Binding]: all but Truncate, which clients of Supabase don't expect
)

// Binding selects changes for a follower.
type Binding struct {
	Event  string // Insert, Update, Delete, Truncate or Any
	Schema string
	Table  string // "": each table of the schema that clients may follow
	Filter string // column=operator.value, several joined with commas; "": all rows
	Select string // columns in the record, joined with commas; "": all
}

// Change is a change to a row as a follower may see it.
type Change struct {
	Bindings      []int // indexes of the follower's bindings that match, ascending
	Type          string
	Schema, Table string
	At            time.Time
	Columns       []Column
	Record        json.RawMessage // JSON object; nil for Delete
	Old           json.RawMessage // JSON object: the key, or the whole row under REPLICA IDENTITY FULL; nil for Insert
	Oversized     bool            // Record and Old have the key only
	Cursor        string          // position after the change, see [Logs.Follow]

	encoding *encoding
	copied   int // bytes of Record and Old that are not the entry's own
}

// encoding is what [Change.Encode] has returned, for all followers that share a change. The pointer
// is weak: changes that wait for slow followers keep no encoded bytes.
type encoding struct {
	mu   sync.Mutex
	data weak.Pointer[[]byte]
}

// Encode returns what f makes of the change. Followers of one group with equal bindings share the
// result while it is in memory, so all callers pass the same function and don't change the bytes.
func (c *Change) Encode(f func(*Change) []byte) []byte {
	if c.encoding == nil {
		return f(c)
	}

	c.encoding.mu.Lock()
	defer c.encoding.mu.Unlock()

	if shared := c.encoding.data.Value(); shared != nil {
		return *shared
	}

	data := f(c)
	c.encoding.data = weak.Make(&data)

	return data
}

// Column is a column of a change's table.
type Column struct {
	Name string `json:"name"`
	Type string `json:"type"` // as in pg_type.typname: int4, _text
}

// ErrResync is the failure for a cursor that can't go on: changes after it are removed, or the
// database was restored. The follower reads the rows again and begins without a cursor.
var ErrResync = fault.New(fault.Conflict, "Changes after this cursor are no longer kept: read the rows again").
	WithCode("resync")
