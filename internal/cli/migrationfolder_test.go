package cli

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestReadMigrations: files are read as the tools name them, and only one of another form is left.
func TestReadMigrations(t *testing.T) {
	t.Parallel()

	dir := t.TempDir()
	write := func(name string) {
		t.Helper()

		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("select 1;\r\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}

	for _, name := range []string{"20240105_day.sql", "20240105120000_with space.v1.sql", "001_first.sql",
		"20240106120000_prisma/migration.sql", "20240107120000-0b3f11ee.sql", "20240108120000_.sql", "notes.sql",
		"seed.sql", "README.md", "migration_lock.toml", "meta/0001_snapshot.json", "drafts/migration.sql"} {
		write(name)
	}

	f, err := readMigrations(dir, "")
	if err != nil {
		t.Fatal(err)
	}

	var got []string
	for _, m := range f.files {
		got = append(got, m.Version+" "+m.Name)
		if m.SQL != "select 1;\n" {
			t.Errorf("%s: got %q", m.path, m.SQL)
		}
	}

	want := []string{"001 first", "20240105120000 with space.v1", "20240105 day", "20240106120000 prisma",
		"20240107120000 0b3f11ee", "20240108120000 "}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}

	skipped := []string{filepath.Join(dir, "drafts", "migration.sql"), filepath.Join(dir, "notes.sql")}
	if !slices.Equal(f.skipped, skipped) {
		t.Errorf("got %q skipped, want %q", f.skipped, skipped)
	}

	outside := filepath.Join(t.TempDir(), "id_rsa")
	if err := os.WriteFile(outside, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(dir, "20240109120000_link.sql")
	if err := os.Symlink(outside, link); err != nil {
		t.Fatal(err)
	}
	_, err = readMigrations(dir, dir)
	if err == nil || !strings.HasSuffix(err.Error(), "is no file in the repository") {
		t.Errorf("a link out of the repository: got %v", err)
	}
	if _, err := readMigrations(dir, ""); err != nil {
		t.Errorf("a link of a folder without repository: %v", err)
	}

	write("20240107120000_again.sql")
	if _, err := readMigrations(dir, ""); err == nil || !strings.Contains(err.Error(), "same version") {
		t.Errorf("two files of one version: got %v", err)
	}
}

// TestNextVersion: the next file sorts after the last one, whatever that has for a version.
func TestNextVersion(t *testing.T) {
	t.Parallel()

	for last, want := range map[string]string{"29991231235959": "30000101000000", "99999999999998": "99999999999999",
		"30": "31", "9": ""} {
		got, err := nextVersion([]migration{{Version: last, path: last + "_a.sql"}})
		if got != want || (err != nil) != (want == "") {
			t.Errorf("%s: got %q, %v, want %q", last, got, err, want)
		}
	}

	for _, last := range []string{"001", "20240105", "20240105120000"} {
		got, err := nextVersion([]migration{{Version: last}})
		if err != nil || len(got) != len(versionLayout) {
			t.Errorf("%s: got %q, %v, want the present time", last, got, err)
		}
	}
}
