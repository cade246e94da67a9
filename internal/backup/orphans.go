package backup

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/platform"
	"github.com/socle-dev/socle/internal/projectdb"
)

// RemoveOrphans removes orphaned blobs older than [projectdb.MinOrphanAge]: blobs without a file in
// active, paused and deleted projects, failed backups' leftovers, and all blobs in purged projects.
// Younger blobs may belong to uploads in progress.
//
// Blobs stay if the platform database does not know their project. It may be new beside an old
// storage, restored to an earlier time, or another install may share the storage.
func (s *Service) RemoveOrphans(ctx context.Context) error {
	const age = projectdb.MinOrphanAge

	// List the folders first: a project's row precedes its blobs.
	folders, err := s.blobs.Folders(ctx, "projects")
	if err != nil {
		return err
	}

	statuses, err := s.platform.ProjectStatuses(ctx)
	if err != nil {
		return err
	}

	restoring, err := s.restoredProjects(ctx)
	if err != nil {
		return err
	}

	var ids, unknown, foreign []uuid.UUID
	for _, folder := range folders {
		id, err := uuid.Parse(folder)
		if err != nil || id.String() != folder {
			continue // not a project's
		}

		ids = append(ids, id)

		if _, ok := statuses[id]; !ok {
			unknown = append(unknown, id)
		}
	}

	purged, err := s.platform.PurgedProjects(ctx, unknown)
	if err != nil {
		return err
	}

	var errs []error
	for _, id := range ids {
		var err error
		count := 0
		isRestored := slices.Contains(restoring, id)
		switch status, exists := statuses[id]; {
		case exists:
			count, err = s.removeProjectOrphans(ctx, id, status, isRestored, age)
		case isRestored:
		case slices.Contains(purged, id):
			count, err = s.removeFolder(ctx, "projects/"+id.String(), age)
		default:
			foreign = append(foreign, id)
		}

		if count > 0 {
			s.Log.Warn("removed orphaned blobs", "project", id, "blobs", count)
		}

		if err != nil { // continue with the other projects
			errs = append(errs, fmt.Errorf("project %s: %w", id, err))
		}
	}

	if len(foreign) > 0 {
		s.Log.Warn("kept blobs of projects unknown to the database",
			"projects", len(foreign), "first", foreign[0])
	}

	return errors.Join(errs...)
}

// removeProjectOrphans removes a project's orphaned blobs and returns their number. While a project
// is being restored, blobs unknown to its database may belong to the replaced database or to the
// copy being filled.
func (s *Service) removeProjectOrphans(
	ctx context.Context, id uuid.UUID, status string, isRestored bool, age time.Duration,
) (count int, err error) {
	removeFiles := func(p *projectdb.Project) error {
		count, err = s.files.RemoveOrphans(ctx, p, age)
		return err
	}

	switch {
	case isRestored:
	case status == platform.Active:
		err = s.projects.Visit(id, removeFiles)
	case status == platform.Paused, status == platform.Deleted:
		err = s.Lifecycle.Maintain(ctx, id, removeFiles)
	}

	leftovers, backupErr := s.removeOrphanedBackups(ctx, id, age)
	return count + leftovers, errors.Join(err, backupErr)
}

// removeFolder removes the blobs in a folder that are older than age.
func (s *Service) removeFolder(ctx context.Context, folder string, age time.Duration) (int, error) {
	count := 0
	for e, err := range s.blobs.List(ctx, folder) {
		if err != nil {
			return count, err
		}

		if time.Since(e.Modified) < age {
			continue
		}

		if err := s.blobs.Delete(ctx, e.Key); err != nil {
			return count, err
		}

		count++
	}

	return count, nil
}

// DropOrphanedCopies drops orphaned copies: databases for restores and proofs without a job. A copy
// can appear after its job has failed, since PostgreSQL finishes a CREATE DATABASE whose client is
// gone.
func (s *Service) DropOrphanedCopies(ctx context.Context) error {
	names, err := pg.Values[string](ctx, s.Queue.Pool,
		`select datname::text from pg_database where datname ~ '^socle_[0-9a-f]{32}_(proof|asked|new)_'`)
	if err != nil || len(names) == 0 {
		return err
	}

	projects := make([]uuid.UUID, len(names))
	for i, name := range names {
		projects[i], _ = s.projects.ProjectOf(name)
	}

	orphans, err := pg.Values[string](ctx, s.Queue.Pool, `
		select d.name
		from (
			select name, project, right(name, 16) as half -- of the UUID that the name ends with, see lifecycle.Copy
			from unnest(@names::text[], @projects::uuid[]) as copies (name, project)
		) d
		join platform.projects p on p.uuid = d.project
		where not exists (
			select from river.river_job j
			where j.kind = @proof and j.state in ('available', 'pending', 'retryable', 'scheduled', 'running')
			  and right(replace(j.args ->> 'backup', '-', ''), 16) = d.half)
		and not exists (
			select from platform.restores r where r.status in ('pending', 'running') and right(replace(r.uuid::text, '-', ''), 16) = d.half)`,
		pgx.StrictNamedArgs{"names": names, "projects": projects, "proof": proveArgs{}.Kind()})

	errs := []error{err}
	for _, name := range orphans {
		project, _ := s.projects.ProjectOf(name)
		errs = append(errs, s.Lifecycle.DropOrphan(ctx, project, name))
	}

	return errors.Join(errs...)
}

// orphanBatch is the number of contents checked per statement.
const orphanBatch = 1000

// removeOrphanedBackups removes orphans in a project's backup folder that are older than age:
// failed backups' leftovers, and contents that no backup needs. A server killed during the removal
// leaves them behind. It returns the number of removed blobs.
//
// It removes nothing if the folder has a backup, however new, that the platform database does not
// know. The database was then restored to an earlier time, and that backup needs contents that are
// unknown too.
func (s *Service) removeOrphanedBackups(ctx context.Context, project uuid.UUID, age time.Duration) (int, error) {
	failures, err := s.failures(ctx, project)
	if err != nil {
		return 0, err
	}

	folder := partsFolder(project)
	var remove, contents []string
	for e, err := range s.blobs.List(ctx, strings.TrimSuffix(folder, "/")) {
		if err != nil {
			return 0, err
		}

		old, name := time.Since(e.Modified) >= age, strings.TrimPrefix(e.Key, folder)
		if sum, ok := strings.CutPrefix(name, contentFolder); ok {
			if old {
				contents = append(contents, sum)
			}
			continue
		}

		id, err := uuid.Parse(strings.TrimSuffix(strings.TrimSuffix(name, dumpSuffix), manifestSuffix))
		if err != nil {
			continue // not a backup's
		}

		isFailed, ok := failures[id]
		if !ok {
			return 0, nil
		}

		if isFailed && old {
			remove = append(remove, e.Key)
		}
	}

	for i, key := range remove {
		if err := s.blobs.Delete(ctx, key); err != nil {
			return i, err
		}
	}

	n, err := s.removeOrphanedContents(ctx, project, contents)
	return len(remove) + n, err
}

// removeOrphanedContents removes contents that none of the project's backups needs. contents are
// checksums.
func (s *Service) removeOrphanedContents(
	ctx context.Context, project uuid.UUID, contents []string,
) (count int, err error) {
	for len(contents) > 0 {
		var sums [][]byte
		for _, c := range contents[:min(orphanBatch, len(contents))] {
			if sum, decodeErr := hex.DecodeString(c); decodeErr == nil {
				sums = append(sums, sum)
			}
		}

		contents = contents[min(orphanBatch, len(contents)):]

		if sums, err = s.orphanContents(ctx, project, sums); err != nil {
			return count, err
		}

		for _, sum := range sums {
			err := s.deleteOrphanContent(ctx, project, sum, func() error {
				count++
				return s.blobs.Delete(ctx, contentKey(project, hex.EncodeToString(sum)))
			})
			if err != nil {
				return count, err
			}
		}
	}

	return count, nil
}
