package httpx

import (
	"context"
	"errors"
	"sync"
)

// ErrBusy is the failure of [Budget.Take] when no memory is free in time.
var ErrBusy = errors.New("httpx: memory budget of request bodies exhausted")

// Budget bounds the memory of the buffered bodies of all requests together. Each client may hold at
// most a quarter of the memory that the others leave, so that clients cannot exhaust it together.
// It is safe for concurrent use.
type Budget struct {
	mu       sync.Mutex
	free     int64
	peak     int64 // maximum in use so far
	size     int64
	inUse    map[string]int64 // by client
	released chan struct{}    // closed on each release
}

// NewBudget returns a budget of size bytes.
func NewBudget(size int64) *Budget {
	return &Budget{size: size, free: size, inUse: map[string]int64{}, released: make(chan struct{})}
}

// ClientLimit returns the limit of one client in bytes while no other client holds any.
func (b *Budget) ClientLimit() int64 { return b.size / 4 }

// Take reserves n bytes for a client. It blocks until they are free or ctx ends, and then fails
// with [ErrBusy]. The caller calls release exactly once.
func (b *Budget) Take(ctx context.Context, client string, n int64) (release func(), err error) {
	for {
		released, ok := b.try(client, n)
		if ok {
			return func() { b.release(client, n) }, nil
		}

		select {
		case <-released:
		case <-ctx.Done():
			return nil, ErrBusy
		}
	}
}

// try reserves n bytes without blocking. If it cannot, it returns the channel of the next release.
func (b *Budget) try(client string, n int64) (released <-chan struct{}, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()

	if own := b.inUse[client]; n+own > (b.free+own)/4 {
		return b.released, false
	}

	b.inUse[client] += n
	b.free -= n
	b.peak = max(b.peak, b.size-b.free)

	return nil, true
}

// release returns n bytes of a client and wakes up the waiting callers.
func (b *Budget) release(client string, n int64) {
	b.mu.Lock()
	defer b.mu.Unlock()

	b.free += n

	if b.inUse[client] -= n; b.inUse[client] == 0 {
		delete(b.inUse, client)
	}

	close(b.released)
	b.released = make(chan struct{})
}

// InUse returns the bytes in use.
func (b *Budget) InUse() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()

	return b.size - b.free
}

// Peak returns the maximum number of bytes in use so far.
func (b *Budget) Peak() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()

	return b.peak
}
