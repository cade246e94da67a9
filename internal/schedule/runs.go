package schedule

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/projectdb"
)

// JobRun is a run of a schedule.
type JobRun struct {
	ID          int64      `json:"id" db:"runid"`
	Schedule    int64      `json:"scheduleId" db:"jobid"`
	Command     string     `json:"command" doc:"SQL at that time, its first 2,000 characters; empty for an endpoint."`
	Status      string     `json:"status" enum:"queued,starting,running,succeeded,failed,skipped,missed"`
	Message     string     `json:"message" db:"return_message" doc:"Result, or why the run failed or did not happen."`
	ScheduledAt *time.Time `json:"scheduledAt" nullable:"true" doc:"When the run was due; null for a run on request."`
	StartedAt   *time.Time `json:"startedAt" nullable:"true" db:"start_time"`
	EndedAt     *time.Time `json:"endedAt" nullable:"true" db:"end_time"`
	DurationMs  *float64   `json:"durationMs" nullable:"true"`
	Occurrences int        `json:"occurrences" doc:"Due times in a row that a skipped run stands for."`
}

const runColumns = ` r.runid, r.jobid, coalesce(r.command, '') as command, coalesce(r.status, '') as status,
	coalesce(r.return_message, '') as return_message, r.scheduled_at, r.start_time, r.end_time,
	extract(epoch from r.end_time - r.start_time)::float8 * 1000 as duration_ms, r.occurrences `

// Request has a schedule run once, soon, also if it is not active. It fails with NotFound without
// the schedule, and with Conflict while a requested run waits.
func (s *Service) Request(ctx context.Context, p *projectdb.Project, name string) (JobRun, error) {
	if err := requireAvailable(ctx, p); err != nil {
		return JobRun{}, err
	}

	args := named(name)
	args["kept"] = keptCommand
	run, err := pg.InTxValue(ctx, p.InTx, func(tx pgx.Tx) (JobRun, error) {
		return pg.One[JobRun](ctx, tx, `
			with r as (
				insert into cron.job_run_details (jobid, database, username, command, status)
				select j.jobid, j.database, j.username, left(j.command, @kept), 'queued' from cron.job j where`+ofName+`
				returning *
			)
			select`+runColumns+`from r`, args)
	})
	if pg.State(err) == "23505" { // unique_violation
		return JobRun{}, fault.New(fault.Conflict, "a run that was requested before has not begun yet").
			WithCode("busy").WithCause(err)
	}
	if err != nil {
		return JobRun{}, err
	}

	return run, s.announce(ctx, p, time.Now())
}

// Runs returns up to n runs of a schedule, newest first, that are older than the run before; 0:
// from the newest. It fails with NotFound without the schedule.
func (s *Service) Runs(ctx context.Context, p *projectdb.Project, name string, before int64, n int) ([]JobRun, error) {
	schedule, err := s.Get(ctx, p, name)
	if err != nil {
		return nil, err
	}

	return pg.All[JobRun](ctx, p.Trusted(), `select`+runColumns+`
		from cron.job_run_details r where r.jobid = @job and (@before = 0 or r.runid < @before)
		order by r.runid desc limit @n`,
		pgx.StrictNamedArgs{"job": schedule.ID, "before": before, "n": n})
}
