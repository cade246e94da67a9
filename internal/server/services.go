package server

import (
	"context"
	"errors"
	"log/slog"

	"github.com/socle-dev/socle/internal/account"
	"github.com/socle-dev/socle/internal/backup"
	"github.com/socle-dev/socle/internal/enduser"
	"github.com/socle-dev/socle/internal/form"
	"github.com/socle-dev/socle/internal/lifecycle"
	"github.com/socle-dev/socle/internal/migration"
	"github.com/socle-dev/socle/internal/oauth"
	"github.com/socle-dev/socle/internal/object"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/pgproxy"
	"github.com/socle-dev/socle/internal/projectdb"
	"github.com/socle-dev/socle/internal/queue"
	"github.com/socle-dev/socle/internal/tablejob"
)

// Services are the queue and the domains with background work.
type Services struct {
	Queue      *queue.Queue
	Lifecycle  *lifecycle.Service
	Accounts   *account.Service
	Cleaner    *object.Cleaner
	TableJobs  *tablejob.Service
	Migrations *migration.Service
	Backups    *backup.Service
	Notifier   *form.Notifier
	EndUsers   *enduser.Service
}

// NewServices returns the services with all workers registered. It sets the store, the queue and
// the log of accounts.
func NewServices(
	d *Database, l *lifecycle.Service, clients *pgproxy.Proxy, accounts account.Config, notifications *pg.Listener,
	log *slog.Logger,
) (*Services, error) {
	q, err := queue.New(queue.Config{Pool: d.Pool, River: d.QueuePool, Log: log})
	if err != nil {
		return nil, err
	}

	accounts.Store, accounts.Queue, accounts.Log = d.Store, q, log
	s := &Services{
		Queue:      q,
		Lifecycle:  l,
		Accounts:   account.New(accounts),
		Cleaner:    object.NewCleaner(l.Registry, l.Blobs, q, log),
		TableJobs:  tablejob.New(l, q, log),
		Migrations: migration.New(l, d.Binaries, log),
	}

	s.Notifier = form.NewNotifier(form.NotifierConfig{Platform: d.Store, Projects: l.Registry, Queue: q,
		Attempts: s.Accounts.Attempts, Sender: accounts.Sender, PublicURL: accounts.PublicURL, Log: log})
	s.EndUsers = enduser.New(enduser.Config{Store: d.Store, Projects: l.Registry, Passwords: accounts.Passwords,
		Queue:  q,
		Sender: accounts.Sender, Attempts: s.Accounts.Attempts, PublicURL: accounts.PublicURL, Log: log})
	s.Backups = backup.New(backup.Config{
		Lifecycle: l, Binaries: d.Binaries, Queue: q, Files: s.Cleaner, Notifications: notifications, Log: log,
	})

	q.SetPeriodic(queue.Periodic{
		CleanUp: []func(context.Context) error{
			s.Backups.FailAbandoned, s.Backups.CreateDue, s.Backups.RemoveDeleted, s.Backups.DropOrphanedCopies,
			s.Migrations.DropOrphans, l.Finish, clients.RecordLost, l.ChainAudit,
		},
		Sweep: []func(context.Context) error{
			s.Cleaner.SweepStorage, s.Accounts.Sweep, d.Store.ForgetRequests, d.Store.ForgetRequestDays,
			s.Backups.RemoveOrphans, s.Backups.RecomputeNextRuns, s.sweepProjects, s.Backups.EnqueueDueProofs,
		},
	})

	return s, nil
}

// sweepProjects removes expired data from the databases of all projects, one at a time.
func (s *Services) sweepProjects(ctx context.Context) error {
	files := func(p *projectdb.Project) error { return s.Cleaner.SweepProject(ctx, p) }
	return errors.Join(
		s.Lifecycle.VisitActive(ctx, func(p *projectdb.Project) error {
			_, expired := form.Sweep(ctx, p)
			return errors.Join(files(p), expired, p.ChainAudit(ctx), s.Notifier.Sweep(ctx, p),
				s.EndUsers.Sweep(ctx, p), oauth.SweepProject(ctx, s.EndUsers, p))
		}),
		s.Lifecycle.VisitInactive(ctx, files),
	)
}
