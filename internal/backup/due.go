package backup

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"

	"socle/internal/fault"
	"socle/internal/platform"
)

// CreateDue creates the backups that are due. If several servers find the same one, the
// first creates it. A backup that cannot be made now stays due.
func (m *Maker) CreateDue(ctx context.Context) error {
	projects, err := m.store.DueBackups(ctx)
	errs := []error{err}
	for _, id := range projects {
		ctx := m.Lifecycle.AsSystem(ctx, "createDueBackup", id)
		err := m.store.InTx(ctx, func(tx *platform.Store) error {
			b, err := tx.CreateDueBackup(ctx, id)
			if err != nil {
				return err
			}

			return m.enqueue(ctx, tx, b)
		})
		if err != nil && !fault.Is(err, fault.NotFound) && !fault.Is(err, fault.Conflict) {
			errs = append(errs, fmt.Errorf("create due backup of project %s: %w", id, err))
		}
	}

	return errors.Join(errs...)
}

// applyRetention removes the backups of a project that its retention rules do not keep.
func (m *Maker) applyRetention(ctx context.Context, project uuid.UUID) error {
	_, err := m.store.DeleteExpiredBackups(m.Lifecycle.AsSystem(ctx, "removeUnkeptBackups", project), project)
	return fault.Ignore(err, fault.NotFound)
}
