package backup

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/queue"
	"github.com/socle-dev/socle/internal/tick"
)

// Status is a backup's or restore's state. Both are pending until a worker starts them, and then
// running, with a heartbeat. A backup that has to be retried is pending again. The end is completed
// or failed. A deleted backup is deleting until its bytes are removed, and its row then.
type Status string

// States.
const (
	Pending   Status = "pending"
	Running   Status = "running"
	Completed Status = "completed"
	Failed    Status = "failed"
	Deleting  Status = "deleting"
)

// Unfinished reports whether the work is still to be done or in progress.
func (s Status) Unfinished() bool { return s == Pending || s == Running }

// tasks are rows that stand for asynchronous work: backups and restores.
type tasks[T any] struct {
	kind string // noun for messages

	q              pg.Querier
	table, columns string
}

// backupTasks returns the backups as tasks.
func (s *store) backupTasks() tasks[Backup] {
	return tasks[Backup]{"backup", s.q, "platform.backups", backupColumns}
}

// restoreTasks returns the restores as tasks.
func (s *store) restoreTasks() tasks[Restore] {
	return tasks[Restore]{"restore", s.q, "platform.restores", restoreColumns}
}

// start sets a pending task to running, for the first time or as a retry. It fails with NotFound if
// the task is not pending.
func (t tasks[T]) start(ctx context.Context, id uuid.UUID) (T, error) {
	return pg.One[T](ctx, t.q, `
		update `+t.table+` set status = 'running', started_at = coalesce(started_at, now()), heartbeat_at = now()
		where uuid = @id and status = 'pending'
		returning`+t.columns, pgx.StrictNamedArgs{"id": id})
}

// heartbeat records a running task's heartbeat. It fails with NotFound if the task is not running
// any more.
func (t tasks[T]) heartbeat(ctx context.Context, id uuid.UUID) error {
	_, err := pg.Value[uuid.UUID](ctx, t.q, `
		update `+t.table+` set heartbeat_at = now() where uuid = @id and status = 'running' returning uuid`,
		pgx.StrictNamedArgs{"id": id})
	return err
}

// unfinished returns a pending or running task. It fails with NotFound if the task has ended.
func (t tasks[T]) unfinished(ctx context.Context, id uuid.UUID) (T, error) {
	return pg.One[T](ctx, t.q,
		`select`+t.columns+`from `+t.table+` where uuid = @id and status in ('pending', 'running')`,
		pgx.StrictNamedArgs{"id": id})
}

// hold renews the heartbeat of a pending task, or of a running one that is mine or whose heartbeat
// has stopped. It returns the task's status and the time since its first start. It fails with
// NotFound if the task is neither.
func (t tasks[T]) hold(ctx context.Context, id uuid.UUID, mine bool) (Status, time.Duration, error) {
	held, err := pg.One[struct {
		Status Status
		Age    float64 // seconds
	}](ctx, t.q, `
		update `+t.table+` set heartbeat_at = now()
		where uuid = @id and (status = 'pending'
			or status = 'running' and (@mine or heartbeat_at < now() - @silence::interval))
		returning status, extract(epoch from now() - coalesce(started_at, now()))::float8 as age`,
		pgx.StrictNamedArgs{"id": id, "mine": mine, "silence": HeartbeatTimeout})
	return held.Status, time.Duration(held.Age * float64(time.Second)), err
}

// beat returns a running task's heartbeat. It fails with NotFound if the task is not running.
func (t tasks[T]) beat(ctx context.Context, id uuid.UUID) (time.Time, error) {
	return pg.Value[time.Time](ctx, t.q, `
		select heartbeat_at from `+t.table+` where uuid = @id and status = 'running'`,
		pgx.StrictNamedArgs{"id": id})
}

// fail sets an unfinished task to failed. reason is for users. It reports false if the task has
// already ended, and changes nothing then.
func (t tasks[T]) fail(ctx context.Context, id uuid.UUID, reason string) (bool, error) {
	n, err := pg.Exec(ctx, t.q, `
		update `+t.table+` set status = 'failed', completed_at = now(), error = @reason
		where uuid = @id and status in ('pending', 'running')`,
		pgx.StrictNamedArgs{"id": id, "reason": reason})
	return n > 0, err
}

const (
	// HeartbeatTimeout is how long a running task may go without a heartbeat before it is marked
	// failed.
	HeartbeatTimeout = 20 * time.Second

	finishTimeout = 10 * time.Second // timeout for recording the result after the worker was told to stop
)

// task defines how one kind of task runs.
type task[T any] struct {
	rows tasks[T]

	// run ends by marking the task completed.
	run     func(ctx context.Context, t T) error
	reason  func(ctx context.Context, err error) string // explains a failure to the user
	clear   func(ctx context.Context, t T) error        // removes leftovers, so that it can run again
	pend    func(ctx context.Context, id uuid.UUID, from Status) error
	abandon func(ctx context.Context, t T, reason string) error // removes leftovers and marks the task failed
}

// runTask claims a pending task, runs it and returns it. It returns a *[RetryError] if the task
// should run again, and does nothing if the task is not pending. The error is for the log.
func runTask[T any](ctx context.Context, s *Service, k task[T], id uuid.UUID) (T, error) {
	t, err := k.rows.start(ctx, id)
	switch {
	case err != nil && isOutage(ctx, err): // it may have been started, here or by another server
		i := interrupted[T]{task: k, id: id, cause: err}
		return t, s.awaitOutage(ctx, err, i.retry)
	case err != nil:
		return t, fault.Ignore(err, fault.NotFound)
	}

	runCtx, cancelRun := context.WithCancel(ctx)
	defer cancelRun()

	go s.heartbeat(runCtx, cancelRun, func(ctx context.Context) error { return k.rows.heartbeat(ctx, id) })

	if err = k.run(runCtx, t); err == nil {
		return t, nil
	}

	cancelRun()

	i := interrupted[T]{task: k, id: id, cause: err, mine: true}
	if _, ok := errors.AsType[*RetryError](err); !ok && isOutage(ctx, err) {
		err = s.awaitOutage(ctx, err, i.retry)
	}
	if _, ok := errors.AsType[*RetryError](err); ok || !i.mine {
		return t, err
	}

	finishCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), finishTimeout)
	defer cancel()

	return t, errors.Join(fmt.Errorf("%s %s: %w", k.rows.kind, id, err), k.abandon(finishCtx, t, k.reason(ctx, err)))
}

// heartbeat sends heartbeats until ctx ends. It stops the work if the task has been abandoned.
func (s *Service) heartbeat(ctx context.Context, stop context.CancelFunc, send func(context.Context) error) {
	for range tick.Every(ctx, HeartbeatTimeout/5) {
		switch err := send(ctx); {
		case fault.Is(err, fault.NotFound):
			stop()
			return
		case err != nil && ctx.Err() == nil:
			s.Log.Warn("send heartbeat", "error", err)
		}
	}
}

// FailAbandoned fails abandoned tasks: running ones without a heartbeat in two consecutive rounds,
// and pending ones without a job. A server whose lock exists is alive: it had no database for its
// heartbeats, and decides itself how its tasks go on. A pending task whose job was taken or has
// ended gets another one: an outage has kept the server from learning of it.
func (s *Service) FailAbandoned(ctx context.Context) error {
	type row struct {
		Kind   string
		Status Status
		UUID   uuid.UUID

		ProjectUUID uuid.UUID
		LostJob     bool
	}

	tasks, err := pg.All[row](ctx, s.Queue.Pool, `
		select kind, status, uuid, project_uuid, created_at > now() - @most::interval and exists (
			select from river.river_job j
			where j.kind = t.kind and j.args ->> t.kind = t.uuid::text) as lost_job
		from (
			select 'backup' as kind, status, uuid, project_uuid, heartbeat_at, created_at
			from platform.backups where status in ('pending', 'running')
			union all
			select 'restore', status, uuid, project_uuid, heartbeat_at, created_at
			from platform.restores where status in ('pending', 'running')) t
		where status = 'running' and heartbeat_at < now() - @silence::interval and not exists (
				select from river.river_job j
				where j.kind = t.kind and j.args ->> t.kind = t.uuid::text and j.id in (`+queue.SelectWorking+`))
			or status = 'pending' and coalesce(heartbeat_at, created_at) < now() - @silence::interval and not exists (
				select from river.river_job j
				where j.kind = t.kind and j.args ->> t.kind = t.uuid::text and (
					j.state in ('available', 'pending', 'retryable', 'scheduled') or
					j.state = 'running' and j.attempted_at > now() - @silence::interval))`,
		pgx.StrictNamedArgs{"silence": HeartbeatTimeout, "most": maxOutageAge})

	if err != nil {
		return err
	}

	var errs []error
	silent := map[uuid.UUID]bool{}
	defer func() { s.silent.Store(&silent) }()
	before := s.silent.Load()

	for _, t := range tasks {
		reason := serverDied
		if t.Status == Pending && t.LostJob {
			errs = append(errs, s.enqueueAgain(ctx, t.Kind, t.UUID, t.ProjectUUID))
			continue
		} else if t.Status == Pending {
			reason = neverStarted
		} else if silent[t.UUID] = true; before == nil || !(*before)[t.UUID] {
			continue // its server may be about to acquire its lock again
		}

		switch t.Kind {
		case "backup":
			errs = append(errs, failTask(ctx, s.backupTasks(), t.UUID, reason, s.AbandonBackup))
		case "restore":
			errs = append(errs, failTask(ctx, s.restoreTasks(), t.UUID, reason, s.AbandonRestore))
		}
	}

	return errors.Join(errs...)
}

func failTask[T any](
	ctx context.Context, tasks tasks[T], id uuid.UUID, reason string,
	end func(context.Context, T, string) error,
) error {
	t, err := tasks.unfinished(ctx, id)
	if err != nil {
		return fault.Ignore(err, fault.NotFound)
	}

	return end(ctx, t, reason)
}
