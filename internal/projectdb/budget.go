package projectdb

import (
	"container/list"
	"context"
	"errors"
	"io"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// evictInterval is the interval at which the first in the queue looks for an idle connection to
// evict.
const evictInterval = 5 * time.Millisecond

// budget limits the connections of a server to all project databases together. A connection counts
// from before the dial until PostgreSQL has closed it, since its session occupies one of
// max_connections until then. At the limit, further dials queue, and each evicts one idle
// connection.
type budget struct {
	evict      func() bool   // closes an idle connection; false if there is none
	connecting chan struct{} // a token for each session being established

	// endReason returns the reason for a session that ended without an error message, or nil if
	// unknown.
	endReason func(pid uint32) error

	size    int
	mu      sync.Mutex
	free    int
	closing int        // connections being closed that still count
	queue   *list.List // of chan struct{}, closed to hand over a slot

	waiting atomic.Int32 // length of queue
}

func newBudget(connections int, evict func() bool, endReason func(pid uint32) error) *budget {
	return &budget{
		size:       connections,
		free:       connections,
		evict:      evict,
		endReason:  endReason,
		queue:      list.New(),
		connecting: make(chan struct{}, maxConnecting()),
	}
}

// maxConnecting is the maximum number of sessions established at a time. Establishing one is CPU
// work, mostly of PostgreSQL. More at once would not begin sooner, and would delay requests on open
// connections.
func maxConnecting() int { return max(4, 2*runtime.GOMAXPROCS(0)) }

// attach makes connections configured by c take a slot before they dial. open counts the
// connections of c's project. Canceling a statement dials once more with the same configuration:
// that dial needs no slot and must not wait for one.
func (b *budget) attach(c *pgx.ConnConfig, open *atomic.Int32) {
	dial := c.DialFunc
	var holds atomic.Bool
	var current atomic.Pointer[slot]

	c.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		if holds.Load() {
			return dial(ctx, network, address)
		}

		if err := b.acquire(ctx); err != nil {
			return nil, err
		}

		doneConnecting, err := b.startConnecting(ctx)
		if err != nil {
			b.release(false)
			return nil, err
		}

		conn, err := dial(ctx, network, address)
		if err != nil {
			doneConnecting()
			b.release(false)

			return nil, err
		}

		holds.Store(true)
		open.Add(1)

		s := &slot{Conn: conn, budget: b, doneConnecting: doneConnecting, onClose: func() {
			holds.Store(false)
			open.Add(-1)
		}}
		current.Store(s)

		return s, nil
	}

	connected := c.AfterConnect
	c.AfterConnect = func(ctx context.Context, conn *pgconn.PgConn) error {
		if s := current.Load(); s != nil {
			s.pid.Store(conn.PID())
			s.doneConnecting()
		}

		if connected != nil {
			return connected(ctx, conn)
		}

		return nil
	}
}

// startConnecting waits for a token to establish a session. done returns the token; it may be
// called more than once.
func (b *budget) startConnecting(ctx context.Context) (done func(), err error) {
	select {
	case b.connecting <- struct{}{}:
		return sync.OnceFunc(func() { <-b.connecting }), nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// acquire takes a slot, and queues if there is none.
func (b *budget) acquire(ctx context.Context) error {
	b.mu.Lock()

	if b.free > 0 {
		b.free--
		b.mu.Unlock()
		return nil
	}

	granted := make(chan struct{})
	elem := b.queue.PushBack(granted)
	b.waiting.Add(1)
	b.mu.Unlock()

	b.evictForQueue()

	tick := time.NewTicker(evictInterval)
	defer tick.Stop()

	for {
		select {
		case <-granted:
			return nil
		case <-ctx.Done():
			b.cancelWait(elem, granted)
			return ctx.Err()
		case <-tick.C:
			if b.isFirst(elem) {
				b.evictForQueue()
			}
		}
	}
}

// evictForQueue evicts an idle connection unless enough connections are closing for all in the
// queue.
func (b *budget) evictForQueue() {
	b.mu.Lock()
	covered := b.closing >= b.queue.Len()
	b.mu.Unlock()

	if !covered {
		b.evict()
	}
}

func (b *budget) isFirst(elem *list.Element) bool {
	b.mu.Lock()
	defer b.mu.Unlock()

	return b.queue.Front() == elem
}

// cancelWait removes a place from the queue. A slot that was handed over meanwhile is passed on.
func (b *budget) cancelWait(elem *list.Element, granted chan struct{}) {
	b.mu.Lock()

	select {
	case <-granted:
		b.mu.Unlock()
		b.release(false)

		return
	default:
	}

	b.queue.Remove(elem)
	b.waiting.Add(-1)
	b.mu.Unlock()
}

// release returns a slot, to the first in the queue if there is one. closed means that the
// connection was counted in closing.
func (b *budget) release(closed bool) {
	b.mu.Lock()
	defer b.mu.Unlock()

	if closed {
		b.closing--
	}

	first := b.queue.Front()
	if first == nil {
		b.free++
		return
	}

	b.queue.Remove(first)
	b.waiting.Add(-1)
	close(first.Value.(chan struct{}))
}

// slot is a connection that returns its slot when its session has ended, see [pg.Supervisor].
type slot struct {
	net.Conn
	budget         *budget
	pid            atomic.Uint32 // 0 before the session is established
	doneConnecting func()        // returns the token for establishing the session
	onClose        func()
	once           sync.Once
}

// Read replaces the error of a session that ended without an error message by its reason.
// PostgreSQL just closes the connection of a backend that is terminated while it sends rows to its
// client.
func (s *slot) Read(b []byte) (int, error) {
	n, err := s.Conn.Read(b)
	if errors.Is(err, io.EOF) {
		if reason := s.budget.endReason(s.pid.Load()); reason != nil {
			err = reason
		}
	}

	return n, err
}

// Close returns at once. The connection keeps its slot until PostgreSQL has closed it.
func (s *slot) Close() error {
	s.once.Do(func() {
		s.onClose()
		s.budget.mu.Lock()
		s.budget.closing++
		s.budget.mu.Unlock()

		go func() {
			_ = s.Conn.Close()
			s.doneConnecting()
			s.budget.release(true)
		}()
	})

	return nil
}
