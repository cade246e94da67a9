package backup

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"

	"socle/internal/platform"
)

// undoTimeout is the timeout for undoing a failed request.
const undoTimeout = 30 * time.Second

// restoreArgs identify the restore to run.
type restoreArgs struct {
	Restore uuid.UUID `json:"restore"`
	Project uuid.UUID `json:"project"`
}

// Kind returns the kind of the job.
func (restoreArgs) Kind() string { return "restore" }

// RequestRestore enqueues a restore of a backup that replaces the content of its project. It fails
// like [platform.Store.CreateRestore].
func (m *Maker) RequestRestore(ctx context.Context, project, id, user uuid.UUID) (platform.Restore, error) {
	var r platform.Restore
	err := m.store.InTx(ctx, func(tx *platform.Store) error {
		var err error
		r, err = m.createRestore(ctx, tx, user, platform.NewRestore{
			Backup:        id,
			BackupProject: project,
			Project:       project,
			Target:        platform.IntoPlace,
		})
		return err
	})

	return r, err
}

// RequestRestoreAs creates a project and enqueues a restore of another project's backup into it. It
// fails like [platform.Store.CreateRestore] and [tenant.Lifecycle.Create], and then leaves no new
// project.
func (m *Maker) RequestRestoreAs(
	ctx context.Context, project, id, user uuid.UUID, name string,
) (platform.Restore, error) {
	source, err := m.store.GetProject(ctx, project)
	if err != nil {
		return platform.Restore{}, err
	}

	b, err := m.store.GetBackup(ctx, project, id)
	if err != nil {
		return platform.Restore{}, err
	}

	if err := CheckCompleted(b); err != nil {
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
	if _, err = m.Lifecycle.Create(ctx, user, target); err == nil {
		_, err = m.Queue.Insert(ctx, restoreArgs{r.UUID, r.ProjectUUID})
	}

	if err == nil || r.UUID == uuid.Nil {
		return r, err
	}

	undoCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoTimeout)
	defer cancel()

	_, undoErr := m.store.FailRestore(undoCtx, r, "the project could not be created")
	return r, errors.Join(err, undoErr, m.Lifecycle.Finish(undoCtx))
}

func (m *Maker) createRestore(
	ctx context.Context, tx *platform.Store, user uuid.UUID, n platform.NewRestore,
) (platform.Restore, error) {
	r, err := tx.CreateRestore(ctx, user, n)
	if err != nil {
		return r, err
	}

	_, err = m.Queue.InsertTx(ctx, tx.Tx(), restoreArgs{r.UUID, r.ProjectUUID})
	return r, err
}
