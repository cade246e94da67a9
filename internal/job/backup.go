package job

import (
	"context"
	"errors"

	"github.com/google/uuid"
	"github.com/riverqueue/river"

	"socle/internal/audit"
	"socle/internal/backup"
	"socle/internal/blob"
	"socle/internal/fault"
	"socle/internal/pg"
	"socle/internal/platform"
)

const backupQueue = "backups"

// backupArgs are the arguments of a job that makes a backup.
type backupArgs struct {
	Backup uuid.UUID `json:"backup"`
}

// Kind returns the kind of the job.
func (backupArgs) Kind() string { return "backup" }

// InsertOpts allows one attempt: a retry is a new backup with its own status.
func (backupArgs) InsertOpts() river.InsertOpts {
	return river.InsertOpts{Queue: backupQueue, MaxAttempts: 1}
}

// makeBackup makes a backup. Afterwards it applies the retention rules, removes bytes of deleted
// files that were kept for the backup, and enqueues a proof.
func (q *Queue) makeBackup(ctx context.Context, a backupArgs) error {
	id := a.Backup
	if err := q.Maker.Make(ctx, id); err != nil {
		return err
	}

	after, err := q.Store.AfterBackup(ctx, id)
	if err != nil {
		return fault.Ignore(err, fault.NotFound)
	}

	q.Discard(ctx, after.ProjectUUID)

	if after.Prove {
		_, err = q.client.Insert(ctx, proveArgs{Backup: id}, nil)
	}

	return errors.Join(err, q.applyRetention(ctx, after.ProjectUUID))
}

// CreateBackup creates a backup and enqueues its job. It fails with Conflict if the project already
// has a backup in progress.
func (q *Queue) CreateBackup(ctx context.Context, project, user uuid.UUID) (platform.Backup, error) {
	var b platform.Backup
	err := q.Store.InTx(ctx, func(tx *platform.Store) error {
		var err error
		if b, err = tx.CreateBackup(ctx, project, user); err != nil {
			return err
		}

		_, err = q.client.InsertTx(ctx, tx.Tx(), backupArgs{Backup: b.UUID}, nil)
		return pg.Fault(err)
	})

	return b, err
}

// removeBackups removes deleted backups and the databases replaced by restores whose retention has
// expired. It also opens the gate of projects whose undo of a restore was cut off.
func (q *Queue) removeBackups(ctx context.Context) error {
	deleting, err := q.Store.DeletingBackups(ctx)
	errs := []error{err}
	for _, b := range deleting {
		err := q.Maker.Discard(ctx, b.ProjectUUID, b.UUID)
		if err == nil {
			err = q.Store.ForgetBackup(ctx, b.UUID)
		}

		errs = append(errs, err)
	}

	expired, err := q.Store.ExpiredRestores(ctx)
	errs = append(errs, err)
	for _, r := range expired {
		errs = append(errs, q.Maker.DropReplaced(ctx, r))
	}

	return errors.Join(append(errs, q.Maker.OpenGates(ctx))...)
}

// ImportBackup stores an uploaded archive as a backup of a project and enqueues its proof. It fails
// like [platform.Store.StartImport] and [backup.Maker.Import].
func (q *Queue) ImportBackup(ctx context.Context, project, user uuid.UUID, in backup.Import) (platform.Backup, error) {
	b, err := q.Store.StartImport(ctx, project, user)
	if err != nil {
		return b, err
	}

	err = q.Maker.Import(ctx, b, in, func(ctx context.Context, o blob.Object) error {
		return q.Store.InTx(ctx, func(tx *platform.Store) error {
			if err := tx.CompleteBackup(ctx, b.UUID, o.Size, o.SHA256, nil); err != nil {
				return err
			}

			audit.CreatedUUID(ctx, b.UUID)
			if _, err := q.client.InsertTx(ctx, tx.Tx(), proveArgs{Backup: b.UUID}, nil); err != nil {
				return pg.Fault(err)
			}

			var err error
			b, err = tx.GetBackup(ctx, project, b.UUID)
			return err
		})
	})

	return b, err
}

// DownloadBackup returns a backup as an archive, which the caller closes, and writes the audit
// entry. It fails like [backup.Maker.OpenArchive].
func (q *Queue) DownloadBackup(
	ctx context.Context, project, id uuid.UUID, c backup.ExportEncryption,
) (*backup.Archive, error) {
	a, err := q.Maker.OpenArchive(ctx, project, id, c)
	if err != nil {
		return nil, err
	}

	if err := q.Store.InTx(ctx, func(*platform.Store) error { return nil }); err != nil {
		a.Close()
		return nil, err
	}

	return a, nil
}

// ProveBackup enqueues a proof of a backup. It fails with NotFound if the backup does not exist
// and with Conflict if it is not completed.
func (q *Queue) ProveBackup(ctx context.Context, project, id uuid.UUID) (platform.Backup, error) {
	var b platform.Backup
	err := q.Store.InTx(ctx, func(tx *platform.Store) error {
		var err error
		if b, err = tx.GetBackup(ctx, project, id); err != nil {
			return err
		}

		if err := backup.CheckCompleted(b); err != nil {
			return err
		}

		_, err = q.client.InsertTx(ctx, tx.Tx(), proveArgs{Backup: id, Asked: true}, nil)
		return pg.Fault(err)
	})

	return b, err
}
