package server

import (
	"context"
	"errors"
	"log/slog"

	"github.com/socle-dev/socle/internal/account"
	"github.com/socle-dev/socle/internal/backup"
	"github.com/socle-dev/socle/internal/blob"
	"github.com/socle-dev/socle/internal/broadcast"
	"github.com/socle-dev/socle/internal/enduser"
	"github.com/socle-dev/socle/internal/event"
	"github.com/socle-dev/socle/internal/form"
	"github.com/socle-dev/socle/internal/function"
	"github.com/socle-dev/socle/internal/hook"
	"github.com/socle-dev/socle/internal/httprequest"
	"github.com/socle-dev/socle/internal/idp"
	"github.com/socle-dev/socle/internal/leaked"
	"github.com/socle-dev/socle/internal/lifecycle"
	"github.com/socle-dev/socle/internal/migration"
	"github.com/socle-dev/socle/internal/oauth"
	"github.com/socle-dev/socle/internal/object"
	"github.com/socle-dev/socle/internal/outbound"
	"github.com/socle-dev/socle/internal/outbox"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/pgproxy"
	"github.com/socle-dev/socle/internal/projectdb"
	"github.com/socle-dev/socle/internal/queue"
	"github.com/socle-dev/socle/internal/requestlog"
	"github.com/socle-dev/socle/internal/restapi"
	"github.com/socle-dev/socle/internal/schedule"
	"github.com/socle-dev/socle/internal/tablejob"
	"github.com/socle-dev/socle/internal/webhook"
)

// DomainsConfig has the dependencies of [Domains].
type DomainsConfig struct {
	Database  *Database
	Projects  *projectdb.Registry
	Blobs     *blob.Store
	Queue     *queue.Queue
	Accounts  *account.Service
	Outbound  *outbound.Client  // requests to addresses that tenants choose
	Functions *function.Service // nil: none
	Leaked    *leaked.Passwords
	Log       *slog.Logger
}

// Domains are the queue, and the domains that change rows, but no project as a whole. Application
// interfaces need no others.
type Domains struct {
	Queue     *queue.Queue
	Accounts  *account.Service
	Cleaner   *object.Cleaner
	Notifier  *form.Notifier
	EndUsers  *enduser.Service
	Schedules *schedule.Service
	Webhooks  *webhook.Service
	Subjects  []projectdb.Subject // with rows in project databases
}

// NewDomains returns the domains with their workers registered.
func NewDomains(c DomainsConfig) *Domains {
	cleaner := object.NewCleaner(c.Projects, c.Blobs, c.Queue, c.Log)
	notifier := form.NewNotifier(form.NotifierConfig{Platform: c.Database.Store, Projects: c.Projects, Queue: c.Queue,
		Attempts: c.Accounts.Attempts, Sender: c.Accounts.Sender, PublicURL: c.Accounts.PublicURL, Log: c.Log})
	users := enduser.New(enduser.Config{Store: c.Database.Store, Projects: c.Projects,
		Passwords: c.Accounts.Passwords, Queue: c.Queue, Providers: idp.New(c.Outbound), Outbound: c.Outbound,
		HookCalls: hook.NewClient(c.Outbound), Functions: c.Functions, Leaked: c.Leaked, Sender: c.Accounts.Sender,
		Attempts: c.Accounts.Attempts, PublicURL: c.Accounts.PublicURL, Log: c.Log})

	schedules := schedule.New(schedule.Config{Platform: c.Database.Store.DB(), Projects: c.Projects,
		Outbound: c.Outbound, Functions: c.Functions, Log: c.Log})

	webhooks := webhook.New(webhook.Config{Platform: c.Database.Store.DB(), Projects: c.Projects, Admins: c.Accounts,
		Outbound: c.Outbound, Functions: c.Functions, Log: c.Log})

	return &Domains{Queue: c.Queue, Accounts: c.Accounts, Cleaner: cleaner, Notifier: notifier, EndUsers: users,
		Schedules: schedules, Webhooks: webhooks,
		Subjects: []projectdb.Subject{cleaner.Subject(), notifier.Subject(), users.Subject(), oauth.Subject(users),
			event.Subject(), broadcast.Subject(), httprequest.Subject(), schedule.Subject(),
			webhook.Subject(), function.Subject(), restapi.Subject()}}
}

// ServicesConfig has the dependencies of [Services].
type ServicesConfig struct {
	Domains       *Domains
	Database      *Database
	Lifecycle     *lifecycle.Service
	Clients       *pgproxy.Proxy
	Outbox        *outbox.Outbox
	Notifications *pg.Listener
	Log           *slog.Logger
}

// Services are the domains, and the services that change projects as a whole.
type Services struct {
	*Domains
	Lifecycle  *lifecycle.Service
	TableJobs  *tablejob.Service
	Migrations *migration.Service
	Backups    *backup.Service
	Requests   *requestlog.Counter
}

// NewServices returns the services with all workers and the periodic work registered.
func NewServices(c ServicesConfig) *Services {
	q, l := c.Domains.Queue, c.Lifecycle
	s := &Services{
		Domains:    c.Domains,
		Lifecycle:  l,
		TableJobs:  tablejob.New(l, q, c.Log),
		Migrations: migration.New(l, c.Database.Binaries, c.Log),
		Backups: backup.New(backup.Config{Lifecycle: l, Binaries: c.Database.Binaries, Queue: q,
			Subjects: c.Domains.Subjects, Notifications: c.Notifications, Log: c.Log}),
		Requests: requestlog.NewCounter(c.Database.Store.DB()),
	}

	store := c.Database.Store
	q.SetPeriodic(queue.Periodic{
		CleanUp: []func(context.Context) error{
			s.Backups.FailAbandoned, s.Backups.CreateDue, s.Backups.RemoveDeleted, s.Backups.DropOrphanedCopies,
			s.Migrations.DropOrphans, l.Finish, c.Clients.RecordLost, l.ChainAudit,
			c.Outbox.Sweep,
		},
		Sweep: []func(context.Context) error{
			s.sweepInstall, s.Accounts.Sweep, store.ForgetRequests,
			func(ctx context.Context) error { return requestlog.Sweep(ctx, store) },
			s.Backups.RemoveOrphans, s.Backups.RecomputeNextRuns, s.sweepProjects, s.Backups.EnqueueDueProofs,
		},
	})

	return s
}

// sweepInstall removes leftovers that belong to no project.
func (d *Domains) sweepInstall(ctx context.Context) error {
	var errs []error
	for _, subject := range d.Subjects {
		if subject.SweepInstall != nil {
			errs = append(errs, subject.SweepInstall(ctx))
		}
	}

	return errors.Join(errs...)
}

// sweepProjects removes expired data from all project databases, one at a time.
func (s *Services) sweepProjects(ctx context.Context) error {
	return errors.Join(
		s.Lifecycle.VisitActive(ctx, func(p *projectdb.Project) error {
			return errors.Join(s.sweepProject(ctx, p), p.ChainAudit(ctx))
		}),
		s.Lifecycle.VisitInactive(ctx, func(p *projectdb.Project) error { return s.sweepInactive(ctx, p) }),
	)
}

func (d *Domains) sweepProject(ctx context.Context, p *projectdb.Project) error {
	var errs []error
	for _, subject := range d.Subjects {
		if subject.Sweep != nil {
			errs = append(errs, subject.Sweep(ctx, p))
		}
	}

	return errors.Join(errs...)
}

func (d *Domains) sweepInactive(ctx context.Context, p *projectdb.Project) error {
	var errs []error
	for _, subject := range d.Subjects {
		if subject.SweepInactive != nil {
			errs = append(errs, subject.SweepInactive(ctx, p))
		}
	}

	return errors.Join(errs...)
}
