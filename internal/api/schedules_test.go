package api_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/socle-dev/socle/internal/api/apitest"
)

// TestSchedules makes schedules by the API and by SQL, which have one list.
func TestSchedules(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	path := "/projects/" + a.Project + "/schedules"
	asOwner(t, a, `create table public.log (note text)`)

	created := a.Post(path, `{"name": "nightly", "cron": "0 3 * * *", "timezone": "Europe/Berlin",
		"command": "insert into log values ('api')", "timeout_seconds": 30}`).Want(201).
		Content("name", "nightly").Content("overlap", "skip").Content("active", true).Content("endpoint", nil)
	if next := created.Metadata("nextRuns").([]any); len(next) != 3 || next[0] != created.Get("nextRunAt") {
		t.Errorf("got %v and next %v", next, created.Get("nextRunAt"))
	}

	a.Post("/sql", sqlBody(`select cron.schedule('by SQL', '1 second', $$insert into log values ('sql')$$)`, writing)).Want(200)
	until(t, "the schedule by SQL runs", func() bool {
		return a.Get(path+"/by%20SQL").Want(200).Get("lastStatus") == "succeeded"
	})
	a.Get(path+"?sort=name").Want(200).Content("0.name", "by SQL").Content("1.name", "nightly")
	a.Put(path+"/by%20SQL", `{"active": false}`).Want(200).Content("nextRunAt", nil)
	if jobs := query[string](t, a, `select string_agg(jobname || active || timezone, ', ' order by jobname) from cron.job`); jobs !=
		"by SQLfalseUTC, nightlytrueEurope/Berlin" {
		t.Errorf("SQL has the jobs %s", jobs)
	}

	run := a.Post(path+"/nightly/run", "").Want(201).Content("status", "queued").Content("scheduledAt", nil)
	until(t, "the requested run ends", func() bool {
		return a.Get(path+"/nightly/runs").Want(200).Content("0.id", run.Get("id")).Get("0.status") == "succeeded"
	})
	if n := query[int](t, a, `select count(*) from public.log where note = 'api'`); n != 1 {
		t.Errorf("the requested run ran %d times", n)
	}

	id := fmt.Sprint(created.Get("id"))
	a.Get(path+"/"+id).Want(200).Content("name", "nightly")
	endpoint := a.Put(path+"/nightly", `{"endpoint": "https://example.com/hook"}`).Want(200).Content("command", "")
	if secret := endpoint.Metadata("secret").(string); !strings.HasPrefix(secret, "whsec_") {
		t.Errorf("got secret %s", secret)
	}
	a.Put(path+"/nightly", `{"command": "select 1", "name": "daily"}`).Want(200).
		Content("endpoint", nil).Content("name", "daily")
	a.Delete(path+"/daily").Want(200).Content("name", "daily")
	a.Get(path + "/daily").Want(404)
}

// TestScheduleRuns pages through the runs of a schedule.
func TestScheduleRuns(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	path := "/projects/" + a.Project + "/schedules"
	id := a.Post(path, `{"name": "often", "cron": "@yearly", "command": "select 1", "active": false}`).Want(201).Get("id")
	execute(t, a, fmt.Sprintf(`insert into cron.job_run_details (jobid, status, start_time, end_time)
		select %v, 'succeeded', now(), now() from generate_series(1, 5)`, id))

	first := a.Get(path + "/often/runs?limit=3").Want(200)
	next, _ := first.Metadata("next").(string)
	if got := strings.Join(values(first, "id"), " "); got != "5 4 3" || next != "3" {
		t.Fatalf("got runs %s, next %s", got, next)
	}
	last := a.Get(path + "/often/runs?limit=3&cursor=" + next).Want(200)
	if got := strings.Join(values(last, "id"), " "); got != "2 1" || last.Metadata("next") != nil {
		t.Errorf("got runs %s, next %v", got, last.Metadata("next"))
	}

	a.Get(path + "/often/runs?cursor=x").Want(400).Field("cursor")
	a.Get(path + "/never/runs").Want(404)
}

func TestScheduleRefusals(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	path := "/projects/" + a.Project + "/schedules"
	a.Post(path, `{"name": "taken", "cron": "@yearly", "command": "select 1", "active": false}`).Want(201)

	body := func(member, value string) string {
		all := map[string]string{"name": `"new"`, "cron": `"@daily"`, "command": `"select 1"`}
		all[member] = value

		var text []string
		for name, value := range all {
			text = append(text, `"`+name+`": `+value)
		}

		return "{" + strings.Join(text, ", ") + "}"
	}
	a.Post(path, `{`).Want(400)
	a.Post(path, body("name", `"taken"`)).Want(409).Field("name")
	for _, test := range []struct{ member, value, field string }{
		{"cron", `"0 0 30 2 *"`, "cron"}, {"cron", `"60 * * * *"`, "cron"}, {"cron", `"@reboot"`, "cron"},
		{"timezone", `"Mars/Olympus"`, "timezone"}, {"timeout_seconds", `601`, "timeout_seconds"},
		{"overlap", `"both"`, "overlap"}, {"endpoint", `"https://example.com"`, "command"},
		{"command", `" ; "`, "command"},
		{"command", `"\u0000"`, "command"}, {"name", `""`, "name"},
	} {
		a.Post(path, body(test.member, test.value)).Want(422).Field(test.field)
	}
	a.Post(path, `{"name": "new", "cron": "@daily"}`).Want(422).Field("command")
	a.Post(path, `{"name": "new", "cron": "@daily", "endpoint": "ftp://example.com"}`).Want(422).Field("endpoint")
	a.Put(path+"/taken", `{}`).Want(422)
	a.Put(path+"/taken", `{"cron": "x"}`).Want(422).Field("cron")
	a.Put(path+"/none", `{"cron": "@daily"}`).Want(404)
	a.Delete(path + "/none").Want(404)
	a.Post(path+"/none/run", "").Want(404)
	a.Get(path + "?sort=command").Want(400).Field("sort")

	asOwner(t, a, `select cron.schedule('job ' || n, '@yearly', 'select 1') from generate_series(1, 199) n`)
	a.Post(path, body("name", `"one more"`)).Want(422).Code("quota_exceeded")
}

// TestOwnScheduleSchema has a project with a schema cron of its own.
func TestOwnScheduleSchema(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	execute(t, a, `drop schema cron cascade`)
	asOwner(t, a, `create schema cron; create table cron.job (id int)`)

	path := "/projects/" + a.Project + "/schedules"
	a.Get(path).Want(409).Code("schema_taken")
	a.Post(path, `{"name": "a", "cron": "@daily", "command": "select 1"}`).Want(409).Code("schema_taken")
	for _, request := range []string{"GET /a", "PUT /a", "DELETE /a", "POST /a/run", "GET /a/runs"} {
		method, at, _ := strings.Cut(request, " ")
		body := map[bool]string{true: `{"cron": "@daily"}`}[method == "PUT"]
		a.Send(method, path+at, body).Want(409).Code("schema_taken")
	}
}
