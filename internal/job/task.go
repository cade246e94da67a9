package job

import (
	"context"
	"errors"
	"log/slog"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"

	"socle/internal/backup"
	"socle/internal/fault"
	"socle/internal/pg"
	"socle/internal/platform"
)

// unfinished are the states of jobs that have not ended.
var unfinished = []rivertype.JobState{
	rivertype.JobStateAvailable, rivertype.JobStatePending, rivertype.JobStateRetryable, rivertype.JobStateRunning,
	rivertype.JobStateScheduled}

// once is a worker for jobs with a single attempt. A job is retried only if the server stopped or
// if it returns a [backup.Later].
type once[A river.JobArgs] struct {
	river.WorkerDefaults[A]
	log  *slog.Logger
	work func(ctx context.Context, args A) error
}

func addOnce[A river.JobArgs](workers *river.Workers, log *slog.Logger, work func(context.Context, A) error) {
	river.AddWorker(workers, &once[A]{log: log, work: work})
}

// Work runs a job.
func (o *once[A]) Work(ctx context.Context, job *river.Job[A]) error {
	err := o.work(ctx, job.Args)
	if err == nil {
		return nil
	}

	err = &shortError{err}
	later, ok := errors.AsType[*backup.Later](err)
	if ok && later.After > 0 {
		o.log.Info(job.Kind+" waits", "error", err)
		return river.JobSnooze(later.After)
	}

	if ok || ctx.Err() != nil { // the server is stopping, for example: the next one retries the job
		o.log.Info(job.Kind+" is broken off", "error", err)
		return err
	}

	o.log.Error(job.Kind, "error", err) // River stores the error with the job but does not log it
	return river.JobCancel(err)
}

// mostErrorText is the maximum length in bytes of an error that is logged and stored with a job. It
// can contain text from user code.
const mostErrorText = 8 << 10

// shortError is an error with a bounded text.
type shortError struct{ error }

// Error returns the text, truncated.
func (s *shortError) Error() string {
	text := s.error.Error()
	if len(text) <= mostErrorText {
		return text
	}

	return strings.ToValidUTF8(text[:mostErrorText], "") + "…"
}

// Unwrap returns the full error.
func (s *shortError) Unwrap() error { return s.error }

// giveUp fails abandoned tasks: running ones without a heartbeat, and pending ones whose job was
// taken or has ended.
func (q *Queue) giveUp(ctx context.Context) error {
	type abandoned struct {
		Kind, Reason string
		UUID         uuid.UUID
	}

	tasks, err := pg.All[abandoned](ctx, q.Pool, `
		select kind, uuid, 'the server that ' || case status when 'running' then did else 'was to ' || does end || ' it stopped' as reason
		from (
			select 'backup' as kind, 'made' as did, 'make' as does, status, uuid, heartbeat_at, created_at
			from platform.backups where status in ('pending', 'running')
			union all
			select 'restore', 'restored', 'restore', status, uuid, heartbeat_at, created_at
			from platform.restores where status in ('pending', 'running')) t
		where status = 'running' and heartbeat_at < now() - @silence::interval
			or status = 'pending' and coalesce(heartbeat_at, created_at) < now() - @silence::interval and not exists (
				select from river.river_job j
				where j.kind = t.kind and j.args ->> t.kind = t.uuid::text and (
					j.state in ('available', 'pending', 'retryable', 'scheduled') or
					j.state = 'running' and j.attempted_at > now() - @silence::interval))`,
		pgx.StrictNamedArgs{"silence": backup.Silence})

	errs := []error{err}
	for _, t := range tasks {
		switch t.Kind {
		case "backup":
			errs = append(errs, giveUpTask(ctx, q.Store.Backups(), t.UUID, t.Reason, q.Maker.GiveUpBackup))
		case "restore":
			errs = append(errs, giveUpTask(ctx, q.Store.Restores(), t.UUID, t.Reason, q.Maker.GiveUp))
		}
	}

	return errors.Join(errs...)
}

func giveUpTask[T any](
	ctx context.Context, tasks platform.Tasks[T], id uuid.UUID, reason string,
	end func(context.Context, T, string) error,
) error {
	t, err := tasks.Unfinished(ctx, id)
	if err != nil {
		return fault.Except(err, fault.NotFound)
	}

	return end(ctx, t, reason)
}
