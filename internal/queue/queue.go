// Package queue runs background work: jobs, which River keeps in the platform database, and an
// install's periodic work. It knows no domain: each package registers the workers for its jobs, and
// package server lists the periodic work. No other package imports River.
package queue

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
	"github.com/riverqueue/river/rivertype"
	"go.opentelemetry.io/otel/trace"

	"github.com/socle-dev/socle/internal/fair"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/tick"
)

const (
	queueSchema     = "river"
	startRetryDelay = time.Second
	stopTimeout     = 20 * time.Second // for running jobs to stop
)

// Migrate creates or upgrades the queue's tables. The caller holds the migration lock.
func Migrate(ctx context.Context, pool *pgxpool.Pool) error {
	m, err := rivermigrate.New(riverpgxv5.New(pool),
		&rivermigrate.Config{Schema: queueSchema, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return fmt.Errorf("migrate the queue: %w", err)
	}

	// One statement instead of River's several, since usually there is nothing to migrate.
	isCurrent, err := pg.Value[bool](ctx, pool,
		`select exists (select from river.river_migration where line = 'main' and version = @newest)`,
		pgx.StrictNamedArgs{
			"newest": slices.MaxFunc(m.AllVersions(), func(a, b rivermigrate.Migration) int {
				return a.Version - b.Version
			}).Version,
		})
	// undefined_table, invalid_schema_name: a new database
	if state := pg.State(err); state != "42P01" && state != "3F000" && (err != nil || isCurrent) {
		return err
	}

	if _, err := pool.Exec(ctx, "create schema if not exists "+queueSchema); err != nil {
		return fmt.Errorf("migrate the queue: %w", err)
	}
	if _, err := m.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return fmt.Errorf("migrate the queue: %w", err)
	}

	return nil
}

// Config configures a [Queue].
type Config struct {
	Pool  *pgxpool.Pool // platform database
	River *pgxpool.Pool // connects to the same database for River's queries; nil: Pool
	Log   *slog.Logger

	Tracer trace.Tracer // records a span per job attempt; nil: none
}

// Queue accepts jobs, and works on them while [Queue.Run] runs. It is safe for concurrent use once
// all workers are registered.
type Queue struct {
	Config
	id            string // this server's worker ID
	inserter      *river.Client[pgx.Tx]
	workers       *river.Workers
	queues        map[string]Workers
	shares        map[string]*fair.Pool // by queue; none for a queue without shares
	options       map[string]Options    // by kind
	periodic      Periodic
	suspects      suspects
	stopping      chan struct{} // closed when Run is told to end
	stop          func()        // closes stopping
	lease         lease
	unlockedSince atomic.Int64 // Unix nanoseconds since this server lost its worker lock; 0 while it holds it
}

// New returns a queue without workers, see [Register].
func New(c Config) (*Queue, error) {
	c.River = cmp.Or(c.River, c.Pool)
	q := &Queue{
		Config:  c,
		id:      workerPrefix + uuid.NewString(),
		workers: river.NewWorkers(),
		queues:  map[string]Workers{},
		shares:  map[string]*fair.Pool{},

		stopping: make(chan struct{}),
		options:  map[string]Options{},
	}

	q.stop = sync.OnceFunc(func() { close(q.stopping) })

	var err error
	q.inserter, err = q.newClient(&river.Config{})
	return q, err
}

// newClient returns a River client. Only a client with workers runs jobs.
func (q *Queue) newClient(c *river.Config) (*river.Client[pgx.Tx], error) {
	c.ID, c.Schema, c.Logger = q.id, queueSchema, slog.New(warningHandler{q.Log.Handler()})
	client, err := river.NewClient(riverpgxv5.New(q.River), c)
	if err != nil {
		return nil, fmt.Errorf("create queue client: %w", err)
	}

	return client, nil
}

// Run works on jobs, and does the periodic work while this server leads, until ctx ends. It returns
// when all started jobs have stopped.
func (q *Queue) Run(ctx context.Context) error {
	context.AfterFunc(ctx, q.stop)
	lockCtx, unlock := context.WithCancel(context.WithoutCancel(ctx))
	lockReady, lockClosed := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(lockClosed)

		q.keepWorkerLock(lockCtx, lockReady)
	}()

	defer func() {
		unlock()
		<-lockClosed
	}()

	select {
	case <-lockReady:
	case <-ctx.Done():
		return nil
	}

	client, err := q.startWorking(ctx)
	if client == nil {
		return err
	}

	q.runPeriodic(ctx)

	stopCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
	defer cancel()

	return client.StopAndCancel(stopCtx)
}

// Stopping is closed when the server stops, before running jobs are canceled.
func (q *Queue) Stopping() <-chan struct{} { return q.stopping }

// startWorking returns a client that works on jobs, or nil if ctx ends before one has started.
// River's client fails to start if PostgreSQL ends one of its sessions just then, and can't be
// started again.
func (q *Queue) startWorking(ctx context.Context) (*river.Client[pgx.Tx], error) {
	for {
		client, err := q.newWorkingClient()
		if err != nil {
			return nil, err
		}

		if err = client.Start(context.WithoutCancel(ctx)); err == nil {
			return client, nil
		}

		q.Log.Warn("start of the queue failed, retrying", "error", err)

		if tick.Pause(ctx, startRetryDelay) != nil {
			return nil, nil
		}
	}
}

// newWorkingClient returns a client with the registered workers.
func (q *Queue) newWorkingClient() (*river.Client[pgx.Tx], error) {
	queues := map[string]river.QueueConfig{}
	for name, w := range q.queues {
		queues[name] = river.QueueConfig{MaxWorkers: w.PerServer}
	}

	return q.newClient(&river.Config{
		Workers: q.workers,
		Queues:  queues,
		Middleware: []rivertype.Middleware{
			&fairness{pool: q.Pool, log: q.Log, shares: q.shares},
		},
		JobTimeout: -1, // a backup takes arbitrarily long; its heartbeat shows that it is alive
	})
}

// Pools returns the pools of workers that accounts share, for metrics.
func (q *Queue) Pools() []*fair.Pool {
	var all []*fair.Pool
	for _, p := range q.shares {
		if p != nil {
			all = append(all, p)
		}
	}

	return all
}

// warningHandler passes on only River's warnings and errors.
type warningHandler struct{ slog.Handler }

// Enabled reports whether the level is at least Warn and enabled in the handler.
func (q warningHandler) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelWarn && q.Handler.Enabled(ctx, level)
}

// Stats are queue statistics.
type Stats struct {
	Waiting int64
	Running int64
	Failed  int64         // discarded in the last 24 hours
	Oldest  time.Duration // how long the oldest runnable job has waited
}

// Stats counts jobs by state.
func (q *Queue) Stats(ctx context.Context) (Stats, error) {
	return pg.One[Stats](ctx, q.Pool, `
		select count(*) filter (where state in ('available', 'pending', 'retryable', 'scheduled')) as waiting,
		       count(*) filter (where state = 'running') as running,
		       count(*) filter (where state = 'discarded' and finalized_at > now() - interval '24 hours') as failed,
		       coalesce(now() - min(scheduled_at) filter (where state = 'available' and scheduled_at <= now()), interval '0') as oldest
		from river.river_job`)
}
