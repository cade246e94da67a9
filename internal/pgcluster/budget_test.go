package pgcluster

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/socle-dev/socle/internal/fair"
	"github.com/socle-dev/socle/internal/pgtest"
)

// TestBudgetIsAQueue checks that an account's slots are handed over in the order of its requests,
// skipping canceled ones, and that another account comes first.
func TestBudgetIsAQueue(t *testing.T) {
	t.Parallel()

	var evicted atomic.Int32
	b := newBudget(1, func(fair.Key) bool { evicted.Add(1); return false }, func(uint32) error { return nil })
	place, err := b.acquire(t.Context(), fair.Key{Account: "a"})
	if err != nil {
		t.Fatal(err)
	}

	type result struct {
		n     int
		place *fair.Lease
	}

	order := make(chan result, 4)
	canceled, cancel := context.WithCancel(t.Context())
	for n, ctx := range []context.Context{t.Context(), canceled, t.Context(), t.Context()} {
		go func() {
			place, _ := b.acquire(ctx, fair.Key{Account: []string{"a", "a", "a", "b"}[n]})
			order <- result{n, place}
		}()

		pgtest.Eventually(t, "the request waits", func() bool { return b.places.Stats().Waiting == n+1 })
	}

	cancel()

	if got := <-order; got.n != 1 || got.place != nil {
		t.Errorf("got %+v, want the second request to give up", got)
	}

	for _, want := range []int{3, 0, 2} {
		place.Release()

		got := <-order
		if got.n != want {
			t.Errorf("got %d, want %d", got.n, want)
		}
		place = got.place
	}

	place.Release()

	if got := b.places.Stats(); got.InUse != 0 || got.Waiting != 0 || evicted.Load() == 0 {
		t.Errorf("got %+v, %d evicted, want none in use or waiting, and more than 0", got, evicted.Load())
	}
}

// TestConnectingLimit checks the limit of sessions established at a time, also if some
// fail.
func TestConnectingLimit(t *testing.T) {
	t.Parallel()

	const connections = 40
	server := newCluster(t, connections)
	b := newBudget(connections, func(fair.Key) bool { return false }, func(uint32) error { return nil })

	var open, beginning, most atomic.Int32
	connect := func(password string) error {
		c := server.PlatformConfig()
		c.Password = password
		dial := c.DialFunc

		c.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
			n := beginning.Add(1)
			for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
			}

			conn, err := dial(ctx, network, address)
			return observedConn{conn, sync.OnceFunc(func() { beginning.Add(-1) })}, err
		}

		b.attach(c, &open, func(context.Context) fair.Key { return fair.Key{} })
		connected := c.AfterConnect
		c.AfterConnect = func(ctx context.Context, conn *pgconn.PgConn) error {
			conn.Conn().(*slot).Conn.(observedConn).done() // before the budget is notified
			return connected(ctx, conn)
		}

		conn, err := pgx.ConnectConfig(t.Context(), c)
		if err != nil {
			return err
		}

		return conn.Close(t.Context())
	}

	var failures atomic.Int32
	var wg sync.WaitGroup
	for i := range connections {
		wg.Go(func() {
			password := server.PlatformConfig().Password
			if i%2 == 1 {
				password = "another"
			}

			if connect(password) != nil {
				failures.Add(1)
			}
		})
	}

	wg.Wait()

	if got, limit := most.Load(), int32(maxConnecting()); got > limit || got < 2 {
		t.Errorf("got %d sessions established at a time, want 2 to %d", got, limit)
	}
	if got := failures.Load(); got != connections/2 {
		t.Errorf("got %d failed connections, want %d", got, connections/2)
	}

	pgtest.Eventually(t, "no token is taken", func() bool { return b.starts.Stats().InUse == 0 })
}

// observedConn is a connection that reports that its session has begun, or never will.
type observedConn struct {
	net.Conn
	done func()
}

func (c observedConn) Close() error {
	c.done()
	return c.Conn.Close()
}
