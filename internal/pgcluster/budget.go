package pgcluster

import (
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

	"github.com/socle-dev/socle/internal/fair"
	"github.com/socle-dev/socle/internal/tick"
)

// evictInterval is the interval at which a waiting dial looks for an idle connection to evict.
const evictInterval = 5 * time.Millisecond

// budget limits a server's connections to all project databases together. A connection counts from
// before the dial until PostgreSQL has closed it, since the session occupies a slot in
// max_connections until then. At the limit, further dials queue, and each evicts one idle
// connection. Without an idle one, the account with the most connections closes one after its next
// use.
type budget struct {
	places *fair.Pool
	starts *fair.Pool                // places for establishing sessions
	evict  func(owner fair.Key) bool // closes an idle connection for an owner; false if there is none

	// endReason returns the reason for a session that ended without an error message, or nil if
	// unknown.
	endReason func(pid uint32) error

	closing atomic.Int64 // connections being closed that still count
}

func newBudget(connections int, evict func(fair.Key) bool, endReason func(pid uint32) error) *budget {
	starts := int64(maxConnecting())
	return &budget{
		places: fair.New(placesConfig(connections)),
		starts: fair.New(fair.Config{Name: "session_starts", Capacity: starts, PerAccount: starts - 1,
			Waiting: maxDials}),
		evict:     evict,
		endReason: endReason,
	}
}

func placesConfig(connections int) fair.Config {
	return fair.Config{Name: "project_connections", Capacity: int64(connections),
		Reserve: int64(connections / 8), Waiting: maxDials, Revocable: true, OnDemand: true}
}

// maxDials is the maximum number of waiting dials, far more than all active projects' pools need.
const maxDials = 1 << 16

const (
	// MaxSessions is a project's maximum number of client sessions on a server: the size of the
	// pools that the usual drivers open unasked. The owner's CONNECTION LIMIT leaves as many for
	// pools and for another server.
	MaxSessions = 10

	// sessionPlaceTimeout bounds the wait for another account to give up a session.
	sessionPlaceTimeout = 5 * time.Second
)

// sessionsConfig configures the client session pool, for half the connections. An account may have
// half of it. A newcomer takes the place of the oldest session in the account with the most.
func sessionsConfig(connections int) fair.Config {
	capacity := int64(max(connections/2, 1))
	perAccount := max(capacity/2, min(capacity, MaxSessions))

	return fair.Config{Name: "database_sessions", Capacity: capacity, PerAccount: perAccount,
		PerPart: min(perAccount, MaxSessions), Reserve: (capacity - perAccount) / 2,
		Waiting: 256, Timeout: sessionPlaceTimeout, Revocable: true}
}

// maxConnecting is the maximum number of sessions established at a time. Establishing one is CPU
// work, mostly for PostgreSQL. More at once would not begin sooner, and would delay requests on
// open connections.
func maxConnecting() int { return max(4, 2*runtime.GOMAXPROCS(0)) }

// attach makes connections configured by c take an owner's slot before they dial. open counts the
// connections to c's project. Canceling a statement dials once more with the same configuration:
// that dial needs no slot and must not wait for one.
func (b *budget) attach(c *pgx.ConnConfig, open *atomic.Int32, owner func(context.Context) fair.Key) {
	dial := c.DialFunc
	var holds atomic.Bool
	var current atomic.Pointer[slot]

	c.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		if holds.Load() {
			return dial(ctx, network, address)
		}

		key := owner(ctx)
		place, err := b.acquire(ctx, key)
		if err != nil {
			return nil, err
		}

		start, err := b.starts.Acquire(ctx, key, 1)
		if err != nil {
			place.Release()
			return nil, err
		}

		conn, err := dial(ctx, network, address)
		if err != nil {
			start.Release()
			place.Release()

			return nil, err
		}

		holds.Store(true)
		open.Add(1)

		s := &slot{Conn: conn, budget: b, place: place, start: start, onClose: func() {
			holds.Store(false)
			open.Add(-1)
		}}
		current.Store(s)

		return s, nil
	}

	afterConnect := c.AfterConnect
	c.AfterConnect = func(ctx context.Context, conn *pgconn.PgConn) error {
		if s := current.Load(); s != nil {
			s.pid.Store(conn.PID())
			s.start.Release()
			conn.CustomData()[slotKey] = s
		}

		if afterConnect != nil {
			return afterConnect(ctx, conn)
		}

		return nil
	}
}

// acquire takes a slot, and queues if there is none.
func (b *budget) acquire(ctx context.Context, owner fair.Key) (*fair.Lease, error) {
	if place := b.places.TryAcquire(owner, 1); place != nil {
		return place, nil
	}

	waiting, stop := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)

		b.evictFor(waiting, owner)
	}()

	place, err := b.places.Acquire(ctx, owner, 1)
	stop()
	<-done

	return place, err
}

// evictFor makes room for an owner until ctx ends. It does nothing while enough connections are
// closing for all waiting dials.
func (b *budget) evictFor(ctx context.Context, owner fair.Key) {
	for range tick.Poll(ctx, evictInterval) {
		if int64(b.places.Stats().Waiting) > b.closing.Load() && !b.evict(owner) {
			b.places.Revoke(owner, 1)
		}
	}
}

// resize changes the number of connections. Of those beyond it, it closes the idle ones, and others
// after their next use: one of them at each call, since some are in use for long.
func (b *budget) resize(connections int) {
	b.places.Resize(placesConfig(connections))

	excess := func() int64 {
		places := b.places.Stats()
		return places.InUse - places.Capacity - b.closing.Load()
	}
	for n := excess(); n > 0 && b.evict(fair.Key{}); n-- {
	}
	if excess() > 0 {
		b.places.Shed(1)
	}
}

// slotKey is the key for a connection's slot in the custom data.
const slotKey = "socle slot"

// MustClose reports whether a connection must be closed instead of used again, because the slot was
// revoked.
func MustClose(conn *pgx.Conn) bool {
	s, ok := conn.PgConn().CustomData()[slotKey].(*slot)
	if !ok {
		return false
	}

	select {
	case <-s.place.Revoked():
		return true
	default:
		return false
	}
}

// slot is a connection that returns the slot when the session has ended, see [pg.Supervisor].
type slot struct {
	net.Conn
	budget       *budget
	place, start *fair.Lease
	pid          atomic.Uint32 // 0 before the session is established
	onClose      func()
	once         sync.Once
}

// Read reports the reason if the session ended without an error message. PostgreSQL just closes the
// connection to a backend that is terminated while it sends rows.
func (s *slot) Read(b []byte) (int, error) {
	n, err := s.Conn.Read(b)
	if errors.Is(err, io.EOF) {
		if reason := s.budget.endReason(s.pid.Load()); reason != nil {
			err = reason
		}
	}

	return n, err
}

// Close returns at once. The connection keeps the slot until PostgreSQL has closed it.
func (s *slot) Close() error {
	s.once.Do(func() {
		s.onClose()
		s.budget.closing.Add(1)

		go func() {
			_ = s.Conn.Close()
			s.start.Release()
			s.budget.closing.Add(-1)
			s.place.Release()
		}()
	})

	return nil
}
