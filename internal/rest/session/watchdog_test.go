package session

import (
	"context"
	"errors"
	"testing"
	"time"
)

func TestWatchdog(t *testing.T) {
	t.Parallel()

	ctx, disconnect := context.WithCancel(t.Context())
	w := newWatchdog(ctx)
	ended := make(chan bool, 1)
	end := func() { ended <- true }

	w.arm(time.Now().Add(time.Hour), end)

	if w.disarm() || w.Err() != nil {
		t.Error("the watchdog fired before the deadline")
	}

	w.arm(time.Now().Add(time.Hour), end)
	disconnect()
	<-ended
	<-w.Done()

	if !w.disarm() || w.Err() == nil {
		t.Error("the watchdog did not fire for a disconnected client")
	}

	w.arm(time.Now().Add(time.Hour), end)
	<-ended
	w.release()

	ctx, disconnect = context.WithCancel(t.Context())
	w = newWatchdog(ctx)
	w.arm(time.Now().Add(time.Hour), end)
	w.disarm()
	disconnect()

	if w.disarm() {
		t.Error("a disarmed watchdog fired")
	}

	w.release()

	w = newWatchdog(t.Context())
	w.arm(time.Now().Add(time.Hour), end)
	w.arm(time.Now().Add(time.Millisecond), end) // before the next poll
	<-ended

	if err := w.Err(); !errors.Is(err, context.DeadlineExceeded) || !w.disarm() {
		t.Errorf("beyond the deadline: got %v, want %v", err, context.DeadlineExceeded)
	}

	w.release()
}
