package rest

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"socle/internal/pg"
	"socle/internal/rest/catalog"
)

// Times of a Cache.
const (
	unwatchedTTL       = 5 * time.Second  // age at which a catalogue is read again that nothing watches
	unwatchedMissTTL   = time.Second      // the same for a request that misses something in it
	catalogReadTimeout = 60 * time.Second // for reading the catalogue
	maxReadPause       = 5 * time.Second  // between two readings
	maxReadAttempts    = 5                // while it changes under the reading
)

// Source is where a Cache reads the catalogue, and how it knows that it has to.
type Source struct {
	Pool    func() *pgxpool.Pool // its login can read the catalogue
	Options catalog.Options
	// Version is a query for the version of the schema: a text that each transaction which changes the schema changes when it
	// commits. Every request compares it, on its own login and in its own round trip, with that of the catalogue it was planned
	// by, so the next request after a change sees the change, and nothing listens. "": the schema has no version, see [Cache.ListenOn].
	Version string
	// Read is called on the connection that has read the catalogue; nil: nothing is.
	AfterRead func(ctx context.Context, conn pg.Querier) error
}

// Cache keeps the catalogue of a database. The first request reads it, and so does one that finds it out of date: by the version
// of the schema where it has one, else because a notification said so, see [Cache.ListenOn]. A cache whose schema has a version
// runs nothing and has no connection while no request needs the catalogue read.
type Cache struct {
	source    Source
	log       *slog.Logger
	listener  *listener                // nil: nothing listens
	readPause func(took time.Duration) // between two readings of which the second is known to be needed

	current atomic.Pointer[snapshot]
	zones   atomic.Pointer[map[string]bool] // see [Cache.knowsZone]

	mu         sync.Mutex
	generation int   // counts what the database has been
	loading    *load // nil if the catalogue is not being read
	closed     bool
	ctx        context.Context // of what the cache does by itself
	cancel     context.CancelFunc
	running    sync.WaitGroup
}

type snapshot struct {
	*catalog.Catalog
	version  string // of the schema, as old as the catalogue or older; "" if it has none
	size     int    // bytes
	readAt   time.Time
	readTime time.Duration
}

// load is a reading of the catalogue under way.
type load struct {
	done     chan struct{}
	repeat   bool // the schema has changed since it began
	snapshot *snapshot
	err      error
}

// NewCache returns a cache that reads from a source.
func NewCache(source Source, log *slog.Logger) *Cache {
	c := &Cache{source: source, log: log}
	c.readPause = c.pause
	c.ctx, c.cancel = context.WithCancel(context.Background())

	return c
}

// get returns the catalogue, and waits only for the very first one.
func (c *Cache) get(ctx context.Context) (*snapshot, error) {
	if known := c.peek(time.Now()); known != nil {
		return known, nil
	}
	return c.wait(ctx, c.startRead(false))
}

// Get returns the catalogue, and waits only for the very first one.
func (c *Cache) Get(ctx context.Context) (*catalog.Catalog, error) {
	l, err := c.get(ctx)
	if err != nil {
		return nil, err
	}

	return l.Catalog, nil
}

// Known returns the catalogue, nil if it was not read yet.
func (c *Cache) Known() *catalog.Catalog {
	if l := c.peek(time.Now()); l != nil {
		return l.Catalog
	}
	return nil
}

func (c *Cache) peek(now time.Time) *snapshot {
	if c.listener != nil {
		c.listener.start()
	}

	l := c.current.Load()
	if l != nil && c.isUnwatched(l) && now.Sub(l.readAt) > unwatchedTTL {
		c.startRead(false)
	}

	return l
}

// unwatched reports whether a change of the schema would go unseen: the connection that listens is lost, or the schema is to have
// a version and has none, since its database waits for migrations.
func (c *Cache) isUnwatched(l *snapshot) bool {
	if c.source.Version != "" {
		return l.version == ""
	}
	return c.listener != nil && !c.listener.listening.Load()
}

// newer returns a catalogue that is newer than old, for a request that failed by it: nil if there is none.
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

// newerVersion is newer for a schema with a version: it asks for that.
func (c *Cache) newerVersion(ctx context.Context, old *snapshot) *snapshot {
	version, err := pg.Value[string](ctx, c.source.Pool(), c.source.Version)
	if err != nil {
		c.log.Warn("the version of the schema can't be read", "error", err)
		return nil
	}

	l := c.current.Load()
	for range 2 { // a reading that is under way may have begun before the change
		if l != nil && l.version == version {
			break
		}

		if l, err = c.wait(ctx, c.startRead(false)); err != nil {
			return nil
		}
	}

	if l == old {
		return nil
	}

	return l
}

// renewed returns another catalogue than old, which is known to be out of date.
func (c *Cache) replace(ctx context.Context, old *snapshot) (*snapshot, error) {
	if l := c.current.Load(); l != nil && l != old {
		return l, nil
	}
	return c.wait(ctx, c.startRead(false))
}

// Reload has the catalogue read again, for someone who knows that it has changed. It does not wait.
func (c *Cache) Reload() {
	if c.current.Load() != nil {
		c.startRead(true)
	}
}

// Forget forgets the catalogue, for someone who knows that the database has become another one: the next request waits until that has been read.
func (c *Cache) Forget() {
	c.mu.Lock()
	defer c.mu.Unlock()

	c.generation++
	c.current.Store(nil)
}

// Retire ends the listening, for a cache that another takes the place of, and waits until it has ended. Requests that have the cache still can
// have it read the catalogue.
func (c *Cache) Retire() {
	if c.listener != nil {
		c.listener.stop()
	}
}

// Close ends what the cache does by itself, and waits until it has ended. The cache still serves what it has.
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

// start begins to read the catalogue, unless that is under way. changed says that it is known to be
// another one now: what is being read may be the one before, so it is read once more.
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

// pause waits as long as a reading took: a schema that changes without end is read half of the time, not all of it.
func (c *Cache) pause(took time.Duration) {
	select {
	case <-c.ctx.Done():
	case <-time.After(min(took, maxReadPause)):
	}
}

var errClosed = errors.New("the catalogue's cache is closed")

// read carries out a reading.
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

		database := c.generation
		c.mu.Unlock()

		for attempt := 0; attempt < maxReadAttempts; attempt++ {
			if l.snapshot, l.err = c.readSnapshot(ctx); !isConcurrentDrop(l.err) {
				break
			}
		}

		cancel()
		took := time.Since(at)
		c.mu.Lock()

		if database != c.generation && c.ctx.Err() == nil { // it may be that of the one before
			c.mu.Unlock()
			continue
		}

		if l.err != nil {
			c.log.Warn("the catalogue can't be read; the one before serves on", "error", l.err)
		} else {
			l.snapshot.readAt, l.snapshot.readTime = at, took
			first := c.current.Swap(l.snapshot) == nil
			if l.repeat {
				if first { // nobody waits for the first one longer than they must
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

// readAtOnce reads the catalogue as it is at one moment of one database: another may take its place meanwhile.
func (c *Cache) readSnapshot(ctx context.Context) (*snapshot, error) {
	conn, err := pg.Acquire(ctx, c.source.Pool())
	if err != nil {
		return nil, err
	}
	defer conn.Release()

	// First the version, then the catalogue: a change between the two is met with one more reading, never with an old catalogue.
	got := &snapshot{}
	if c.source.Version != "" {
		// undefined_table
		if got.version, err = pg.Value[string](ctx, conn, c.source.Version); err != nil && pg.State(err) != "42P01" {
			return nil, err
		}
	}

	err = pgx.BeginTxFunc(ctx, conn, pgx.TxOptions{
		IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly,
	}, func(tx pgx.Tx) error {
		// That a statement which runs once is compiled takes twenty times as long as it does.
		if _, err := tx.Exec(ctx, "set local jit = off"); err != nil {
			return err
		}

		got.Catalog, err = catalog.Read(ctx, tx, c.source.Options)
		return err
	})
	if err != nil {
		return nil, err
	}

	got.size = got.Catalog.Size()

	if c.source.AfterRead != nil && got.version != "" {
		if err := c.source.AfterRead(ctx, conn); err != nil {
			c.log.Warn("after the catalogue was read", "error", err)
		}
	}

	return got, nil
}

// knowsZone reports whether PostgreSQL has a time zone of this name. It goes through a thousand files to say which there are: they are read for the
// first request that names one, and kept, for they change with PostgreSQL itself.
func (c *Cache) hasTimezone(ctx context.Context, name string) (bool, error) {
	if known := c.zones.Load(); known != nil {
		return (*known)[name], nil
	}

	names, err := pg.Values[string](ctx, c.source.Pool(), "select name from pg_catalog.pg_timezone_names")
	if err != nil {
		return false, err
	}

	known := make(map[string]bool, len(names))
	for _, name := range names {
		known[name] = true
	}

	c.zones.Store(&known)
	return known[name], nil
}

// goneMeanwhile reports whether the catalogue could not be read because something was dropped in that moment: a default of a type that is no
// more can't be printed.
func isConcurrentDrop(err error) bool {
	e, ok := errors.AsType[*pgconn.PgError](err)
	return ok && (e.Code == "XX000" || stalePlanStates[e.Code])
}
