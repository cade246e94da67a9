package backup

import (
	"context"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/audit"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
)

const (
	backupChannel = "socle_backup" // notified by the platform database when a backup finishes

	// backupPollInterval is how often waiting requests poll the backup. Notifications sent while
	// the LISTEN connection is down are lost.
	backupPollInterval = 5 * time.Second
)

// broadcast wakes all current waiters.
type broadcast struct {
	mu sync.Mutex
	ch chan struct{} // closed by notify; nil without waiters
}

// wait returns a channel that the next notify closes.
func (b *broadcast) wait() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()

	if b.ch == nil {
		b.ch = make(chan struct{})
	}

	return b.ch
}

func (b *broadcast) notify() {
	b.mu.Lock()
	defer b.mu.Unlock()

	if b.ch != nil {
		close(b.ch)
		b.ch = nil
	}
}

// Await waits until a backup is completed that began after d was first requested. Concurrent
// requests share one backup. It fails with Conflict if the backup fails or if timeout fires first;
// a repeated request then waits for the same backup.
func (s *Service) Await(ctx context.Context, d DestructiveRequest, timeout <-chan time.Time) error {
	tick := time.NewTicker(backupPollInterval)
	defer tick.Stop()

	var id uuid.UUID
	for {
		wake := s.completion.wait() // before the status is read, so that no notification is missed

		ok, err := s.checkAwaitedBackup(ctx, d, &id)
		if ok || err != nil {
			return err
		}

		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-timeout:
			return fault.New(fault.Conflict,
				"this requires a completed backup of the project, which is being made: try again when it is completed. Nothing was changed").WithCode("backup_under_way")
		case <-wake:
		case <-tick.C:
		}
	}
}

// checkAwaitedBackup reports whether the backup that d waits for is completed. It sets id,
// initially nil, to that backup.
func (s *Service) checkAwaitedBackup(ctx context.Context, d DestructiveRequest, id *uuid.UUID) (bool, error) {
	var b Backup
	var err error
	if *id == uuid.Nil {
		b, err = s.awaitBackup(ctx, d)
		if fault.Is(err, fault.Conflict) { // wait for the other backup, then try again
			return false, nil
		}

		*id = b.UUID
	} else {
		b, err = s.Get(ctx, d.Project, *id)
	}

	switch {
	case err != nil:
		return false, err
	case b.Status.Unfinished():
		return false, nil
	}

	if err := s.deleteWait(ctx, d, b.UUID); err != nil || b.Status == Completed {
		return err == nil, err
	}

	return false, fault.New(fault.Conflict,
		"this requires a completed backup of the project, and the backup failed: %s. Nothing was changed",
		b.Error).WithCode("backup_failed")
}

// awaitBackup returns the backup that d waits for and creates it if there is none. It fails with
// Conflict if another backup is in progress that may have begun too early.
func (s *Service) awaitBackup(ctx context.Context, d DestructiveRequest) (Backup, error) {
	for {
		b, err := s.awaited(ctx, d)
		if !fault.Is(err, fault.NotFound) {
			return b, err
		}

		err = s.inTx(s.Lifecycle.AsSystem(ctx, audit.CreateBackupFirst, d.Project), func(tx *store) error {
			if b, err = tx.createAwaited(ctx, d); err != nil {
				return err
			}

			return s.enqueue(ctx, tx, b)
		})
		if !fault.Is(err, fault.Conflict) || ctx.Err() != nil {
			return b, err
		}
		// A concurrent request created a backup first; d may be able to share it.
	}
}

const (
	awaitedBackupTTL       = time.Hour           // a completed backup satisfies a retried request for this long
	awaitedBackupRetention = 30 * 24 * time.Hour // for a backup that a request waited for
)

// DestructiveRequest is a request in a project that requires a backup first.
type DestructiveRequest struct {
	Project, User uuid.UUID
	Operation     string
	Request       []byte // hash over the caller and the request
}

// awaited returns the existing backup that satisfies a request. That is the backup that an earlier
// try waited for, or a pending backup, which will hold the state at its start. It fails with
// NotFound without one. It fails with Conflict if a backup is already running and may have started
// too early; the request then waits for the project's next backup, whatever its origin.
func (s *store) awaited(ctx context.Context, d DestructiveRequest) (Backup, error) {
	var b Backup
	running := false
	err := s.unaudited(ctx, func(tx *store) error {
		var err error
		b, err = pg.One[Backup](ctx, tx.q, `
			select`+backupColumns+`from platform.backups
			where uuid = (select backup_uuid from platform.awaited_backups where project_uuid = @project and request = @request)
				and status in ('pending', 'running', 'completed') and coalesce(completed_at > now() - @counts::interval, true)`,
			pgx.StrictNamedArgs{"project": d.Project, "request": d.Request, "counts": awaitedBackupTTL})
		if !fault.Is(err, fault.NotFound) {
			return err
		}

		// The row lock keeps the backup from starting or ending before the request is recorded.
		b, err = pg.One[Backup](ctx, tx.q, `
			select`+backupColumns+`from platform.backups
			where project_uuid = @project and origin = 'made' and status in ('pending', 'running') for update`,
			pgx.StrictNamedArgs{"project": d.Project})
		if err != nil {
			return err
		}

		running = b.Status == Running
		return tx.recordWait(ctx, d, uuid.NullUUID{UUID: b.UUID, Valid: !running})
	})
	if err != nil {
		return b, err
	}

	if running {
		return b, fault.New(fault.Conflict, "another backup of the project is under way").WithCode("backup_under_way")
	}

	return b, nil
}

// createAwaited creates a pending backup for a request. It fails with Conflict if the project
// has an unfinished backup.
func (s *store) createAwaited(ctx context.Context, d DestructiveRequest) (Backup, error) {
	b, err := s.insert(ctx, d.Project, d.User, false)
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
func (s *store) recordWait(ctx context.Context, d DestructiveRequest, backup uuid.NullUUID) error {
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

// assignWaiting assigns a pending backup to all requests in a project that wait for the next one.
func (s *store) assignWaiting(ctx context.Context, project, backup uuid.UUID) error {
	n, err := pg.Exec(ctx, s.q,
		`update platform.awaited_backups set backup_uuid = @backup where project_uuid = @project and backup_uuid is null`,
		pgx.StrictNamedArgs{"project": project, "backup": backup})
	if err != nil || n == 0 {
		return err
	}

	return s.retainAwaited(ctx, uuid.NullUUID{UUID: backup, Valid: true})
}

// retainAwaited applies the retention for awaited backups to a scheduled one. Backups that a user
// created are kept in any case.
func (s *store) retainAwaited(ctx context.Context, backup uuid.NullUUID) error {
	_, err := pg.Exec(ctx, s.q, `
		update platform.backups b set made_before = (select operation from platform.awaited_backups where backup_uuid = b.uuid limit 1)
		where uuid = @backup and scheduled and made_before is null`, pgx.StrictNamedArgs{"backup": backup})
	return err
}

// deleteWait deletes a request's record when its backup has ended. A later request needs another
// backup.
func (s *store) deleteWait(ctx context.Context, d DestructiveRequest, backup uuid.UUID) error {
	_, err := pg.Exec(ctx, s.q,
		`delete from platform.awaited_backups where project_uuid = @project and request = @request and backup_uuid = @backup`,
		pgx.StrictNamedArgs{"project": d.Project, "request": d.Request, "backup": backup})
	return err
}
