// Package job runs background work: the queue, which River keeps in the platform database, its
// workers, and the periodic cleanup. Package backup makes and restores backups, package schema
// builds and compacts; this package decides when.
package job

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
	"github.com/riverqueue/river/rivertype"

	"socle/internal/account"
	"socle/internal/backup"
	"socle/internal/form"
	"socle/internal/mail"
	"socle/internal/object"
	"socle/internal/pg"
	"socle/internal/platform"
	"socle/internal/tenant"
)

const (
	queueSchema   = "river"
	tidyInterval  = 10 * time.Second
	sweepInterval = 6 * time.Hour
	uploadTTL     = 24 * time.Hour // after which an unfinished upload is abandoned
)

// Migrate creates or upgrades the tables of the queue. The caller holds the migration lock.
func Migrate(ctx context.Context, pool *pgxpool.Pool) error {
	m, err := rivermigrate.New(riverpgxv5.New(pool),
		&rivermigrate.Config{Schema: queueSchema, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return fmt.Errorf("migrate the queue: %w", err)
	}

	// One statement instead of River's several, for the usual case of nothing to migrate.
	done, err := pg.Value[bool](ctx, pool,
		`select exists (select from river.river_migration where line = 'main' and version = @newest)`,
		pgx.StrictNamedArgs{
			"newest": slices.MaxFunc(m.AllVersions(), func(a, b rivermigrate.Migration) int {
				return a.Version - b.Version
			}).Version,
		})
	// undefined_table, invalid_schema_name: a new database
	if state := pg.State(err); state != "42P01" && state != "3F000" && (err != nil || done) {
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
	Pool          *pgxpool.Pool // platform database
	Queue         *pgxpool.Pool // of the same database, for River's own queries; nil: Pool
	Store         *platform.Store
	Accounts      *account.Service
	Lifecycle     tenant.Lifecycle
	Maker         *backup.Maker
	Mail          *mail.Sender
	PublicURL     string       // without a trailing slash
	Notifications *pg.Listener // notifications of the platform database; nil: polling only
	Log           *slog.Logger
}

// Queue accepts jobs, and works on them while [Queue.Run] runs. It is safe for concurrent use.
type Queue struct {
	Config
	client        *river.Client[pgx.Tx]
	suspects      suspects
	unlockedSince atomic.Int64 // Unix nanoseconds since this server lost its worker lock; 0 while it holds it

	backupFinished broadcast // notified when a backup finishes
}

// New returns a queue. It runs no job before [Queue.Run].
func New(c Config) (*Queue, error) {
	q := &Queue{Config: c}
	if c.Notifications != nil {
		c.Notifications.Handle(backupChannel, func(string) { q.backupFinished.notify() })

		c.Notifications.OnConnect(func(context.Context, *pgx.Conn) error {
			q.backupFinished.notify()
			return nil
		})
	}

	workers := river.NewWorkers()
	addSingleAttempt(workers, c.Log, q.makeBackup)
	addSingleAttempt(workers, c.Log, func(ctx context.Context, a restoreArgs) error {
		return c.Maker.Restore(ctx, a.Restore)
	})
	addSingleAttempt(workers, c.Log, q.proveBackup)
	river.AddWorker(workers, &discardWorker{lifecycle: c.Lifecycle})
	river.AddWorker(workers, &indexWorker{pool: c.Pool, projects: c.Lifecycle.Registry, log: c.Log})
	river.AddWorker(workers, &compactionWorker{pool: c.Pool, lifecycle: c.Lifecycle, log: c.Log})
	river.AddWorker(workers, &mailWorker{Config: c})
	river.AddWorker(workers, &passwordResetWorker{accounts: c.Accounts})
	queues := map[string]river.QueueConfig{
		filesQueue: {MaxWorkers: discardWorkers}, mailQueue: {MaxWorkers: mailWorkers},
	}

	for name, shared := range sharedQueues {
		queues[name] = river.QueueConfig{MaxWorkers: shared.workers}
	}

	client, err := river.NewClient(riverpgxv5.New(cmp.Or(c.Queue, c.Pool)), &river.Config{
		ID: workerPrefix + uuid.NewString(), Schema: queueSchema,
		Workers: workers, Logger: slog.New(warningHandler{c.Log.Handler()}),
		Queues: queues, Middleware: []rivertype.Middleware{
			&fairness{pool: c.Pool, log: c.Log, running: map[claim]int{}},
		},
		JobTimeout: -1, // a backup takes arbitrarily long; its heartbeat shows that it is alive
	})
	if err != nil {
		return nil, fmt.Errorf("create queue client: %w", err)
	}

	q.client = client
	return q, nil
}

// Run works on jobs until ctx ends. It returns when all started jobs have stopped.
func (q *Queue) Run(ctx context.Context) error {
	lockCtx, unlock := context.WithCancel(context.WithoutCancel(ctx))
	locked, unlocked := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(unlocked)

		q.keepWorkerLock(lockCtx, locked)
	}()

	defer func() {
		unlock()
		<-unlocked
	}()

	select {
	case <-locked:
	case <-ctx.Done():
		return nil
	}

	if err := q.client.Start(context.WithoutCancel(ctx)); err != nil {
		return fmt.Errorf("start queue: %w", err)
	}

	q.runPeriodicJobs(ctx)

	stopCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 20*time.Second)
	defer cancel()

	return q.client.StopAndCancel(stopCtx)
}

// runPeriodicJobs runs CleanUp and Sweep periodically until ctx ends.
func (q *Queue) runPeriodicJobs(ctx context.Context) {
	tick := time.NewTicker(tidyInterval)
	defer tick.Stop()

	lastSweep := time.Now()
	for {
		if err := q.CleanUp(ctx); err != nil && ctx.Err() == nil {
			q.Log.Error("tidy", "error", err)
		}

		if time.Since(lastSweep) > sweepInterval {
			lastSweep = time.Now()
			if err := q.Sweep(ctx); err != nil && ctx.Err() == nil {
				q.Log.Error("sweep", "error", err)
			}
		}

		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// CleanUp runs the frequent cleanup: it requeues or fails the jobs, backups and restores of servers
// that stopped, finishes half-created and half-deleted projects, removes deleted backups and
// orphaned copies, and starts backups that are due.
func (q *Queue) CleanUp(ctx context.Context) error {
	return errors.Join(q.rescue(ctx), q.failAbandoned(ctx), q.createDueBackups(ctx), q.removeBackups(ctx),
		q.dropOrphanedCopies(ctx), q.Lifecycle.Finish(ctx))
}

// Sweep removes expired data and orphans: bytes of aborted uploads and deleted files, orphaned
// blobs, abandoned responses, attempt counters, idempotency keys, expired links, tokens and
// invitations, and old request statistics. It also enqueues proofs that are due and corrects backup
// schedules.
func (q *Queue) Sweep(ctx context.Context) error {
	_, err := q.Lifecycle.Blobs.Sweep(ctx, uploadTTL)
	errs := []error{err, q.Store.ForgetRequests(ctx), q.forgetRequestDays(ctx),
		q.RemoveOrphans(ctx, object.MinOrphanAge), q.Accounts.Sweep(ctx),
		q.Store.RecomputeNextRuns(ctx)}

	projects, err := q.Store.ActiveProjects(ctx)
	errs = append(errs, err)
	for _, id := range projects {
		err := q.Lifecycle.Registry.Visit(id, func(p *tenant.Project) error {
			_, expired := form.Sweep(ctx, p)
			return errors.Join(q.sweepFiles(ctx, p), expired)
		})
		if err != nil {
			errs = append(errs, fmt.Errorf("project %s: %w", id, err))
		}
	}

	closed, err := q.Store.InactiveProjects(ctx)
	errs = append(errs, err)
	for _, id := range closed {
		if err := q.maintain(ctx, id, func(p *tenant.Project) error { return q.sweepFiles(ctx, p) }); err != nil {
			errs = append(errs, fmt.Errorf("project %s: %w", id, err))
		}
	}

	return errors.Join(append(errs, q.enqueueDueProofs(ctx))...)
}

func (q *Queue) sweepFiles(ctx context.Context, p *tenant.Project) error {
	_, swept := object.Sweep(ctx, p, q.Lifecycle.Blobs, uploadTTL)
	_, discarded := object.Discard(ctx, p, q.Lifecycle.Blobs)

	return errors.Join(swept, discarded)
}

// warningHandler passes on only warnings and errors of River.
type warningHandler struct{ slog.Handler }

// Enabled reports whether records of the level are passed on.
func (q warningHandler) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelWarn && q.Handler.Enabled(ctx, level)
}

// forgetRequestDays deletes request statistics of projects older than the retention setting.
func (q *Queue) forgetRequestDays(ctx context.Context) error {
	settings, err := q.Store.Settings(ctx)
	if err != nil {
		return err
	}

	return q.Store.DropRequestPartitions(ctx, settings.RequestsKept())
}

// Stats are statistics of the queue.
type Stats struct {
	Waiting int64
	Running int64
	Failed  int64         // discarded in the last 24 hours
	Oldest  time.Duration // waiting time of the oldest runnable job
}

// Stats returns statistics of the queue.
func (q *Queue) Stats(ctx context.Context) (Stats, error) {
	return pg.One[Stats](ctx, q.Pool, `
		select count(*) filter (where state in ('available', 'pending', 'retryable', 'scheduled')) as waiting,
		       count(*) filter (where state = 'running') as running,
		       count(*) filter (where state = 'discarded' and finalized_at > now() - interval '24 hours') as failed,
		       coalesce(now() - min(scheduled_at) filter (where state = 'available' and scheduled_at <= now()), interval '0') as oldest
		from river.river_job`)
}
