package job

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"
	"github.com/riverqueue/river"

	"socle/internal/fault"
	"socle/internal/pg"
	"socle/internal/platform"
)

const (
	restoreQueue = "restores"

	// undoTime is the timeout for undoing a failed request.
	undoTime = 30 * time.Second
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
func (q *Queue) RestoreBackup(ctx context.Context, project, backup, user uuid.UUID) (platform.Restore, error) {
	var r platform.Restore
	err := q.Store.InTx(ctx, func(tx *platform.Store) error {
		var err error
		r, err = q.createRestore(ctx, tx, user, platform.NewRestore{
			Backup:        backup,
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
	ctx context.Context, project, backup, user uuid.UUID, name string,
) (platform.Restore, error) {
	source, err := q.Store.GetProject(ctx, project)
	if err != nil {
		return platform.Restore{}, err
	}

	b, err := q.Store.GetBackup(ctx, project, backup)
	if err != nil {
		return platform.Restore{}, err
	}

	if b.Status != "completed" {
		return platform.Restore{}, fault.New(fault.Conflict, "the backup is not completed but %s", b.Status).
			WithCode("backup_not_completed")
	}

	var r platform.Restore
	made := platform.NewProject{Organization: source.OrganizationUUID, Name: name, Description: source.Description}

	// Create the restore in the same transaction: if it never starts, the cleanup of stale restores
	// removes the project.
	made.With = func(tx *platform.Store, p platform.Project) error {
		var err error
		r, err = tx.CreateRestore(ctx, user, platform.NewRestore{
			Backup:        backup,
			BackupProject: project,
			Project:       p.UUID,
			Target:        platform.IntoNew,
		})
		return err
	}
	if _, err = q.Lifecycle.Create(ctx, user, made); err == nil {
		_, err = q.client.Insert(ctx, restoreArgs{Restore: r.UUID}, nil)
		err = pg.Fault(err)
	}

	if err == nil || r.UUID == uuid.Nil {
		return r, err
	}

	after, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoTime)
	defer cancel()

	_, undone := q.Store.FailRestore(after, r, "the project could not be made")
	return r, errors.Join(err, undone, q.Lifecycle.Finish(after))
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
