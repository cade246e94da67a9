package statement

import (
	"sync"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"
)

const (
	responsesMemory = 96 << 20 // memory budget for responses in a process, in bytes
	projectShare    = 32 << 20 // share of the budget per project
	freeBytes       = 64 << 10 // allowance per response outside of the budget
	responseCopies  = 2        // in memory: the rows, and the response built from them
)

// Rows are rows of values in their JSON representation, an array of arrays.
type Rows struct{ text []byte }

// MarshalJSONTo writes the rows.
func (r Rows) MarshalJSONTo(e *jsontext.Encoder) error {
	if len(r.text) == 0 {
		return e.WriteValue(jsontext.Value("[]"))
	}
	return e.WriteValue(append(r.text, ']'))
}

// add adds a row. types are the types of its columns.
func (r *Rows) add(types []columnType, values [][]byte) error {
	start := byte('[')
	if len(r.text) > 0 {
		start = ','
	}

	r.text = append(r.text, start, '[')
	for i, v := range values {
		if i > 0 {
			r.text = append(r.text, ',')
		}

		var err error
		if r.text, err = appendValue(r.text, types[i].oid, v); err != nil {
			return err
		}
	}

	r.text = append(r.text, ']')
	return nil
}

// responses bounds the memory of all responses of this process until they are written.
var responses = responseBudget{available: responsesMemory}

// responseBudget is a memory budget shared by responses. It is safe for concurrent use.
type responseBudget struct {
	mu        sync.Mutex
	available int // bytes
	reserved  map[uuid.UUID]int
}

// reserve reserves bytes for a project's response. It reports false if the budget is exhausted.
func (a *responseBudget) reserve(project uuid.UUID, n int) bool {
	a.mu.Lock()
	defer a.mu.Unlock()

	if n > a.available || a.reserved[project]+n > projectShare {
		return false
	}

	if a.reserved == nil {
		a.reserved = map[uuid.UUID]int{}
	}

	a.available -= n
	a.reserved[project] += n

	return true
}

// release returns bytes to the budget.
func (a *responseBudget) release(project uuid.UUID, n int) {
	a.mu.Lock()
	defer a.mu.Unlock()

	a.available += n

	if a.reserved[project] -= n; a.reserved[project] <= 0 {
		delete(a.reserved, project)
	}
}

// reservation is the reservation of one response in the shared budget.
type reservation struct {
	budget  *responseBudget
	project uuid.UUID
	used    int // bytes of the response

	mu       sync.Mutex
	reserved int // bytes of the shared budget
	released bool
}

// grow reserves memory for n more bytes of the response. It reports false if the budget or the size
// limit is exhausted.
func (b *reservation) grow(n int) bool {
	if b.used+n > maxBytes {
		return false
	}

	b.mu.Lock()
	defer b.mu.Unlock()

	if b.released {
		return false
	}

	if need := responseCopies*(b.used+n) - freeBytes; need > b.reserved {
		step := max(need-b.reserved, 1<<20)
		if !b.budget.reserve(b.project, step) {
			return false
		}

		b.reserved += step
	}

	b.used += n
	return true
}

// release returns the reservation for good: later calls of use fail.
func (b *reservation) release() {
	b.mu.Lock()
	defer b.mu.Unlock()

	if b.reserved > 0 {
		b.budget.release(b.project, b.reserved)
	}

	b.reserved, b.released = 0, true
}
