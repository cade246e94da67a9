package projectdb

import (
	"container/list"
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/socle-dev/socle/internal/fair"
	"github.com/socle-dev/socle/internal/pg"
)

// sessions returns the number of Socle's sessions in the projects' databases.
func sessions(t *testing.T, r *Registry, projects ...*Project) int {
	t.Helper()

	return value[int](t, connectTo(t, r.base.ConnConfig), countSessions, databases(projects))
}

const countSessions = `select count(*)::int from pg_stat_activity where datname = any($1) and backend_type = 'client backend'`

// databases returns the names of projects' databases.
func databases(projects []*Project) (all []string) {
	for _, p := range projects {
		all = append(all, p.registry.Database(p.UUID))
	}
	return all
}

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()

	deadline := time.After(time.Minute)
	for !holds() {
		select {
		case <-deadline:
			t.Fatalf("timeout waiting for: %s", what)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// TestFewerConnectionsThanProjects runs concurrent requests of many projects on three connections.
func TestFewerConnectionsThanProjects(t *testing.T) {
	t.Parallel()

	r := newRegistry(t, 3)
	projects := make([]*Project, 4)
	for i := range projects {
		projects[i] = newProject(t, r)
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

	eventually(t, "three sessions at most", func() bool { return sessions(t, r, projects...) <= 3 })
}

// TestConnectionsAreReclaimed shares few connections among many projects and checks that one
// project can use all of them when nothing is in flight.
func TestConnectionsAreReclaimed(t *testing.T) {
	t.Parallel()

	const connections, clients, count, requests = 4, 8, 10, 12
	r := newRegistry(t, connections)
	projects := make([]*Project, count)
	for i := range projects {
		projects[i] = newProject(t, r)
	}

	eventually(t, "the sessions that made the projects have ended", func() bool {
		return sessions(t, r, projects...) == 0
	})

	done, watched := make(chan struct{}), make(chan int)
	watcher := connectTo(t, r.base.ConnConfig)
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
					CatalogVersion)

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

// TestBudgetIsAQueue checks that an account's slots are handed over in the order of its requests,
// skipping canceled ones, and that another account comes first.
func TestBudgetIsAQueue(t *testing.T) {
	t.Parallel()

	var evicted atomic.Int32
	b := newBudget(1, func(fair.Key) bool { evicted.Add(1); return false }, func(uint32) error { return nil })
	place, err := b.acquire(t.Context(), fair.Key{Account: "a"})
	if err != nil {
		t.Fatal(err)
	}

	type result struct {
		n     int
		place *fair.Lease
	}

	order := make(chan result, 4)
	canceled, cancel := context.WithCancel(t.Context())
	for n, ctx := range []context.Context{t.Context(), canceled, t.Context(), t.Context()} {
		go func() {
			place, _ := b.acquire(ctx, fair.Key{Account: []string{"a", "a", "a", "b"}[n]})
			order <- result{n, place}
		}()

		eventually(t, "the request waits", func() bool { return b.places.Stats().Waiting == n+1 })
	}

	cancel()

	if got := <-order; got.n != 1 || got.place != nil {
		t.Errorf("got %+v, want the second request to give up", got)
	}

	for _, want := range []int{3, 0, 2} {
		place.Release()

		got := <-order
		if got.n != want {
			t.Errorf("got %d, want %d", got.n, want)
		}
		place = got.place
	}

	place.Release()

	if got := b.places.Stats(); got.InUse != 0 || got.Waiting != 0 || evicted.Load() == 0 {
		t.Errorf("got %+v, %d evicted, want none in use or waiting, and more than 0", got, evicted.Load())
	}
}

// TestBusyAccountGivesWay: a newcomer gets a connection although those of others never idle.
func TestBusyAccountGivesWay(t *testing.T) {
	t.Parallel()

	r := newRegistry(t, 4)
	busy, bystander := newProject(t, r), newProject(t, r)
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
	eventually(t, "the newcomer waits", r.PoolContended)
	eventually(t, "a slot is revoked", func() bool { return r.budget.places.Stats().Revoked == 1 })

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

	eventually(t, "the requests wait", func() bool { return r.budget.places.Stats().Waiting == 1+len(held) })

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

	r := newRegistry(t, 1)
	p := newProject(t, r)
	for range 3 {
		first, err := p.Trusted().Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}

		if r.PoolContended() {
			t.Error("Awaited reports true without a waiting request")
		}

		waiting, cancelWait := context.WithCancel(t.Context())
		failed := make(chan error)
		go func() {
			_, err := p.Owner().Acquire(waiting)
			failed <- err
		}()

		eventually(t, "a request waits for a connection", r.PoolContended)
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

	r := newRegistry(t, 8)
	p := newProject(t, r)
	eventually(t, "the session that made the project has ended", func() bool { return sessions(t, r, p) == 0 })

	for range 2 { // and opened again
		value[int](t, p.Trusted(), "select 1")
		value[int](t, p.Owner(), "select 1")
		r.closeUnused(time.Now().Add(-time.Minute))

		if got := sessions(t, r, p); got != 2 {
			t.Errorf("got %d sessions of a project in use, want 2", got)
		}

		r.closeUnused(time.Now().Add(time.Minute))
		eventually(t, "no session of an idle project", func() bool { return sessions(t, r, p) == 0 })
	}
}

// TestVisit checks that Visit closes the connections that it opened, and only those.
func TestVisit(t *testing.T) {
	t.Parallel()

	r := newRegistry(t, 8)
	cold, warm := newProject(t, r), newProject(t, r)
	value[int](t, warm.Owner(), "select 1")

	for _, p := range []*Project{cold, warm} {
		if err := r.Visit(p.UUID, func(p *Project) error { return p.Trusted().Ping(t.Context()) }); err != nil {
			t.Fatal(err)
		}
	}

	eventually(t, "no session of the visited project, and one of the other", func() bool {
		return sessions(t, r, cold) == 0 && sessions(t, r, warm) == 1
	})
}

// TestDeletedProject uses the handle of a deleted project.
func TestDeletedProject(t *testing.T) {
	t.Parallel()

	r := newRegistry(t, 8)
	p := newProject(t, r)
	value[int](t, p.Trusted(), "select 1")

	if _, err := r.Destroy(t.Context(), p.UUID); err != nil {
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

	r := newRegistry(t, 1)
	p := newProject(t, r)
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

	eventually(t, "its slot is free", func() bool { return slotsInUse(r.budget) == 0 })
}

// TestConnectingLimit checks the limit of sessions established at a time, also if some
// fail.
func TestConnectingLimit(t *testing.T) {
	t.Parallel()

	const connections = 40
	r := newRegistry(t, connections)
	b := newBudget(connections, func(fair.Key) bool { return false }, func(uint32) error { return nil })

	var open, beginning, most atomic.Int32
	connect := func(password string) error {
		c := r.base.ConnConfig.Copy()
		c.Password = password
		dial := c.DialFunc

		c.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
			n := beginning.Add(1)
			for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
			}

			conn, err := dial(ctx, network, address)
			return observedConn{conn, sync.OnceFunc(func() { beginning.Add(-1) })}, err
		}

		b.attach(c, &open, func(context.Context) fair.Key { return fair.Key{} })
		connected := c.AfterConnect
		c.AfterConnect = func(ctx context.Context, conn *pgconn.PgConn) error {
			conn.Conn().(*slot).Conn.(observedConn).done() // before the budget is notified
			return connected(ctx, conn)
		}

		conn, err := pgx.ConnectConfig(t.Context(), c)
		if err != nil {
			return err
		}

		return conn.Close(t.Context())
	}

	var failures atomic.Int32
	var wg sync.WaitGroup
	for i := range connections {
		wg.Go(func() {
			password := r.base.ConnConfig.Password
			if i%2 == 1 {
				password = "another"
			}

			if connect(password) != nil {
				failures.Add(1)
			}
		})
	}

	wg.Wait()

	if got, limit := most.Load(), int32(maxConnecting()); got > limit || got < 2 {
		t.Errorf("got %d sessions established at a time, want 2 to %d", got, limit)
	}
	if got := failures.Load(); got != connections/2 {
		t.Errorf("got %d failed connections, want %d", got, connections/2)
	}

	eventually(t, "no token is taken", func() bool { return b.starts.Stats().InUse == 0 })
}

// observedConn is a connection that reports that its session has begun, or never will.
type observedConn struct {
	net.Conn
	done func()
}

func (c observedConn) Close() error {
	c.done()
	return c.Conn.Close()
}

// TestEvictAsksNoDatabase checks that looking for an idle connection reads the account of no
// project: with many of them, each new connection would wait for as many statements.
func TestEvictAsksNoDatabase(t *testing.T) {
	t.Parallel()

	r := &Registry{projects: map[uuid.UUID]*Project{}, recent: list.New(), swapping: map[int32]bool{}}
	r.budget = newBudget(8, r.evict, nil)
	r.FindAccount = func(_ context.Context, project uuid.UUID) (uuid.UUID, error) { return project, nil }

	for range 3 {
		p := r.Open(uuid.New())
		p.open.Add(1)
		p.Key(t.Context())
		p.account.readAt = time.Time{} // out of date
	}

	r.FindAccount = func(context.Context, uuid.UUID) (uuid.UUID, error) {
		t.Error("the account of a project was read")
		return uuid.Nil, errors.New("no database")
	}

	if r.evict(fair.Key{Account: "new", Part: "new"}) {
		t.Error("a connection was closed, but no pool has one")
	}
}
