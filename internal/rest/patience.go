package rest

import (
	"context"
	"sync"
	"time"
)

// guest is who waits for an execution. When they are gone, what is done for them ends.
type guest struct {
	mu   sync.Mutex
	gone bool
	end  func() // ends what is under way
}

// await has end called if the guest goes, or is gone already, until the next await, and reports whether they are gone. An end
// that was called has returned by then.
func (g *guest) await(end func()) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.end = end
	if g.gone && end != nil {
		end()
	}
	return g.gone
}

// leave is called when the guest is gone.
func (g *guest) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.gone = true
	if g.end != nil {
		g.end()
	}
}

// patience is a context that ends after a time, or when it is told to. It serves request after request, and so costs no memory.
type patience struct {
	clock *time.Timer
	until time.Time
	over  chan struct{}
	once  sync.Once
	end   func()
}

var patiences sync.Pool

func takePatience(length time.Duration) *patience {
	p, ok := patiences.Get().(*patience)
	if ok {
		p.clock.Reset(length)
	} else {
		p = &patience{over: make(chan struct{})}
		p.end = func() { p.once.Do(func() { close(p.over) }) }
		p.clock = time.AfterFunc(length, p.end)
	}
	p.until = time.Now().Add(length)
	return p
}

// release gives it to the next one, unless it is over, which it reports.
func (p *patience) release() bool {
	if p.clock.Stop() && p.Err() == nil {
		patiences.Put(p)
		return false
	}
	return true
}

func (p *patience) Deadline() (time.Time, bool) { return p.until, true }
func (p *patience) Done() <-chan struct{}       { return p.over }
func (p *patience) Value(any) any               { return nil }

func (p *patience) Err() error {
	select {
	case <-p.over:
		return context.DeadlineExceeded
	default:
		return nil
	}
}
