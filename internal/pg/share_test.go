package pg_test

import (
	"context"
	"runtime"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/socle-dev/socle/internal/fair"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/pgtest"
)

type accountKey struct{}

// connectShared opens a pool with shared places. as returns a context of an account.
func connectShared(t *testing.T, size int32, c fair.Config) (
	pool *pgxpool.Pool, places *fair.Pool, as func(account string) context.Context,
) {
	t.Helper()

	config, err := pg.PoolConfig(pgtest.URL(t), size)
	if err != nil {
		t.Fatal(err)
	}

	c.Capacity = int64(size)
	places = fair.New(c)
	pg.Share(config, places, func(ctx context.Context) fair.Key {
		account, _ := ctx.Value(accountKey{}).(string)
		return fair.Key{Account: account}
	})

	if pool, err = pgxpool.NewWithConfig(t.Context(), config); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)

	return pool, places, func(account string) context.Context {
		return context.WithValue(t.Context(), accountKey{}, account)
	}
}

// TestShare: a free connection goes to the account that holds none, before those of an account that
// waited earlier.
func TestShare(t *testing.T) {
	t.Parallel()

	const waiting = 3
	pool, places, as := connectShared(t, 2, fair.Config{Waiting: 10})

	var held []*pgxpool.Conn
	for range 2 {
		conn, err := pg.Acquire(as("greedy"), pool)
		if err != nil {
			t.Fatal(err)
		}
		held = append(held, conn)
	}

	served := make(chan string, waiting+1)
	wait := func(account string, position int) {
		go func() {
			account, err := pg.Value[string](as(account), pool, `select $1::text`, account)
			if err != nil {
				account = err.Error()
			}
			served <- account
		}()
		for places.Stats().Waiting < position {
			runtime.Gosched()
		}
	}
	for i := range waiting {
		wait("greedy", i+1)
	}
	wait("other", waiting+1)

	held[0].Release()
	if got := <-served; got != "other" {
		t.Errorf("the first account with a connection: got %q, want the other", got)
	}

	held[1].Release()
	for range waiting {
		if got := <-served; got != "greedy" {
			t.Errorf("got %q, want a connection of the greedy account", got)
		}
	}
}

// TestShareReturnsPlaces: every end of a use returns its place.
func TestShareReturnsPlaces(t *testing.T) {
	t.Parallel()

	pool, places, as := connectShared(t, 1, fair.Config{})
	conn, err := pg.Acquire(as("a"), pool)
	if err != nil {
		t.Fatal(err)
	}

	if _, err := pg.Exec(as("b"), pool, `select 1`); !fault.Is(err, fault.Unavailable) {
		t.Errorf("a statement without a place: got %v, want Unavailable", err)
	}

	_ = conn.Conn().Close(t.Context())
	conn.Release()

	ended, cancel := context.WithCancel(as("a"))
	cancel()
	if _, err := pg.Exec(ended, pool, `select 1`); err == nil {
		t.Error("a statement of a context that has ended: got no error")
	}
	if _, err := pg.Exec(as("a"), pool, `select 1 / 0`); err == nil {
		t.Error("a failing statement: got no error")
	}

	if conn, err = pg.Acquire(as("a"), pool); err != nil {
		t.Fatal(err)
	}

	hijacked := pg.Hijack(conn)
	defer hijacked.Close(t.Context())

	if _, err := pg.Exec(as("b"), pool, `select 1`); err != nil {
		t.Errorf("beside a hijacked connection: %v", err)
	}
	if got := places.Stats().InUse; got != 0 {
		t.Errorf("got %d places in use, want 0", got)
	}
}
