package server_test

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"

	"github.com/socle-dev/socle/internal/api/apitest"
	"github.com/socle-dev/socle/internal/config"
)

// TestBackupMetrics checks the ages of backups of projects with a schedule, and that the other
// metrics remain without the database.
func TestBackupMetrics(t *testing.T) {
	t.Parallel()

	// unique among the tests
	address := fmt.Sprintf("127.%d.%d.%d:9090", 1+rand.IntN(200), rand.IntN(250), 1+rand.IntN(250))
	a := apitest.New(t, func(c *config.Config) { c.MetricsAddr = address })

	shown := func() string {
		t.Helper()

		r, err := http.NewRequestWithContext(t.Context(), "GET", "http://"+address+"/metrics", nil)
		if err != nil {
			t.Fatal(err)
		}

		res, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()

		text, err := io.ReadAll(res.Body)
		if err != nil || res.StatusCode != 200 ||
			!strings.Contains(string(text), "socle_http_request_duration_seconds") {
			t.Fatalf("got %d, %v\n%s", res.StatusCode, err, text)
		}

		return string(text)
	}
	if text := shown(); strings.Contains(text, "socle_backup_") {
		t.Errorf("a project without a schedule is shown:\n%s", text)
	}

	a.Get("/tables").Want(200)

	for _, want := range []string{
		`socle_build_info{go="go1.`, `socle_database_connections_max{pool="platform"} 20`, "socle_project_connections ",
		"socle_project_connections_waiting 0", "socle_open_projects 1", "socle_watchdog_alive 1",
		"socle_watchdog_terminated_sessions_total 0", `socle_memory_budget_bytes{budget="requests"} 0`,
		`socle_share_capacity{pool="row_responses"} 1.34217728e+08`, `socle_share_capacity{pool="mails"} 8`,
		`socle_share_in_use{pool="password_hashes"} 0`, `socle_share_waiting{pool="project_connections"} 0`,
		`socle_share_refused_total{pool="outbound_requests"} 0`, `socle_share_revoked_total{pool="webhook_batches"} 0`,
		`socle_jobs{state="failed"} 0`, "socle_storage_free_bytes ",
	} {
		if text := shown(); !strings.Contains(text, "\n"+want) {
			t.Errorf("%s is missing:\n%s", want, text)
		}
	}

	res, err := http.Get("http://" + address + "/debug/pprof/heap?debug=1")
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()

	if res.StatusCode != http.StatusOK {
		t.Errorf("heap profile: got %s", res.Status)
	}

	checkFraming(t, address)
	a.Put("/projects/"+a.Project+"/backup-schedule", `{"cron": "0 0 1 1 *"}`).Want(200)

	metric := func(name, value string) string {
		return "\nsocle_backup_" + name + `_timestamp_seconds{project="` + a.Project + `"} ` + value + "\n"
	}

	a.Exec(`update platform.backup_schedules set next_run_at = to_timestamp(2000000000)`)
	text := shown()
	for _, want := range []string{metric("next", "2e+09"), metric("last_completed", "0"), metric("last_proven", "0")} {
		if !strings.Contains(text, want) {
			t.Errorf("%s is missing:\n%s", want, text)
		}
	}

	a.Exec(`insert into platform.backups (uuid, project_uuid, created_by, status, completed_at, proven_at)
		select gen_random_uuid(), $1, $2, status, to_timestamp(n), to_timestamp(n + 100)
		from (values ('completed', 1500000000), ('completed', 1600000000), ('failed', 1700000000)) v (status, n)`,
		a.Project, a.User)

	text = shown()
	for _, want := range []string{metric("last_completed", "1.6e+09"), metric("last_proven", "1.6000001e+09")} {
		if !strings.Contains(text, want) {
			t.Errorf("%s is missing:\n%s", want, text)
		}
	}

	a.Post("/projects/"+a.Project+"/pause", ``).Want(200)

	if text := shown(); strings.Contains(text, "socle_backup_next") {
		t.Errorf("a paused project is shown:\n%s", text)
	}

	a.Exec(`alter table platform.backup_schedules rename to away`)
	shown()

	if !strings.Contains(a.Log.String(), "could not read backup metrics") {
		t.Error("the log does not report the failed query")
	}

	a.Exec(`alter table platform.away rename to backup_schedules`)
}
