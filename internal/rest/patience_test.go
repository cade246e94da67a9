package rest

import (
	"context"
	"errors"
	"testing"
	"time"
)

func TestGuest(t *testing.T) {
	t.Parallel()

	ctx, leave := context.WithCancel(t.Context())
	g := welcome(ctx)
	ended := make(chan bool, 1)
	end := func() { ended <- true }

	g.await(time.Now().Add(time.Hour), end)

	if g.rest() || g.Err() != nil {
		t.Error("a guest who was served in time is ended")
	}

	g.await(time.Now().Add(time.Hour), end)
	leave()
	<-ended
	<-g.Done()

	if !g.rest() || g.Err() == nil {
		t.Error("a guest who has gone is not ended")
	}

	g.await(time.Now().Add(time.Hour), end)
	<-ended
	g.leave()

	ctx, leave = context.WithCancel(t.Context())
	g = welcome(ctx)
	g.await(time.Now().Add(time.Hour), end)
	g.rest()
	leave()

	if g.rest() {
		t.Error("what was done before the guest went is ended")
	}

	g.leave()

	g = welcome(t.Context())
	g.await(time.Now().Add(time.Hour), end)
	g.await(time.Now().Add(time.Millisecond), end) // sooner than the clock would look
	<-ended

	if err := g.Err(); !errors.Is(err, context.DeadlineExceeded) || !g.rest() {
		t.Errorf("beyond the time: %v", err)
	}

	g.leave()
}
