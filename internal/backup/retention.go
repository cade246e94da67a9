package backup

import (
	"context"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/audit"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/timetable"
)

const (
	failedBackupRetention = 30 * 24 * time.Hour // for failed backups that were scheduled or awaited
	removedBytesDelay     = 6 * time.Hour       // for downloads in progress
)

// deleteExpired applies the retention rules in a project's schedule. It sets completed backups
// outside the rules to status deleting and returns their number. Their bytes stay for some hours
// for downloads in progress. It also deletes failed backups past their retention.
//
// It never removes backups that a user created, the last proven backup, or backups that are being
// restored. A project without a schedule loses none but expired awaited ones. It fails with
// NotFound if there is nothing to do.
func (s *store) deleteExpired(ctx context.Context, project uuid.UUID) (int64, error) {
	return pg.InTxValue(ctx, s.inTx, func(tx *store) (int64, error) {
		removable, err := tx.removable(ctx, project)
		if err != nil {
			return 0, err
		}

		n, err := pg.Exec(ctx, tx.q, `
			update platform.backups set status = 'deleting', bytes_until = now() + @stays::interval where uuid = any(@unkept::uuid[])`,
			pgx.StrictNamedArgs{"unkept": removable, "stays": removedBytesDelay})
		if err != nil {
			return 0, err
		}

		forgotten, err := pg.Exec(ctx, tx.q, `
			delete from platform.backups
			where project_uuid = @project and (scheduled or made_before is not null) and status = 'failed' and created_at < now() - @kept::interval`,
			pgx.StrictNamedArgs{"project": project, "kept": failedBackupRetention})
		if err != nil {
			return n, err
		}

		if n+forgotten == 0 {
			return n, fault.New(fault.NotFound, "the project has no backup to remove")
		}

		return n, nil
	})
}

// removable returns a project's completed backups that no retention rule keeps. It locks the
// project's completed backups against deletion, restore and proof until the transaction ends.
func (s *store) removable(ctx context.Context, project uuid.UUID) ([]uuid.UUID, error) {
	schedule, err := s.GetSchedule(ctx, project)
	if fault.Is(err, fault.NotFound) {
		schedule, err = BackupSchedule{Timezone: defaultSchedule.Timezone}, nil // keeps all
	}
	if err != nil {
		return nil, err
	}

	zone, err := timetable.Zone(schedule.Timezone)
	if err != nil {
		return nil, err
	}

	type completed struct {
		UUID              uuid.UUID
		StartedAt         time.Time
		Scheduled, Proven bool
		Awaited, Expired  bool // a request waited for it; its retention as an awaited one has passed
	}

	backups, err := pg.All[completed](ctx, s.q, `
		select uuid, started_at, scheduled, proven_at is not null and proof_error = '' as proven,
			made_before is not null as awaited, started_at < now() - @kept::interval as expired
		from platform.backups where project_uuid = @project and status = 'completed'
		order by started_at desc, uuid desc
		for update`, pgx.StrictNamedArgs{"project": project, "kept": awaitedBackupRetention})
	if err != nil {
		return nil, err
	}

	// This query runs after the lock, so it sees every restore that was recorded before the lock.
	retain, err := pg.Values[uuid.UUID](ctx, s.q, `
		select backup_uuid from platform.restores where backup_project_uuid = @project and status in ('pending', 'running')`,
		pgx.StrictNamedArgs{"project": project})
	if err != nil {
		return nil, err
	}

	if i := slices.IndexFunc(backups, func(b completed) bool { return b.Proven }); i >= 0 {
		retain = append(retain, backups[i].UUID)
	}

	removable := []uuid.UUID{}
	for _, b := range backups {
		switch {
		case b.Awaited && !b.Expired:
			retain = append(retain, b.UUID)
		case b.Awaited && !b.Scheduled && !slices.Contains(retain, b.UUID):
			removable = append(removable, b.UUID)
		}
	}

	backups = slices.DeleteFunc(backups, func(b completed) bool { return !b.Scheduled })
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
	for i, keep := range rules.Keep(times, zone) {
		if id := backups[i].UUID; !keep && !slices.Contains(retain, id) {
			removable = append(removable, id)
		}
	}

	return removable, nil
}

// applyRetention removes a project's backups that its retention rules do not keep.
func (s *Service) applyRetention(ctx context.Context, project uuid.UUID) error {
	_, err := s.deleteExpired(s.Lifecycle.AsSystem(ctx, audit.RemoveUnkeptBackups, project), project)
	return fault.Ignore(err, fault.NotFound)
}
