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
	// Silence is how long a worker may say nothing before what it works on is given up.
	Silence = 20 * time.Second

	closing = 10 * time.Second // what noting an end may take after the worker was told to stop
)

// task is how tasks of a kind are worked on.
type task[T any] struct {
	rows platform.Tasks[T]
	// to the end: the last that it does is to say that the task is completed
	work   func(ctx context.Context, t T) error
	why    func(ctx context.Context, err error) string         // says in words for the user why it failed
	giveUp func(ctx context.Context, t T, reason string) error // removes what there is of it, and says that it failed
}

// carryOut takes a pending task and works on it to its end, and returns it; or, if the work says [Later], to that. To one that is not pending it does nothing. The error is for the log.
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

// beat says that the work goes on until ctx ends, and stops the work if it was given up.
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
