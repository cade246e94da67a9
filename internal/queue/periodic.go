package queue

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/tick"
)

const (
	cleanUpInterval = 10 * time.Second
	sweepInterval   = 6 * time.Hour
	firstSweepDelay = 10 * time.Minute // after a start, so that a frequently restarted server sweeps too
	leaderTimeout   = 5 * time.Second  // for a round trip on the leader's connection
)

// Periodic is an install's periodic work. One server at a time does it, the leader. Another server
// may repeat the work, since a leader can die while it works.
type Periodic struct {
	CleanUp []func(context.Context) error // every 10 seconds: finishes interrupted work, starts due work
	// Sweep removes expired data and orphans, ten minutes after a start and then every six hours.
	Sweep []func(context.Context) error
}

// SetPeriodic sets the periodic work, before [Queue.Run].
func (q *Queue) SetPeriodic(p Periodic) { q.periodic = p }

// CleanUp rescues jobs from stopped servers, and does the frequent periodic work.
func (q *Queue) CleanUp(ctx context.Context) error {
	return errors.Join(q.rescue(ctx), runAll(ctx, q.periodic.CleanUp))
}

// Sweep does the rare periodic work.
func (q *Queue) Sweep(ctx context.Context) error { return runAll(ctx, q.periodic.Sweep) }

// runAll runs all functions, also after one has failed.
func runAll(ctx context.Context, all []func(context.Context) error) error {
	errs := make([]error, len(all))
	for i, f := range all {
		errs[i] = f(ctx)
	}

	return errors.Join(errs...)
}

// runPeriodic does the periodic work while this server leads, until ctx ends. A sweep runs beside
// the cleanup, which it would delay by minutes in a large install.
func (q *Queue) runPeriodic(ctx context.Context) {
	l := leadership{pool: q.Pool}
	defer l.resign(ctx)

	var sweeps sync.WaitGroup
	defer sweeps.Wait()

	var sweeping sync.Mutex
	nextSweep := time.Now().Add(firstSweepDelay)
	for range tick.Poll(ctx, cleanUpInterval) {
		leads, err := l.acquire(ctx)
		q.logFailure(ctx, "elect leader", err)

		if leads && time.Now().After(nextSweep) && sweeping.TryLock() {
			nextSweep = time.Now().Add(sweepInterval)
			sweeps.Go(func() {
				defer sweeping.Unlock()

				q.logFailure(ctx, "sweep", q.Sweep(ctx))
			})
		}

		if leads {
			q.logFailure(ctx, "clean up", q.CleanUp(ctx))
		}
	}
}

func (q *Queue) logFailure(ctx context.Context, work string, err error) {
	if err != nil && ctx.Err() == nil {
		q.Log.Error(work, "error", err)
	}
}

// leadership is the leader's advisory lock. The lock ends with its session, so the next server to
// ask has it within one interval after the leader died. River elects a leader too, but replaces a
// killed one only after 20 seconds.
type leadership struct {
	pool *pgxpool.Pool
	conn *pgx.Conn // has the lock; nil: another server leads
}

// acquire acquires the lock if it is free, and reports whether this server has it.
func (l *leadership) acquire(ctx context.Context) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, leaderTimeout)
	defer cancel()

	if l.conn != nil && l.conn.Ping(ctx) == nil {
		return true, nil
	}

	l.resign(ctx)

	conn, err := pg.Acquire(ctx, l.pool)
	if err != nil {
		return false, err
	}

	leads, err := pg.Value[bool](ctx, conn, `select pg_try_advisory_lock(hashtextextended('socle periodic work', 0))`)
	if err != nil || !leads {
		conn.Release()
		return false, err
	}

	l.conn = pg.Hijack(conn)

	// Keepalives end the session if the leader's machine is gone.
	_, err = l.conn.Exec(ctx, `
		set tcp_keepalives_idle = 10; set tcp_keepalives_interval = 5; set tcp_keepalives_count = 3`)
	return true, err
}

// resign releases the lock.
func (l *leadership) resign(ctx context.Context) {
	if l.conn == nil {
		return
	}

	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaderTimeout)
	defer cancel()

	_ = l.conn.Close(ctx) // the lock ends with the session in any case
	l.conn = nil
}
