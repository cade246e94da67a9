package pgserver

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestParseVersion(t *testing.T) {
	t.Parallel()

	tests := map[string]int{
		"postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)\n": 150018,
		"postgres (PostgreSQL) 17.0":                             170000,
		"postgres (PostgreSQL) 18beta1":                          180000,
		"postgres (PostgreSQL) 9.6.24":                           90000,
		"postgres (EnterpriseDB) 15.1":                           0,
		"":                                                       0,
	}
	for text, want := range tests {
		got, err := parseVersion(text)
		if got != want || (err != nil) != (want == 0) {
			t.Errorf("parseVersion(%q) = %d, %v, want %d", text, got, err, want)
		}
	}
}

func TestFind(t *testing.T) {
	t.Parallel()

	c := config(t)
	found, err := Find(c.Binaries.Dir)
	if err != nil || found != c.Binaries {
		t.Errorf("Find(%q) = %v, %v, want %v", c.Binaries.Dir, found, err, c.Binaries)
	}

	if got, want := found.Path("pg_dump"), filepath.Join(c.Binaries.Dir, "pg_dump"); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestFindRefuses(t *testing.T) {
	t.Parallel()

	old := t.TempDir()
	for _, name := range programs {
		script := "#!/bin/sh\necho 'postgres (PostgreSQL) 14.12'\n"
		if err := os.WriteFile(filepath.Join(old, name), []byte(script), 0o700); err != nil {
			t.Fatal(err)
		}
	}

	tests := map[string]string{old: "PostgreSQL 14 is older than 15", t.TempDir(): "no such file"}
	for dir, want := range tests {
		if _, err := Find(dir); err == nil || !strings.Contains(err.Error(), want) ||
			!strings.Contains(err.Error(), dir) {
			t.Errorf("Find(%q): got %v, want an error with %q", dir, err, want)
		}
	}
}

// Not parallel: it changes the environment.
func TestFindErrorNamesPackages(t *testing.T) {
	before := binaryDirs
	t.Cleanup(func() { binaryDirs = before })
	binaryDirs = nil
	t.Setenv("PATH", t.TempDir())

	if _, err := Find(""); err == nil || !strings.Contains(err.Error(), "apt-get install postgresql") {
		t.Errorf("got %v", err)
	}
}
