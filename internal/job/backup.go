package job

import (
	"context"
	"errors"

	"github.com/google/uuid"
	"github.com/riverqueue/river"

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
		return fault.Except(err, fault.NotFound)
	}

	q.Discard(ctx, after.ProjectUUID)

	if after.Prove {
		_, err = q.client.Insert(ctx, proveArgs{Backup: id}, nil)
	}

	return errors.Join(err, q.removeUnkept(ctx, after.ProjectUUID))
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

	return errors.Join(append(errs, q.Maker.Reopen(ctx))...)
}
