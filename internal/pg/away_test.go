package pg_test

import (
	"context"
	"errors"
	"net"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/pgtest"
)

// TestIsAway: a connection that ends before COMMIT is answered, or before a pool hands it out,
// means that the database is away.
func TestIsAway(t *testing.T) {
	t.Parallel()

	config, err := pg.PoolConfig(pgtest.URL(t), 1)
	if err != nil {
		t.Fatal(err)
	}

	var current net.Conn
	dial := config.ConnConfig.DialFunc
	config.ConnConfig.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		if current != nil {
			return nil, errors.New("conn closed")
		}

		var err error
		current, err = dial(ctx, network, address)
		return current, err
	}

	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()

	err = pg.InTx(t.Context(), pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(t.Context(), "create table public.t ()"); err != nil {
			return err
		}

		return current.Close()
	})
	if code := fault.Of(err).CodeWord(); code != pg.OutcomeUnknown || !pg.IsAway(err) {
		t.Errorf("a lost COMMIT: got %q, away %t: %v", code, pg.IsAway(err), err)
	}

	conn, err := pg.Acquire(t.Context(), pool)
	if err == nil {
		conn.Release()
	}
	if !pg.IsAway(err) {
		t.Errorf("a pool without a connection: got %v, want that the database is away", err)
	}

	if err := fault.New(fault.Unavailable, "the storage is unavailable"); pg.IsAway(err) {
		t.Errorf("%v: got that the database is away", err)
	}
}
