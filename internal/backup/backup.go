// Package backup makes backups of projects. It knows pg_dump and where a dump is kept; which backups there
// are is known to the platform database, and when one is made is decided by the jobs.
package backup

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"socle/internal/blob"
	"socle/internal/fault"
	"socle/internal/pgserver"
	"socle/internal/platform"
	"socle/internal/tenant"
)

// Silence is how long a worker may say nothing before its backup is given up.
const Silence = 20 * time.Second

// closing is how long noting the end of a backup may take after its worker was told to stop.
const closing = 10 * time.Second

// Maker makes backups.
type Maker struct {
	Store    *platform.Store
	Projects *tenant.Registry
	Blobs    *blob.Store
	Binaries pgserver.Binaries
	Log      *slog.Logger
}

// Key returns where the dump of a backup is kept.
func Key(project, backup uuid.UUID) string {
	return "projects/" + project.String() + "/backups/" + backup.String() + ".dump"
}

// Make makes a pending backup, to its end: completed, or failed with a reason. It does nothing to
// one that is not pending. The error is for the log.
func (m *Maker) Make(ctx context.Context, id uuid.UUID) error {
	b, err := m.Store.StartBackup(ctx, id)
	if fault.Is(err, fault.NotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	object, err := m.dump(ctx, b)
	if err == nil {
		err = m.Store.CompleteBackup(ctx, id, object.Size, object.SHA256)
	}
	if err == nil {
		return nil
	}
	after, cancel := context.WithTimeout(context.WithoutCancel(ctx), closing)
	defer cancel()
	// Failed means that nothing is left of it, so the status comes last.
	return errors.Join(fmt.Errorf("backup %s: %w", id, err),
		m.Blobs.Delete(after, Key(b.ProjectUUID, id)), m.Store.FailBackup(after, id, reason(ctx, err)))
}

// reason says in words for the user why a backup failed.
func reason(ctx context.Context, err error) string {
	if ctx.Err() != nil {
		return "the server was stopped"
	}
	if e := fault.Of(err); e.Kind != fault.Internal {
		return e.Detail
	}
	if _, ok := errors.AsType[*exec.ExitError](err); ok {
		return "the dump did not succeed; the server's log says why"
	}
	return "the dump could not be made; the server's log says why"
}

// dump streams a dump of the project's database into storage, and reads its table of contents back.
func (m *Maker) dump(ctx context.Context, b platform.Backup) (blob.Object, error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	go m.beat(ctx, stop, b.UUID)

	address, password := m.Projects.DumpURL(b.ProjectUUID)
	secrets, err := passwordFile(password)
	if err != nil {
		return blob.Object{}, err
	}
	defer os.RemoveAll(filepath.Dir(secrets))
	cmd := m.command(ctx, "pg_dump", "--format=custom", "--no-password", "--lock-wait-timeout=30s", "--dbname="+address)
	cmd.Env = append(cmd.Env, "PGPASSFILE="+secrets)
	key := Key(b.ProjectUUID, b.UUID)
	var object blob.Object
	if err := run(cmd, func(out io.Reader) error {
		object, err = m.Blobs.Put(ctx, key, out, math.MaxInt64)
		return err
	}); err != nil {
		return object, err
	}
	return object, m.readable(ctx, key)
}

// readable fails if pg_restore can't read the dump's table of contents.
func (m *Maker) readable(ctx context.Context, key string) error {
	stored, _, err := m.Blobs.Open(ctx, key)
	if err != nil {
		return err
	}
	defer stored.Close()
	cmd := m.command(ctx, "pg_restore", "--list")
	cmd.Stdin = stored
	return run(cmd, func(out io.Reader) error {
		n, err := io.Copy(io.Discard, out)
		if err == nil && n == 0 {
			err = errors.New("the dump has no table of contents")
		}
		return err
	})
}

func (m *Maker) command(ctx context.Context, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, m.Binaries.Path(name), args...)
	// Settings of libpq (certificates, say) hold for its programs too; our own, which may be secrets, are not their concern.
	cmd.Env = slices.DeleteFunc(os.Environ(), func(s string) bool { return strings.HasPrefix(s, "SOCLE_") })
	cmd.WaitDelay = 5 * time.Second
	return cmd
}

// run runs a command while read reads what it prints. It is done when both are; what the command says on
// stderr becomes part of the error.
func run(cmd *exec.Cmd, read func(io.Reader) error) error {
	stderr := &tail{}
	cmd.Stderr = stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	readErr := read(out)
	if readErr != nil {
		_ = cmd.Process.Kill() // its output has no reader any more
	}
	if err := errors.Join(readErr, cmd.Wait()); err != nil {
		return fmt.Errorf("%s: %w: %s", filepath.Base(cmd.Path), err, stderr)
	}
	return nil
}

// beat says that the backup is being made until ctx ends, and stops the making if the backup was given up.
func (m *Maker) beat(ctx context.Context, stop context.CancelFunc, id uuid.UUID) {
	tick := time.NewTicker(Silence / 5)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		switch err := m.Store.BeatBackup(ctx, id); {
		case fault.Is(err, fault.NotFound):
			stop()
			return
		case err != nil && ctx.Err() == nil:
			m.Log.Warn("backup heartbeat", "backup", id, "error", err)
		}
	}
}

// passwordFile writes a password where pg_dump reads it, in a folder of its own, which the caller
// removes. Neither a command line nor an environment holds it.
func passwordFile(password string) (string, error) {
	dir, err := os.MkdirTemp("", "socle-dump-")
	if err != nil {
		return "", err
	}
	name := filepath.Join(dir, "pgpass")
	if err := os.WriteFile(name, []byte("*:*:*:*:"+password+"\n"), 0o600); err != nil {
		return "", errors.Join(err, os.RemoveAll(dir))
	}
	return name, nil
}

// tail keeps the end of what is written to it.
type tail struct{ kept []byte }

const tailSize = 4 << 10 // bytes

func (t *tail) Write(b []byte) (int, error) {
	t.kept = append(t.kept, b...)
	if len(t.kept) > tailSize {
		t.kept = bytes.Clone(t.kept[len(t.kept)-tailSize:])
	}
	return len(b), nil
}

func (t *tail) String() string { return strings.TrimSpace(string(t.kept)) }
