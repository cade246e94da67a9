package job

import (
	"context"

	"github.com/google/uuid"

	"socle/internal/audit"
	"socle/internal/backup"
	"socle/internal/blob"
	"socle/internal/fault"
	"socle/internal/pg"
	"socle/internal/platform"
)

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
func (q *Queue) DownloadBackup(ctx context.Context, project, id uuid.UUID, c backup.Cover) (*backup.Archive, error) {
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

// VerifyBackup enqueues a proof of a backup. It fails with NotFound if the backup does not exist
// and with Conflict if it is not completed.
func (q *Queue) VerifyBackup(ctx context.Context, project, id uuid.UUID) (platform.Backup, error) {
	var b platform.Backup
	err := q.Store.InTx(ctx, func(tx *platform.Store) error {
		var err error
		if b, err = tx.GetBackup(ctx, project, id); err != nil {
			return err
		}

		if b.Status != "completed" {
			return fault.New(fault.Conflict, "the backup is not completed but %s", b.Status).
				WithCode("backup_not_completed")
		}

		_, err = q.client.InsertTx(ctx, tx.Tx(), proveArgs{Backup: id, Asked: true}, nil)
		return pg.Fault(err)
	})

	return b, err
}
