package rest

import (
	"context"
	"sync"
	"time"
)

// glance is how often is looked after a guest. Nearly all have been served by then: to be told the very moment that one goes, and to set
// clocks that hardly ever ring, would cost each of them more than anything else that is done for them here.
const glance = 100 * time.Millisecond

// guest is who waits for an execution. When they are gone, or their time is over, what is done for them ends. It is a context for what
// takes one, and is given to one request after another.
type guest struct {
	mu    sync.Mutex
	ctx   context.Context // of the request; nil: there is none
	until time.Time       // what is under way is to be done; zero: nothing is under way
	end   func()          // ends it, or nil
	over  chan struct{}   // closed when the guest is gone or the time is over
	ended bool            // over is closed
	clock *time.Timer     // looks after the guest,
	next  time.Time       // at this time; zero: it does not
}

var guests sync.Pool

func welcome(ctx context.Context) *guest {
	g, ok := guests.Get().(*guest)
	if !ok {
		g = &guest{over: make(chan struct{})}
		g.clock = time.AfterFunc(time.Hour, g.look)
		g.clock.Stop()
	}

	g.ctx = ctx
	return g
}

// leave is called when nothing is done for the guest any more.
func (g *guest) leave() {
	g.mu.Lock()
	g.ctx, g.until, g.end = nil, time.Time{}, nil
	ended := g.ended
	g.mu.Unlock()

	if !ended {
		guests.Put(g)
	}
}

// await has end called, if it is not nil, when the guest goes, or is gone already, or at a time, until rest or the next await.
func (g *guest) await(until time.Time, end func()) {
	g.mu.Lock()
	defer g.mu.Unlock()

	g.until, g.end = until, end

	switch {
	case g.ended || g.ctx.Err() != nil:
		g.finish()
	case g.next.IsZero() || until.Before(g.next):
		g.wind(time.Now())
	}
}

// rest has nothing be under way any more, and reports whether it was ended. An end that was called has returned by then.
func (g *guest) rest() bool {
	g.mu.Lock()
	defer g.mu.Unlock()

	g.until, g.end = time.Time{}, nil
	return g.ended
}

// look is called by the clock.
func (g *guest) look() {
	g.mu.Lock()
	defer g.mu.Unlock()

	g.next = time.Time{}

	if g.until.IsZero() || g.ended {
		return
	}

	if now := time.Now(); g.ctx.Err() == nil && now.Before(g.until) {
		g.wind(now)
		return
	}

	g.finish()
}

// wind has the clock look soon, unless the time is over.
func (g *guest) wind(now time.Time) {
	wait := min(glance, g.until.Sub(now))
	if wait <= 0 {
		g.finish()
		return
	}

	g.next = now.Add(wait)
	g.clock.Reset(wait)
}

func (g *guest) finish() {
	if !g.ended {
		g.ended = true
		close(g.over)
	}

	if g.end != nil {
		g.end()
	}
}

func (g *guest) Done() <-chan struct{} { return g.over }
func (g *guest) Value(any) any         { return nil }

func (g *guest) Deadline() (time.Time, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()

	return g.until, !g.until.IsZero()
}

func (g *guest) Err() error {
	select {
	case <-g.over:
		return context.DeadlineExceeded
	default:
		return nil
	}
}
