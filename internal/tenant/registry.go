package tenant

import (
	"container/list"
	"context"
	"log/slog"
	"maps"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"socle/internal/pg"
)

const (
	poolSize     = 4  // connections of one login to one project
	rowsPoolSize = 10 // of a login of the rows API
	// projects that are made or removed at a time: each takes two connections to the platform database, and some beside the pools
	makersMost = 4
	unusedTime = 10 * time.Minute // after which a project's pools are closed
	cleanTime  = 5 * time.Second  // for a session to be cleaned
)

// Registry opens projects.
type Registry struct {
	Names
	base       *pgxpool.Config // the platform's login
	tls        url.Values      // what the address says of it
	secret     []byte
	budget     *budget
	making     chan struct{}  // a slot for each project that is being made or removed
	supervisor *pg.Supervisor // of the projects' logins
	watchdog   watchdog
	log        *slog.Logger

	id       uuid.UUID    // tells servers apart
	listener *pg.Listener // nil: it hears of nothing
	replaced func(project uuid.UUID)
	stopped  chan struct{} // closed when Run has ended

	mu       sync.Mutex
	projects map[uuid.UUID]*Project
	recent   *list.List         // of the same, the one used last first
	swapping map[int32]bool     // keys of projects whose database is being replaced
	altered  map[uuid.UUID]bool // projects with a login that has settings of its own, as the watchdog saw it last
}

// NewRegistry returns a registry of the projects on the server that address names, with the
// platform's login. secret is the secret of the instance; connections bounds how many
// connections to project databases are open at a time.
func NewRegistry(address string, secret []byte, names Names, connections int, log *slog.Logger) (*Registry, error) {
	base, err := pg.PoolConfig(address, poolSize)
	if err != nil {
		return nil, err
	}

	tls := url.Values{}
	if u, err := url.Parse(address); err == nil {
		tls = u.Query()
		maps.DeleteFunc(tls, func(name string, _ []string) bool { return !strings.HasPrefix(name, "ssl") })
	}

	r := &Registry{Names: names, base: base, tls: tls, secret: secret, making: make(chan struct{}, makersMost),
		supervisor: pg.NewSupervisor(base.ConnConfig), log: log,
		id: uuid.New(), stopped: make(chan struct{}), projects: map[uuid.UUID]*Project{},
		recent: list.New(), swapping: map[int32]bool{}}
	r.budget = newBudget(connections, r.evict, r.watchdog.lost)

	return r, nil
}

// Open returns a project. It connects to nothing and asks nobody: whether the project
// exists, and whether the caller may use it, is decided before.
func (r *Registry) Open(id uuid.UUID) *Project {
	r.mu.Lock()
	defer r.mu.Unlock()

	p := r.projects[id]
	if p == nil {
		p = &Project{UUID: id, registry: r}
		p.altered.Store(r.altered[id])

		if r.swapping[swapKey(id)] {
			p.gate.shut()
		}

		r.projects[id] = p
		p.place = r.recent.PushFront(p)
	}

	return p
}

// Visit calls f with a project, for a round over all projects: connections that were opened for it are closed when f returns, so
// that a round has no more than those of one project.
func (r *Registry) Visit(id uuid.UUID, f func(p *Project) error) error {
	p := r.Open(id)
	before := p.open.Load()
	err := f(p)
	for p.open.Load() > before && p.evict() {
	}

	return err
}

// Awaited reports whether somebody waits for a connection, to whichever project, because the server has as many open as it may.
func (r *Registry) Awaited() bool { return r.budget.waiting.Load() > 0 }

// Connected reports whether this process has a connection to a project's database, of the platform's login. Then the project is active, or was so when somebody
// last asked: whoever pauses or deletes one ends its connections before they say that it is done, and the next statement on this one fails.
func (r *Registry) Connected(id uuid.UUID) bool {
	r.mu.Lock()
	p := r.projects[id]
	r.mu.Unlock()

	if p == nil {
		return false
	}

	p.mu.Lock()
	defer p.mu.Unlock()

	pool := p.pools[trusted]
	return pool != nil && pool.Stat().TotalConns() > 0
}

// Run closes the pools that nobody uses, until ctx ends; then all of them.
func (r *Registry) Run(ctx context.Context) error {
	tick := time.NewTicker(unusedTime / 4)
	defer tick.Stop()

	for {
		select {
		case <-ctx.Done():
			close(r.stopped)
			r.closeAll()

			return nil
		case now := <-tick.C:
			r.closeUnused(now.Add(-unusedTime))
		}
	}
}

// DumpURL returns how pg_dump connects to a project's database, and the password that goes
// with it, which belongs in a file rather than among a command's arguments.
func (r *Registry) DumpURL(project uuid.UUID) (address, password string) {
	return r.address(r.config(project, dump))
}

// RequestPath is the search path that connections of the request and service logins start with, and come back to.
const RequestPath = `"public", "extensions"`

func (r *Registry) newPool(p *Project, l login) *pgxpool.Pool {
	c, project := r.base.Copy(), p.UUID
	c.ConnConfig = r.config(project, l)

	c.BeforeConnect = func(_ context.Context, config *pgx.ConnConfig) error {
		r.supervisor.Supervise(config)
		r.budget.count(config, &p.open) // around it: a slot is given back when the session has ended

		return nil
	}

	switch {
	case l != trusted:
		r.guard(c, p)
	case !p.closed:
		respectClosed(c)
	}

	if l == request || l == service {
		c.MaxConns = rowsPoolSize
		c.AfterRelease = nil // package rest cleans the session in the round trip of the request itself
		c.ConnConfig.RuntimeParams["search_path"] = RequestPath
	}

	p.gate.respected(c)

	pool, err := pgxpool.NewWithConfig(context.Background(), c) // opens nothing yet, so it fails only on a bad config
	if err != nil {
		panic("tenant: pool: " + err.Error())
	}

	return pool
}

// guard protects a pool of a tenant's login from what the tenant's code can do: to the session, and to the login itself,
// which PostgreSQL lets change its own password and settings. A session that can't begin, be it for a wrong password or a library
// that is not there, has the project's logins reset before the next one begins, and so have settings that the watchdog finds.
func (r *Registry) guard(c *pgxpool.Config, p *Project) {
	c.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeDescribeExec // a statement prepared by name could be replaced

	maps.Copy(c.ConnConfig.RuntimeParams, map[string]string{ // stronger than a login's own settings
		"client_encoding": "UTF8", "standard_conforming_strings": "on",
		"default_transaction_read_only": "off", "synchronous_commit": "on",
		"statement_timeout": "0", "lock_timeout": "0",
		"idle_in_transaction_session_timeout": "0", "idle_session_timeout": "0",
		"tcp_user_timeout": "0", "client_connection_check_interval": "0",
	})

	c.AfterRelease = func(conn *pgx.Conn) bool {
		ctx, cancel := context.WithTimeout(context.Background(), cleanTime)
		defer cancel()

		_, err := conn.PgConn().Exec(ctx, "discard all").ReadAll()
		return err == nil
	}

	report := c.ConnConfig.OnPgError
	c.ConnConfig.OnPgError = func(conn *pgconn.PgConn, err *pgconn.PgError) bool {
		if err.SeverityUnlocalized == "FATAL" && !slices.Contains(serverStates, err.Code) {
			p.altered.Store(true)
		}

		r.watchdog.explain(conn, err)
		return report(conn, err)
	}

	connect := c.BeforeConnect
	c.BeforeConnect = func(ctx context.Context, conn *pgx.ConnConfig) error {
		if p.altered.CompareAndSwap(true, false) {
			r.log.Warn("reset the logins of a project, one of which was altered or refused", "project", p.UUID)
			if err := r.restoreRoles(ctx, p.UUID); err != nil {
				p.altered.Store(true)
				return err
			}
		}

		return connect(ctx, conn)
	}
}

// serverStates are the SQLSTATEs of FATAL errors that come of the server, a database that is closed, or whoever ended the
// session, not of what a login was changed to.
var serverStates = []string{
	"53300", // too_many_connections
	"55000", // object_not_in_prerequisite_state: the database takes no connections
	"3D000", // invalid_catalog_name
	"57P01", // admin_shutdown
	"57P02", // crash_shutdown
	"57P03", // cannot_connect_now
}

// touch notes that a project is used.
func (r *Registry) touch(p *Project) {
	if p.place == nil {
		return
	}

	r.mu.Lock()
	defer r.mu.Unlock()

	r.recent.MoveToFront(p.place)
}

// open returns the projects, the one unused for longest first.
func (r *Registry) open() []*Project {
	r.mu.Lock()
	defer r.mu.Unlock()

	all := make([]*Project, 0, r.recent.Len())
	for e := r.recent.Back(); e != nil; e = e.Prev() {
		all = append(all, e.Value.(*Project))
	}

	return all
}

func (r *Registry) closeUnused(since time.Time) {
	for _, p := range r.open() {
		p.close(since)
	}
}

func (r *Registry) closeAll() { r.closeUnused(time.Now().Add(time.Hour)) }

// evict closes an idle connection, of the project that was unused for longest among those that have one.
func (r *Registry) evict() bool {
	for _, p := range r.connected() {
		if p.evict() {
			return true
		}
	}

	return false
}

// connected returns the projects that have connections, the one unused for longest first. They are never more than connections.
func (r *Registry) connected() []*Project {
	r.mu.Lock()
	defer r.mu.Unlock()

	var all []*Project
	for e := r.recent.Back(); e != nil; e = e.Prev() {
		if p := e.Value.(*Project); p.open.Load() > 0 {
			all = append(all, p)
		}
	}

	return all
}

// forget closes a project's pools and drops it.
func (r *Registry) forget(id uuid.UUID) {
	r.mu.Lock()
	p := r.projects[id]
	delete(r.projects, id)

	if p != nil {
		r.recent.Remove(p.place)
	}

	r.mu.Unlock()

	if p != nil {
		p.leave()
	}
}
