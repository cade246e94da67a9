package statement

import (
	"sync"

	"github.com/google/uuid"
)

const (
	responsesMemory = 96 << 20 // memory budget for responses in a process, in bytes
	projectShare    = 32 << 20 // share of the budget per project
	freeBytes       = 64 << 10 // allowance per response outside of the budget
	responseCopies  = 2        // in memory: the rows, and the response built from them
)

// responses bounds the memory of all responses of this process until they are written.
var responses = responseBudget{available: responsesMemory}

// responseBudget is a memory budget shared by responses. It is safe for concurrent use.
type responseBudget struct {
	mu        sync.Mutex
	available int // bytes
	reserved  map[uuid.UUID]int
}

// reserve reserves bytes for a project's response. It reports false if the budget is exhausted.
func (b *responseBudget) reserve(project uuid.UUID, n int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()

	if n > b.available || b.reserved[project]+n > projectShare {
		return false
	}

	if b.reserved == nil {
		b.reserved = map[uuid.UUID]int{}
	}

	b.available -= n
	b.reserved[project] += n

	return true
}

// release returns bytes to the budget.
func (b *responseBudget) release(project uuid.UUID, n int) {
	b.mu.Lock()
	defer b.mu.Unlock()

	b.available += n

	if b.reserved[project] -= n; b.reserved[project] <= 0 {
		delete(b.reserved, project)
	}
}

// reservation is the share of one response in the budget.
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
func (r *reservation) grow(n int) bool {
	if r.used+n > maxBytes {
		return false
	}

	r.mu.Lock()
	defer r.mu.Unlock()

	if r.released {
		return false
	}

	if need := responseCopies*(r.used+n) - freeBytes; need > r.reserved {
		step := max(need-r.reserved, 1<<20)
		if !r.budget.reserve(r.project, step) {
			return false
		}

		r.reserved += step
	}

	r.used += n
	return true
}

// release returns the reservation for good: later calls of grow fail.
func (r *reservation) release() {
	r.mu.Lock()
	defer r.mu.Unlock()

	if r.reserved > 0 {
		r.budget.release(r.project, r.reserved)
	}

	r.reserved, r.released = 0, true
}
