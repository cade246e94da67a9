package api_test

import (
	"testing"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/api/apitest"
)

// oldBackup inserts a failed backup of the project.
func oldBackup(t *testing.T, a *apitest.API) string {
	t.Helper()

	id := uuid.Must(uuid.NewV7()).String()
	a.Exec(
		`insert into platform.backups (uuid, project_uuid, created_by, status, error) values ($1, $2, $3, 'failed', 'of old')`, id, a.Project, a.User,
	)

	return id
}

// oldRestore inserts a completed restore with a kept database, which does not exist.
func oldRestore(t *testing.T, a *apitest.API, backup string) string {
	t.Helper()

	id := uuid.Must(uuid.NewV7()).String()
	a.Exec(`insert into platform.restores (uuid, backup_uuid, backup_project_uuid, project_uuid, target, created_by, status, kept_until)
		values ($1, $2, $3, $3, 'in_place', $4, 'completed', now() + interval '1 day')`, id, backup, a.Project, a.User)

	return id
}

// waitForRestore waits for the end of a restore.
func waitForRestore(t *testing.T, a *apitest.API, id, status string) *apitest.Reply {
	t.Helper()

	var r *apitest.Reply
	until(t, "the restore has ended", func() bool {
		r = a.Get("/restores/" + id).Want(200)
		return r.Get("status") == "completed" || r.Get("status") == "failed"
	})

	return r.Content("status", status)
}

func TestRestoreBackup(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	a.DisableProofs()
	a.CreateTable("orders", "note text")

	id := a.Create("/backups", `{}`)
	waitForBackup(t, a, id).Content("status", "completed")
	path := "/backups/" + id + "/restore"

	a.Post(path, `{"target": "elsewhere"}`).Want(422).Field("target")
	a.Post(path, `{"target": "new"}`).Want(422).Field("name")
	a.Post(path, `[]`).Want(400)
	a.Post("/backups/"+apitest.MissingUUID+"/restore", `{"target": "in_place"}`).Want(404)
	a.Post("/backups/"+apitest.MissingUUID+"/restore", `{}`).Want(404)
	a.Post("/backups/"+apitest.MissingUUID+"/restore", `{"target": "new", "name": "of nothing"}`).Want(404)
	a.Post("/backups/"+oldBackup(t, a)+"/restore", `{"target": "in_place"}`).Want(409).Code("backup_not_completed")
	a.Post("/backups/"+oldBackup(t, a)+"/restore", `{"target": "new", "name": "of a failed one"}`).Want(409).
		Code("backup_not_completed")

	a.Member(3).Post(path, `{"target": "in_place"}`).Want(403)
	a.Member(4).Post(path, `{"target": "new", "name": "other"}`).Want(403)
	withToken(t, a, 2, a.Project).Post(path, `{"target": "new", "name": "other"}`).Want(403).Code("token_not_allowed")
	a.OtherUser().Post(path, `{"target": "in_place"}`).Want(401)
	a.Anonymous().Post(path, `{"target": "in_place"}`).Want(401)
	a.Get("/restores/" + apitest.MissingUUID).Want(404)
	a.Get("/restores/garbage").Want(400)
	a.Delete("/restores/" + apitest.MissingUUID).Want(404)
	a.Delete("/restores/garbage").Want(400).Field("restoreUUID")

	// Of two concurrent restores one is accepted.
	holder, err := a.ConnectProject().Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}

	counts := concurrently(3, func(int) *apitest.Reply { return a.Post(path, `{"target": "in_place"}`) })
	if counts[201] == 0 || counts[201]+counts[409] != 3 {
		t.Errorf("got %v, want 201 and 409", counts)
	}

	if err := holder.Rollback(t.Context()); err != nil {
		t.Log(err) // the swap has ended the session
	}

	until(t, "the restores have ended", func() bool {
		return apitest.Value[int](a,
			`select count(*) from platform.restores where project_uuid = $1 and status in ('pending', 'running')`,
			a.Project) == 0
	})

	if n := apitest.Value[int](a,
		`select count(*) from platform.restores where project_uuid = $1 and status <> 'completed'`, a.Project); n != 0 {
		t.Errorf("got %d failed restores", n)
	}

	a.Get("/tables/orders").Want(200)

	copied := a.Member(3).Post(path, `{"target": "new", "name": "copied"}`).Want(201)
	a.Post(path, `{"target": "new", "name": "Copied"}`).Want(409)
	waitForRestore(t, a, copied.Get("uuid").(string), "completed")
	a.WithProject(copied.Get("projectUuid").(string)).Get("/tables/orders").Want(200)
}

func TestDeleteBackup(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	a.DisableProofs()
	container := a.Create("/containers", `{"name": "reports"}`)
	upload(a, container, "a.txt", "in both").Want(201)

	first := a.Create("/backups", `{}`)
	waitForBackup(t, a, first).Content("status", "completed")
	upload(a, container, "b.txt", "in one").Want(201)

	second := a.Create("/backups", `{}`)
	waitForBackup(t, a, second).Content("status", "completed")

	if n := len(blobs(t, a)); n != 2+2+2+2 {
		t.Errorf("got %d blobs, want 2 files, 2 dumps, 2 manifests and 2 tables of contents", n)
	}

	a.Get("/backups").Want(200)

	if got := values(a.Get("/backups?limit=1&order=desc").Want(200), "uuid"); len(got) != 1 || got[0] != second {
		t.Errorf("got newest %v, want %s", got, second)
	}

	a.Get("/backups?sort=size").Want(400).Field("sort")
	a.Get("/backups").Want(200)

	a.Member(4).Delete("/backups/" + second).Want(403)
	a.Delete("/backups/" + apitest.MissingUUID).Want(404)
	a.Delete("/backups/garbage").Want(400)
	a.Anonymous().Delete("/backups/" + second).Want(401)
	a.Delete("/backups/"+second).Want(200).Content("status", "deleting")
	a.RunMaintenance()
	until(t, "the backup is deleted", func() bool { return a.Get("/backups/"+second).Status == 400 })

	if n := len(blobs(t, a)); n != 2+1+1+1 {
		t.Errorf("got %d blobs, want 2 files, a dump, a manifest and a table of contents: %q", n, blobs(t, a))
	}

	a.Exec(
		`insert into platform.backups (uuid, project_uuid, created_by, created_at) values (gen_random_uuid(), $1, $2, now() + interval '1 hour')`, a.Project, a.User,
	)

	pending := apitest.Value[string](a, `select uuid::text from platform.backups where project_uuid = $1 and status = 'pending'`,
		a.Project)
	a.Delete("/backups/" + pending).Want(409).Code("backup_under_way")

	r := a.Post("/backups/"+first+"/restore", `{"target": "in_place"}`).Want(201).Get("uuid").(string)
	waitForRestore(t, a, r, "completed")
}
