package projectdb_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/socle-dev/socle/internal/lifecycle"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/pgtest"
	"github.com/socle-dev/socle/internal/projectdb"
	"github.com/socle-dev/socle/internal/projectdb/projectdbtest"
)

// sessions returns the number of Socle's sessions in the projects' databases.
func sessions(t *testing.T, r *projectdb.Registry, projects ...*projectdb.Project) int {
	t.Helper()

	return pgtest.Value[int](t, pgtest.Connect(t, r.Platform().PlatformConfig()), countSessions, databases(projects))
}

const countSessions = `select count(*)::int from pg_stat_activity where datname = any($1) and backend_type = 'client backend'`

// databases returns the names of projects' databases.
func databases(projects []*projectdb.Project) (all []string) {
	for _, p := range projects {
		all = append(all, p.Cluster().Database(p.UUID))
	}
	return all
}

// TestFewerConnectionsThanProjects runs concurrent requests of many projects on three connections.
func TestFewerConnectionsThanProjects(t *testing.T) {
	t.Parallel()

	r := projectdbtest.NewRegistry(t, 3)
	projects := make([]*projectdb.Project, 4)
	for i := range projects {
		projects[i] = projectdbtest.NewIn(t, r)
	}

	failures := make(chan error, 1000)
	var wg sync.WaitGroup
	for _, p := range projects {
		for range 3 {
			wg.Go(func() {
				for range 4 {
					_, err := pg.Value[int](t.Context(), p.Trusted(), "select 1")
					failures <- err
					_, err = pg.Value[int](t.Context(), p.Owner(), "select 1")
					failures <- err
				}
			})
		}
	}

	wg.Wait()
	close(failures)

	for err := range failures {
		if err != nil {
			t.Fatal(err)
		}
	}

	pgtest.Eventually(t, "three sessions at most", func() bool { return sessions(t, r, projects...) <= 3 })
}

// TestConnectionsAreReclaimed shares few connections among many projects and checks that one
// project can use all of them when nothing is in flight.
func TestConnectionsAreReclaimed(t *testing.T) {
	t.Parallel()

	const connections, clients, count, requests = 4, 8, 10, 12
	r := projectdbtest.NewRegistry(t, connections)
	projects := make([]*projectdb.Project, count)
	for i := range projects {
		projects[i] = projectdbtest.NewIn(t, r)
	}

	pgtest.Eventually(t, "the sessions that made the projects have ended", func() bool {
		return sessions(t, r, projects...) == 0
	})

	done, watched := make(chan struct{}), make(chan int)
	watcher := pgtest.Connect(t, r.Platform().PlatformConfig())
	// PostgreSQL itself must never have more sessions than the budget.
	go func() {
		most := 0
		for {
			now, err := pg.Value[int](t.Context(), watcher, countSessions, databases(projects))
			if err != nil {
				now = -1
			}

			most = max(most, now)
			select {
			case <-done:
				watched <- most
				return
			default:
			}
		}
	}()

	failures := make(chan error, clients*requests)
	var wg sync.WaitGroup
	for client := range clients {
		wg.Go(func() {
			for n := range requests {
				p := projects[(client*7+n*11)%count]
				_, err := pg.Value[string](t.Context(), []*pgxpool.Pool{p.Trusted(), p.Request(), p.Service()}[n%3],
					projectdb.CatalogVersion)

				failures <- err
			}
		})
	}

	wg.Wait()
	close(done)
	close(failures)

	for err := range failures {
		if err != nil {
			t.Fatal(err)
		}
	}

	if most := <-watched; most < 1 || most > connections {
		t.Errorf("got %d sessions at a time, want 1 to %d", most, connections)
	}

	for range connections { // all of them, while none is released
		conn, err := projects[0].Request().Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Release()
	}
}

// TestBusyAccountGivesWay: a newcomer gets a connection although those of others never idle.
func TestBusyAccountGivesWay(t *testing.T) {
	t.Parallel()

	r := projectdbtest.NewRegistry(t, 4)
	busy, bystander := projectdbtest.NewIn(t, r), projectdbtest.NewIn(t, r)
	pool := busy.Request()

	held := make([]*pgxpool.Conn, 4)
	for i := range held {
		var err error
		if held[i], err = pool.Acquire(t.Context()); err != nil {
			t.Fatal(err)
		}
	}

	served := make(chan error)
	go func() { served <- bystander.Trusted().Ping(t.Context()) }()
	pgtest.Eventually(t, "the newcomer waits", r.PoolContended)
	pgtest.Eventually(t, "a slot is revoked", func() bool { return r.Platform().Connections().Stats().Revoked == 1 })

	done, next := make(chan struct{}), make(chan error)
	for range held { // requests of the busy project that take over its connections
		go func() {
			conn, err := pool.Acquire(t.Context())
			if err == nil {
				<-done
				conn.Release()
			}
			next <- err
		}()
	}

	pgtest.Eventually(t, "the requests wait", func() bool {
		return r.Platform().Connections().Stats().Waiting == 1+len(held)
	})

	for _, conn := range held {
		conn.Release()
	}

	if err := <-served; err != nil {
		t.Error(err)
	}

	close(done)
	for range held {
		if err := <-next; err != nil {
			t.Error(err)
		}
	}
}

// TestBudgetIsReleased loses the only connection in every way and takes it again.
func TestBudgetIsReleased(t *testing.T) {
	t.Parallel()

	r := projectdbtest.NewRegistry(t, 1)
	p := projectdbtest.NewIn(t, r)
	for range 3 {
		first, err := p.Trusted().Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}

		if r.PoolContended() {
			t.Error("PoolContended reports true without a waiting request")
		}

		waiting, cancelWait := context.WithCancel(t.Context())
		failed := make(chan error)
		go func() {
			_, err := p.Owner().Acquire(waiting)
			failed <- err
		}()

		pgtest.Eventually(t, "a request waits for a connection", r.PoolContended)
		cancelWait()

		if err := <-failed; !errors.Is(err, context.Canceled) {
			t.Errorf("a second connection: got %v, want none", err)
		}

		_, _ = first.Exec(t.Context(), "select pg_terminate_backend(pg_backend_pid())")
		first.Release()

		canceled, cancel := context.WithCancel(t.Context())
		running, err := p.Owner().Acquire(canceled)
		if err != nil {
			t.Fatal(err)
		}

		cancel()
		if _, err := running.Exec(canceled, "select pg_sleep(60)"); err == nil {
			t.Error("a statement continued after its context was canceled")
		}

		running.Release()
	}
}

func TestIdlePoolsAreClosed(t *testing.T) {
	t.Parallel()

	r := projectdbtest.NewRegistry(t, 8)
	p := projectdbtest.NewIn(t, r)
	pgtest.Eventually(t, "the session that made the project has ended", func() bool { return sessions(t, r, p) == 0 })

	for range 2 { // and opened again
		pgtest.Value[int](t, p.Trusted(), "select 1")
		pgtest.Value[int](t, p.Owner(), "select 1")
		r.CloseUnused(time.Now().Add(-time.Minute))

		if got := sessions(t, r, p); got != 2 {
			t.Errorf("got %d sessions of a project in use, want 2", got)
		}

		r.CloseUnused(time.Now().Add(time.Minute))
		pgtest.Eventually(t, "no session of an idle project", func() bool { return sessions(t, r, p) == 0 })
	}
}

// TestVisit checks that Visit closes the connections that it opened, and only those.
func TestVisit(t *testing.T) {
	t.Parallel()

	r := projectdbtest.NewRegistry(t, 8)
	cold, warm := projectdbtest.NewIn(t, r), projectdbtest.NewIn(t, r)
	pgtest.Value[int](t, warm.Owner(), "select 1")

	for _, p := range []*projectdb.Project{cold, warm} {
		ping := func(p *projectdb.Project) error { return p.Trusted().Ping(t.Context()) }
		if err := r.Visit(p.UUID, ping); err != nil {
			t.Fatal(err)
		}
	}

	pgtest.Eventually(t, "no session of the visited project, and one of the other", func() bool {
		return sessions(t, r, cold) == 0 && sessions(t, r, warm) == 1
	})
}

// TestDeletedProject uses the handle of a deleted project.
func TestDeletedProject(t *testing.T) {
	t.Parallel()

	r := projectdbtest.NewRegistry(t, 8)
	p := projectdbtest.NewIn(t, r)
	pgtest.Value[int](t, p.Trusted(), "select 1")

	if _, err := (lifecycle.Databases{Registry: r}).Destroy(t.Context(), p.UUID); err != nil {
		t.Fatal(err)
	}
	if err := p.Owner().Ping(t.Context()); err == nil {
		t.Error("a deleted project got a connection")
	}

	if r.Open(p.UUID) == p {
		t.Error("the registry still has a deleted project")
	}
}

// TestProbe probes while the budget has no slot left.
func TestProbe(t *testing.T) {
	t.Parallel()

	r := projectdbtest.NewRegistry(t, 1)
	p := projectdbtest.NewIn(t, r)
	acquired, err := p.Owner().Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}

	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()

	if err := r.Probe(ctx); err == nil {
		t.Error("Probe succeeded without a free slot")
	}

	acquired.Release()
	if err := r.Probe(t.Context()); err != nil {
		t.Error(err)
	}

	pgtest.Eventually(t, "its slot is free", func() bool { return slotsInUse(r) == 0 })
}
