package schedule

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/fair"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/function"
	"github.com/socle-dev/socle/internal/outbound"
	"github.com/socle-dev/socle/internal/outbox"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/platform"
	"github.com/socle-dev/socle/internal/projectdb"
)

// Limits of jobs. Those of names and commands are also in the functions of schema cron.
const (
	MaxTimeout = 10 * time.Minute // per run

	maxCommand = 64 << 10 // bytes
	maxName    = 255      // bytes
	maxURL     = 500      // bytes

	// Runs on a server at a time.
	maxRuns           = 16
	maxRunsPerAccount = 4
	maxRunsPerProject = 2
)

// Config has the dependencies of a [Service].
type Config struct {
	Platform  *platform.DB
	Projects  *projectdb.Registry
	Outbound  *outbound.Client  // requests to addresses that tenants choose
	Functions *function.Service // nil: none
	Log       *slog.Logger
}

// Service changes schedules, and runs what is due while [Service.Run] runs. It is safe for
// concurrent use.
type Service struct {
	projects  *projectdb.Registry
	times     times
	endpoints *outbound.Client
	functions *function.Service
	places    *fair.Pool    // for runs on this server, with the looks between them
	looks     *fair.Pool    // for looks without a place for a run
	wake      chan struct{} // a due time has changed
	succeeded atomic.Int64  // runs on this server
	failed    atomic.Int64
	log       *slog.Logger
}

// New returns a service.
func New(c Config) *Service {
	return &Service{
		projects: c.Projects, times: times{c.Platform}, endpoints: c.Outbound.Within(maxReply, "schedule_calls"),
		functions: c.Functions,
		places: fair.New(fair.Config{Name: "schedules", Capacity: maxRuns, PerAccount: maxRunsPerAccount,
			PerPart: maxRunsPerProject, Reserve: maxRuns / 4}),
		looks: fair.New(fair.Config{Name: "schedule_looks", Capacity: maxRuns / 2, PerAccount: maxRunsPerAccount / 2,
			PerPart: 1, Reserve: maxRuns / 8}),
		wake: make(chan struct{}, 1), log: c.Log,
	}
}

// Pools returns the pools that accounts share, for metrics.
func (s *Service) Pools() []*fair.Pool { return []*fair.Pool{s.places, s.looks} }

// RunCounts returns the numbers of runs of schedules on this server since it started.
func (s *Service) RunCounts() (succeeded, failed int64) { return s.succeeded.Load(), s.failed.Load() }

// Kind returns the work that SQL leaves by changing jobs: to compute when they are due.
func (s *Service) Kind() outbox.Kind {
	return outbox.Kind{Name: "schedules", Pending: `socle.has_unplanned_jobs()`, Run: s.plan}
}

// announce has a server look into a project soon: in this process at once.
func (s *Service) announce(ctx context.Context, p *projectdb.Project, at time.Time) error {
	if err := s.times.announce(ctx, p.UUID, at); err != nil {
		return err
	}

	select {
	case s.wake <- struct{}{}:
	default:
	}

	return nil
}

// isAvailable reports whether the schema cron is the platform's, of this release or a later one. A
// project that had a schema of that name keeps it.
func isAvailable(ctx context.Context, q pg.Querier) (bool, error) {
	return pg.Value[bool](ctx, q, `
		select exists (
			select from pg_catalog.pg_namespace c join pg_catalog.pg_namespace s on s.nspowner = c.nspowner
			where c.nspname = 'cron' and s.nspname = 'socle'
				and exists (select from pg_catalog.pg_attribute
					where attrelid = pg_catalog.to_regclass('cron.job') and attname = 'next_run_at'))`)
}

// requireAvailable fails with Conflict for a project that has a schema cron of its own.
func requireAvailable(ctx context.Context, p *projectdb.Project) error {
	available, err := isAvailable(ctx, p.Trusted())
	if err == nil && !available {
		err = fault.New(fault.Conflict, "the project has a schema cron of its own, so it has no schedules of the platform").
			WithCode("schema_taken")
	}

	return err
}

// Subject returns the subject "cron": jobs, and runs for a week.
func Subject() projectdb.Subject {
	return projectdb.Subject{
		Schema: "cron",
		Sweep:  sweep,
		Restore: projectdb.Restore{Skipped: []string{"job_run_details"}, Prepare: prepare,
			Detach: deactivate},
	}
}

// sweep removes old runs.
func sweep(ctx context.Context, p *projectdb.Project) error {
	if available, err := isAvailable(ctx, p.Trusted()); err != nil || !available {
		return err
	}

	_, err := pg.Exec(ctx, p.Trusted(), `
		delete from cron.job_run_details
		where start_time < now() - make_interval(secs => @seconds::float8) and status not in ('queued', 'starting', 'running')`,
		pgx.StrictNamedArgs{"seconds": runAge.Seconds()})
	return err
}

// prepare forgets runs and due times from the time of the backup: nothing is made up for.
func prepare(ctx context.Context, tx pgx.Tx) error {
	if available, err := isAvailable(ctx, tx); err != nil || !available {
		return err
	}

	if _, err := pg.Exec(ctx, tx, `delete from cron.job_run_details`); err != nil {
		return err
	}
	if _, err := pg.Exec(ctx, tx, `update cron.job set next_run_at = null`); err != nil {
		return err
	}

	// A dump of rows has no sequences.
	_, err := pg.Exec(ctx, tx, `
		select setval('cron.jobid_seq', max(jobid)) from cron.job having count(*) > 0`)
	return err
}

// deactivate keeps the jobs of a project from running in a copy as well.
func deactivate(ctx context.Context, tx pgx.Tx) error {
	isOurs, err := pg.Value[bool](ctx, tx, `
		select exists (select from pg_catalog.pg_namespace c join pg_catalog.pg_namespace s on s.nspowner = c.nspowner
			where c.nspname = 'cron' and s.nspname = 'socle')`)
	if err != nil || !isOurs {
		return err
	}

	_, err = pg.Exec(ctx, tx, `update cron.job set active = false`)
	return err
}
