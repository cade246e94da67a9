package backup

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"socle/internal/fault"
	"socle/internal/platform"
)

const (
	// Silence is how long a running task may go without a heartbeat before it is marked failed.
	Silence = 20 * time.Second

	closing = 10 * time.Second // timeout for recording the result after the worker was told to stop
)

// task defines how tasks of one kind run.
type task[T any] struct {
	rows platform.Tasks[T]
	// runs to the end; its last step marks the task completed
	work   func(ctx context.Context, t T) error
	why    func(ctx context.Context, err error) string         // explains a failure to the user
	giveUp func(ctx context.Context, t T, reason string) error // removes leftovers and marks the task failed
}

// carryOut claims a pending task, runs it and returns it. It returns a *[Later] if the task should
// run again, and does nothing if the task is not pending. The error is for the log.
func carryOut[T any](ctx context.Context, m *Maker, k task[T], id uuid.UUID) (T, error) {
	t, err := k.rows.Start(ctx, id)
	if err != nil {
		return t, fault.Except(err, fault.NotFound)
	}

	working, stop := context.WithCancel(ctx)
	defer stop()

	go m.beat(working, stop, func(ctx context.Context) error { return k.rows.Beat(ctx, id) })

	if err = k.work(working, t); err == nil {
		return t, nil
	}

	stop()

	if _, later := errors.AsType[*Later](err); later {
		return t, err
	}

	after, cancel := context.WithTimeout(context.WithoutCancel(ctx), closing)
	defer cancel()

	return t, errors.Join(fmt.Errorf("%s %s: %w", k.rows.Kind, id, err), k.giveUp(after, t, k.why(ctx, err)))
}

// beat sends heartbeats until ctx ends. It stops the work if the task has been given up.
func (m *Maker) beat(ctx context.Context, stop context.CancelFunc, say func(context.Context) error) {
	tick := time.NewTicker(Silence / 5)
	defer tick.Stop()

	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}

		switch err := say(ctx); {
		case fault.Is(err, fault.NotFound):
			stop()
			return
		case err != nil && ctx.Err() == nil:
			m.Log.Warn("heartbeat", "error", err)
		}
	}
}
