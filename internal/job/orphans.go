package job

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"socle/internal/fault"
	"socle/internal/object"
	"socle/internal/platform"
	"socle/internal/tenant"
)

// RemoveOrphans removes orphaned blobs older than age: blobs without a file in active, paused and
// deleted projects, leftovers of failed backups, and everything of purged projects. Younger blobs
// may belong to uploads in progress.
//
// Blobs of projects unknown to the platform database stay. The database may be new beside an old
// storage, restored to an earlier time, or another install may share the storage.
func (q *Queue) RemoveOrphans(ctx context.Context, age time.Duration) error {
	// List the folders first: a project's row precedes its blobs.
	folders, err := q.Lifecycle.Blobs.Folders(ctx, "projects")
	if err != nil {
		return err
	}

	statuses, err := q.Store.ProjectStatuses(ctx)
	if err != nil {
		return err
	}

	restored, err := q.Store.RestoredProjects(ctx)
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

	gone, err := q.Store.GoneProjects(ctx, unknown)
	if err != nil {
		return err
	}

	var errs []error
	for _, id := range ids {
		var err error
		removed := 0
		status, known := statuses[id]
		switch {
		case slices.Contains(restored, id):
			// Blobs unknown to the current database may belong to the replaced one or to the copy
			// being filled.
		case status == platform.Active:
			err = q.Lifecycle.Registry.Visit(id, func(p *tenant.Project) error {
				removed, err = object.RemoveOrphans(ctx, p, q.Lifecycle.Blobs, age)
				return err
			})
		case status == platform.Paused, status == platform.Deleted:
			err = q.maintain(ctx, id, func(p *tenant.Project) error {
				removed, err = object.RemoveOrphans(ctx, p, q.Lifecycle.Blobs, age)
				return err
			})
		case slices.Contains(gone, id):
			removed, err = q.removeFolder(ctx, "projects/"+id.String(), age)
		case !known:
			foreign = append(foreign, id)
		}

		if known {
			strays, failed := q.removeStrayBackups(ctx, id, age)
			removed, err = removed+strays, errors.Join(err, failed)
		}

		if removed > 0 {
			q.Log.Warn("bytes that belonged to nothing were removed", "project", id, "blobs", removed)
		}

		if err != nil { // continue with the other projects
			errs = append(errs, fmt.Errorf("project %s: %w", id, err))
		}
	}

	if len(foreign) > 0 {
		q.Log.Warn("bytes of projects that the database has never had are left where they are",
			"projects", len(foreign), "first", foreign[0])
	}

	return errors.Join(errs...)
}

// maintain runs f on a paused or deleted project. It skips a project with pending migrations, which
// run when the project resumes.
func (q *Queue) maintain(ctx context.Context, id uuid.UUID, f func(*tenant.Project) error) error {
	err := q.Lifecycle.Registry.Maintain(ctx, id, f)
	if fault.Is(err, fault.Conflict) {
		return nil
	}

	return err
}

// removeFolder removes the blobs in a folder that are older than age.
func (q *Queue) removeFolder(ctx context.Context, folder string, age time.Duration) (int, error) {
	removed := 0
	for e, err := range q.Lifecycle.Blobs.List(ctx, folder) {
		if err != nil {
			return removed, err
		}

		if time.Since(e.Modified) < age {
			continue
		}

		if err := q.Lifecycle.Blobs.Delete(ctx, e.Key); err != nil {
			return removed, err
		}

		removed++
	}

	return removed, nil
}
