package lifecycle_test

import (
	"context"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/pgtest"
	"github.com/socle-dev/socle/internal/projectdb"
	"github.com/socle-dev/socle/internal/projectdb/projectdbtest"
)

// TestWatchdog fills the lock table of the server from one project. The session is terminated with
// the reason, and another project keeps working. It is not parallel: other tests need locks too.
func TestWatchdog(t *testing.T) {
	r := projectdbtest.NewRegistry(t, 8)
	p, bystander := projectdbtest.NewIn(t, r), projectdbtest.NewIn(t, r)
	ctx, stop := context.WithCancel(t.Context())
	stopped := make(chan error)

	go func() { stopped <- r.Watch(ctx) }()

	defer func() {
		stop()
		if err := <-stopped; err != nil {
			t.Error(err)
		}
	}()

	pgtest.Eventually(t, "the watchdog checks the sessions", p.Cluster().WatchdogAlive)
	r.ResetPools(p.UUID) // the session begins after that check

	_, err := pg.Exec(t.Context(), p.Owner(),
		`select pg_advisory_lock(n), case when n = 12000 then pg_sleep(3600) end from generate_series(1, 12000) n`)
	if f := fault.Of(err); f.Kind != fault.Unprocessable || f.CodeWord() != "session_ended" ||
		!strings.Contains(f.Detail, "more than 8000 locks") {
		t.Errorf("12,000 locks: got %v", err)
	}

	pgtest.Eventually(t, "its locks are gone", func() bool {
		return pgtest.Value[bool](t, bystander.Trusted(),
			`select not exists (select from pg_locks l join pg_database d on d.oid = l.database where l.locktype = 'advisory' and d.datname = $1)`, p.Cluster().Database(p.UUID))
	})

	for _, each := range []*projectdb.Project{p, bystander} {
		for _, pool := range []*pgxpool.Pool{each.Owner(), each.Request(), each.Service()} {
			pgtest.Value[int](t, pool, "select 1")
		}
	}

	if !p.Cluster().WatchdogAlive() {
		t.Error("the watchdog is not alive")
	}
}
