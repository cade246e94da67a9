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
	"slices"
	"strconv"
	"strings"
	"time"
)

// reaching lets a command reach a database by its address. Neither a command line nor an environment holds the password: it goes into a file,
// which done lets go of.
func reaching(cmd *exec.Cmd, address, password string) (done func(), err error) {
	secrets, err := unnamed("*:*:*:*:" + password + "\n")
	if err != nil {
		return nil, err
	}
	cmd.Args = append(cmd.Args, "--no-password", "--dbname="+address)
	cmd.Env = append(cmd.Env, "PGPASSFILE="+hand(cmd, secrets))
	return func() { _ = secrets.Close() }, nil
}

// unnamed returns a file with this text that no folder holds: however the server ends, nothing of it is left behind.
func unnamed(text string) (*os.File, error) {
	f, err := os.CreateTemp("", "socle-")
	if err != nil {
		return nil, err
	}
	if err = os.Remove(f.Name()); err == nil {
		_, err = f.WriteString(text)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// hand lets a command that has not started read a file, and returns the name that it has there.
func hand(cmd *exec.Cmd, f *os.File) string {
	cmd.ExtraFiles = append(cmd.ExtraFiles, f)
	return "/dev/fd/" + strconv.Itoa(2+len(cmd.ExtraFiles)) // the first comes after standard error
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
