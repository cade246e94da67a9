package projectdb

import (
	"cmp"
	"container/list"
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/socle-dev/socle/internal/fair"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/pgcluster"
	"github.com/socle-dev/socle/internal/tick"
)

const poolIdleTimeout = 10 * time.Minute // idle time after which a project's pools are closed

// Config configures a [Registry].
type Config struct {
	Server      *pgxpool.Config // the platform's login, see [pg.PrimaryPoolConfig]
	Secret      []byte          // derives login passwords and project keys
	Names       pgcluster.Names
	Connections int                   // maximum number of open connections to all project databases together
	Memory      pgcluster.MemoryLimit // for each project's sessions; zero: none

	// FindAccount returns the account that a project counts to; nil: each project is its own.
	FindAccount func(ctx context.Context, project uuid.UUID) (uuid.UUID, error)
	Log         *slog.Logger

	standby bool // the server is a standby, see [Replicas]
}

// Registry opens projects. It is safe for concurrent use.
type Registry struct {
	pgcluster.Names

	clusters    map[pgcluster.ID]*pgcluster.Cluster
	secret      []byte
	findAccount func(ctx context.Context, project uuid.UUID) (uuid.UUID, error)
	log         *slog.Logger
	standby     bool

	id       uuid.UUID    // identifies this server in the install
	listener *pg.Listener // nil: no notifications
	onSwap   func(project uuid.UUID)
	onWrite  func(project uuid.UUID)
	done     chan struct{} // closed when Run has ended

	mu       sync.Mutex
	projects map[uuid.UUID]*Project
	recent   *list.List     // the projects, most recently used first
	swapping map[int32]bool // keys for projects whose database is being swapped
}

// NewRegistry returns a registry for the projects on a server.
func NewRegistry(c Config) *Registry {
	r := &Registry{Names: c.Names, clusters: map[pgcluster.ID]*pgcluster.Cluster{}, secret: c.Secret,
		findAccount: c.FindAccount, log: c.Log, standby: c.standby, id: uuid.New(),
		onWrite: func(uuid.UUID) {}, done: make(chan struct{}),
		projects: map[uuid.UUID]*Project{}, recent: list.New(), swapping: map[int32]bool{}}

	r.clusters[pgcluster.Default] = pgcluster.New(pgcluster.Config{
		Server: c.Server, Secret: c.Secret, Names: c.Names, Connections: c.Connections, Memory: c.Memory,
		Evict:   func(owner fair.Key) bool { return r.evict(pgcluster.Default, owner) },
		Altered: r.scheduleReset, Log: c.Log,
	})

	return r
}

// Cluster returns a project's PostgreSQL server. All projects are on one.
func (r *Registry) Cluster(uuid.UUID) *pgcluster.Cluster { return r.clusters[pgcluster.Default] }

// Platform returns the platform database's PostgreSQL server.
func (r *Registry) Platform() *pgcluster.Cluster { return r.clusters[pgcluster.Default] }

// newProject returns an unregistered handle.
func (r *Registry) newProject(id uuid.UUID) *Project {
	return &Project{UUID: id, registry: r, cluster: r.Cluster(id)}
}

// Open returns a handle on a project. It neither connects nor checks that the project exists or
// that the caller may use it.
func (r *Registry) Open(id uuid.UUID) *Project {
	r.mu.Lock()
	defer r.mu.Unlock()

	p := r.projects[id]
	if p == nil {
		p = r.newProject(id)
		p.loginsAltered.Store(p.cluster.IsAltered(id))

		if r.swapping[swapKey(id)] {
			p.gate.close()
		}

		r.projects[id] = p
		p.recentElem = r.recent.PushFront(p)
	}

	return p
}

// openProject returns the handle on a project, or nil if it was not opened.
func (r *Registry) openProject(id uuid.UUID) *Project {
	r.mu.Lock()
	defer r.mu.Unlock()

	return r.projects[id]
}

// Visit calls f with a project, for jobs that iterate over all projects. Connections that f opened
// are closed when it returns, so that the job holds connections to one project at a time.
func (r *Registry) Visit(id uuid.UUID, f func(p *Project) error) error {
	p := r.Open(id)
	count := p.open.Load()
	err := f(p)
	for p.open.Load() > count && p.evict() {
	}

	return err
}

// WithInactive calls f with a paused or deleted project. Only the platform's own login connects to
// the database, and the project's state does not change.
//
// It fails with Conflict if migrations are pending; they are applied when the project is resumed.
func (r *Registry) WithInactive(ctx context.Context, id uuid.UUID, f func(p *Project) error) error {
	p := r.newProject(id)
	p.inactive = true
	defer p.closeUnused(time.Now().Add(time.Hour))

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
	for _, c := range r.clusters {
		if err := c.Probe(ctx); err != nil {
			return err
		}
	}

	return nil
}

// Watch runs the watchdogs until ctx ends.
func (r *Registry) Watch(ctx context.Context) error {
	var all sync.WaitGroup
	for _, c := range r.clusters {
		all.Go(func() { c.Watch(ctx) })
	}

	all.Wait()
	return nil
}

// TerminateOrphans terminates the sessions that a killed server left running, unless another server
// of this install is running. choose returns the projects that belong to this install, since other
// installs may share the PostgreSQL. It must be called before the registry is used.
func (r *Registry) TerminateOrphans(
	ctx context.Context, platform *pgxpool.Pool, choose func(context.Context, []uuid.UUID) ([]uuid.UUID, error),
) error {
	only, err := isOnlyServer(ctx, platform)
	if err != nil || !only {
		return err
	}

	for _, c := range r.clusters {
		if err := c.TerminateOrphans(ctx, choose); err != nil {
			return err
		}
	}

	return nil
}

// Resize changes the maximum number of open connections to project databases, and returns how many
// are open, see [pgcluster.Cluster.Resize].
func (r *Registry) Resize(connections int) (open int) { return r.Platform().Resize(connections) }

// Stats is a registry's state on one server.
type Stats struct {
	Projects       int   // with pools
	Connections    int   // open to project databases, closing ones included
	MaxConnections int   // the budget
	Waiting        int   // requests that wait for a connection
	Terminated     int64 // sessions that the watchdog has terminated since the start
	WatchdogAlive  bool
}

// Stats returns the registry's state.
func (r *Registry) Stats() Stats {
	s := Stats{WatchdogAlive: true}

	r.mu.Lock()
	s.Projects = len(r.projects)
	r.mu.Unlock()

	for _, c := range r.clusters {
		places := c.Connections().Stats()
		s.Connections += int(places.InUse)
		s.MaxConnections += int(places.Capacity)
		s.Waiting += places.Waiting
		s.Terminated += c.Terminated()
		s.WatchdogAlive = s.WatchdogAlive && c.WatchdogAlive()
	}

	return s
}

// Pools returns the pools that accounts share, for metrics.
func (r *Registry) Pools() []*fair.Pool {
	var all []*fair.Pool
	for _, c := range r.clusters {
		all = append(all, c.Pools()...)
	}

	return all
}

// PoolContended reports whether a request waits for a connection to any project because a budget is
// used up.
func (r *Registry) PoolContended() bool {
	for _, c := range r.clusters {
		if c.Connections().Contended() {
			return true
		}
	}

	return false
}

// HasConnection reports whether this process has a connection to a project's database on the
// platform's login. Then the project is active or was until a moment ago: pausing and deleting
// terminate the sessions before they return, and the next statement on this connection fails.
func (r *Registry) HasConnection(id uuid.UUID) bool {
	p := r.openProject(id)
	if p == nil {
		return false
	}

	p.mu.Lock()
	defer p.mu.Unlock()

	pool := p.pools[trustedPool]
	return pool != nil && pool.Stat().TotalConns() > 0
}

// Run closes idle pools until ctx ends, and then all pools.
func (r *Registry) Run(ctx context.Context) error {
	for now := range tick.Every(ctx, poolIdleTimeout/4) {
		r.closeUnused(now.Add(-poolIdleTimeout))
	}

	close(r.done)
	r.closeAll()

	return nil
}

// scheduleReset resets a project's logins before the next session begins, see [Project.guard].
// Sessions that began with their settings are closed when idle.
func (r *Registry) scheduleReset(project uuid.UUID) {
	if p := r.openProject(project); p != nil {
		p.loginsAltered.Store(true)
		p.resetPools()
	}
}

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

// UsedSince returns the projects that are over their quota, or were used after since.
func (r *Registry) UsedSince(since time.Time) []*Project {
	return slices.DeleteFunc(r.openProjects(), func(p *Project) bool { return !p.OverQuota() && !p.usedSince(since) })
}

func (r *Registry) closeUnused(since time.Time) {
	var projects sync.WaitGroup
	for _, p := range r.openProjects() {
		projects.Go(func() { p.closeUnused(since) })
	}

	projects.Wait()
}

func (r *Registry) closeAll() { r.closeUnused(time.Now().Add(time.Hour)) }

// evict closes an idle connection to a cluster for an owner, from the account with the most
// connections: there, from the least recently used project. Once the owner's account has as many as
// it may, it is the owner's account.
func (r *Registry) evict(id pgcluster.ID, owner fair.Key) bool {
	cluster := r.clusters[id]
	places := cluster.Connections()
	count, _ := places.Held(owner)
	full := count >= places.PerAccount()

	type candidate struct {
		project *Project
		count   int64
	}

	var candidates []candidate
	for _, p := range r.withConnections(cluster) {
		key := p.lastKey()
		if !full || key.Account == owner.Account {
			count, _ := places.Held(key)
			candidates = append(candidates, candidate{p, count})
		}
	}

	slices.SortStableFunc(candidates, func(a, b candidate) int { return cmp.Compare(b.count, a.count) })

	return slices.ContainsFunc(candidates, func(c candidate) bool { return c.project.evict() })
}

// withConnections returns the projects with open connections to a cluster, least recently used
// first. The budget bounds their number.
func (r *Registry) withConnections(c *pgcluster.Cluster) []*Project {
	r.mu.Lock()
	defer r.mu.Unlock()

	var all []*Project
	for e := r.recent.Back(); e != nil; e = e.Prev() {
		if p := e.Value.(*Project); p.cluster == c && p.open.Load() > 0 {
			all = append(all, p)
		}
	}

	return all
}

// EndSessions ends a project's client sessions after the database was closed.
func (r *Registry) EndSessions(id uuid.UUID) {
	if p := r.openProject(id); p != nil {
		p.endSessions(ErrClosed)
	}
}

// ResetPools closes a project's idle connections, and the others when they are released.
func (r *Registry) ResetPools(id uuid.UUID) {
	if p := r.openProject(id); p != nil {
		p.resetPools()
	}
}

// Forget closes a dropped project's pools, and removes it from the registry.
func (r *Registry) Forget(id uuid.UUID) {
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
