package job

import (
	"context"
	"errors"
	"log/slog"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivertype"

	"socle/internal/backup"
	"socle/internal/fault"
	"socle/internal/pg"
	"socle/internal/platform"
)

// completeJob completes a job in the queue at once instead of with River's next batch.
func completeJob[A river.JobArgs](ctx context.Context, pool *pgxpool.Pool, job *river.Job[A]) error {
	return pg.InTx(ctx, pool, func(tx pgx.Tx) error {
		_, err := river.JobCompleteTx[*riverpgxv5.Driver](ctx, tx, job)
		return err
	})
}

// unfinished are the states of jobs that have not ended.
var unfinished = []rivertype.JobState{
	rivertype.JobStateAvailable, rivertype.JobStatePending, rivertype.JobStateRetryable, rivertype.JobStateRunning,
	rivertype.JobStateScheduled}

// singleAttempt is a worker for jobs with a single attempt. A job is retried only if the server
// stopped or if it returns a [backup.RetryError].
type singleAttempt[A river.JobArgs] struct {
	river.WorkerDefaults[A]
	log  *slog.Logger
	work func(ctx context.Context, args A) error
}

func addSingleAttempt[A river.JobArgs](workers *river.Workers, log *slog.Logger, work func(context.Context, A) error) {
	river.AddWorker(workers, &singleAttempt[A]{log: log, work: work})
}

// Work runs a job.
func (o *singleAttempt[A]) Work(ctx context.Context, job *river.Job[A]) error {
	err := o.work(ctx, job.Args)
	if err == nil {
		return nil
	}

	err = &truncatedError{err}
	retry, ok := errors.AsType[*backup.RetryError](err)
	if ok && retry.After > 0 {
		o.log.Info(job.Kind+" postponed", "error", err)
		return river.JobSnooze(retry.After)
	}

	if ok || ctx.Err() != nil { // the server is stopping, for example: the next one retries the job
		o.log.Info(job.Kind+" interrupted", "error", err)
		return err
	}

	o.log.Error(job.Kind, "error", err) // River stores the error with the job but does not log it
	return river.JobCancel(err)
}

// maxErrorBytes is the maximum length in bytes of an error that is logged and stored with a job. It
// can contain text from user code.
const maxErrorBytes = 8 << 10

// truncatedError is an error with a bounded text.
type truncatedError struct{ error }

// Error returns the text, truncated.
func (s *truncatedError) Error() string {
	text := s.error.Error()
	if len(text) <= maxErrorBytes {
		return text
	}

	return strings.ToValidUTF8(text[:maxErrorBytes], "") + "…"
}

// Unwrap returns the full error.
func (s *truncatedError) Unwrap() error { return s.error }

// failAbandoned fails abandoned tasks: running ones without a heartbeat, and pending ones whose job
// was taken or has ended.
func (q *Queue) failAbandoned(ctx context.Context) error {
	type abandoned struct {
		Kind, Status string
		UUID         uuid.UUID
	}

	tasks, err := pg.All[abandoned](ctx, q.Pool, `
		select kind, status, uuid
		from (
			select 'backup' as kind, status, uuid, heartbeat_at, created_at
			from platform.backups where status in ('pending', 'running')
			union all
			select 'restore', status, uuid, heartbeat_at, created_at
			from platform.restores where status in ('pending', 'running')) t
		where status = 'running' and heartbeat_at < now() - @silence::interval
			or status = 'pending' and coalesce(heartbeat_at, created_at) < now() - @silence::interval and not exists (
				select from river.river_job j
				where j.kind = t.kind and j.args ->> t.kind = t.uuid::text and (
					j.state in ('available', 'pending', 'retryable', 'scheduled') or
					j.state = 'running' and j.attempted_at > now() - @silence::interval))`,
		pgx.StrictNamedArgs{"silence": backup.HeartbeatTimeout})

	errs := []error{err}
	for _, t := range tasks {
		reason := "the server running it stopped"
		if t.Status == "pending" {
			reason = "the server stopped before starting it"
		}

		switch t.Kind {
		case "backup":
			errs = append(errs, failTask(ctx, q.Store.Backups(), t.UUID, reason, q.Maker.AbandonBackup))
		case "restore":
			errs = append(errs, failTask(ctx, q.Store.Restores(), t.UUID, reason, q.Maker.AbandonRestore))
		}
	}

	return errors.Join(errs...)
}

func failTask[T any](
	ctx context.Context, tasks platform.Tasks[T], id uuid.UUID, reason string,
	end func(context.Context, T, string) error,
) error {
	t, err := tasks.Unfinished(ctx, id)
	if err != nil {
		return fault.Ignore(err, fault.NotFound)
	}

	return end(ctx, t, reason)
}
