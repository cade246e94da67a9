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
	firstCounts = time.Hour           // how long a completed backup counts for a request that gave up waiting for it
	firstKept   = 30 * 24 * time.Hour // how long a backup is kept that something waited for
)

// Destruction is a request that destroys something of a project, and wants a backup first.
type Destruction struct {
	Project, User uuid.UUID
	Operation     string
	Request       []byte // hash of who asks for what
}

// AwaitBackup returns the backup that a request waits for, of those that are there: the one that it waited for when it came before, or one that has not begun
// yet, since what that will hold is what there is when it begins. It fails with NotFound if there is none, and with Conflict if another
// backup is being made that may have begun too early: from then on the request waits for the next one, whoever has that made.
func (s *Store) AwaitBackup(ctx context.Context, d Destruction) (Backup, error) {
	var b Backup
	running := false
	err := pg.InTx(ctx, s.b, func(tx pgx.Tx) error {
		var err error
		b, err = pg.One[Backup](ctx, tx, `
			select`+backupColumns+`from platform.backups
			where uuid = (select backup_uuid from platform.awaited_backups where project_uuid = @project and request = @request)
				and status in ('pending', 'running', 'completed') and coalesce(completed_at > now() - @counts::interval, true)`,
			pgx.StrictNamedArgs{"project": d.Project, "request": d.Request, "counts": firstCounts})
		if !fault.Is(err, fault.NotFound) {
			return err
		}

		// The lock keeps it from being begun, or from being over, before it is noted who waits.
		b, err = pg.One[Backup](ctx, tx, `
			select`+backupColumns+`from platform.backups
			where project_uuid = @project and origin = 'made' and status in ('pending', 'running') for update`,
			pgx.StrictNamedArgs{"project": d.Project})
		if err != nil {
			return err
		}

		running = b.Status == "running"
		return s.Within(tx).await(ctx, d, uuid.NullUUID{UUID: b.UUID, Valid: !running})
	})
	if err == nil && running {
		err = fault.New(fault.Conflict, "another backup of the project is under way").WithCode("backup_under_way")
	}

	return b, err
}

// CreateAwaitedBackup notes a backup that a request waits for. It fails with Conflict if the project has one under way.
func (s *Store) CreateAwaitedBackup(ctx context.Context, d Destruction) (Backup, error) {
	b, err := s.createBackup(ctx, d.Project, d.User, false)
	if err != nil {
		return b, err
	}

	if _, err := pg.Exec(ctx, s.q, `update platform.backups set made_before = @operation where uuid = @id`,
		pgx.StrictNamedArgs{"id": b.UUID, "operation": d.Operation}); err != nil {
		return b, err
	}

	return b, s.await(ctx, d, uuid.NullUUID{UUID: b.UUID, Valid: true})
}

// await notes that a request waits for a backup that has not begun yet, or for the next one.
func (s *Store) await(ctx context.Context, d Destruction, backup uuid.NullUUID) error {
	if _, err := pg.Exec(ctx, s.q, `
		insert into platform.awaited_backups (project_uuid, request, operation, backup_uuid) values (@project, @request, @operation, @backup)
		on conflict (project_uuid, request) do update set backup_uuid = @backup`,
		pgx.StrictNamedArgs{
			"project": d.Project, "request": d.Request, "operation": d.Operation, "backup": backup,
		}); err != nil {
		return err
	}

	return s.keepAwaited(ctx, backup)
}

// takeAwaiting has all requests of a project that wait for the next backup wait for this one, which has not begun.
func (s *Store) takeAwaiting(ctx context.Context, project, backup uuid.UUID) error {
	n, err := pg.Exec(ctx, s.q,
		`update platform.awaited_backups set backup_uuid = @backup where project_uuid = @project and backup_uuid is null`,
		pgx.StrictNamedArgs{"project": project, "backup": backup})
	if err != nil || n == 0 {
		return err
	}

	return s.keepAwaited(ctx, uuid.NullUUID{UUID: backup, Valid: true})
}

// keepAwaited has a backup that the schedule has made, and that something waits for, kept as if it had been made for that. One that someone asked for is kept anyway.
func (s *Store) keepAwaited(ctx context.Context, backup uuid.NullUUID) error {
	_, err := pg.Exec(ctx, s.q, `
		update platform.backups b set made_before = (select operation from platform.awaited_backups where backup_uuid = b.uuid limit 1)
		where uuid = @backup and scheduled and made_before is null`, pgx.StrictNamedArgs{"backup": backup})
	return err
}

// StopAwaiting says that a request does not wait for its backup any more: that is over, and counts for nothing that is asked later.
func (s *Store) StopAwaiting(ctx context.Context, d Destruction, backup uuid.UUID) error {
	_, err := pg.Exec(ctx, s.q,
		`delete from platform.awaited_backups where project_uuid = @project and request = @request and backup_uuid = @backup`,
		pgx.StrictNamedArgs{"project": d.Project, "request": d.Request, "backup": backup})
	return err
}
