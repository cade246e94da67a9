package projectdb

import (
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/pgtest"
)

// TestSessionsAreReset checks that the next user of a pooled connection finds nothing of user code
// that ran before. Packages rest and object reset the sessions of the other logins.
func TestSessionsAreReset(t *testing.T) {
	t.Parallel()

	p := newProject(t, newRegistry(t, 4))
	if _, err := pg.Exec(t.Context(), p.Owner(), pgtest.LitterSQL+"; grant usage on schema public to public",
		pgx.QueryExecModeSimpleProtocol); err != nil {
		t.Fatal(err)
	}

	for _, login := range []login{owner, auth} {
		config := p.pool(login).Config()
		config.MaxConns = 1

		pool, err := pgxpool.NewWithConfig(t.Context(), config)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(pool.Close)

		value[bool](t, pool, `select public.litter()`)
		if left := value[string](t, pool, `select public.leftovers()`); left != pgtest.NoLeftovers {
			t.Errorf("%s: got the leftovers %q, want none", login, left)
		}
		if n := pool.Stat().NewConnsCount(); n != 1 {
			t.Errorf("%s: %d connections were opened, want 1", login, n)
		}
	}
}
