package tick_test

import (
	"context"
	"iter"
	"testing"
	"testing/synctest"
	"time"

	"github.com/socle-dev/socle/internal/tick"
)

// TestTicks counts the ticks of a second, at most three of them.
func TestTicks(t *testing.T) {
	t.Parallel()

	for name, tt := range map[string]struct {
		ticks    func(context.Context, time.Duration) iter.Seq[time.Time]
		interval time.Duration
		canceled bool
		want     time.Duration // since the start, at the last tick; -1: none
	}{
		"every":                {tick.Every, 200 * time.Millisecond, false, 600 * time.Millisecond},
		"every, until the end": {tick.Every, 400 * time.Millisecond, false, 800 * time.Millisecond},
		"every, too long":      {tick.Every, 2 * time.Second, false, -1},
		"every, canceled":      {tick.Every, time.Millisecond, true, -1},
		"poll":                 {tick.Poll, 200 * time.Millisecond, false, 400 * time.Millisecond},
		"poll, until the end":  {tick.Poll, 600 * time.Millisecond, false, 600 * time.Millisecond},
		"poll, too long":       {tick.Poll, 2 * time.Second, false, 0},
		"poll, canceled":       {tick.Poll, time.Millisecond, true, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()

			if tt.canceled {
				cancel()
			}

			start, last, n := time.Now(), time.Duration(-1), 0
			for now := range tt.ticks(ctx, tt.interval) {
				last = now.Sub(start)
				if n++; n == 3 {
					break
				}
			}
			if last != tt.want {
				t.Errorf("%s: the last of %d ticks is after %v, want %v", name, n, last, tt.want)
			}
		})
	}
}

// TestPauses ends pauses of a second by time, by a value and by the context.
func TestPauses(t *testing.T) {
	t.Parallel()

	for name, tt := range map[string]struct {
		wakeAfter, endAfter time.Duration
		pause, want         time.Duration
		wantErr             error
	}{
		"its time":         {time.Hour, time.Hour, time.Second, time.Second, nil},
		"a value":          {300 * time.Millisecond, time.Hour, time.Second, 300 * time.Millisecond, nil},
		"the context":      {time.Hour, 200 * time.Millisecond, time.Second, 200 * time.Millisecond, context.Canceled},
		"no time":          {time.Hour, time.Hour, 0, 0, nil},
		"no time, ended":   {time.Hour, 0, 0, 0, context.Canceled},
		"no time, a value": {0, time.Hour, 0, 0, nil},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()

			wake := make(chan struct{}, 1)
			defer time.AfterFunc(tt.wakeAfter, func() { wake <- struct{}{} }).Stop()
			defer time.AfterFunc(tt.endAfter, cancel).Stop()
			synctest.Wait()

			start := time.Now()
			err := tick.Await(ctx, tt.pause, wake)
			if got := time.Since(start); got != tt.want || err != tt.wantErr {
				t.Errorf("%s: got %v after %v, want %v after %v", name, err, got, tt.wantErr, tt.want)
			}
		})
	}
}
