package pgdump_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/socle-dev/socle/internal/pgdump"
	"github.com/socle-dev/socle/internal/pgtest"
)

// TestClearedArchiveLoads dumps objects whose functions need a search path. psql and pg_restore
// load the cleared archive without an error.
func TestClearedArchiveLoads(t *testing.T) {
	t.Parallel()

	name := filepath.Join(t.TempDir(), "dump")
	dump(t, source(t, "searchpath.sql"), "--format=custom", "--file="+name)

	archive, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer archive.Close()

	if err := pgdump.Clear(archive, func(pgdump.Entry) bool { return false }); err != nil {
		t.Fatal(err)
	}

	runTool := func(program string, args ...string) {
		t.Helper()

		out, err := exec.CommandContext(t.Context(), filepath.Join(pgtest.BinDir(), program), args...).CombinedOutput()
		if err != nil {
			t.Errorf("%s: %v: %s", program, err, out)
		}
	}

	text := name + ".sql"
	runTool("pg_restore", "--file="+text, name)
	runTool("psql", "--quiet", "--no-psqlrc", "--set=ON_ERROR_STOP=1", "--output=/dev/null",
		"--file="+text, pgtest.URL(t))
	runTool("pg_restore", "--exit-on-error", "--dbname="+pgtest.URL(t), name)
}
