// Package outbox finds work that SQL of a project has left for the server, such as HTTP requests
// and messages to channels.
//
//	SQL of the project ── rows ── Outbox.Written ── look ── Kind.Run
//
// A transaction leaves rows and sends no notification: NOTIFY would delay all commits of the
// cluster. All ways into a project pass through Socle, so the server that has served a write looks
// into the project afterwards. A project without writes costs nothing.
//
// The packages of the kinds own the rows. This package decides when they are read.
package outbox

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/fair"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/platform"
	"github.com/socle-dev/socle/internal/projectdb"
	"github.com/socle-dev/socle/internal/tick"
)

const (
	usedInterval   = 100 * time.Millisecond // between looks into a project that has left work before
	unusedInterval = 5 * time.Second        // between looks into a project that has left none
	sharedPace     = 2 * time.Millisecond   // between looks into all projects

	retryInterval = time.Second // after a failed look; doubled by each further one
	maxFailures   = 5           // in a row, after which the sweep remains

	lookTimeout = 10 * time.Second
	runTimeout  = time.Minute

	// Looks at a time, and those that wait for a place.
	maxLooks   = 16
	maxWaiting = 4096
)

// Kind is one kind of work.
type Kind struct {
	Name string
	// Pending is a boolean SQL expression: whether there is work. The platform's login evaluates it
	// at each look, so it must be cheap and name only tables that every project has.
	Pending string
	// Run does all the work that is pending, and is called again while there is any. Several
	// servers may run it at once, one server runs it once at a time for a project.
	Run func(ctx context.Context, p *projectdb.Project) error
}

// Config configures an [Outbox].
type Config struct {
	Projects *projectdb.Registry
	Store    *platform.Store
	Kinds    []Kind // in the order in which they run
	Log      *slog.Logger
}

// Outbox looks for work in the projects that this server writes to. It is safe for concurrent use.
type Outbox struct {
	Config
	pending string // statement: which kinds have work
	places  *fair.Pool
	sweeps  sweeps
	runs    atomic.Int64 // batches of a kind in a project
	failed  atomic.Int64 // looks and batches

	mu      sync.Mutex
	watches map[uuid.UUID]*watch
	used    map[uuid.UUID]time.Time // projects that have left work, by the renewal of their mark
	done    sync.WaitGroup
	ctx     context.Context // ends all looks
	stop    context.CancelFunc
}

// watch is a goroutine that looks into a project, and that waits after a look for the next write.
type watch struct {
	written bool // since the look began
}

// New returns an outbox. Close ends its looks.
func New(c Config) *Outbox {
	conditions := make([]string, len(c.Kinds))
	for i, k := range c.Kinds {
		conditions[i] = "(" + k.Pending + ")"
	}

	ctx, stop := context.WithCancel(context.Background())
	return &Outbox{Config: c, ctx: ctx, stop: stop,
		pending: "select array[" + strings.Join(conditions, ", ") + "]::boolean[]",
		places: fair.New(fair.Config{Name: "outbox", Capacity: maxLooks, PerAccount: maxLooks / 2, PerPart: 1,
			Reserve: maxLooks / 4, Waiting: maxWaiting}),
		watches: map[uuid.UUID]*watch{}, used: map[uuid.UUID]time.Time{}}
}

// Pools returns the pools that accounts share, for metrics.
func (o *Outbox) Pools() []*fair.Pool { return []*fair.Pool{o.places} }

// Close ends all looks, and waits for them.
func (o *Outbox) Close() {
	o.mu.Lock()
	o.stop()
	o.mu.Unlock()

	o.done.Wait()
}

// Stats describe the work of this server.
type Stats struct {
	Projects int   // that are looked into
	Runs     int64 // work that was found, of a kind in a project, since the server started
	Failures int64 // failed looks and runs
}

// Stats returns what this server looks into and has found.
func (o *Outbox) Stats() Stats {
	o.mu.Lock()
	defer o.mu.Unlock()

	return Stats{len(o.watches), o.runs.Load(), o.failed.Load()}
}

// Written makes the outbox look into a project, because a statement that may have left work has
// committed. It does not wait.
func (o *Outbox) Written(project uuid.UUID) {
	o.mu.Lock()
	defer o.mu.Unlock()

	switch w := o.watches[project]; {
	case w != nil:
		w.written = true
	case o.ctx.Err() == nil && len(o.Kinds) > 0:
		w = &watch{}
		o.watches[project] = w
		o.done.Go(func() { o.watch(project, w) })
	}
}

// watch looks into a project until a look has found nothing and nothing was written since.
func (o *Outbox) watch(project uuid.UUID, w *watch) {
	failures := 0
	for again := true; again; {
		hasWork, err := o.look(o.ctx, o.Projects.Open(project))
		interval := o.interval(project)

		switch {
		case err == nil:
			failures = 0
		case o.ctx.Err() == nil && !errors.Is(err, projectdb.ErrClosed):
			o.Log.Warn("look for work in a project", "project", project, "error", err)
			o.failed.Add(1)
			interval = retryInterval << failures
			failures = min(failures+1, maxFailures)
		}

		_ = tick.Pause(o.ctx, interval)

		retries := err != nil && failures > 0 && failures < maxFailures
		again = o.continues(project, w, hasWork || retries)
	}
}

// interval returns the time between two looks into a project.
func (o *Outbox) interval(project uuid.UUID) time.Duration {
	o.mu.Lock()
	defer o.mu.Unlock()

	interval := unusedInterval
	if _, used := o.used[project]; used {
		interval = usedInterval
	}

	return max(interval, time.Duration(len(o.watches))*sharedPace)
}

// continues begins the next look, or ends the watch.
func (o *Outbox) continues(project uuid.UUID, w *watch, isDue bool) bool {
	o.mu.Lock()
	defer o.mu.Unlock()

	if o.ctx.Err() == nil && (isDue || w.written) {
		w.written = false
		return true
	}

	delete(o.watches, project)
	return false
}

// look does the work that is pending in a project, and reports whether there was any.
func (o *Outbox) look(ctx context.Context, p *projectdb.Project) (found bool, err error) {
	defer fault.Recover(&err)

	place, err := o.places.Acquire(ctx, p.Key(ctx), 1)
	if err != nil {
		return false, err
	}
	defer place.Release()

	looking, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()

	pending, err := pg.Value[[]bool](looking, p.Trusted(), o.pending)
	if err != nil {
		return false, err
	}

	var errs []error
	for i, k := range o.Kinds {
		if !pending[i] {
			continue
		}
		if !found {
			o.mark(looking, p.UUID)
		}
		found = true
		o.runs.Add(1)
		errs = append(errs, run(ctx, k, p))
	}

	return found, errors.Join(errs...)
}

func run(ctx context.Context, k Kind, p *projectdb.Project) error {
	ctx, cancel := context.WithTimeout(ctx, runTimeout)
	defer cancel()

	return k.Run(ctx, p)
}
