package session

import "sync"

// BudgetSize is the default budget of a process, in bytes.
const BudgetSize = 128 << 20

// uncountedResponse is the size in bytes up to which a response is not charged to the budget.
// Nearly all are shorter.
const uncountedResponse = 64 << 10

// Budget bounds the memory of buffered responses. The executors of a process share it. It is
// safe for concurrent use.
type Budget struct {
	mu         sync.Mutex
	size, free int // bytes
	released   chan struct{}
}

// NewBudget returns a budget of size bytes.
func NewBudget(size int) *Budget { return &Budget{size: size, free: size} }

// InUse returns the taken bytes.
func (b *Budget) InUse() int {
	b.mu.Lock()
	defer b.mu.Unlock()

	return b.size - b.free
}

// tryShare takes n bytes for a response that could be streamed instead and has taken some already.
// Together it gets at most a quarter of the free bytes, so that slow clients, however many, leave a
// share for others.
func (b *Budget) tryShare(n, taken int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()

	if n+taken > b.free/4 {
		return false
	}

	b.free -= n
	return true
}

// tryTake takes n bytes for a response that must be buffered. A response larger than the budget
// gets all of it.
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

	if n > 0 && b.released != nil {
		close(b.released)
		b.released = nil
	}
}

// onRelease returns a channel that is closed when bytes are released.
func (b *Budget) onRelease() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()

	if b.released == nil {
		b.released = make(chan struct{})
	}

	return b.released
}
