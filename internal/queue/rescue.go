package queue

import (
	"context"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/tick"
)

// A killed server leaves its jobs in state running. Each server therefore holds an advisory lock in
// the platform database while it works, on a dedicated connection, so that the lock ends with the
// server. rescue requeues the jobs of workers without a lock.

// workerPrefix marks the names of workers that hold such a lock.
const workerPrefix = "socle-"

// workerLockKey is @worker's advisory lock key.
const workerLockKey = `hashtextextended('worker ' || @worker::text, 0)`

// relockDelay is the pause before a lost lock is acquired again.
const relockDelay = time.Second

// absenceTimeout is how long a server may lack its lock before it counts as cut off from the queue,
// and its jobs are canceled.
const absenceTimeout = 5 * time.Second

// keepWorkerLock holds the worker lock until ctx ends, and reconnects when the connection is lost.
// It closes ready when it first acquires the lock.
func (q *Queue) keepWorkerLock(ctx context.Context, ready chan<- struct{}) {
	notify := sync.OnceFunc(func() { close(ready) })
	for {
		err := q.holdWorkerLock(ctx, notify)

		if ctx.Err() != nil {
			return
		}

		q.unlockedSince.CompareAndSwap(0, time.Now().UnixNano())
		q.lease.lose()
		q.Log.Warn("worker lock lost, reconnecting", "error", err)

		if tick.Pause(ctx, relockDelay) != nil {
			return
		}
	}
}

// Alive reports whether this server holds its worker lock, or lost it less than absenceTimeout ago.
func (q *Queue) Alive() bool {
	since := q.unlockedSince.Load()
	return since == 0 || time.Since(time.Unix(0, since)) < absenceTimeout
}

// holdWorkerLock acquires the worker lock, calls onAcquire, and blocks until the connection is lost
// or ctx ends.
func (q *Queue) holdWorkerLock(ctx context.Context, onAcquire func()) error {
	conn, err := pgx.ConnectConfig(ctx, q.Pool.Config().ConnConfig.Copy())
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))

	if _, err := pg.Exec(ctx, conn, `select pg_advisory_lock(`+workerLockKey+`)`,
		pgx.StrictNamedArgs{"worker": q.id}); err != nil {
		return err
	}

	q.unlockedSince.Store(0)
	q.lease.renew()
	onAcquire()
	_, err = pg.WaitForNotification(ctx, conn) // nothing is listened to: it blocks until the connection ends
	return err
}

// SelectWorking selects the jobs whose server holds its worker lock.
const SelectWorking = `
	select j.id
	from river.river_job j
	join pg_locks l on l.locktype = 'advisory' and l.granted and l.objsubid = 1
		and l.database = (select oid from pg_database where datname = current_database())
		and (l.classid::bigint << 32 | l.objid::bigint) =
			hashtextextended('worker ' || j.attempted_by[array_upper(j.attempted_by, 1)], 0)
	where j.state = 'running'`

// suspects are the jobs whose worker lacked its lock in the previous round.
type suspects struct {
	mu   sync.Mutex
	jobs map[int64]bool
}

// rescue requeues the jobs of dead workers, and discards those without attempts left. A worker
// counts as dead if it lacks its lock in two consecutive rounds, since a connection can break while
// its server lives.
func (q *Queue) rescue(ctx context.Context) error {
	q.suspects.mu.Lock()
	defer q.suspects.mu.Unlock()

	running, err := pg.Values[int64](ctx, q.Pool, `
		select j.id
		from (select id, attempted_at, attempted_by[array_upper(attempted_by, 1)] as worker from river.river_job where state = 'running') j
		where case when starts_with(j.worker, @name) then not exists (
				select from pg_locks l
				where l.locktype = 'advisory' and l.granted and l.objsubid = 1
				  and l.database = (select oid from pg_database where datname = current_database())
				  and (l.classid::bigint << 32 | l.objid::bigint) = hashtextextended('worker ' || j.worker, 0))
			else j.attempted_at < now() - interval '1 hour' end`, // inserted by a release without worker locks
		pgx.StrictNamedArgs{"name": workerPrefix})
	if err != nil {
		return err
	}

	var orphans []int64
	missing := map[int64]bool{}
	for _, id := range running {
		if missing[id] = true; q.suspects.jobs[id] {
			orphans = append(orphans, id)
		}
	}

	q.suspects.jobs = missing

	if len(orphans) == 0 {
		return nil
	}

	n, err := pg.Exec(ctx, q.Pool, `
		update river.river_job
		set state = case when attempt < max_attempts then 'available'::river.river_job_state else 'discarded' end,
		    finalized_at = case when attempt < max_attempts then null else now() end,
		    scheduled_at = now(),
		    errors = array_append(errors, jsonb_build_object('at', now(), 'attempt', attempt, 'error', 'the server stopped', 'trace', ''))
		where id = any(@jobs) and state = 'running'`, pgx.StrictNamedArgs{"jobs": orphans})
	if n > 0 {
		q.Log.Warn("rescued jobs of stopped servers", "jobs", n)
	}

	return err
}
