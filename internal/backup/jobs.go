package backup

import (
	"context"
	"errors"

	"github.com/google/uuid"

	"socle/internal/audit"
	"socle/internal/blob"
	"socle/internal/fault"
	"socle/internal/platform"
	"socle/internal/queue"
)

// registerWorkers registers the workers of all jobs. A backup and a restore have one attempt: a
// retry is a new one with its own status. A proof is retried after restarts of the server or
// PostgreSQL for about a quarter of an hour.
func (m *Maker) registerWorkers() {
	register(m, queue.Options{
		Workers:     queue.Workers{Queue: "backups", PerServer: 3, PerOrganization: 2},
		MaxAttempts: 1,
	}, m.runBackup)
	register(m, queue.Options{
		Workers:     queue.Workers{Queue: "restores", PerServer: 2, PerOrganization: 1},
		MaxAttempts: 1,
	}, func(ctx context.Context, a restoreArgs) error { return m.Restore(ctx, a.Restore) })
	register(m, queue.Options{
		Workers:     queue.Workers{Queue: "proofs", PerServer: 2, PerOrganization: 1},
		MaxAttempts: 6,
		Unique:      true, // per backup
	}, m.runProof)
}

// register registers a worker whose errors are final. A job is retried only if the server stopped
// or if it returns a [RetryError].
func register[A queue.Args](m *Maker, o queue.Options, work func(context.Context, A) error) {
	queue.Register(m.Queue, o, func(ctx context.Context, job *queue.Job[A]) error {
		err := work(ctx, job.Args)
		if err == nil {
			return nil
		}

		kind := job.Args.Kind()
		retry, ok := errors.AsType[*RetryError](err)
		if ok && retry.After > 0 {
			m.Log.Info(kind+" postponed", "error", err)
			return queue.Snooze(retry.After)
		}

		if ok || ctx.Err() != nil { // the server is stopping, for example: the next one retries the job
			m.Log.Info(kind+" interrupted", "error", err)
			return err
		}

		m.Log.Error(kind, "error", err) // River stores the error with the job but does not log it
		return queue.Cancel(err)
	})
}

// backupArgs are the arguments of a job that makes a backup.
type backupArgs struct {
	Backup  uuid.UUID `json:"backup"`
	Project uuid.UUID `json:"project"`
}

// Kind returns the kind of the job.
func (backupArgs) Kind() string { return "backup" }

// runBackup makes a backup. Afterwards it applies the retention rules, removes bytes of deleted
// files that were kept for the backup, and enqueues a proof.
func (m *Maker) runBackup(ctx context.Context, a backupArgs) error {
	if err := m.Make(ctx, a.Backup); err != nil {
		return err
	}

	after, err := m.store.AfterBackup(ctx, a.Backup)
	if err != nil {
		return fault.Ignore(err, fault.NotFound)
	}

	m.Files.Discard(ctx, after.ProjectUUID)

	if after.Prove {
		_, err = m.Queue.Insert(ctx, proveArgs{Backup: a.Backup, Project: after.ProjectUUID})
	}

	return errors.Join(err, m.applyRetention(ctx, after.ProjectUUID))
}

// Create creates a backup and enqueues its job. It fails with Conflict if the project already
// has a backup in progress.
func (m *Maker) Create(ctx context.Context, project, user uuid.UUID) (platform.Backup, error) {
	var b platform.Backup
	err := m.store.InTx(ctx, func(tx *platform.Store) error {
		var err error
		if b, err = tx.CreateBackup(ctx, project, user); err != nil {
			return err
		}

		return m.enqueue(ctx, tx, b)
	})

	return b, err
}

// enqueue enqueues the job of a pending backup.
func (m *Maker) enqueue(ctx context.Context, tx *platform.Store, b platform.Backup) error {
	_, err := m.Queue.InsertTx(ctx, tx.Tx(), backupArgs{b.UUID, b.ProjectUUID})
	return err
}

// RemoveDeleted removes deleted backups and the databases replaced by restores whose retention has
// expired. It also opens the gate of projects whose undo of a restore was cut off.
func (m *Maker) RemoveDeleted(ctx context.Context) error {
	deleting, err := m.store.DeletingBackups(ctx)
	errs := []error{err}
	for _, b := range deleting {
		err := m.Discard(ctx, b.ProjectUUID, b.UUID)
		if err == nil {
			err = m.store.ForgetBackup(ctx, b.UUID)
		}

		errs = append(errs, err)
	}

	expired, err := m.store.ExpiredRestores(ctx)
	errs = append(errs, err)
	for _, r := range expired {
		errs = append(errs, m.DropReplaced(ctx, r))
	}

	return errors.Join(append(errs, m.OpenGates(ctx))...)
}

// ImportArchive stores an uploaded archive as a backup of a project and enqueues its proof. It
// fails like [platform.Store.StartImport] and [Maker.Import].
func (m *Maker) ImportArchive(ctx context.Context, project, user uuid.UUID, in Import) (platform.Backup, error) {
	b, err := m.store.StartImport(ctx, project, user)
	if err != nil {
		return b, err
	}

	err = m.Import(ctx, b, in, func(ctx context.Context, o blob.Object) error {
		return m.store.InTx(ctx, func(tx *platform.Store) error {
			if err := tx.CompleteBackup(ctx, b.UUID, o.Size, o.SHA256, nil); err != nil {
				return err
			}

			audit.CreatedUUID(ctx, b.UUID)
			if _, err := m.Queue.InsertTx(ctx, tx.Tx(), proveArgs{Backup: b.UUID, Project: project}); err != nil {
				return err
			}

			var err error
			b, err = tx.GetBackup(ctx, project, b.UUID)
			return err
		})
	})

	return b, err
}

// Export returns a backup as an archive, which the caller closes, and writes the audit
// entry. It fails like [Maker.OpenArchive].
func (m *Maker) Export(
	ctx context.Context, project, id uuid.UUID, c ExportEncryption,
) (*Archive, error) {
	a, err := m.OpenArchive(ctx, project, id, c)
	if err != nil {
		return nil, err
	}

	if err := m.store.InTx(ctx, func(*platform.Store) error { return nil }); err != nil {
		a.Close()
		return nil, err
	}

	return a, nil
}

// RequestProof enqueues a proof of a backup. It fails with NotFound if the backup does not exist
// and with Conflict if it is not completed.
func (m *Maker) RequestProof(ctx context.Context, project, id uuid.UUID) (platform.Backup, error) {
	var b platform.Backup
	err := m.store.InTx(ctx, func(tx *platform.Store) error {
		var err error
		if b, err = tx.GetBackup(ctx, project, id); err != nil {
			return err
		}

		if err := CheckCompleted(b); err != nil {
			return err
		}

		_, err = m.Queue.InsertTx(ctx, tx.Tx(), proveArgs{Backup: id, Project: project, Asked: true})
		return err
	})

	return b, err
}
