package throttle

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// output is what was logged. Timers log in goroutines of their own.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()

	return o.text.Write(p)
}

// take returns what was logged since the last call.
func (o *output) take() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	defer o.text.Reset()

	return o.text.String()
}

// TestThrottle logs from loops that fail for some time.
func TestThrottle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out output
		log := New(slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{
			ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
				if a.Key == slog.TimeKey {
					return slog.Attr{}
				}
				return a
			},
		})))
		take := func() string {
			synctest.Wait()
			return strings.TrimSuffix(strings.ReplaceAll(out.take(), "\n", "; "), "; ")
		}

		for n := range 5 {
			log.With("queue", n).Error("fetch jobs", "attempt", n)
			log.Info("started")
		}
		log.Warn("lost")

		want := "level=ERROR msg=\"fetch jobs\" queue=0 attempt=0" + strings.Repeat("; level=INFO msg=started", 5) +
			"; level=WARN msg=lost"
		if got := take(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}

		time.Sleep(interval)
		if got, want := take(), `level=ERROR msg="fetch jobs" queue=4 attempt=4 repeated=4`; got != want {
			t.Errorf("got %s after an interval, want %s", got, want)
		}

		log.Error("fetch jobs")
		time.Sleep(interval)
		if got, want := take(), `level=ERROR msg="fetch jobs" repeated=1`; got != want {
			t.Errorf("got %s after another interval, want %s", got, want)
		}

		time.Sleep(interval + 1)
		log.Error("fetch jobs")
		if got, want := take(), `level=ERROR msg="fetch jobs"`; got != want {
			t.Errorf("got %s after an interval without failures, want %s", got, want)
		}
		time.Sleep(interval)
	})
}

// TestManyMessages passes messages beyond those that it remembers.
func TestManyMessages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out output
		log := New(slog.New(slog.NewTextHandler(&out, nil)))
		for range 2 {
			for n := range maxMessages + 10 {
				log.Warn(fmt.Sprint("message ", n))
			}
		}

		if got, want := strings.Count(out.take(), "\n"), maxMessages+20; got != want {
			t.Errorf("got %d lines, want %d", got, want)
		}
		time.Sleep(2 * interval)
	})
}
