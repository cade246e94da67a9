package schedule_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/outbound"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/pgcluster"
	"github.com/socle-dev/socle/internal/pgtest"
	"github.com/socle-dev/socle/internal/platform/platformtest"
	"github.com/socle-dev/socle/internal/projectdb"
	"github.com/socle-dev/socle/internal/projectdb/projectdbtest"
	"github.com/socle-dev/socle/internal/schedule"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// world is an install with a project, on whose behalf jobs write to the table public.log.
type world struct {
	*testing.T
	install platformtest.Install
	project *projectdb.Project
	owner   *pgx.Conn
	trusted *pgx.Conn
	service *schedule.Service // does not run
}

func newWorld(t *testing.T) *world {
	t.Helper()
	return newWorldIn(t, platformtest.New(t))
}

func newWorldIn(t *testing.T, install platformtest.Install) *world {
	t.Helper()

	w := &world{T: t, install: install, project: projectdbtest.New(t)}
	w.install.Exec(`insert into platform.projects (uuid, organization_uuid, name, status, created_by, updated_by)
		values ($1, $2, $4, 'active', $3, $3)`, w.project.UUID, install.Organization, install.User, w.project.UUID.String())
	w.owner = projectdbtest.Connect(t, w.project, pgcluster.Owner)
	w.trusted = projectdbtest.Connect(t, w.project, pgcluster.Trusted)
	w.exec(`create table public.log (id int generated always as identity, note text)`)
	w.service = w.newService()

	return w
}

// newService returns the service of another server of the install.
func (w *world) newService() *schedule.Service {
	return schedule.New(schedule.Config{Platform: w.install.DB, Projects: projectdbtest.Registry(w),
		Outbound: outbound.New([]netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}),
		Log:      slog.New(slog.NewTextHandler(w.Output(), nil))})
}

// serve runs a service until the test ends, or until the function that it returns is called.
func (w *world) serve(s *schedule.Service) (stop func()) {
	w.Helper()

	ctx, cancel := context.WithCancel(context.WithoutCancel(w.Context()))
	done := make(chan struct{})
	go func() {
		defer close(done)

		if err := s.Run(ctx); err != nil {
			w.Error(err)
		}
	}()
	stop = func() { cancel(); <-done }
	w.Cleanup(stop)

	return stop
}

func (w *world) exec(sql string) {
	w.Helper()
	pgtest.Exec(w, w.owner, sql)
}

// create creates a schedule that runs each second.
func (w *world) create(name, command string, change ...func(*schedule.Values)) schedule.Schedule {
	w.Helper()

	n := schedule.Values{Name: &name, Cron: new("1 second"), TimeoutSeconds: new(60)}
	if command != "" {
		n.Command = &command
	}
	for _, f := range change {
		f(&n)
	}

	created, err := w.service.Create(w.Context(), w.project, n)
	if err != nil {
		w.Fatal(err)
	}

	return created
}

// setDue makes a job due at a time, as SQL, and has the servers look at once.
func (w *world) setDue(name, at string) {
	w.Helper()

	w.plan()
	pgtest.Exec(w, w.trusted, fmt.Sprintf(`update cron.job set next_run_at = %s where jobname = '%s'`, at, name))
	w.install.Exec(`update platform.schedule_times set next_run_at = now(), version = version + 1`)
}

// plan does what the outbox does after SQL has changed jobs.
func (w *world) plan() {
	w.Helper()

	kind := w.service.Kind()
	if w.pending() {
		if err := kind.Run(w.Context(), w.project); err != nil {
			w.Fatal(err)
		}
	}
}

// pending asks the outbox's question.
func (w *world) pending() bool {
	w.Helper()
	return pgtest.Value[bool](w, w.trusted, `select `+w.service.Kind().Pending)
}

// runs returns the runs of a schedule, oldest first, as status and message.
func (w *world) runs(name string) (all []string) {
	w.Helper()

	all, err := pg.Values[string](w.Context(), w.trusted, `
		select concat_ws(': ', r.status, r.return_message) from cron.job_run_details r join cron.job j using (jobid)
		where j.jobname = @name order by r.runid`, pgx.StrictNamedArgs{"name": name})
	if err != nil {
		w.Fatal(err)
	}

	return all
}

// awaitRun waits until the schedule's first run has ended, and returns it.
func (w *world) awaitRun(name string) (run string) {
	w.Helper()

	pgtest.Eventually(w, "the run of "+name+" ends", func() bool {
		ended := pgtest.Value[[]string](w, w.trusted, `
			select array(select concat_ws(': ', r.status, r.return_message) from cron.job_run_details r join cron.job j using (jobid)
				where j.jobname = '`+name+`' and r.end_time is not null order by r.runid limit 1)`)
		if len(ended) > 0 {
			run = ended[0]
		}

		return len(ended) > 0
	})

	return run
}

// logged returns the notes in public.log, in order.
func (w *world) logged() []string {
	w.Helper()
	return pgtest.Value[[]string](w, w.trusted, `select array(select note from public.log order by id)`)
}
