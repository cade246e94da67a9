package httpx

import (
	"context"
	"errors"
	"sync"
)

// ErrBusy is the failure of [Budget.Take] when no memory is free in time.
var ErrBusy = errors.New("httpx: no room for another large body")

// Budget bounds the memory of the buffered bodies of all requests together. Each client may hold at
// most a quarter of the memory that the others leave, so that clients cannot exhaust it together.
// It is safe for concurrent use.
type Budget struct {
	mu     sync.Mutex
	free   int64
	peak   int64 // maximum in use so far
	size   int64
	held   map[string]int64 // by client
	change chan struct{}    // closed on each release
}

// NewBudget returns a budget of size bytes.
func NewBudget(size int64) *Budget {
	return &Budget{size: size, free: size, held: map[string]int64{}, change: make(chan struct{})}
}

// Most returns the limit of one client in bytes while no other client holds any.
func (b *Budget) Most() int64 { return b.size / 4 }

// Take reserves n bytes for a client. It blocks until they are free or ctx ends, and then fails
// with [ErrBusy]. The caller calls give exactly once.
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

// Peak returns the maximum number of bytes in use so far.
func (b *Budget) Peak() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()

	return b.peak
}
