package rest

import (
	"context"
	"errors"
	"testing"
	"time"
)

func TestWatchdog(t *testing.T) {
	t.Parallel()

	ctx, leave := context.WithCancel(t.Context())
	w := newWatchdog(ctx)
	ended := make(chan bool, 1)
	end := func() { ended <- true }

	w.arm(time.Now().Add(time.Hour), end)

	if w.disarm() || w.Err() != nil {
		t.Error("a guest who was served in time is ended")
	}

	w.arm(time.Now().Add(time.Hour), end)
	leave()
	<-ended
	<-w.Done()

	if !w.disarm() || w.Err() == nil {
		t.Error("a guest who has gone is not ended")
	}

	w.arm(time.Now().Add(time.Hour), end)
	<-ended
	w.release()

	ctx, leave = context.WithCancel(t.Context())
	w = newWatchdog(ctx)
	w.arm(time.Now().Add(time.Hour), end)
	w.disarm()
	leave()

	if w.disarm() {
		t.Error("what was done before the guest went is ended")
	}

	w.release()

	w = newWatchdog(t.Context())
	w.arm(time.Now().Add(time.Hour), end)
	w.arm(time.Now().Add(time.Millisecond), end) // before the next poll
	<-ended

	if err := w.Err(); !errors.Is(err, context.DeadlineExceeded) || !w.disarm() {
		t.Errorf("beyond the time: %v", err)
	}

	w.release()
}
