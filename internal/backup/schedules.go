package backup

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/audit"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/timetable"
)

// BackupSchedule is a project's backup schedule, with retention and proof settings.
type BackupSchedule struct {
	ProjectUUID    uuid.UUID `json:"projectUuid"`
	Cron           string    `json:"cron"`
	Timezone       string    `json:"timezone"`
	KeepLast       int       `json:"keepLast"`
	KeepDaily      int       `json:"keepDaily"`
	KeepWeekly     int       `json:"keepWeekly"`
	KeepMonthly    int       `json:"keepMonthly"`
	Prove          bool      `json:"prove"`
	ProveEveryDays int       `json:"proveEveryDays"`
	NextRunAt      time.Time `json:"nextRunAt" doc:"When the next backup is due. A time in the past means that it waits for a running backup or restore, or for the project to be resumed."`
	CreatedAt      time.Time `json:"createdAt"`
	UpdatedAt      time.Time `json:"updatedAt"`
}

// defaultSchedule holds the defaults for a new schedule.
var defaultSchedule = BackupSchedule{
	Timezone:       "UTC",
	KeepLast:       3,
	KeepDaily:      7,
	KeepWeekly:     4,
	KeepMonthly:    6,
	Prove:          true,
	ProveEveryDays: 7,
}

// ScheduleUpdate changes a schedule. Nil fields are left unchanged.
type ScheduleUpdate struct {
	Cron, Timezone                               *string
	KeepLast, KeepDaily, KeepWeekly, KeepMonthly *int
	Prove                                        *bool
	ProveEveryDays                               *int
}

const scheduleColumns = ` project_uuid, cron, timezone, keep_last, keep_daily, keep_weekly, keep_monthly, prove, prove_every_days, next_run_at, created_at, updated_at `

// GetSchedule returns a project's backup schedule. It fails with NotFound without one.
func (s *store) GetSchedule(ctx context.Context, project uuid.UUID) (BackupSchedule, error) {
	return pg.One[BackupSchedule](ctx, s.q,
		`select`+scheduleColumns+`from platform.backup_schedules where project_uuid = @project`,
		pgx.StrictNamedArgs{"project": project})
}

// UpdateSchedule creates or changes a project's backup schedule. It recomputes the next run only if
// the cron expression or the time zone changes. It fails with Unprocessable if either is missing or
// invalid, or the update is empty.
func (s *store) UpdateSchedule(
	ctx context.Context, project, user uuid.UUID, u ScheduleUpdate,
) (BackupSchedule, error) {
	return pg.InTxValue(ctx, s.inTx, func(tx *store) (BackupSchedule, error) {
		old, err := tx.lockSchedule(ctx, project)
		schedule := old
		if fault.Is(err, fault.NotFound) {
			schedule, err = defaultSchedule, nil
		}
		if err != nil {
			return old, err
		}

		setField(&schedule.Cron, u.Cron)
		setField(&schedule.Timezone, u.Timezone)
		setField(&schedule.KeepLast, u.KeepLast)
		setField(&schedule.KeepDaily, u.KeepDaily)
		setField(&schedule.KeepWeekly, u.KeepWeekly)
		setField(&schedule.KeepMonthly, u.KeepMonthly)
		setField(&schedule.Prove, u.Prove)
		setField(&schedule.ProveEveryDays, u.ProveEveryDays)

		if schedule.Cron == "" && u.Cron == nil {
			return old, fault.OnField(fault.Unprocessable, "cron", "required", "is required for a new schedule")
		}
		if u == (ScheduleUpdate{}) {
			return old, fault.NothingToChange()
		}

		if schedule.Cron != old.Cron || schedule.Timezone != old.Timezone {
			if schedule.NextRunAt, err = tx.nextRun(ctx, schedule.Cron, schedule.Timezone); err != nil {
				return old, err
			}
		}

		return pg.One[BackupSchedule](ctx, tx.q, `
			insert into platform.backup_schedules (project_uuid, cron, timezone, keep_last, keep_daily, keep_weekly, keep_monthly,
				prove, prove_every_days, next_run_at, updated_by)
			values (@project, @cron, @timezone, @last, @daily, @weekly, @monthly, @prove, @proveEvery, @next, @user)
			on conflict (project_uuid) do update set cron = @cron, timezone = @timezone, keep_last = @last, keep_daily = @daily,
				keep_weekly = @weekly, keep_monthly = @monthly, prove = @prove, prove_every_days = @proveEvery, next_run_at = @next,
				updated_by = @user, updated_at = now()
			returning`+scheduleColumns, pgx.StrictNamedArgs{"project": project, "cron": schedule.Cron,
			"timezone": schedule.Timezone, "last": schedule.KeepLast,
			"daily": schedule.KeepDaily, "weekly": schedule.KeepWeekly, "monthly": schedule.KeepMonthly,
			"prove": schedule.Prove, "proveEvery": schedule.ProveEveryDays,
			"next": schedule.NextRunAt, "user": user})
	})
}

// setField assigns *value to *field unless value is nil.
func setField[T any](field, value *T) {
	if value != nil {
		*field = *value
	}
}

// lockSchedule returns a schedule and locks its row until the transaction ends.
func (s *store) lockSchedule(ctx context.Context, project uuid.UUID) (BackupSchedule, error) {
	return pg.One[BackupSchedule](ctx, s.q,
		`select`+scheduleColumns+`from platform.backup_schedules where project_uuid = @project for update`,
		pgx.StrictNamedArgs{"project": project})
}

// nextRun returns the next run after the database's current time.
func (s *store) nextRun(ctx context.Context, cron, timezone string) (time.Time, error) {
	times, err := timetable.Parse(cron, timezone)
	if err != nil {
		return time.Time{}, err
	}

	now, err := pg.Value[time.Time](ctx, s.q, `select now()`)
	return times.Next(now), err
}

// DeleteSchedule deletes a project's backup schedule. The backups stay. It fails with NotFound
// without one.
func (s *store) DeleteSchedule(ctx context.Context, project uuid.UUID) (BackupSchedule, error) {
	return pg.InTxValue(ctx, s.inTx, func(tx *store) (BackupSchedule, error) {
		return pg.One[BackupSchedule](ctx, tx.q,
			`delete from platform.backup_schedules where project_uuid = @project returning`+scheduleColumns,
			pgx.StrictNamedArgs{"project": project})
	})
}

// RecomputeNextRuns moves a next run forward in time that is later than a run computed from
// now. Such a run was computed while the clock was ahead, and no backup would run until then.
func (s *store) RecomputeNextRuns(ctx context.Context) error {
	all, err := pg.All[BackupSchedule](ctx, s.q,
		`select`+scheduleColumns+`from platform.backup_schedules where next_run_at > now()`)
	for _, b := range all {
		next, updateErr := s.nextRun(ctx, b.Cron, b.Timezone)
		if updateErr == nil && next.Before(b.NextRunAt) {
			_, updateErr = pg.Exec(ctx, s.q,
				`update platform.backup_schedules set next_run_at = @next where project_uuid = @project and next_run_at = @counted`,
				pgx.StrictNamedArgs{"project": b.ProjectUUID, "next": next, "counted": b.NextRunAt})
		}

		err = errors.Join(err, updateErr)
	}

	return err
}

// due returns the active projects whose backup is due and that have no unfinished backup or
// restore.
func (s *store) due(ctx context.Context) ([]uuid.UUID, error) {
	return pg.Values[uuid.UUID](ctx, s.q, `
		select s.project_uuid
		from platform.backup_schedules s join platform.projects p on p.uuid = s.project_uuid
		where s.next_run_at <= now() and p.status = 'active'
			and not exists (select from platform.backups b where b.project_uuid = p.uuid and b.status in ('pending', 'running'))
			and not exists (select from platform.restores r where r.project_uuid = p.uuid and r.status in ('pending', 'running'))
		order by s.next_run_at`)
}

// createDue creates a project's due backup and sets the next run: the first one after now, however
// many were missed. It fails with NotFound if no backup is due or another server holds the lock,
// and with Conflict if the project has an unfinished backup.
func (s *store) createDue(ctx context.Context, project uuid.UUID) (Backup, error) {
	type due struct {
		Cron, Timezone string
		UpdatedBy      uuid.UUID
	}

	d, err := pg.One[due](ctx, s.q, `
		select s.cron, s.timezone, s.updated_by
		from platform.backup_schedules s join platform.projects p on p.uuid = s.project_uuid
		where s.project_uuid = @project and s.next_run_at <= now() and p.status = 'active'
		for update of s skip locked`, pgx.StrictNamedArgs{"project": project})
	if err != nil {
		return Backup{}, err
	}

	next, err := s.nextRun(ctx, d.Cron, d.Timezone)
	if err != nil {
		return Backup{}, err
	}

	if _, err := pg.Exec(ctx, s.q,
		`update platform.backup_schedules set next_run_at = @next where project_uuid = @project`,
		pgx.StrictNamedArgs{"project": project, "next": next}); err != nil {
		return Backup{}, err
	}

	return s.insert(ctx, project, d.UpdatedBy, true)
}

// CreateDue creates the backups that are due. If several servers find the same one, the
// first creates it. A backup that cannot be made now stays due.
func (s *Service) CreateDue(ctx context.Context) error {
	projects, err := s.due(ctx)
	errs := []error{err}
	for _, id := range projects {
		ctx := s.Lifecycle.AsSystem(ctx, audit.CreateDueBackup, id)
		err := s.inTx(ctx, func(tx *store) error {
			b, err := tx.createDue(ctx, id)
			if err != nil {
				return err
			}

			return s.enqueue(ctx, tx, b)
		})
		if err != nil && !fault.Is(err, fault.NotFound) && !fault.Is(err, fault.Conflict) {
			errs = append(errs, fmt.Errorf("create due backup of project %s: %w", id, err))
		}
	}

	return errors.Join(errs...)
}
