package rest

import (
	"net/http"
	"sync"
	"time"
)

// HeldSize is how many bytes a process usually has for answers that wait.
const HeldSize = 128 << 20

// uncounted is how many bytes an answer may have that is not counted: nearly all are shorter.
const uncounted = 64 << 10

// Held bounds the memory of answers that wait for their clients. Servers of one process share it. It is safe for concurrent use.
type Held struct {
	mu         sync.Mutex
	size, free int // bytes
	more       chan struct{}
}

// NewHeld returns one of so many bytes.
func NewHeld(size int) *Held { return &Held{size: size, free: size} }

// share takes bytes for an answer that can also be passed on as it comes, and has some already. It gets no more than a quarter of what is free,
// so that slow clients, however many, leave something for those that come after them.
func (h *Held) share(n, has int) bool {
	h.mu.Lock()
	defer h.mu.Unlock()

	if n+has > h.free/4 {
		return false
	}

	h.free -= n
	return true
}

// take takes bytes for an answer that has to be held. One that is larger than all there is gets that.
func (h *Held) take(n int) bool {
	h.mu.Lock()
	defer h.mu.Unlock()

	if n > h.free && h.free < h.size {
		return false
	}

	h.free -= n
	return true
}

// scarce reports whether so little is free that what is to be held should have its room before anything is kept in the database.
func (h *Held) scarce() bool {
	h.mu.Lock()
	defer h.mu.Unlock()

	return h.free < h.size/2
}

// owe takes bytes for an answer that may not be lost, whether they are free or not.
func (h *Held) owe(n int) {
	h.mu.Lock()
	defer h.mu.Unlock()

	h.free -= n
}

func (h *Held) give(n int) {
	h.mu.Lock()
	defer h.mu.Unlock()

	h.free += n

	if n > 0 && h.more != nil {
		close(h.more)
		h.more = nil
	}
}

// changed returns a channel that is closed when something is given back.
func (h *Held) changed() <-chan struct{} {
	h.mu.Lock()
	defer h.mu.Unlock()

	if h.more == nil {
		h.more = make(chan struct{})
	}

	return h.more
}

// hold takes the bytes of an answer that has to be held. That of a change that is kept by now, or will be without another word, may not
// be lost. Others wait for room as long as the request may take, or, since a change keeps its locks meanwhile, no longer than others wait for slow clients.
func (x *exchange) hold(size int) error {
	if x.keeps() {
		x.held.owe(size)
		x.result.took(x.held, size)

		return nil
	}

	if x.held.take(size) {
		x.result.took(x.held, size)
		return nil
	}

	var enough <-chan time.Time
	if x.block {
		clock := time.NewTimer(x.patience)
		defer clock.Stop()

		enough = clock.C
	}

	for {
		more := x.held.changed()

		if x.held.take(size) {
			x.result.took(x.held, size)
			return nil
		}

		select {
		case <-more:
		case <-enough:
			return noRoom()
		case <-x.client.Done():
			return noRoom()
		}
	}
}

// took notes what is given back when the result is released.
func (r *result) took(from *Held, n int) { r.held, r.taken = from, n }

// noRoom is the failure to take an answer in. Nothing was changed.
func noRoom() error {
	return fail(http.StatusServiceUnavailable, "53200", "too many answers wait for their clients")
}
