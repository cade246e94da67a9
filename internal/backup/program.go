package backup

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// reaching lets a command reach a database by its address; the password goes into a file, which done removes.
func reaching(cmd *exec.Cmd, address, password string) (done func(), err error) {
	secrets, err := passwordFile(password)
	if err != nil {
		return nil, err
	}
	cmd.Args = append(cmd.Args, "--no-password", "--dbname="+address)
	cmd.Env = append(cmd.Env, "PGPASSFILE="+secrets)
	return func() { _ = os.RemoveAll(filepath.Dir(secrets)) }, nil
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

// passwordFile writes a password where the programs read it, in a folder of its own, which the caller
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
