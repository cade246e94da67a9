package pgtest

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/socle-dev/socle/internal/pgserver"
)

// Replicated starts a PostgreSQL for a test alone, and a streaming standby of it. Both stop when
// the test ends.
func Replicated(t testing.TB) (primary, standby *pgserver.Server) {
	t.Helper()

	source, dir := t.TempDir(), t.TempDir()
	// The standby reaches the primary's socket as PostgreSQL's OS user.
	if err := os.Chmod(filepath.Dir(source), 0o711); err != nil {
		t.Fatal(err)
	}

	primary = startServer(t, source)
	out, err := exec.CommandContext(t.Context(), filepath.Join(BinDir(), "pg_basebackup"), "--no-sync",
		"--checkpoint=fast", "--wal-method=stream", "--write-recovery-conf", "--pgdata="+filepath.Join(dir, "data"),
		"--dbname="+primary.URL("postgres")).CombinedOutput()
	if err != nil {
		t.Fatalf("pg_basebackup: %v: %s", err, out)
	}

	return primary, startServer(t, dir)
}

// startServer starts a PostgreSQL in a directory, and stops it when the test ends.
func startServer(t testing.TB, dir string) *pgserver.Server {
	t.Helper()

	binaries, err := pgserver.Find(BinDir())
	if err != nil {
		t.Fatal(err)
	}

	ctx, cancel := context.WithTimeout(t.Context(), stepTimeout)
	defer cancel()

	s, err := pgserver.Start(ctx, pgserver.Config{Dir: dir, Binaries: binaries, Password: password,
		Settings: map[string]string{"fsync": "off", "shared_buffers": "32MB", "max_wal_size": "256MB"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})

	return s
}
