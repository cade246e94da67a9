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
	"github.com/socle-dev/socle/internal/pgcluster"
)

// Project is a handle on a project's database. Pools are opened at first use and closed when idle;
// they are opened again on demand, so a Project stays valid as long as the database exists. It is
// safe for concurrent use.
type Project struct {
	UUID uuid.UUID

	registry      *Registry
	cluster       *pgcluster.Cluster // with its database
	recentElem    *list.Element      // in Registry.recent; nil if opened by [Registry.WithInactive]
	open          atomic.Int32       // number of connections
	mu            sync.Mutex
	pools         map[*poolKind]*pgxpool.Pool
	sessions      map[*Session]bool // client sessions
	lastUsed      time.Time
	gone          bool // the database is dropped: the pools are closed for good
	inactive      bool // opened by [Registry.WithInactive] although the database is closed
	gate          gate
	account       accountCache
	loginsAltered atomic.Bool // reset the logins before opening the next session

	full, overgrown atomic.Bool  // see [Project.RecordSize]
	unchained       atomic.Bool  // see [Registry.WatchAudit]
	writes          atomic.Int64 // rows written until the last measurement
	bytes, quota    int64        // measured last; 0: not yet
	minFullBytes    int64        // smallest size in bytes measured since the database became full
}

// Cluster returns the PostgreSQL server with the project's database.
func (p *Project) Cluster() *pgcluster.Cluster { return p.cluster }

// Trusted returns the platform login's pool in the project's database. It runs only Socle's own
// statements, on the platform's own schemas and the system catalogs.
func (p *Project) Trusted() *pgxpool.Pool { return p.pool(trustedPool) }

// InTx runs f in a transaction on the platform's login. An entry in the project's audit log commits
// with it, see [audit.Write].
func (p *Project) InTx(ctx context.Context, f func(tx pgx.Tx) error) error {
	err := audit.Write(ctx, p.Trusted(), f)
	if err == nil {
		p.SetUnchained()
	}

	return err
}

// ChangeOne is [Project.InTx] for a change to one row in one round trip, see [audit.One].
func ChangeOne[T any](ctx context.Context, p *Project, c audit.Change) (T, error) {
	value, err := audit.One[T](ctx, p.Trusted(), c)
	if err == nil {
		p.SetUnchained()
	}

	return value, err
}

// Owner returns the owner's pool, for DDL and all other statements that contain user input. Each
// connection is reset before it is reused, see [pg.Reset].
func (p *Project) Owner() *pgxpool.Pool { return p.pool(ownerPool) }

// ConnectDump connects to the database under the dump login. It waits while the database is being
// swapped. The caller closes the connection.
func (p *Project) ConnectDump(ctx context.Context) (*pgx.Conn, error) {
	if err := p.gate.wait(ctx); err != nil {
		return nil, err
	}
	return p.cluster.Connect(ctx, p.cluster.Config(p.UUID, pgcluster.Dump))
}

// DumpURL returns the database's connection URI for pg_dump, and the password, which belongs in a
// file rather than in a command's arguments.
func (p *Project) DumpURL() (address, password string) {
	return p.cluster.ProgramAddress(p.cluster.Config(p.UUID, pgcluster.Dump))
}

// DumpLogin returns the name of the project's backup login.
func (p *Project) DumpLogin() string { return p.cluster.DumpLogin(p.UUID) }

// Request returns the pool for the login that may assume the roles anon and authenticated, for the
// rows API.
func (p *Project) Request() *pgxpool.Pool { return p.pool(requestPool) }

// Caller returns a pool for SQL of developers in the role anon or authenticated. Its login may
// assume no other role.
func (p *Project) Caller() *pgxpool.Pool { return p.pool(callerPool) }

// Service returns the pool for the login that may assume the role service_role, for the rows API.
func (p *Project) Service() *pgxpool.Pool { return p.pool(servicePool) }

func (p *Project) pool(k *poolKind) *pgxpool.Pool {
	p.registry.touch(p)

	p.mu.Lock()
	defer p.mu.Unlock()

	p.lastUsed = time.Now()

	if p.pools == nil {
		p.pools = map[*poolKind]*pgxpool.Pool{}
	}

	if p.pools[k] == nil {
		p.pools[k] = p.newPool(k)
		if p.gone {
			p.pools[k].Close()
		}
	}

	return p.pools[k]
}

// resetPools closes the idle connections, and the others when they are released.
func (p *Project) resetPools() {
	p.mu.Lock()
	defer p.mu.Unlock()

	for _, pool := range p.pools {
		pool.Reset()
	}
}

// closeUnused closes the pools unless one was requested after unusedSince. It blocks until all
// acquired connections are released.
func (p *Project) closeUnused(unusedSince time.Time) {
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

// closePools closes pools at the same time: each waits for PostgreSQL to end the sessions, and for
// running statements.
func closePools(pools map[*poolKind]*pgxpool.Pool) {
	var all sync.WaitGroup
	for _, pool := range pools {
		all.Go(pool.Close)
	}

	all.Wait()
}

// closeForever closes the pools permanently. It blocks as closeUnused does.
func (p *Project) closeForever() {
	p.mu.Lock()
	pools := p.pools
	p.pools, p.gone = nil, true
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

// evictFrom closes an idle connection in a pool.
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
