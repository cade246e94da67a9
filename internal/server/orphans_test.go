package server_test

import (
	"sync"
	"syscall"
	"testing"

	"github.com/google/uuid"
)

// TestKilledServersSessions kills the server while user code that catches cancellation runs. The
// next start must end that session first.
func TestKilledServersSessions(t *testing.T) {
	t.Parallel()

	p, c := startInstalled(t)
	b := p.inspect(t)
	running := func() bool {
		return len(
			b.values(`select pid::text from pg_stat_activity where datname = $1 and wait_event = 'PgSleep'`,
				b.registry.Database(uuid.MustParse(c.project))),
		) > 0
	}

	var lost sync.WaitGroup
	lost.Go(func() {
		c.send(t, "POST", "/sql",
			`{"query": "do $$ begin loop begin perform pg_sleep(3600); exception when query_canceled then null; end; end loop; end $$", "read_only": false, "timeout_ms": 30000}`)
	})

	eventually(t, "the statement runs", running)
	p.signal(syscall.SIGKILL)
	p.wait()
	lost.Wait()

	if !running() {
		t.Fatal("the statement ended with the server: there is nothing to end")
	}

	p = serve(t, p.dir)

	if running() {
		t.Error("the server is ready, and the statement runs on")
	}

	c.at(p).want(t, 200, "POST", "/sql", `{"query": "select 1"}`)
	b.close()
}
