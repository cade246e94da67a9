// Package backup makes backups of projects, and restores them. A backup is a dump of the project's database, the bytes of its
// files, and a manifest that says what both have to be. It knows pg_dump and pg_restore and where all of it is kept; which
// backups there are is known to the platform database, and when one is made is decided by the jobs.
package backup

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"log/slog"
	"math"
	"os/exec"
	"slices"
	"strings"
	"sync"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"socle/internal/blob"
	"socle/internal/fault"
	"socle/internal/pg"
	"socle/internal/pgserver"
	"socle/internal/platform"
	"socle/internal/tenant"
)

// Maker makes backups, and restores them.
type Maker struct {
	Store     *platform.Store
	Projects  *tenant.Registry
	Lifecycle tenant.Lifecycle
	Blobs     *blob.Store
	Binaries  pgserver.Binaries
	Log       *slog.Logger

	passphrases sync.Mutex // one at a time: each takes memory, so that guessing is dear
}

func (m *Maker) key() key { return m.Projects.BackupKey() }

// Key returns where the dump of a backup is kept.
func Key(project, backup uuid.UUID) string {
	return "projects/" + project.String() + "/backups/" + backup.String() + ".dump"
}

// Make makes a pending backup, to its end: completed, or failed with a reason. It does nothing to
// one that is not pending. The error is for the log.
func (m *Maker) Make(ctx context.Context, id uuid.UUID) error {
	_, err := carryOut(ctx, m, task[platform.Backup]{m.Store.Backups(), m.make, reason, m.GiveUpBackup}, id)
	return err
}

// GiveUpBackup ends a backup that has not come to its end. What is kept of one that failed before is removed too: whoever made it may have
// gone on for a moment; what can't be removed now, because the storage is away, is removed with the orphans. To a completed one it does nothing.
func (m *Maker) GiveUpBackup(ctx context.Context, b platform.Backup, reason string) error {
	err := m.Store.InTx(ctx, func(tx *platform.Store) error {
		if _, err := tx.Backups().Fail(ctx, b.UUID, reason); err != nil {
			return err
		}
		now, err := tx.GetBackup(ctx, b.ProjectUUID, b.UUID)
		if err := fault.Except(err, fault.NotFound); err != nil || now.Status == "completed" {
			return err
		}
		return m.Discard(ctx, b.ProjectUUID, b.UUID) // before it shows that it failed: then nothing is left of it
	})
	if err == nil {
		return nil
	}
	after, cancel := context.WithTimeout(context.WithoutCancel(ctx), closing)
	defer cancel()
	_, failed := m.Store.Backups().Fail(after, b.UUID, reason)
	return errors.Join(err, failed)
}

// reason says in words for the user why a backup failed.
func reason(ctx context.Context, err error) string {
	if ctx.Err() != nil {
		return "the server was stopped"
	}
	if e := fault.Of(err); e.Kind != fault.Internal {
		return e.Detail
	}
	if errors.Is(err, errDamaged) || errors.Is(err, errContents) {
		return "the dump is not whole"
	}
	if why := ofProgram(err); why != "" {
		return "the dump could not be made: " + why
	}
	if _, ok := errors.AsType[*exec.ExitError](err); ok {
		return "the dump did not succeed; the server's log says why"
	}
	return "the dump could not be made; the server's log says why"
}

// ofProgram says in words for the user what is wrong with pg_dump or pg_restore, if that is it.
func ofProgram(err error) string {
	switch {
	case errors.Is(err, errProgram):
		return "the programs of PostgreSQL can't be run where Socle runs"
	case errors.Is(err, errOlder):
		return "the programs of PostgreSQL where Socle runs are older than the server"
	case errors.Is(err, errComplained):
		return "a program of PostgreSQL complained; the server's log says what of"
	}
	return ""
}

// compression takes half the time of pg_dump's own default, for a dump that is some percent larger: that time is what a backup mostly takes.
const compression = "--compress=3"

// dumpedIn is the time zone of the times in a dump: whatever the server's is, and the environment's, those of a restored database can be compared with them.
const dumpedIn = "UTC"

// tries is how often a backup is begun, each time with what the database holds then, if a file or a table was deleted while it was made, or
// the database was replaced.
const tries = 3

// make makes a backup and looks at it again.
func (m *Maker) make(ctx context.Context, b platform.Backup) error {
	var object blob.Object
	var warnings []string
	var err error
	table := ""
	for range tries {
		if object, warnings, err = m.once(ctx, b, &table); !errors.Is(err, errDeleted) && !vanished(err) && !putOut(err) {
			break
		}
		if e := m.Blobs.Delete(ctx, Key(b.ProjectUUID, b.UUID)); e != nil { // what there is of the dump
			return errors.Join(err, e)
		}
	}
	if locked(err) {
		if e := m.Blobs.Delete(ctx, Key(b.ProjectUUID, b.UUID)); e != nil {
			return errors.Join(err, e)
		}
		return m.postpone(ctx, b, table, err)
	}
	if err != nil {
		return err
	}
	return m.Store.CompleteBackup(ctx, b.UUID, object.Size, object.SHA256, warnings)
}

// once makes a backup of what one snapshot of the database shows: the bytes of the files first, since they may go, then the dump. Whoever
// keeps the snapshot has looked at no table, and so is in nobody's way. It returns what a restore will not bring back, too. The rows are counted while pg_dump, which keeps one processor busy, is at its work;
// both keep the tables as they are from their beginning to their end. Which table was waited for last is put into waited.
func (m *Maker) once(ctx context.Context, b platform.Backup, waited *string) (object blob.Object, warnings []string, err error) {
	var manifest Manifest
	defer func() { manifest.Files.Close() }()
	err = m.reading(ctx, b.ProjectUUID, func(keeper pgx.Tx) error {
		snapshot, err := pg.Value[string](ctx, keeper, `select pg_export_snapshot()`)
		if err != nil {
			return err
		}
		seeing := func(ctx context.Context, f func(pgx.Tx) error) error {
			return m.reading(ctx, b.ProjectUUID, func(tx pgx.Tx) error {
				if _, err := tx.Exec(ctx, "set transaction snapshot "+pg.Literal(snapshot)); err != nil {
					return err
				}
				return f(tx)
			})
		}
		if err := seeing(ctx, func(tx pgx.Tx) error {
			if manifest, err = m.look(ctx, tx, b.ProjectUUID, b.UUID); err == nil {
				warnings, err = tenant.Unrestored(ctx, tx)
			}
			return err
		}); err != nil {
			return err
		}
		if err := m.keepFiles(ctx, manifest); err != nil {
			return err
		}
		watching, seen := context.WithCancel(ctx)
		watched := make(chan string, 1)
		go func() { watched <- m.watch(watching, b) }()
		defer func() {
			seen()
			*waited = <-watched
		}()
		both, working := errgroup.WithContext(ctx)
		both.Go(func() error {
			return seeing(working, func(tx pgx.Tx) (err error) {
				manifest.Tables, err = count(working, tx)
				return err
			})
		})
		both.Go(func() (err error) {
			object, manifest.Dump, err = m.dump(working, b, snapshot)
			return err
		})
		return both.Wait()
	})
	if err != nil {
		return object, nil, err
	}
	if _, err := m.readable(ctx, manifest); err != nil {
		return object, nil, err
	}
	return object, warnings, m.keepManifest(ctx, manifest)
}

// reading runs f in a transaction that reads, on a connection of the login that makes dumps.
func (m *Maker) reading(ctx context.Context, project uuid.UUID, f func(pgx.Tx) error) error {
	conn, err := m.Projects.ConnectDump(ctx, project)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	return pgx.BeginTxFunc(ctx, conn, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, f)
}

// dump streams a dump of the project's database into storage. It returns what is stored, and what that is when it is decrypted.
func (m *Maker) dump(ctx context.Context, b platform.Backup, snapshot string) (object blob.Object, plain Bytes, err error) {
	cmd := m.command(ctx, "pg_dump", "--format=custom", compression, "--encoding=UTF8", "--lock-wait-timeout="+lockWait, "--snapshot="+snapshot)
	cmd.Env = append(cmd.Env, "PGTZ="+dumpedIn)
	address, password := m.Projects.DumpURL(b.ProjectUUID)
	done, err := reaching(cmd, address, password)
	if err != nil {
		return object, plain, err
	}
	defer done()
	sum := newSummed()
	err = m.runQuietly(cmd, func(out io.Reader) error {
		sealed := m.key().encrypted(io.TeeReader(out, sum))
		defer sealed.Close()
		object, err = m.Blobs.Put(ctx, Key(b.ProjectUUID, b.UUID), sealed, math.MaxInt64)
		return err
	})
	return object, sum.bytes(), err
}

// vanished reports whether a table was gone when it was to be read, or was something else by then, though the snapshot had shown it. Of pg_dump nothing is known but what
// PostgreSQL has told it, in English.
func vanished(err error) bool {
	if _, exited := errors.AsType[*exec.ExitError](err); exited {
		return slices.ContainsFunc([]string{"does not exist", "could not open relation with OID", "access to non-system", "is not a table"}, func(said string) bool {
			return strings.Contains(err.Error(), said)
		})
	}
	switch pg.State(err) {
	case "42P01", "42809", "55000": // undefined_table, wrong_object_type, object_not_in_prerequisite_state
		return true
	}
	return false
}

// putOut reports whether a backup's sessions were ended by the server: another database may have taken the place of the project's.
func putOut(err error) bool {
	return pg.State(err) == "57P01" || err != nil && strings.Contains(err.Error(), "terminating connection due to administrator command")
}

// readable reads a dump to its end, and fails unless it is what the manifest says and pg_restore can read its table of contents,
// which it returns.
func (m *Maker) readable(ctx context.Context, manifest Manifest) ([]entry, error) {
	name := Key(manifest.Project, manifest.Backup)
	var entries []entry
	sum := newSummed()
	err := m.open(ctx, name, func(r io.Reader) error {
		r = io.TeeReader(r, sum)
		var err error
		if entries, err = contents(r); err != nil && !errors.Is(err, errContents) {
			return err
		}
		_, rest := io.Copy(io.Discard, r)
		return errors.Join(err, rest)
	})
	if err == nil && sum.bytes() != manifest.Dump {
		err = fmt.Errorf("%w: the dump has %v, its manifest says %v", errDamaged, sum.bytes(), manifest.Dump)
	}
	if err != nil {
		return nil, err
	}
	return entries, m.open(ctx, name, func(r io.Reader) error {
		cmd := m.command(ctx, "pg_restore", "--list")
		cmd.Stdin = r
		return m.runQuietly(cmd, func(out io.Reader) error {
			n, err := io.Copy(io.Discard, out)
			if err == nil && n == 0 {
				err = errors.New("the dump has no table of contents")
			}
			return err
		})
	})
}

// summed counts and sums what is written to it.
type summed struct {
	hash hash.Hash
	size int64
}

func newSummed() *summed { return &summed{hash: sha256.New()} }

func (s *summed) Write(b []byte) (int, error) {
	s.size += int64(len(b))
	return s.hash.Write(b)
}

func (s *summed) bytes() Bytes { return Bytes{s.size, hex.EncodeToString(s.hash.Sum(nil))} }
