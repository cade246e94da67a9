package statement

import (
	"sync"

	"github.com/socle-dev/socle/internal/fair"
)

const (
	responsesMemory = 96 << 20 // memory budget for responses in a process, in bytes
	projectShare    = 32 << 20 // share of the budget per project
	freeBytes       = 64 << 10 // allowance per response outside of the budget
	responseCopies  = 2        // in memory: the rows, and the response built from them
)

// responses bounds the memory of all responses of this process until they are written.
var responses = newResponsePool()

func newResponsePool() *fair.Pool {
	return fair.New(fair.Config{Name: "sql_responses", Capacity: responsesMemory, PerAccount: responsesMemory / 2,
		PerPart: projectShare, Reserve: responsesMemory / 4})
}

// reservation is the share of one response in the budget.
type reservation struct {
	pool    *fair.Pool
	project fair.Key
	used    int // bytes of the response

	mu       sync.Mutex
	reserved int // bytes of the shared budget
	leases   []*fair.Lease
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
		lease := r.pool.TryAcquire(r.project, int64(step))
		if lease == nil {
			return false
		}

		r.leases = append(r.leases, lease)
		r.reserved += step
	}

	r.used += n
	return true
}

// release returns the reservation for good: later calls of grow fail.
func (r *reservation) release() {
	r.mu.Lock()
	defer r.mu.Unlock()

	for _, lease := range r.leases {
		lease.Release()
	}

	r.reserved, r.leases, r.released = 0, nil, true
}
