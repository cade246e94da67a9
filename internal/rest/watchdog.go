package rest

import (
	"context"
	"sync"
	"time"
)

// pollInterval is how often a watchdog checks its request. Nearly all requests end sooner: a
// goroutine or timer for each would cost more than the other work of this package.
const pollInterval = 100 * time.Millisecond

// watchdog cancels an execution when its client disconnects or its deadline passes. It implements
// context.Context and is pooled.
type watchdog struct {
	mu       sync.Mutex
	ctx      context.Context // of the request; nil if unused
	deadline time.Time       // zero if disarmed
	cancel   func()          // called by fire; may be nil
	done     chan struct{}   // closed by fire
	fired    bool            // done is closed
	timer    *time.Timer
	nextPoll time.Time // zero if the timer is stopped
}

var watchdogPool sync.Pool

func newWatchdog(ctx context.Context) *watchdog {
	g, ok := watchdogPool.Get().(*watchdog)
	if !ok {
		g = &watchdog{done: make(chan struct{})}
		g.timer = time.AfterFunc(time.Hour, g.poll)
		g.timer.Stop()
	}

	g.ctx = ctx
	return g
}

// release returns an idle watchdog to the pool, unless it has fired.
func (g *watchdog) release() {
	g.mu.Lock()
	g.ctx, g.deadline, g.cancel = nil, time.Time{}, nil
	fired := g.fired
	g.mu.Unlock()

	if !fired {
		watchdogPool.Put(g)
	}
}

// arm calls cancel, unless nil, when the client disconnects or the deadline passes, until disarm or
// the next arm. It calls cancel at once if the client has disconnected.
func (g *watchdog) arm(deadline time.Time, cancel func()) {
	g.mu.Lock()
	defer g.mu.Unlock()

	g.deadline, g.cancel = deadline, cancel

	switch {
	case g.fired || g.ctx.Err() != nil:
		g.fire()
	case g.nextPoll.IsZero() || deadline.Before(g.nextPoll):
		g.schedule(time.Now())
	}
}

// disarm stops watching and reports whether the watchdog has fired. A call of cancel has returned
// by then.
func (g *watchdog) disarm() bool {
	g.mu.Lock()
	defer g.mu.Unlock()

	g.deadline, g.cancel = time.Time{}, nil
	return g.fired
}

// poll is called by the timer.
func (g *watchdog) poll() {
	g.mu.Lock()
	defer g.mu.Unlock()

	g.nextPoll = time.Time{}

	if g.deadline.IsZero() || g.fired {
		return
	}

	if now := time.Now(); g.ctx.Err() == nil && now.Before(g.deadline) {
		g.schedule(now)
		return
	}

	g.fire()
}

// schedule sets the timer for the next poll. It fires at once if the deadline has passed.
func (g *watchdog) schedule(now time.Time) {
	wait := min(pollInterval, g.deadline.Sub(now))
	if wait <= 0 {
		g.fire()
		return
	}

	g.nextPoll = now.Add(wait)
	g.timer.Reset(wait)
}

func (g *watchdog) fire() {
	if !g.fired {
		g.fired = true
		close(g.done)
	}

	if g.cancel != nil {
		g.cancel()
	}
}

func (g *watchdog) Done() <-chan struct{} { return g.done }
func (g *watchdog) Value(any) any         { return nil }

func (g *watchdog) Deadline() (time.Time, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()

	return g.deadline, !g.deadline.IsZero()
}

func (g *watchdog) Err() error {
	select {
	case <-g.done:
		return context.DeadlineExceeded
	default:
		return nil
	}
}
