package pgtool

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/socle-dev/socle/internal/pgserver"
)

// TestProgramIsConfined inspects the environment, arguments and open files of a program started
// from an environment with secrets and another language. It has its own connection and libpq's TLS
// settings, and nothing else.
func TestProgramIsConfined(t *testing.T) {
	for _, name := range []string{"LC_ALL", "LC_MESSAGES", "LANG"} {
		t.Setenv(name, "de_DE.UTF-8")
	}

	for _, name := range []string{"LANGUAGE", "SOCLE_SECRET_KEY", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN",
		"PGPASSWORD", "PGSERVICE", "PGOPTIONS", "LD_PRELOAD_", "ANYTHING"} {
		t.Setenv(name, "canary")
	}

	for fd := 3; fd < 1024; fd++ { // inherited by the test
		syscall.CloseOnExec(fd)
	}

	t.Setenv("HOME", "/home")
	t.Setenv("TMPDIR", t.TempDir())
	t.Setenv("PGSSLROOTCERT", "kept")
	dir := t.TempDir()

	script := "#!/bin/sh\ntr '\\0' '\\n' </proc/$$/environ; echo; for a; do echo \"argument $a\"; done\n" +
		"cat $PGPASSFILE; exec ls -l /proc/self/fd\n"
	if err := os.WriteFile(filepath.Join(dir, "pg_dump"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}

	m := &Tools{Binaries: pgserver.Binaries{Dir: dir}}
	cmd, done, err := m.Command(t.Context(), Connection{"postgresql:///?host=db.example.com", "password"}, "pg_dump",
		"--format=custom")
	if err != nil {
		t.Fatal(err)
	}
	defer done()

	cmd.Stdin = strings.NewReader("")

	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}

	var got []string
	for line := range strings.Lines(string(out)) {
		line = strings.TrimSuffix(line, "\n")
		if left, target, isFile := strings.Cut(line, " -> "); isFile {
			if strings.HasPrefix(target, "/proc/") { // the directory that ls reads
				continue
			}

			if !strings.HasPrefix(target, "pipe:") && target != "/dev/null" &&
				!strings.HasSuffix(target, " (deleted)") {
				t.Errorf("unexpected open file %s", target)
			}

			line = "file " + left[strings.LastIndexByte(left, ' ')+1:]
		}

		// of the shell and of ls
		if line != "" && !strings.HasPrefix(line, "PWD=") && !strings.HasPrefix(line, "total ") {
			got = append(got, line)
		}
	}

	slices.Sort(got)

	want := []string{"*:*:*:*:password", "HOME=/home", "LC_ALL=C", "PATH=/usr/local/bin:/usr/bin:/bin",
		"PGPASSFILE=/dev/fd/3", "PGSSLROOTCERT=kept", "TMPDIR=" + os.Getenv("TMPDIR"),
		"argument --dbname=postgresql:///?host=db.example.com", "argument --format=custom", "argument --no-password",
		"file 0", "file 1", "file 2", "file 3"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("environment of the program (-want +got):\n%s", diff)
	}
}

// TestProgramAccount tests the account of a program where Socle runs as root: one that reaches the
// database, with no more access than necessary.
func TestProgramAccount(t *testing.T) {
	nobody := lookup("nobody")
	if os.Geteuid() != 0 || nobody == nil {
		if got := accountFor(Connection{}); got != nil {
			t.Errorf("got %v", got)
		}
		return
	}

	open, err := os.MkdirTemp("", "socle-open-")
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() { os.RemoveAll(open) })

	folder := func(name string, mode os.FileMode, uid int) string {
		path := filepath.Join(open, name)
		if err := errors.Join(os.Mkdir(path, 0o700), os.Chmod(path, mode), os.Chown(path, uid, uid)); err != nil {
			t.Fatal(err)
		}

		return path
	}

	if err := os.Chmod(open, 0o711); err != nil {
		t.Fatal(err)
	}

	closed := folder("closed", 0o700, 0)
	inside := filepath.Join(closed, "inside")
	if err := os.Mkdir(inside, 0o777); err != nil {
		t.Fatal(err)
	}

	home := folder("home", 0o755, 0)
	t.Setenv("HOME", home)

	for host, want := range map[string]int{
		"":                              int(nobody.Uid), // no connection
		"db.example.com":                int(nobody.Uid),
		folder("everyone", 0o755, 0):    int(nobody.Uid),
		folder("cluster", 0o700, 12345): 12345,
		closed:                          0,
		"db.example.com,b.example.com":  int(nobody.Uid),
		filepath.Join(open, "everyone") + "," + filepath.Join(open, "cluster"): 12345,
		"db.example.com," + closed:      0,
		inside:                          0,
		"db.example.com&sslkey=/root/k": 0,
	} {
		to := Connection{}
		if host != "" {
			to.Address = "postgresql:///?host=" + host
		}

		got := 0
		if a := accountFor(to); a != nil {
			got = int(a.Uid)
		}

		if got != want {
			t.Errorf("%q: got account %d, want %d", host, got, want)
		}
	}

	if err := os.Mkdir(filepath.Join(home, ".postgresql"), 0o700); err != nil {
		t.Fatal(err)
	}

	if got := accountFor(Connection{Address: "postgresql:///?host=db.example.com"}); got != nil {
		t.Errorf("with certificates at home: got account %d", got.Uid)
	}
}

// TestAttachText passes a text to a program twice, in a named and in an unlinked file. Nothing of
// either remains.
func TestAttachText(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)

	for _, named := range []bool{false, true} {
		cmd := exec.CommandContext(t.Context(), "cat")
		var names []string
		for _, text := range []string{"a password\n", "a list\n"} {
			name, done, err := attachTextAs(cmd, text, named)
			if err != nil {
				t.Fatal(err)
			}
			defer done()

			names = append(names, name, name)

			if info, err := os.Stat(name); named && (err != nil || info.Mode() != 0o600) {
				t.Errorf("got file %v, %v", info, err)
			}
		}

		cmd.Args = append(cmd.Args, names...)

		if out, err := cmd.Output(); err != nil || string(out) != "a password\na password\na list\na list\n" {
			t.Errorf("named %v: got %q, %v", named, out, err)
		}
	}

	t.Cleanup(func() {
		if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
			t.Errorf("got files %v, %v, want none", left, err)
		}
	})
}
