package pgserver

import (
	"bytes"
	"errors"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestLongAndOddPath(t *testing.T) {
	t.Parallel()

	c := config(t)
	c.Dir = filepath.Join(c.Dir, strings.Repeat("long", 30), "and odd+%41'\"é")
	s := start(t, c)

	u, err := url.Parse(s.URL("postgres"))
	if err != nil {
		t.Fatal(err)
	}

	host := u.Query().Get("host")
	if strings.HasPrefix(host, c.Dir) {
		t.Fatalf("the socket is reached by %s", host)
	}

	info, err := os.Lstat(host)
	if err != nil {
		t.Fatal(err)
	}

	if got, want := info.Mode(), os.ModeDir|0o700; got != want {
		t.Errorf("mode of %s: got %v, want %v", host, got, want)
	}
	if again := start(t, c); again.pid() != s.pid() {
		t.Error("the PostgreSQL of a long path is not found again")
	}

	runServer(t, s)
	if err := os.RemoveAll(host); err != nil {
		t.Fatal(err)
	}

	eventually(t, "the link is back", func() bool {
		_, err := os.Stat(filepath.Join(host, socketName))
		return err == nil
	})

	execute(t, s, "select")

	stop(t, s)

	if _, err := os.Lstat(host); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s was left: %v", host, err)
	}
}

func TestURLForClientPrograms(t *testing.T) {
	t.Parallel()

	c := config(t)
	c.Dir = filepath.Join(filepath.Dir(c.Dir), "odd +%41")
	s := start(t, c)
	execute(t, s, `create database "it's +%41/é"`)

	out, err := exec.Command(c.Binaries.Path("pg_dump"), s.URL("it's +%41/é")).CombinedOutput()
	if err != nil || !bytes.Contains(out, []byte("PostgreSQL database dump complete")) {
		t.Errorf("pg_dump: %v\n%s", err, out)
	}
}
