package projectdb_test

import (
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/pgtest"
	"github.com/socle-dev/socle/internal/projectdb/projectdbtest"
)

// TestSessionsAreReset checks that the next user of a pooled connection finds nothing of user code
// that ran before. Packages rest and object reset the sessions of the other logins.
func TestSessionsAreReset(t *testing.T) {
	t.Parallel()

	p := projectdbtest.NewIn(t, projectdbtest.NewRegistry(t, 4))
	if _, err := pg.Exec(t.Context(), p.Owner(), pgtest.LitterSQL+"; grant usage on schema public to public",
		pgx.QueryExecModeSimpleProtocol); err != nil {
		t.Fatal(err)
	}

	for login, pool := range map[string]*pgxpool.Pool{"owner": p.Owner(), "auth": p.EndUsers()} {
		config := pool.Config()
		config.MaxConns = 1

		pool, err := pgxpool.NewWithConfig(t.Context(), config)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(pool.Close)

		pgtest.Value[bool](t, pool, `select public.litter()`)
		if left := pgtest.Value[string](t, pool, `select public.leftovers()`); left != pgtest.NoLeftovers {
			t.Errorf("%s: got the leftovers %q, want none", login, left)
		}
		if n := pool.Stat().NewConnsCount(); n != 1 {
			t.Errorf("%s: %d connections were opened, want 1", login, n)
		}
	}
}
