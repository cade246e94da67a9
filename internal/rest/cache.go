package rest

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/rest/catalog"
	"github.com/socle-dev/socle/internal/rest/session"
	"github.com/socle-dev/socle/internal/tick"
)

const (
	unwatchedTTL       = 5 * time.Second // lifetime of a catalog without change detection
	unwatchedMissTTL   = time.Second     // the same for a request that misses an object in it
	catalogReadTimeout = 60 * time.Second
	maxReadPause       = 5 * time.Second // between two reads
	maxReadAttempts    = 5               // attempts at a read that fails by concurrent drops
)

// Source is where a Cache reads the catalog and its version.
type Source struct {
	Pool    func() *pgxpool.Pool // pool whose login can read the catalog
	Options catalog.Options
	// Version is a query for the schema version: a text that changes with every commit that changes
	// the schema. Each request compares it with the version of its catalog, on its own login and in
	// its own round trip. The first request after a change thus sees the change, without LISTEN. ""
	// means that there is no version, see [Cache.ListenOn].
	Version string
	// Changes is an expression for a number that every transaction changes at once, before it
	// changes the version at its commit, as [Cache.require] assumes. "" means that there is none.
	Changes string
	// AfterRead is called on the connection that has read the catalog; nil means no hook.
	AfterRead func(ctx context.Context, conn pg.Querier) error
}

// Cache caches the catalog of a database. The first request reads it, and so does a request that
// finds it outdated, by the schema version or else by a notification, see [Cache.ListenOn]. With a
// schema version, the cache is idle and without a connection until a request needs a read.
type Cache struct {
	source    Source
	log       *slog.Logger
	listener  *listener                // nil without LISTEN
	readPause func(took time.Duration) // limits the rate of consecutive reads

	current atomic.Pointer[snapshot]
	zones   atomic.Pointer[map[string]bool] // see [Cache.hasTimezone]

	mu         sync.Mutex
	generation int   // incremented by Forget
	loading    *load // nil if no read runs
	closed     bool
	ctx        context.Context // context of background work
	cancel     context.CancelFunc
	running    sync.WaitGroup
}

// snapshot is a catalog with the version of its schema.
type snapshot struct {
	*catalog.Catalog
	version string // version of the schema, not newer than the catalog; "" if it has none
	settled
	size     int // bytes
	readAt   time.Time
	readTime time.Duration
}

// load is a running read of the catalog.
type load struct {
	done     chan struct{}
	repeat   bool // the schema changed since its start
	snapshot *snapshot
	err      error
}

// NewCache returns a cache for a source.
func NewCache(source Source, log *slog.Logger) *Cache {
	c := &Cache{source: source, log: log}
	c.readPause = c.pause
	c.ctx, c.cancel = context.WithCancel(context.Background())

	return c
}

// get returns the catalog. It waits for the first read only.
func (c *Cache) get(ctx context.Context) (*snapshot, error) {
	if s := c.peek(time.Now()); s != nil {
		return s, nil
	}
	return c.wait(ctx, c.startRead(false))
}

// Get returns the catalog. It waits for the first read only.
func (c *Cache) Get(ctx context.Context) (*catalog.Catalog, error) {
	s, err := c.get(ctx)
	if err != nil {
		return nil, err
	}

	return s.Catalog, nil
}

// Known returns the catalog, or nil before the first read.
func (c *Cache) Known() *catalog.Catalog {
	if s := c.peek(time.Now()); s != nil {
		return s.Catalog
	}
	return nil
}

// peek returns the snapshot, or nil before the first read. It starts a read if the snapshot is
// unwatched and older than unwatchedTTL.
func (c *Cache) peek(now time.Time) *snapshot {
	if c.listener != nil {
		c.listener.start()
	}

	s := c.current.Load()
	if s != nil && c.isUnwatched(s) && now.Sub(s.readAt) > unwatchedTTL {
		c.startRead(false)
	}

	return s
}

// isUnwatched reports whether schema changes are not detected: the LISTEN connection is lost, or
// the schema lacks its version because the database waits for migrations.
func (c *Cache) isUnwatched(s *snapshot) bool {
	if c.source.Version != "" {
		return s.version == ""
	}
	return c.listener != nil && !c.listener.listening.Load()
}

// newer returns a newer catalog than old for a request that failed with old, or nil if there is
// none.
func (c *Cache) newer(ctx context.Context, old *snapshot) *snapshot {
	if old.version != "" {
		return c.newerVersion(ctx, old)
	}

	c.mu.Lock()
	l := c.loading
	c.mu.Unlock()

	now := c.current.Load()
	if l == nil && now != nil && c.isUnwatched(now) && time.Since(now.readAt) > unwatchedMissTTL {
		l = c.startRead(false)
	}

	if l != nil {
		if _, err := c.wait(ctx, l); err != nil {
			return nil
		}
	}

	if now = c.current.Load(); now != nil && now != old {
		return now
	}

	return nil
}

// newerVersion implements newer for a schema with a version: it queries the version.
func (c *Cache) newerVersion(ctx context.Context, old *snapshot) *snapshot {
	version, err := pg.Value[string](ctx, c.source.Pool(), c.source.Version)
	if err != nil {
		c.log.Warn("schema version query failed", "error", err)
		return nil
	}

	s := c.current.Load()
	for range 2 { // a running read may have started before the change
		if s != nil && s.version == version {
			break
		}

		if s, err = c.wait(ctx, c.startRead(false)); err != nil {
			return nil
		}
	}

	if s == old {
		return nil
	}

	return s
}

// replace returns another catalog than old, which is known to be outdated.
func (c *Cache) replace(ctx context.Context, old *snapshot) (*snapshot, error) {
	if s := c.current.Load(); s != nil && s != old {
		return s, nil
	}
	return c.wait(ctx, c.startRead(false))
}

// Reload starts to read the catalog again after a change. It does not wait.
func (c *Cache) Reload() {
	if c.current.Load() != nil {
		c.startRead(true)
	}
}

// Forget drops the catalog after the database was replaced. The next request waits for a new read.
func (c *Cache) Forget() {
	c.mu.Lock()
	defer c.mu.Unlock()

	c.generation++
	c.current.Store(nil)
}

// Retire stops listening, for a cache that is being replaced, and waits until it has stopped.
// Requests that still use the cache can make it read the catalog.
func (c *Cache) Retire() {
	if c.listener != nil {
		c.listener.stop()
	}
}

// Close ends the background work and waits until it has ended. The cache still serves its catalog.
func (c *Cache) Close() {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.cancel()
	c.Retire()
	c.running.Wait()
}

func (c *Cache) wait(ctx context.Context, l *load) (*snapshot, error) {
	select {
	case <-l.done:
		return l.snapshot, l.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// startRead starts to read the catalog, unless a read is running. changed means that the schema has
// changed: a running read may be too old, so it is repeated.
func (c *Cache) startRead(changed bool) *load {
	c.mu.Lock()
	defer c.mu.Unlock()

	if c.loading != nil {
		c.loading.repeat = c.loading.repeat || changed
		return c.loading
	}

	l := &load{done: make(chan struct{})}
	if c.closed {
		l.err = errClosed
		close(l.done)

		return l
	}

	c.loading = l
	c.running.Go(func() { c.read(l) })

	return l
}

// pause waits as long as the last read took, so that a schema that keeps changing is read half of
// the time at most.
func (c *Cache) pause(took time.Duration) {
	_ = tick.Pause(c.ctx, min(took, maxReadPause))
}

var errClosed = errors.New("the catalog cache is closed")

// read runs a load.
func (c *Cache) read(l *load) {
	if last := c.current.Load(); last != nil && c.source.Version != "" {
		if remaining := last.readTime - time.Since(last.readAt.Add(last.readTime)); remaining > 0 {
			c.readPause(remaining)
		}
	}

	for {
		ctx, cancel := context.WithTimeout(c.ctx, catalogReadTimeout)
		at := time.Now()
		c.mu.Lock()

		generation := c.generation
		c.mu.Unlock()

		for attempt := 0; attempt < maxReadAttempts; attempt++ {
			if l.snapshot, l.err = c.readSnapshot(ctx); !isConcurrentDrop(l.err) {
				break
			}
		}

		cancel()
		took := time.Since(at)
		c.mu.Lock()

		// The catalog may be that of the replaced database.
		if generation != c.generation && c.ctx.Err() == nil {
			c.mu.Unlock()
			continue
		}

		if l.err != nil {
			c.log.Warn("catalog read failed, keeping the previous one", "error", l.err)
		} else {
			l.snapshot.readAt, l.snapshot.readTime = at, took
			first := c.current.Swap(l.snapshot) == nil
			if l.repeat {
				if first { // requests are waiting for the first one
					close(l.done)
					l = &load{done: make(chan struct{})}
					c.loading = l
				}

				c.mu.Unlock()
				c.readPause(took)
				c.mu.Lock()
				l.repeat = false
				c.mu.Unlock()

				continue
			}
		}

		c.loading = nil
		close(l.done)
		c.mu.Unlock()

		return
	}
}

// readSnapshot reads the version and the catalog on one connection, since the database may be
// replaced meanwhile.
func (c *Cache) readSnapshot(ctx context.Context) (_ *snapshot, err error) {
	defer fault.Recover(&err)

	conn, err := pg.Acquire(ctx, c.source.Pool())
	if err != nil {
		return nil, err
	}
	defer conn.Release()

	// The version comes first: a change in between then causes one more read, never an outdated
	// catalog.
	s := &snapshot{}
	if c.source.Version != "" {
		// undefined_table
		if s.version, err = pg.Value[string](ctx, conn, c.source.Version); err != nil && pg.State(err) != "42P01" {
			return nil, err
		}
	}

	err = pgx.BeginTxFunc(ctx, conn, pgx.TxOptions{
		IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly,
	}, func(tx pgx.Tx) error {
		// JIT compilation of a statement that runs once takes twenty times as long as its
		// execution.
		if _, err := tx.Exec(ctx, "set local jit = off"); err != nil {
			return err
		}

		s.Catalog, err = catalog.Read(ctx, tx, c.source.Options)
		return err
	})
	if err != nil {
		return nil, err
	}

	s.size = s.Catalog.Size()

	if c.source.AfterRead != nil && s.version != "" {
		if err := c.source.AfterRead(ctx, conn); err != nil {
			c.log.Warn("hook after catalog read failed", "error", err)
		}
	}

	return s, nil
}

// hasTimezone reports whether PostgreSQL knows a time zone. PostgreSQL reads a thousand files to
// list them, so the list is read for the first request that names one, and cached: it changes only
// with PostgreSQL itself.
func (c *Cache) hasTimezone(ctx context.Context, name string) (bool, error) {
	if known := c.zones.Load(); known != nil {
		return (*known)[name], nil
	}

	names, err := pg.Values[string](ctx, c.source.Pool(), "select name from pg_catalog.pg_timezone_names")
	if err != nil {
		return false, err
	}

	zones := make(map[string]bool, len(names))
	for _, name := range names {
		zones[name] = true
	}

	c.zones.Store(&zones)
	return zones[name], nil
}

// isConcurrentDrop reports whether reading the catalog failed because an object was dropped
// meanwhile: a default of a dropped type cannot be printed, for example.
func isConcurrentDrop(err error) bool {
	return pg.State(err) == "XX000" || session.IsMissingObject(err)
}
