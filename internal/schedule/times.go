package schedule

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/platform"
)

const (
	// lookLease is how long other servers leave a project that one has taken: longer than a look.
	lookLease = 30 * time.Second
	// retryDelay is the pause before a project whose account has no place is taken again.
	retryDelay = time.Second
	// maxTaken bounds the projects that a server takes at once.
	maxTaken = 2 * maxRuns
)

// times are the due times of projects, rows of platform.schedule_times.
//
// Each change of a row gives it another version, and [times.settle] requires the version that the
// look began with: a look that has missed something does not hide it.
type times struct{ db *platform.DB }

// taken is a project to look into.
type taken struct {
	Project uuid.UUID `db:"project_uuid"`
	Account uuid.UUID
	Version int64
}

// take takes the projects that are due: of each account no more than may run at a time.
func (t times) take(ctx context.Context) ([]taken, error) {
	return pg.All[taken](ctx, t.db.Querier(), `
		with due as (
			select t.project_uuid, t.next_run_at, a.account,
				row_number() over (partition by a.account order by t.next_run_at) as n
			from platform.schedule_times t join platform.projects p on p.uuid = t.project_uuid,
				lateral (select platform.account_of(p.organization_uuid) as account) a
			where t.next_run_at <= now() and p.status = 'active'
		), first as (
			select t.project_uuid, d.account
			from platform.schedule_times t join due d on d.project_uuid = t.project_uuid
			where d.n <= @perAccount and t.next_run_at <= now()
			order by d.next_run_at limit @most for update of t skip locked
		)
		update platform.schedule_times t
		set next_run_at = now() + make_interval(secs => @lease::float8), version = t.version + 1
		from first where first.project_uuid = t.project_uuid
		returning t.project_uuid, first.account, t.version`,
		pgx.StrictNamedArgs{"perAccount": maxRunsPerAccount, "most": maxTaken, "lease": lookLease.Seconds()})
}

// retake takes a project again for the next look.
func (t times) retake(ctx context.Context, project uuid.UUID) (version int64, err error) {
	return pg.Value[int64](ctx, t.db.Querier(), `
		update platform.schedule_times
		set next_run_at = now() + make_interval(secs => @lease::float8), version = version + 1
		where project_uuid = @project returning version`,
		pgx.StrictNamedArgs{"project": project, "lease": lookLease.Seconds()})
}

// settle sets a project's due time after a look; nil: never. It reports false, and changes nothing,
// if the version is not the row's any more.
func (t times) settle(ctx context.Context, project uuid.UUID, version int64, next *time.Time) (bool, error) {
	n, err := pg.Exec(ctx, t.db.Querier(), `
		update platform.schedule_times set next_run_at = @next where project_uuid = @project and version = @version`,
		pgx.StrictNamedArgs{"project": project, "version": version, "next": next})
	return n > 0, err
}

// postpone has a project taken again after retryDelay.
func (t times) postpone(ctx context.Context, project uuid.UUID, version int64) error {
	_, err := pg.Exec(ctx, t.db.Querier(), `
		update platform.schedule_times set next_run_at = now() + make_interval(secs => @delay::float8)
		where project_uuid = @project and version = @version`,
		pgx.StrictNamedArgs{"project": project, "version": version, "delay": retryDelay.Seconds()})
	return err
}

// announce makes a project due at a time, unless it is earlier.
func (t times) announce(ctx context.Context, project uuid.UUID, at time.Time) error {
	_, err := pg.Exec(ctx, t.db.Querier(), `
		insert into platform.schedule_times as t (project_uuid, next_run_at)
		select uuid, @at::timestamptz from platform.projects where uuid = @project
		on conflict (project_uuid) do update
		set next_run_at = least(t.next_run_at, excluded.next_run_at), version = t.version + 1`,
		pgx.StrictNamedArgs{"project": project, "at": at})
	return err
}
