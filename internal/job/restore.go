package job

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"
	"github.com/riverqueue/river"

	"socle/internal/backup"
	"socle/internal/pg"
	"socle/internal/platform"
)

const (
	restoreQueue = "restores"

	// undoTimeout is the timeout for undoing a failed request.
	undoTimeout = 30 * time.Second
)

// restoreArgs identify the restore to run.
type restoreArgs struct {
	Restore uuid.UUID `json:"restore"`
}

// Kind returns the kind of the job.
func (restoreArgs) Kind() string { return "restore" }

// InsertOpts allows one attempt: a retry is a new restore with its own status.
func (restoreArgs) InsertOpts() river.InsertOpts {
	return river.InsertOpts{Queue: restoreQueue, MaxAttempts: 1}
}

// RestoreBackup enqueues a restore of a backup that replaces the content of its project. It fails
// like [platform.Store.CreateRestore].
func (q *Queue) RestoreBackup(ctx context.Context, project, id, user uuid.UUID) (platform.Restore, error) {
	var r platform.Restore
	err := q.Store.InTx(ctx, func(tx *platform.Store) error {
		var err error
		r, err = q.createRestore(ctx, tx, user, platform.NewRestore{
			Backup:        id,
			BackupProject: project,
			Project:       project,
			Target:        platform.IntoPlace,
		})
		return err
	})

	return r, err
}

// RestoreBackupAs creates a project and enqueues a restore of another project's backup into it. It
// fails like [platform.Store.CreateRestore] and [tenant.Lifecycle.Create], and then leaves no new
// project.
func (q *Queue) RestoreBackupAs(
	ctx context.Context, project, id, user uuid.UUID, name string,
) (platform.Restore, error) {
	source, err := q.Store.GetProject(ctx, project)
	if err != nil {
		return platform.Restore{}, err
	}

	b, err := q.Store.GetBackup(ctx, project, id)
	if err != nil {
		return platform.Restore{}, err
	}

	if err := backup.CheckCompleted(b); err != nil {
		return platform.Restore{}, err
	}

	var r platform.Restore
	target := platform.NewProject{Organization: source.OrganizationUUID, Name: name, Description: source.Description}

	// Create the restore in the same transaction: if it never starts, the cleanup of stale restores
	// removes the project.
	target.With = func(tx *platform.Store, p platform.Project) error {
		var err error
		r, err = tx.CreateRestore(ctx, user, platform.NewRestore{
			Backup:        id,
			BackupProject: project,
			Project:       p.UUID,
			Target:        platform.IntoNew,
		})
		return err
	}
	if _, err = q.Lifecycle.Create(ctx, user, target); err == nil {
		_, err = q.client.Insert(ctx, restoreArgs{Restore: r.UUID}, nil)
		err = pg.Fault(err)
	}

	if err == nil || r.UUID == uuid.Nil {
		return r, err
	}

	undoCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoTimeout)
	defer cancel()

	_, undoErr := q.Store.FailRestore(undoCtx, r, "the project could not be created")
	return r, errors.Join(err, undoErr, q.Lifecycle.Finish(undoCtx))
}

func (q *Queue) createRestore(
	ctx context.Context, tx *platform.Store, user uuid.UUID, n platform.NewRestore,
) (platform.Restore, error) {
	r, err := tx.CreateRestore(ctx, user, n)
	if err != nil {
		return r, err
	}

	_, err = q.client.InsertTx(ctx, tx.Tx(), restoreArgs{Restore: r.UUID}, nil)
	return r, pg.Fault(err)
}
