package api_test

import (
	"strings"
	"testing"
	"time"

	"github.com/socle-dev/socle/internal/api/apitest"
)

// oldSchedule creates the backup schedule of a project.
func oldSchedule(t *testing.T, a *apitest.API, _ map[string]string) {
	t.Helper()

	a.Put("/projects/"+a.Project+"/backup-schedule", `{"cron": "0 3 1 1 *"}`).Want(200)
}

func TestBackupSchedule(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	path := "/projects/" + a.Project + "/backup-schedule"
	a.Get(path).Want(404).Code("not_found")
	a.Delete(path).Want(404)
	a.Put(path, `{}`).Want(422).Code("required").Field("cron")
	a.Put(path, `{"keep_last": 1}`).Want(422).Field("cron")

	created := a.Put(path, `{"cron": "30 2 * * *", "timezone": "Europe/Berlin"}`).Want(200).
		Content("projectUuid", a.Project).Content("cron", "30 2 * * *").
		Content("timezone", "Europe/Berlin").Content("keepLast", 3).Content("keepDaily", 7).Content("keepWeekly", 4).
		Content("keepMonthly", 6).
		Content("prove", true).Content("proveEveryDays", 7)

	next := created.Get("nextRunAt").(string)
	at, err := time.Parse(time.RFC3339Nano, next)
	if err != nil {
		t.Fatal(err)
	}

	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}

	if wait := time.Until(at); wait < -time.Minute || wait > 26*time.Hour || at.In(berlin).Format("15:04") != "02:30" {
		t.Errorf("got next backup at %s", at.In(berlin))
	}

	tag := a.Get(path).Want(200).Content("nextRunAt", next).Header.Get("ETag")

	a.Put(path, `{"keep_last": 0, "keep_daily": 30, "prove": false, "prove_every_days": 0}`).Want(200).
		Content("cron", "30 2 * * *").
		Content("timezone", "Europe/Berlin").Content("keepLast", 0).Content("keepDaily", 30).Content("keepWeekly", 4).
		Content("prove", false).Content("proveEveryDays", 0).Content("nextRunAt", next).
		Content("createdAt", created.Get("createdAt"))

	a.Send("PUT", path, `{"keep_last": 1}`, "If-Match: "+tag).Want(412).Code("changed")
	a.Put(path, `{"timezone": "UTC"}`).Want(200).Content("keepDaily", 30)

	if moved := a.Get(path).Want(200).Get("nextRunAt").(string); moved == next ||
		!strings.Contains(moved, "T02:30:00") {
		t.Errorf("got next backup at %s in UTC", moved)
	}

	a.Put(path, `{}`).Want(422).Code("nothing_to_change")

	other := a.WithProject(a.CreateProject("other"))
	other.Get("/projects/" + other.Project + "/backup-schedule").Want(404)
	a.Member(5).Get(path).Want(200)
	a.Member(4).Put(path, `{"keep_last": 1}`).Want(403)
	a.OtherUser().Get(path).Want(404)
	a.Post("/projects/"+a.Project+"/pause", ``).Want(200)
	a.Get(path).Want(409).Code("project_paused")
	a.Put(path, `{}`).Want(409)
	a.Delete(path).Want(409)
	a.Post("/projects/"+a.Project+"/resume", ``).Want(200)
	a.Delete(path).Want(200).Content("cron", "30 2 * * *")
	a.Get(path).Want(404)
}

func TestBackupScheduleRefuses(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	path := "/projects/" + a.Project + "/backup-schedule"
	for body, field := range map[string]string{
		`{"cron": ""}`:                                   "cron",
		`{"cron": "nonsense"}`:                           "cron",
		`{"cron": "0 3 * *"}`:                            "cron",
		`{"cron": "0 0 3 * * *"}`:                        "cron",
		`{"cron": "@daily"}`:                             "cron",
		`{"cron": "60 3 * * *"}`:                         "cron",
		`{"cron": "0 0 30 2 *"}`:                         "cron",
		`{"cron": "0 3 * * *\u0000"}`:                    "cron",
		`{"cron": 3}`:                                    "cron",
		`{"cron": null}`:                                 "cron",
		`{"cron": "` + strings.Repeat("0 ", 101) + `"}`:  "cron",
		`{"cron": "0 3 * * *", "timezone": "Mars"}`:      "timezone",
		`{"cron": "0 3 * * *", "timezone": "Local"}`:     "timezone",
		`{"cron": "0 3 * * *", "timezone": ""}`:          "timezone",
		`{"cron": "0 3 * * *", "timezone": "../UTC"}`:    "timezone",
		`{"cron": "0 3 * * *", "keep_last": -1}`:         "keep_last",
		`{"cron": "0 3 * * *", "keep_daily": 1001}`:      "keep_daily",
		`{"cron": "0 3 * * *", "keep_weekly": 1.5}`:      "keep_weekly",
		`{"cron": "0 3 * * *", "keep_monthly": "6"}`:     "keep_monthly",
		`{"cron": "0 3 * * *", "prove": "yes"}`:          "prove",
		`{"cron": "0 3 * * *", "prove_every_days": 366}`: "prove_every_days",
	} {
		a.Put(path, body).Want(422).Field(field)
	}

	r := a.Put(path, `{"cron": "0 25 * * *"}`).Want(422).Code("invalid_cron")
	if text := string(r.Body); !strings.Contains(text, `has an invalid hour: \"25\" is not a value from 0 to 23`) {
		t.Errorf("got no error description: %s", text)
	}

	a.Put(path, `{`).Want(400)

	for _, method := range []string{"GET", "PUT", "DELETE"} {
		a.Send(method, "/projects/x/backup-schedule", `{}`).Want(400).Field("projectUUID")
		a.Send(method, "/projects/"+apitest.MissingUUID+"/backup-schedule", `{"cron": "0 3 * * *"}`).Want(404)
		a.Anonymous().Send(method, path, `{`).Want(401)
	}

	a.Get(path).Want(404)
}

// TestBackupScheduleConcurrently creates a schedule with many concurrent requests. The result is
// the schedule of one of them.
func TestBackupScheduleConcurrently(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	path := "/projects/" + a.Project + "/backup-schedule"
	wantCounts(t, concurrently(8, func(i int) *apitest.Reply {
		if i%2 == 0 {
			return a.Put(path, `{"cron": "0 3 * * *", "timezone": "Asia/Tokyo"}`)
		}
		return a.Put(path, `{"cron": "0 15 * * *", "timezone": "America/New_York"}`)
	}), map[int]int{200: 8})

	r := a.Get(path).Want(200)
	if both := r.Get("cron").(string) + r.Get("timezone").(string); both != "0 3 * * *Asia/Tokyo" &&
		both != "0 15 * * *America/New_York" {
		t.Errorf("got %s", r.Body)
	}

	if hour := r.Get("nextRunAt").(string)[11:16]; hour != "18:00" && hour != "19:00" && hour != "20:00" {
		t.Errorf("got %s", r.Body)
	}
}
