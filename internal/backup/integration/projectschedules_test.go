package integration_test

import (
	"fmt"
	"testing"

	"github.com/socle-dev/socle/internal/api/apitest"
	"github.com/socle-dev/socle/internal/pgtest"
)

// TestRestoreSchedules restores a project's schedules in place, where they go on, and as a new
// project, where they are inactive.
func TestRestoreSchedules(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	schedules := func(a *apitest.API) string { return "/projects/" + a.Project + "/schedules" }
	pgtest.Exec(t, connectOwner(t, a), `create table public.log (note text)`)
	a.Post(schedules(a), `{"name": "tick", "cron": "1 second", "command": "insert into log values ('tick')"}`).Want(201)
	a.Post(schedules(a), `{"name": "off", "cron": "@daily", "command": "select 1", "active": false}`).Want(201)
	runs := func(a *apitest.API) func() bool {
		return func() bool { return a.Get(schedules(a)+"/tick").Want(200).Get("lastStatus") == "succeeded" }
	}
	apitest.Until(t, "the schedule runs", runs(a))

	id := makeBackup(t, a)
	a.Delete(schedules(a) + "/tick").Want(200)
	a.Post(schedules(a), `{"name": "later", "cron": "1 second", "command": "insert into log values ('later')"}`).Want(201)
	restore := restoreInPlace(t, a, id)
	apitest.Until(t, "the schedule runs in the restored database", runs(a))
	a.Get(schedules(a)+"/off").Want(200).Content("active", false)
	a.Get(schedules(a) + "/later").Want(404)

	a.Post("/restores/"+restore+"/undo", "").Want(200)
	a.Get(schedules(a) + "/tick").Want(404)
	before := a.Get(schedules(a) + "/later").Want(200).Get("lastRunAt")
	apitest.Until(t, "the schedule runs after the undo", func() bool {
		return a.Get(schedules(a)+"/later").Want(200).Get("lastRunAt") != before
	})

	r := a.Post("/backups/"+id+"/restore", `{"target": "new", "name": "copied"}`).Want(201)
	waitForRestore(t, a, r.Get("uuid").(string), "completed")
	copied := a.WithProject(r.Get("projectUuid").(string))
	copied.Get(schedules(copied)+"/tick").Want(200).
		Content("active", false).Content("lastStatus", nil).Content("nextRunAt", nil)

	copied.Put(schedules(copied)+"/tick", `{"active": true}`).Want(200)
	apitest.Until(t, "the schedule runs once it is active", runs(copied))
	created := copied.Post(schedules(copied), `{"name": "more", "cron": "@daily", "command": "select 1"}`).Want(201)
	if fmt.Sprint(created.Get("id")) != "3" {
		t.Errorf("the next schedule has id %v, want 3", created.Get("id"))
	}
}
