package queue

import (
	"context"
	"log/slog"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"

	"github.com/socle-dev/socle/internal/fair"
	"github.com/socle-dev/socle/internal/pg"
)

// Some jobs run user code, which can take arbitrarily long. Each server therefore runs one job per
// project and queue, and an account has only a share of a queue's workers, see [Workers].

// A job beyond its share is snoozed. The delay grows with the backlog, since every attempt occupies
// a worker briefly.
const (
	shareRetryDelay    = time.Second
	shareRetryStep     = 500 * time.Millisecond // per job in the backlog
	maxShareRetryDelay = time.Minute
)

// fairness is middleware that snoozes jobs whose project or account has no share left.
type fairness struct {
	river.MiddlewareDefaults
	pool   *pgxpool.Pool // platform database
	log    *slog.Logger
	shares map[string]*fair.Pool // by queue; none for a queue without shares
}

// jobOwner is a job's project and the account that it counts to. Without a project the account is
// the arguments' share, or "" for the jobs of an earlier release, which share one worker.
type jobOwner struct {
	Project uuid.UUID
	Account string
}

// selectOwner selects the owner of job j.
const selectOwner = `
	select coalesce(p.uuid, '00000000-0000-0000-0000-000000000000') as project,
		coalesce(platform.account_of(p.organization_uuid)::text, a.share, '') as account
	from (select (j.args ->> 'project')::uuid as project, j.args ->> 'share' as share) a left join platform.projects p on p.uuid = a.project`

// shares configures the pool of the queue's workers on one of several servers.
func (w Workers) shares(servers int) fair.Config {
	capacity, perAccount := w.PerServer, w.PerAccount
	if w.InDatabase { // two at least: one account never has them all
		capacity = max((w.PerServer+servers-1)/servers, 2)
		perAccount = max(w.PerAccount*capacity/w.PerServer, 1)
	}

	return fair.Config{Name: w.Queue, Capacity: int64(capacity), PerAccount: int64(perAccount),
		PerPart: 1, Reserve: int64(max(capacity/4, 1))}
}

// Divide makes the workers for PostgreSQL's own work those of one of several servers. Running jobs
// run to their end.
func (q *Queue) Divide(servers int) {
	for name, share := range q.shares {
		share.Resize(q.queues[name].shares(servers))
	}
}

// Work runs a job, or snoozes it and its owner's backlog.
func (f *fairness) Work(ctx context.Context, job *rivertype.JobRow, run func(context.Context) error) error {
	share := f.shares[job.Queue]
	if share == nil {
		return run(ctx)
	}

	owner, err := pg.One[jobOwner](ctx, f.pool, `
		select o.project, o.account
		from river.river_job j cross join lateral (`+selectOwner+`) o where j.id = @job`,
		pgx.StrictNamedArgs{"job": job.ID})
	if err != nil {
		return f.snooze(job, err)
	}

	key := fair.Key{Account: owner.Account, Part: owner.Project.String()}
	lease := share.TryAcquire(key, 1)
	if lease == nil {
		full := owner.Account
		if _, running := share.Held(key); running > 0 && owner.Project != uuid.Nil {
			full = owner.Project.String()
		}

		return f.snooze(job, f.delayBacklog(ctx, job, full))
	}
	defer lease.Release()

	return run(ctx)
}

// snooze reschedules a job after shareRetryDelay. It logs err, if any.
func (f *fairness) snooze(job *rivertype.JobRow, err error) error {
	if err != nil {
		f.log.Warn("limit workers to shares", "queue", job.Queue, "job", job.ID, "error", err)
	}
	return river.JobSnooze(shareRetryDelay)
}

// delayBacklog delays the queue's other due jobs for the full project or account.
func (f *fairness) delayBacklog(ctx context.Context, job *rivertype.JobRow, full string) error {
	_, err := pg.Exec(ctx, f.pool, `
		with due as (
			select j.id, j.scheduled_at
			from river.river_job j cross join lateral (`+selectOwner+`) o
			where j.queue = @queue and j.state = 'available' and j.scheduled_at <= now() and @full in (o.project::text, o.account)
			for update of j skip locked
		), backlog as (
			select id, row_number() over (order by scheduled_at, id) as n from due
		)
		update river.river_job j
		set scheduled_at = now() + least(@retry::interval + b.n * @step::interval, @most::interval)
		from backlog b where j.id = b.id`,
		pgx.StrictNamedArgs{
			"queue": job.Queue, "full": full,
			"retry": shareRetryDelay, "step": shareRetryStep, "most": maxShareRetryDelay,
		})

	return err
}
