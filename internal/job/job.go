// Package job is the work that goes on beside the requests: the queue, which River keeps in the
// platform database, its workers, and the rounds that tidy up.
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
	uploadTime  = 24 * time.Hour // after which nobody is finishing an upload any more
)

// Migrate brings the queue's tables up to date. The caller holds the migration lock.
func Migrate(ctx context.Context, pool *pgxpool.Pool) error {
	m, err := rivermigrate.New(riverpgxv5.New(pool),
		&rivermigrate.Config{Schema: queueSchema, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return fmt.Errorf("migrate the queue: %w", err)
	}

	// One statement instead of what River asks to find the same out.
	done, err := pg.Value[bool](ctx, pool,
		`select exists (select from river.river_migration where line = 'main' and version = @newest)`,
		pgx.StrictNamedArgs{
			"newest": slices.MaxFunc(m.AllVersions(), func(a, b rivermigrate.Migration) int {
				return a.Version - b.Version
			}).Version,
		})
	// undefined_table, invalid_schema_name: it is new
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

// Config is what the jobs work with.
type Config struct {
	Pool      *pgxpool.Pool // of the platform database
	Queue     *pgxpool.Pool // of the same, for what River asks on its own; nil: Pool
	Store     *platform.Store
	Lifecycle tenant.Lifecycle
	Maker     *backup.Maker
	Mail      *mail.Sender
	PublicURL string       // without a slash at its end; links in mails begin with it
	LinkKey   []byte       // from which the tokens of links are computed
	Told      *pg.Listener // hears what is told in the platform database; nil: nothing
	Log       *slog.Logger
}

// Queue takes jobs, and works on them while it runs.
type Queue struct {
	Config
	client *river.Client[pgx.Tx]
	lost   lost
	absent atomic.Int64 // since when this server is without its lock, in Unix nanoseconds; 0: it is not

	backupOver bell // rings when one is
}

// New returns a queue. It works on nothing until [Queue.Run].
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
		JobTimeout: -1, // a backup takes as long as it takes; its heartbeat says whether it lives
	})
	if err != nil {
		return nil, fmt.Errorf("queue: %w", err)
	}

	q.client = client
	return q, nil
}

// Run works on jobs until ctx ends, and returns when those that it had begun have stopped.
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

// tidy goes round until ctx ends.
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

// Tidy ends what others left in the middle: jobs, backups and restores whose server is gone, projects half made or half deleted. It removes deleted backups, and starts those that are due.
func (q *Queue) Tidy(ctx context.Context) error {
	return errors.Join(q.rescue(ctx), q.giveUp(ctx), q.startDue(ctx), q.removeBackups(ctx), q.dropStrays(ctx),
		q.Lifecycle.Finish(ctx))
}

// Sweep removes what nobody needs any more: the bytes of uploads that were cut off and of deleted files, bytes that nobody knows, responses that nobody went on with,
// counts of attempts, kept answers, old links and tokens, and requests of long ago. It has the newest backups proven when it is time, and schedules put right.
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

// quiet hands on what River says from warnings upward; its routine is nobody's concern.
type quiet struct{ slog.Handler }

// Enabled reports whether a record of the level is handed on.
func (q quiet) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelWarn && q.Handler.Enabled(ctx, level)
}

// forgetRequestDays forgets requests to projects that are older than the instance's setting says.
func (q *Queue) forgetRequestDays(ctx context.Context) error {
	settings, err := q.Store.Settings(ctx)
	if err != nil {
		return err
	}

	return q.Store.ForgetRequestDays(ctx, settings.RequestsKept())
}
