package projectdb

import (
	"context"
	"testing"

	"github.com/socle-dev/socle/internal/pg"
)

// endless runs forever and traps its cancellation, as CHECK constraints and index expressions of a
// project can too.
const endless = `do $$ begin
	perform pg_advisory_lock(42);
	loop begin perform pg_sleep(3600); exception when query_canceled then null; end; end loop;
end $$`

// slotsInUse returns the number of slots in use of a budget of connections.
func slotsInUse(b *budget) int { return int(b.places.Stats().InUse) }

// TestAbandonedSession checks that a statement that traps its cancellation ends with its client,
// releases its locks, and keeps its slot in the budget until then.
func TestAbandonedSession(t *testing.T) {
	t.Parallel()

	r := newRegistry(t, 2)
	p := newProject(t, r)
	observer := connect(t, p, trusted)

	running := func() bool {
		return value[bool](t, observer,
			`select exists (select from pg_locks where locktype = 'advisory' and objid = 42 and database = (select oid from pg_database where datname = current_database()))`)
	}

	for _, pool := range []login{owner, request, service} {
		ctx, leave := context.WithCancel(t.Context())
		failed := make(chan error)
		go func() {
			_, err := pg.Exec(ctx, p.pool(pool), endless)
			failed <- err
		}()

		eventually(t, "the statement runs", running)
		leave()

		if err := <-failed; err == nil {
			t.Errorf("%s: an endless statement succeeded", pool)
		}

		if running() && slotsInUse(r.budget) == 0 {
			t.Errorf("%s: the session runs without a slot in the budget", pool)
		}

		eventually(t, "the session has ended", func() bool { return !running() })
		eventually(t, "its slot is free", func() bool { return slotsInUse(r.budget) == 0 })
	}
}
