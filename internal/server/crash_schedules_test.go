package server_test

import (
	"context"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/pgtest"
)

// TestKilledSchedule kills the server that runs a schedule. PostgreSQL ends the session, and the
// other server marks the run as failed and goes on with the schedule.
func TestKilledSchedule(t *testing.T) {
	t.Parallel()

	url := pgtest.URL(t)
	settings := []string{"SOCLE_DATABASE_URL=" + url, "SOCLE_SECRET_KEY=kOrtX3Zs9mH1q8vYw2nB7cD5eF4gJ6lP0aSuRiTxVyE=",
		"SOCLE_STORAGE_URL=file://" + t.TempDir()}
	first := launch(t, t.TempDir(), settings...)
	first.ready()

	c := first.newClient()
	schedules := "/projects/" + c.project + "/schedules"
	c.want(t, 201, "POST", schedules, `{"name": "long", "cron": "@yearly", "command": "select pg_sleep(600)"}`)
	c.want(t, 201, "POST", schedules+"/long/run", "")
	status := func() any { return c.send(t, "GET", schedules+"/long", "").content["lastStatus"] }
	eventually(t, "the schedule runs", func() bool { return status() == "running" })

	second := launch(t, t.TempDir(), settings...)
	second.ready()
	first.signal(syscall.SIGKILL)
	first.wait()
	c = c.at(second)

	platform, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer platform.Close(context.Background())

	eventually(t, "the session has ended", func() bool {
		return pgtest.Value[bool](t, platform, `select not exists (select from pg_stat_activity where query like 'select pg_sleep(600)%')`)
	})
	if _, err := platform.Exec(t.Context(), `update platform.schedule_times set next_run_at = now()`); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the run has failed", func() bool { return status() == "failed" })

	c.want(t, 200, "PUT", schedules+"/long", `{"command": "select 1"}`)
	c.want(t, 201, "POST", schedules+"/long/run", "")
	eventually(t, "the other server runs it", func() bool { return status() == "succeeded" })
	c.send(t, "DELETE", "/projects/"+c.project+"?purge=true", "")
}
