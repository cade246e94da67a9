package integration_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/api/apitest"
)

// makeOverdue makes the scheduled backup of a project overdue.
func makeOverdue(a *apitest.API) {
	a.Exec(`update platform.backup_schedules set next_run_at = now() - interval '3 days' where project_uuid = $1`,
		a.Project)
}

// putSchedule creates or updates the backup schedule of a project, and returns it.
func putSchedule(a *apitest.API, body string) *apitest.Reply {
	return a.Put("/projects/"+a.Project+"/backup-schedule", body).Want(200)
}

// scheduledStatuses returns the statuses of the scheduled backups of a project, oldest first.
func scheduledStatuses(t *testing.T, a *apitest.API) string {
	t.Helper()

	return apitest.Value[string](a,
		`select coalesce(string_agg(status, ' ' order by created_at), '') from platform.backups where scheduled and project_uuid = $1`, a.Project)
}

// isDue reports whether a scheduled backup of the project is due.
func isDue(t *testing.T, a *apitest.API) bool {
	t.Helper()

	return apitest.Value[string](a,
		`select (next_run_at <= now())::text from platform.backup_schedules where project_uuid = $1`,
		a.Project) == "true"
}

func runCleanUp(t *testing.T, servers ...*apitest.API) {
	t.Helper()

	var wg sync.WaitGroup
	for _, a := range servers {
		wg.Go(func() {
			if err := a.Server.Services().Queue.CleanUp(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}

	wg.Wait()
}

// TestDueBackups has two servers look repeatedly for backups that have been due for days: each
// active project gets one, paused and deleted ones none.
func TestDueBackups(t *testing.T) {
	t.Parallel()

	a := apitest.New(t)
	c := a.Config
	c.DataDir = t.TempDir()

	replica := apitest.Start(t, c)

	projects := map[string]*apitest.API{
		"first": a, "second": a.WithProject(a.CreateProject("second")),
		"paused": a.WithProject(a.CreateProject("paused")), "deleted": a.WithProject(a.CreateProject("deleted")),
	}
	for _, p := range projects {
		putSchedule(p, `{"cron": "0 */6 * * *", "prove": false}`)
	}

	a.Post("/projects/"+projects["paused"].Project+"/pause", ``).Want(200)
	a.Delete("/projects/" + projects["deleted"].Project).Want(200)

	for _, p := range projects {
		makeOverdue(p)
	}

	runCleanUp(t, a, replica, a, replica, a, replica, a, replica)

	for name, want := range map[string]string{
		"first": "completed", "second": "completed", "paused": "", "deleted": "",
	} {
		p := projects[name]
		if want != "" {
			waitUntil(t, name+" is backed up", func() bool { return strings.Contains(scheduledStatuses(t, p), want) })
		}

		runCleanUp(t, a, replica)

		if got := scheduledStatuses(t, p); got != want {
			t.Errorf("%s: got backups %q, want %q", name, got, want)
		}
		if got := isDue(t, p); got != (want == "") {
			t.Errorf("%s: due is %v", name, got)
		}
	}

	id := apitest.Value[string](a, `select uuid::text from platform.backups where project_uuid = $1`, a.Project)
	if made := a.Get("/backups/" + id).Want(200); made.Metadata("scheduled") != true {
		t.Errorf("scheduled is not true: %s", made.Body)
	}

	noted := apitest.Value[string](a,
		`select count(*)::text from `+apitest.AuditLog+` where entry::jsonb @> jsonb_build_object('action', 'createDueBackup', 'project', $1::text, 'created', $2::text)`, a.Project, id)
	if noted != "1" {
		t.Errorf("the backup has %s entries in the audit log, want 1", noted)
	}

	a.Post("/projects/"+projects["paused"].Project+"/resume", ``).Want(200)
	runCleanUp(t, a, replica)
	waitUntil(t, "the missed backup is made", func() bool {
		return scheduledStatuses(t, projects["paused"]) == "completed"
	})
}

// TestDueBackupWaits makes a backup due during another backup and during a restore.
func TestDueBackupWaits(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	a.CreateTable("orders")
	putSchedule(a, `{"cron": "0 3 * * *", "prove": false}`)

	holder := a.ConnectProject()
	if _, err := holder.Exec(t.Context(), "begin; lock table public.orders in access exclusive mode"); err != nil {
		t.Fatal(err)
	}

	asked := startBackup(t, a)
	makeOverdue(a)
	runCleanUp(t, a)

	if got := scheduledStatuses(t, a); got != "" || !isDue(t, a) {
		t.Errorf("during another backup: got backups %q", got)
	}

	restore := uuid.Must(uuid.NewV7())
	a.Exec(`insert into platform.restores (uuid, backup_uuid, backup_project_uuid, project_uuid, target, created_by, status, heartbeat_at)
		values ($1, $2, $3, $3, 'in_place', $4, 'running', now() + interval '1 hour')`, restore, asked,
		a.Project, a.User)

	if _, err := holder.Exec(t.Context(), "rollback"); err != nil {
		t.Fatal(err)
	}

	waitForBackup(t, a, asked, "completed")
	runCleanUp(t, a)

	if got := scheduledStatuses(t, a); got != "" || !isDue(t, a) {
		t.Errorf("during a restore: got backups %q", got)
	}

	a.Exec(`delete from platform.restores where uuid = $1`, restore)
	runCleanUp(t, a)
	waitUntil(t, "the backup is made", func() bool { return scheduledStatuses(t, a) == "completed" })

	if isDue(t, a) {
		t.Error("the backup is still due")
	}
}

// insertBackup inserts a backup from a number of days ago, without stored data.
func insertBackup(a *apitest.API, days int, scheduled bool, status string) string {
	id := uuid.Must(uuid.NewV7()).String()
	a.Exec(`insert into platform.backups (uuid, project_uuid, created_by, status, created_at, started_at, completed_at, size, scheduled)
		select $1, $2, $3, $4, at, at, at + interval '1 minute', 1, $6 from (select now() - make_interval(days => $5) as at) t`, id, a.Project, a.User, status, days, scheduled)

	return id
}

// existing returns the names of the backups that exist.
func existing(t *testing.T, a *apitest.API, names map[string]string) map[string]bool {
	t.Helper()

	found := map[string]bool{}
	for name, id := range names {
		if r := a.Get("/backups/" + id); r.Status == 200 && r.Get("status") != "deleting" {
			found[name] = true
		}
	}

	return found
}

// TestRemoveUnkept makes a backup, after which the retention rules remove others. Backups that were
// requested, are being restored, or were the last to be proven, stay.
func TestRemoveUnkept(t *testing.T) {
	t.Parallel()

	a := apitest.New(t)
	putSchedule(
		a, `{"cron": "0 3 * * *", "keep_last": 2, "keep_daily": 3, "keep_weekly": 0, "keep_monthly": 0, "prove": false}`,
	)

	names := map[string]string{}
	for days := 2; days < 10; days++ {
		names[fmt.Sprint(days)] = insertBackup(a, days, true, "completed")
	}

	names["asked for"] = insertBackup(a, 5, false, "completed")
	names["failed"], names["failed long ago"], names["asked for and failed"] = insertBackup(a, 20, true,
		"failed"), insertBackup(a, 31,
		true, "failed"), insertBackup(a, 31, false, "failed")

	a.Exec(`update platform.backups set proven_at = now() - interval '1 day' where uuid = any($1)`,
		[]string{names["6"], names["8"]})
	a.Exec(`update platform.backups set proof_error = 'it is damaged' where uuid = $1`, names["6"])
	a.Exec(`insert into platform.restores (uuid, backup_uuid, backup_project_uuid, project_uuid, target, created_by, status, heartbeat_at)
		values ($1, $2, $3, $4, 'new', $5, 'running', now() + interval '1 hour')`, uuid.Must(uuid.NewV7()), names["7"],
		a.Project, uuid.Must(uuid.NewV7()), a.User)

	other := a.WithProject(a.CreateProject("other")) // unaffected by the retention rules of another project
	untouched := map[string]string{"theirs": insertBackup(other, 9, true, "completed")}

	makeOverdue(a)
	runCleanUp(t, a)
	waitUntil(t, "the backup is made, and others are removed", func() bool { return !existing(t, a, names)["9"] })

	want := map[string]bool{
		"2": true, "3": true, "7": true, "8": true, "asked for": true, "failed": true, "asked for and failed": true,
	}
	if diff := cmp.Diff(want, existing(t, a, names)); diff != "" {
		t.Errorf("remaining backups (-want +got):\n%s", diff)
	}

	runCleanUp(t, a)
	a.Get("/backups/"+names["9"]).Want(200).Content("status", "deleting") // it may be read concurrently
	a.Delete("/backups/" + names["5"]).Want(200)
	a.Exec(`update platform.backups set bytes_until = now() where uuid = $1`, names["9"])
	runCleanUp(t, a)
	a.Get("/backups/" + names["9"]).Want(400).Code("not_found")
	a.Get("/backups/" + names["5"]).Want(400)
	a.Get("/backups/" + names["4"]).Want(200)

	if !existing(t, other, untouched)["theirs"] {
		t.Error("another project's backup was removed")
	}
	if noted := apitest.Value[string](a,
		`select count(*)::text from `+apitest.AuditLog+` where entry::jsonb ->> 'action' = 'removeUnkeptBackups'`); noted !=
		"1" {
		t.Errorf("the removal has %s entries in the audit log, want 1", noted)
	}

	putSchedule(a, `{"keep_last": 0, "keep_daily": 0}`)
	makeOverdue(a)
	runCleanUp(t, a)
	waitUntil(t, "another backup is made", func() bool {
		return strings.Count(scheduledStatuses(t, a), "completed") == 6
	})
	a.Delete("/projects/" + a.Project + "/backup-schedule").Want(200)
	waitForBackup(t, a, startBackup(t, a), "completed")

	if diff := cmp.Diff(want, existing(t, a, names)); diff != "" {
		t.Errorf("without rules, and without a schedule (-want +got):\n%s", diff)
	}
}

// TestSharedContents removes a backup that shares contents with a kept one, which still restores.
func TestSharedContents(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	container := a.Create("/containers", `{"name": "reports"}`)
	upload(t, a, container, "shared.txt", "in both")

	gone := upload(t, a, container, "gone.txt", "in the first one")
	putSchedule(a, `{"cron": "0 3 * * *", "keep_last": 1, "keep_daily": 0, "keep_weekly": 0, "keep_monthly": 0}`)
	makeOverdue(a)
	runCleanUp(t, a)
	waitUntil(t, "the first backup is proven", func() bool {
		return apitest.Value[string](a, `select count(proven_at)::text from platform.backups where project_uuid = $1`,
			a.Project) == "1"
	})

	first := apitest.Value[string](a, `select uuid::text from platform.backups where project_uuid = $1`, a.Project)
	a.Delete("/containers/" + container + "/files/" + gone).Want(200)

	if n := len(storedFiles(t, a)); n != 4 { // dump, manifest, two contents
		t.Fatalf("got %d blobs of the first backup, want 4", n)
	}

	makeOverdue(a)
	runCleanUp(t, a)
	waitUntil(t, "the first backup is removed after the proof of the second", func() bool {
		return a.Get("/backups/"+first).Want(200).Get("status") == "deleting"
	})

	if n := len(storedFiles(t, a)); n != 6 {
		t.Errorf("got %d blobs of both backups, want 6", n)
	}

	a.Exec(`update platform.backups set bytes_until = now() where uuid = $1`, first)
	runCleanUp(t, a)
	a.Get("/backups/" + first).Want(400)

	second := apitest.Value[string](a, `select uuid::text from platform.backups where project_uuid = $1`, a.Project)
	if a.Get("/backups/"+second).Want(200).Metadata("provenAt") == nil {
		t.Error("the last proven backup was removed")
	}

	if n := len(storedFiles(t, a)); n != 3 {
		t.Errorf("got %d blobs of the second backup, want 3: %q", n, storedFiles(t, a))
	}

	restoreInPlace(t, a, second)
	a.Get("/containers/" + container + "/files").Want(200)

	if got := query(t, a, `select string_agg(full_file_name, ',') from storage.files`); got != "shared.txt" {
		t.Errorf("got restored files %s, want shared.txt", got)
	}
}

// TestProofsBySchedule tests a schedule that proves backups not when they are made but after a
// number of days.
func TestProofsBySchedule(t *testing.T) {
	t.Parallel()

	a := apitest.New(t)
	putSchedule(a, `{"cron": "0 3 * * *", "prove": false, "prove_every_days": 7}`)

	over := func() string {
		t.Helper()

		id := makeBackup(t, a)
		waitUntil(t, "the job is completed", func() bool {
			return apitest.Value[string](a,
				`select count(*)::text from river.river_job where args ->> 'backup' = $1 and kind = 'backup' and state = 'completed'`, id) == "1"
		})

		return id
	}

	proofs := func(id string) string {
		return apitest.Value[string](a,
			`select count(*)::text from river.river_job where args ->> 'backup' = $1 and kind = 'prove'`, id)
	}

	sweep := func() {
		t.Helper()

		if err := a.Server.Services().Queue.Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
	}

	first := over()
	if got := proofs(first); got != "0" {
		t.Errorf("got %s proofs of a backup that the schedule does not prove", got)
	}

	sweep()
	waitUntil(t, "the first backup is proven since none has been", func() bool {
		return a.Get("/backups/"+first).Want(200).Metadata("provenAt") != nil
	})

	second := over()
	sweep()

	if got := proofs(second); got != "0" {
		t.Errorf("got %s proofs soon after the previous proof", got)
	}

	a.Exec(`update platform.backups set proven_at = now() - interval '8 days' where uuid = $1`, first)
	putSchedule(a, `{"prove_every_days": 0}`)
	sweep()

	if got := proofs(second); got != "0" {
		t.Errorf("got %s proofs although proofs are disabled", got)
	}

	putSchedule(a, `{"prove_every_days": 7}`)
	sweep()
	waitUntil(t, "the newest backup is proven after a week", func() bool {
		return a.Get("/backups/"+second).Want(200).Metadata("provenAt") != nil
	})

	if got := a.Get("/projects/" + a.Project + "/statistics").Want(200).Get("backups.lastProvenAt"); got == nil {
		t.Error("the statistics lack lastProvenAt")
	}

	putSchedule(a, `{"prove": true}`)
	third := over()
	waitUntil(t, "each backup is proven", func() bool {
		return a.Get("/backups/"+third).Want(200).Metadata("provenAt") != nil
	})
}

// TestScheduleSurvives tests that changes of a schedule keep a due backup due unless they change
// the times, and that a sweep corrects a next run that a clock ahead has computed.
func TestScheduleSurvives(t *testing.T) {
	t.Parallel()

	a := apitest.New(t)
	putSchedule(a, `{"cron": "0 3 * * *", "prove": false}`)
	a.Post("/projects/"+a.Project+"/pause", ``).Want(200)
	makeOverdue(a)
	a.Post("/projects/"+a.Project+"/resume", ``).Want(200)
	putSchedule(a, `{"keep_last": 9}`)
	runCleanUp(t, a)
	waitUntil(t, "the backup is made", func() bool { return strings.Count(scheduledStatuses(t, a), "completed") == 1 })

	next, err := time.Parse(time.RFC3339Nano, a.Get("/projects/"+a.Project+"/backup-schedule").Want(200).
		Get("nextRunAt").(string))
	if err != nil || next.Before(time.Now()) || next.After(time.Now().Add(24*time.Hour)) {
		t.Errorf("got next run %s (%v)", next, err)
	}

	// A clock that was ahead computed the next run.
	counted := putSchedule(a, `{"cron": "0 3 29 2 *"}`).Get("nextRunAt")
	a.Exec(`update platform.backup_schedules set next_run_at = next_run_at + interval '1 year'`)

	if err := a.Server.Services().Queue.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}

	if got := a.Get("/projects/" + a.Project + "/backup-schedule").Want(200).Get("nextRunAt"); got != counted {
		t.Errorf("got next run %v, want %v", got, counted)
	}
}

// TestMadeUpBackups has a server die during a scheduled backup: another one is made at once, but
// not if several have ended that way.
func TestMadeUpBackups(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	putSchedule(a, `{"cron": "0 3 1 1 *", "prove": false}`)
	abandon := func() {
		t.Helper()

		a.Exec(`insert into platform.backups (uuid, project_uuid, created_by, scheduled, status, started_at, heartbeat_at)
			values ($1, $2, $3, true, 'running', now() - interval '1 minute', now() - interval '1 minute')`,
			uuid.Must(uuid.NewV7()), a.Project, a.User)
		cleanUpTwice(t, a)
	}

	abandon()
	waitUntil(t, "a backup is made instead", func() bool {
		runCleanUp(t, a)
		return scheduledStatuses(t, a) == "failed completed"
	})
	if isDue(t, a) {
		t.Error("the next backup is due after the one that was made")
	}

	a.Exec(`insert into platform.backups (uuid, project_uuid, created_by, scheduled, status, completed_at, error)
		select gen_random_uuid(), $1, $2, true, 'failed', now(), 'x' from generate_series(1, 3)`, a.Project, a.User)
	abandon()
	waitUntil(t, "the last one has failed", func() bool {
		return !strings.Contains(scheduledStatuses(t, a), "running")
	})
	if isDue(t, a) {
		t.Error("a backup is due although several have ended their server")
	}
}

// TestLostJob has an outage keep a server from learning that it took the job of a backup: another
// job makes it.
func TestLostJob(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	id := uuid.Must(uuid.NewV7())
	a.Exec(`insert into river.river_job (kind, queue, args, state, attempt, max_attempts, attempted_at, attempted_by)
		values ('backup', 'backups', jsonb_build_object('backup', $1::text, 'project', $2::text), 'running', 1, 1,
			now() - interval '1 minute', array['socle-lost'])`, id.String(), a.Project)
	a.Exec(`insert into platform.backups (uuid, project_uuid, created_by, created_at)
		values ($1, $2, $3, now() - interval '1 minute')`, id, a.Project, a.User)

	runCleanUp(t, a)
	waitForBackup(t, a, id.String(), "completed")
}
