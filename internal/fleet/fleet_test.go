package fleet

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/pgtest"
	"github.com/socle-dev/socle/internal/platform"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// TestDivide adds up the shares of all servers.
func TestDivide(t *testing.T) {
	t.Parallel()

	if got, want := Divide(97, 1, true), (Share{1, 20, 29}); got != want {
		t.Errorf("got %+v of 97 connections, want %+v", got, want)
	}
	if got, want := Divide(197, 1, false), (Share{1, 20, 159}); got != want {
		t.Errorf("got %+v of 197 connections of our own, want %+v", got, want)
	}

	for accepted := 20; accepted < 2000; accepted += 7 {
		for servers := 1; servers <= 12; servers++ {
			share := Divide(accepted, servers, false)
			all := servers * (share.Connections() + beside(servers))
			if all > accepted && Least(servers) <= accepted {
				t.Errorf("%d servers open %d of %d connections", servers, all, accepted)
			}
			if share.Platform < minPlatform || share.Projects < minProjects {
				t.Errorf("%d servers and %d connections: got %+v, less than the least", servers, accepted, share)
			}
		}
	}
}

// TestWithin has a share wait for connections that others still claim.
func TestWithin(t *testing.T) {
	t.Parallel()

	share := Share{2, 16, 40}
	for left, want := range map[int]Share{
		100: share, 56: share, 50: {2, 16, 34}, 18: {2, 14, 4}, 10: {2, 10, 4}, -5: {2, 10, 4},
	} {
		if got := share.within(left); got != want {
			t.Errorf("%d left: got %+v, want %+v", left, got, want)
		}
	}
}

// install returns a platform database.
func install(t *testing.T) *pgxpool.Pool {
	t.Helper()

	url := pgtest.Clone(t, "platform", func(ctx context.Context, url string) error {
		conn, err := pgx.Connect(ctx, url)
		if err != nil {
			return err
		}
		defer conn.Close(ctx)

		return platform.Migrate(ctx, conn)
	})
	pool, err := pgxpool.New(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)

	return pool
}

// node is a server that uses all connections that it may.
type node struct {
	*Divider
	share atomic.Pointer[Share]
	busy  atomic.Int64 // connections in use, which it can't close
	open  atomic.Int64
	stop  func()
}

func start(t *testing.T, pool *pgxpool.Pool, accepted int) *node {
	t.Helper()

	log := slog.New(slog.DiscardHandler)
	notifications := pg.NewListener(pool.Config().ConnConfig, log)
	n := &node{}
	n.Divider = &Divider{Accepted: accepted, IsShared: true,
		Servers: New(Config{Platform: pool, Notifications: notifications, Log: log}),
		Apply: func(_ context.Context, s Share) int {
			n.share.Store(&s)
			n.open.Store(max(int64(s.Connections()), n.busy.Load()))
			return int(n.open.Load())
		}}

	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	var wg sync.WaitGroup
	wg.Go(func() { _ = notifications.Run(ctx) })
	wg.Go(func() { _ = n.Run(ctx) })
	n.stop = sync.OnceFunc(func() { cancel(); wg.Wait() })
	t.Cleanup(n.stop)

	return n
}

// settle waits until all servers have the share of so many.
func settle(t *testing.T, accepted int, nodes ...*node) {
	t.Helper()

	want := Divide(accepted, len(nodes), true)
	pgtest.Eventually(t, "the connections are divided", func() bool {
		for _, n := range nodes {
			if got := n.share.Load(); got == nil || *got != want {
				return false
			}
		}

		return true
	})
}

// TestClaims has servers come and go. A server that can't close its connections keeps its claim,
// and the others take no more than it leaves.
func TestClaims(t *testing.T) {
	t.Parallel()

	const accepted = 100
	pool := install(t)
	first := start(t, pool, accepted)
	settle(t, accepted, first)

	first.busy.Store(first.open.Load())
	second := start(t, pool, accepted)
	pgtest.Eventually(t, "the second server has claimed", func() bool { return second.share.Load() != nil })
	pgtest.Eventually(t, "the first server knows of it", func() bool { return first.share.Load().Servers == 2 })

	all := first.open.Load() + second.open.Load() + 2*int64(beside(2))
	if all > accepted {
		t.Errorf("the servers have %d connections open, PostgreSQL accepts %d", all, accepted)
	}
	if got, want := *second.share.Load(), (Share{2, 12, 11}); got != want {
		t.Errorf("got %+v beside a server that gives nothing up, want %+v", got, want)
	}

	first.busy.Store(0)
	first.Servers.claimed <- struct{}{} // instead of its next look
	settle(t, accepted, first, second)

	third := start(t, pool, accepted)
	settle(t, accepted, first, second, third)
	if n, err := Running(t.Context(), pool); n != 3 || err != nil {
		t.Errorf("got %d servers, %v, want 3", n, err)
	}

	second.stop()
	pgtest.Eventually(t, "its session has ended", func() bool {
		n, err := Running(t.Context(), pool)
		return err == nil && n == 2
	})
	first.Servers.claimed <- struct{}{} // instead of its next look, as above
	third.Servers.claimed <- struct{}{}
	settle(t, accepted, first, third)
}

// TestEarlierRelease counts a server without a claim as one with its share.
func TestEarlierRelease(t *testing.T) {
	t.Parallel()

	d := &Divider{Accepted: 197}
	share := Divide(197, 2, false)
	if got := d.among([]Server{{}}); got != share {
		t.Errorf("got %+v beside a server of an earlier release, want %+v", got, share)
	}

	claim := 150
	if got := d.among([]Server{{Connections: &claim}}); got.Connections() != 197-2*beside(2)-claim {
		t.Errorf("got %+v beside a claim of %d", got, claim)
	}
}

// TestFirst starts a server beside others with the least.
func TestFirst(t *testing.T) {
	t.Parallel()

	if got := First(97, 0, true); got != Divide(97, 1, true) {
		t.Errorf("got %+v for a server alone", got)
	}
	if got, want := First(97, 2, true), (Share{3, minPlatform, minProjects}); got != want {
		t.Errorf("got %+v beside two, want %+v", got, want)
	}
}
