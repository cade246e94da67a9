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
	"slices"
	"strconv"
	"strings"
	"time"
)

// reaching lets a command reach a database by its address. Neither a command line nor an environment holds the password: it goes into a file,
// which done lets go of.
func reaching(cmd *exec.Cmd, address, password string) (done func(), err error) {
	name, done, err := hand(cmd, "*:*:*:*:"+password+"\n")
	if err != nil {
		return nil, err
	}
	cmd.Args = append(cmd.Args, "--no-password", "--dbname="+address)
	cmd.Env = append(cmd.Env, "PGPASSFILE="+name)
	return done, nil
}

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
	if _, err := f.WriteString(text); err != nil {
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

func (m *Maker) command(ctx context.Context, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, m.Binaries.Path(name), args...)
	// Settings of libpq (certificates, say) hold for its programs too; our own, which may be secrets, are not their concern.
	cmd.Env = append(slices.DeleteFunc(os.Environ(), func(s string) bool {
		name, _, _ := strings.Cut(s, "=")
		return strings.HasPrefix(name, "SOCLE_") || strings.HasPrefix(name, "LC_") || name == "LANG" || name == "LANGUAGE"
	}), "LC_ALL=C") // what they say is read
	cmd.WaitDelay = 5 * time.Second
	return cmd
}

// restoring is a command of pg_restore for some entries of a dump, until done.
func (m *Maker) restoring(ctx context.Context, entries []entry, args ...string) (cmd *exec.Cmd, done func(), err error) {
	cmd = m.command(ctx, "pg_restore", args...)
	list, done, err := hand(cmd, listOf(entries))
	if err != nil {
		return nil, nil, err
	}
	cmd.Args = append(cmd.Args, "--use-list="+list)
	return cmd, done, nil
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
