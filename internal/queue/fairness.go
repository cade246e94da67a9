package queue

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"

	"github.com/socle-dev/socle/internal/pg"
)

// Some jobs run user code, which can take arbitrarily long. Each server therefore runs one job per
// project and queue, and an organization is limited to a share of a queue's workers, never all of
// them, see [Workers].

// A job beyond its share is snoozed. The delay grows with the backlog of its project or
// organization, since every attempt occupies a worker briefly.
const (
	shareRetryDelay    = time.Second
	shareRetryStep     = 500 * time.Millisecond // per job in the backlog
	maxShareRetryDelay = time.Minute
)

// fairness is middleware that snoozes jobs beyond the share of their project or organization.
type fairness struct {
	river.MiddlewareDefaults
	pool   *pgxpool.Pool // platform database
	log    *slog.Logger
	queues map[string]Workers

	mu      sync.Mutex
	running map[claim]int
}

// claim identifies the workers of a queue in use by a project or an organization.
type claim struct {
	queue string
	owner uuid.UUID
}

// jobOwner is the project that a job works on, and its organization. Both are nil for jobs of a
// purged project, and for those of an earlier release, whose arguments name no project: they share
// one worker.
type jobOwner struct{ Project, Organization uuid.UUID }

// selectOwner selects the owner of a job j.
const selectOwner = `
	select coalesce(p.uuid, '00000000-0000-0000-0000-000000000000') as project,
		coalesce(p.organization_uuid, '00000000-0000-0000-0000-000000000000') as organization
	from (select (j.args ->> 'project')::uuid as project) a left join platform.projects p on p.uuid = a.project`

// Work runs a job, or snoozes it with the rest of its owner's backlog.
func (f *fairness) Work(ctx context.Context, job *rivertype.JobRow, run func(context.Context) error) error {
	workers := f.queues[job.Queue]
	if workers.PerOrganization == 0 {
		return run(ctx)
	}

	owner, err := pg.One[jobOwner](ctx, f.pool, `
		select o.project, o.organization
		from river.river_job j cross join lateral (`+selectOwner+`) o where j.id = @job`,
		pgx.StrictNamedArgs{"job": job.ID})
	if err != nil {
		return f.snooze(job, err)
	}

	full, ok := f.acquire(job.Queue, owner, workers.PerOrganization)
	if !ok {
		return f.snooze(job, f.delayBacklog(ctx, job, full))
	}
	defer f.release(job.Queue, owner)

	return run(ctx)
}

// snooze reschedules a job after shareRetryDelay. It logs err, if any.
func (f *fairness) snooze(job *rivertype.JobRow, err error) error {
	if err != nil {
		f.log.Warn("limit workers to shares", "queue", job.Queue, "job", job.ID, "error", err)
	}
	return river.JobSnooze(shareRetryDelay)
}

// acquire claims a worker for a project. If the project or its organization has used up its share,
// it reports false and returns which.
func (f *fairness) acquire(queue string, o jobOwner, share int) (full uuid.UUID, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()

	project, organization := claim{queue, o.Project}, claim{queue, o.Organization}
	if f.running[project] >= 1 {
		return o.Project, false
	}
	if f.running[organization] >= share {
		return o.Organization, false
	}

	f.running[project]++
	f.running[organization]++

	return uuid.Nil, true
}

// release returns the worker.
func (f *fairness) release(queue string, o jobOwner) {
	f.mu.Lock()
	defer f.mu.Unlock()

	for _, owner := range []uuid.UUID{o.Project, o.Organization} {
		c := claim{queue, owner}
		if f.running[c]--; f.running[c] == 0 {
			delete(f.running, c)
		}
	}
}

// delayBacklog delays the other due jobs of the queue that belong to the same project or
// organization.
func (f *fairness) delayBacklog(ctx context.Context, job *rivertype.JobRow, full uuid.UUID) error {
	_, err := pg.Exec(ctx, f.pool, `
		with due as (
			select j.id, j.scheduled_at
			from river.river_job j cross join lateral (`+selectOwner+`) o
			where j.queue = @queue and j.state = 'available' and j.scheduled_at <= now() and @full in (o.project, o.organization)
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
