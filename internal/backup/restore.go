package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os/exec"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/backup/archive"
	"github.com/socle-dev/socle/internal/backup/pgtool"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/object"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/pgdump"
	"github.com/socle-dev/socle/internal/platform"
	"github.com/socle-dev/socle/internal/projectdb"
)

// Restore runs a pending restore until it is completed, or failed with a reason and without effect.
// It does nothing if the restore is not pending. The error is for the log.
func (s *Service) Restore(ctx context.Context, id uuid.UUID) error {
	restores := task[Restore]{s.restoreTasks(), s.restore, restoreFailure, s.AbandonRestore}
	r, err := runTask(ctx, s, restores, id)
	if err != nil {
		return err
	}

	return s.dropEmptyDatabase(ctx, r)
}

// AbandonRestore fails an unfinished restore. It removes the copy and its blobs, and opens the gate
// of the project if a swap had closed it. It does nothing if the restore has ended.
func (s *Service) AbandonRestore(ctx context.Context, r Restore, reason string) error {
	failed := false

	// Swaps hold the same lock, so the copy is not in place yet.
	err := s.Lifecycle.WithLock(ctx, r.ProjectUUID, func() error {
		if _, err := s.restoreTasks().unfinished(ctx, r.UUID); err != nil {
			return fault.Ignore(err, fault.NotFound)
		}
		if err := s.removeCopy(ctx, r); err != nil {
			return err
		}

		var err error
		failed, err = s.failRestore(ctx, r, reason)
		return err
	})
	if err != nil || !failed || r.Target != IntoNew {
		return err
	}

	return s.Lifecycle.Finish(ctx) // removes the project created for the restore
}

// removeCopy removes the database and the blobs created by a restore.
func (s *Service) removeCopy(ctx context.Context, r Restore) error {
	c := s.projects.Copy(r.ProjectUUID, r.UUID)
	blobs, err := blobsOf(ctx, c.ConnectTrusted)
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

// blobsOf returns the blobs recorded in a database, see [object.Blobs]. It returns none if the
// database does not exist.
func blobsOf(ctx context.Context, connect func(context.Context) (*pgx.Conn, error)) ([]uuid.UUID, error) {
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

	return object.Blobs(ctx, conn)
}

func (s *Service) deleteBlobs(ctx context.Context, project uuid.UUID, blobs []uuid.UUID) error {
	for _, b := range blobs {
		if err := s.blobs.Delete(ctx, projectdb.FileKey(project, b)); err != nil {
			return err
		}
	}

	return nil
}

// restoreFailure explains to the user why a restore failed.
func restoreFailure(ctx context.Context, err error) string {
	_, exited := errors.AsType[*exec.ExitError](err)
	switch e := fault.Of(err); {
	case ctx.Err() != nil:
		return "the server was stopped"
	case errors.Is(err, archive.ErrDamaged), errors.Is(err, pgdump.ErrTOC):
		return "the backup is damaged; nothing was restored"
	case e.Kind != fault.Internal:
		return e.Detail
	case programFailure(err) != "":
		return "the restore failed: " + programFailure(err)
	case exited:
		return "an object in the backup cannot be restored as the project's owner; see the server's log"
	}

	return "the restore failed; see the server's log"
}

// restore checks a backup, restores it into a copy beside the project's database, compares them,
// and swaps the copy in.
func (s *Service) restore(ctx context.Context, r Restore) error {
	manifest, entries, err := s.verifyBackup(ctx, r.BackupProjectUUID, r.BackupUUID)
	if err != nil {
		return err
	}
	defer manifest.Files.Close()

	c := s.projects.Copy(r.ProjectUUID, r.UUID)

	confirm := func() error { return s.restoreTasks().heartbeat(ctx, r.UUID) }
	if err := s.fill(ctx, c, manifest, entries, r.Target == IntoNew, confirm); err != nil {
		return err
	}

	if err := s.restoreFiles(ctx, c, manifest); err != nil {
		return err
	}
	if err := c.Finish(ctx); err != nil {
		return err
	}

	if manifest.Imported() {
		if err := repairImported(ctx, c); err != nil {
			return err
		}
	}

	return s.Lifecycle.WithLock(ctx, r.ProjectUUID, func() error {
		forms, err := s.carryQuota(ctx, r.ProjectUUID, c.ConnectTrusted)
		if err != nil {
			return err
		}

		return c.Swap(ctx, func(renames []string) error {
			return s.completeRestore(ctx, r, forms, projectdb.Version(), renames)
		})
	})
}

// verifyBackup reads all stored data of a backup. It fails unless every byte is unchanged, or could
// be repaired, and this release can restore the backup.
func (s *Service) verifyBackup(ctx context.Context, project, backup uuid.UUID) (
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

// errRestoreTimeout reports that restoring a database exceeded its time limit.
var errRestoreTimeout = errors.New("restore timeout exceeded")

// fill is [Service.fillCopy] with a timeout, since it runs user code. Statements that still run end
// when the caller drops the copy, which terminates all its sessions.
func (s *Service) fill(
	ctx context.Context, c *projectdb.Copy, manifest archive.Manifest, entries []pgdump.Entry, newProject bool,
	confirm func() error,
) error {
	settings, err := s.platform.Settings(ctx)
	if err != nil {
		return err
	}

	limit := settings.RestoreTimeout(manifest.Dump.Size)
	fillCtx, cancel := context.WithTimeoutCause(ctx, limit, errRestoreTimeout)
	defer cancel()

	err = s.fillCopy(fillCtx, c, manifest, entries, newProject, confirm)
	if err != nil && context.Cause(fillCtx) == errRestoreTimeout {
		return fault.New(fault.Unprocessable, "restoring the database took longer than %v", limit.Round(time.Second)).
			WithCause(errors.Join(errRestoreTimeout, err))
	}

	return err
}

// fillCopy creates a copy and restores a dump into it: first the platform's tables, which the
// user's may reference, then everything else as the owner. It compares the row counts at the end.
// confirm is called under the project's lock before the copy is created. It fails if the restore
// has been abandoned, which removes the copy once, so that none may appear afterwards.
func (s *Service) fillCopy(
	ctx context.Context, c *projectdb.Copy, manifest archive.Manifest, entries []pgdump.Entry, newProject bool,
	confirm func() error,
) error {
	p, err := planRestore(entries, manifest, s.projects.OwnerLogin(c.Project))
	if err != nil {
		return err
	}

	// A project that is being removed gets no new database, which the removal would miss.
	if err := s.Lifecycle.WithLock(ctx, c.Project, func() error {
		status, err := s.platform.ProjectStatus(ctx, c.Project)
		if err == nil && status != platform.Active {
			err = errInactive
		}

		if err == nil {
			err = confirm()
		}
		if err != nil {
			return err
		}

		return c.Create(ctx, manifest.Schema, manifest.Extensions)
	}); err != nil {
		return err
	}
	if err := s.loadPlatform(ctx, c, manifest, p, newProject); err != nil {
		return fmt.Errorf("load the platform's tables: %w", err)
	}

	members, err := c.ExtensionMembers(ctx)
	if err != nil {
		return err
	}

	p.excludeExtensionTables(members)
	if err := c.GrantInsert(ctx, members); err != nil {
		return err
	}
	if err := s.restoreUserObjects(ctx, c, manifest, p); err != nil {
		return err
	}
	if err := c.RevokeInsert(ctx, members); err != nil {
		return err
	}
	if err := grantPrivileges(ctx, c, p.statements); err != nil {
		return fmt.Errorf("grant privileges: %w", err)
	}
	if err := s.restoreExtensions(ctx, c, manifest); err != nil {
		return fmt.Errorf("restore extensions: %w", err)
	}

	return compare(ctx, c, manifest)
}

// restoreExtensions applies the manifest's changes of extensions and multirange types to a copy.
func (s *Service) restoreExtensions(ctx context.Context, c *projectdb.Copy, manifest archive.Manifest) error {
	if len(manifest.Extensions) == 0 && manifest.Extended == nil {
		return nil
	}

	failed, err := c.ApplyExtensionChanges(ctx, manifest.Extended, manifest.DatabaseName(), manifest.Imported())
	if len(failed) > 0 {
		s.Log.Warn("changes of extensions and multirange types not restored",
			"project", c.Project, "changes", failed)
	}

	return err
}

// restoreUserObjects runs pg_restore as the owner for the user's objects. It executes user code.
func (s *Service) restoreUserObjects(
	ctx context.Context, c *projectdb.Copy, manifest archive.Manifest, p restorePlan,
) error {
	return s.readPart(ctx, DumpKey(manifest.Project, manifest.Backup), func(r io.Reader) error {
		address, password := c.OwnerURL()
		to := pgtool.Connection{Address: address, Password: password}
		cmd, done, err := s.tools.RestoreCommand(ctx, to, useList(p.user),
			"--no-owner", "--no-privileges", "--exit-on-error", "--enable-row-security")
		if err != nil {
			return err
		}
		defer done()

		cmd.Stdin = r
		return pgtool.Run(cmd, func(out io.Reader) error {
			_, err := io.Copy(io.Discard, out)
			return err
		})
	})
}

// restoreBatchSize is the number of files whose rows are read at once.
const restoreBatchSize = 5000

// restoreFiles copies the files' bytes from the backup to the blobs that the copy's rows name.
func (s *Service) restoreFiles(ctx context.Context, c *projectdb.Copy, manifest archive.Manifest) error {
	conn, err := c.ConnectTrusted(ctx)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))

	for last := uuid.Nil; ; {
		files, err := object.ContentsAfter(ctx, conn, last, restoreBatchSize)
		if err != nil || len(files) == 0 {
			return err
		}

		sums := make([][]byte, len(files))
		for i, f := range files {
			sums[i], last = f.SHA256, f.BlobUUID
		}

		complete, err := s.hasContents(ctx, manifest.Project, manifest.Backup, sums)
		if err == nil && !complete {
			err = fmt.Errorf("%w: the manifest lacks files of the dump", archive.ErrDamaged)
		}
		if err != nil {
			return err
		}

		for _, f := range files {
			want := archive.NewDigest(f.Size, f.SHA256)
			err := s.readPart(ctx, contentKey(manifest.Project, want.SHA256), func(r io.Reader) error {
				verified := archive.Verify(r, want)
				_, err := s.blobs.Put(ctx, projectdb.FileKey(c.Project, f.BlobUUID), verified, math.MaxInt64)
				return err
			})
			if err != nil {
				return fmt.Errorf("restore content %s: %w", want.SHA256, err)
			}
		}
	}
}
