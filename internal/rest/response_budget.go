package rest

import (
	"net/http"
	"sync"
	"time"
)

// ResponseBudgetSize is the default budget of a process, in bytes.
const ResponseBudgetSize = 128 << 20

// uncountedResponse is the size in bytes up to which a response is not charged to the budget.
// Nearly all are shorter.
const uncountedResponse = 64 << 10

// ResponseBudget bounds the memory of buffered responses. The servers of a process share it. It is
// safe for concurrent use.
type ResponseBudget struct {
	mu         sync.Mutex
	size, free int // bytes
	released   chan struct{}
}

// NewResponseBudget returns a budget of size bytes.
func NewResponseBudget(size int) *ResponseBudget { return &ResponseBudget{size: size, free: size} }

// tryShare takes n bytes for a response that could be streamed instead and has taken some already.
// Together it gets at most a quarter of the free bytes, so that slow clients, however many, leave a
// share for others.
func (b *ResponseBudget) tryShare(n, taken int) bool {
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
func (b *ResponseBudget) tryTake(n int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()

	if n > b.free && b.free < b.size {
		return false
	}

	b.free -= n
	return true
}

// isLow reports whether less than half is free. Responses then take their bytes before COMMIT.
func (b *ResponseBudget) isLow() bool {
	b.mu.Lock()
	defer b.mu.Unlock()

	return b.free < b.size/2
}

// forceTake takes n bytes for a response that must not be lost, even beyond the budget.
func (b *ResponseBudget) forceTake(n int) {
	b.mu.Lock()
	defer b.mu.Unlock()

	b.free -= n
}

func (b *ResponseBudget) release(n int) {
	b.mu.Lock()
	defer b.mu.Unlock()

	b.free += n

	if n > 0 && b.released != nil {
		close(b.released)
		b.released = nil
	}
}

// onRelease returns a channel that is closed when bytes are released.
func (b *ResponseBudget) onRelease() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()

	if b.released == nil {
		b.released = make(chan struct{})
	}

	return b.released
}

// reserveBody takes the budget for a response that must be buffered. It never fails for a change
// whose COMMIT is sent. Others wait until the request's deadline, and in a block, which holds
// locks, at most for budgetTimeout.
func (p *pipeline) reserveBody(size int) error {
	if p.commitPipelined() {
		p.budget.forceTake(size)
		p.result.setBudget(p.budget, size)

		return nil
	}

	if p.budget.tryTake(size) {
		p.result.setBudget(p.budget, size)
		return nil
	}

	var timeout <-chan time.Time
	if p.inBlock {
		timer := time.NewTimer(p.budgetTimeout)
		defer timer.Stop()

		timeout = timer.C
	}

	for {
		released := p.budget.onRelease()

		if p.budget.tryTake(size) {
			p.result.setBudget(p.budget, size)
			return nil
		}

		select {
		case <-released:
		case <-timeout:
			return budgetExhausted()
		case <-p.watchdog.Done():
			return budgetExhausted()
		}
	}
}

// setBudget records the bytes that release returns.
func (r *result) setBudget(from *ResponseBudget, n int) { r.budget, r.budgetBytes = from, n }

// budgetExhausted is the error of a response without budget. Nothing was changed.
func budgetExhausted() error {
	return newError(http.StatusServiceUnavailable, "53200", "too many answers wait for their clients")
}
