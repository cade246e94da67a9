package platform

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"socle/internal/fault"
	"socle/internal/pg"
)

// ListBackups returns a page of the backups of a project and the total count.
func (s *Store) ListBackups(ctx context.Context, project uuid.UUID, page pg.Page) ([]Backup, int64, error) {
	args := pgx.StrictNamedArgs{"project": project}
	total, err := pg.Value[int64](ctx, s.q, `select count(*) from platform.backups where project_uuid = @project`, args)
	if err != nil {
		return nil, 0, err
	}

	backups, err := pg.All[Backup](ctx, s.q,
		`select`+backupColumns+`from platform.backups where project_uuid = @project`+
			page.Clause(map[string]string{"createdAt": "created_at", "completedAt": "completed_at"}, "uuid"), args)
	return backups, total, err
}

// DeleteBackup sets a backup to status deleting, after which it cannot be restored. It fails with
// NotFound for an unknown backup, and with Conflict while the backup is being made or restored.
func (s *Store) DeleteBackup(ctx context.Context, project, id uuid.UUID) (Backup, error) {
	return change(ctx, s, func(tx *Store) (Backup, error) {
		args := pgx.StrictNamedArgs{"id": id, "project": project}
		status, err := pg.Value[string](ctx, tx.q,
			`select status from platform.backups where uuid = @id and project_uuid = @project for update`, args)
		if err != nil {
			return Backup{}, err
		}

		if status == "pending" || status == "running" {
			return Backup{}, fault.New(fault.Conflict, "the backup is being made").WithCode("backup_under_way")
		}

		restoring, err := pg.Value[bool](ctx, tx.q, `
			select exists (select from platform.restores where backup_uuid = @id and backup_project_uuid = @project and status in ('pending', 'running'))`, args)
		if err == nil && restoring {
			err = fault.New(fault.Conflict, "the backup is being restored").WithCode("restore_under_way")
		}
		if err != nil {
			return Backup{}, err
		}

		return pg.One[Backup](ctx, tx.q, `
			update platform.backups set status = 'deleting', bytes_until = null where uuid = @id and project_uuid = @project
			returning`+backupColumns, args)
	})
}

// DeletingBackups returns the backups in status deleting whose bytes are due for removal.
func (s *Store) DeletingBackups(ctx context.Context) ([]Backup, error) {
	return pg.All[Backup](ctx, s.q, `select`+backupColumns+`
		from platform.backups where status = 'deleting' and coalesce(bytes_until <= now(), true)`)
}

// FailedBackups returns all backups of a project. The value reports whether the backup failed.
func (s *Store) FailedBackups(ctx context.Context, project uuid.UUID) (map[uuid.UUID]bool, error) {
	all, err := pg.All[struct {
		UUID   uuid.UUID
		Failed bool
	}](ctx, s.q, `select uuid, status = 'failed' as failed from platform.backups where project_uuid = @project`,
		pgx.StrictNamedArgs{"project": project})

	failed := make(map[uuid.UUID]bool, len(all))
	for _, b := range all {
		failed[b.UUID] = b.Failed
	}

	return failed, err
}

// ForgetBackup deletes the row of a backup. The caller has removed its files.
func (s *Store) ForgetBackup(ctx context.Context, id uuid.UUID) error {
	_, err := pg.Exec(ctx, s.q, `delete from platform.backups where uuid = @id and status = 'deleting'`,
		pgx.StrictNamedArgs{"id": id})
	return err
}
