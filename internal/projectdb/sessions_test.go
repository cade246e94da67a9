package projectdb_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/pgcluster"
	"github.com/socle-dev/socle/internal/pgtest"
	"github.com/socle-dev/socle/internal/projectdb/projectdbtest"
)

// endless runs forever and traps its cancellation, as CHECK constraints and index expressions of a
// project can too.
const endless = `do $$ begin
	perform pg_advisory_lock(42);
	loop begin perform pg_sleep(3600); exception when query_canceled then null; end; end loop;
end $$`

// TestAbandonedSession checks that a statement that traps its cancellation ends with its client,
// releases its locks, and keeps its slot in the budget until then.
func TestAbandonedSession(t *testing.T) {
	t.Parallel()

	r := projectdbtest.NewRegistry(t, 2)
	p := projectdbtest.NewIn(t, r)
	observer := projectdbtest.Connect(t, p, pgcluster.Trusted)

	running := func() bool {
		return pgtest.Value[bool](t, observer,
			`select exists (select from pg_locks where locktype = 'advisory' and objid = 42 and database = (select oid from pg_database where datname = current_database()))`)
	}

	for name, pool := range map[string]*pgxpool.Pool{
		"owner": p.Owner(), "request": p.Request(), "service": p.Service(),
	} {
		ctx, leave := context.WithCancel(t.Context())
		failed := make(chan error)
		go func() {
			_, err := pg.Exec(ctx, pool, endless)
			failed <- err
		}()

		pgtest.Eventually(t, "the statement runs", running)
		leave()

		if err := <-failed; err == nil {
			t.Errorf("%s: an endless statement succeeded", name)
		}

		if running() && slotsInUse(r) == 0 {
			t.Errorf("%s: the session runs without a slot in the budget", name)
		}

		pgtest.Eventually(t, "the session has ended", func() bool { return !running() })
		pgtest.Eventually(t, "its slot is free", func() bool { return slotsInUse(r) == 0 })
	}
}
