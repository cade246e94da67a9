package httpx

import (
	"context"
	"errors"
	"sync"
)

// ErrBusy says that a [Budget] had no room in time.
var ErrBusy = errors.New("httpx: no room for another large body")

// Budget bounds the memory that the bodies of all requests in flight take together. One client may
// hold at most a quarter of what the others leave, so that no number of clients takes the last of it.
// It is safe for concurrent use.
type Budget struct {
	mu     sync.Mutex
	free   int64
	peak   int64 // the most that was taken at once
	size   int64
	held   map[string]int64 // by client
	change chan struct{}    // closed when something is given back
}

// NewBudget returns a budget of size bytes.
func NewBudget(size int64) *Budget {
	return &Budget{size: size, free: size, held: map[string]int64{}, change: make(chan struct{})}
}

// Most returns how many bytes one client may hold while nobody else holds any.
func (b *Budget) Most() int64 { return b.size / 4 }

// Take takes n bytes for a client, and waits for room until ctx ends; then it fails with [ErrBusy].
// The caller gives them back once.
func (b *Budget) Take(ctx context.Context, client string, n int64) (give func(), err error) {
	for {
		change, ok := b.try(client, n)
		if ok {
			return func() { b.give(client, n) }, nil
		}

		select {
		case <-change:
		case <-ctx.Done():
			return nil, ErrBusy
		}
	}
}

func (b *Budget) try(client string, n int64) (change <-chan struct{}, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()

	if has := b.held[client]; n+has > (b.free+has)/4 {
		return b.change, false
	}

	b.held[client] += n
	b.free -= n
	b.peak = max(b.peak, b.size-b.free)

	return nil, true
}

func (b *Budget) give(client string, n int64) {
	b.mu.Lock()
	defer b.mu.Unlock()

	b.free += n

	if b.held[client] -= n; b.held[client] == 0 {
		delete(b.held, client)
	}

	close(b.change)
	b.change = make(chan struct{})
}

// Peak returns the most bytes that were taken at once.
func (b *Budget) Peak() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()

	return b.peak
}
