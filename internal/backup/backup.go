// Package backup makes, proves, exports, imports and restores project backups.
//
// A backup consists of a database dump, the file contents, and a manifest that describes both. The
// package owns the rows for backups, schedules and restores in the platform database, and their
// jobs. It runs pg_dump and pg_restore, stores backup parts, and checks backups before a restore.
// Package archive owns the format for parts and exported backups. Package lifecycle creates and
// swaps databases. Each subject with rows in a project's database contributes a
// [projectdb.Subject].
package backup

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/backup/archive"
	"github.com/socle-dev/socle/internal/backup/pgtool"
	"github.com/socle-dev/socle/internal/blob"
	"github.com/socle-dev/socle/internal/lifecycle"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/pgserver"
	"github.com/socle-dev/socle/internal/projectdb"
	"github.com/socle-dev/socle/internal/queue"
)

// Config configures a [Service].
type Config struct {
	Lifecycle     *lifecycle.Service
	Binaries      pgserver.Binaries
	Queue         *queue.Queue
	Subjects      []projectdb.Subject // in the order in which a restore calls them
	Notifications *pg.Listener        // from the platform database; nil: polling only
	Log           *slog.Logger
}

// Service makes, proves and restores backups.
type Service struct {
	Config
	*store
	projects *projectdb.Registry
	blobs    *blob.Store
	files    *projectdb.Files
	tools    *pgtool.Tools

	completion  broadcast                          // notified when a backup finishes
	silent      atomic.Pointer[map[uuid.UUID]bool] // tasks without a heartbeat in the last round
	passphrases archive.Passphrases
}

// New registers the workers for backups, proofs and restores.
func New(c Config) *Service {
	s := &Service{
		Config:   c,
		store:    newStore(c.Lifecycle.Store),
		projects: c.Lifecycle.Registry,
		blobs:    c.Lifecycle.Blobs,
		files:    filesOf(c.Subjects),
		tools:    &pgtool.Tools{Binaries: c.Binaries, Log: c.Log},
	}
	s.registerWorkers()

	if c.Notifications != nil {
		c.Notifications.Handle(backupChannel, func(string) { s.completion.notify() })

		c.Notifications.OnConnect(func(context.Context, *pgx.Conn) error {
			s.completion.notify()
			return nil
		})
	}

	return s
}

// registerWorkers registers all workers. A backup and a restore have one attempt: a retry is a new
// one with its own status. A proof is retried for about 15 minutes after the server or PostgreSQL
// restarts.
func (s *Service) registerWorkers() {
	register(s, queue.Options{
		Workers:     queue.Workers{Queue: "backups", PerServer: 4, PerAccount: 2, InDatabase: true},
		MaxAttempts: 1,
	}, s.runBackup)
	register(s, queue.Options{
		Workers:     queue.Workers{Queue: "restores", PerServer: 4, PerAccount: 1, InDatabase: true},
		MaxAttempts: 1,
	}, func(ctx context.Context, a restoreArgs) error { return s.Restore(ctx, a.Restore) })
	register(s, queue.Options{
		Workers:     queue.Workers{Queue: "proofs", PerServer: 4, PerAccount: 1, InDatabase: true},
		MaxAttempts: 6,
		Unique:      true, // per backup
	}, s.runProof)
	register(s, factOptions, s.runFact)
}

// register registers a worker whose errors are final. A job is retried only if the server stopped
// or if it returns a [RetryError].
func register[A queue.Args](s *Service, o queue.Options, work func(context.Context, A) error) {
	queue.Register(s.Queue, o, func(ctx context.Context, job *queue.Job[A]) error {
		err := work(ctx, job.Args)
		if err == nil {
			return nil
		}

		kind := job.Args.Kind()
		retry, ok := errors.AsType[*RetryError](err)
		if ok && retry.After > 0 {
			s.Log.Info(kind+" postponed", "error", err)
			return queue.Snooze(retry.After)
		}

		if ok || ctx.Err() != nil { // the server is stopping, for example: the next one retries the job
			s.Log.Info(kind+" interrupted", "error", err)
			return err
		}

		s.Log.Error(kind, "error", err) // River stores the error with the job but does not log it
		return queue.Cancel(err)
	})
}
