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
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// attachText passes a text to a command before its start. It returns the name of a file with the
// text, which exists until done is called.
func attachText(cmd *exec.Cmd, text string) (name string, done func(), err error) {
	return attachTextAs(cmd, text, runtime.GOOS != "linux")
}

// attachTextAs implements hand with a named or an unlinked file. On Linux the file is unlinked, so
// that nothing remains however the server ends. Elsewhere /dev/fd, if it exists, shares our file
// offset, which is at the end.
func attachTextAs(cmd *exec.Cmd, text string, named bool) (name string, done func(), err error) {
	f, err := tempFile(named)
	if err != nil {
		return "", nil, err
	}

	done = func() {
		_ = f.Close()
		if named {
			_ = os.Remove(f.Name())
		}
	}

	_, err = f.WriteString(text)
	if err == nil && cmd.SysProcAttr != nil && cmd.SysProcAttr.Credential != nil {
		err = f.Chown(int(cmd.SysProcAttr.Credential.Uid), int(cmd.SysProcAttr.Credential.Gid))
	}
	if err != nil {
		done()
		return "", nil, err
	}

	if named {
		return f.Name(), done, nil
	}

	cmd.ExtraFiles = append(cmd.ExtraFiles, f)
	return "/dev/fd/" + strconv.Itoa(2+len(cmd.ExtraFiles)), done, nil // descriptor 3 is the first after standard error
}

// tempFile returns an empty temporary file with permissions for this user only. An unlinked one is
// gone when closed.
func tempFile(named bool) (*os.File, error) {
	f, err := os.CreateTemp("", "socle-")
	if err != nil || named {
		return f, err
	}

	if err := os.Remove(f.Name()); err != nil {
		return nil, errors.Join(err, f.Close())
	}

	return f, nil
}

// command returns a program of PostgreSQL ready to start; the caller calls done after its end. The
// password of the connection is in a file, in neither arguments nor environment.
func (s *Service) command(
	ctx context.Context, to connection, name string, args ...string,
) (cmd *exec.Cmd, done func(), err error) {
	cmd = exec.CommandContext(ctx, s.Binaries.Path(name), args...)
	cmd.Env = environment()
	cmd.WaitDelay = 5 * time.Second
	s.confine(ctx, cmd, to)

	if to == (connection{}) {
		return cmd, func() {}, nil
	}

	file, done, err := attachText(cmd, "*:*:*:*:"+to.password+"\n")
	if err != nil {
		return nil, nil, err
	}

	cmd.Args = append(cmd.Args, "--no-password", "--dbname="+to.address)
	cmd.Env = append(cmd.Env, "PGPASSFILE="+file)

	return cmd, done, nil
}

// restoreCommand returns a pg_restore command for some entries of a dump; the caller calls done
// after its end.
func (s *Service) restoreCommand(
	ctx context.Context, to connection, entries []entry, args ...string,
) (cmd *exec.Cmd, done func(), err error) {
	cmd, closeConnection, err := s.command(ctx, to, "pg_restore", args...)
	if err != nil {
		return nil, nil, err
	}

	list, closeList, err := attachText(cmd, useList(entries))
	if err != nil {
		closeConnection()
		return nil, nil, err
	}

	cmd.Args = append(cmd.Args, "--use-list="+list)
	return cmd, func() { closeConnection(); closeList() }, nil
}

// Errors of PostgreSQL's programs other than their failure.
var (
	errNotExecutable    = errors.New("cannot run the program")
	errOldProgram       = errors.New("the program is older than the server")
	errUnexpectedOutput = errors.New("the program succeeded with unexpected output")
)

// runStrict is [run] for a command that prints only warnings on stderr, which it logs. Other
// output on stderr is an error, even if the command succeeds.
func (s *Service) runStrict(cmd *exec.Cmd, read func(io.Reader) error) error {
	stderr, err := runCapture(cmd, read)
	if err != nil || stderr == "" {
		return err
	}

	for line := range strings.Lines(stderr) {
		if !warningLine.MatchString(line) {
			return fmt.Errorf("%s: %w: %s", filepath.Base(cmd.Path), errUnexpectedOutput, stderr)
		}
	}

	s.Log.Warn("warnings of a PostgreSQL program", "program", filepath.Base(cmd.Path), "stderr", stderr)
	return nil
}

// warningLine matches a line of a warning, of the program or of its server.
var warningLine = regexp.MustCompile(`^(pg_\w+: (warning|hint|detail): |(WARNING|NOTICE|DETAIL|HINT|CONTEXT): |\s|$)`)

// run runs a command while read consumes its output, and waits for both. The error includes the end
// of stderr.
func run(cmd *exec.Cmd, read func(io.Reader) error) error {
	_, err := runCapture(cmd, read)
	return err
}

// runCapture is run that also returns the end of stderr.
func runCapture(cmd *exec.Cmd, read func(io.Reader) error) (output string, err error) {
	stderr := &tail{}
	cmd.Stderr = stderr

	out, err := cmd.StdoutPipe()
	if err != nil {
		return "", err
	}

	if err := cmd.Start(); err != nil {
		return "", fmt.Errorf("%w: %w", errNotExecutable, err)
	}

	readErr := read(out)
	if readErr != nil {
		_ = cmd.Process.Kill() // nothing reads its output any more
	}

	if err = errors.Join(readErr, cmd.Wait()); err != nil {
		if strings.Contains(stderr.String(), "server version mismatch") {
			err = errors.Join(errOldProgram, err)
		}
		err = fmt.Errorf("%s: %w: %s", filepath.Base(cmd.Path), err, stderr)
	}

	return stderr.String(), err
}

// tail keeps the last tailSize bytes written.
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
