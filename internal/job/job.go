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

	"socle/internal/backup"
	"socle/internal/form"
	"socle/internal/mail"
	"socle/internal/object"
	"socle/internal/pg"
	"socle/internal/platform"
	"socle/internal/tenant"
)

const (
	queueSchema = "river"
	tidyEvery   = 10 * time.Second
	sweepEvery  = 6 * time.Hour
	uploadTime  = 24 * time.Hour // after which an unfinished upload is abandoned
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
	Pool      *pgxpool.Pool // platform database
	Queue     *pgxpool.Pool // of the same database, for River's own queries; nil: Pool
	Store     *platform.Store
	Lifecycle tenant.Lifecycle
	Maker     *backup.Maker
	Mail      *mail.Sender
	PublicURL string       // without a trailing slash; prefix of links in mails
	LinkKey   []byte       // from which the tokens of links are derived
	Told      *pg.Listener // notifications of the platform database; nil: polling only
	Log       *slog.Logger
}

// Queue accepts jobs, and works on them while [Queue.Run] runs. It is safe for concurrent use.
type Queue struct {
	Config
	client *river.Client[pgx.Tx]
	lost   lost
	absent atomic.Int64 // Unix nanoseconds since this server lost its worker lock; 0 while it holds it

	backupOver bell // rings when a backup finishes
}

// New returns a queue. It runs no job before [Queue.Run].
func New(c Config) (*Queue, error) {
	q := &Queue{Config: c}
	if c.Told != nil {
		c.Told.On(backupChannel, func(string) { q.backupOver.ring() })

		c.Told.Catch(func(context.Context, *pgx.Conn) error {
			q.backupOver.ring()
			return nil
		})
	}

	workers := river.NewWorkers()
	addOnce(workers, c.Log, q.makeBackup)
	addOnce(workers, c.Log, func(ctx context.Context, a restoreArgs) error { return c.Maker.Restore(ctx, a.Restore) })
	addOnce(workers, c.Log, q.proveBackup)
	river.AddWorker(workers, &discardWorker{lifecycle: c.Lifecycle})
	river.AddWorker(workers, &indexWorker{pool: c.Pool, projects: c.Lifecycle.Registry, log: c.Log})
	river.AddWorker(workers, &compactionWorker{pool: c.Pool, lifecycle: c.Lifecycle, log: c.Log})
	river.AddWorker(workers, &mailWorker{Config: c})
	river.AddWorker(workers, &passwordResetWorker{store: c.Store})
	queues := map[string]river.QueueConfig{
		filesQueue: {MaxWorkers: discardAtOnce}, mailQueue: {MaxWorkers: mailsAtOnce},
	}

	for name, shared := range sharedQueues {
		queues[name] = river.QueueConfig{MaxWorkers: shared.workers}
	}

	client, err := river.NewClient(riverpgxv5.New(cmp.Or(c.Queue, c.Pool)), &river.Config{
		ID: workerName + uuid.NewString(), Schema: queueSchema,
		Workers: workers, Logger: slog.New(quiet{c.Log.Handler()}),
		Queues: queues, Middleware: []rivertype.Middleware{
			&fairness{pool: c.Pool, log: c.Log, running: map[claim]int{}},
		},
		JobTimeout: -1, // a backup takes arbitrarily long; its heartbeat shows that it is alive
	})
	if err != nil {
		return nil, fmt.Errorf("queue: %w", err)
	}

	q.client = client
	return q, nil
}

// Run works on jobs until ctx ends. It returns when all started jobs have stopped.
func (q *Queue) Run(ctx context.Context) error {
	attending, leave := context.WithCancel(context.WithoutCancel(ctx))
	there, left := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(left)

		q.attend(attending, there)
	}()

	defer func() {
		leave()
		<-left
	}()

	select {
	case <-there:
	case <-ctx.Done():
		return nil
	}

	if err := q.client.Start(context.WithoutCancel(ctx)); err != nil {
		return fmt.Errorf("queue: %w", err)
	}

	q.tidy(ctx)

	stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), 20*time.Second)
	defer cancel()

	return q.client.StopAndCancel(stopping)
}

// tidy runs Tidy and Sweep periodically until ctx ends.
func (q *Queue) tidy(ctx context.Context) {
	tick := time.NewTicker(tidyEvery)
	defer tick.Stop()

	swept := time.Now()
	for {
		if err := q.Tidy(ctx); err != nil && ctx.Err() == nil {
			q.Log.Error("tidy", "error", err)
		}

		if time.Since(swept) > sweepEvery {
			swept = time.Now()
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

// Tidy runs the frequent cleanup: it requeues or fails the jobs, backups and restores of servers
// that stopped, finishes half-created and half-deleted projects, removes deleted backups and
// orphaned copies, and starts backups that are due.
func (q *Queue) Tidy(ctx context.Context) error {
	return errors.Join(q.rescue(ctx), q.giveUp(ctx), q.startDue(ctx), q.removeBackups(ctx), q.dropStrays(ctx),
		q.Lifecycle.Finish(ctx))
}

// Sweep removes expired data and orphans: bytes of aborted uploads and deleted files, orphaned
// blobs, abandoned responses, attempt counters, idempotency keys, expired links, tokens and
// invitations, and old request statistics. It also enqueues proofs that are due and corrects backup
// schedules.
func (q *Queue) Sweep(ctx context.Context) error {
	_, err := q.Lifecycle.Blobs.Sweep(ctx, uploadTime)
	errs := []error{err, q.Store.ForgetAttempts(ctx), q.Store.ForgetRequests(ctx), q.forgetRequestDays(ctx),
		q.RemoveOrphans(ctx, object.OrphanAge), q.Store.ForgetLinks(ctx), q.Store.ForgetTokens(ctx),
		q.Store.ForgetInvitations(ctx), q.Store.CorrectBackupSchedules(ctx)}

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

	closed, err := q.Store.ClosedProjects(ctx)
	errs = append(errs, err)
	for _, id := range closed {
		if err := q.maintain(ctx, id, func(p *tenant.Project) error { return q.sweepFiles(ctx, p) }); err != nil {
			errs = append(errs, fmt.Errorf("project %s: %w", id, err))
		}
	}

	return errors.Join(append(errs, q.proveAgain(ctx))...)
}

func (q *Queue) sweepFiles(ctx context.Context, p *tenant.Project) error {
	_, swept := object.Sweep(ctx, p, q.Lifecycle.Blobs, uploadTime)
	_, discarded := object.Discard(ctx, p, q.Lifecycle.Blobs)

	return errors.Join(swept, discarded)
}

// quiet passes on only warnings and errors of River.
type quiet struct{ slog.Handler }

// Enabled reports whether records of the level are passed on.
func (q quiet) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelWarn && q.Handler.Enabled(ctx, level)
}

// forgetRequestDays deletes request statistics of projects older than the retention setting.
func (q *Queue) forgetRequestDays(ctx context.Context) error {
	settings, err := q.Store.Settings(ctx)
	if err != nil {
		return err
	}

	return q.Store.ForgetRequestDays(ctx, settings.RequestsKept())
}
