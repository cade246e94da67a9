package integration_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/api/apitest"
	"github.com/socle-dev/socle/internal/backup/archive"
	"github.com/socle-dev/socle/internal/config"
	"github.com/socle-dev/socle/internal/pgdump"
)

// storedFiles returns the files stored for a project's backups.
func storedFiles(t *testing.T, a *apitest.API) []string {
	t.Helper()

	var all []string
	for _, pattern := range []string{"*.dump", "*.manifest", "content/*"} {
		all = append(all, a.StoredFiles("backups/"+pattern)...)
	}

	return all
}

// failRestore restores a backup in place, expects it to fail, and returns the error.
func failRestore(t *testing.T, a *apitest.API, id string) string {
	t.Helper()

	r := a.Post("/backups/"+id+"/restore", `{"target": "in_place"}`).Want(201).Get("uuid").(string)
	return fmt.Sprint(waitForRestore(t, a, r, "completed", "failed").Content("status", "failed").
		Content("keptUntil", nil).Get("error"))
}

// flips is the number of changed positions per part of a backup: a few, or FLIPS.
func flips(t *testing.T) int {
	t.Helper()

	text := os.Getenv("FLIPS")
	if text == "" {
		return 2
	}

	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}

	return n
}

// TestRestoreOfDamage damages the stored parts of a backup in every way. The verification before a
// restore detects each damage, and no restore changes the database.
func TestRestoreOfDamage(t *testing.T) {
	t.Parallel()

	a := apitest.New(t)
	a.DisableProofs()
	a.CreateTable("orders", "note text")
	execAsOwner(t, a, `insert into public.orders select n, repeat('note', 100) from generate_series(1, 1000) n`)

	c := a.Create("/containers", `{"name": "reports"}`)
	file := upload(t, a, c, "a.txt", strings.Repeat("bytes of a file", 10000))
	other := a.WithProject(a.CreateProject("other"))
	other.DisableProofs()
	upload(t, other, other.Create("/containers", `{"name": "reports"}`), "a.txt",
		strings.Repeat("bytes of another", 10000))

	id, earlier := makeBackup(t, a), makeBackup(t, a)
	makeBackup(t, other)
	instance := apitest.Empty(t, func(c *config.Config) {
		c.SecretKey = config.Secret(strings.ReplaceAll(uuid.NewString()+uuid.NewString(), "-", ""))
	}).SignUp("first")

	instance.Project = instance.CreateProject("project")
	instance.DisableProofs()
	upload(t, instance, instance.Create("/containers", `{"name": "reports"}`), "a.txt",
		strings.Repeat("bytes of a file", 10000))

	makeBackup(t, instance)
	a.Delete("/containers/" + c + "/files/" + file).Want(200) // the source of a repair
	before, oid := fingerprint(t, a), query(t, a,
		`select oid::text from pg_database where datname = current_database()`)

	var kept []string
	for _, name := range storedFiles(t, a) {
		if !strings.Contains(name, earlier) {
			kept = append(kept, name)
		}
	}

	if len(kept) != 3 {
		t.Fatalf("got blobs %v, want a dump, a manifest and a content", kept)
	}

	project, backup := uuid.MustParse(a.Project), uuid.MustParse(id)
	for i, name := range kept {
		whole, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}

		foreign, err := os.ReadFile(storedFiles(t, other)[i])
		if err != nil {
			t.Fatal(err)
		}

		sealed, err := os.ReadFile(storedFiles(t, instance)[i])
		if err != nil {
			t.Fatal(err)
		}

		damages := map[string][]byte{"empty": {}, "deleted": nil, "cut off": whole[:len(whole)-1],
			"half": whole[:len(whole)/2], "header only": whole[:150], "longer": append(append([]byte{}, whole...), 0),
			"another project's": foreign, "of another key": sealed}

		for range flips(t) {
			at := rand.IntN(len(whole))
			flipped := append([]byte{}, whole...)
			flipped[at] ^= 1 << rand.IntN(8)
			damages[fmt.Sprintf("byte %d of %d", at, len(whole))] = flipped
		}

		if strings.HasSuffix(name, ".dump") || strings.HasSuffix(name, ".manifest") {
			if damages["another backup's"], err = os.ReadFile(strings.ReplaceAll(name, id, earlier)); err != nil {
				t.Fatal(err)
			}
		}

		for damage, bytes := range damages {
			if strings.HasSuffix(name, ".dump") && damage == "another backup's" {
				continue // both dumps can have the same bytes
			}

			if bytes == nil {
				err = os.Remove(name)
			} else {
				err = os.WriteFile(name, bytes, 0o600)
			}

			if err != nil {
				t.Fatal(err)
			}

			_, _, err := a.Server.Services().Backups.Verify(t.Context(), project, backup)
			if !errors.Is(err, archive.ErrDamaged) && !errors.Is(err, pgdump.ErrTOC) {
				t.Errorf("%s, %s: got error %v", filepath.Ext(name), damage, err)
			}
		}

		// with the last damage
		if reason := failRestore(t, a, id); reason != "the backup is damaged; nothing was restored" {
			t.Errorf("%s: got error %q", filepath.Ext(name), reason)
		}

		if err := os.WriteFile(name, whole, 0o600); err != nil {
			t.Fatal(err)
		}
	}

	if got := fingerprint(t, a); got != before {
		t.Error("the database has changed")
	}
	if got := query(t, a, `select oid::text from pg_database where datname = current_database()`); got != oid ||
		strings.Contains(databases(t, a), ",") {
		t.Errorf("got databases %s", databases(t, a))
	}

	restoreInPlace(t, a, id)
}

// scriptOnRestore is a script in place of pg_restore: it runs another script where pg_restore would
// print the user's objects, and the real program elsewhere.
func scriptOnRestore(script string) string {
	return "case \"$*\" in *--verbose*) " + script + ";; esac\nexec $real \"$@\""
}

// TestRestoreFails restores with a pg_restore that fails in various ways: nothing changes and
// nothing remains, neither a copy nor a new project.
func TestRestoreFails(t *testing.T) {
	t.Parallel()

	dir := programFolder(t, passThrough)
	a := apitest.New(t, func(c *config.Config) { c.PostgresBin = dir })
	a.DisableProofs()
	a.CreateTable("orders", "note text")
	execAsOwner(t, a, `insert into public.orders values (1, 'kept')`)
	upload(t, a, a.Create("/containers", `{"name": "reports"}`), "a.txt", "bytes")

	id := makeBackup(t, a)
	before, blobs := fingerprint(t, a), fileBlobs(t, a)
	for name, script := range map[string]string{
		"at once":       scriptOnRestore(`echo "canary" >&2; exit 1`),
		"killed":        scriptOnRestore(`kill -9 $$`),
		"with nothing":  scriptOnRestore(`cat >/dev/null; exit 0`),
		"in the middle": scriptOnRestore(`head -c 5000 | $real "$@"; echo "canary" >&2; exit 1`),
		"afterwards":    scriptOnRestore(`$real "$@"; echo "canary" >&2; exit 1`),
		"missing":       ``,
	} {
		t.Run(name, func(t *testing.T) {
			a := a.WithT(t)
			replaceProgram(t, dir, "pg_restore", script)

			if reason := failRestore(t, a, id); reason == "" || strings.Contains(reason, "canary") ||
				strings.Contains(reason, "/") {
				t.Errorf("got error %q", reason)
			}
			if fingerprint(t, a) != before || strings.Contains(databases(t, a), ",") {
				t.Errorf("the database changed or a copy remains: %s", databases(t, a))
			}
			if got := fileBlobs(t, a); strings.Join(got, "\n") != strings.Join(blobs, "\n") {
				t.Errorf("got blobs %v, want %v", got, blobs)
			}

			a.Get("/tables/orders").Want(200)
		})
	}

	replaceProgram(t, dir, "pg_restore", scriptOnRestore(`head -c 5000 | $real "$@"; exit 1`))
	n := a.Post("/backups/"+id+"/restore", `{"target": "new", "name": "copied"}`).Want(201)
	waitForRestore(t, a, n.Get("uuid").(string), "completed", "failed").Content("status", "failed")
	waitUntil(t, "the new project is removed", func() bool {
		return a.Get("/projects/"+n.Get("projectUuid").(string)).Status == 404
	})
}

// fileBlobs returns the blobs of a project's files.
func fileBlobs(t *testing.T, a *apitest.API) []string {
	t.Helper()

	return a.StoredFiles("files/*/*")
}

// TestRestoreRefusesStrange restores objects that projects cannot have.
func TestRestoreRefusesStrange(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	a.DisableProofs()
	conn := a.ConnectProject()
	if _, err := conn.Exec(t.Context(),
		`create function public.fire() returns event_trigger language plpgsql as 'begin end'; create event trigger strange on ddl_command_end execute function public.fire()`); err != nil {
		t.Fatal(err)
	}

	conn.Close(t.Context())

	if reason := failRestore(t, a,
		makeBackup(t, a)); reason != "the backup contains an object that a project cannot have: event trigger strange" {
		t.Errorf("got error %q", reason)
	}
}

// TestAbandonedRestore finds a restore whose server stopped during the swap: the gate is closed and
// the copy exists.
func TestAbandonedRestore(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	a.DisableProofs()
	a.CreateTable("orders")

	id, pending, abandoned := makeBackup(t, a), uuid.Must(uuid.NewV7()), uuid.Must(uuid.NewV7())
	live := a.DatabaseName()
	left := fmt.Sprintf("%s_new_%x", live, abandoned[8:])
	a.Exec("create database " + pgx.Identifier{left}.Sanitize())
	a.Exec("alter database " + pgx.Identifier{live}.Sanitize() + " connection limit 0")

	const note = `insert into platform.restores (uuid, backup_uuid, backup_project_uuid, project_uuid, target, created_by, created_at, status, heartbeat_at)
		values ($1, $2, $3, $3, 'in_place', $4, now() - interval '1 hour', $5, now() - interval '1 minute')`
	a.Exec(note, abandoned.String(), id, a.Project, a.User, "running")
	cleanUpTwice(t, a)
	waitForRestore(t, a, abandoned.String(), "failed").Content("error", "the server running it stopped")

	if strings.Contains(databases(t, a), ",") {
		t.Errorf("got databases %s", databases(t, a))
	}

	waitUntil(t, "the gate is open", func() bool { return a.Get("/tables/orders").Status == 200 })
	a.Exec(note, pending.String(), id, a.Project, a.User, "pending")
	runCleanUp(t, a)
	waitForRestore(t, a, pending.String(), "failed").Content("error", "the server stopped before starting it")
	restoreInPlace(t, a, id)
}

// TestRestoreWithTraffic restores while requests arrive: each sees the project before or after the
// restore, or fails.
func TestRestoreWithTraffic(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	a.DisableProofs()
	a.CreateTable("before")

	id := makeBackup(t, a)
	a.CreateTable("later")

	var wg sync.WaitGroup
	done := make(chan struct{})
	statuses := make([]map[int]int, 4)
	for i := range statuses {
		statuses[i] = map[int]int{}
		wg.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
					statuses[i][a.Get("/tables/before").Status]++
				}
			}
		})
	}

	restoreInPlace(t, a, id)
	close(done)
	wg.Wait()
	t.Logf("responses by status: %v", statuses)
	a.Get("/tables/before").Want(200)
	a.Get("/tables/later").Want(404)

	for _, s := range statuses {
		if s[404] > 0 || s[200] == 0 {
			t.Errorf("responses by status: %v", s)
		}
	}
}
