package projectdb

import (
	"cmp"
	"container/list"
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/socle-dev/socle/internal/fair"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
)

const (
	poolSize     = 4  // connections per login and project
	rowsPoolSize = 10 // the same for a login of the rows API
	// Projects created or removed at a time. Each takes two connections to the platform database
	// and some outside the pools.
	maxProvisioning = 4
	poolIdleTimeout = 10 * time.Minute // idle time after which a project's pools are closed
	resetTimeout    = 5 * time.Second  // for resetting a session
)

// Registry opens projects. It is safe for concurrent use.
type Registry struct {
	Names

	// FindAccount returns the account that a project counts to; nil: each project is its own. Set
	// it before first use.
	FindAccount func(ctx context.Context, project uuid.UUID) (uuid.UUID, error)

	base         *pgxpool.Config // for the platform's login
	given        string          // the address that base was parsed from
	secret       []byte
	budget       *budget
	provisioning *fair.Pool     // of projects being created or removed
	supervisor   *pg.Supervisor // of connections of projects' logins
	watchdog     watchdog
	sessions     *fair.Pool // of clients; the rest of the budget is for requests
	log          *slog.Logger

	id       uuid.UUID    // identifies this server among those of the install
	listener *pg.Listener // nil: no notifications
	onSwap   func(project uuid.UUID)
	stopped  chan struct{} // closed when Run has ended

	mu       sync.Mutex
	projects map[uuid.UUID]*Project
	recent   *list.List         // the projects, most recently used first
	swapping map[int32]bool     // keys of projects whose database is being swapped
	altered  map[uuid.UUID]bool // projects with a login that changed its own settings, at the last check
}

// NewRegistry returns a registry of the projects on the server at address, which has the platform's
// login. secret is the secret of the install. connections limits the open connections to all
// project databases together.
func NewRegistry(address string, secret []byte, names Names, connections int, log *slog.Logger) (*Registry, error) {
	base, err := pg.PrimaryPoolConfig(address, poolSize)
	if err != nil {
		return nil, err
	}

	r := &Registry{Names: names, base: base, given: address, secret: secret,
		provisioning: fair.New(fair.Config{Name: "provisioning", Capacity: maxProvisioning,
			PerAccount: maxProvisioning / 2, Reserve: 1, Waiting: maxDials}),
		supervisor: pg.NewSupervisor(base.ConnConfig), sessions: newSessionPool(connections), log: log,
		id: uuid.New(), stopped: make(chan struct{}), projects: map[uuid.UUID]*Project{},
		recent: list.New(), swapping: map[int32]bool{}}
	r.budget = newBudget(connections, r.evict, r.watchdog.endReason)

	return r, nil
}

// Open returns a handle on a project. It neither connects nor checks that the project exists or
// that the caller may use it.
func (r *Registry) Open(id uuid.UUID) *Project {
	r.mu.Lock()
	defer r.mu.Unlock()

	p := r.projects[id]
	if p == nil {
		p = &Project{UUID: id, registry: r}
		p.loginsAltered.Store(r.altered[id])

		if r.swapping[swapKey(id)] {
			p.gate.close()
		}

		r.projects[id] = p
		p.recentElem = r.recent.PushFront(p)
	}

	return p
}

// Visit calls f with a project, for jobs that iterate over all projects. Connections that f opened
// are closed when it returns, so that the job holds those of one project at a time.
func (r *Registry) Visit(id uuid.UUID, f func(p *Project) error) error {
	p := r.Open(id)
	before := p.open.Load()
	err := f(p)
	for p.open.Load() > before && p.evict() {
	}

	return err
}

// WithInactive calls f with a project that is paused or deleted. Only the platform's own login
// connects to its database, and the project's state does not change.
//
// It fails with Conflict if migrations are pending; they are applied when the project is resumed.
func (r *Registry) WithInactive(ctx context.Context, id uuid.UUID, f func(p *Project) error) error {
	p := &Project{UUID: id, registry: r, maintained: true}
	defer p.close(time.Now().Add(time.Hour))

	version, err := pg.Value[int64](ctx, p.Trusted(), `select max(version_id) from socle.migrations where is_applied`)
	if err != nil {
		return err
	}

	if version < Version() {
		return fault.New(fault.Conflict, "the project's database has pending migrations: resume the project first").
			WithCode("outdated")
	}

	return f(p)
}

// Probe opens and closes a connection within the budget. It fails if a request to a project without
// open connections could not connect.
func (r *Registry) Probe(ctx context.Context) error {
	c := r.base.ConnConfig.Copy()
	var open atomic.Int32
	r.supervisor.Supervise(c)
	r.budget.attach(c, &open, func(context.Context) fair.Key { return fair.Key{Account: "readiness"} })

	conn, err := pgx.ConnectConfig(ctx, c)
	if err != nil {
		return pg.Fault(err)
	}

	return conn.Close(ctx)
}

// Stats is the state of the registry of one server.
type Stats struct {
	Projects       int   // with pools
	Connections    int   // open to project databases, those being closed included
	MaxConnections int   // the budget
	Waiting        int   // requests that wait for a connection
	Terminated     int64 // sessions that the watchdog has terminated since the start
	WatchdogAlive  bool
}

// Stats returns the state of the registry.
func (r *Registry) Stats() Stats {
	s := Stats{Terminated: r.watchdog.terminatedSessions(), WatchdogAlive: r.WatchdogAlive()}

	r.mu.Lock()
	s.Projects = len(r.projects)
	r.mu.Unlock()

	places := r.budget.places.Stats()
	s.Connections, s.MaxConnections, s.Waiting = int(places.InUse), int(places.Capacity), places.Waiting

	return s
}

// PoolContended reports whether a request waits for a connection to any project because the budget
// is used up.
func (r *Registry) PoolContended() bool { return r.budget.places.Contended() }

// HasConnection reports whether this process has a connection of the platform's login to a
// project's database. Then the project is active or was until a moment ago: pausing and deleting
// terminate its sessions before they return, and the next statement on this connection fails.
func (r *Registry) HasConnection(id uuid.UUID) bool {
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

// Run closes idle pools until ctx ends, and then all pools.
func (r *Registry) Run(ctx context.Context) error {
	tick := time.NewTicker(poolIdleTimeout / 4)
	defer tick.Stop()

	for {
		select {
		case <-ctx.Done():
			close(r.stopped)
			r.closeAll()

			return nil
		case now := <-tick.C:
			r.closeUnused(now.Add(-poolIdleTimeout))
		}
	}
}

// DumpURL returns the connection URI of a project's database for pg_dump, and the password, which
// belongs in a file rather than in a command's arguments.
func (r *Registry) DumpURL(project uuid.UUID) (address, password string) {
	return r.address(r.config(project, dump))
}

// trustedLockTimeout bounds the wait of the platform's statements for a lock: the project's owner
// may lock storage.objects, and so the files below it, for as long as the watchdog allows.
const trustedLockTimeout = "30s"

// RequestPath is the initial search_path of connections of the request and service logins.
const RequestPath = `"public", "extensions"`

func (r *Registry) newPool(p *Project, l login) *pgxpool.Pool {
	c, project := r.base.Copy(), p.UUID
	c.ConnConfig = r.config(project, l)

	c.BeforeConnect = func(_ context.Context, config *pgx.ConnConfig) error {
		r.supervisor.Supervise(config)
		r.budget.attach(config, &p.open, p.Key) // outermost: the slot is returned after the session has ended

		return nil
	}

	switch {
	case l != trusted:
		r.guard(c, p)
	case !p.maintained:
		rejectClosed(c)
	}

	if l == trusted {
		c.ConnConfig.RuntimeParams["lock_timeout"] = trustedLockTimeout
	}
	if l == request || l == service {
		c.MaxConns = rowsPoolSize
		c.AfterRelease = nil // package rest resets the session in the round trip of the request
		c.ConnConfig.RuntimeParams["search_path"] = RequestPath
	}
	if l == questions {
		c.AfterRelease = nil // package object resets the session in the round trip of the statement
	}
	if l == auth {
		// All statements are written in this tree, so pgx keeps their descriptions.
		c.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeCacheDescribe
		// No function or operator of the project is found without its schema.
		c.ConnConfig.RuntimeParams["search_path"] = "auth"
	}

	p.gate.attach(c)

	pool, err := pgxpool.NewWithConfig(context.Background(), c) // connects lazily, so only an invalid config fails
	if err != nil {
		panic("projectdb: pool: " + err.Error())
	}

	return pool
}

// guard protects a pool of a project's login from user code, which can change the session and the
// login's own password and settings. If a session cannot begin, for a wrong password or a missing
// library, all logins of the project are reset before the next one. The same happens when the
// watchdog finds changed settings.
func (r *Registry) guard(c *pgxpool.Config, p *Project) {
	// User code could replace a named prepared statement.
	c.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeDescribeExec

	maps.Copy(c.ConnConfig.RuntimeParams, map[string]string{ // take precedence over a login's own settings
		"client_encoding": "UTF8", "standard_conforming_strings": "on",
		"default_transaction_read_only": "off", "synchronous_commit": "on",
		"statement_timeout": "0", "lock_timeout": "0",
		"idle_in_transaction_session_timeout": "0", "idle_session_timeout": "0",
		"tcp_user_timeout": "0", "client_connection_check_interval": "0",
	})

	c.AfterRelease = func(conn *pgx.Conn) bool {
		ctx, cancel := context.WithTimeout(context.Background(), resetTimeout)
		defer cancel()

		return pg.Reset(ctx, conn) == nil
	}

	report := c.ConnConfig.OnPgError
	c.ConnConfig.OnPgError = func(conn *pgconn.PgConn, err *pgconn.PgError) bool {
		if err.SeverityUnlocalized == "FATAL" && !isServerState(err.Code) {
			p.loginsAltered.Store(true)
		}

		r.watchdog.explain(conn, err)
		return report(conn, err)
	}

	connect := c.BeforeConnect
	c.BeforeConnect = func(ctx context.Context, conn *pgx.ConnConfig) error {
		if err := r.resetAltered(ctx, p); err != nil {
			return err
		}
		return connect(ctx, conn)
	}
}

// resetAltered resets the logins of a project if one was altered or rejected.
func (r *Registry) resetAltered(ctx context.Context, p *Project) error {
	if !p.loginsAltered.CompareAndSwap(true, false) {
		return nil
	}

	r.log.Warn("resetting altered or rejected logins of a project", "project", p.UUID)

	if err := r.resetLogins(ctx, p.UUID); err != nil {
		p.loginsAltered.Store(true)
		return err
	}

	return nil
}

// serverStates are the SQLSTATEs of FATAL errors that come from the server, a closed database or a
// terminated session, not from a changed login.
var serverStates = []string{
	"53300", // too_many_connections
	"55000", // object_not_in_prerequisite_state: the database takes no connections
	"3D000", // invalid_catalog_name
	"57P01", // admin_shutdown
	"57P02", // crash_shutdown
	"57P03", // cannot_connect_now
}

func isServerState(code string) bool { return slices.Contains(serverStates, code) }

// touch marks a project as the most recently used.
func (r *Registry) touch(p *Project) {
	if p.recentElem == nil {
		return
	}

	r.mu.Lock()
	defer r.mu.Unlock()

	r.recent.MoveToFront(p.recentElem)
}

// openProjects returns the projects, least recently used first.
func (r *Registry) openProjects() []*Project {
	r.mu.Lock()
	defer r.mu.Unlock()

	all := make([]*Project, 0, r.recent.Len())
	for e := r.recent.Back(); e != nil; e = e.Prev() {
		all = append(all, e.Value.(*Project))
	}

	return all
}

func (r *Registry) closeUnused(since time.Time) {
	var projects sync.WaitGroup
	for _, p := range r.openProjects() {
		projects.Go(func() { p.close(since) })
	}

	projects.Wait()
}

func (r *Registry) closeAll() { r.closeUnused(time.Now().Add(time.Hour)) }

// evict closes an idle connection for an owner: of the account with the most connections, in it of
// the least recently used project. Once the owner's account has as many as it may, it is that.
func (r *Registry) evict(owner fair.Key) bool {
	places := r.budget.places
	own, _ := places.Held(owner)
	full := own >= places.PerAccount()

	type candidate struct {
		project *Project
		held    int64
	}

	var candidates []candidate
	for _, p := range r.withConnections() {
		key := p.lastKey()
		if !full || key.Account == owner.Account {
			held, _ := places.Held(key)
			candidates = append(candidates, candidate{p, held})
		}
	}

	slices.SortStableFunc(candidates, func(a, b candidate) int { return cmp.Compare(b.held, a.held) })

	return slices.ContainsFunc(candidates, func(c candidate) bool { return c.project.evict() })
}

// withConnections returns the projects with open connections, least recently used first. The budget
// bounds their number.
func (r *Registry) withConnections() []*Project {
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

// unregister closes a project's pools and removes it from the registry.
func (r *Registry) unregister(id uuid.UUID) {
	r.mu.Lock()
	p := r.projects[id]
	delete(r.projects, id)

	if p != nil {
		r.recent.Remove(p.recentElem)
	}

	r.mu.Unlock()

	if p != nil {
		p.closeForever()
	}
}
