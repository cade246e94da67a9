package platform

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"socle/internal/fault"
	"socle/internal/pg"
)

const (
	awaitedBackupTTL       = time.Hour           // a completed backup satisfies a retried request for this long
	awaitedBackupRetention = 30 * 24 * time.Hour // retention of a backup that a request waited for
)

// DestructiveRequest is a destructive request in a project that requires a backup first.
type DestructiveRequest struct {
	Project, User uuid.UUID
	Operation     string
	Request       []byte // hash of the caller and the request
}

// AwaitBackup returns the existing backup that satisfies a request. That is the backup that an
// earlier try of the request waited for, or a pending backup, which will hold the state at its
// start. It fails with NotFound without one. It fails with Conflict if a backup is already running
// and may have started too early; the request then waits for the next backup of the project,
// whatever creates it.
func (s *Store) AwaitBackup(ctx context.Context, d DestructiveRequest) (Backup, error) {
	var b Backup
	running := false
	err := pg.InTx(ctx, s.b, func(tx pgx.Tx) error {
		var err error
		b, err = pg.One[Backup](ctx, tx, `
			select`+backupColumns+`from platform.backups
			where uuid = (select backup_uuid from platform.awaited_backups where project_uuid = @project and request = @request)
				and status in ('pending', 'running', 'completed') and coalesce(completed_at > now() - @counts::interval, true)`,
			pgx.StrictNamedArgs{"project": d.Project, "request": d.Request, "counts": awaitedBackupTTL})
		if !fault.Is(err, fault.NotFound) {
			return err
		}

		// The row lock keeps the backup from starting or ending before the request is recorded.
		b, err = pg.One[Backup](ctx, tx, `
			select`+backupColumns+`from platform.backups
			where project_uuid = @project and origin = 'made' and status in ('pending', 'running') for update`,
			pgx.StrictNamedArgs{"project": d.Project})
		if err != nil {
			return err
		}

		running = b.Status == "running"
		return s.WithTx(tx).recordWait(ctx, d, uuid.NullUUID{UUID: b.UUID, Valid: !running})
	})
	if err != nil {
		return b, err
	}

	if running {
		return b, fault.New(fault.Conflict, "another backup of the project is under way").WithCode("backup_under_way")
	}

	return b, nil
}

// CreateAwaitedBackup creates a pending backup for a request. It fails with Conflict if the project
// has an unfinished backup.
func (s *Store) CreateAwaitedBackup(ctx context.Context, d DestructiveRequest) (Backup, error) {
	b, err := s.createBackup(ctx, d.Project, d.User, false)
	if err != nil {
		return b, err
	}

	if _, err := pg.Exec(ctx, s.q, `update platform.backups set made_before = @operation where uuid = @id`,
		pgx.StrictNamedArgs{"id": b.UUID, "operation": d.Operation}); err != nil {
		return b, err
	}

	return b, s.recordWait(ctx, d, uuid.NullUUID{UUID: b.UUID, Valid: true})
}

// recordWait records that a request waits for a pending backup, or for the next one if backup is
// null.
func (s *Store) recordWait(ctx context.Context, d DestructiveRequest, backup uuid.NullUUID) error {
	if _, err := pg.Exec(ctx, s.q, `
		insert into platform.awaited_backups (project_uuid, request, operation, backup_uuid) values (@project, @request, @operation, @backup)
		on conflict (project_uuid, request) do update set backup_uuid = @backup`,
		pgx.StrictNamedArgs{
			"project": d.Project, "request": d.Request, "operation": d.Operation, "backup": backup,
		}); err != nil {
		return err
	}

	return s.retainAwaited(ctx, backup)
}

// assignWaiting assigns a pending backup to all requests of a project that wait for the next one.
func (s *Store) assignWaiting(ctx context.Context, project, backup uuid.UUID) error {
	n, err := pg.Exec(ctx, s.q,
		`update platform.awaited_backups set backup_uuid = @backup where project_uuid = @project and backup_uuid is null`,
		pgx.StrictNamedArgs{"project": project, "backup": backup})
	if err != nil || n == 0 {
		return err
	}

	return s.retainAwaited(ctx, uuid.NullUUID{UUID: backup, Valid: true})
}

// retainAwaited applies the retention of awaited backups to a scheduled backup that a request waits
// for. Backups that a user created are kept in any case.
func (s *Store) retainAwaited(ctx context.Context, backup uuid.NullUUID) error {
	_, err := pg.Exec(ctx, s.q, `
		update platform.backups b set made_before = (select operation from platform.awaited_backups where backup_uuid = b.uuid limit 1)
		where uuid = @backup and scheduled and made_before is null`, pgx.StrictNamedArgs{"backup": backup})
	return err
}

// DeleteWait deletes the record of a request whose backup has ended. A later request needs
// another backup.
func (s *Store) DeleteWait(ctx context.Context, d DestructiveRequest, backup uuid.UUID) error {
	_, err := pg.Exec(ctx, s.q,
		`delete from platform.awaited_backups where project_uuid = @project and request = @request and backup_uuid = @backup`,
		pgx.StrictNamedArgs{"project": d.Project, "request": d.Request, "backup": backup})
	return err
}
