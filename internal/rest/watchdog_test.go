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
	g := newWatchdog(ctx)
	ended := make(chan bool, 1)
	end := func() { ended <- true }

	g.arm(time.Now().Add(time.Hour), end)

	if g.disarm() || g.Err() != nil {
		t.Error("a guest who was served in time is ended")
	}

	g.arm(time.Now().Add(time.Hour), end)
	leave()
	<-ended
	<-g.Done()

	if !g.disarm() || g.Err() == nil {
		t.Error("a guest who has gone is not ended")
	}

	g.arm(time.Now().Add(time.Hour), end)
	<-ended
	g.release()

	ctx, leave = context.WithCancel(t.Context())
	g = newWatchdog(ctx)
	g.arm(time.Now().Add(time.Hour), end)
	g.disarm()
	leave()

	if g.disarm() {
		t.Error("what was done before the guest went is ended")
	}

	g.release()

	g = newWatchdog(t.Context())
	g.arm(time.Now().Add(time.Hour), end)
	g.arm(time.Now().Add(time.Millisecond), end) // before the next poll
	<-ended

	if err := g.Err(); !errors.Is(err, context.DeadlineExceeded) || !g.disarm() {
		t.Errorf("beyond the time: %v", err)
	}

	g.release()
}
