package pgtest

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/socle-dev/socle/internal/pg"
)

// patience is the time after which a condition counts as never met. It is long: tests also run
// beside other work, on a disk that others write to.
const patience = 3 * time.Minute

// Eventually polls until a condition holds, less often with time: a poll costs CPU time. After
// three minutes it fails the test and logs what the sessions of the test's PostgreSQL wait for.
func Eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()

	const maxPause = 100 * time.Millisecond
	deadline := time.After(patience)
	for pause := 5 * time.Millisecond; !holds(); pause = min(pause*3/2, maxPause) {
		select {
		case <-deadline:
			t.Log(sessions())
			t.Fatalf("timeout waiting for: %s", what)
		case <-time.After(pause):
		}
	}
}

// sessions describes the sessions of the test's PostgreSQL that run a statement or a transaction.
func sessions() string {
	c := started.Load()
	if c == nil || c.admin == nil {
		return "no PostgreSQL runs"
	}

	ctx, cancel := context.WithTimeout(context.Background(), stepTimeout)
	defer cancel()

	lines, err := pg.Values[string](ctx, c.admin, `
		select format('%s %s %s %s, waits for %s %s, blocked by %s, in a transaction since %s: %s',
			pid, datname, usename, state, wait_event_type, wait_event, pg_blocking_pids(pid), now() - xact_start, left(query, 200))
		from pg_stat_activity
		where pid <> pg_backend_pid() and (state <> 'idle' or backend_type <> 'client backend')
		order by xact_start`)
	if err != nil {
		return fmt.Sprintf("the sessions of PostgreSQL are unknown: %v", err)
	}

	return "sessions:\n" + strings.Join(lines, "\n")
}
