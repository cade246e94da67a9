package schedule

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/projectdb"
)

const (
	lookTimeout = 15 * time.Second
	// watchInterval is the time between looks into a project with runs in progress.
	watchInterval = 30 * time.Second

	maxRunsKept = 1000               // per job
	runAge      = 7 * 24 * time.Hour // at which runs are removed
	keptCommand = 2000               // characters of the command in a run
)

// work is a claimed run.
type work struct {
	Run            int64
	Job            int64
	Name           *string
	Command        string
	URL            *string
	TimeoutSeconds int
	ScheduledAt    *time.Time
}

// outcome is the outcome of a look.
type outcome struct {
	work *work      // nil: nothing to do now
	next *time.Time // the project's next due time; nil: none
}

// plan computes the due times of changed jobs. It begins no run.
func (s *Service) plan(ctx context.Context, p *projectdb.Project) error {
	o, err := look(ctx, p, false)
	if err != nil || o.next == nil {
		return err
	}

	return s.announce(ctx, p, *o.next)
}

// look plans a project's jobs and claims the run that is due first. It does nothing in a project
// with a schema cron of its own.
func look(ctx context.Context, p *projectdb.Project, claims bool) (outcome, error) {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()

	return pg.InTxValue(ctx, inProject(p), func(tx pgx.Tx) (outcome, error) {
		if available, err := isAvailable(ctx, tx); err != nil || !available {
			return outcome{}, err
		}

		// The owner may lock the table. Changes of jobs lock it before rows, as this does.
		now, err := pg.Value[time.Time](ctx, tx, `select now() from set_config('lock_timeout', '2s', true)`)
		if err != nil {
			return outcome{}, err
		}
		if _, err := pg.Exec(ctx, tx, `lock table cron.job in row exclusive mode`); err != nil {
			return outcome{}, err
		}

		if err := failLost(ctx, tx); err != nil {
			return outcome{}, fmt.Errorf("fail lost runs: %w", err)
		}

		jobs, err := openJobs(ctx, tx)
		if err != nil {
			return outcome{}, fmt.Errorf("list open jobs: %w", err)
		}

		var o outcome
		if o.work, err = apply(ctx, tx, jobs, now, claims); err != nil {
			return outcome{}, err
		}

		o.next, err = nextLook(ctx, tx)
		return o, err
	})
}

// inProject returns transactions on the platform's login without an entry in the audit log.
func inProject(p *projectdb.Project) func(context.Context, func(pgx.Tx) error) error {
	return func(ctx context.Context, f func(tx pgx.Tx) error) error { return pg.InTx(ctx, p.Trusted(), f) }
}

// failLost fails runs without a session: their server has stopped. Calls of endpoints have no
// session, but a timeout.
func failLost(ctx context.Context, tx pgx.Tx) error {
	_, err := pg.Exec(ctx, tx, `
		update cron.job_run_details r
		set status = 'failed', end_time = clock_timestamp(), return_message = 'the server stopped during the run'
		where r.status in ('starting', 'running') and case when r.job_pid is null
			then r.start_time < now() - make_interval(secs => @seconds::float8)
			else not exists (select from pg_stat_activity a where a.pid = r.job_pid and a.backend_start = r.session_start) end`,
		pgx.StrictNamedArgs{"seconds": (2 * acquireTimeout).Seconds()})
	return err
}

// openJobs returns and locks the jobs that are unplanned, due or requested, in the order in which
// they are due. A job that another transaction has locked is left for the next look.
func openJobs(ctx context.Context, tx pgx.Tx) ([]job, error) {
	return pg.All[job](ctx, tx, `
		select j.jobid as id, j.schedule, j.timezone, j.overlap, j.active, nullif(j.next_run_at, 'infinity') as due_at,
			j.next_run_at is not null as is_planned,
			exists (select from cron.job_run_details r where r.jobid = j.jobid and r.status in ('starting', 'running')) as is_running,
			(select min(r.runid) from cron.job_run_details r where r.jobid = j.jobid and r.status = 'queued') as queued_run
		from cron.job j
		where j.next_run_at is null or j.next_run_at <= now()
			or exists (select from cron.job_run_details r where r.jobid = j.jobid and r.status = 'queued')
		order by j.next_run_at, j.jobid for update of j skip locked`)
}

// apply carries out the decisions for jobs, and claims the first run if it may.
func apply(ctx context.Context, tx pgx.Tx, jobs []job, now time.Time, claims bool) (*work, error) {
	var planned, skipped []int64
	var next []*time.Time
	var claimed *work

	for _, j := range jobs {
		d := j.decide(now)
		switch d.action {
		case begin:
			if claimed != nil || !claims {
				continue // still due
			}

			var err error
			if claimed, err = claim(ctx, tx, j); err != nil {
				return nil, fmt.Errorf("claim run: %w", err)
			}
		case skip:
			skipped = append(skipped, j.ID)
		case miss:
			if err := record(ctx, tx, j, "missed", "the project was paused, or no server was free, for an hour"); err != nil {
				return nil, err
			}
		case reject:
			if err := record(ctx, tx, j, "failed", d.reason); err != nil {
				return nil, err
			}
		}

		if !d.keepsDue {
			planned, next = append(planned, j.ID), append(next, d.next)
		}
	}

	if err := recordSkipped(ctx, tx, skipped); err != nil {
		return nil, fmt.Errorf("record skipped runs: %w", err)
	}

	_, err := pg.Exec(ctx, tx, `
		update cron.job j set next_run_at = coalesce(p.next, 'infinity')
		from unnest(@jobs::bigint[], @next::timestamptz[]) p(id, next) where j.jobid = p.id`,
		pgx.StrictNamedArgs{"jobs": planned, "next": next})
	return claimed, err
}

// claim begins a job's run: the requested one, or the one that is due.
func claim(ctx context.Context, tx pgx.Tx, j job) (*work, error) {
	run, err := beginRun(ctx, tx, j)
	if err != nil {
		return nil, err
	}

	w, err := pg.One[work](ctx, tx, `
		select r.runid as run, j.jobid as job, j.jobname as name, j.command, j.url, j.timeout_seconds, r.scheduled_at
		from cron.job j, cron.job_run_details r where j.jobid = @job and r.runid = @run`,
		pgx.StrictNamedArgs{"job": j.ID, "run": run})
	return &w, err
}

// beginRun returns the number of a run that it marks as starting.
func beginRun(ctx context.Context, tx pgx.Tx, j job) (int64, error) {
	if j.QueuedRun != nil {
		return pg.Value[int64](ctx, tx, `
			update cron.job_run_details set status = 'starting', start_time = clock_timestamp() where runid = @run
			returning runid`, pgx.StrictNamedArgs{"run": j.QueuedRun})
	}

	return pg.Value[int64](ctx, tx, `
		insert into cron.job_run_details (jobid, database, username, command, status, start_time, scheduled_at)
		select jobid, database, username, left(command, @kept), 'starting', clock_timestamp(), @due
		from cron.job where jobid = @job returning runid`,
		pgx.StrictNamedArgs{"job": j.ID, "due": j.DueAt, "kept": keptCommand})
}

// record records a run that does not happen.
func record(ctx context.Context, tx pgx.Tx, j job, status, message string) error {
	_, err := pg.Exec(ctx, tx, `
		insert into cron.job_run_details (jobid, database, username, command, status, return_message, start_time, end_time, scheduled_at)
		select jobid, database, username, left(command, @kept), @status, @message, clock_timestamp(), clock_timestamp(), @due
		from cron.job where jobid = @job`,
		pgx.StrictNamedArgs{"job": j.ID, "status": status, "message": message, "due": j.DueAt, "kept": keptCommand})
	if err != nil {
		return fmt.Errorf("record %s run: %w", status, err)
	}

	return nil
}

// recordSkipped records skipped runs. Those that follow each other share a row.
func recordSkipped(ctx context.Context, tx pgx.Tx, jobs []int64) error {
	if len(jobs) == 0 {
		return nil
	}

	_, err := pg.Exec(ctx, tx, `
		with again as (
			update cron.job_run_details r set occurrences = r.occurrences + 1, end_time = clock_timestamp()
			from unnest(@jobs::bigint[]) s(id)
			where r.jobid = s.id and r.status = 'skipped'
				and r.runid = (select max(l.runid) from cron.job_run_details l where l.jobid = s.id)
			returning r.jobid
		)
		insert into cron.job_run_details (jobid, database, username, command, status, return_message, start_time, end_time, scheduled_at)
		select j.jobid, j.database, j.username, left(j.command, @kept), 'skipped', 'the run before was still in progress',
			clock_timestamp(), clock_timestamp(), j.next_run_at
		from cron.job j where j.jobid = any(@jobs) and j.jobid not in (select jobid from again)`,
		pgx.StrictNamedArgs{"jobs": jobs, "kept": keptCommand})
	return err
}

// nextLook returns when a server has something to do in the project: a job is due, or runs in
// progress may have lost their server. A job that waits for its own run is not due before.
func nextLook(ctx context.Context, tx pgx.Tx) (*time.Time, error) {
	return pg.Value[*time.Time](ctx, tx, `
		with unfinished as (
			select jobid, status from cron.job_run_details where status in ('queued', 'starting', 'running')
		), running as (
			select jobid from unfinished where status <> 'queued'
		)
		select nullif(least(
			(select min(coalesce(j.next_run_at, now())) from cron.job j
				where j.next_run_at > now() or j.jobid not in (select jobid from running)),
			(select now() from unfinished where status = 'queued' and jobid not in (select jobid from running) limit 1),
			(select now() + make_interval(secs => @watch::float8) from running limit 1)
		), 'infinity')`, pgx.StrictNamedArgs{"watch": watchInterval.Seconds()})
}
