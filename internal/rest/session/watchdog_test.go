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
	ended := make(chan bool, 1) // with whether the client has disconnected
	end := func(left bool) { ended <- left }

	w.arm(time.Now().Add(time.Hour), end)

	if w.disarm() || w.Err() != nil {
		t.Error("the watchdog fired before the deadline")
	}

	w.arm(time.Now().Add(time.Hour), end)
	disconnect()
	<-w.Done()

	if left := <-ended; !left {
		t.Error("the watchdog took a disconnected client for a passed deadline")
	}

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

	if left := <-ended; left {
		t.Error("the watchdog took a passed deadline for a disconnected client")
	}
	if err := w.Err(); !errors.Is(err, context.DeadlineExceeded) || !w.disarm() {
		t.Errorf("beyond the deadline: got %v, want %v", err, context.DeadlineExceeded)
	}

	w.release()
}
