package session

import (
	"context"
	"sync"

	"github.com/socle-dev/socle/internal/fair"
)

// BudgetSize is a process's default budget, in bytes.
const BudgetSize = 128 << 20

// uncountedResponse is the maximum size of a response not charged to the budget, in bytes. Nearly
// all are shorter.
const uncountedResponse = 64 << 10

// maxWaitingResponses is the number of responses that wait for bytes of a budget.
const maxWaitingResponses = 4096

// Budget bounds the memory for buffered responses. A process's executors share it. It is safe for
// concurrent use.
type Budget struct {
	pool  *fair.Pool
	share int64 // bytes that a part can have

	mu     sync.Mutex
	onFree chan struct{} // closed when bytes are released; nil if no spool waits
}

// NewBudget returns a budget of size bytes for one account.
func NewBudget(size int) *Budget { return newBudget(fair.Config{Capacity: int64(size)}) }

// NewSharedBudget returns a budget of size bytes that accounts share. An account can have half, a
// project a quarter.
func NewSharedBudget(size int) *Budget {
	n := int64(size)
	return newBudget(fair.Config{Capacity: n, PerAccount: n / 2, PerPart: n / 4, Reserve: n / 4})
}

func newBudget(c fair.Config) *Budget {
	c.Name, c.Waiting = "row_responses", maxWaitingResponses
	b := &Budget{pool: fair.New(c), share: c.PerPart}
	if b.share == 0 {
		b.share = c.Capacity
	}

	return b
}

// Pools returns the pools that accounts share, for metrics.
func (b *Budget) Pools() []*fair.Pool { return []*fair.Pool{b.pool} }

// InUse returns the bytes in use.
func (b *Budget) InUse() int { return int(b.pool.Stats().InUse) }

// tryShare takes n bytes for a response that could be streamed instead and that already holds some.
// A response gets at most a quarter of what its owner could take in total, so that slow clients,
// however many, leave a share for others. It returns nil without room.
func (b *Budget) tryShare(owner fair.Key, n, held int) *fair.Lease {
	if int64(n+held) > b.pool.Available(owner)/4 {
		return nil
	}

	return b.pool.TryAcquire(owner, int64(n))
}

// take takes n bytes for a response that must be buffered, and waits for them. A response larger
// than its owner's share takes the whole share.
func (b *Budget) take(ctx context.Context, owner fair.Key, n int) (*fair.Lease, error) {
	return b.pool.Acquire(ctx, owner, min(int64(n), b.share))
}

// isLow reports whether the owner could take less than half of a share. Responses then take their
// bytes before COMMIT.
func (b *Budget) isLow(owner func() fair.Key) bool {
	return b.pool.Stats().InUse > 0 && b.pool.Available(owner()) < b.share/2
}

// forceTake takes n bytes for a response that must not be lost, even beyond the budget.
func (b *Budget) forceTake(owner fair.Key, n int) *fair.Lease { return b.pool.Take(owner, int64(n)) }

// release returns leases, and wakes the spools that wait for bytes.
func (b *Budget) release(leases ...*fair.Lease) {
	for _, lease := range leases {
		lease.Release()
	}

	b.mu.Lock()
	defer b.mu.Unlock()

	if len(leases) > 0 && b.onFree != nil {
		close(b.onFree)
		b.onFree = nil
	}
}

// onRelease returns a channel that is closed when bytes are released.
func (b *Budget) onRelease() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()

	if b.onFree == nil {
		b.onFree = make(chan struct{})
	}

	return b.onFree
}
