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
	unwatchedMost  = 5 * time.Second  // age at which a catalogue is read again that nothing watches
	unwatchedLeast = time.Second      // the same for a request that misses something in it
	readMost       = 60 * time.Second // for reading the catalogue
	pauseMost      = 5 * time.Second  // between two readings
	readTries      = 5                // while it changes under the reading
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
	Read func(ctx context.Context, conn pg.Querier) error
}

// Cache keeps the catalogue of a database. The first request reads it, and so does one that finds it out of date: by the version
// of the schema where it has one, else because a notification said so, see [Cache.ListenOn]. A cache whose schema has a version
// runs nothing and has no connection while no request needs the catalogue read.
type Cache struct {
	source   Source
	log      *slog.Logger
	listener *listener                // nil: nothing listens
	rest     func(took time.Duration) // between two readings of which the second is known to be needed

	current atomic.Pointer[loaded]
	zones   atomic.Pointer[map[string]bool] // see [Cache.knowsZone]

	mu       sync.Mutex
	database int   // counts what the database has been
	loading  *load // nil if the catalogue is not being read
	closed   bool
	ctx      context.Context // of what the cache does by itself
	cancel   context.CancelFunc
	running  sync.WaitGroup
}

type loaded struct {
	*catalog.Catalog
	version string // of the schema, as old as the catalogue or older; "" if it has none
	size    int    // bytes
	at      time.Time
	took    time.Duration
}

// load is a reading of the catalogue under way.
type load struct {
	done  chan struct{}
	again bool // the schema has changed since it began
	got   *loaded
	err   error
}

// NewCache returns a cache that reads from a source.
func NewCache(source Source, log *slog.Logger) *Cache {
	c := &Cache{source: source, log: log}
	c.rest = c.pause
	c.ctx, c.cancel = context.WithCancel(context.Background())

	return c
}

// get returns the catalogue, and waits only for the very first one.
func (c *Cache) get(ctx context.Context) (*loaded, error) {
	if known := c.known(time.Now()); known != nil {
		return known, nil
	}
	return c.wait(ctx, c.start(false))
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
	if l := c.known(time.Now()); l != nil {
		return l.Catalog
	}
	return nil
}

func (c *Cache) known(now time.Time) *loaded {
	if c.listener != nil {
		c.listener.begin()
	}

	l := c.current.Load()
	if l != nil && c.unwatched(l) && now.Sub(l.at) > unwatchedMost {
		c.start(false)
	}

	return l
}

// unwatched reports whether a change of the schema would go unseen: the connection that listens is lost, or the schema is to have
// a version and has none, since its database waits for migrations.
func (c *Cache) unwatched(l *loaded) bool {
	if c.source.Version != "" {
		return l.version == ""
	}
	return c.listener != nil && !c.listener.heard.Load()
}

// newer returns a catalogue that is newer than old, for a request that failed by it: nil if there is none.
func (c *Cache) newer(ctx context.Context, old *loaded) *loaded {
	if old.version != "" {
		return c.newerVersion(ctx, old)
	}

	c.mu.Lock()
	l := c.loading
	c.mu.Unlock()

	if now := c.current.Load(); l == nil && now != nil && c.unwatched(now) && time.Since(now.at) > unwatchedLeast {
		l = c.start(false)
	}

	if l != nil {
		if _, err := c.wait(ctx, l); err != nil {
			return nil
		}
	}

	if now := c.current.Load(); now != nil && now != old {
		return now
	}

	return nil
}

// newerVersion is newer for a schema with a version: it asks for that.
func (c *Cache) newerVersion(ctx context.Context, old *loaded) *loaded {
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

		if l, err = c.wait(ctx, c.start(false)); err != nil {
			return nil
		}
	}

	if l == old {
		return nil
	}

	return l
}

// renewed returns another catalogue than old, which is known to be out of date.
func (c *Cache) renewed(ctx context.Context, old *loaded) (*loaded, error) {
	if l := c.current.Load(); l != nil && l != old {
		return l, nil
	}
	return c.wait(ctx, c.start(false))
}

// Reload has the catalogue read again, for someone who knows that it has changed. It does not wait.
func (c *Cache) Reload() {
	if c.current.Load() != nil {
		c.start(true)
	}
}

// Forget forgets the catalogue, for someone who knows that the database has become another one: the next request waits until that has been read.
func (c *Cache) Forget() {
	c.mu.Lock()
	defer c.mu.Unlock()

	c.database++
	c.current.Store(nil)
}

// Retire ends the listening, for a cache that another takes the place of, and waits until it has ended. Requests that have the cache still can
// have it read the catalogue.
func (c *Cache) Retire() {
	if c.listener != nil {
		c.listener.end()
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

func (c *Cache) wait(ctx context.Context, l *load) (*loaded, error) {
	select {
	case <-l.done:
		return l.got, l.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// start begins to read the catalogue, unless that is under way. changed says that it is known to be
// another one now: what is being read may be the one before, so it is read once more.
func (c *Cache) start(changed bool) *load {
	c.mu.Lock()
	defer c.mu.Unlock()

	if c.loading != nil {
		c.loading.again = c.loading.again || changed
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
	case <-time.After(min(took, pauseMost)):
	}
}

var errClosed = errors.New("the catalogue's cache is closed")

// read carries out a reading.
func (c *Cache) read(l *load) {
	if last := c.current.Load(); last != nil && c.source.Version != "" {
		if left := last.took - time.Since(last.at.Add(last.took)); left > 0 {
			c.rest(left)
		}
	}

	for {
		ctx, cancel := context.WithTimeout(c.ctx, readMost)
		at := time.Now()
		c.mu.Lock()

		database := c.database
		c.mu.Unlock()

		for tries := 0; tries < readTries; tries++ {
			if l.got, l.err = c.readAtOnce(ctx); !goneMeanwhile(l.err) {
				break
			}
		}

		cancel()
		took := time.Since(at)
		c.mu.Lock()

		if database != c.database && c.ctx.Err() == nil { // it may be that of the one before
			c.mu.Unlock()
			continue
		}

		if l.err != nil {
			c.log.Warn("the catalogue can't be read; the one before serves on", "error", l.err)
		} else {
			l.got.at, l.got.took = at, took
			first := c.current.Swap(l.got) == nil
			if l.again {
				if first { // nobody waits for the first one longer than they must
					close(l.done)
					l = &load{done: make(chan struct{})}
					c.loading = l
				}

				c.mu.Unlock()
				c.rest(took)
				c.mu.Lock()
				l.again = false
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
func (c *Cache) readAtOnce(ctx context.Context) (*loaded, error) {
	conn, err := pg.Acquire(ctx, c.source.Pool())
	if err != nil {
		return nil, err
	}
	defer conn.Release()

	// First the version, then the catalogue: a change between the two is met with one more reading, never with an old catalogue.
	got := &loaded{}
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

	if c.source.Read != nil && got.version != "" {
		if err := c.source.Read(ctx, conn); err != nil {
			c.log.Warn("after the catalogue was read", "error", err)
		}
	}

	return got, nil
}

// knowsZone reports whether PostgreSQL has a time zone of this name. It goes through a thousand files to say which there are: they are read for the
// first request that names one, and kept, for they change with PostgreSQL itself.
func (c *Cache) knowsZone(ctx context.Context, name string) (bool, error) {
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
func goneMeanwhile(err error) bool {
	e, ok := errors.AsType[*pgconn.PgError](err)
	return ok && (e.Code == "XX000" || stale[e.Code])
}
