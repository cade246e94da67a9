package httpx_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/socle-dev/socle/internal/httpx"
)

// pipes is a listener of in-memory connections, so that a test can use a fake clock.
type pipes struct {
	conns chan net.Conn
	done  chan struct{}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error   { close(p.done); return nil }
func (p *pipes) Addr() net.Addr { return &net.TCPAddr{} }

func (p *pipes) dial() net.Conn {
	client, server := net.Pipe()
	p.conns <- server

	return client
}

// servePaced serves uploads, answered with the number of bytes, and long downloads.
func servePaced(t *testing.T) *pipes {
	l := &pipes{make(chan net.Conn), make(chan struct{})}

	s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			w.Header().Set("Content-Type", "text/plain")
			_, _ = io.Copy(httpx.NewPacedWriter(w), io.LimitReader(bytes.NewReader(make([]byte, 10<<20)), 10<<20))

			return
		}

		n, err := io.Copy(io.Discard, httpx.NewPacedReader(w, r))
		if errors.Is(err, httpx.ErrTooSlow) {
			w.WriteHeader(http.StatusRequestTimeout)
		}

		fmt.Fprint(w, n)
	})}

	go s.Serve(l)

	t.Cleanup(func() { s.Close() })
	return l
}

// upload sends a body of pieces, each after a pause. It returns the response and the duration.
func upload(
	t *testing.T, l *pipes, piece, pieces int, pause time.Duration,
) (status int, body string, took time.Duration) {
	start := time.Now()
	conn := l.dial()
	answered := make(chan struct{})

	var sending sync.WaitGroup
	defer func() {
		close(answered)
		conn.Close()
		sending.Wait()
	}()

	sending.Go(func() {
		fmt.Fprintf(conn, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n", piece*pieces)

		for range pieces {
			select {
			case <-time.After(pause):
			case <-answered:
				return
			}

			if _, err := io.WriteString(conn, strings.Repeat("x", piece)); err != nil {
				return
			}
		}
	})

	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Errorf("no answer: %v", err)
		return 0, "", 0
	}

	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Error(err)
	}

	return res.StatusCode, string(text), time.Since(start)
}

// TestSlowUploads: bodies below the minimum rate time out within a window, other requests are
// served meanwhile, and a body just above the rate completes. The clock is fake.
func TestSlowUploads(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		l := servePaced(t)
		var wg sync.WaitGroup
		for i := range 1000 {
			wg.Go(func() {
				pause := []time.Duration{time.Second, 10 * time.Second, 50 * time.Second, time.Hour}[i%4]
				if status, _, took := upload(t, l, 1, 100_000, pause); status != http.StatusRequestTimeout ||
					took > time.Minute {
					t.Errorf("a byte each %v: got %d after %v, want 408 within a minute", pause, status, took)
				}
			})
		}

		for range 10 {
			if status, got, _ := upload(t, l, 1000, 20, 0); status != 200 || got != "20000" {
				t.Errorf("beside them: got %d, %s", status, got)
			}
		}

		if status, got, took := upload(t, l, 1000, 1200, time.Second); status != 200 || got != "1200000" ||
			took < 20*time.Minute {
			t.Errorf("1000 bytes a second: got %d, %s after %v, want all of them after 20 minutes", status, got, took)
		}

		wg.Wait()
	})
}

// TestSlowDownloads: a response read below the minimum rate is aborted, and one read just above it
// completes.
func TestSlowDownloads(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		l := servePaced(t)
		for _, test := range []struct {
			piece int
			pause time.Duration
			whole bool
		}{{1, time.Minute, false}, {1000, time.Second, false}, {6000, time.Second, true}} {
			conn := l.dial()
			fmt.Fprint(conn, "GET / HTTP/1.0\r\nHost: x\r\n\r\n")
			got, start := 0, time.Now()
			for {
				n, err := io.ReadFull(conn, make([]byte, test.piece))
				if got += n; err != nil {
					break
				}

				<-time.After(test.pause) // of the fake clock
			}

			conn.Close()

			if whole := got > 10<<20; whole != test.whole || (!whole && time.Since(start) > 5*time.Minute) {
				t.Errorf("%d bytes each %v: got %d bytes in %v", test.piece, test.pause, got, time.Since(start))
			}
		}
	})
}
