package backup

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/backup/archive"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/pgdump"
	"github.com/socle-dev/socle/internal/platform"
	"github.com/socle-dev/socle/internal/projectdb"
)

// Restore runs a pending restore until it is completed, or failed with a reason and without effect.
// It does nothing if the restore is not pending. The error is for the log.
func (s *Service) Restore(ctx context.Context, id uuid.UUID) error {
	restores := task[Restore]{rows: s.restoreTasks(), run: s.restore, reason: restoreFailure,
		clear: s.clearRestore, pend: s.pendRestore, abandon: s.AbandonRestore}
	r, err := runTask(ctx, s, restores, id)
	if err != nil {
		return err
	}

	return s.dropEmptyDatabase(ctx, r)
}

// AbandonRestore fails an unfinished restore. It removes the copy and its blobs, and opens the
// project's gate if a swap had closed it. It does nothing if the restore has ended.
func (s *Service) AbandonRestore(ctx context.Context, r Restore, reason string) error {
	ok := false

	// Swaps hold the same lock, so the copy is not in place yet.
	err := s.Lifecycle.WithLock(ctx, r.ProjectUUID, func() error {
		if _, err := s.restoreTasks().unfinished(ctx, r.UUID); err != nil {
			return fault.Ignore(err, fault.NotFound)
		}
		if err := s.removeCopy(ctx, r); err != nil {
			return err
		}

		var err error
		ok, err = s.failRestore(ctx, r, reason)
		return err
	})
	if err != nil || !ok || r.Target != IntoNew {
		return err
	}

	return s.Lifecycle.Finish(ctx) // removes the project created for the restore
}

// clearRestore removes what an unfinished restore has left. It fails with NotFound if the restore
// has ended.
func (s *Service) clearRestore(ctx context.Context, r Restore) error {
	return s.Lifecycle.WithLock(ctx, r.ProjectUUID, func() error {
		if _, err := s.restoreTasks().unfinished(ctx, r.UUID); err != nil {
			return err
		}
		return s.removeCopy(ctx, r)
	})
}

// removeCopy removes the database and the blobs created by a restore.
func (s *Service) removeCopy(ctx context.Context, r Restore) error {
	c := s.Lifecycle.Copy(r.ProjectUUID, r.UUID)
	blobs, err := s.blobsOf(ctx, c.ConnectTrusted)
	if err != nil {
		return err
	}

	if err := errors.Join(s.deleteBlobs(ctx, r.ProjectUUID, blobs), c.Drop(ctx)); err != nil {
		return err
	}

	status, err := s.platform.ProjectStatus(ctx, r.ProjectUUID)
	if err != nil || status != platform.Active {
		return fault.Ignore(err, fault.NotFound)
	}

	return c.Reopen(ctx)
}

// dropEmptyDatabase drops the empty database that a new project was created with. The periodic
// cleanup drops it if this fails.
func (s *Service) dropEmptyDatabase(ctx context.Context, r Restore) error {
	if r.Target != IntoNew {
		return nil
	}
	return s.DropReplaced(ctx, r)
}

// blobsOf returns the blobs recorded in a database, see [projectdb.Files]. It returns none if the
// database does not exist.
func (s *Service) blobsOf(ctx context.Context, connect func(context.Context) (*pgx.Conn, error)) ([]uuid.UUID, error) {
	conn, err := connect(ctx)
	switch pg.State(err) {
	case "3D000", // invalid_catalog_name
		"55000": // object_not_in_prerequisite_state: creation stopped before connections were allowed
		return nil, nil
	}

	if err != nil {
		return nil, err
	}

	defer conn.Close(context.WithoutCancel(ctx))

	return s.files.Blobs(ctx, conn)
}

func (s *Service) deleteBlobs(ctx context.Context, project uuid.UUID, blobs []uuid.UUID) error {
	for _, b := range blobs {
		if err := s.blobs.Delete(ctx, projectdb.FileKey(project, b)); err != nil {
			return err
		}
	}

	return nil
}

// restore checks a backup, restores it into a copy beside the project's database, compares them,
// and swaps the copy in.
func (s *Service) restore(ctx context.Context, r Restore) error {
	manifest, entries, err := s.Verify(ctx, r.BackupProjectUUID, r.BackupUUID)
	if err != nil {
		return err
	}
	defer manifest.Files.Close()

	c := s.Lifecycle.Copy(r.ProjectUUID, r.UUID)

	confirm := func() error { return s.restoreTasks().heartbeat(ctx, r.UUID) }
	missing, err := s.fill(ctx, c, manifest, entries, r.Target == IntoNew, confirm)
	if err != nil {
		return err
	}
	if err := s.recordMissing(ctx, r.UUID, missing); err != nil {
		return err
	}
	if err := rejectMissing(r, missing); err != nil {
		return err
	}

	conn, err := c.ConnectTrusted(ctx)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))

	if err := s.restoreFiles(ctx, conn, c.Project, manifest); err != nil {
		return err
	}
	if err := c.Finish(ctx, conn); err != nil {
		return err
	}

	if manifest.Imported() {
		if err := s.repairImported(ctx, conn); err != nil {
			return err
		}
	}

	return s.Lifecycle.WithLock(ctx, r.ProjectUUID, func() error {
		forms, err := s.carryOver(ctx, r.ProjectUUID, conn)
		if err != nil {
			return err
		}

		_ = conn.Close(ctx) // a swap needs databases without sessions, and terminates those that are left

		return c.Swap(ctx, func(renames []string) error {
			return s.completeRestore(ctx, r, forms, projectdb.Version(), renames)
		})
	})
}

// Verify reads all stored data of a backup. It fails unless every byte is unchanged, or could be
// repaired, and this release can restore the backup. The caller closes the manifest's files.
func (s *Service) Verify(ctx context.Context, project, backup uuid.UUID) (
	manifest archive.Manifest, entries []pgdump.Entry, err error,
) {
	if manifest, err = s.readManifest(ctx, project, backup); err != nil {
		return manifest, nil, fmt.Errorf("read manifest: %w", err)
	}

	defer func() {
		if err != nil {
			manifest.Files.Close()
		}
	}()

	if err := s.checkRestorable(ctx, manifest); err != nil {
		return manifest, nil, err
	}
	if entries, err = s.verifyDump(ctx, manifest); err != nil {
		return manifest, nil, fmt.Errorf("verify dump: %w", err)
	}

	for f, err := range manifest.Files.All() {
		if err == nil {
			err = s.verifyContent(ctx, project, f.Digest)
		}

		if errors.Is(err, archive.ErrDamaged) && s.repairContent(ctx, project, f.Digest, err) {
			err = nil
		}
		if err != nil {
			return manifest, nil, fmt.Errorf("verify content %s: %w", f.SHA256, err)
		}
	}

	return manifest, entries, nil
}
