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
	// HeartbeatTimeout is how long a running task may go without a heartbeat before it is marked
	// failed.
	HeartbeatTimeout = 20 * time.Second

	finishTimeout = 10 * time.Second // timeout for recording the result after the worker was told to stop
)

// task defines how tasks of one kind run.
type task[T any] struct {
	rows platform.Tasks[T]

	// run ends by marking the task completed.
	run     func(ctx context.Context, t T) error
	reason  func(ctx context.Context, err error) string         // explains a failure to the user
	abandon func(ctx context.Context, t T, reason string) error // removes leftovers and marks the task failed
}

// runTask claims a pending task, runs it and returns it. It returns a *[RetryError] if the task
// should run again, and does nothing if the task is not pending. The error is for the log.
func runTask[T any](ctx context.Context, m *Maker, k task[T], id uuid.UUID) (T, error) {
	t, err := k.rows.Start(ctx, id)
	if err != nil {
		return t, fault.Ignore(err, fault.NotFound)
	}

	runCtx, cancelRun := context.WithCancel(ctx)
	defer cancelRun()

	go m.heartbeat(runCtx, cancelRun, func(ctx context.Context) error { return k.rows.Heartbeat(ctx, id) })

	if err = k.run(runCtx, t); err == nil {
		return t, nil
	}

	cancelRun()

	if _, retry := errors.AsType[*RetryError](err); retry {
		return t, err
	}

	finishCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), finishTimeout)
	defer cancel()

	return t, errors.Join(fmt.Errorf("%s %s: %w", k.rows.Kind, id, err), k.abandon(finishCtx, t, k.reason(ctx, err)))
}

// heartbeat sends heartbeats until ctx ends. It stops the work if the task has been abandoned.
func (m *Maker) heartbeat(ctx context.Context, stop context.CancelFunc, send func(context.Context) error) {
	tick := time.NewTicker(HeartbeatTimeout / 5)
	defer tick.Stop()

	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}

		switch err := send(ctx); {
		case fault.Is(err, fault.NotFound):
			stop()
			return
		case err != nil && ctx.Err() == nil:
			m.Log.Warn("send heartbeat", "error", err)
		}
	}
}
