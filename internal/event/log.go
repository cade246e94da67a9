package event

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/actor"
	"github.com/socle-dev/socle/internal/fair"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/projectdb"
	"github.com/socle-dev/socle/internal/tick"
)

const (
	busyInterval  = 100 * time.Millisecond // between reads, while there are changes
	quietInterval = 500 * time.Millisecond // between reads after quietAfter without changes
	quietAfter    = time.Minute
	renewInterval = time.Minute          // between renewals of a table's capture, at least
	keepInterval  = 5 * time.Minute      // between renewals of the captures
	lingerTime    = 30 * time.Second     // after which a log without followers is closed
	retryInterval = time.Second          // after a failed read
	sharedPace    = 5 * time.Millisecond // between reads of all projects

	captureTimeout = 5 * time.Second // waiting for writers of a table
	checkTimeout   = 5 * time.Second // for the policies of one page of changes

	// maxBindings bounds the bindings of one follower.
	maxBindings = 100
)

// Logs are the logs of the projects with followers on this server.
type Logs struct {
	log      *slog.Logger
	backlogs *fair.Pool // memory of changes that followers have not taken

	mu   sync.Mutex
	open map[uuid.UUID]*Log
	done sync.WaitGroup
	stop context.CancelFunc
	ctx  context.Context // ends all readers
}

// NewLogs returns the logs. Close ends their readers.
func NewLogs(log *slog.Logger) *Logs {
	ctx, stop := context.WithCancel(context.Background())
	return &Logs{log: log, backlogs: newBacklogs(), open: map[uuid.UUID]*Log{}, ctx: ctx, stop: stop}
}

// Pools returns the pools that accounts share, for metrics.
func (l *Logs) Pools() []*fair.Pool { return []*fair.Pool{l.backlogs} }

// Close ends all readers and followers.
func (l *Logs) Close() {
	l.stop()
	l.done.Wait()
}

// Wake makes a project's reader read at once, because this server has changed rows.
func (l *Logs) Wake(project uuid.UUID) {
	l.mu.Lock()
	log := l.open[project]
	l.mu.Unlock()

	if log != nil {
		log.wake()
	}
}

// pace returns the least interval between two reads of one project, so that all projects together
// make a bounded number of reads. A change through this server is read at once all the same.
func (l *Logs) pace() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()

	return time.Duration(len(l.open)) * sharedPace
}

// Log reads the changes of a project for its followers.
type Log struct {
	project *projectdb.Project
	logs    *Logs
	wakeup  chan struct{} // has an element when a read is due

	mu        sync.Mutex
	followers map[*Follower]bool
	flushDue  bool                 // a new follower waits for a position after its captures
	captured  map[uint32]time.Time // tables, by the last renewal of their capture
	at        snapshot             // read up to; zero before the first read
	busy      bool                 // the reader delivers changes after at: no follower becomes live
	place     string               // the database's timeline and OID
	version   string               // the catalog's version when the followers' views were made
	reads     uint64               // completed
	read      chan struct{}        // closed after the next read
	failure   error                // the last read's
	emptyFrom time.Time            // since when there are no followers
}

// Follow returns a follower, which receives the changes that commit from now on, or those after
// a cursor. It begins to capture the tables that nobody has followed lately. It fails with Invalid
// for a binding that names nothing, and with [ErrResync] for a cursor that can't go on.
func (l *Logs) Follow(
	ctx context.Context, p *projectdb.Project, caller actor.Actor, bindings []Binding, cursor string,
) (*Follower, error) {
	if len(bindings) > maxBindings {
		return nil, fault.New(fault.Invalid, "a channel has at most %d bindings of changes", maxBindings)
	}

	log := l.logOf(p)
	views, err := log.resolve(ctx, caller, bindings)
	if err != nil {
		return nil, err
	}
	if err := log.capture(ctx, views); err != nil {
		return nil, err
	}
	if err := log.sync(ctx); err != nil {
		return nil, err
	}

	f := &Follower{log: log, bindings: bindings, key: bindingsKey(bindings), caller: caller, group: groupOf(caller),
		views: views, share: p.Key(ctx), signal: make(chan struct{}, 1), at: position{from: log.position()}}
	if cursor != "" {
		if f.at, err = log.resume(ctx, cursor, views); err != nil {
			return nil, err
		}
	}

	log.mu.Lock()
	defer log.mu.Unlock()

	log.followers[f] = true
	return f, nil
}

// logOf returns a project's log, and starts its reader.
func (l *Logs) logOf(p *projectdb.Project) *Log {
	l.mu.Lock()
	defer l.mu.Unlock()

	log := l.open[p.UUID]
	if log == nil {
		log = &Log{project: p, logs: l, wakeup: make(chan struct{}, 1), followers: map[*Follower]bool{},
			captured: map[uint32]time.Time{}, read: make(chan struct{}), emptyFrom: time.Now()}
		l.open[p.UUID] = log
		l.done.Go(func() { log.run(l.ctx) })
	}
	log.mu.Lock()
	log.emptyFrom = time.Now()
	log.mu.Unlock()

	return log
}

// actorOn returns a querier for a caller's checks.
func (l *Log) actorOn(caller actor.Actor) actor.Querier {
	caller.Timeout = checkTimeout
	if caller.BypassesPolicies() {
		return caller.On(l.project.Service())
	}

	return caller.On(l.project.Request())
}

// position returns the snapshot up to which the log is read.
func (l *Log) position() snapshot {
	l.mu.Lock()
	defer l.mu.Unlock()

	return l.at
}

// readTo is [Log.position], with a channel that is closed after the next read.
func (l *Log) readTo() (snapshot, <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()

	return l.at, l.read
}

// epoch identifies the database and its history. Cursors of another epoch mean nothing here.
func (l *Log) epoch() string {
	l.mu.Lock()
	defer l.mu.Unlock()

	return l.place
}

func (l *Log) wake() {
	select {
	case l.wakeup <- struct{}{}:
	default:
	}
}

// sync waits for a read that begins after the call, and returns its failure.
func (l *Log) sync(ctx context.Context) error {
	l.mu.Lock()
	target := l.reads + 2 // the read in progress may have begun before
	l.flushDue = true
	l.mu.Unlock()

	for {
		l.mu.Lock()
		done, read, failure := l.reads >= target, l.read, l.failure
		l.mu.Unlock()

		if done {
			return failure
		}

		l.wake()
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-l.logs.ctx.Done():
			return fault.New(fault.Unavailable, "the server is stopping")
		case <-read:
		}
	}
}

func (l *Log) remove(f *Follower) {
	l.mu.Lock()
	defer l.mu.Unlock()

	delete(l.followers, f)
	l.emptyFrom = time.Now()
}

// run reads the log until the server stops, or nobody has followed it for a while.
func (l *Log) run(ctx context.Context) {
	changedAt, keptAt := time.Now(), time.Now()
	for {
		n, err := l.advance(ctx)
		now := time.Now()

		interval := busyInterval
		switch {
		case ctx.Err() != nil:
			l.endAll(fault.New(fault.Unavailable, "the server is stopping"))
			return
		case err != nil:
			l.logs.log.Warn("read changes", "project", l.project.UUID, "error", err)
			interval = retryInterval
		case n > 0:
			changedAt = now
		case now.Sub(changedAt) > quietAfter:
			interval = quietInterval
		}

		if l.closeIfIdle(now) {
			return
		}
		interval = max(interval, l.logs.pace())
		if now.Sub(keptAt) > keepInterval {
			keptAt = now
			l.keep(ctx)
		}

		_ = tick.Await(ctx, interval, l.wakeup)
	}
}

// closeIfIdle closes the log if nobody has followed it for a while, and reports that.
func (l *Log) closeIfIdle(now time.Time) bool {
	l.logs.mu.Lock()
	defer l.logs.mu.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()

	idle := len(l.followers) == 0 && now.Sub(l.emptyFrom) > lingerTime
	if idle {
		delete(l.logs.open, l.project.UUID)
	}

	return idle
}

// keep renews the captures of followed tables.
func (l *Log) keep(ctx context.Context) {
	for _, f := range l.all() {
		_, _, views, err := f.currentViews(ctx)
		if err == nil {
			err = l.capture(ctx, views)
		}
		if err != nil && ctx.Err() == nil {
			l.logs.log.Warn("renew captures", "project", l.project.UUID, "error", err)
		}
	}
}

func (l *Log) all() []*Follower {
	l.mu.Lock()
	defer l.mu.Unlock()

	return slices.Collect(maps.Keys(l.followers))
}

func (l *Log) endAll(err error) {
	for _, f := range l.all() {
		f.end(err)
	}
}

// advance reads all that is new, and gives it to the followers. It returns the number of changes.
func (l *Log) advance(ctx context.Context) (n int, err error) {
	l.mu.Lock()
	isDue := l.flushDue
	l.flushDue = false
	l.mu.Unlock()

	defer func() {
		l.mu.Lock()
		defer l.mu.Unlock()

		l.flushDue = l.flushDue || (isDue && err != nil)
		l.failure = err
		l.reads++
		close(l.read)
		l.read = make(chan struct{})
	}()
	defer fault.Recover(&err)

	from := l.position()
	if from.text == "" {
		return 0, l.begin(ctx)
	}

	p, err := readNew(ctx, l.project.Trusted(), from)
	if err != nil {
		return 0, err
	}
	if p.head.place != l.epoch() {
		l.endAll(ErrResync)
		return 0, l.begin(ctx)
	}

	l.refresh(ctx, p.head.version)
	if !p.head.flushed {
		if len(p.entries) == 0 && !isDue {
			return 0, nil // the position stays one that a cursor may have
		}
		if err := flush(ctx, l.project.Trusted()); err != nil {
			return 0, err
		}
	}

	l.mu.Lock()
	l.busy = true
	l.mu.Unlock()
	defer func() {
		l.mu.Lock()
		defer l.mu.Unlock()

		l.busy = false
	}()

	to := p.head.now
	if n, err = l.deliverAll(ctx, p, position{from: from, to: to}); err != nil {
		l.detach() // the followers have a part, and continue from their own positions
	}

	l.mu.Lock()
	defer l.mu.Unlock()

	l.at = to
	return n, err
}

// deliverAll gives the followers a page of changes and those behind it. It returns their number.
func (l *Log) deliverAll(ctx context.Context, p page, at position) (n int, err error) {
	defer fault.Recover(&err)

	for {
		n += len(p.entries)
		for _, e := range p.entries {
			at.xid, at.seq = e.XID, uint64(e.Seq)
			e.cursor = at.cursor(l.epoch())
		}
		if !p.more {
			at = position{from: at.to}
		}
		l.deliver(ctx, p.entries, at)

		if !p.more {
			return n, nil
		}
		if p, err = readBetween(ctx, l.project.Trusted(), at); err != nil {
			return n, err
		}
	}
}

// begin takes the first snapshot of a database.
func (l *Log) begin(ctx context.Context) error {
	q := l.project.Trusted()
	start, err := pg.Value[string](ctx, q, `select pg_current_snapshot()::text`)
	if err != nil {
		return err
	}

	from, _ := parseSnapshot(start)
	p, err := readNew(ctx, q, from)
	if err != nil {
		return err
	}
	if err := flush(ctx, q); err != nil {
		return err
	}

	l.mu.Lock()
	defer l.mu.Unlock()

	l.at, l.place, l.version = from, p.head.place, p.head.version
	clear(l.captured)
	return nil
}

// detach makes all followers read the log themselves.
func (l *Log) detach() {
	for _, f := range l.all() {
		f.detach()
	}
}

// refresh has the followers bind anew after the catalog has changed: tables may be renamed, columns
// and policies may be others, partitions may be new.
func (l *Log) refresh(ctx context.Context, version string) {
	l.mu.Lock()
	current := l.version == version
	l.version = version
	if !current {
		clear(l.captured)
	}
	l.mu.Unlock()

	if current {
		return
	}

	var views []*view
	for _, f := range l.all() {
		views = append(views, f.bindAgain()...)
	}
	if err := l.capture(ctx, views); err != nil && ctx.Err() == nil {
		l.logs.log.Warn("renew captures", "project", l.project.UUID, "error", err)
	}
}

// deliver gives a page of changes to the followers that are live. Those that need more of
// PostgreSQL than their policies read the page themselves, so that they delay nobody.
func (l *Log) deliver(ctx context.Context, entries []*entry, at position) {
	shared := l.newMatchers(entries)
	for _, f := range l.all() {
		if len(entries) == 0 {
			f.append(nil, at)
			continue
		}
		if !f.stayLive() {
			continue
		}

		changes, err := f.match(ctx, shared)
		if err != nil {
			f.end(err)
			continue
		}
		f.append(changes, at)
	}
}
