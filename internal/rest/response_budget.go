package rest

import (
	"net/http"
	"sync"
	"time"
)

// HeldSize is how many bytes a process usually has for answers that wait.
const ResponseBudgetSize = 128 << 20

// uncounted is how many bytes an answer may have that is not counted: nearly all are shorter.
const uncountedResponse = 64 << 10

// Held bounds the memory of answers that wait for their clients. Servers of one process share it. It is safe for concurrent use.
type ResponseBudget struct {
	mu         sync.Mutex
	size, free int // bytes
	released   chan struct{}
}

// NewHeld returns one of so many bytes.
func NewResponseBudget(size int) *ResponseBudget { return &ResponseBudget{size: size, free: size} }

// share takes bytes for an answer that can also be passed on as it comes, and has some already. It gets no more than a quarter of what is free,
// so that slow clients, however many, leave something for those that come after them.
func (h *ResponseBudget) tryShare(n, has int) bool {
	h.mu.Lock()
	defer h.mu.Unlock()

	if n+has > h.free/4 {
		return false
	}

	h.free -= n
	return true
}

// take takes bytes for an answer that has to be held. One that is larger than all there is gets that.
func (h *ResponseBudget) tryTake(n int) bool {
	h.mu.Lock()
	defer h.mu.Unlock()

	if n > h.free && h.free < h.size {
		return false
	}

	h.free -= n
	return true
}

// scarce reports whether so little is free that what is to be held should have its room before anything is kept in the database.
func (h *ResponseBudget) isLow() bool {
	h.mu.Lock()
	defer h.mu.Unlock()

	return h.free < h.size/2
}

// owe takes bytes for an answer that may not be lost, whether they are free or not.
func (h *ResponseBudget) forceTake(n int) {
	h.mu.Lock()
	defer h.mu.Unlock()

	h.free -= n
}

func (h *ResponseBudget) release(n int) {
	h.mu.Lock()
	defer h.mu.Unlock()

	h.free += n

	if n > 0 && h.released != nil {
		close(h.released)
		h.released = nil
	}
}

// changed returns a channel that is closed when something is given back.
func (h *ResponseBudget) onRelease() <-chan struct{} {
	h.mu.Lock()
	defer h.mu.Unlock()

	if h.released == nil {
		h.released = make(chan struct{})
	}

	return h.released
}

// hold takes the bytes of an answer that has to be held. That of a change that is kept by now, or will be without another word, may not
// be lost. Others wait for room as long as the request may take, or, since a change keeps its locks meanwhile, no longer than others wait for slow clients.
func (x *pipeline) reserveBody(size int) error {
	if x.commitPipelined() {
		x.budget.forceTake(size)
		x.result.setBudget(x.budget, size)

		return nil
	}

	if x.budget.tryTake(size) {
		x.result.setBudget(x.budget, size)
		return nil
	}

	var timeout <-chan time.Time
	if x.inBlock {
		timer := time.NewTimer(x.budgetTimeout)
		defer timer.Stop()

		timeout = timer.C
	}

	for {
		released := x.budget.onRelease()

		if x.budget.tryTake(size) {
			x.result.setBudget(x.budget, size)
			return nil
		}

		select {
		case <-released:
		case <-timeout:
			return budgetExhausted()
		case <-x.watchdog.Done():
			return budgetExhausted()
		}
	}
}

// took notes what is given back when the result is released.
func (r *result) setBudget(from *ResponseBudget, n int) { r.budget, r.budgetBytes = from, n }

// noRoom is the failure to take an answer in. Nothing was changed.
func budgetExhausted() error {
	return newError(http.StatusServiceUnavailable, "53200", "too many answers wait for their clients")
}
