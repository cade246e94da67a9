package integration_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/api/apitest"
	"github.com/socle-dev/socle/internal/backup"
	"github.com/socle-dev/socle/internal/backup/archive"
	"github.com/socle-dev/socle/internal/blob"
	"github.com/socle-dev/socle/internal/config"
	"github.com/socle-dev/socle/internal/event"
	"github.com/socle-dev/socle/internal/pgserver"
	"github.com/socle-dev/socle/internal/pgtest"
)

// waitForBackup waits until a backup has a status, and returns it.
func waitForBackup(t *testing.T, a *apitest.API, id string, statuses ...string) *apitest.Reply {
	t.Helper()

	return waitForStatus(t, a, "/backups/"+id, statuses)
}

// waitForStatus waits until a resource has a status, and returns it.
func waitForStatus(t *testing.T, a *apitest.API, path string, statuses []string) (r *apitest.Reply) {
	t.Helper()

	apitest.Until(t, fmt.Sprint(path, " is ", statuses), func() bool {
		r = a.Get(path).Want(200)
		return slices.Contains(statuses, r.Get("status").(string))
	})

	return r
}

func startBackup(t *testing.T, a *apitest.API) string {
	t.Helper()

	return a.Post("/backups", `{}`).Want(201).Content("status", "pending").Get("uuid").(string)
}

// dump returns the path of a decrypted copy of a backup's dump, or "" if there is none.
func dump(t *testing.T, a *apitest.API, id string) string {
	t.Helper()

	blobs, err := blob.OpenConfigured(a.Config)
	if err != nil {
		t.Fatal(err)
	}
	defer blobs.Close()

	stored, _, err := blobs.Open(t.Context(), backup.DumpKey(uuid.MustParse(a.Project), uuid.MustParse(id)))
	if err != nil {
		return ""
	}
	defer stored.Close()

	f, err := os.Create(filepath.Join(t.TempDir(), "dump"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()

	plain, err := archive.Key(a.Server.Projects().BackupKey()).Decrypt(stored)
	if err == nil {
		_, err = f.ReadFrom(plain)
	}

	if err != nil {
		t.Error(err)
	}

	return f.Name()
}

// awkwardObjects has objects of a user's database that break a careless dump, and more tables than
// a backup locks or counts at a time.
const awkwardObjects = `
	create table public."-rf" (id int);
	create table public."dbname=x" (id int);
	create table public."two
lines" ("a""b" int, "$(id)" text);
	insert into public."two
lines" select n, 'it''s ' || n from generate_series(1, 10) n;
	create table public.forced (id int);
	insert into public.forced values (1), (2);
	alter table public.forced enable row level security;
	alter table public.forced force row level security;
	create schema "odd;schema";
	create table "odd;schema".t as select 1 as n;
	do 'begin for n in 1..520 loop execute format(''create table public.t%s (id int)'', n); end loop; end'`

// TestBackup backs up a database full of traps and restores it into an empty one.
func TestBackup(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	owner := a.ConnectProject()
	if _, err := owner.PgConn().Exec(t.Context(), awkwardObjects).ReadAll(); err != nil {
		t.Fatal(err)
	}

	a.Create("/forms", `{"name": "contact"}`)
	a.DisableProofs()

	id := startBackup(t, a)
	r := waitForBackup(t, a, id, "completed", "failed").Content("status", "completed").Content("error", "")
	if r.Get("startedAt") == nil || r.Get("completedAt") == nil {
		t.Errorf("a completed backup has no times: %s", r.Body)
	}

	listed := a.Get("/backups").Want(200)
	if got, want := listed.Metadata("details."+id+".size"), r.Metadata("size"); want == nil || got != want {
		t.Errorf("listed with size %v, want %v", got, want)
	}

	binaries, err := pgserver.Find(os.Getenv("SOCLE_POSTGRES_BIN"))
	if err != nil {
		t.Fatal(err)
	}

	url := pgtest.URL(t)
	out, err := exec.CommandContext(t.Context(), binaries.Path("pg_restore"), "--no-owner", "--no-privileges",
		"--exit-on-error",
		"--dbname="+url, dump(t, a, id)).CombinedOutput()
	if err != nil {
		t.Fatalf("restore: %v: %s", err, out)
	}

	restored, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() { restored.Close(context.Background()) })

	for _, sql := range []string{
		`select count(*)::text from pg_class c join pg_namespace n on n.oid = relnamespace where nspname in ('public', 'odd;schema', 'storage', 'forms') and relkind = 'r'`,
		"select string_agg(\"$(id)\", ',' order by \"a\"\"b\") from public.\"two\nlines\"",
		`select count(*)::text from public.forced`,
		`select string_agg(uuid::text, ',') from forms.forms`,
	} {
		var want, got string
		if err := owner.QueryRow(t.Context(), sql).Scan(&want); err != nil {
			t.Fatal(err)
		}

		if err := restored.QueryRow(t.Context(), sql).Scan(&got); err != nil || got != want {
			t.Errorf("%s: got %q, %v, want %q", sql, got, err, want)
		}
	}
}

// programFolder returns a folder with PostgreSQL's programs, with a script in place of pg_dump.
func programFolder(t *testing.T, script string) string {
	t.Helper()

	binaries, err := pgserver.Find(os.Getenv("SOCLE_POSTGRES_BIN"))
	if err != nil {
		t.Fatal(err)
	}

	dir := t.TempDir()
	for _, name := range []string{"postgres", "initdb", "pg_restore"} {
		if err := os.Symlink(binaries.Path(name), filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}

	replaceProgram(t, dir, "pg_dump", script)
	return dir
}

// passThrough is a script that runs the program it replaces.
const passThrough = `exec "$real" "$@"`

// replaceProgram puts a script in place of a program in a folder; $real is the path of the real
// one. An empty script removes the program.
func replaceProgram(t *testing.T, dir, program, script string) {
	t.Helper()

	binaries, err := pgserver.Find(os.Getenv("SOCLE_POSTGRES_BIN"))
	if err != nil {
		t.Fatal(err)
	}

	path := filepath.Join(dir, program)
	if script == "" {
		err = os.Remove(path)
	} else { // by rename, since a running script cannot be written
		err = errors.Join(
			os.WriteFile(path+".new",
				[]byte("#!/bin/sh\n"+strings.ReplaceAll(script, "$real", binaries.Path(program))+"\n"), 0o755),
			os.Rename(path+".new", path),
		)
	}

	if err != nil {
		t.Fatal(err)
	}
}

// TestBackupFails makes backups with a failing pg_dump, or a failing pg_restore while it lists a
// dump. The error names the cause.
func TestBackupFails(t *testing.T) {
	t.Parallel()

	const failed, broken = "the dump failed; see the server's log", "the dump is incomplete"

	const missing, complained = "the dump failed: PostgreSQL's programs cannot run on Socle's server",
		"the dump failed: a PostgreSQL program reported a problem; see the server's log"

	dir := programFolder(t, passThrough)
	a := apitest.New(t, func(c *config.Config) { c.PostgresBin = dir })
	webhook := factWebhook(a)
	for name, c := range map[string]struct{ program, script, reason string }{
		"at once":       {"pg_dump", `echo "canary" >&2; exit 1`, failed},
		"in the middle": {"pg_dump", `"$real" "$@" | head -c 5000; echo "canary" >&2; exit 1`, failed},
		"killed":        {"pg_dump", `kill -9 $$`, failed},
		"older": {"pg_dump",
			`echo "pg_dump: error: aborting because of server version mismatch" >&2; exit 1`,
			"the dump failed: PostgreSQL's programs on Socle's server are older than the database server"},
		"with nothing":        {"pg_dump", `exit 0`, broken},
		"with something else": {"pg_dump", `echo "canary"`, broken},
		"cut off":             {"pg_dump", `"$real" "$@" | head -c 50`, broken},
		"complaining":         {"pg_dump", `"$real" "$@"; echo "canary" >&2; exit 0`, complained},
		"missing":             {"pg_dump", ``, missing},

		"without a list": {"pg_restore", `cat >/dev/null; exit 0`,
			"the dump failed; see the server's log"},
		"killed at the list":      {"pg_restore", `kill -9 $$`, failed},
		"complaining of the list": {"pg_restore", `"$real" "$@"; echo "canary" >&2; exit 0`, complained},
		"missing for the list":    {"pg_restore", ``, missing},
	} {
		t.Run(name, func(t *testing.T) {
			a := a.WithT(t)
			replaceProgram(t, dir, c.program, c.script)
			id := startBackup(t, a)
			r := waitForBackup(t, a, id, "completed", "failed").Content("status", "failed").Content("error", c.reason)
			if r.Get("completedAt") == nil {
				t.Error("a failed backup has no completion time")
			}
			if anyStored(t, a, id) {
				t.Error("a partial dump is stored")
			}

			replaceProgram(t, dir, c.program, passThrough) // the failed backup does not block the next
		})
	}
	waitForFact(t, a, webhook, event.BackupFailed, `"error":"the dump`)
}

// TestBackupRunsDump inspects the arguments and environment of pg_dump. It also prints
// warnings, which are logged.
func TestBackupRunsDump(t *testing.T) {
	t.Parallel()

	seen := t.TempDir()
	dir := programFolder(t,
		fmt.Sprintf(`cat "$PGPASSFILE" >%[1]s/password; tr '\0' '\n' </proc/$$/cmdline >%[1]s/called; env >>%[1]s/called
		stat --dereference --format '%%a %%h' "$PGPASSFILE" >%[1]s/mode
		printf 'WARNING:  database has a collation version mismatch\nDETAIL:  canary\n\tmore\npg_dump: warning: odd\n' >&2; exec "$real" "$@"`, seen))

	a := apitest.New(t, func(c *config.Config) { c.PostgresBin = dir })
	a.DisableProofs()
	waitForBackup(t, a, startBackup(t, a), "completed", "failed").Content("status", "completed")

	read := func(name string) string {
		t.Helper()

		text, err := os.ReadFile(filepath.Join(seen, name))
		if err != nil {
			t.Fatal(err)
		}

		return strings.TrimSpace(string(text))
	}

	password := read("password")[strings.LastIndex(read("password"), ":")+1:]
	if len(password) < 32 {
		t.Errorf("the password has %d characters", len(password))
	}

	if called := read("called"); strings.Contains(called, password) || !strings.Contains(called, "--format=custom") {
		t.Errorf("got arguments and environment %s", called)
	}
	if mode := read("mode"); mode != "600 0" {
		t.Errorf("got mode and link count %s of the password file, want 600 0", mode)
	}
	log := a.Log.String()
	if strings.Contains(log, password) {
		t.Error("the log has the password")
	}
	if !strings.Contains(log, "canary") {
		t.Error("the warning is not in the log")
	}
}

func fileExists(name string) bool {
	_, err := os.Stat(name)
	return err == nil
}

// TestAbandonedBackups fails abandoned backups: one whose server stopped, and one without a job.
func TestAbandonedBackups(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	other := a.WithProject(a.CreateProject("other"))
	running, pending := uuid.Must(uuid.NewV7()).String(), uuid.Must(uuid.NewV7()).String()

	blobs, err := blob.OpenConfigured(a.Config)
	if err != nil {
		t.Fatal(err)
	}
	defer blobs.Close()

	if _, err := blobs.Put(t.Context(), backup.DumpKey(uuid.MustParse(a.Project), uuid.MustParse(running)),
		strings.NewReader("a part"), 100); err != nil {
		t.Fatal(err)
	}

	a.Exec(`insert into platform.backups (uuid, project_uuid, created_by, status, started_at, heartbeat_at)
		values ($1, $2, $3, 'running', now() - interval '1 hour', now() - interval '1 minute')`, running,
		a.Project, a.User)
	a.Exec(`insert into platform.backups (uuid, project_uuid, created_by, created_at) values ($1, $2, $3, now() - interval '1 minute')`,
		pending, other.Project, a.User)

	runCleanUp(t, a)

	waitForBackup(t, a, running, "failed").Content("error", "the server running it stopped")
	waitForBackup(t, other, pending, "failed").Content("error", "the server stopped before starting it")

	if anyStored(t, a, running) {
		t.Error("a partial dump is stored")
	}

	waitForBackup(t, a, startBackup(t, a), "completed")
}

// TestBackupOfAStoppedServer stops the server while pg_dump runs.
func TestBackupOfAStoppedServer(t *testing.T) {
	t.Parallel()

	url := pgtest.URL(t)
	dir := programFolder(t, `exec sleep 60`)
	c, err := config.Load([]string{"SOCLE_ADDR=127.0.0.1:0", "SOCLE_DATA_DIR=" + t.TempDir(),
		"SOCLE_DATABASE_URL=" + url, "SOCLE_RATE_LIMIT=off",
		"SOCLE_POSTGRES_BIN=" + dir}, nil)
	if err != nil {
		t.Fatal(err)
	}

	t.Run("serving", func(serving *testing.T) {
		a := apitest.Start(serving, c)
		a = a.SignUp("ada")
		a.Project = a.CreateProject("shop")
		a.CreateTable("orders")

		id := startBackup(serving, a)
		waitForBackup(serving, a, id, "running")
		a.Post("/backups", `{}`).Want(409).Code("backup_under_way")
	})

	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())

	var status, reason string
	if err := conn.QueryRow(t.Context(), "select status, error from platform.backups").
		Scan(&status, &reason); err != nil {
		t.Fatal(err)
	}

	if status != "failed" || reason != "the server was stopped" {
		t.Errorf("got %s, %q", status, reason)
	}
}

// anyStored reports whether any blob of a backup is stored.
func anyStored(t *testing.T, a *apitest.API, id string) bool {
	t.Helper()

	return len(a.StoredFiles("backups/"+id+".*")) > 0
}
