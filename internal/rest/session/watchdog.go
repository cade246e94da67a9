package session

import (
	"context"
	"errors"
	"sync"
	"time"
)

// pollInterval is how often a watchdog checks its request. Nearly all requests end sooner: a
// goroutine or timer for each would cost more than this package's other work.
const pollInterval = 100 * time.Millisecond

// watchdog cancels an execution when its client disconnects or its deadline passes. It implements
// context.Context and is pooled.
type watchdog struct {
	mu       sync.Mutex
	ctx      context.Context // request context; nil if unused
	deadline time.Time       // zero if disarmed
	cancel   func(left bool) // called by fire, with whether the client has disconnected; may be nil
	done     chan struct{}   // closed by fire
	fired    bool            // done is closed
	timer    *time.Timer
	nextPoll time.Time // zero if the timer is stopped
}

var watchdogPool sync.Pool

// newWatchdog returns a disarmed watchdog for a request.
func newWatchdog(ctx context.Context) *watchdog {
	w, ok := watchdogPool.Get().(*watchdog)
	if !ok {
		w = &watchdog{done: make(chan struct{})}
		w.timer = time.AfterFunc(time.Hour, w.poll)
		w.timer.Stop()
	}

	w.ctx = ctx
	return w
}

// release returns an idle watchdog to the pool, unless it has fired.
func (w *watchdog) release() {
	w.mu.Lock()
	w.ctx, w.deadline, w.cancel = nil, time.Time{}, nil
	fired := w.fired
	w.mu.Unlock()

	if !fired {
		watchdogPool.Put(w)
	}
}

// arm calls cancel, unless nil, when the client disconnects or the deadline passes, until disarm or
// the next arm. It calls cancel at once if the client has disconnected.
func (w *watchdog) arm(deadline time.Time, cancel func(left bool)) {
	w.mu.Lock()
	defer w.mu.Unlock()

	w.deadline, w.cancel = deadline, cancel

	switch {
	case w.fired || w.ctx.Err() != nil:
		w.fire()
	case w.nextPoll.IsZero() || deadline.Before(w.nextPoll):
		w.schedule(time.Now())
	}
}

// disarm stops watching and reports whether the watchdog has fired. A call of cancel has returned
// by then.
func (w *watchdog) disarm() bool {
	w.mu.Lock()
	defer w.mu.Unlock()

	w.deadline, w.cancel = time.Time{}, nil
	return w.fired
}

// canceled reports whether the request was canceled, as it is when its client disconnects.
func (w *watchdog) canceled() bool { return errors.Is(w.ctx.Err(), context.Canceled) }

// poll is called by the timer.
func (w *watchdog) poll() {
	w.mu.Lock()
	defer w.mu.Unlock()

	w.nextPoll = time.Time{}

	if w.deadline.IsZero() || w.fired {
		return
	}

	if now := time.Now(); w.ctx.Err() == nil && now.Before(w.deadline) {
		w.schedule(now)
		return
	}

	w.fire()
}

// schedule sets the timer for the next poll. It fires at once if the deadline has passed.
func (w *watchdog) schedule(now time.Time) {
	wait := min(pollInterval, w.deadline.Sub(now))
	if wait <= 0 {
		w.fire()
		return
	}

	w.nextPoll = now.Add(wait)
	w.timer.Reset(wait)
}

func (w *watchdog) fire() {
	if !w.fired {
		w.fired = true
		close(w.done)
	}

	if w.cancel != nil {
		w.cancel(w.canceled())
	}
}

func (w *watchdog) Done() <-chan struct{} { return w.done }
func (w *watchdog) Value(any) any         { return nil }

func (w *watchdog) Deadline() (time.Time, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()

	return w.deadline, !w.deadline.IsZero()
}

func (w *watchdog) Err() error {
	select {
	case <-w.done:
		return context.DeadlineExceeded
	default:
		return nil
	}
}
