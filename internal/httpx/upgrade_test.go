package httpx_test

import (
	"bufio"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/socle-dev/socle/internal/httpx"
)

// TestUpgrade checks that bytes of another protocol pass unchecked after an upgrade, and that a
// client that sends them too early is refused.
func TestUpgrade(t *testing.T) {
	t.Parallel()

	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}

	var log lines
	finished := make(chan httpx.Finished, 2)
	server := &http.Server{Handler: httpx.Wrap(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		conn, err := httpx.Upgrade(w, "echo")
		if err != nil {
			return
		}
		defer conn.Close()

		_, _ = io.CopyN(conn, conn, 4)
	}), httpx.Config{Log: slog.New(slog.NewTextHandler(&log, nil)), Slow: 1,
		Answered: func(f httpx.Finished) { finished <- f }})}
	go server.Serve(httpx.StrictListener(listener))
	t.Cleanup(func() { server.Close() })

	const request = "GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n"
	for _, test := range []struct {
		sent   string
		status int // 0: none
	}{{request, http.StatusSwitchingProtocols}, {request + "\r\r\n\n", 0}} {
		conn, err := net.Dial("tcp", listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()

		if _, err := io.WriteString(conn, test.sent); err != nil {
			t.Fatal(err)
		}

		reader := bufio.NewReader(conn)
		response, err := http.ReadResponse(reader, nil)
		if test.status == 0 {
			if err == nil {
				t.Errorf("an early client got %s", response.Status)
			}
			<-finished

			continue
		}
		if err != nil {
			t.Fatal(err)
		}

		if _, err := io.WriteString(conn, "\r\r\n\n"); err != nil { // never valid in HTTP
			t.Fatal(err)
		}

		echo, err := io.ReadAll(reader)
		if err != nil || string(echo) != "\r\r\n\n" {
			t.Errorf("got %q, %v", echo, err)
		}
		if response.StatusCode != test.status || response.Header.Get("Upgrade") != "echo" ||
			response.Header.Get("X-Request-Id") == "" {
			t.Errorf("got %s with %v", response.Status, response.Header)
		}
		if f := <-finished; f.Status != test.status {
			t.Errorf("got status %d for the log, want %d", f.Status, test.status)
		}
	}
	first, _, _ := strings.Cut(log.String(), "\n")
	if strings.Contains(first, "slow request") || !strings.Contains(first, "status=101") {
		t.Errorf("got the log\n%s\nwant no session to count as slow", first)
	}
}

// TestHijackOfHandlers checks that a library that takes over the connection itself, as those for
// WebSockets do, responds first and gets bytes that are not checked as HTTP.
func TestHijackOfHandlers(t *testing.T) {
	t.Parallel()

	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}

	sent := make(chan struct{}) // the client's bytes, while the handler has not hijacked yet
	finished := make(chan httpx.Finished, 1)
	server := &http.Server{Handler: httpx.Wrap(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Connection", "Upgrade")
		w.WriteHeader(http.StatusSwitchingProtocols)
		<-sent
		conn, rw, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()

		_, _ = io.CopyN(rw, rw, 4)
		_ = rw.Flush()
	}), httpx.Config{Log: slog.New(slog.DiscardHandler), Answered: func(f httpx.Finished) { finished <- f }})}
	go server.Serve(httpx.StrictListener(listener))
	t.Cleanup(func() { server.Close() })

	conn, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()

	if _, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	reader := bufio.NewReader(conn)
	response, err := http.ReadResponse(reader, nil)
	if err != nil || response.StatusCode != http.StatusSwitchingProtocols {
		t.Fatalf("got %v, %v", response, err)
	}
	if _, err := io.WriteString(conn, "\r\r\n\n"); err != nil { // never valid in HTTP
		t.Fatal(err)
	}
	close(sent)
	if echo, err := io.ReadAll(reader); err != nil || string(echo) != "\r\r\n\n" {
		t.Errorf("got %q, %v", echo, err)
	}
	if f := <-finished; f.Status != http.StatusSwitchingProtocols {
		t.Errorf("got status %d for the log, want 101", f.Status)
	}
}

// lines is a log that several goroutines write.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()

	return l.text.Write(b)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()

	return l.text.String()
}
