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

// RemoveOrphans removes bytes that are older than age and that no database knows: those of no file in the projects, paused and deleted ones
// too, what is left of failed backups, and whatever is kept for a project that was removed. What is younger may be on its way. What is kept for projects that the
// database has never had stays: it may be a new database beside an old storage, one that was put back to an earlier time, or the storage another instance's too.
func (q *Queue) RemoveOrphans(ctx context.Context, age time.Duration) error {
	// The folders come first: a project's row is there before its bytes.
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
			continue // nothing of ours
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
			// Bytes that the database there does not know may be those of the one that is kept, or to come.
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

		if err != nil { // the other projects have theirs removed all the same
			errs = append(errs, fmt.Errorf("project %s: %w", id, err))
		}
	}

	if len(foreign) > 0 {
		q.Log.Warn("bytes of projects that the database has never had are left where they are",
			"projects", len(foreign), "first", foreign[0])
	}

	return errors.Join(errs...)
}

// maintain looks after a project that is paused or deleted. One that waits for migrations is left for when it is resumed.
func (q *Queue) maintain(ctx context.Context, id uuid.UUID, f func(*tenant.Project) error) error {
	err := q.Lifecycle.Registry.Maintain(ctx, id, f)
	if fault.Is(err, fault.Conflict) {
		return nil
	}

	return err
}

// removeFolder removes the blobs of a folder that are older than age.
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
