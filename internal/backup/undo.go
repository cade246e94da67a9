package backup

import (
	"context"
	"errors"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/platform"
	"github.com/socle-dev/socle/internal/projectdb"
)

// Undo swaps back the database that a restore replaced, immediately. The restored database is then
// kept in its place, as the replaced one was. It fails like [store.undoable].
func (s *Service) Undo(ctx context.Context, project, id uuid.UUID) (Restore, error) {
	var result Restore
	err := s.Lifecycle.WithLock(ctx, project, func() error {
		r, err := s.undoable(ctx, project, id)
		if err != nil {
			return err
		}

		c := s.Lifecycle.Copy(r.ProjectUUID, r.UUID)
		conn, err := c.ConnectReplaced(ctx)
		if pg.State(err) == "3D000" { // invalid_catalog_name
			return fault.New(fault.Conflict, "the database from before this restore is no longer kept").
				WithCode("nothing_kept").WithCause(err)
		}
		if err != nil {
			return err
		}
		defer conn.Close(context.WithoutCancel(ctx))

		if err := c.MigrateReplaced(ctx, conn); err != nil {
			return err
		}

		forms, err := s.carryOver(ctx, r.ProjectUUID, conn)
		if err != nil {
			return err
		}

		_ = conn.Close(ctx) // a swap needs databases without sessions, and terminates those that are left

		return c.SwapBack(ctx, func(renames []string) error {
			result, err = s.recordUndo(ctx, r, forms, projectdb.Version(), renames)
			return err
		})
	})

	return result, err
}

// OpenGates opens project gates that a server closed for an undo and left closed when it stopped.
func (s *Service) OpenGates(ctx context.Context) error {
	projects, err := s.undoableProjects(ctx)
	if err != nil || len(projects) == 0 {
		return err
	}

	ids, err := s.Lifecycle.ClosedProjects(ctx, projects)
	errs := []error{err}
	for _, id := range ids {
		errs = append(errs, s.Lifecycle.WithLock(ctx, id, func() error { // an undo in progress has ended now
			closedNow, err := s.Lifecycle.ClosedProjects(ctx, []uuid.UUID{id})
			if err != nil || len(closedNow) == 0 {
				return err
			}

			status, err := s.platform.ProjectStatus(ctx, id)
			if err != nil || status != platform.Active {
				return fault.Ignore(err, fault.NotFound)
			}

			return s.Lifecycle.Copy(id, uuid.Nil).Reopen(ctx)
		}))
	}

	return errors.Join(errs...)
}

// DropReplaced removes the database replaced by a restore, and its files. It does nothing while the
// database is still to be kept.
func (s *Service) DropReplaced(ctx context.Context, r Restore) error {
	return s.Lifecycle.WithLock(ctx, r.ProjectUUID, func() error { // excludes a concurrent undo
		isExpired, err := s.isExpired(ctx, r.UUID)
		if err != nil || !isExpired {
			return err
		}

		c := s.Lifecycle.Copy(r.ProjectUUID, r.UUID)
		blobs, err := s.blobsOf(ctx, c.ConnectReplaced)
		if err != nil {
			return err
		}

		if err := s.deleteBlobs(ctx, r.ProjectUUID, blobs); err != nil {
			return err
		}
		if err := c.DropReplaced(ctx); err != nil {
			return err
		}

		return s.markReplacedDropped(ctx, r.UUID)
	})
}
