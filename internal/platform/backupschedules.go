package platform

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"socle/internal/fault"
	"socle/internal/pg"
	"socle/internal/timetable"
)

// BackupSchedule is when backups of a project are made, what is kept of them, and when they are proven.
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
	NextRunAt      time.Time `json:"nextRunAt" doc:"When the next backup is due. If that has passed, it waits for a backup or restore that is under way, or for the project to be resumed."`
	CreatedAt      time.Time `json:"createdAt"`
	UpdatedAt      time.Time `json:"updatedAt"`
}

// A new schedule's, unless something else is said.
var newSchedule = BackupSchedule{
	Timezone:       "UTC",
	KeepLast:       3,
	KeepDaily:      7,
	KeepWeekly:     4,
	KeepMonthly:    6,
	Prove:          true,
	ProveEveryDays: 7,
}

// BackupScheduleUpdate is what is changed of a schedule; nil leaves a member as it is.
type BackupScheduleUpdate struct {
	Cron, Timezone                               *string
	KeepLast, KeepDaily, KeepWeekly, KeepMonthly *int
	Prove                                        *bool
	ProveEveryDays                               *int
}

const scheduleColumns = ` project_uuid, cron, timezone, keep_last, keep_daily, keep_weekly, keep_monthly, prove, prove_every_days, next_run_at, created_at, updated_at `

// GetBackupSchedule returns the schedule of a project's backups. It fails with NotFound if there is none.
func (s *Store) GetBackupSchedule(ctx context.Context, project uuid.UUID) (BackupSchedule, error) {
	return pg.One[BackupSchedule](ctx, s.q,
		`select`+scheduleColumns+`from platform.backup_schedules where project_uuid = @project`,
		pgx.StrictNamedArgs{"project": project})
}

// UpdateBackupSchedule makes the schedule of a project's backups, or changes it. When the next one is due is counted anew only if
// the times are changed. It fails with Unprocessable if there are none, or they can't be.
func (s *Store) UpdateBackupSchedule(
	ctx context.Context, project, user uuid.UUID, u BackupScheduleUpdate,
) (BackupSchedule, error) {
	return change(ctx, s, func(tx *Store) (BackupSchedule, error) {
		old, err := tx.lockBackupSchedule(ctx, project)
		now := old
		if fault.Is(err, fault.NotFound) {
			now, err = newSchedule, nil
		}
		if err != nil {
			return old, err
		}

		set(&now.Cron, u.Cron)
		set(&now.Timezone, u.Timezone)
		set(&now.KeepLast, u.KeepLast)
		set(&now.KeepDaily, u.KeepDaily)
		set(&now.KeepWeekly, u.KeepWeekly)
		set(&now.KeepMonthly, u.KeepMonthly)
		set(&now.Prove, u.Prove)
		set(&now.ProveEveryDays, u.ProveEveryDays)

		if now.Cron == "" && u.Cron == nil {
			return old, fault.OnField(fault.Unprocessable, "cron", "required", "is required for a new schedule")
		}

		if now.Cron != old.Cron || now.Timezone != old.Timezone {
			if now.NextRunAt, err = tx.nextRun(ctx, now.Cron, now.Timezone); err != nil {
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
			returning`+scheduleColumns, pgx.StrictNamedArgs{"project": project, "cron": now.Cron,
			"timezone": now.Timezone, "last": now.KeepLast,
			"daily": now.KeepDaily, "weekly": now.KeepWeekly, "monthly": now.KeepMonthly,
			"prove": now.Prove, "proveEvery": now.ProveEveryDays,
			"next": now.NextRunAt, "user": user})
	})
}

func set[T any](member *T, to *T) {
	if to != nil {
		*member = *to
	}
}

// lockBackupSchedule returns a schedule that nobody else changes until the transaction ends.
func (s *Store) lockBackupSchedule(ctx context.Context, project uuid.UUID) (BackupSchedule, error) {
	return pg.One[BackupSchedule](ctx, s.q,
		`select`+scheduleColumns+`from platform.backup_schedules where project_uuid = @project for update`,
		pgx.StrictNamedArgs{"project": project})
}

// nextRun returns when something is due for the next time, by the database's clock.
func (s *Store) nextRun(ctx context.Context, cron, timezone string) (time.Time, error) {
	times, err := timetable.Parse(cron, timezone)
	if err != nil {
		return time.Time{}, err
	}

	now, err := pg.Value[time.Time](ctx, s.q, `select now()`)
	return times.Next(now), err
}

// DeleteBackupSchedule ends the making of backups by a schedule. Those that it made stay. It fails with NotFound if there is none.
func (s *Store) DeleteBackupSchedule(ctx context.Context, project uuid.UUID) (BackupSchedule, error) {
	return change(ctx, s, func(tx *Store) (BackupSchedule, error) {
		return pg.One[BackupSchedule](ctx, tx.q,
			`delete from platform.backup_schedules where project_uuid = @project returning`+scheduleColumns,
			pgx.StrictNamedArgs{"project": project})
	})
}

// CorrectBackupSchedules counts anew when the next backup is due where that is later than it would be from now on: the clock was ahead when it was counted, and
// there would be none until then.
func (s *Store) CorrectBackupSchedules(ctx context.Context) error {
	all, err := pg.All[BackupSchedule](ctx, s.q,
		`select`+scheduleColumns+`from platform.backup_schedules where next_run_at > now()`)
	for _, b := range all {
		next, unknown := s.nextRun(ctx, b.Cron, b.Timezone)
		if unknown == nil && next.Before(b.NextRunAt) {
			_, unknown = pg.Exec(ctx, s.q,
				`update platform.backup_schedules set next_run_at = @next where project_uuid = @project and next_run_at = @counted`,
				pgx.StrictNamedArgs{"project": b.ProjectUUID, "next": next, "counted": b.NextRunAt})
		}

		err = errors.Join(err, unknown)
	}

	return err
}

// DueBackups returns the projects of which a backup is due and can be made: they are active, and no other backup and no restore is under way.
func (s *Store) DueBackups(ctx context.Context) ([]uuid.UUID, error) {
	return pg.Values[uuid.UUID](ctx, s.q, `
		select s.project_uuid
		from platform.backup_schedules s join platform.projects p on p.uuid = s.project_uuid
		where s.next_run_at <= now() and p.status = 'active'
			and not exists (select from platform.backups b where b.project_uuid = p.uuid and b.status in ('pending', 'running'))
			and not exists (select from platform.restores r where r.project_uuid = p.uuid and r.status in ('pending', 'running'))
		order by s.next_run_at`)
}

// CreateDueBackup notes a backup of a project that is due, and when the next one is: the first time from now on, however many were missed.
// It fails with NotFound if none is due any more or someone else is at it, and with Conflict if the project has a backup under way.
func (s *Store) CreateDueBackup(ctx context.Context, project uuid.UUID) (Backup, error) {
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

	return s.createBackup(ctx, project, d.UpdatedBy, true)
}
