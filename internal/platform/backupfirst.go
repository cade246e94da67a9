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
// backup is being made that may have begun too early: the next one will do.
func (s *Store) AwaitBackup(ctx context.Context, d Destruction) (Backup, error) {
	var b Backup
	err := pg.InTx(ctx, s.b, func(tx pgx.Tx) error {
		args := pgx.StrictNamedArgs{"project": d.Project, "request": d.Request, "counts": firstCounts}
		var err error
		b, err = pg.One[Backup](ctx, tx, `
			select`+backupColumns+`from platform.backups
			where uuid = (select backup_uuid from platform.awaited_backups where project_uuid = @project and request = @request)
				and status in ('pending', 'running', 'completed') and coalesce(completed_at > now() - @counts::interval, true)`, args)
		if !fault.Is(err, fault.NotFound) {
			return err
		}
		// The lock keeps it from being begun before it is noted who waits for it.
		b, err = pg.One[Backup](ctx, tx, `
			select`+backupColumns+`from platform.backups where project_uuid = @project and origin = 'made' and status = 'pending' for update`,
			pgx.StrictNamedArgs{"project": d.Project})
		if err == nil {
			return s.Within(tx).await(ctx, d, b.UUID)
		}
		if !fault.Is(err, fault.NotFound) {
			return err
		}
		running, unknown := pg.Value[bool](ctx, tx, `
			select exists (select from platform.backups where project_uuid = @project and origin = 'made' and status = 'running')`,
			pgx.StrictNamedArgs{"project": d.Project})
		if unknown == nil && running {
			return fault.New(fault.Conflict, "another backup of the project is under way").WithCode("backup_under_way")
		}
		if unknown != nil {
			return unknown
		}
		return err
	})
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
	return b, s.await(ctx, d, b.UUID)
}

// await notes that a request waits for a backup that has not begun yet. One that the schedule has made is kept from now on as if it had been made for the request.
func (s *Store) await(ctx context.Context, d Destruction, backup uuid.UUID) error {
	if _, err := pg.Exec(ctx, s.q, `
		insert into platform.awaited_backups (project_uuid, request, backup_uuid) values (@project, @request, @backup)
		on conflict (project_uuid, request) do update set backup_uuid = @backup`,
		pgx.StrictNamedArgs{"project": d.Project, "request": d.Request, "backup": backup}); err != nil {
		return err
	}
	_, err := pg.Exec(ctx, s.q, `update platform.backups set made_before = @operation where uuid = @backup and scheduled and made_before is null`,
		pgx.StrictNamedArgs{"backup": backup, "operation": d.Operation})
	return err
}

// StopAwaiting says that a request does not wait for its backup any more: that is over, and counts for nothing that is asked later.
func (s *Store) StopAwaiting(ctx context.Context, d Destruction, backup uuid.UUID) error {
	_, err := pg.Exec(ctx, s.q, `delete from platform.awaited_backups where project_uuid = @project and request = @request and backup_uuid = @backup`,
		pgx.StrictNamedArgs{"project": d.Project, "request": d.Request, "backup": backup})
	return err
}
