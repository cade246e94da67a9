// Package tick repeats work at an interval until a context ends, and pauses between attempts.
package tick

import (
	"context"
	"iter"
	"time"
)

// Every yields the time after each interval until ctx ends. An interval that passes while the loop
// body runs is not made up for.
func Every(ctx context.Context, interval time.Duration) iter.Seq[time.Time] {
	return func(yield func(time.Time) bool) {
		t := time.NewTicker(interval)
		defer t.Stop()

		for {
			select {
			case <-ctx.Done():
				return
			case now := <-t.C:
				if ctx.Err() != nil || !yield(now) {
					return
				}
			}
		}
	}
}

// Poll is [Every] that yields at once as well, even if ctx has ended: the loop body checks a
// state, which is checked at least once.
func Poll(ctx context.Context, interval time.Duration) iter.Seq[time.Time] {
	return func(yield func(time.Time) bool) {
		if !yield(time.Now()) {
			return
		}

		for now := range Every(ctx, interval) {
			if !yield(now) {
				return
			}
		}
	}
}

// Pause waits for a duration, or until ctx ends, whose error it returns.
func Pause(ctx context.Context, d time.Duration) error {
	return Await(ctx, d, nil)
}

// Await is [Pause] that a value on wake ends early.
func Await(ctx context.Context, d time.Duration, wake <-chan struct{}) error {
	if d > 0 {
		select {
		case <-ctx.Done():
		case <-wake:
		case <-time.After(d):
		}
	}

	return ctx.Err()
}
