package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os/exec"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"github.com/socle-dev/socle/internal/backup/archive"
	"github.com/socle-dev/socle/internal/backup/pgtool"
	"github.com/socle-dev/socle/internal/blob"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/pgdump"
)

// backupArgs are the arguments of a job that makes a backup.
type backupArgs struct {
	Backup  uuid.UUID `json:"backup"`
	Project uuid.UUID `json:"project"`
}

// Kind returns the kind of the job.
func (backupArgs) Kind() string { return "backup" }

// runBackup makes a backup. Afterwards it applies the retention rules, removes bytes of deleted
// files that were kept for the backup, and enqueues a proof.
func (s *Service) runBackup(ctx context.Context, a backupArgs) error {
	if err := s.Make(ctx, a.Backup); err != nil {
		return err
	}

	after, err := s.followUp(ctx, a.Backup)
	if err != nil {
		return fault.Ignore(err, fault.NotFound)
	}

	s.Files.Discard(ctx, after.ProjectUUID)

	if after.Prove {
		_, err = s.Queue.Insert(ctx, proveArgs{Backup: a.Backup, Project: after.ProjectUUID})
	}

	return errors.Join(err, s.applyRetention(ctx, after.ProjectUUID))
}

// Make runs a pending backup until it is completed or failed with a reason. It does nothing if the
// backup is not pending. The error is for the log.
func (s *Service) Make(ctx context.Context, id uuid.UUID) error {
	_, err := runTask(ctx, s, task[Backup]{s.backupTasks(), s.make, backupFailure, s.AbandonBackup}, id)
	return err
}

// AbandonBackup fails an unfinished backup and removes its blobs. It also removes blobs of a backup
// that has already failed, since its worker may have continued for a moment. Blobs that cannot be
// removed because the storage is unavailable are left to the orphan sweep. It does not touch a
// completed backup.
func (s *Service) AbandonBackup(ctx context.Context, b Backup, reason string) error {
	err := s.inTx(ctx, func(tx *store) error {
		if _, err := tx.backupTasks().fail(ctx, b.UUID, reason); err != nil {
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

	_, failErr := s.backupTasks().fail(failCtx, b.UUID, reason)
	return errors.Join(err, failErr)
}

// backupFailure explains to the user why a backup failed.
func backupFailure(ctx context.Context, err error) string {
	if ctx.Err() != nil {
		return "the server was stopped"
	}
	if e := fault.Of(err); e.Kind != fault.Internal {
		return e.Detail
	}
	if errors.Is(err, archive.ErrDamaged) || errors.Is(err, pgdump.ErrTOC) {
		return "the dump is incomplete"
	}
	if why := programFailure(err); why != "" {
		return "the dump failed: " + why
	}
	if _, ok := errors.AsType[*exec.ExitError](err); ok {
		return "the dump failed; see the server's log"
	}

	return "the dump failed; see the server's log"
}

// programFailure describes a defect of the installed pg_dump or pg_restore to the user. It returns
// "" if the error has another cause.
func programFailure(err error) string {
	switch {
	case errors.Is(err, pgtool.ErrNotExecutable):
		return "PostgreSQL's programs cannot run on Socle's server"
	case errors.Is(err, pgtool.ErrOldProgram):
		return "PostgreSQL's programs on Socle's server are older than the database server"
	case errors.Is(err, pgtool.ErrUnexpectedOutput):
		return "a PostgreSQL program reported a problem; see the server's log"
	}

	return ""
}

// compressionFlag takes half the time of pg_dump's default for a dump that is some percent larger.
// Most of a backup's time is compression.
const compressionFlag = "--compress=3"

// dumpTimeZone is the time zone of times in a dump. It is fixed, so that rows of a restored
// database compare equal whatever the settings of server and environment.
const dumpTimeZone = "UTC"

const (
	// maxDumpAttempts is the maximum number of immediate attempts if pg_dump collides with other
	// transactions, most of which are short. If the bytes of a file are missing, there is one more
	// attempt: the file may have been deleted.
	maxDumpAttempts = 5

	firstRetryDelay = 100 * time.Millisecond // doubles with each attempt
)

// make makes a backup and reads it back. It returns a *Later if other transactions prevented it.
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
		collision, collided := errors.AsType[*collisionError](err)
		if again := (collided && collision.ofDump) || (errors.Is(err, errFileDeleted) && try == 0); !again {
			break
		}

		if e := s.blobs.Delete(ctx, DumpKey(b.ProjectUUID, b.UUID)); e != nil { // the incomplete dump
			return errors.Join(err, e)
		}

		select {
		case <-ctx.Done():
			return err
		case <-time.After(firstRetryDelay << try):
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

	return s.complete(recordCtx, b.UUID, object.Size, object.SHA256, warnings)
}

// attempt dumps one snapshot of the database, copies the bytes of the files in it, and reads the
// dump back. It also returns warnings about objects that a restore will not bring back.
//
// A session stays in a transaction, without a snapshot or locks, until the bytes are copied. While
// it is open, object.Discard keeps the bytes of deleted files. It blocks no other transaction.
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

// snapshot dumps a snapshot of the database and describes it, while table locks prevent that a
// table is replaced. pg_dump, which keeps one processor busy, runs in parallel with counting the
// rows. present reads the current state, outside the snapshot.
func (s *Service) snapshot(ctx context.Context, b Backup, present pgx.Tx, lockTimeout time.Duration) (
	object blob.Object, manifest archive.Manifest, warnings []string, err error,
) {
	err = s.session(ctx, b.ProjectUUID, func(conn *pgx.Conn) error {
		tx, err := beginLocked(ctx, conn)
		if err != nil {
			return err
		}
		defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }()

		exported, err := pg.Value[string](ctx, tx, `select pg_export_snapshot()`)
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
			object, dump, err = s.dump(working, b, exported, lockTimeout)
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

// dump streams a dump of the project's database into the storage. It returns the stored object, and
// the size and checksum of the unencrypted dump.
func (s *Service) dump(ctx context.Context, b Backup, snapshot string, lockTimeout time.Duration) (
	object blob.Object, plain archive.Digest, err error,
) {
	address, password := s.projects.DumpURL(b.ProjectUUID)
	to := pgtool.Connection{Address: address, Password: password}
	cmd, done, err := s.tools.Command(ctx, to, "pg_dump", "--format=custom", compressionFlag,
		"--encoding=UTF8",
		fmt.Sprintf("--lock-wait-timeout=%d", lockTimeout.Milliseconds()), "--snapshot="+snapshot)
	if err != nil {
		return object, plain, err
	}
	defer done()

	cmd.Env = append(cmd.Env, "PGTZ="+dumpTimeZone)

	sum := archive.NewHasher()
	err = s.tools.RunStrict(cmd, func(out io.Reader) error {
		sealed := s.encryptionKey().Encrypt(io.TeeReader(out, sum))
		defer sealed.Close()

		object, err = s.blobs.Put(ctx, DumpKey(b.ProjectUUID, b.UUID), sealed, math.MaxInt64)
		return err
	})

	return object, sum.Digest(), err
}

// verifyDump reads a dump to its end and verifies its size and checksum against the manifest. It
// returns the table of contents, and fails unless pg_restore can read that too.
func (s *Service) verifyDump(ctx context.Context, manifest archive.Manifest) ([]pgdump.Entry, error) {
	name := DumpKey(manifest.Project, manifest.Backup)
	var entries []pgdump.Entry
	sum := archive.NewHasher()

	err := s.readPart(ctx, name, func(r io.Reader) error {
		r = io.TeeReader(r, sum)
		var err error
		if entries, err = pgdump.ReadTOC(r); err != nil && !errors.Is(err, pgdump.ErrTOC) {
			return err
		}

		_, rest := io.Copy(io.Discard, r)
		return errors.Join(err, rest)
	})
	if err == nil && sum.Digest() != manifest.Dump {
		err = fmt.Errorf("%w: the dump has %v, invalid content in the manifest: %v", archive.ErrDamaged, sum.Digest(),
			manifest.Dump)
	}
	if err != nil {
		return nil, err
	}

	return entries, s.readPart(ctx, name, func(r io.Reader) error {
		cmd, done, err := s.tools.Command(ctx, pgtool.Connection{}, "pg_restore", "--list")
		if err != nil {
			return err
		}
		defer done()

		cmd.Stdin = r
		return s.tools.RunStrict(cmd, func(out io.Reader) error {
			n, err := io.Copy(io.Discard, out)
			if err == nil && n == 0 {
				err = errors.New("the dump has no table of contents")
			}

			return err
		})
	})
}
