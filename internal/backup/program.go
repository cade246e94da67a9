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

// hand lets a command that has not started read a text, and returns the name of the file that it finds it in, until done.
func hand(cmd *exec.Cmd, text string) (name string, done func(), err error) {
	return handAs(cmd, text, runtime.GOOS != "linux")
}

// handAs is hand by a file that has a name, or has none. On Linux it needs none: however the server ends, nothing is left behind. Elsewhere /dev/fd leads, if
// it has the file at all, to where we are in it, which is its end.
func handAs(cmd *exec.Cmd, text string, named bool) (name string, done func(), err error) {
	f, err := scratch(named)
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
	return "/dev/fd/" + strconv.Itoa(2+len(cmd.ExtraFiles)), done, nil // the first comes after standard error
}

// scratch returns an empty file, which only this user may open. Without a name it is gone when it is closed.
func scratch(named bool) (*os.File, error) {
	f, err := os.CreateTemp("", "socle-")
	if err != nil || named {
		return f, err
	}

	if err := os.Remove(f.Name()); err != nil {
		return nil, errors.Join(err, f.Close())
	}

	return f, nil
}

// command returns a program of PostgreSQL that is ready to run, until done. Neither its arguments nor its environment hold
// the password of a connection: that is in a file.
func (m *Maker) command(
	ctx context.Context, to connection, name string, args ...string,
) (cmd *exec.Cmd, done func(), err error) {
	cmd = exec.CommandContext(ctx, m.Binaries.Path(name), args...)
	cmd.Env = environment()
	cmd.WaitDelay = 5 * time.Second
	m.confine(ctx, cmd, to)

	if to == (connection{}) {
		return cmd, func() {}, nil
	}

	file, done, err := hand(cmd, "*:*:*:*:"+to.password+"\n")
	if err != nil {
		return nil, nil, err
	}

	cmd.Args = append(cmd.Args, "--no-password", "--dbname="+to.address)
	cmd.Env = append(cmd.Env, "PGPASSFILE="+file)

	return cmd, done, nil
}

// restoring is a command of pg_restore for some entries of a dump, until done.
func (m *Maker) restoring(
	ctx context.Context, to connection, entries []entry, args ...string,
) (cmd *exec.Cmd, done func(), err error) {
	cmd, connected, err := m.command(ctx, to, "pg_restore", args...)
	if err != nil {
		return nil, nil, err
	}

	list, listed, err := hand(cmd, listOf(entries))
	if err != nil {
		connected()
		return nil, nil, err
	}

	cmd.Args = append(cmd.Args, "--use-list="+list)
	return cmd, func() { connected(); listed() }, nil
}

// What the programs of PostgreSQL may be at fault for, beside failing.
var (
	errProgram    = errors.New("the program can't be run")
	errOlder      = errors.New("the program is older than the server")
	errComplained = errors.New("the program complained, and said that it succeeded")
)

// runQuietly is [run] for a command that has nothing to say on stderr but warnings, which are logged: whatever else it says there is an error, though it
// says that it succeeded.
func (m *Maker) runQuietly(cmd *exec.Cmd, read func(io.Reader) error) error {
	said, err := runSaying(cmd, read)
	if err != nil || said == "" {
		return err
	}

	for line := range strings.Lines(said) {
		if !harmless.MatchString(line) {
			return fmt.Errorf("%s: %w: %s", filepath.Base(cmd.Path), errComplained, said)
		}
	}

	m.Log.Warn(filepath.Base(cmd.Path), "said", said)
	return nil
}

// harmless is a line of a warning: of a program, or of the server that it is connected to.
var harmless = regexp.MustCompile(`^(pg_\w+: (warning|hint|detail): |(WARNING|NOTICE|DETAIL|HINT|CONTEXT): |\s|$)`)

// run runs a command while read reads what it prints. It is done when both are; what the command says on
// stderr becomes part of the error.
func run(cmd *exec.Cmd, read func(io.Reader) error) error {
	_, err := runSaying(cmd, read)
	return err
}

// runSaying is run, and returns what the command said on stderr.
func runSaying(cmd *exec.Cmd, read func(io.Reader) error) (said string, err error) {
	stderr := &tail{}
	cmd.Stderr = stderr

	out, err := cmd.StdoutPipe()
	if err != nil {
		return "", err
	}

	if err := cmd.Start(); err != nil {
		return "", fmt.Errorf("%w: %w", errProgram, err)
	}

	readErr := read(out)
	if readErr != nil {
		_ = cmd.Process.Kill() // its output has no reader any more
	}

	if err = errors.Join(readErr, cmd.Wait()); err != nil {
		if strings.Contains(stderr.String(), "server version mismatch") {
			err = errors.Join(errOlder, err)
		}
		err = fmt.Errorf("%s: %w: %s", filepath.Base(cmd.Path), err, stderr)
	}

	return stderr.String(), err
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
