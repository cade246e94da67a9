package server_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/pgserver"
	"github.com/socle-dev/socle/internal/pgtest"
)

// pausedDump returns a folder of PostgreSQL programs. Its pg_dump records its parent process in the
// file "at", and waits for the file "go".
func pausedDump(t *testing.T) (dir string) {
	t.Helper()

	binaries, err := pgserver.Find(os.Getenv("SOCLE_POSTGRES_BIN"))
	if err != nil {
		t.Fatal(err)
	}

	dir = t.TempDir()
	for _, name := range []string{"postgres", "initdb", "pg_restore"} {
		if err := os.Symlink(binaries.Path(name), filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}

	script := fmt.Sprintf(
		"#!/bin/sh\necho $PPID >>%[1]s/at\nuntil [ -e %[1]s/go ]; do sleep 0.05; done\nexec %[2]s \"$@\"\n", dir,
		binaries.Path("pg_dump"),
	)
	if err := os.WriteFile(filepath.Join(dir, "pg_dump"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}

	return dir
}

// TestKilledWorker kills one of two servers on the same platform database during its backup. The
// other server must mark the backup as failed and run the next one, and two backups must never
// overlap.
func TestKilledWorker(t *testing.T) {
	t.Parallel()

	url, storage := pgtest.URL(t), t.TempDir()
	programs := pausedDump(t)
	settings := []string{"SOCLE_DATABASE_URL=" + url, "SOCLE_SECRET_KEY=kOrtX3Zs9mH1q8vYw2nB7cD5eF4gJ6lP0aSuRiTxVyE=",
		"SOCLE_STORAGE_URL=file://" + storage,
		"SOCLE_POSTGRES_BIN=" + programs}

	servers := []*process{launch(t, t.TempDir(), settings...), launch(t, t.TempDir(), settings...)}
	for _, p := range servers {
		p.ready()
	}

	c := servers[0].newClient()

	platform, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer platform.Close(context.Background())

	workers := func() []string {
		text, _ := os.ReadFile(filepath.Join(programs, "at"))
		return strings.Fields(string(text))
	}

	id := c.want(t, 201, "POST", "/backups", `{}`)["uuid"].(string)
	eventually(t, "a dump is being made", func() bool { return len(workers()) > 0 })

	for _, p := range servers {
		if status := c.at(p).send(t, "POST", "/backups", `{}`).status; status != 409 {
			t.Errorf("another backup of the project: got status %d, want 409", status)
		}
	}

	worker := slices.IndexFunc(servers, func(p *process) bool {
		return workers()[0] == strconv.Itoa(p.cmd.Process.Pid)
	})
	servers[worker].signal(syscall.SIGKILL)
	servers[worker].wait()
	other := servers[1-worker]

	if _, err := platform.Exec(t.Context(),
		`update platform.backups set heartbeat_at = now() - interval '1 minute' where status = 'running'`); err != nil {
		t.Fatal(err)
	}

	c = c.at(other)
	eventually(t, "the other server notices", func() bool {
		return c.send(t, "GET", "/backups/"+id, "").content["error"] == "the server running it stopped"
	})

	if got := workers(); len(got) != 1 {
		t.Errorf("backup run by workers %v, want one", got)
	}

	if err := os.WriteFile(filepath.Join(programs, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}

	next := c.want(t, 201, "POST", "/backups", `{}`)["uuid"].(string)
	eventually(t, "the next backup is complete", func() bool {
		return c.send(t, "GET", "/backups/"+next, "").content["status"] == "completed"
	})

	if kept, _ := filepath.Glob(filepath.Join(storage, "projects", c.project, "backups", id+".*")); len(kept) > 0 {
		t.Errorf("of the backup that failed is kept %v", kept)
	}

	c.send(t, "DELETE", "/projects/"+c.project+"?purge=true", "")
}
