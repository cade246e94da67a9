package schedule

import (
	"cmp"
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/audit"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/outbound"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/projectdb"
	"github.com/socle-dev/socle/internal/timetable"
)

// Schedule is a job with its due time and its last run.
type Schedule struct {
	ID             int64      `json:"id" db:"jobid" doc:"Number of the job, jobid in cron.job."`
	Name           *string    `json:"name" db:"jobname" nullable:"true" doc:"Unique in the project; null for a job that SQL has created without a name."`
	Cron           string     `json:"cron" db:"schedule" doc:"Cron expression, a word such as @daily, or an interval such as 30 seconds."`
	Timezone       string     `json:"timezone"`
	Command        string     `json:"command" doc:"SQL, which runs as the project's owner; empty if the schedule calls an endpoint."`
	Endpoint       *string    `json:"endpoint" db:"url" nullable:"true" doc:"URL that receives a signed POST, or functions://NAME for an edge function; null if the schedule runs a command."`
	Overlap        string     `json:"overlap" enum:"skip,queue" doc:"What happens when a run is due while the one before is in progress."`
	TimeoutSeconds int        `json:"timeoutSeconds" doc:"Time limit of a run; a URL has at most 10, an edge function at most its time to the answer, 150 by default."`
	Active         bool       `json:"active"`
	NextRunAt      *time.Time `json:"nextRunAt" nullable:"true" doc:"When the next run is due; null if never."`
	LastStatus     *string    `json:"lastStatus" nullable:"true" doc:"Status of the last run; null if none is kept."`
	LastRunAt      *time.Time `json:"lastRunAt" nullable:"true" doc:"When the last run began."`
}

// Details are further facts about a schedule.
type Details struct {
	NextRuns []time.Time `json:"nextRuns" doc:"The next three due times."`
	Secret   *string     `json:"secret" nullable:"true" doc:"Secret that signs the calls of the endpoint, by Standard Webhooks; null without an endpoint."`
}

// Values are values of a schedule. Nil leaves a value unchanged, or at its default.
type Values struct {
	Name, Cron, Timezone, Command, Endpoint, Overlap *string
	TimeoutSeconds                                   *int
	Active                                           *bool
}

// defaults are the values of a new schedule.
var defaults = Schedule{Timezone: "UTC", Overlap: Skip, TimeoutSeconds: int(MaxTimeout.Seconds()), Active: true}

// scheduleColumns read a [Schedule] from schedulesWithRuns.
const scheduleColumns = ` j.jobid, j.jobname, j.schedule, j.timezone, j.command, j.url, j.overlap, j.timeout_seconds, j.active,
	nullif(j.next_run_at, 'infinity') as next_run_at, l.status as last_status, l.start_time as last_run_at `

const schedulesWithRuns = ` cron.job j left join lateral (
		select status, start_time from cron.job_run_details r where r.jobid = j.jobid order by r.runid desc limit 1
	) l on true `

// ofName selects the schedule with a name or a number.
const ofName = ` j.jobid = (
	select k.jobid from cron.job k where k.jobname = @name or k.jobid = @id order by k.jobid = @id desc limit 1)`

// named returns the arguments for ofName. Digits are a number before they are a name.
func named(name string) pgx.StrictNamedArgs {
	id, err := strconv.ParseInt(name, 10, 64)
	if err != nil {
		id = 0 // no job has it
	}

	return pgx.StrictNamedArgs{"name": name, "id": id}
}

// List returns a page of schedules and the total number.
func (s *Service) List(ctx context.Context, p *projectdb.Project, page pg.Page) ([]Schedule, int64, error) {
	if err := requireAvailable(ctx, p); err != nil {
		return nil, 0, err
	}

	all, total, err := pg.List[Schedule](ctx, p.Trusted(), pg.Listing{
		Columns: scheduleColumns,
		From:    schedulesWithRuns,
		Sorts:   map[string]string{"id": "j.jobid", "name": "j.jobname", "nextRunAt": "j.next_run_at"},
		Tie:     "j.jobid",
	}, page, pgx.StrictNamedArgs{})
	for i := range all {
		all[i].complete()
	}

	return all, total, err
}

// Get returns a schedule by its name or number. It fails with NotFound without it.
func (s *Service) Get(ctx context.Context, p *projectdb.Project, name string) (Schedule, error) {
	if err := requireAvailable(ctx, p); err != nil {
		return Schedule{}, err
	}

	return get(ctx, p.Trusted(), name)
}

func get(ctx context.Context, q pg.Querier, name string) (Schedule, error) {
	schedule, err := pg.One[Schedule](ctx, q,
		`select`+scheduleColumns+`from`+schedulesWithRuns+`where`+ofName, named(name))
	schedule.complete()

	return schedule, err
}

// complete computes the due time of a job that no look has planned yet.
func (s *Schedule) complete() {
	if !s.Active {
		s.NextRunAt = nil
		return
	}
	if s.NextRunAt == nil {
		if table, err := timetable.ParseSchedule(s.Cron, s.Timezone); err == nil {
			s.NextRunAt = timeOf(table.Next(time.Now()))
		}
	}
}

// Details returns further facts about a schedule.
func (s *Service) Details(project uuid.UUID, schedule Schedule) Details {
	d := Details{NextRuns: []time.Time{}}
	if schedule.Endpoint != nil {
		secret := s.projects.ScheduleSecret(project, schedule.ID)
		d.Secret = &secret
	}

	table, err := timetable.ParseSchedule(schedule.Cron, schedule.Timezone)
	if err != nil || schedule.NextRunAt == nil {
		return d
	}

	for at := *schedule.NextRunAt; !at.IsZero() && len(d.NextRuns) < 3; at = table.Next(at) {
		d.NextRuns = append(d.NextRuns, at)
	}

	return d
}

// Create creates a schedule. It fails with Conflict if the name is taken, and for a project with a
// schema cron of its own, and with Unprocessable for invalid values and beyond the limit.
func (s *Service) Create(ctx context.Context, p *projectdb.Project, v Values) (Schedule, error) {
	if err := requireAvailable(ctx, p); err != nil {
		return Schedule{}, err
	}

	n := v.applyTo(defaults)
	if err := n.check(); err != nil {
		return Schedule{}, err
	}

	schedule, err := pg.InTxValue(ctx, p.InTx, func(tx pgx.Tx) (Schedule, error) {
		if err := lockJobs(ctx, tx); err != nil { // the table's trigger counts the jobs
			return Schedule{}, err
		}

		id, err := pg.Value[int64](ctx, tx, `
			insert into cron.job (jobname, schedule, timezone, command, url, overlap, timeout_seconds, active)
			values (@name, @cron, @timezone, @command, @url, @overlap, @timeout, @active) returning jobid`,
			n.args())
		if err != nil {
			return Schedule{}, err
		}

		audit.Created(ctx, *n.Name)
		return get(ctx, tx, strconv.FormatInt(id, 10))
	})
	if err != nil {
		return Schedule{}, scheduleFault(err)
	}

	return schedule, s.announce(ctx, p, time.Now())
}

// Update changes a schedule. It fails with NotFound without it, and as [Service.Create] does.
func (s *Service) Update(ctx context.Context, p *projectdb.Project, name string, v Values) (Schedule, error) {
	if err := requireAvailable(ctx, p); err != nil {
		return Schedule{}, err
	}

	updated, err := pg.InTxValue(ctx, p.InTx, func(tx pgx.Tx) (Schedule, error) {
		if err := lockJobs(ctx, tx); err != nil {
			return Schedule{}, err
		}

		old, err := get(ctx, tx, name)
		if err != nil {
			return Schedule{}, err
		}
		if v == (Values{}) {
			return Schedule{}, fault.NothingToChange()
		}

		n := v.applyTo(old)
		if err := n.check(); err != nil {
			return Schedule{}, err
		}

		args := n.args()
		args["id"] = old.ID
		if _, err := pg.Exec(ctx, tx, `
			update cron.job set jobname = @name, schedule = @cron, timezone = @timezone, command = @command, url = @url,
				overlap = @overlap, timeout_seconds = @timeout, active = @active
			where jobid = @id`, args); err != nil {
			return Schedule{}, err
		}

		return get(ctx, tx, strconv.FormatInt(old.ID, 10))
	})
	if err != nil {
		return Schedule{}, scheduleFault(err)
	}

	return updated, s.announce(ctx, p, time.Now())
}

// applyTo returns a schedule with the values. A command replaces the endpoint, and an endpoint the
// command.
func (v Values) applyTo(s Schedule) Schedule {
	switch {
	case v.Endpoint != nil:
		s.Endpoint, s.Command = v.Endpoint, ""
	case v.Command != nil:
		s.Endpoint = nil
	}

	setField(&s.Command, v.Command)
	setField(&s.Cron, v.Cron)
	setField(&s.Timezone, v.Timezone)
	setField(&s.Overlap, v.Overlap)
	setField(&s.TimeoutSeconds, v.TimeoutSeconds)
	setField(&s.Active, v.Active)
	s.Name = cmp.Or(v.Name, s.Name)

	return s
}

// args returns the values as arguments.
func (s Schedule) args() pgx.StrictNamedArgs {
	return pgx.StrictNamedArgs{"name": s.Name, "cron": s.Cron, "timezone": s.Timezone, "command": s.Command,
		"url": s.Endpoint, "overlap": s.Overlap, "timeout": s.TimeoutSeconds, "active": s.Active}
}

// setField assigns *value to *field unless value is nil.
func setField[T any](field, value *T) {
	if value != nil {
		*field = *value
	}
}

// Delete deletes a schedule. Its runs stay for a week. It fails with NotFound without it.
func (s *Service) Delete(ctx context.Context, p *projectdb.Project, name string) (Schedule, error) {
	if err := requireAvailable(ctx, p); err != nil {
		return Schedule{}, err
	}

	return pg.InTxValue(ctx, p.InTx, func(tx pgx.Tx) (Schedule, error) {
		if err := lockJobs(ctx, tx); err != nil {
			return Schedule{}, err
		}

		schedule, err := get(ctx, tx, name)
		if err != nil {
			return Schedule{}, err
		}

		_, err = pg.Exec(ctx, tx, `delete from cron.job where jobid = @id`, pgx.StrictNamedArgs{"id": schedule.ID})
		return schedule, err
	})
}

// Find fails with NotFound unless the project has the schedule.
func (s *Service) Find(ctx context.Context, p *projectdb.Project, name string) error {
	_, err := s.Get(ctx, p, name)
	return err
}

// lockJobs excludes concurrent changes of jobs, but no run.
func lockJobs(ctx context.Context, tx pgx.Tx) error {
	_, err := pg.Exec(ctx, tx, `lock table cron.job in share row exclusive mode`)
	return err
}

// check fails with Unprocessable on the first invalid value.
func (s Schedule) check() error {
	if _, err := timetable.ParseSchedule(s.Cron, s.Timezone); err != nil {
		return err
	}

	isEmpty := strings.Trim(s.Command, " \t\r\n;") == ""
	switch {
	case s.Name != nil && len(*s.Name) > maxName:
		return fault.OnField(fault.Unprocessable, "name", "too_long", "must have at most %d bytes", maxName)
	case s.Endpoint == nil && isEmpty:
		return fault.OnField(fault.Unprocessable, "command", "required", "is required without an endpoint")
	case s.Endpoint != nil && s.Command != "":
		return fault.OnField(fault.Unprocessable, "command", "conflict", "can't be combined with an endpoint")
	case len(s.Command) > maxCommand:
		return fault.OnField(fault.Unprocessable, "command", "too_long", "must have at most %d bytes", maxCommand)
	case !pg.Storable(s.Command):
		return fault.OnField(fault.Unprocessable, "command", "invalid_format", "must not contain the character NUL")
	case s.Endpoint == nil:
		return nil
	case len(*s.Endpoint) > maxURL:
		return fault.OnField(fault.Unprocessable, "endpoint", "too_long", "must have at most %d bytes", maxURL)
	}

	if err := outbound.CheckAddress(*s.Endpoint); err != nil {
		return fault.OnField(fault.Unprocessable, "endpoint", "invalid_format", "%s", err)
	}

	return nil
}

// scheduleFault returns a refused change as a failure.
func scheduleFault(err error) error {
	switch pg.State(err) {
	case "23505": // unique_violation
		return fault.OnField(fault.Conflict, "name", "already_exists", "is taken by another schedule").WithCause(err)
	case "22023": // invalid_parameter_value: PostgreSQL and Go know different time zones
		return fault.OnField(fault.Unprocessable, "timezone", "unknown_timezone", "is unknown to PostgreSQL").
			WithCause(err)
	case "54000": // program_limit_exceeded
		return fault.New(fault.Unprocessable, "the project has reached its limit of 200 schedules").
			WithCode("quota_exceeded").WithCause(err)
	}

	return err
}
