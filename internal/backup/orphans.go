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
// active, paused and deleted projects, leftovers of failed backups, and everything of purged
// projects. Younger blobs may belong to uploads in progress.
//
// Blobs of projects unknown to the platform database stay. The database may be new beside an old
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

	restored, err := s.restoredProjects(ctx)
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

		if _, known := statuses[id]; !known {
			unknown = append(unknown, id)
		}
	}

	gone, err := s.platform.PurgedProjects(ctx, unknown)
	if err != nil {
		return err
	}

	var errs []error
	for _, id := range ids {
		var err error
		removed := 0
		isRestored := slices.Contains(restored, id)
		switch status, exists := statuses[id]; {
		case exists:
			removed, err = s.removeProjectOrphans(ctx, id, status, isRestored, age)
		case isRestored:
		case slices.Contains(gone, id):
			removed, err = s.removeFolder(ctx, "projects/"+id.String(), age)
		default:
			foreign = append(foreign, id)
		}

		if removed > 0 {
			s.Log.Warn("removed orphaned blobs", "project", id, "blobs", removed)
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

// removeProjectOrphans removes orphaned blobs of a project and returns their number. Blobs unknown
// to the database of a project that is being restored may belong to the replaced database or to the
// copy being filled.
func (s *Service) removeProjectOrphans(
	ctx context.Context, id uuid.UUID, status string, isRestored bool, age time.Duration,
) (removed int, err error) {
	removeFiles := func(p *projectdb.Project) error {
		removed, err = s.files.RemoveOrphans(ctx, p, age)
		return err
	}

	switch {
	case isRestored:
	case status == platform.Active:
		err = s.projects.Visit(id, removeFiles)
	case status == platform.Paused, status == platform.Deleted:
		err = s.Lifecycle.Maintain(ctx, id, removeFiles)
	}

	leftovers, failed := s.removeOrphanedBackups(ctx, id, age)
	return removed + leftovers, errors.Join(err, failed)
}

// removeFolder removes the blobs in a folder that are older than age.
func (s *Service) removeFolder(ctx context.Context, folder string, age time.Duration) (int, error) {
	removed := 0
	for e, err := range s.blobs.List(ctx, folder) {
		if err != nil {
			return removed, err
		}

		if time.Since(e.Modified) < age {
			continue
		}

		if err := s.blobs.Delete(ctx, e.Key); err != nil {
			return removed, err
		}

		removed++
	}

	return removed, nil
}

// DropOrphanedCopies drops orphaned copies: databases of restores and proofs without a job. A copy
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

// removeOrphanedBackups removes orphans in the backup folder of a project that are older than age:
// leftovers of failed backups, and contents that no backup needs. A server killed during the
// removal leaves them behind. It returns the number of removed blobs.
//
// It removes nothing if the folder has a backup of any age that the platform database does not
// know. The database was then restored to an earlier time, and that backup needs contents that are
// unknown too.
func (s *Service) removeOrphanedBackups(ctx context.Context, project uuid.UUID, age time.Duration) (int, error) {
	failed, err := s.failed(ctx, project)
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

		ended, known := failed[id]
		if !known {
			return 0, nil
		}

		if ended && old {
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

// removeOrphanedContents removes the contents, given by checksum, that no backup of the project
// needs.
func (s *Service) removeOrphanedContents(
	ctx context.Context, project uuid.UUID, contents []string,
) (removed int, err error) {
	for len(contents) > 0 {
		var sums [][]byte
		for _, c := range contents[:min(orphanBatch, len(contents))] {
			if sum, bad := hex.DecodeString(c); bad == nil {
				sums = append(sums, sum)
			}
		}

		contents = contents[min(orphanBatch, len(contents)):]

		if sums, err = s.orphanContents(ctx, project, sums); err != nil {
			return removed, err
		}

		for _, sum := range sums {
			err := s.deleteOrphanContent(ctx, project, sum, func() error {
				removed++
				return s.blobs.Delete(ctx, contentKey(project, hex.EncodeToString(sum)))
			})
			if err != nil {
				return removed, err
			}
		}
	}

	return removed, nil
}
