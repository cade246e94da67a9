package api_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/socle-dev/socle/internal/api/apitest"
	"github.com/socle-dev/socle/internal/backup"
	"github.com/socle-dev/socle/internal/backup/archive"
	"github.com/socle-dev/socle/internal/pgserver"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// waitForBackup waits for the end of a backup and returns it.
func waitForBackup(t *testing.T, a *apitest.API, id string) *apitest.Reply {
	t.Helper()

	var r *apitest.Reply
	until(t, "the backup has ended", func() bool {
		r = a.Get("/backups/" + id).Want(200)
		status := r.Get("status")

		return status == "completed" || status == "failed"
	})

	return r
}

// dumpOf returns the path of a file with the dump of a backup.
func dumpOf(t *testing.T, a *apitest.API, id string) string {
	t.Helper()

	stored, err := os.Open(
		filepath.Join(a.Config.StorageDir(), backup.DumpKey(uuid.MustParse(a.Project), uuid.MustParse(id))),
	)
	if err != nil {
		t.Fatal(err)
	}
	defer stored.Close()

	name := filepath.Join(t.TempDir(), "dump")
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()

	plain, err := archive.Key(a.Server.Projects().BackupKey()).Decrypt(stored)
	if err == nil {
		_, err = f.ReadFrom(plain)
	}
	if err != nil {
		t.Fatal(err)
	}

	return name
}

func TestBackup(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	a.DisableProofs()
	a.CreateTable("orders", "note text")
	execute(t, a, `create table public."a
\! id" (); create table public."-rf" (); create table public."dbname=x" ()`)

	r := a.Post("/backups", `{}`).Want(201).Content("projectUuid", a.Project).Content("status", "pending").
		Content("startedAt", nil).Content("completedAt", nil).Content("error", "")
	id := r.Get("uuid").(string)

	done := waitForBackup(t, a, id).Content("status", "completed").Content("error", "").Content("uuid", id)
	if done.Get("startedAt").(string) > done.Get("completedAt").(string) {
		t.Errorf("the backup ended before it began\n%s", done.Body)
	}

	binaries, err := pgserver.Find(a.Config.PostgresBin)
	if err != nil {
		t.Fatal(err)
	}

	toc, err := exec.CommandContext(t.Context(), binaries.Path("pg_restore"), "--list",
		dumpOf(t, a, id)).CombinedOutput()
	if err != nil {
		t.Fatalf("pg_restore --list: %v\n%s", err, toc)
	}

	for _, table := range []string{"public orders", "public -rf", "public dbname=x", "forms fields", "storage files"} {
		if !strings.Contains(string(toc), "TABLE "+table+" ") {
			t.Errorf("no table %s in the dump:\n%s", table, toc)
		}
	}

	waitForBackup(t, a, a.Create("/backups", `{"projectUUID": "`+a.Project+`"}`)).Content("status", "completed")
}

func TestGetBackup(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	a.DisableProofs()
	id := a.Create("/backups", `{}`)
	waitForBackup(t, a.Member(5), id).Content("status", "completed")

	a.Get("/backups/" + apitest.MissingUUID).Want(400).Code("not_found")
	a.Get("/backups/garbage").Want(400).Code("invalid_value").Field("backupUUID")
	a.Get("/backups/" + strings.ReplaceAll(id, "-", "")).Want(400).Field("backupUUID")
	a.Get("/backups/%00").Want(400).Field("backupUUID")
	a.Get("/backups/" + id + "?page=1").Want(200) // the query string is ignored
	a.Anonymous().Get("/backups/garbage").Want(401)
	a.OtherUser().Get("/backups/" + id).Want(401)
	a.OtherUser().Get("/backups/garbage").Want(400).Field("backupUUID")

	theirs := a.OtherUser()
	theirs = theirs.WithProject(theirs.CreateProject("own"))
	theirs.Get("/backups/" + id).Want(400).Code("not_found")
	theirs.Post("/backups/"+id+"/download", `{"encryption": "none"}`).Want(404).Code("not_found")

	for _, path := range []string{"/storage/projects/" + a.Project + "/backups/" + id + ".dump", "/socle-data"} {
		theirs.Get(path).Want(404).Code("unknown_route")
	}
}

func TestCreateBackupRefuses(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	a.Post("/backups", ``).Want(400).Code("malformed_json")
	a.Post("/backups", `[]`).Want(400).Code("malformed_json")
	a.Post("/backups", `{"projectUUID": "`+apitest.MissingUUID+`"}`).Want(422).Field("projectUUID")
	a.Member(5).Post("/backups", `{}`).Want(403).Code("forbidden")
	a.OtherUser().Post("/backups", `{}`).Want(401)
	a.Anonymous().Post("/backups", `{`).Want(401)
}

func TestBackupsOneAtATime(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	a.DisableProofs()
	a.CreateTable("orders")

	holder, err := a.ConnectProject().Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}

	if _, err := holder.Exec(t.Context(), "lock table public.orders in access exclusive mode"); err != nil {
		t.Fatal(err)
	}

	counts := concurrently(10, func(int) *apitest.Reply { return a.Post("/backups", `{}`) })
	wantCounts(t, counts, map[int]int{201: 1, 409: 9})
	a.Post("/backups", `{}`).Want(409).Code("backup_under_way")
	a.WithProject(a.CreateProject("other")).Post("/backups", `{}`).Want(201)

	if err := holder.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}

	var id string
	until(t, "the next job is running", func() bool {
		r := a.Post("/backups", `{}`)
		if r.Status == 201 {
			id = r.Get("uuid").(string)
		}

		return r.Status == 201
	})

	waitForBackup(t, a, id).Content("status", "completed")
}

func TestBackupFails(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	role := pgx.Identifier{a.DatabaseName() + "_dump"}.Sanitize()
	execute(t, a, "alter role "+role+" nologin")

	id := a.Create("/backups", `{}`)
	r := waitForBackup(t, a, id).Content("status", "failed")
	if reason := r.Get("error").(string); reason == "" || strings.ContainsAny(reason, `/"`) ||
		strings.Contains(reason, "role") {
		t.Errorf("got the reason %q", reason)
	}

	if remaining := blobs(t, a); len(remaining) > 0 {
		t.Errorf("the failed backup has left %q", remaining)
	}

	until(t, "the log has the reason of the failed backup", func() bool {
		return strings.Contains(a.Log.String(), "not permitted to log in")
	})

	execute(t, a, "alter role "+role+" login")
	waitForBackup(t, a, a.Create("/backups", `{}`)).Content("status", "completed")
}
