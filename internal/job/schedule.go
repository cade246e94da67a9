package job

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"

	"socle/internal/fault"
	"socle/internal/pg"
	"socle/internal/platform"
)

// createDueBackups creates the backups that are due. If several servers find the same one, the
// first creates it. A backup that cannot be made now stays due.
func (q *Queue) createDueBackups(ctx context.Context) error {
	projects, err := q.Store.DueBackups(ctx)
	errs := []error{err}
	for _, id := range projects {
		ctx := q.Lifecycle.AsSystem(ctx, "createDueBackup", id)
		err := q.Store.InTx(ctx, func(tx *platform.Store) error {
			b, err := tx.CreateDueBackup(ctx, id)
			if err != nil {
				return err
			}

			_, err = q.client.InsertTx(ctx, tx.Tx(), backupArgs{Backup: b.UUID}, nil)
			return pg.Fault(err)
		})
		if err != nil && !fault.Is(err, fault.NotFound) && !fault.Is(err, fault.Conflict) {
			errs = append(errs, fmt.Errorf("create due backup of project %s: %w", id, err))
		}
	}

	return errors.Join(errs...)
}

// applyRetention removes the backups of a project that its retention rules do not keep.
func (q *Queue) applyRetention(ctx context.Context, project uuid.UUID) error {
	_, err := q.Store.DeleteExpiredBackups(q.Lifecycle.AsSystem(ctx, "removeUnkeptBackups", project), project)
	return fault.Ignore(err, fault.NotFound)
}
