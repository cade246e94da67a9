package platform

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// newStore returns a store on a new platform database.
func newStore(t *testing.T) *Store {
	t.Helper()

	url := pgtest.Clone(t, "platform", func(ctx context.Context, url string) error {
		conn, err := pgx.Connect(ctx, url)
		if err != nil {
			return err
		}
		defer conn.Close(ctx)

		return Migrate(ctx, conn)
	})
	pool, err := pgxpool.New(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(pool.Close)
	return New(pool)
}

func exec(t *testing.T, s *Store, sql string, args ...any) int64 {
	t.Helper()

	n, err := pg.Exec(t.Context(), s.q, sql, args...)
	if err != nil {
		t.Fatal(err)
	}

	return n
}
