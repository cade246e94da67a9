package statement

import (
	"sync"

	"github.com/socle-dev/socle/internal/fair"
)

const (
	responsesMemory = 96 << 20 // memory budget for a process's responses, in bytes
	projectShare    = 32 << 20 // budget share per project
	freeBytes       = 64 << 10 // allowance per response outside the budget
	responseCopies  = 2        // in memory: the rows, and the response built from them
)

// responses bounds the memory of this process's responses until they are written.
var responses = newResponsePool()

// Pools returns the pools that accounts share, for metrics.
func Pools() []*fair.Pool { return []*fair.Pool{responses} }

func newResponsePool() *fair.Pool {
	return fair.New(fair.Config{Name: "sql_responses", Capacity: responsesMemory, PerAccount: responsesMemory / 2,
		PerPart: projectShare, Reserve: responsesMemory / 4})
}

// reservation is one response's share of the budget.
type reservation struct {
	pool    *fair.Pool
	project fair.Key
	size    int // response bytes

	mu     sync.Mutex
	budget int // bytes reserved from the shared budget
	leases []*fair.Lease
	closed bool
}

// grow reserves memory for n more response bytes. It reports false if the budget or the size limit
// is exhausted.
func (r *reservation) grow(n int) bool {
	if r.size+n > maxBytes {
		return false
	}

	r.mu.Lock()
	defer r.mu.Unlock()

	if r.closed {
		return false
	}

	if need := responseCopies*(r.size+n) - freeBytes; need > r.budget {
		step := max(need-r.budget, 1<<20)
		lease := r.pool.TryAcquire(r.project, int64(step))
		if lease == nil {
			return false
		}

		r.leases = append(r.leases, lease)
		r.budget += step
	}

	r.size += n
	return true
}

// release returns the reservation for good: later grow calls fail.
func (r *reservation) release() {
	r.mu.Lock()
	defer r.mu.Unlock()

	for _, lease := range r.leases {
		lease.Release()
	}

	r.budget, r.leases, r.closed = 0, nil, true
}
