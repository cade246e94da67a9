package projectdb

import (
	"container/list"
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/socle-dev/socle/internal/audit"
)

// Project is a handle on a project's database. Pools are opened at first use and closed when idle;
// they are opened again on demand, so a Project stays valid as long as its database exists. It is
// safe for concurrent use.
type Project struct {
	UUID uuid.UUID

	registry      *Registry
	recentElem    *list.Element // in Registry.recent; nil if opened by [Registry.WithInactive]
	open          atomic.Int32  // number of connections
	mu            sync.Mutex
	pools         map[login]*pgxpool.Pool
	sessions      map[*Session]bool // of clients
	lastUsed      time.Time
	deleted       bool // deleted: the pools are closed for good
	maintained    bool // opened by [Registry.WithInactive] although its database is closed
	gate          gate
	account       accountCache
	loginsAltered atomic.Bool // reset the logins before opening the next session

	full, overgrown atomic.Bool  // see [Lifecycle.WatchSizes]
	unchained       atomic.Bool  // see [Registry.WatchAudit]
	writes          atomic.Int64 // count of rows written at the last measurement
	minFullBytes    int64        // smallest size in bytes measured since the database became full
}

// Trusted returns the pool of the platform's login in the project's database. It runs only
// statements of Socle itself, on the platform's own schemas and the system catalogs.
func (p *Project) Trusted() *pgxpool.Pool { return p.pool(trusted) }

// InTx runs f in a transaction of the platform's login. An entry in the project's audit log commits
// with it, see [audit.Write].
func (p *Project) InTx(ctx context.Context, f func(tx pgx.Tx) error) error {
	err := audit.Write(ctx, p.Trusted(), f)
	if err == nil {
		p.SetUnchained()
	}

	return err
}

// ChangeOne is [Project.InTx] for a change of one row in one round trip, see [audit.One].
func ChangeOne[T any](ctx context.Context, p *Project, c audit.Change) (T, error) {
	changed, err := audit.One[T](ctx, p.Trusted(), c)
	if err == nil {
		p.SetUnchained()
	}

	return changed, err
}

// Owner returns the pool of the project's owner, for DDL and all other statements that contain user
// input. Each connection is reset before it is reused, see [pg.Reset].
func (p *Project) Owner() *pgxpool.Pool { return p.pool(owner) }

// DumpLogin returns the name of the login for backups of the project.
func (p *Project) DumpLogin() string { return p.registry.DumpLogin(p.UUID) }

// Request returns the pool of the login that may assume the roles anon and authenticated, for the
// rows API.
func (p *Project) Request() *pgxpool.Pool { return p.pool(request) }

// Service returns the pool of the login that may assume the role service_role, for the rows API.
func (p *Project) Service() *pgxpool.Pool { return p.pool(service) }

func (p *Project) pool(l login) *pgxpool.Pool {
	p.registry.touch(p)

	p.mu.Lock()
	defer p.mu.Unlock()

	p.lastUsed = time.Now()

	if p.pools == nil {
		p.pools = map[login]*pgxpool.Pool{}
	}

	if p.pools[l] == nil {
		p.pools[l] = p.registry.newPool(p, l)
		if p.deleted {
			p.pools[l].Close()
		}
	}

	return p.pools[l]
}

// close closes the pools unless one was requested after unusedSince. It blocks until all acquired
// connections are released.
func (p *Project) close(unusedSince time.Time) {
	p.mu.Lock()

	if p.lastUsed.After(unusedSince) {
		p.mu.Unlock()
		return
	}

	pools := p.pools
	p.pools = nil
	p.mu.Unlock()

	closePools(pools)
}

// closePools closes pools at the same time: each waits for PostgreSQL to end its sessions, and for
// the statements that run.
func closePools(pools map[login]*pgxpool.Pool) {
	var all sync.WaitGroup
	for _, pool := range pools {
		all.Go(pool.Close)
	}

	all.Wait()
}

// closeForever closes the pools permanently. It blocks as close does.
func (p *Project) closeForever() {
	p.mu.Lock()
	pools := p.pools
	p.pools, p.deleted = nil, true
	p.mu.Unlock()

	closePools(pools)
}

// evict closes one idle connection. It reports false if there is none.
func (p *Project) evict() bool {
	if p.open.Load() == 0 {
		return false
	}

	p.mu.Lock()
	pools := slices.Collect(maps.Values(p.pools))
	p.mu.Unlock()

	for _, pool := range pools {
		if pool.Stat().IdleConns() > 0 && evictFrom(pool) {
			return true
		}
	}

	return false
}

// evictFrom closes one of a pool's idle connections.
func evictFrom(pool *pgxpool.Pool) bool {
	ctx, cancel := context.WithTimeout(context.Background(), resetTimeout)
	defer cancel()

	idle := pool.AcquireAllIdle(ctx)
	if len(idle) == 0 {
		return false
	}

	_ = idle[0].Conn().Close(ctx)

	for _, conn := range idle {
		conn.Release()
	}

	return true
}
