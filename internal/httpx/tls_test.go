package httpx_test

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/socle-dev/socle/internal/httpx"
)

// TestStrictTLS serves HTTP/2 and HTTP/1.1 on one port. Only HTTP/1.1 has framing to be checked.
func TestStrictTLS(t *testing.T) {
	t.Parallel()

	example := httptest.NewUnstartedServer(nil)
	example.StartTLS()
	example.Close()

	roots := x509.NewCertPool()
	roots.AddCert(example.Certificate())

	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}

	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.Copy(w, r.Body); err != nil {
			t.Error(err)
		}
	})
	server := &http.Server{Handler: httpx.Wrap(handler, httpx.Config{Log: slog.New(slog.DiscardHandler)})}
	served := make(chan error, 1)
	go func() {
		served <- server.Serve(httpx.StrictTLSListener(l, &tls.Config{Certificates: example.TLS.Certificates,
			NextProtos: []string{"h2", "http/1.1", "other"}}))
	}()

	for _, major := range []int{1, 2} {
		client := http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots},
			ForceAttemptHTTP2: major == 2}}
		defer client.CloseIdleConnections()

		body := strings.Repeat("x", 1<<20)
		res, err := client.Post("https://"+l.Addr().String(), "text/plain", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}

		got, err := io.ReadAll(res.Body)
		res.Body.Close()
		if err != nil || res.ProtoMajor != major || string(got) != body {
			t.Errorf("HTTP/%d: got %s with %d bytes, %v", major, res.Proto, len(got), err)
		}
	}

	// dial sends text over a protocol, and returns the answer up to the end of the connection.
	dial := func(text string, protocols ...string) string {
		conn, err := tls.Dial("tcp", l.Addr().String(), &tls.Config{RootCAs: roots, NextProtos: protocols})
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()

		_, _ = io.WriteString(conn, text) // may be refused before the end
		var got bytes.Buffer
		_, _ = io.Copy(&got, conn)

		return got.String()
	}

	const ambiguous = "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
	for _, protocols := range [][]string{nil, {"http/1.1"}} {
		if got := dial(ambiguous, protocols...); !strings.HasPrefix(got, "HTTP/1.1 400 ") {
			t.Errorf("%v: got %q, want a refusal", protocols, got)
		}
	}
	for _, protocol := range []string{"h2", "other"} {
		if got := dial(ambiguous, protocol); strings.Contains(got, "HTTP/1.1") {
			t.Errorf("HTTP/1.1 over %s: got %q, want nothing", protocol, got)
		}
	}

	if err := server.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-served; err != http.ErrServerClosed {
		t.Errorf("got %v, want %v", err, http.ErrServerClosed)
	}
}
