package queue

import (
	"context"
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/pgtest"
)

// TestOneLeader has two servers: the second leads as soon as the first has stopped, or the first's
// session has ended.
func TestOneLeader(t *testing.T) {
	t.Parallel()

	pool := newPool(t)
	servers := []*leadership{{pool: pool}, {pool: pool}}
	lead := func(server int) bool {
		t.Helper()

		leads, err := servers[server].acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}

		return leads
	}

	for range 2 {
		if !lead(0) {
			t.Fatal("the first server does not lead")
		}
	}
	if lead(1) {
		t.Fatal("two servers lead")
	}

	servers[0].resign(t.Context())
	pgtest.Eventually(t, "the second server leads once the first has resigned", func() bool { return lead(1) })

	if lead(0) {
		t.Fatal("two servers lead")
	}

	// The session of a killed server ends.
	terminated, err := pg.Value[bool](t.Context(), pool, `select pg_terminate_backend(@pid, 60000)`,
		pgx.StrictNamedArgs{"pid": servers[1].conn.PgConn().PID()})
	if err != nil || !terminated {
		t.Fatal(terminated, err)
	}

	if !lead(0) || lead(1) {
		t.Fatal("the first server does not lead once the second's session has ended")
	}

	servers[0].resign(t.Context())
}

// TestPeriodicWork runs two servers: one does the periodic work, and the other one after its stop.
func TestPeriodicWork(t *testing.T) {
	t.Parallel()

	pool := newPool(t)
	failed := errors.New("failed")
	work := make(chan *Queue, 20)
	newServer := func() *Queue {
		q := newQueue(t, pool)
		Register(q, noteOptions, func(context.Context, *Job[noteArgs]) error { return nil })

		q.SetPeriodic(Periodic{
			CleanUp: []func(context.Context) error{
				func(context.Context) error { return failed }, // does not stop the rest
				func(context.Context) error {
					work <- q
					return nil
				},
			},
			Sweep: []func(context.Context) error{func(context.Context) error { return failed }},
		})

		return q
	}

	first, second := newServer(), newServer()
	stopFirst := start(t, first)
	if got := receive(t, work, "the first server works"); got != first {
		t.Fatal("the second server works before it runs")
	}

	start(t, second)
	stopFirst()

	for receive(t, work, "the second server works") != second {
	}

	if err := first.CleanUp(t.Context()); !errors.Is(err, failed) {
		t.Errorf("got %v from the cleanup", err)
	}
	if err := first.Sweep(t.Context()); !errors.Is(err, failed) {
		t.Errorf("got %v from the sweep", err)
	}
}

// TestRescue finds jobs of servers without a worker lock twice in a row.
func TestRescue(t *testing.T) {
	t.Parallel()

	q := newQueue(t, newPool(t))
	alive := newQueue(t, q.Pool)

	ctx, cancel := context.WithCancel(t.Context())
	locked, unlocked := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(unlocked)

		alive.keepWorkerLock(ctx, locked)
	}()

	receive(t, locked, "the worker lock is held")

	job := func(worker string, attempts int) (id int64) {
		t.Helper()

		id, err := pg.Value[int64](t.Context(), q.Pool, `
			insert into river.river_job (kind, queue, args, state, attempt, max_attempts, attempted_at, attempted_by)
			values ('note', 'notes', '{}', 'running', 1, @attempts, now(), array[@worker]) returning id`,
			pgx.StrictNamedArgs{"worker": worker, "attempts": attempts})
		if err != nil {
			t.Fatal(err)
		}

		return id
	}

	retried, over, worked := job(workerPrefix+"gone", 2), job(workerPrefix+"gone", 1), job(alive.id, 2)
	states := func(want ...string) {
		t.Helper()

		for i, id := range []int64{retried, over, worked} {
			got, err := pg.Value[string](t.Context(), q.Pool, `select state::text from river.river_job where id = @id`,
				pgx.StrictNamedArgs{"id": id})
			if err != nil || got != want[i] {
				t.Errorf("got state %s, %v of job %d, want %s", got, err, i, want[i])
			}
		}
	}

	cleanUp := func() {
		t.Helper()

		if err := q.CleanUp(t.Context()); err != nil {
			t.Fatal(err)
		}
	}

	cleanUp()
	states("running", "running", "running")
	cleanUp()
	states("available", "discarded", "running")

	cancel()
	receive(t, unlocked, "the worker lock is released")
	pgtest.Eventually(t, "the jobs of the second server are rescued", func() bool {
		cleanUp()

		state, err := pg.Value[string](t.Context(), q.Pool, `select state::text from river.river_job where id = @id`,
			pgx.StrictNamedArgs{"id": worked})
		return err == nil && state == "available"
	})
}
