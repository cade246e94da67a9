package server

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"testing"
	"time"
)

// TestSlowHeadsEnd checks that a request head sent byte by byte runs into a timeout.
func TestSlowHeadsEnd(t *testing.T) {
	t.Parallel()

	s := newHTTPServer(http.NotFoundHandler(), slog.New(slog.DiscardHandler))
	if s.ReadHeaderTimeout <= 0 || s.ReadHeaderTimeout > 30*time.Second || s.IdleTimeout <= 0 ||
		s.MaxHeaderBytes > 1<<20 {
		t.Errorf("a head may take %v and %d bytes, a connection may be idle for %v", s.ReadHeaderTimeout,
			s.MaxHeaderBytes, s.IdleTimeout)
	}

	s.ReadHeaderTimeout = 20 * time.Millisecond // shortened for the test

	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}

	go s.Serve(listener)

	t.Cleanup(func() { s.Shutdown(context.Background()) })

	conn, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()

	closed := make(chan error, 1)
	go func() {
		_, err := io.Copy(io.Discard, conn)
		closed <- err
	}()

	if _, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: x\r\n"); err != nil {
		t.Fatal(err)
	}

	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()

	for {
		select {
		case <-closed:
			return
		case <-tick.C:
			_, _ = io.WriteString(conn, "X")
		}
	}
}
