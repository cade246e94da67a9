package platform

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"socle/internal/fault"
	"socle/internal/pg"
)

// Origins of a backup.
const (
	BackupMade     = "made"
	BackupImported = "imported"
)

// StartImport creates a backup in status running for an import. It fails with Conflict if another
// import into the project is running.
func (s *Store) StartImport(ctx context.Context, project, user uuid.UUID) (Backup, error) {
	id, err := uuid.NewV7()
	if err != nil {
		return Backup{}, err
	}

	b, err := pg.One[Backup](ctx, s.q, `
		insert into platform.backups (uuid, project_uuid, created_by, origin, status, started_at, heartbeat_at)
		values (@id, @project, @user, @origin, 'running', now(), now())
		returning`+backupColumns, pgx.StrictNamedArgs{
		"id": id, "project": project, "user": user, "origin": BackupImported,
	})
	if pg.Violates(err, "backups_one_at_a_time") {
		return b, fault.New(fault.Conflict, "another backup is being imported into the project").
			WithCode("import_under_way").Because(err)
	}

	return b, err
}

// ForgetImport deletes the row of a failed import. The caller has removed its files.
func (s *Store) ForgetImport(ctx context.Context, id uuid.UUID) error {
	_, err := pg.Exec(ctx, s.q,
		`delete from platform.backups where uuid = @id and status = 'running' and origin = @origin`,
		pgx.StrictNamedArgs{"id": id, "origin": BackupImported})
	return err
}

// TakenForms returns the forms that belong to another project.
func (s *Store) TakenForms(ctx context.Context, project uuid.UUID, forms []uuid.UUID) ([]uuid.UUID, error) {
	return pg.Values[uuid.UUID](ctx, s.q,
		`select uuid from platform.forms where uuid = any(@forms::uuid[]) and project_uuid <> @project`,
		pgx.StrictNamedArgs{"forms": forms, "project": project})
}
