package session

import "sync"

// BudgetSize is a process's default budget, in bytes.
const BudgetSize = 128 << 20

// uncountedResponse is the maximum size of a response not charged to the budget, in bytes. Nearly
// all are shorter.
const uncountedResponse = 64 << 10

// Budget bounds the memory for buffered responses. A process's executors share it. It is safe for
// concurrent use.
type Budget struct {
	mu         sync.Mutex
	size, free int           // bytes
	onFree     chan struct{} // closed when bytes are released; nil if nobody waits
}

// NewBudget returns a budget of size bytes.
func NewBudget(size int) *Budget { return &Budget{size: size, free: size} }

// InUse returns the bytes in use.
func (b *Budget) InUse() int {
	b.mu.Lock()
	defer b.mu.Unlock()

	return b.size - b.free
}

// tryShare takes n bytes for a response that could be streamed instead and that already holds some.
// A response gets at most a quarter of the free bytes in total, so that slow clients, however many,
// leave a share for others.
func (b *Budget) tryShare(n, held int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()

	if n+held > b.free/4 {
		return false
	}

	b.free -= n
	return true
}

// tryTake takes n bytes for a response that must be buffered. A response larger than the budget
// gets the whole budget.
func (b *Budget) tryTake(n int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()

	if n > b.free && b.free < b.size {
		return false
	}

	b.free -= n
	return true
}

// isLow reports whether less than half is free. Responses then take their bytes before COMMIT.
func (b *Budget) isLow() bool {
	b.mu.Lock()
	defer b.mu.Unlock()

	return b.free < b.size/2
}

// forceTake takes n bytes for a response that must not be lost, even beyond the budget.
func (b *Budget) forceTake(n int) {
	b.mu.Lock()
	defer b.mu.Unlock()

	b.free -= n
}

func (b *Budget) release(n int) {
	b.mu.Lock()
	defer b.mu.Unlock()

	b.free += n

	if n > 0 && b.onFree != nil {
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
