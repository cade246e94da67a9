package integration_test

import (
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/api/apitest"
)

// cleanUpTwice runs CleanUp twice, since rescue requires two consecutive rounds.
func cleanUpTwice(t *testing.T, a *apitest.API) {
	t.Helper()

	a.RunMaintenance()
	a.RunMaintenance()
}

// TestRescue finds the unfinished work of a killed server.
func TestRescue(t *testing.T) {
	t.Parallel()

	a := apitest.New(t)
	a.DisableProofs()
	id := makeBackup(t, a)
	name := a.DatabaseName()
	project := a.Project

	t.Run("jobs", func(t *testing.T) {
		living := apitest.Value[string](a, `select attempted_by[1] from river.river_job where kind = 'backup'`)

		job := func(worker string, attempts int) int64 {
			t.Helper()

			a.Exec(`insert into river.river_job (kind, queue, args, state, attempt, max_attempts, attempted_at, attempted_by)
				values ('discard', 'files', jsonb_build_object('project', $1::text), 'running', 1, $2, now(), array[$3])`, project, attempts, worker)

			var n int64
			fmt.Sscan(apitest.Value[string](a, `select max(id)::text from river.river_job`), &n)

			return n
		}

		again, over, worked := job("socle-gone", 5), job("socle-gone", 1), job(living, 5)
		earlier, long := job("of an earlier release", 5), job("of an earlier release", 5)
		a.Exec(`update river.river_job set attempted_at = now() - interval '2 hours' where id = $1`, long)
		cleanUpTwice(t, a)

		state := func(job int64) string {
			return apitest.Value[string](a,
				`select state::text || coalesce(' ' || (errors[array_upper(errors, 1)] ->> 'error'), '') from river.river_job where id = $1`, job)
		}

		waitUntil(t, "the jobs are retried", func() bool {
			return state(again) == "completed the server stopped" && state(long) == "completed the server stopped"
		})

		if got := state(over); got != "discarded the server stopped" {
			t.Errorf("got state %s of a job without attempts left", got)
		}

		for _, job := range []int64{worked, earlier} {
			if got := state(job); got != "running" {
				t.Errorf("got state %s of a job in progress", got)
			}
		}

		a.Exec(`delete from river.river_job where id in ($1, $2)`, worked, earlier)
	})

	t.Run("a restore whose copy accepts no connections yet", func(t *testing.T) {
		r := uuid.Must(uuid.NewV7())
		a.Exec(`insert into platform.restores (uuid, backup_uuid, backup_project_uuid, project_uuid, target, status, started_at, heartbeat_at, created_by)
			values ($1, $2, $3, $3, 'in_place', 'running', now() - interval '1 hour', now() - interval '1 hour', $4)`,
			r, id, project, a.User)

		a.Exec(
			`create database "` + name + "_new_" + hex.EncodeToString(r[8:]) +
				`" template template0 allow_connections false`,
		)

		cleanUpTwice(t, a)
		a.Get("/restores/"+r.String()).Want(200).Content("status", "failed").
			Content("error", "the server running it stopped")

		if got := databases(t, a); got != name {
			t.Errorf("got databases %s", got)
		}
	})

	t.Run("a restore into a new project", func(t *testing.T) {
		made := a.CreateProject("made")
		r := uuid.Must(uuid.NewV7())
		a.Exec(`insert into platform.restores (uuid, backup_uuid, backup_project_uuid, project_uuid, target, created_at, created_by)
			values ($1, $2, $3, $4, 'new', now() - interval '1 hour', $5)`, r, id, project, made, a.User)

		cleanUpTwice(t, a)
		a.Get("/restores/"+r.String()).Want(200).Content("status", "failed").
			Content("error", "the server stopped before starting it")

		a.Get("/projects/" + made).Want(404)
	})

	t.Run("restores of a purged project into new ones", func(t *testing.T) {
		source, unfinished, done := a.CreateProject("source"), a.CreateProject("unfinished"), a.CreateProject("done")
		for target, status := range map[string]string{unfinished: "running", done: "completed"} {
			a.Exec(`insert into platform.restores (uuid, backup_uuid, backup_project_uuid, project_uuid, target, status, heartbeat_at, created_by)
				values (gen_random_uuid(), $1, $2, $3, 'new', $4, now(), $5)`, id, source, target, status, a.User)
		}

		a.Delete("/projects/" + source + "?purge=true").Want(200)
		a.Get("/projects/" + unfinished).Want(404)
		a.Get("/projects/" + done).Want(200)

		cleanUpTwice(t, a)
		if got := apitest.Value[string](a, `select count(*)::text from platform.projects where uuid = $1`,
			unfinished); got != "0" {
			t.Error("the project of the unfinished restore remains")
		}
	})

	t.Run("the empty database of a new project", func(t *testing.T) {
		r := uuid.Must(uuid.NewV7())
		a.Exec(`insert into platform.restores (uuid, backup_uuid, backup_project_uuid, project_uuid, target, status, completed_at, kept_until, created_by)
			values ($1, $2, $3, $3, 'new', 'completed', now(), now(), $4)`, r, id, project, a.User)
		a.Exec(`create database "` + name + "_old_" + hex.EncodeToString(r[8:]) + `"`)
		a.Get("/restores/"+r.String()).Want(200).Content("keptUntil", nil)
		a.Delete("/restores/" + r.String()).Want(409).Code("nothing_kept")
		cleanUpTwice(t, a)

		// The server's own cleanup can be dropping it at the same time.
		waitUntil(t, "the replaced database is dropped", func() bool { return databases(t, a) == name })
	})

	t.Run("orphaned copies", func(t *testing.T) {
		stray := uuid.New()
		a.Exec(`create database "` + name + "_proof_" + hex.EncodeToString(stray[8:]) + `"`)
		a.Exec(`create database "` + name + "_new_" + hex.EncodeToString(stray[8:]) + `"`)
		cleanUpTwice(t, a)

		waitUntil(t, "no copies remain", func() bool {
			return apitest.Value[int](a, `select count(*) from pg_database where starts_with(datname, $1)`, name+"_") == 0
		})
	})

	t.Run("leftovers of failed backups", func(t *testing.T) {
		folder := filepath.Join(a.Config.StorageDir(), "projects", project, "backups")
		plant := func(name string, old bool) string {
			t.Helper()

			path := filepath.Join(folder, name)
			at := time.Now().Add(-time.Hour)
			if old {
				at = at.Add(-48 * time.Hour)
			}

			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Chtimes(path, at, at); err != nil {
				t.Fatal(err)
			}

			return path
		}

		failed, unknown := uuid.Must(uuid.NewV7()).String(), uuid.Must(uuid.NewV7()).String()
		a.Exec(
			`insert into platform.backups (uuid, project_uuid, created_by, status, completed_at, error) values ($1, $2, $3, 'failed', now(), 'x')`, failed, project, a.User,
		)

		gone := []string{plant(failed+".dump", true), plant("content/"+strings.Repeat("ab", 32), true)}

		stays := []string{
			plant(failed+".manifest", false), plant("content/"+strings.Repeat("cd", 32), false),
			plant("content/something", true), filepath.Join(folder, id+".dump"),
		}

		there := func(names []string) (n int) {
			for _, name := range names {
				if fileExists(name) {
					n++
				}
			}

			return n
		}

		later := plant(unknown+".dump", true) // the platform database was restored to an earlier time
		for range 2 {
			if err := a.Server.Services().Queue.Sweep(t.Context()); err != nil {
				t.Fatal(err)
			}

			want := 0
			if fileExists(later) {
				want = len(gone)
			}

			if there(gone) != want || there(stays) != len(stays) {
				t.Errorf("%d of %d are there that nothing needs, and %d of %d others", there(gone), want,
					there(stays), len(stays))
			}
			if err := os.Remove(later); err != nil && !os.IsNotExist(err) {
				t.Fatal(err)
			}
		}
	})
}

// TestRestoreEndsUploads restores a database during an upload in parts: its bytes belong to the
// replaced database.
func TestRestoreEndsUploads(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	a.DisableProofs()
	const tus = "Tus-Resumable: 1.0.0"
	path := "/containers/" + a.Create("/containers", `{"name": "reports"}`) + "/tus"
	location := a.Send("POST", path, "", tus, "Upload-Length: 20", "Upload-Metadata: filename YQ==").
		Want(201).Header.Get("Location")

	location = location[strings.Index(location, path):]
	a.Send("PATCH", location, "ten bytes ", tus, "Upload-Offset: 0", "Content-Type: application/offset+octet-stream").
		Want(204)

	id := makeBackup(t, a)
	r := restoreInPlace(t, a, id)
	a.Send("HEAD", location, "", tus).Want(404)

	blobs := func() int { return len(a.StoredFiles("files/*/*")) }
	if got := blobs(); got != 1 {
		t.Errorf("got %d blobs of the replaced database, want 1", got)
	}

	a.Delete("/restores/" + r).Want(200)
	runCleanUp(t, a)
	waitUntil(t, "the replaced database is dropped", func() bool { return !strings.Contains(databases(t, a), ",") })
	waitUntil(t, "its blobs are removed", func() bool { return blobs() == 0 })
}
