package tenant

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

	"socle/internal/audit"
)

// Project is an open project: the way to its database. Its pools are opened at first use, closed when
// nobody used them for a while, and opened again, so a Project stays good for as long as its database is there.
type Project struct {
	UUID uuid.UUID

	registry *Registry
	place    *list.Element // in the registry's order of last use; nil for a project that [Registry.Maintain] opened
	open     atomic.Int32  // connections
	mu       sync.Mutex
	pools    map[login]*pgxpool.Pool
	used     time.Time
	gone     bool // deleted: whoever still holds the project gets no connection any more
	closed   bool // opened by [Registry.Maintain], though its database is closed
	gate     gate
	altered  atomic.Bool // a login has to be reset before the next session begins

	full, overgrown atomic.Bool  // see Lifecycle.WatchSizes
	writes          atomic.Int64 // when the database was measured
	fullFrom        int64        // bytes that the database had when it was found full, or fewer that it had since
}

// Trusted returns the pool of the platform's login in the project's database.
// Only statements that Socle wrote run on it, and only on the platform's own schemas and the catalogue.
func (p *Project) Trusted() *pgxpool.Pool { return p.pool(trusted) }

// InTx runs f in a transaction of the platform's login that the project's audit log has an entry of, see [audit.Write].
func (p *Project) InTx(ctx context.Context, f func(tx pgx.Tx) error) error {
	return audit.Write(ctx, p.Trusted(), f)
}

// Change is [Project.InTx] for what returns what it changed.
func Change[T any](ctx context.Context, p *Project, f func(tx pgx.Tx) (T, error)) (T, error) {
	var changed T
	err := p.InTx(ctx, func(tx pgx.Tx) error {
		var err error
		changed, err = f(tx)
		return err
	})
	return changed, err
}

// Owner returns the pool of the project's owner: DDL, and whatever else a user shaped, runs on it.
// A connection is cleaned of what such a statement left in its session before the next one gets it.
func (p *Project) Owner() *pgxpool.Pool { return p.pool(owner) }

// Dumper returns the name of the login that backs up the project.
func (p *Project) Dumper() string { return p.registry.Dumper(p.UUID) }

// Request returns the pool of the login that may become anon or authenticated, for the rows API.
func (p *Project) Request() *pgxpool.Pool { return p.pool(request) }

// Service returns the pool of the login that may become service_role, for the rows API.
func (p *Project) Service() *pgxpool.Pool { return p.pool(service) }

func (p *Project) pool(l login) *pgxpool.Pool {
	p.registry.touch(p)

	p.mu.Lock()
	defer p.mu.Unlock()

	p.used = time.Now()

	if p.pools == nil {
		p.pools = map[login]*pgxpool.Pool{}
	}

	if p.pools[l] == nil {
		p.pools[l] = p.registry.newPool(p, l)
		if p.gone {
			p.pools[l].Close()
		}
	}

	return p.pools[l]
}

// close closes the pools if nobody has asked for one since a time. It waits for
// those who still use a connection.
func (p *Project) close(unusedSince time.Time) {
	p.mu.Lock()

	if p.used.After(unusedSince) {
		p.mu.Unlock()
		return
	}

	pools := p.pools
	p.pools = nil
	p.mu.Unlock()

	for _, pool := range pools {
		pool.Close()
	}
}

// leave closes the pools for good. It waits like close.
func (p *Project) leave() {
	p.mu.Lock()
	pools := p.pools
	p.pools, p.gone = nil, true
	p.mu.Unlock()

	for _, pool := range pools {
		pool.Close()
	}
}

// evict closes a connection that is idle, and reports whether there was one.
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
	ctx, cancel := context.WithTimeout(context.Background(), cleanTime)
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
