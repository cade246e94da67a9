package platform

import (
	"context"
	"errors"
	"testing"

	"github.com/socle-dev/socle/internal/audit"
	"github.com/socle-dev/socle/internal/pg"
)

// TestTx checks that a transaction and the savepoints in it write one audit entry together, and a
// rolled-back one none.
func TestTx(t *testing.T) {
	t.Parallel()

	s := newStore(t)
	entries := func() int64 {
		t.Helper()

		position, err := s.AuditPosition(t.Context())
		if err != nil {
			t.Fatal(err)
		}

		return position.Entries
	}
	begin := func() context.Context {
		return audit.Begin(t.Context(), []byte("key"), audit.Entry{Action: "test", Actor: "tester"})
	}

	ctx := begin()
	got, err := pg.InTxValue(ctx, s.DB().InTx, func(tx *DB) (int, error) {
		if tx.PgxTx() == nil {
			t.Error("the handle has no transaction")
		}

		return pg.InTxValue(ctx, tx.InTx, func(tx *DB) (int, error) {
			return pg.Value[int](ctx, tx.Querier(), `select 7`)
		})
	})
	if err != nil || got != 7 || entries() != 1 {
		t.Errorf("nested transactions: got %d, %v and %d entries, want 7 and 1 entry", got, err, entries())
	}

	failure := errors.New("failure")
	if err := s.DB().InTx(begin(), func(*DB) error { return failure }); !errors.Is(err, failure) || entries() != 1 {
		t.Errorf("failed transaction: got %v and %d entries, want %v and 1 entry", err, entries(), failure)
	}
}

// TestWithLock checks that a lock has one holder at a time.
func TestWithLock(t *testing.T) {
	t.Parallel()

	db := newStore(t).DB()
	outer, err := db.WithLock(t.Context(), pg.LockTry, 1, func() error {
		inner, err := db.WithLock(t.Context(), pg.LockTry, 1, func() error { return nil })
		if err != nil || inner {
			t.Errorf("lock held by another connection: got %v, %v, want false", inner, err)
		}

		return nil
	})
	if err != nil || !outer {
		t.Errorf("free lock: got %v, %v, want true", outer, err)
	}
}
