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
	unheardMost  = 5 * time.Second  // age at which a catalogue is read again while nobody listens
	unheardLeast = time.Second      // the same for a request that misses something in it
	readMost     = 60 * time.Second // for reading the catalogue
	pauseMost    = 5 * time.Second  // between two readings
	readTries    = 5                // while it changes under the reading
	retryAfter   = time.Second      // until a cache that can't listen tries again, doubled up to retryMost
	retryMost    = 30 * time.Second
)

// Cache keeps the catalogue of a database. The first request reads it; after that one connection listens on the channel
// pgrst, and whenever a notification says that the schema has changed the catalogue is read again, while the
// old one serves on. A cache that nobody asks for a while lets its connection go and costs nothing but memory; so it
// does where no connection is to be had, and then a catalogue is at most a few seconds old.
type Cache struct {
	pool    func() *pgxpool.Pool // its login can read the catalogue
	options catalog.Options
	channel string // quoted
	log     *slog.Logger
	told    func()                   // of a configuration to be read again; nil: nobody is
	idle    time.Duration            // without a request, after which it stops to listen
	rest    func(took time.Duration) // between two readings of which the second is known to be needed

	current atomic.Pointer[loaded]
	zones   atomic.Pointer[map[string]bool] // see [Cache.knowsZone]
	used    atomic.Int64                    // Unix seconds
	heard   atomic.Bool                     // a connection listens, and has from before current was read

	mu        sync.Mutex
	database  int   // counts what the database has been
	loading   *load // nil if the catalogue is not being read
	listening bool
	retired   bool // nobody is to listen any more
	closed    bool
	ctx       context.Context // of what the cache does by itself
	cancel    context.CancelFunc
	hearing   context.Context // of listening
	deafen    context.CancelFunc
	running   sync.WaitGroup
	listener  sync.WaitGroup
}

type loaded struct {
	*catalog.Catalog
	at time.Time
}

// load is a reading of the catalogue under way.
type load struct {
	done  chan struct{}
	again bool // the schema has changed since it began
	got   *catalog.Catalog
	err   error
}

// NewCache returns a cache that reads over a pool, which is asked for anew each time.
func NewCache(pool func() *pgxpool.Pool, o catalog.Options, log *slog.Logger) *Cache {
	c := &Cache{pool: pool, options: o, channel: "pgrst", log: log, idle: time.Minute}
	c.rest = c.pause
	c.ctx, c.cancel = context.WithCancel(context.Background())
	c.hearing, c.deafen = context.WithCancel(c.ctx)
	return c
}

// ListenOn has the cache listen on another channel than pgrst. On "" it never listens, and reads the catalogue again only for
// [Cache.Reload]. It is called before the cache is used.
func (c *Cache) ListenOn(channel string) {
	c.channel = pg.Quote(channel)
	if channel == "" {
		c.listening = true
		c.heard.Store(true)
	}
}

// OnReloadConfig has a function called when a notification says that the configuration has changed. It must not wait, and is set before the
// cache is used.
func (c *Cache) OnReloadConfig(told func()) { c.told = told }

// Get returns the catalogue, and waits only for the very first one.
func (c *Cache) Get(ctx context.Context) (*catalog.Catalog, error) {
	if known := c.Known(); known != nil {
		return known, nil
	}
	return c.wait(ctx, c.start(false))
}

// Known returns the catalogue, nil if it was not read yet.
func (c *Cache) Known() *catalog.Catalog { return c.known(time.Now()) }

func (c *Cache) known(now time.Time) *catalog.Catalog {
	if unix := now.Unix(); c.used.Load() != unix {
		c.used.Store(unix)
		c.listen()
	}
	if l := c.current.Load(); l != nil {
		if !c.heard.Load() && now.Sub(l.at) > unheardMost {
			c.start(false)
		}
		return l.Catalog
	}
	return nil
}

// Newer returns a catalogue that is newer than old, for a request that did not find what it wants in old: if one is there or is being
// read, or if nobody would have told that there is one. Otherwise it returns nil.
func (c *Cache) Newer(ctx context.Context, old *catalog.Catalog) *catalog.Catalog {
	c.mu.Lock()
	l := c.loading
	c.mu.Unlock()
	if now := c.current.Load(); l == nil && !c.heard.Load() && now != nil && time.Since(now.at) > unheardLeast {
		l = c.start(false)
	}
	if l != nil {
		if _, err := c.wait(ctx, l); err != nil {
			return nil
		}
	}
	if now := c.current.Load(); now != nil && now.Catalog != old {
		return now.Catalog
	}
	return nil
}

// Reload has the catalogue read again, for someone who knows that it has changed. It does not wait.
func (c *Cache) Reload() {
	if c.current.Load() != nil {
		c.start(true)
	}
}

// Forget forgets the catalogue, for someone who knows that the database has become another one: who wants it waits until that has been read.
func (c *Cache) Forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.database++
	c.current.Store(nil)
}

// Retire ends the listening, for a cache that another takes the place of, and waits until it has ended. Requests that have the cache still can
// have it read the catalogue.
func (c *Cache) Retire() {
	c.mu.Lock()
	c.retired = true
	c.mu.Unlock()
	c.deafen()
	c.listener.Wait()
}

// Close ends what the cache does by itself, and waits until it has ended. The cache still serves what it has.
func (c *Cache) Close() {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.cancel()
	c.listener.Wait()
	c.running.Wait()
}

func (c *Cache) wait(ctx context.Context, l *load) (*catalog.Catalog, error) {
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

// pause waits as long as a reading took: whoever notifies without end has the catalogue read half of the time, not all of it.
func (c *Cache) pause(took time.Duration) {
	select {
	case <-c.ctx.Done():
	case <-time.After(min(took, pauseMost)):
	}
}

var errClosed = errors.New("the catalogue's cache is closed")

func (c *Cache) read(l *load) {
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
			first := c.current.Swap(&loaded{l.got, at}) == nil
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
func (c *Cache) readAtOnce(ctx context.Context) (got *catalog.Catalog, err error) {
	err = pgx.BeginTxFunc(ctx, c.pool(), pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		// That a statement which runs once is compiled takes twenty times as long as it does.
		if _, err = tx.Exec(ctx, "set local jit = off"); err != nil {
			return err
		}
		got, err = catalog.Read(ctx, tx, c.options)
		return err
	})
	return got, err
}

// knowsZone reports whether PostgreSQL has a time zone of this name. It goes through a thousand files to say which there are: they are read for the
// first request that names one, and kept, for they change with PostgreSQL itself.
func (c *Cache) knowsZone(ctx context.Context, name string) (bool, error) {
	if known := c.zones.Load(); known != nil {
		return (*known)[name], nil
	}
	names, err := pg.Values[string](ctx, c.pool(), "select name from pg_catalog.pg_timezone_names")
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

// listen makes sure that a connection listens.
func (c *Cache) listen() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.listening || c.retired || c.closed {
		return
	}
	c.listening = true
	c.listener.Go(func() {
		c.listenWhileUsed()
		c.heard.Store(false)
		c.mu.Lock()
		c.listening = false
		c.mu.Unlock()
	})
}

func (c *Cache) listenWhileUsed() {
	for delay := retryAfter; !c.unused(); {
		began := time.Now()
		err := c.listenOnce()
		lost := c.heard.Swap(false)
		if c.hearing.Err() != nil || err == nil {
			return
		}
		if time.Since(began) > retryMost {
			delay = retryAfter
		}
		if lost && time.Since(began) > retryAfter {
			continue // the first time at once: another database may have taken the place of this one
		}
		c.log.Warn("nobody listens for changes of the schema", "error", err, "again", delay)
		select {
		case <-c.hearing.Done():
			return
		case <-time.After(delay):
		}
		delay = min(2*delay, retryMost)
	}
}

func (c *Cache) unused() bool {
	return time.Since(time.Unix(c.used.Load(), 0)) > c.idle
}

// listenOnce listens until nobody uses the cache any more, which is no error. (A [pg.Listener] listens whether anybody asks or not, on a connection
// that no pool has made: it would not count among those that a server may have to its projects, nor follow a project to another database.)
func (c *Cache) listenOnce() error {
	wait, cancel := context.WithTimeout(c.hearing, acquireTimeout)
	defer cancel()
	pooled, err := c.pool().Acquire(wait)
	if err != nil {
		return err
	}
	conn := pooled.Hijack() // a pool that is closed does not wait for it
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(c.ctx), time.Second)
		defer cancel()
		_ = conn.Close(ctx)
	}()
	if _, err := conn.Exec(c.hearing, "listen "+c.channel); err != nil {
		return err
	}
	c.mu.Lock()
	begun := c.loading != nil
	c.mu.Unlock()
	// What happened before is not told.
	if begun || c.current.Load() != nil {
		c.start(true)
	}
	if c.told != nil {
		c.told()
	}
	c.heard.Store(true)
	for !c.unused() {
		ctx, cancel := context.WithTimeout(c.hearing, c.idle)
		n, err := conn.WaitForNotification(ctx)
		ended := ctx.Err() != nil
		cancel()
		switch {
		case err == nil && (n.Payload == "" || n.Payload == "reload schema"):
			c.start(true)
		case err == nil && n.Payload == "reload config" && c.told != nil:
			c.told()
		}
		if err != nil && !ended {
			return err
		}
		if c.hearing.Err() != nil {
			return nil
		}
	}
	return nil
}
