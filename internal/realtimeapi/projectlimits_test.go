package realtimeapi

import (
	"errors"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/socle-dev/socle/internal/event"
)

// TestProjectLimits: one read serves all, new limits are read once they changed, and the default
// ones hold while they can't be read.
func TestProjectLimits(t *testing.T) {
	t.Parallel()

	g := newRig(t)
	var reads atomic.Int32
	var failure atomic.Pointer[error]
	g.project.bounds = func() (event.RealtimeLimits, error) {
		l := event.DefaultLimits
		l.Sockets = int(reads.Add(1))
		if err := failure.Load(); err != nil {
			return event.RealtimeLimits{}, *err
		}
		return l, nil
	}

	g.dial("apikey=key&vsn=2.0.0")
	refused := func() int {
		t.Helper()

		r, err := http.NewRequestWithContext(t.Context(), "GET", g.url+"/websocket?apikey=key&vsn=2.0.0", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header = http.Header{"Connection": {"Upgrade"}, "Upgrade": {"websocket"}, "Sec-Websocket-Version": {"13"},
			"Sec-Websocket-Key": {"dGhlIHNhbXBsZSBub25jZQ=="}}
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()

		return res.StatusCode
	}
	if got := refused(); got != http.StatusTooManyRequests || reads.Load() != 1 {
		t.Errorf("a second socket: got %d after %d reads, want 429 after one", got, reads.Load())
	}

	g.server.ForgetLimits(g.project.uuid)
	g.dial("apikey=key&vsn=2.0.0")
	if got := refused(); got != http.StatusTooManyRequests || reads.Load() != 2 {
		t.Errorf("a third socket: got %d after %d reads, want 429 after two", got, reads.Load())
	}

	err := errors.New("away")
	failure.Store(&err)
	g.server.ForgetAllLimits()
	g.dial("apikey=key&vsn=2.0.0")
	g.dial("apikey=key&vsn=2.0.0")
	if reads.Load() != 3 {
		t.Errorf("got %d reads, want a third one that failed", reads.Load())
	}

	r, _ := g.server.knownLimits.Get(g.project.uuid)
	if now := time.Now(); r.isDue(now) || !r.isDue(now.Add(2*limitsRetry)) {
		t.Error("a failed read is not repeated a while later")
	}
}

// TestSocketLimits: the rates of an open socket follow the limits of its project.
func TestSocketLimits(t *testing.T) {
	t.Parallel()

	k := &socket{tenant: &tenant{}, joins: newBucket(20), messages: newBucket(100)}
	limits := event.DefaultLimits
	limits.JoinsPerSecond, limits.MessagesPerSecond = 2, 1
	k.tenant.limits.Store(&limits)

	now, joins := time.Now(), 0
	for k.takeJoin(now) {
		joins++
	}
	if joins != 2*limitBurst {
		t.Errorf("got %d joins at once, want %d", joins, 2*limitBurst)
	}
	for range limitBurst {
		if wait := k.reserveMessage(now); wait != 0 {
			t.Errorf("a message waits %v", wait)
		}
	}
	if wait := k.reserveMessage(now); wait != time.Second {
		t.Errorf("one message more waits %v, want a second", wait)
	}
}
