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

// Some jobs run code of a project's owner, and may take as long as that likes. So a server works on one job of a queue per
// project, and an organization has a share of a queue's workers, never all.

// sharedQueue is a queue whose workers are shared out: how many there are on one server, and how many of them work for one
// organization.
type sharedQueue struct{ workers, share int }

var sharedQueues = map[string]sharedQueue{
	backupQueue:     {3, 2},
	restoreQueue:    {2, 1},
	proofQueue:      {2, 1},
	compactionQueue: {2, 1},
	indexQueue:      {3, 2},
}

// A job beyond its share waits. The more such jobs a project or an organization has, the longer they wait: each is taken and
// put back again, and a backlog must not keep the workers busy with that.
const (
	shareRetry     = time.Second
	shareRetryStep = 500 * time.Millisecond // more for each job of the backlog
	shareRetryMost = time.Minute
)

// fairness is middleware that puts jobs of shared queues back that are beyond their share.
type fairness struct {
	river.MiddlewareDefaults
	pool *pgxpool.Pool // of the platform database
	log  *slog.Logger

	mu      sync.Mutex
	running map[claim]int
}

// claim is a project's, or an organization's, on the workers of a queue.
type claim struct {
	queue string
	owner uuid.UUID
}

// jobOwner is whose database a job works on.
type jobOwner struct{ Project, Organization uuid.UUID }

// ownerOf joins to a job j its project p.
const ownerOf = `
	left join platform.backups b on j.kind in ('backup', 'prove') and b.uuid = (j.args ->> 'backup')::uuid
	left join platform.restores r on j.kind = 'restore' and r.uuid = (j.args ->> 'restore')::uuid
	join platform.projects p on p.uuid = coalesce(b.project_uuid, r.project_uuid, (j.args ->> 'project')::uuid)`

// Work runs a job, or puts it back with the rest of the backlog.
func (f *fairness) Work(ctx context.Context, job *rivertype.JobRow, run func(context.Context) error) error {
	shared, ok := sharedQueues[job.Queue]
	if !ok {
		return run(ctx)
	}

	owner, err := pg.One[jobOwner](ctx, f.pool, `
		select p.uuid as project, p.organization_uuid as organization from river.river_job j`+ownerOf+`
		where j.id = @job`, pgx.StrictNamedArgs{"job": job.ID})
	if fault.Is(err, fault.NotFound) { // the project is gone: there is nothing to work on
		return run(ctx)
	}
	if err != nil {
		return f.snooze(job, err)
	}

	full := f.take(job.Queue, owner, shared.share)
	if full == uuid.Nil {
		defer f.release(job.Queue, owner)

		return run(ctx)
	}

	return f.snooze(job, f.putBack(ctx, job, full))
}

// snooze has River put a job back.
func (f *fairness) snooze(job *rivertype.JobRow, err error) error {
	if err != nil {
		f.log.Warn("share out workers", "queue", job.Queue, "job", job.ID, "error", err)
	}
	return river.JobSnooze(shareRetry)
}

// take takes a worker for a project. It returns uuid.Nil, or the project or organization that has its share.
func (f *fairness) take(queue string, o jobOwner, share int) (full uuid.UUID) {
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

// release gives the worker back.
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

// putBack has the other due jobs of a queue wait that are of the same project or organization.
func (f *fairness) putBack(ctx context.Context, job *rivertype.JobRow, full uuid.UUID) error {
	_, err := pg.Exec(ctx, f.pool, `
		with due as (
			select j.id, j.scheduled_at from river.river_job j`+ownerOf+`
			where j.queue = @queue and j.state = 'available' and j.scheduled_at <= now() and @full in (p.uuid, p.organization_uuid)
			for update of j skip locked
		), backlog as (
			select id, row_number() over (order by scheduled_at, id) as n from due
		)
		update river.river_job j
		set scheduled_at = now() + least(@retry::interval + b.n * @step::interval, @most::interval)
		from backlog b where j.id = b.id`,
		pgx.StrictNamedArgs{
			"queue": job.Queue, "full": full, "retry": shareRetry, "step": shareRetryStep, "most": shareRetryMost,
		})

	return err
}
