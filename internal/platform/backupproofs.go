package platform

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"socle/internal/pg"
)

// CompletedBackup returns a completed backup. It fails with NotFound in any other status.
func (s *Store) CompletedBackup(ctx context.Context, id uuid.UUID) (Backup, error) {
	return pg.One[Backup](ctx, s.q,
		`select`+backupColumns+`from platform.backups where uuid = @id and status = 'completed'`,
		pgx.StrictNamedArgs{"id": id})
}

// RecordProof records the result of a proof. reason is empty if the backup restored.
func (s *Store) RecordProof(ctx context.Context, id uuid.UUID, reason string) error {
	_, err := pg.Exec(ctx, s.q, `
		update platform.backups set tried_at = now(), proven_at = case when @reason::text = '' then now() else proven_at end, proof_error = @reason
		where uuid = @id and status = 'completed'`, pgx.StrictNamedArgs{"id": id, "reason": reason})
	return err
}

// UnprovenBackup is a backup whose proof is due.
type UnprovenBackup struct{ UUID, ProjectUUID uuid.UUID }

// UnprovenBackups returns the newest completed backup of each active project if its proof is due
// and its size is at most most bytes. A proof is due after the interval of the project's schedule,
// or after age without a schedule. If the schedule does not prove each new backup, the last proof
// of any backup counts.
func (s *Store) UnprovenBackups(ctx context.Context, age time.Duration, most int64) ([]UnprovenBackup, error) {
	return pg.All[UnprovenBackup](ctx, s.q, `
		select newest.uuid, p.uuid as project_uuid from platform.projects p
		left join platform.backup_schedules s on s.project_uuid = p.uuid
		cross join lateral (
			select b.uuid, b.proven_at, b.size from platform.backups b
			where b.project_uuid = p.uuid and b.status = 'completed' order by b.completed_at desc limit 1) newest
		cross join lateral (
			select case when s.prove is false then max(b.proven_at) else newest.proven_at end as at
			from platform.backups b where b.project_uuid = p.uuid and b.status = 'completed') proven
		where p.status = 'active' and newest.size <= @most and s.prove_every_days is distinct from 0
			and coalesce(proven.at, '-infinity') < now() - coalesce(make_interval(days => s.prove_every_days), @age::interval)`,
		pgx.StrictNamedArgs{"age": age, "most": most})
}

// BackupFollowUp holds the follow-up work of a completed backup.
type BackupFollowUp struct {
	ProjectUUID uuid.UUID
	Prove       bool
}

// AfterBackup returns the follow-up work of a completed backup. It fails with NotFound in any other
// status.
func (s *Store) AfterBackup(ctx context.Context, id uuid.UUID) (BackupFollowUp, error) {
	return pg.One[BackupFollowUp](ctx, s.q, `
		select b.project_uuid, coalesce(s.prove, true) as prove
		from platform.backups b left join platform.backup_schedules s on s.project_uuid = b.project_uuid
		where b.uuid = @id and b.status = 'completed'`, pgx.StrictNamedArgs{"id": id})
}

// BackupAge holds the times from which the age of a project's backups is computed.
type BackupAge struct {
	ProjectUUID uuid.UUID
	NextRunAt   time.Time
	CompletedAt *time.Time // of the newest completed backup; nil: none
	ProvenAt    *time.Time // last proof of any completed backup; nil: none
}

// BackupAges returns the backup ages of all active projects that have a schedule.
func (s *Store) BackupAges(ctx context.Context) ([]BackupAge, error) {
	return pg.All[BackupAge](ctx, s.q, `
		select s.project_uuid, s.next_run_at, b.completed_at, b.proven_at
		from platform.backup_schedules s
		join platform.projects p on p.uuid = s.project_uuid and p.status = 'active'
		cross join lateral (
			select max(b.completed_at) as completed_at, max(b.proven_at) as proven_at
			from platform.backups b where b.project_uuid = s.project_uuid and b.status = 'completed') b`)
}
