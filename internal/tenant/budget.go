package tenant

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

// evictEvery is how soon the first in the queue looks for an idle connection again when there was none.
const evictEvery = 5 * time.Millisecond

// budget bounds the connections that are open to the project databases of a server, all pools together. A connection counts on the
// wire: from before it is dialled until PostgreSQL has hung up, since its session takes one of max_connections until then. Beyond
// the bound, whoever opens one waits in a queue, and each has one idle connection closed.
type budget struct {
	evict      func() bool   // closes an idle connection; false if there is none
	connecting chan struct{} // a place for each session that is about to begin

	// lost returns why a session has ended without a word, nil if that is not known.
	lost func(pid uint32) error

	mu      sync.Mutex
	free    int
	closing int        // connections that were closed, and still count
	queue   *list.List // of chan struct{}, closed when the slot is given

	waiting atomic.Int32 // the length of the queue
}

func newBudget(connections int, evict func() bool, lost func(pid uint32) error) *budget {
	return &budget{
		free:       connections,
		evict:      evict,
		lost:       lost,
		queue:      list.New(),
		connecting: make(chan struct{}, connectingMost()),
	}
}

// connectingMost is how many sessions begin at a time. The beginning is a processor's work, of PostgreSQL above all: beyond what the
// processors do at once, sessions would not begin sooner, and requests on connections that are open would wait.
func connectingMost() int { return max(4, 2*runtime.GOMAXPROCS(0)) }

// count makes a connection that is about to be opened take a slot. open counts the slots that it and others hold. Cancelling
// a statement dials once more over the same configuration; that needs no slot and must not wait for one.
func (b *budget) count(c *pgx.ConnConfig, open *atomic.Int32) {
	dial := c.DialFunc
	var holds atomic.Bool
	var current atomic.Pointer[slot]

	c.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		if holds.Load() {
			return dial(ctx, network, address)
		}

		if err := b.take(ctx); err != nil {
			return nil, err
		}

		begun, err := b.begin(ctx)
		if err != nil {
			b.give(false)
			return nil, err
		}

		conn, err := dial(ctx, network, address)
		if err != nil {
			begun()
			b.give(false)

			return nil, err
		}

		holds.Store(true)
		open.Add(1)

		s := &slot{Conn: conn, budget: b, begun: begun, closed: func() {
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
			s.begun()
		}

		if connected != nil {
			return connected(ctx, conn)
		}

		return nil
	}
}

// begin waits for a place among the sessions that begin. begun gives it back; it may be called more than once.
func (b *budget) begin(ctx context.Context) (begun func(), err error) {
	select {
	case b.connecting <- struct{}{}:
		return sync.OnceFunc(func() { <-b.connecting }), nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// take takes a slot, and waits in the queue if there is none.
func (b *budget) take(ctx context.Context) error {
	b.mu.Lock()

	if b.free > 0 {
		b.free--
		b.mu.Unlock()
		return nil
	}

	given := make(chan struct{})
	place := b.queue.PushBack(given)
	b.waiting.Add(1)
	b.mu.Unlock()

	b.makeRoom()

	tick := time.NewTicker(evictEvery)
	defer tick.Stop()

	for {
		select {
		case <-given:
			return nil
		case <-ctx.Done():
			b.leave(place, given)
			return ctx.Err()
		case <-tick.C:
			if b.isFirst(place) {
				b.makeRoom()
			}
		}
	}
}

// makeRoom closes an idle connection unless enough are being closed for all that wait.
func (b *budget) makeRoom() {
	b.mu.Lock()
	enough := b.closing >= b.queue.Len()
	b.mu.Unlock()

	if !enough {
		b.evict()
	}
}

func (b *budget) isFirst(place *list.Element) bool {
	b.mu.Lock()
	defer b.mu.Unlock()

	return b.queue.Front() == place
}

// leave gives up a place in the queue, and hands a slot on that was given meanwhile.
func (b *budget) leave(place *list.Element, given chan struct{}) {
	b.mu.Lock()

	select {
	case <-given:
		b.mu.Unlock()
		b.give(false)

		return
	default:
	}

	b.queue.Remove(place)
	b.waiting.Add(-1)
	b.mu.Unlock()
}

// give gives a slot back: to the first in the queue, if one waits.
func (b *budget) give(closed bool) {
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

// slot is a connection that gives its slot back when its session has ended, see [pg.Supervisor].
type slot struct {
	net.Conn
	budget *budget
	pid    atomic.Uint32 // 0: the session has not begun
	begun  func()        // the session has begun, or never will
	closed func()
	once   sync.Once
}

// Read says why the session has ended if PostgreSQL could not: one that is ended while it waits for its client to read rows just hangs up.
func (s *slot) Read(b []byte) (int, error) {
	n, err := s.Conn.Read(b)
	if errors.Is(err, io.EOF) {
		if why := s.budget.lost(s.pid.Load()); why != nil {
			err = why
		}
	}

	return n, err
}

// Close returns at once; the connection counts until it is closed.
func (s *slot) Close() error {
	s.once.Do(func() {
		s.closed()
		s.budget.mu.Lock()
		s.budget.closing++
		s.budget.mu.Unlock()

		go func() {
			_ = s.Conn.Close()
			s.begun()
			s.budget.give(true)
		}()
	})

	return nil
}
