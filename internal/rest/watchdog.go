package rest

import (
	"context"
	"sync"
	"time"
)

// glance is how often is looked after a guest. Nearly all have been served by then: to be told the very moment that one goes, and to set
// clocks that hardly ever ring, would cost each of them more than anything else that is done for them here.
const pollInterval = 100 * time.Millisecond

// guest is who waits for an execution. When they are gone, or their time is over, what is done for them ends. It is a context for what
// takes one, and is given to one request after another.
type watchdog struct {
	mu       sync.Mutex
	ctx      context.Context // of the request; nil: there is none
	deadline time.Time       // what is under way is to be done; zero: nothing is under way
	cancel   func()          // ends it, or nil
	done     chan struct{}   // closed when the guest is gone or the time is over
	fired    bool            // over is closed
	timer    *time.Timer     // looks after the guest,
	nextPoll time.Time       // at this time; zero: it does not
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

// leave is called when nothing is done for the guest any more.
func (g *watchdog) release() {
	g.mu.Lock()
	g.ctx, g.deadline, g.cancel = nil, time.Time{}, nil
	fired := g.fired
	g.mu.Unlock()

	if !fired {
		watchdogPool.Put(g)
	}
}

// await has end called, if it is not nil, when the guest goes, or is gone already, or at a time, until rest or the next await.
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

// rest has nothing be under way any more, and reports whether it was ended. An end that was called has returned by then.
func (g *watchdog) disarm() bool {
	g.mu.Lock()
	defer g.mu.Unlock()

	g.deadline, g.cancel = time.Time{}, nil
	return g.fired
}

// look is called by the clock.
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

// wind has the clock look soon, unless the time is over.
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
