package queue

import (
	"context"
	"errors"
	"sync"
	"time"
)

// ErrCutOff ends the contexts of jobs on a server that has lost its worker lock: another server is
// about to run them.
var ErrCutOff = errors.New("this server has lost its connection to the job queue")

// lease is the right to run jobs. It ends absenceTimeout after the loss of the worker lock, unless
// the lock is acquired again, and before [Queue.rescue] gives the jobs to another server.
type lease struct {
	mu    sync.Mutex
	ctx   context.Context // nil before the first renewal
	end   context.CancelCauseFunc
	lapse *time.Timer // nil while the lock is held
}

// renew is called when the lock is acquired.
func (l *lease) renew() {
	l.mu.Lock()
	defer l.mu.Unlock()

	if l.lapse != nil {
		l.lapse.Stop()
		l.lapse = nil
	}
	if l.ctx == nil || l.ctx.Err() != nil {
		l.ctx, l.end = context.WithCancelCause(context.Background())
	}
}

// lose is called when the lock is lost, and when it could not be acquired again.
func (l *lease) lose() {
	l.mu.Lock()
	defer l.mu.Unlock()

	if l.lapse == nil && l.ctx != nil {
		end := l.end
		l.lapse = time.AfterFunc(absenceTimeout, func() { end(ErrCutOff) })
	}
}

// bind returns a job's context that also ends with the lease.
func (l *lease) bind(ctx context.Context) (context.Context, context.CancelFunc) {
	l.mu.Lock()
	held := l.ctx
	l.mu.Unlock()

	ctx, cancel := context.WithCancelCause(ctx)
	if held == nil {
		return ctx, func() { cancel(nil) }
	}

	stop := context.AfterFunc(held, func() { cancel(context.Cause(held)) })
	return ctx, func() { stop(); cancel(nil) }
}
