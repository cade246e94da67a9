package platform

import (
	"context"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"socle/internal/fault"
	"socle/internal/pg"
	"socle/internal/timetable"
)

const (
	failuresKept = 30 * 24 * time.Hour // how long a backup is remembered that was due and failed
	unkeptStays  = 6 * time.Hour       // for who has begun to download it
)

// RemoveUnkeptBackups says of the completed backups of a project that are not kept by the schedule that made them that they are being deleted,
// and returns how many they are. Their bytes stay for some hours, for who is reading them. Those that failed long ago are forgotten. Backups that someone asked for stay, and so do the last one that was
// proven and those that are being restored. Without a schedule nothing is removed. It fails with NotFound if there is nothing to do.
func (s *Store) RemoveUnkeptBackups(ctx context.Context, project uuid.UUID) (int64, error) {
	return change(ctx, s, func(tx *Store) (int64, error) {
		unkept, err := tx.unkeptBackups(ctx, project)
		if err != nil {
			return 0, err
		}

		n, err := pg.Exec(ctx, tx.q, `
			update platform.backups set status = 'deleting', bytes_until = now() + @stays::interval where uuid = any(@unkept::uuid[])`,
			pgx.StrictNamedArgs{"unkept": unkept, "stays": unkeptStays})
		if err != nil {
			return 0, err
		}

		forgotten, err := pg.Exec(ctx, tx.q, `
			delete from platform.backups
			where project_uuid = @project and (scheduled or made_before is not null) and status = 'failed' and created_at < now() - @kept::interval`,
			pgx.StrictNamedArgs{"project": project, "kept": failuresKept})
		if err == nil && n+forgotten == 0 {
			err = fault.New(fault.NotFound, "no backup of the project is to be removed")
		}

		return n, err
	})
}

// unkeptBackups returns the completed backups of a project that need not be kept. Until the transaction ends, nobody deletes,
// restores or proves any of the project's.
func (s *Store) unkeptBackups(ctx context.Context, project uuid.UUID) ([]uuid.UUID, error) {
	schedule, err := s.GetBackupSchedule(ctx, project)
	if fault.Is(err, fault.NotFound) {
		schedule, err = BackupSchedule{Timezone: newSchedule.Timezone}, nil // which keeps all
	}
	if err != nil {
		return nil, err
	}

	zone, err := timetable.Zone(schedule.Timezone)
	if err != nil {
		return nil, err
	}

	type made struct {
		UUID              uuid.UUID
		StartedAt         time.Time
		Scheduled, Proven bool
		First, Due        bool // something waited for it; and that is long ago
	}

	backups, err := pg.All[made](ctx, s.q, `
		select uuid, started_at, scheduled, proven_at is not null and proof_error = '' as proven,
			made_before is not null as first, started_at < now() - @kept::interval as due
		from platform.backups where project_uuid = @project and status = 'completed'
		order by started_at desc, uuid desc
		for update`, pgx.StrictNamedArgs{"project": project, "kept": firstKept})
	if err != nil {
		return nil, err
	}

	// What is asked after the lock has seen every restore that was noted before it.
	used, err := pg.Values[uuid.UUID](ctx, s.q, `
		select backup_uuid from platform.restores where backup_project_uuid = @project and status in ('pending', 'running')`,
		pgx.StrictNamedArgs{"project": project})
	if err != nil {
		return nil, err
	}

	if i := slices.IndexFunc(backups, func(b made) bool { return b.Proven }); i >= 0 {
		used = append(used, backups[i].UUID)
	}

	unkept := []uuid.UUID{}
	for _, b := range backups {
		switch {
		case b.First && !b.Due:
			used = append(used, b.UUID)
		case b.First && !b.Scheduled && !slices.Contains(used, b.UUID):
			unkept = append(unkept, b.UUID)
		}
	}

	backups = slices.DeleteFunc(backups, func(b made) bool { return !b.Scheduled })
	times := make([]time.Time, len(backups))
	for i, b := range backups {
		times[i] = b.StartedAt
	}

	rules := timetable.Rules{
		Last:    schedule.KeepLast,
		Daily:   schedule.KeepDaily,
		Weekly:  schedule.KeepWeekly,
		Monthly: schedule.KeepMonthly,
	}
	for i, kept := range rules.Keep(times, zone) {
		if id := backups[i].UUID; !kept && !slices.Contains(used, id) {
			unkept = append(unkept, id)
		}
	}

	return unkept, nil
}
