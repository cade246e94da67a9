package realtimeapi

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"

	"github.com/socle-dev/socle/internal/fair"
)

// pipe is a connection to a client that reads when the test does.
type pipe struct {
	frames chan []byte

	mu     sync.Mutex
	code   websocket.StatusCode
	reason string
	cut    chan struct{}
}

func (p *pipe) Write(ctx context.Context, _ websocket.MessageType, data []byte) error {
	select {
	case p.frames <- data:
		return nil
	case <-p.cut:
		return errors.New("closed")
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (p *pipe) Close(code websocket.StatusCode, reason string) error {
	p.mu.Lock()
	defer p.mu.Unlock()

	p.code, p.reason = code, reason
	return nil
}

func (p *pipe) CloseNow() error {
	close(p.cut)
	return nil
}

func (p *pipe) closed() (websocket.StatusCode, string) {
	p.mu.Lock()
	defer p.mu.Unlock()

	return p.code, p.reason
}

func newOutbox(backlogs *fair.Pool) (*outbox, *pipe) {
	p := &pipe{frames: make(chan []byte), cut: make(chan struct{})}
	return &outbox{conn: p, backlogs: backlogs, share: fair.Key{Account: "a"}}, p
}

func newBacklogs(size int64) *fair.Pool { return fair.New(fair.Config{Name: "test", Capacity: size}) }

func TestOutbox(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		backlogs := newBacklogs(maxBacklogs)
		o, p := newOutbox(backlogs)
		for i := range 100 {
			o.push(frame{data: bytes.Repeat([]byte{byte(i)}, 1000)})
		}
		if got := backlogs.Stats().InUse; got != 2*backlogStep {
			t.Errorf("got %d bytes leased, want %d", got, 2*backlogStep)
		}

		for i := range 100 {
			if got := <-p.frames; got[0] != byte(i) {
				t.Fatalf("got frame %d, want %d", got[0], i)
			}
		}
		synctest.Wait()
		if got := backlogs.Stats().InUse; got != 0 || o.isWriting {
			t.Errorf("got %d bytes leased by an empty outbox, writing %v", got, o.isWriting)
		}

		o.push(frame{data: []byte("last")})
		o.close(statusGoingAway, "bye") // the frame may be in flight
		o.close(statusMalformed, "late")
		o.push(frame{data: []byte("late")})
		synctest.Wait()
		select {
		case <-p.frames:
		default:
		}
		synctest.Wait()
		if code, reason := p.closed(); code != statusGoingAway || reason != "bye" {
			t.Errorf("got %d %q", code, reason)
		}
	})
}

// TestSlowReaders checks that clients that do not read are closed, with a reason if they read
// again.
func TestSlowReaders(t *testing.T) {
	t.Parallel()

	for _, test := range []struct {
		name     string
		backlogs int64
		frames   int // of backlogStep bytes
		reads    bool
		reason   string
	}{
		{"beyond its backlog", maxBacklogs, maxBacklog/backlogStep + 2, true, slowReason},
		{"beyond all backlogs", 2 * backlogStep, 5, true, "too many messages wait for slow clients"},
		{"stuck", maxBacklogs, 1, false, slowReason},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				backlogs := newBacklogs(test.backlogs)
				o, p := newOutbox(backlogs)
				for range test.frames {
					o.push(frame{data: make([]byte, backlogStep)})
					synctest.Wait()
				}

				if test.reads {
					<-p.frames // what was in flight
				} else {
					time.Sleep(writeTimeout)
				}
				synctest.Wait()

				if code, reason := p.closed(); code != statusTryAgainLater || reason != test.reason {
					t.Errorf("got %d %q, want %d %q", code, reason, statusTryAgainLater, test.reason)
				}
				if got := backlogs.Stats().InUse; got != 0 {
					t.Errorf("got %d bytes leased by a closed outbox", got)
				}
			})
		})
	}
}
