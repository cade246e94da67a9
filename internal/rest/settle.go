package rest

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/rest/session"
	"github.com/socle-dev/socle/internal/tick"
)

// The version of a schema changes at the commit of a change, so comparing versions is exact, but
// expensive. The number of Source.Changes is cheap, but changes before the commit. A snapshot is
// settled for a number when
//
//  1. the number was read,
//  2. all transactions that ran then have ended, and so all that had changed the number,
//  3. the schema has the snapshot's version after that.
//
// A request that reads the same number has a current catalog: a later change would have replaced
// the number before its commit. Until a snapshot is settled, requests compare its version.

const (
	minSettleInterval = 10 * time.Millisecond // between looks at running transactions; it doubles
	maxSettleInterval = time.Second
	settleTimeout     = 5 * time.Second // limit of an attempt; a later request starts another one
)

// settled is the state of a snapshot.
type settled struct {
	changes  atomic.Pointer[string] // nil until it is settled
	settling atomic.Bool
}

// require returns what a request with a snapshot compares.
func (c *Cache) require(s *snapshot) session.Version {
	if changes := s.changes.Load(); changes != nil {
		return session.Version{Query: c.source.Changes, Value: *changes}
	}
	return c.requireVersion(s)
}

// requireVersion is [Cache.require] for a snapshot that is not settled.
func (c *Cache) requireVersion(s *snapshot) session.Version {
	return session.Version{Query: c.source.Version, Value: s.version}
}

// unsettle makes requests compare the version of a snapshot, after one has found another number
// than v has. It returns false if v is a version.
func (c *Cache) unsettle(s *snapshot, v session.Version) bool {
	if c.source.Changes == "" || v.Query != c.source.Changes {
		return false
	}

	if changes := s.changes.Load(); changes != nil && *changes == v.Value {
		s.changes.CompareAndSwap(changes, nil)
	}

	return true
}

// startSettling starts to settle a snapshot on the connections of pool. A request calls it when it
// no longer uses its own connection, so that an idle project opens no second one.
func (c *Cache) startSettling(s *snapshot, pool *pgxpool.Pool) {
	possible := c.source.Changes != "" && s.version != ""
	if !possible || s.changes.Load() != nil || s.settling.Load() {
		return
	}

	c.mu.Lock()
	defer c.mu.Unlock()

	if c.closed || !s.settling.CompareAndSwap(false, true) {
		return
	}

	c.running.Go(func() {
		defer s.settling.Store(false)

		ctx, cancel := context.WithTimeout(c.ctx, settleTimeout)
		defer cancel()

		if err := c.settle(ctx, s, pool); err != nil && ctx.Err() == nil {
			c.log.Debug("settling the catalog failed", "error", err)
			<-ctx.Done() // the number may not exist before the database is migrated
		}
	})
}

// settle settles a snapshot, as soon as the transactions that are running have ended. It uses the
// connections of the requests, since their login must be allowed to read the number.
func (c *Cache) settle(ctx context.Context, s *snapshot, pool *pgxpool.Pool) error {
	changes, err := pg.Value[string](ctx, pool, "select "+c.source.Changes+"::pg_catalog.text")
	if err != nil {
		return err
	}

	// A snapshot's xmax is no bound: it leaves out the youngest running transactions.
	before, err := pg.Value[int64](ctx, pool, "select pg_catalog.pg_current_xact_id()::pg_catalog.text::bigint")
	if err != nil {
		return err
	}

	for interval := minSettleInterval; ; interval = min(2*interval, maxSettleInterval) {
		now, err := pg.One[struct {
			Oldest  int64
			Version string
		}](ctx, pool, `
			select pg_catalog.pg_snapshot_xmin(pg_catalog.pg_current_snapshot())::pg_catalog.text::bigint as oldest,
				(`+c.source.Version+`) as version`)
		if err != nil {
			return err
		}

		if now.Version != s.version {
			return nil // the next request reads the catalog again
		}
		if now.Oldest >= before {
			s.changes.Store(&changes)
			return nil
		}

		if err := tick.Pause(ctx, interval); err != nil {
			return err
		}
	}
}
