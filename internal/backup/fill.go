package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/backup/archive"
	"github.com/socle-dev/socle/internal/backup/extension"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/lifecycle"
	"github.com/socle-dev/socle/internal/namespace"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/pgdump"
	"github.com/socle-dev/socle/internal/platform"
	"github.com/socle-dev/socle/internal/projectdb"
)

// errRestoreTimeout reports that restoring a database exceeded its time limit.
var errRestoreTimeout = errors.New("restore timeout exceeded")

// fill is [Service.fillCopy] with a timeout, since it runs user code. Statements that still run end
// when the caller drops the copy, which terminates all its sessions.
func (s *Service) fill(
	ctx context.Context, c *lifecycle.Copy, manifest archive.Manifest, entries []pgdump.Entry, newProject bool,
	confirm func() error,
) ([]Missing, error) {
	settings, err := s.platform.Settings(ctx)
	if err != nil {
		return nil, err
	}

	limit := settings.RestoreTimeout(manifest.Dump.Size)
	fillCtx, cancel := context.WithTimeoutCause(ctx, limit, errRestoreTimeout)
	defer cancel()

	missing, err := s.fillCopy(fillCtx, c, manifest, entries, newProject, confirm)
	if err != nil && context.Cause(fillCtx) == errRestoreTimeout {
		return nil, fault.New(fault.Unprocessable, "restoring the database took longer than %v",
			limit.Round(time.Second)).
			WithCause(errors.Join(errRestoreTimeout, err))
	}

	return missing, err
}

// fillCopy creates a copy and restores a dump into it: first the platform's tables, which the
// user's may reference, then everything else as the owner. It compares the row counts at the end.
// confirm is called under the project's lock before the copy is created. It fails if the restore
// has been abandoned, which removes the copy once, so that none may appear afterwards.
//
// It returns the user's objects that PostgreSQL does not create again.
func (s *Service) fillCopy(
	ctx context.Context, c *lifecycle.Copy, manifest archive.Manifest, entries []pgdump.Entry, newProject bool,
	confirm func() error,
) ([]Missing, error) {
	p, err := planRestore(entries, manifest, s.projects.OwnerLogin(c.Project))
	if err != nil {
		return nil, err
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
		return nil, err
	}

	members, err := s.fillPlatform(ctx, c, manifest, p, newProject)
	if err != nil {
		return nil, fmt.Errorf("load the platform's tables: %w", err)
	}

	p.excludeExtensionTables(members)
	if err := c.GrantInsert(ctx, members); err != nil {
		return nil, err
	}

	failures, err := s.restoreUserObjects(ctx, c, manifest, p)
	if err != nil {
		return nil, err
	}
	if err := c.RevokeInsert(ctx, members); err != nil {
		return nil, err
	}

	grantFailures, err := grantPrivileges(ctx, c, p.statements)
	if err != nil {
		return nil, fmt.Errorf("grant privileges: %w", err)
	}
	failures = append(failures, grantFailures...)

	if err := s.restoreExtensions(ctx, c, manifest); err != nil {
		return nil, fmt.Errorf("restore extensions: %w", err)
	}

	return missingOf(failures), s.compare(ctx, c, manifest, failures)
}

// fillPlatform loads a copy's platform tables and returns the extension tables.
func (s *Service) fillPlatform(
	ctx context.Context, c *lifecycle.Copy, manifest archive.Manifest, p restorePlan, newProject bool,
) ([]projectdb.ExtensionMember, error) {
	conn, err := c.ConnectTrusted(ctx)
	if err != nil {
		return nil, err
	}
	defer conn.Close(context.WithoutCancel(ctx))

	if err := s.loadPlatform(ctx, conn, c.Project, manifest, p, newProject); err != nil {
		return nil, err
	}

	if err := dropServiceSchemas(ctx, conn, p.user); err != nil {
		return nil, err
	}

	return projectdb.ExtensionMembers(ctx, conn)
}

// dropServiceSchemas drops the platform's service schemas in a copy that have the same names as
// user schemas.
func dropServiceSchemas(ctx context.Context, conn *pgx.Conn, user []pgdump.Entry) error {
	for _, e := range user {
		if e.Desc != "SCHEMA" || !slices.Contains(namespace.Services, e.Tag) {
			continue
		}
		if _, err := conn.Exec(ctx, "drop schema if exists "+pg.Quote(e.Tag)+" cascade"); err != nil {
			return err
		}
	}

	return nil
}

// restoreExtensions applies the manifest's changes to extensions and multirange types in a copy.
func (s *Service) restoreExtensions(ctx context.Context, c *lifecycle.Copy, manifest archive.Manifest) error {
	if len(manifest.Extensions) == 0 && manifest.Extended == nil {
		return nil
	}

	conn, err := c.ConnectTrusted(ctx)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))

	omissions, err := extension.Apply(ctx, extension.Target{
		Conn: conn, ConnectOwner: c.ConnectOwner,
		Database: s.projects.Database(c.Project), Owner: s.projects.OwnerLogin(c.Project),
		Source: manifest.DatabaseName(), Foreign: manifest.Imported(),
	}, manifest.Extended)
	if len(omissions) > 0 {
		s.Log.Warn("changes of extensions and multirange types not restored",
			"project", c.Project, "changes", omissions)
	}

	return err
}

// restoreBatchSize is the number of file rows read at once.
const restoreBatchSize = 5000

// restoreFiles copies the files' bytes from the backup to the blobs that the rows in a project's
// copy name. conn is connected to the copy.
func (s *Service) restoreFiles(
	ctx context.Context, conn *pgx.Conn, project uuid.UUID, manifest archive.Manifest,
) error {
	for last := uuid.Nil; ; {
		files, err := s.files.ContentsAfter(ctx, conn, last, restoreBatchSize)
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
				content := archive.Verify(r, want)
				_, err := s.blobs.Put(ctx, projectdb.FileKey(project, f.BlobUUID), content, math.MaxInt64)
				return err
			})
			if err != nil {
				return fmt.Errorf("restore content %s: %w", want.SHA256, err)
			}
		}
	}
}
