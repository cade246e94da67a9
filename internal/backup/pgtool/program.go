// Package pgtool runs pg_dump and pg_restore with minimal access to the server. It knows nothing
// about backups.
package pgtool

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/socle-dev/socle/internal/pgserver"
)

// Tools are PostgreSQL's installed programs. They are safe for concurrent use.
type Tools struct {
	Binaries pgserver.Binaries
	Log      *slog.Logger

	mu     sync.Mutex
	canRun map[uint32]bool // by user ID: whether it can run the programs
}

// attachText passes a text to a command before its start. It returns the name of a file with the
// text, which exists until the call to cleanUp.
func attachText(cmd *exec.Cmd, text string) (name string, cleanUp func(), err error) {
	return attachTextAs(cmd, text, runtime.GOOS != "linux")
}

// attachTextAs implements attachText with a named or an unlinked file. On Linux the file is
// unlinked, so that nothing remains however the server ends. Elsewhere /dev/fd, if it exists,
// shares our file offset, which is at the end.
func attachTextAs(cmd *exec.Cmd, text string, keep bool) (name string, cleanUp func(), err error) {
	f, err := tempFile(keep)
	if err != nil {
		return "", nil, err
	}

	cleanUp = func() {
		_ = f.Close()
		if keep {
			_ = os.Remove(f.Name())
		}
	}

	_, err = f.WriteString(text)
	if err == nil && cmd.SysProcAttr != nil && cmd.SysProcAttr.Credential != nil {
		err = f.Chown(int(cmd.SysProcAttr.Credential.Uid), int(cmd.SysProcAttr.Credential.Gid))
	}
	if err != nil {
		cleanUp()
		return "", nil, err
	}

	if keep {
		return f.Name(), cleanUp, nil
	}

	cmd.ExtraFiles = append(cmd.ExtraFiles, f)

	// Descriptor 3 is the first after standard error.
	return "/dev/fd/" + strconv.Itoa(2+len(cmd.ExtraFiles)), cleanUp, nil
}

// tempFile returns an empty temporary file that only this user can access. Without keep it is
// unlinked, and gone when closed.
func tempFile(keep bool) (*os.File, error) {
	f, err := os.CreateTemp("", "socle-")
	if err != nil || keep {
		return f, err
	}

	if err := os.Remove(f.Name()); err != nil {
		return nil, errors.Join(err, f.Close())
	}

	return f, nil
}

// Command returns a PostgreSQL program ready to start. The caller calls cleanUp after it ends. The
// connection's password is in a file, in neither arguments nor environment.
func (t *Tools) Command(
	ctx context.Context, to Connection, name string, args ...string,
) (cmd *exec.Cmd, cleanUp func(), err error) {
	cmd = exec.CommandContext(ctx, t.Binaries.Path(name), args...)
	cmd.Env = environment()
	cmd.WaitDelay = 5 * time.Second
	t.confine(ctx, cmd, to)

	if to == (Connection{}) {
		return cmd, func() {}, nil
	}

	file, cleanUp, err := attachText(cmd, "*:*:*:*:"+to.Password+"\n")
	if err != nil {
		return nil, nil, err
	}

	cmd.Args = append(cmd.Args, "--no-password", "--dbname="+to.Address)
	cmd.Env = append(cmd.Env, "PGPASSFILE="+file)

	return cmd, cleanUp, nil
}

// RestoreCommand returns a pg_restore command for some dump entries, listed as by pg_restore
// --list. The caller calls cleanUp after it ends.
func (t *Tools) RestoreCommand(
	ctx context.Context, to Connection, list string, args ...string,
) (cmd *exec.Cmd, cleanUp func(), err error) {
	cmd, closeConnection, err := t.Command(ctx, to, "pg_restore", args...)
	if err != nil {
		return nil, nil, err
	}

	list, closeList, err := attachText(cmd, list)
	if err != nil {
		closeConnection()
		return nil, nil, err
	}

	cmd.Args = append(cmd.Args, "--use-list="+list)
	return cmd, func() { closeConnection(); closeList() }, nil
}

// Errors beside a program's failure.
var (
	ErrNotExecutable    = errors.New("cannot run the program")
	ErrOldProgram       = errors.New("the program is older than the server")
	ErrUnexpectedOutput = errors.New("the program succeeded with unexpected output")
)

// RunStrict is [Run] for a command that prints only warnings on stderr, which it logs. Other
// output on stderr is an error, even if the command succeeds.
func (t *Tools) RunStrict(cmd *exec.Cmd, read func(io.Reader) error) error {
	stderr, err := runCapture(cmd, read)
	if err != nil || stderr == "" {
		return err
	}

	for line := range strings.Lines(stderr) {
		if !warningLine.MatchString(line) {
			return fmt.Errorf("%s: %w: %s", filepath.Base(cmd.Path), ErrUnexpectedOutput, stderr)
		}
	}

	t.Log.Warn("warnings of a PostgreSQL program", "program", filepath.Base(cmd.Path), "stderr", stderr)
	return nil
}

// warningLine matches a line in a warning from the program or its server.
var warningLine = regexp.MustCompile(`^(pg_\w+: (warning|hint|detail): |(WARNING|NOTICE|DETAIL|HINT|CONTEXT): |\s|$)`)

// Run runs a command while read consumes its output, and waits for both. The error includes the
// last stderr bytes.
func Run(cmd *exec.Cmd, read func(io.Reader) error) error {
	_, err := runCapture(cmd, read)
	return err
}

// runCapture is [Run] that also returns the last stderr bytes.
func runCapture(cmd *exec.Cmd, read func(io.Reader) error) (output string, err error) {
	stderr := &tail{}
	cmd.Stderr = stderr

	out, err := cmd.StdoutPipe()
	if err != nil {
		return "", err
	}

	if err := cmd.Start(); err != nil {
		return "", fmt.Errorf("%w: %w", ErrNotExecutable, err)
	}

	readErr := read(out)
	if readErr != nil {
		_ = cmd.Process.Kill() // nothing reads its output any more
	}

	if err = errors.Join(readErr, cmd.Wait()); err != nil {
		if strings.Contains(stderr.String(), "server version mismatch") {
			err = errors.Join(ErrOldProgram, err)
		}
		err = fmt.Errorf("%s: %w: %s", filepath.Base(cmd.Path), err, stderr)
	}

	return stderr.String(), err
}

// tail keeps the last tailSize bytes written.
type tail struct{ last []byte }

const tailSize = 4 << 10 // bytes

func (t *tail) Write(b []byte) (int, error) {
	t.last = append(t.last, b...)
	if len(t.last) > tailSize {
		t.last = bytes.Clone(t.last[len(t.last)-tailSize:])
	}

	return len(b), nil
}

func (t *tail) String() string { return strings.TrimSpace(string(t.last)) }
