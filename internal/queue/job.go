package queue

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivertype"
	"go.opentelemetry.io/otel/codes"

	"github.com/socle-dev/socle/internal/fair"
	"github.com/socle-dev/socle/internal/pg"
)

// Args are job arguments, stored as JSON. They contain no secrets.
type Args interface {
	Kind() string // stored with each job: never rename it
}

// Workers are a queue's workers, which one or more job kinds share.
type Workers struct {
	Queue     string // stored with each job: never rename it
	PerServer int

	// PerAccount is the maximum that work for one account on each server. A project then has one
	// worker, a quarter is reserved for accounts without a running job, and the arguments have a
	// member project; or a member share, a text that stands for an account with one project. 0: no
	// maximum.
	PerAccount int

	// InDatabase says that PostgreSQL does the work. The servers of an install divide such workers
	// instead of adding to them. They have a PerAccount.
	InDatabase bool
}

// Options configure a job kind.
type Options struct {
	Workers     Workers
	MaxAttempts int
	Unique      bool          // one unfinished job with equal arguments, those tagged `river:"unique"` if any are
	Timeout     time.Duration // per attempt; 0: none
}

// unfinishedStates are the states before a job ends.
var unfinishedStates = []rivertype.JobState{
	rivertype.JobStateAvailable, rivertype.JobStatePending, rivertype.JobStateRetryable, rivertype.JobStateRunning,
	rivertype.JobStateScheduled,
}

// Job is an attempt at a job.
type Job[A Args] struct {
	ID        int64
	Args      A
	Attempt   int
	CreatedAt time.Time

	row  *river.Job[A]
	pool *pgxpool.Pool
}

// Complete completes the job at once instead of with River's next batch.
func (j *Job[A]) Complete(ctx context.Context) error {
	return pg.InTx(ctx, j.pool, func(tx pgx.Tx) error {
		_, err := river.JobCompleteTx[*riverpgxv5.Driver](ctx, tx, j.row)
		return err
	})
}

// Register adds the worker for a job kind. Call it before the first job is inserted.
//
// work runs a job. If it fails, the job is retried with backoff until its attempts are used up,
// unless the error comes from [Cancel] or [Snooze]. The error text is stored with the job.
func Register[A Args](q *Queue, o Options, work func(context.Context, *Job[A]) error) {
	var args A
	if _, exists := q.queues[o.Workers.Queue]; !exists {
		q.queues[o.Workers.Queue] = o.Workers
		if o.Workers.PerAccount > 0 {
			q.shares[o.Workers.Queue] = fair.New(o.Workers.shares(1))
		}
	}

	q.options[args.Kind()] = o
	river.AddWorker(q.workers, &worker[A]{queue: q, timeout: o.Timeout, work: work})
}

// Cancel fails a job for good.
func Cancel(err error) error { return river.JobCancel(err) }

// Snooze runs a job again after a delay. That attempt does not count.
func Snooze(delay time.Duration) error { return river.JobSnooze(delay) }

// worker adapts a work function to River.
type worker[A Args] struct {
	river.WorkerDefaults[A]
	queue   *Queue
	timeout time.Duration
	work    func(context.Context, *Job[A]) error
}

// Timeout returns the time limit for one attempt.
func (w *worker[A]) Timeout(*river.Job[A]) time.Duration { return w.timeout }

// Work runs a job.
func (w *worker[A]) Work(ctx context.Context, j *river.Job[A]) error {
	ctx, span := w.queue.startSpan(ctx, j.JobRow)
	defer span.End()

	ctx, release := w.queue.lease.bind(ctx)
	defer release()

	err := w.work(ctx, &Job[A]{j.ID, j.Args, j.Attempt, j.CreatedAt, j, w.queue.Pool})
	if err != nil {
		if _, isSnooze := errors.AsType[*river.JobSnoozeError](err); !isSnooze {
			span.SetStatus(codes.Error, "")
		}

		return &truncatedError{err}
	}

	return nil
}

// maxErrorBytes bounds an error text that is stored with a job. User code can make it long.
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

// Inserted is the result of inserting a job.
type Inserted struct {
	CreatedAt time.Time
	Duplicate bool // an equal unique job is unfinished, and nothing was inserted
}

// InsertTx inserts a job in a platform database transaction.
func (q *Queue) InsertTx(ctx context.Context, tx pgx.Tx, a Args) (Inserted, error) {
	options, err := q.insertOptions(ctx, a)
	if err != nil {
		return Inserted{}, err
	}

	return inserted(q.inserter.InsertTx(ctx, tx, a, options))
}

// Insert inserts a job.
func (q *Queue) Insert(ctx context.Context, a Args) (Inserted, error) {
	options, err := q.insertOptions(ctx, a)
	if err != nil {
		return Inserted{}, err
	}

	return inserted(q.inserter.Insert(ctx, a, options))
}

func (q *Queue) insertOptions(ctx context.Context, a Args) (*river.InsertOpts, error) {
	o, ok := q.options[a.Kind()]
	if !ok {
		return nil, fmt.Errorf("no worker is registered for jobs of kind %s", a.Kind())
	}

	options := &river.InsertOpts{Queue: o.Workers.Queue, MaxAttempts: o.MaxAttempts, Metadata: traceOf(ctx)}
	if o.Unique {
		options.UniqueOpts = river.UniqueOpts{ByArgs: true, ByState: unfinishedStates}
	}

	return options, nil
}

func inserted(r *rivertype.JobInsertResult, err error) (Inserted, error) {
	if err != nil {
		return Inserted{}, pg.Fault(err)
	}

	return Inserted{r.Job.CreatedAt, r.UniqueSkippedAsDuplicate}, nil
}
