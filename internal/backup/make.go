package backup

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"github.com/socle-dev/socle/internal/backup/archive"
	"github.com/socle-dev/socle/internal/blob"
	"github.com/socle-dev/socle/internal/event"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/tick"
)

// backupArgs identify the backup to make.
type backupArgs struct {
	Backup  uuid.UUID `json:"backup"`
	Project uuid.UUID `json:"project"`
}

// Kind returns the job kind.
func (backupArgs) Kind() string { return "backup" }

// runBackup makes a backup. Afterwards it applies the retention rules, removes deleted files' bytes
// that were kept for the backup, and enqueues a proof.
func (s *Service) runBackup(ctx context.Context, a backupArgs) error {
	if err := s.Make(ctx, a.Backup); err != nil {
		return err
	}

	next, err := s.followUp(ctx, a.Backup)
	if err != nil {
		return fault.Ignore(err, fault.NotFound)
	}

	s.files.Discard(ctx, next.ProjectUUID)

	if next.Prove {
		_, err = s.Queue.Insert(ctx, proveArgs{Backup: a.Backup, Project: next.ProjectUUID})
	}

	return errors.Join(err, s.applyRetention(ctx, next.ProjectUUID))
}

// Make runs a pending backup until it is completed or failed with a reason. It does nothing if the
// backup is not pending. The error is for the log.
func (s *Service) Make(ctx context.Context, id uuid.UUID) error {
	_, err := runTask(ctx, s, task[Backup]{rows: s.backupTasks(), run: s.make, reason: backupFailure,
		clear:   func(ctx context.Context, b Backup) error { return s.Discard(ctx, b.ProjectUUID, b.UUID) },
		pend:    s.pendBackup,
		abandon: s.AbandonBackup}, id)
	return err
}

// AbandonBackup fails an unfinished backup and removes its blobs. It also removes an already failed
// backup's blobs, since its worker may have continued for a moment. Blobs that cannot be removed
// because the storage is unavailable are left to the orphan sweep. It does not touch a completed
// backup.
func (s *Service) AbandonBackup(ctx context.Context, b Backup, reason string) error {
	err := s.inTx(ctx, func(tx *store) error {
		if err := s.fail(ctx, tx, b, reason); err != nil {
			return err
		}

		current, err := tx.Get(ctx, b.ProjectUUID, b.UUID)
		if err := fault.Ignore(err, fault.NotFound); err != nil || current.Status == Completed {
			return err
		}

		return s.Discard(ctx, b.ProjectUUID, b.UUID) // before the status is visible: a failed backup has no blobs
	})
	if err == nil {
		return nil
	}

	failCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), finishTimeout)
	defer cancel()

	return errors.Join(err, s.unaudited(failCtx, func(tx *store) error { return s.fail(failCtx, tx, b, reason) }))
}

// fail sets an unfinished backup to failed, and enqueues that fact. One that failed with its server
// is made up for.
func (s *Service) fail(ctx context.Context, tx *store, b Backup, reason string) error {
	failed, err := tx.backupTasks().fail(ctx, b.UUID, reason)
	if err != nil || !failed {
		return err
	}
	if err := tx.makeUp(ctx, b, reason); err != nil {
		return err
	}

	fact := factOf(event.BackupFailed, b)
	fact.Error = reason

	return s.recordFact(ctx, tx, fact)
}

const (
	// maxDumpAttempts limits the immediate attempts if pg_dump collides with other transactions,
	// most of which are short. If a file's bytes are missing, there is one more attempt: the file
	// may have been deleted.
	maxDumpAttempts = 5

	firstRetryDelay = 100 * time.Millisecond // doubles with each attempt
)

// make makes a backup and reads it back. It returns a *RetryError if other transactions prevented
// it.
func (s *Service) make(ctx context.Context, b Backup) error {
	var object blob.Object
	var warnings []string
	var err error
	for try := range maxDumpAttempts {
		lockTimeout := dumpLockTimeout
		if try == maxDumpAttempts-1 {
			lockTimeout = lastDumpLockTimeout
		}

		object, warnings, err = s.attempt(ctx, b, lockTimeout)
		collision, ok := errors.AsType[*collisionError](err)
		if again := (ok && collision.inDump) || (errors.Is(err, errFileDeleted) && try == 0); !again {
			break
		}

		if e := s.blobs.Delete(ctx, DumpKey(b.ProjectUUID, b.UUID)); e != nil { // the incomplete dump
			return errors.Join(err, e)
		}

		if tick.Pause(ctx, firstRetryDelay<<try) != nil {
			return err
		}
	}

	if collision, ok := errors.AsType[*collisionError](err); ok && ctx.Err() == nil {
		if e := s.blobs.Delete(ctx, DumpKey(b.ProjectUUID, b.UUID)); e != nil {
			return errors.Join(err, e)
		}
		return s.postpone(ctx, b, collision)
	}
	if err != nil {
		return err
	}

	recordCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), finishTimeout) // see postpone
	defer cancel()

	return s.unaudited(recordCtx, func(tx *store) error {
		if err := tx.complete(recordCtx, b.UUID, object.Size, object.SHA256, warnings); err != nil {
			return err
		}

		fact := factOf(event.BackupCompleted, b)
		fact.Size = &object.Size

		return s.recordFact(recordCtx, tx, fact)
	})
}

// attempt dumps one database snapshot, copies the files' bytes, and reads the dump back. It also
// returns warnings about objects that a restore will not bring back.
//
// A session stays in a transaction, without a snapshot or locks, until the bytes are copied. While
// it is open, object.Discard keeps deleted files' bytes. It blocks no other transaction.
func (s *Service) attempt(ctx context.Context, b Backup, lockTimeout time.Duration) (
	object blob.Object, warnings []string, err error,
) {
	var manifest archive.Manifest
	defer func() { manifest.Files.Close() }()

	err = s.session(ctx, b.ProjectUUID, func(conn *pgx.Conn) error {
		return pgx.BeginFunc(ctx, conn, func(present pgx.Tx) error {
			object, manifest, warnings, err = s.snapshot(ctx, b, present, lockTimeout)
			if err != nil {
				return err
			}

			return s.copyFiles(ctx, manifest)
		})
	})
	if err != nil {
		return object, nil, asCollision("the project's database", err)
	}

	if _, err := s.verifyDump(ctx, manifest); err != nil {
		return object, nil, err
	}

	return object, warnings, s.putManifest(ctx, manifest)
}

// snapshot dumps a database snapshot and describes it, while table locks prevent tables from being
// replaced. pg_dump, which keeps one processor busy, runs in parallel with counting the rows.
// present reads the current state, outside the snapshot.
func (s *Service) snapshot(ctx context.Context, b Backup, present pgx.Tx, lockTimeout time.Duration) (
	object blob.Object, manifest archive.Manifest, warnings []string, err error,
) {
	err = s.session(ctx, b.ProjectUUID, func(conn *pgx.Conn) error {
		tx, err := beginLocked(ctx, conn)
		if err != nil {
			return err
		}
		defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }()

		id, err := pg.Value[string](ctx, tx, `select pg_export_snapshot()`)
		if err != nil {
			return err
		}

		lockless, err := locklessObjects(ctx, tx)
		if err != nil {
			return err
		}

		var dump archive.Digest
		both, working := errgroup.WithContext(ctx)
		both.Go(func() (err error) {
			object, dump, err = s.dump(working, b, id, lockTimeout)
			return asDumpCollision(err)
		})

		both.Go(func() (err error) {
			manifest, warnings, err = s.describe(working, tx, b)
			return asCollision("a table", err)
		})

		if err := both.Wait(); err != nil {
			return err
		}

		manifest.Dump = dump
		return checkLockless(ctx, present, lockless)
	})

	return object, manifest, warnings, err
}
