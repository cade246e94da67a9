package job

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

	"socle/internal/fault"
	"socle/internal/pg"
)

// Some jobs run user code, which can take arbitrarily long. Each server therefore runs one job per
// project and queue, and an organization is limited to a share of a queue's workers, never all of
// them.

// sharedQueue is a queue with a fair share: its workers per server, and the maximum per
// organization.
type sharedQueue struct{ workers, share int }

var sharedQueues = map[string]sharedQueue{
	backupQueue:     {3, 2},
	restoreQueue:    {2, 1},
	proofQueue:      {2, 1},
	compactionQueue: {2, 1},
	indexQueue:      {3, 2},
}

// A job beyond its share is snoozed. The delay grows with the backlog of its project or
// organization, since every attempt occupies a worker briefly.
const (
	shareRetryDelay    = time.Second
	shareRetryStep     = 500 * time.Millisecond // per job in the backlog
	maxShareRetryDelay = time.Minute
)

// fairness is middleware that snoozes jobs of shared queues beyond their share.
type fairness struct {
	river.MiddlewareDefaults
	pool *pgxpool.Pool // platform database
	log  *slog.Logger

	mu      sync.Mutex
	running map[claim]int
}

// claim identifies the workers of a queue in use by a project or an organization.
type claim struct {
	queue string
	owner uuid.UUID
}

// jobOwner is the project that a job works on, and its organization.
type jobOwner struct{ Project, Organization uuid.UUID }

// connectOwner joins the project p to a job j.
const connectOwner = `
	left join platform.backups b on j.kind in ('backup', 'prove') and b.uuid = (j.args ->> 'backup')::uuid
	left join platform.restores r on j.kind = 'restore' and r.uuid = (j.args ->> 'restore')::uuid
	join platform.projects p on p.uuid = coalesce(b.project_uuid, r.project_uuid, (j.args ->> 'project')::uuid)`

// Work runs a job, or snoozes it with the rest of its owner's backlog.
func (f *fairness) Work(ctx context.Context, job *rivertype.JobRow, run func(context.Context) error) error {
	shared, ok := sharedQueues[job.Queue]
	if !ok {
		return run(ctx)
	}

	owner, err := pg.One[jobOwner](ctx, f.pool, `
		select p.uuid as project, p.organization_uuid as organization from river.river_job j`+connectOwner+`
		where j.id = @job`, pgx.StrictNamedArgs{"job": job.ID})
	if fault.Is(err, fault.NotFound) { // the project was purged: the job finds nothing to do
		return run(ctx)
	}
	if err != nil {
		return f.snooze(job, err)
	}

	full := f.acquire(job.Queue, owner, shared.share)
	if full == uuid.Nil {
		defer f.release(job.Queue, owner)

		return run(ctx)
	}

	return f.snooze(job, f.delayBacklog(ctx, job, full))
}

// snooze reschedules a job after shareRetryDelay. It logs err, if any.
func (f *fairness) snooze(job *rivertype.JobRow, err error) error {
	if err != nil {
		f.log.Warn("limit workers to shares", "queue", job.Queue, "job", job.ID, "error", err)
	}
	return river.JobSnooze(shareRetryDelay)
}

// acquire claims a worker for a project. It returns uuid.Nil on success, otherwise the project or
// organization that has used up its share.
func (f *fairness) acquire(queue string, o jobOwner, share int) (full uuid.UUID) {
	f.mu.Lock()
	defer f.mu.Unlock()

	project, organization := claim{queue, o.Project}, claim{queue, o.Organization}
	if f.running[project] >= 1 {
		return o.Project
	}
	if f.running[organization] >= share {
		return o.Organization
	}

	f.running[project]++
	f.running[organization]++

	return uuid.Nil
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
			select j.id, j.scheduled_at from river.river_job j`+connectOwner+`
			where j.queue = @queue and j.state = 'available' and j.scheduled_at <= now() and @full in (p.uuid, p.organization_uuid)
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
