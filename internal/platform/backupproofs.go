package platform

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"socle/internal/pg"
)

// CompletedBackup returns a backup that is completed. It fails with NotFound if it is not.
func (s *Store) CompletedBackup(ctx context.Context, id uuid.UUID) (Backup, error) {
	return pg.One[Backup](ctx, s.q,
		`select`+backupColumns+`from platform.backups where uuid = @id and status = 'completed'`,
		pgx.StrictNamedArgs{"id": id})
}

// ProveBackup says that a backup was restored to see whether it can be, and what came of it: reason is empty if it can.
func (s *Store) ProveBackup(ctx context.Context, id uuid.UUID, reason string) error {
	_, err := pg.Exec(ctx, s.q, `
		update platform.backups set tried_at = now(), proven_at = case when @reason::text = '' then now() else proven_at end, proof_error = @reason
		where uuid = @id and status = 'completed'`, pgx.StrictNamedArgs{"id": id, "reason": reason})
	return err
}

// UnprovenBackups returns the newest completed backup of each active project, if it is not larger than most bytes and it is time to prove it: it was not
// proven for so many days as the project's schedule says, or for age without one. Where backups are not proven when they are made, what
// counts is when any was.
func (s *Store) UnprovenBackups(ctx context.Context, age time.Duration, most int64) ([]uuid.UUID, error) {
	return pg.Values[uuid.UUID](ctx, s.q, `
		select newest.uuid from platform.projects p
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

// AfterBackup is what is to be done when a backup was made.
type AfterBackup struct {
	ProjectUUID uuid.UUID
	Prove       bool
}

// AfterBackup returns what is to be done now that a backup is completed. It fails with NotFound if it is not.
func (s *Store) AfterBackup(ctx context.Context, id uuid.UUID) (AfterBackup, error) {
	return pg.One[AfterBackup](ctx, s.q, `
		select b.project_uuid, coalesce(s.prove, true) as prove
		from platform.backups b left join platform.backup_schedules s on s.project_uuid = b.project_uuid
		where b.uuid = @id and b.status = 'completed'`, pgx.StrictNamedArgs{"id": id})
}

// BackupAge is how old what a project could be restored from is.
type BackupAge struct {
	ProjectUUID uuid.UUID
	NextRunAt   time.Time
	CompletedAt *time.Time // of the newest completed backup
	ProvenAt    *time.Time // when one was last proven
}

// BackupAges returns the age of the backups of each active project that has a schedule.
func (s *Store) BackupAges(ctx context.Context) ([]BackupAge, error) {
	return pg.All[BackupAge](ctx, s.q, `
		select s.project_uuid, s.next_run_at, b.completed_at, b.proven_at
		from platform.backup_schedules s
		join platform.projects p on p.uuid = s.project_uuid and p.status = 'active'
		cross join lateral (
			select max(b.completed_at) as completed_at, max(b.proven_at) as proven_at
			from platform.backups b where b.project_uuid = s.project_uuid and b.status = 'completed') b`)
}
