package schedule_test

import (
	"encoding/json"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/outbound"
	"github.com/socle-dev/socle/internal/pgcluster"
	"github.com/socle-dev/socle/internal/pgtest"
	"github.com/socle-dev/socle/internal/projectdb/projectdbtest"
	"github.com/socle-dev/socle/internal/schedule"
	"github.com/socle-dev/socle/internal/timetable"
)

// TestRuns runs a schedule that SQL has made, until SQL unmakes it.
func TestRuns(t *testing.T) {
	t.Parallel()

	w := newWorld(t)
	w.serve(w.newService())

	w.exec(`select cron.schedule('tick', '1 second', 'insert into log (note) values (session_user = current_user)')`)
	if !w.pending() {
		t.Fatal("SQL has left no work")
	}
	w.plan()
	if w.pending() {
		t.Error("the work is still pending after it was done")
	}

	pgtest.Eventually(t, "it runs twice", func() bool { return len(w.logged()) > 1 })
	if got := w.awaitRun("tick"); got != "succeeded: INSERT 0 1" {
		t.Errorf("got %q", got)
	}

	w.exec(`update cron.job set active = false`)
	w.plan()
	pgtest.Eventually(t, "no run is in progress", func() bool {
		return pgtest.Value[bool](t, w.trusted, `select not exists (select from cron.job_run_details where end_time is null)`)
	})
	// The runs name the time they were due: no time has two.
	if n := pgtest.Value[int](t, w.trusted, `select count(*) - count(distinct scheduled_at) from cron.job_run_details`); n != 0 {
		t.Errorf("%d due times had more than one run", n)
	}
}

// TestOnce has three servers: each due time has one run.
func TestOnce(t *testing.T) {
	t.Parallel()

	w := newWorld(t)
	for range 3 {
		w.serve(w.newService())
	}

	for _, name := range []string{"a", "b", "c"} {
		w.create(name, `insert into log (note) values ('`+name+`')`)
	}
	pgtest.Eventually(t, "they run", func() bool { return len(w.logged()) >= 12 })
	w.exec(`update cron.job set active = false`)
	pgtest.Eventually(t, "no run is in progress", func() bool {
		return pgtest.Value[bool](t, w.trusted, `select not exists (select from cron.job_run_details where end_time is null)`)
	})

	const count = `select count(*) filter (where status <> 'succeeded') || ' failed, ' || count(*) - count(distinct (jobid, scheduled_at)) || ' twice, '
		|| count(*) - (select count(*) from public.log) || ' without effect' from cron.job_run_details where status <> 'skipped'`
	if got := pgtest.Value[string](t, w.trusted, count); got != "0 failed, 0 twice, 0 without effect" {
		t.Errorf("got %s", got)
	}
}

// TestResults runs commands once and checks what the history says.
func TestResults(t *testing.T) {
	t.Parallel()

	w := newWorld(t)
	w.exec(`create procedure public.commits() language plpgsql as $$ begin
			insert into log (note) values ('first'); commit; insert into log (note) values ('second'); rollback; end $$;
		create function public.fail() returns int language plpgsql as $$ begin raise 'no books' using detail = 'none', hint = 'buy some'; end $$;
		create temporary table secret (a int)`)

	tests := map[string]struct{ command, want string }{
		"query":     {`select from generate_series(1, 3)`, "succeeded: 3 rows"},
		"row":       {`select 1`, "succeeded: 1 row"},
		"several":   {`insert into log (note) values ('a'); delete from log where note = 'a'`, "succeeded: DELETE 1"},
		"vacuum":    {`vacuum log`, "succeeded: VACUUM"},
		"own":       {`begin; insert into log (note) values ('own'); commit`, "succeeded: COMMIT"},
		"procedure": {`call commits()`, "succeeded: CALL"},
		"path":      {`select 1 from log limit 1; select 1 from public.log where current_schemas(false) <> '{public,extensions}'`, "succeeded: 0 rows"},
		"atomic":    {`insert into log (note) values ('never'); select 1 / 0`, "failed: ERROR: division by zero"},
		"raised": {`select fail()`, "failed: ERROR: no books\nDETAIL: none\nHINT: buy some\n" +
			"CONTEXT: PL/pgSQL function fail() line 1 at RAISE"},
		"open": {`begin; insert into log (note) values ('never')`, "failed: command must end the transaction that it begins"},
		"copy": {`copy log to stdout`, "failed: command must not contain COPY"},
		"slow": {`select pg_sleep(60)`, "failed: the run took longer than 1s and was canceled"},
		// The login is the owner's, and no other one is behind it.
		"role":   {`reset session authorization; reset role; create role stronger`, "failed: ERROR: permission denied to create role"},
		"closed": {`select * from socle.settings`, `failed: ERROR: relation "socle.settings" does not exist`},
		"state":  {`select count(*) from secret`, `failed: ERROR: relation "secret" does not exist`},
	}
	for name, test := range tests {
		w.create(name, test.command, func(n *schedule.Values) {
			n.Active, n.TimeoutSeconds = new(false), new(map[bool]int{true: 1, false: 60}[name == "slow"])
		})
		if _, err := w.service.Request(t.Context(), w.project, name); err != nil {
			t.Fatal(err)
		}
	}

	w.serve(w.newService())
	for name, test := range tests {
		if got := w.awaitRun(name); !strings.HasPrefix(got, test.want) {
			t.Errorf("%s: got %q, want %q", test.command, got, test.want)
		}
	}
	if logged := w.logged(); slices.Contains(logged, "never") || slices.Contains(logged, "second") ||
		!slices.Contains(logged, "first") || !slices.Contains(logged, "own") {
		t.Errorf("got %v in the log", logged)
	}
}

// TestOverlap has a schedule with each policy due while its run is in progress.
func TestOverlap(t *testing.T) {
	t.Parallel()

	w := newWorld(t)
	const wait = `select pg_advisory_lock(%s); insert into log (note) values ('%s')`
	pgtest.Exec(t, w.owner, `select pg_advisory_lock(1), pg_advisory_lock(2)`)
	yearly := func(overlap string) func(*schedule.Values) {
		return func(n *schedule.Values) { n.Cron, n.Overlap = new("@yearly"), &overlap }
	}
	w.create("skips", strings.NewReplacer("%s", "1").Replace(wait), yearly(schedule.Skip))
	w.create("queues", strings.NewReplacer("%s", "2").Replace(wait), yearly(schedule.Queue))
	w.serve(w.newService())

	due := func(name string) { w.setDue(name, "now() - interval '1 second'") }
	// A yearly job would be missed, so it becomes one that has just been due.
	minutely := func(name string) {
		pgtest.Exec(t, w.trusted, `update cron.job set schedule = '* * * * *' where jobname = '`+name+`'`)
		due(name)
	}
	for _, name := range []string{"skips", "queues"} {
		minutely(name)
		pgtest.Eventually(t, name+" runs", func() bool { return slices.Equal(w.runs(name), []string{"running"}) })
	}

	for range 2 {
		due("skips")
		due("queues")
		pgtest.Eventually(t, "the run is skipped", func() bool {
			return pgtest.Value[bool](t, w.trusted, `select next_run_at > now() from cron.job where jobname = 'skips'`)
		})
	}
	want := []string{"running", "skipped: the run before was still in progress"}
	if got := w.runs("skips"); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if n := pgtest.Value[int](t, w.trusted, `select occurrences from cron.job_run_details where status = 'skipped'`); n != 2 {
		t.Errorf("got %d skipped due times, want 2", n)
	}
	if got := w.runs("queues"); !slices.Equal(got, []string{"running"}) {
		t.Errorf("got %q, want one run", got)
	}

	pgtest.Exec(t, w.owner, `select pg_advisory_unlock_all()`)
	pgtest.Eventually(t, "the queued run follows", func() bool {
		return pgtest.Value[int](t, w.trusted, `select count(*) from cron.job_run_details r join cron.job j using (jobid)
			where j.jobname = 'queues' and r.status = 'succeeded'`) == 2
	})
}

// TestLate has schedules due while no server ran.
func TestLate(t *testing.T) {
	t.Parallel()

	w := newWorld(t)
	log := func(n *schedule.Values) {
		n.Cron, n.Command = new("*/5 * * * *"), new("insert into log (note) values ('"+*n.Name+"')")
	}
	w.create("late", "", log)
	w.create("missed", "", log, func(n *schedule.Values) { n.Cron = new("@yearly") })
	w.setDue("late", "now() - interval '3 days'")
	w.setDue("missed", "now() - interval '61 minutes'")
	w.install.SetStatus(w.project.UUID, "paused")
	w.serve(w.newService())

	// A second project shows that the server has looked at what is due.
	other := newWorldIn(t, w.install)
	other.create("other", "select 1")
	other.awaitRun("other")
	if got := w.runs("late"); len(got) > 0 {
		t.Errorf("a paused project's schedule ran: %q", got)
	}

	w.install.Exec(`update platform.projects set status = 'active', deleted_at = null where uuid = $1`, w.project.UUID)
	if got := w.awaitRun("late"); got != "succeeded: INSERT 0 1" {
		t.Errorf("got %q", got)
	}
	if got := w.awaitRun("missed"); !strings.HasPrefix(got, "missed: ") {
		t.Errorf("got %q", got)
	}
	if got := w.logged(); !slices.Equal(got, []string{"late"}) {
		t.Errorf("got %q, want one run of late", got)
	}
}

// TestServerStops stops a server in a run, and finds a run whose server was killed.
func TestServerStops(t *testing.T) {
	t.Parallel()

	w := newWorld(t)
	stop := w.serve(w.newService())
	w.create("long", `select pg_sleep(60)`, func(n *schedule.Values) { n.Cron = new("* * * * *") })
	w.setDue("long", "now() - interval '1 second'")
	pgtest.Eventually(t, "it runs", func() bool { return slices.Equal(w.runs("long"), []string{"running"}) })
	stop()
	if got := w.runs("long"); !slices.Equal(got, []string{"failed: the server stopped during the run"}) {
		t.Errorf("got %q", got)
	}

	// A killed server records nothing, and PostgreSQL ends its session.
	pgtest.Eventually(t, "the session has ended", func() bool {
		return pgtest.Value[bool](t, w.trusted, `select not exists (
			select from cron.job_run_details r join pg_stat_activity a on a.pid = r.job_pid)`)
	})
	pgtest.Exec(t, w.trusted, `update cron.job_run_details set status = 'running', return_message = null, end_time = null`)
	w.setDue("long", "now() - interval '1 second'")
	w.serve(w.newService())
	pgtest.Eventually(t, "the lost run has failed and another one runs", func() bool {
		return slices.Equal(w.runs("long"), []string{"failed: the server stopped during the run", "running"})
	})
}

// TestEndpoint calls an endpoint with a signature.
func TestEndpoint(t *testing.T) {
	t.Parallel()

	type call struct {
		header http.Header
		body   []byte
	}
	calls := make(chan call, 10)
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		calls <- call{r.Header, body}
		if r.URL.Path == "/broken" {
			rw.WriteHeader(http.StatusTeapot)
		}
		_, _ = io.WriteString(rw, "done")
	}))
	t.Cleanup(server.Close)

	w := newWorld(t)
	w.serve(w.newService())
	for name, path := range map[string]string{"works": "/", "broken": "/broken"} {
		created := w.create(name, "", func(n *schedule.Values) {
			n.Cron, n.Endpoint, n.Active = new("@yearly"), new(server.URL+path), new(false)
		})
		if _, err := w.service.Request(t.Context(), w.project, name); err != nil {
			t.Fatal(err)
		}

		got := <-calls
		var body struct {
			Schedule struct {
				ID   int64
				Name string
			}
			Run struct{ ID int64 }
		}
		if err := json.Unmarshal(got.body, &body); err != nil || body.Schedule.ID != created.ID ||
			body.Schedule.Name != name || body.Run.ID == 0 {
			t.Errorf("got body %s, %v", got.body, err)
		}

		keys, err := outbound.ParseWebhookSecrets(*w.service.Details(w.project.UUID, created).Secret)
		if err != nil {
			t.Fatal(err)
		}
		if !isSigned(got.header, keys, got.body) {
			t.Errorf("the signature %s is not the secret's", got.header.Get("Webhook-Signature"))
		}
	}

	w.create("gone", "", func(n *schedule.Values) { n.Endpoint = new("http://127.0.0.1:1/") })
	w.create("private", "", func(n *schedule.Values) { n.Endpoint = new("http://169.254.169.254/") })
	for name, want := range map[string]string{
		"works": "succeeded: 200 OK\ndone", "broken": "failed: 418 I'm a teapot\ndone",
		"gone": "failed: the endpoint could not be reached in time", "private": "failed: the endpoint could not be reached in time",
	} {
		if got := w.awaitRun(name); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
}

// TestSharedFairly has a project with as many jobs as it may have, each due every second and none
// ever done. A second project of the account and one of another account still run theirs.
func TestSharedFairly(t *testing.T) {
	t.Parallel()

	w := newWorld(t)
	w.exec(`create table public.held ()`)
	w.exec(`begin; lock table public.held`)
	hostile := projectdbtest.Connect(t, w.project, pgcluster.Owner)
	pgtest.Exec(t, hostile, `select cron.schedule('hostile ' || n, '1 second', 'select from held') from generate_series(1, 200) n`)
	w.plan()
	w.serve(w.newService())
	pgtest.Eventually(t, "the project's places are taken", func() bool {
		return pgtest.Value[int](t, w.trusted, `select count(*) from cron.job_run_details where status = 'running'`) == 2
	})

	friendly := newWorldIn(t, w.install)
	friendly.create("friendly", "select 1")
	if got := friendly.awaitRun("friendly"); got != "succeeded: 1 row" {
		t.Errorf("got %q", got)
	}

	if got := pgtest.State(t, hostile, `select cron.schedule('more', '1 second', 'select 1')`); got != "54000" {
		t.Errorf("got state %q for job 201, want 54000", got)
	}
	if n := pgtest.Value[int](t, w.trusted, `select count(*) from cron.job_run_details where status = 'running'`); n > 2 {
		t.Errorf("%d runs of a project at a time", n)
	}
}

// TestHistoryIsBounded keeps the last runs of a job.
func TestHistoryIsBounded(t *testing.T) {
	t.Parallel()

	w := newWorld(t)
	w.create("often", "select 1", func(n *schedule.Values) { n.Active = new(false) })
	pgtest.Exec(t, w.trusted, `insert into cron.job_run_details (jobid, status, start_time, end_time)
		select 1, 'succeeded', now() - interval '8 days', now() from generate_series(1, 1500)`)
	if _, err := w.service.Request(t.Context(), w.project, "often"); err != nil {
		t.Fatal(err)
	}
	if _, err := w.service.Request(t.Context(), w.project, "often"); !fault.Is(err, fault.Conflict) {
		t.Errorf("got %v for a second request, want Conflict", err)
	}
	w.serve(w.newService())

	const count = `select count(*)::int from cron.job_run_details`
	pgtest.Eventually(t, "the oldest runs are removed", func() bool {
		return pgtest.Value[int](t, w.trusted, count) == 1000
	})
	if err := schedule.Subject().Sweep(t.Context(), w.project); err != nil {
		t.Fatal(err)
	}
	if n := pgtest.Value[int](t, w.trusted, count); n != 1 {
		t.Errorf("%d runs are left after a week, want the last one", n)
	}
}

// TestSQLAgrees compares the check in SQL with the reader in Go on random schedules.
func TestSQLAgrees(t *testing.T) {
	t.Parallel()

	w := newWorld(t)
	random := rand.New(rand.NewPCG(33, 4)) //nolint:gosec // repeatable
	pick := func(from ...string) string { return from[random.IntN(len(from))] }
	value := func() string {
		return pick("0", "1", "2", "5", "07", "12", "23", "24", "28", "29", "30", "31", "32", "59", "60", "100",
			"0000", "10000",
			"jan", "FEB", "dec", "sun", "Fri", "sat", "", "x")
	}
	item := func() string {
		text := pick("*", "*", "*", "$", value(), value(), value()+"-"+value())
		if random.IntN(5) == 0 {
			text += "/" + value()
		}
		return text
	}
	field := func() string {
		text := item()
		for random.IntN(4) == 0 {
			text += "," + item()
		}
		return text
	}

	var texts []string
	for range 600 {
		parts := []string{field(), field(), field(), field(), field()}
		if random.IntN(2) == 0 { // mostly valid: dates decide
			parts = []string{pick("0", "*", "5/7"), "3", pick("29", "30,31", "$", "*", "31", "*/31", "30-31/1"),
				pick("2", "feb", "*", "4,6", "jan-3"), pick("*", "*/7", "1", "fri", "*/2", "sun-2")}
		}
		texts = append(texts, strings.Join(parts[:5-random.IntN(20)/19], pick(" ", "  ", "\t", "\n")))
	}
	for range 100 {
		texts = append(texts, pick("", " ")+pick("@", "")+
			pick("daily", "Hourly", "reboot", "yearly", "x", "5", "59 ", "0 ", "60 ", "007 ")+
			pick("", "seconds", "Second", " seconds", "minutes"))
	}

	accepted := 0
	for _, text := range texts {
		_, err := timetable.ParseSchedule(text, "UTC")
		state := pgtest.State(t, w.owner, `select cron.check_schedule(E'`+text+`')`)
		if (err == nil) != (state == "") {
			t.Errorf("%q: Go says %v, SQL %q", text, err, state)
		}
		if err == nil {
			accepted++
		}
	}
	if accepted < 100 || accepted > len(texts)-100 {
		t.Errorf("%d of %d schedules were accepted: the test compares too few of one kind", accepted, len(texts))
	}
}

// isSigned reports whether a header has the signature of a body.
func isSigned(h http.Header, keys [][]byte, body []byte) bool {
	want := http.Header{}
	seconds, err := strconv.ParseInt(h.Get("Webhook-Timestamp"), 10, 64)
	if err != nil {
		return false
	}

	outbound.SignWebhook(want, keys, h.Get("Webhook-Id"), time.Unix(seconds, 0), body)
	return h.Get("Webhook-Id") != "" && h.Get("Webhook-Signature") == want.Get("Webhook-Signature")
}
