package httpx_test

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/socle-dev/socle/internal/httpx"
)

// newStrictServer serves on a strict listener. It returns its address and a function that returns
// the paths requested since the last call.
func newStrictServer(t *testing.T) (address string, handled func() []string) {
	t.Helper()

	paths := make(chan string, 100)
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		paths <- r.URL.Path

		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}

		_, _ = w.Write(append([]byte("body="), body...))
	})

	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}

	s := &http.Server{Handler: httpx.Wrap(handler, httpx.Config{Log: slog.New(slog.DiscardHandler)})}
	go s.Serve(httpx.StrictListener(l))

	t.Cleanup(func() { s.Shutdown(context.Background()) })
	return l.Addr().String(), func() []string {
		var all []string
		for len(paths) > 0 {
			all = append(all, <-paths)
		}

		return all
	}
}

// exchange sends text in pieces of a size and returns all bytes until the server closes the
// connection.
func exchange(t *testing.T, address, text string, piece int) string {
	t.Helper()

	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()

	_ = conn.SetDeadline(time.Now().Add(30 * time.Second)) // bounds a hang

	for part := range slices.Chunk([]byte(text), piece) {
		if _, err := conn.Write(part); err != nil {
			break // rejected before the end
		}
	}

	var got bytes.Buffer
	_, _ = io.Copy(&got, conn) // a reset ends it too

	return got.String()
}

// TestFramingIsRefused: a request with ambiguous framing gets 400, the connection is closed, and
// bytes after its head are never handled as a request.
func TestFramingIsRefused(t *testing.T) {
	t.Parallel()

	address, handled := newStrictServer(t)
	const smuggled = "GET /smuggled HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
	for name, text := range map[string]string{
		"chunked in HTTP/1.0":            "POST /a HTTP/1.0\r\nHost: x\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n",
		"chunked and sized in HTTP/1.0":  "POST /a HTTP/1.0\r\nHost: x\r\nConnection: keep-alive\r\ntransfer-encoding: chunked\r\nContent-Length: 0\r\n\r\n",
		"both lengths":                   "POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		"both lengths, the other way":    "POST /a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n",
		"two lengths":                    "POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\nContent-Length: 5\r\n\r\n",
		"a signed length":                "POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: +5\r\n\r\n",
		"bare LF behind a header":        "GET /a HTTP/1.1\r\nHost: x\nX: y\r\n\r\n",
		"bare LF behind the first line":  "GET /a HTTP/1.1\nHost: x\r\n\r\n",
		"bare LF for the empty line":     "GET /a HTTP/1.1\r\nHost: x\r\n\n",
		"bare CR in a header":            "GET /a HTTP/1.1\r\nHost: x\r\nX: a\rY: b\r\n\r\n",
		"a folded header":                "GET /a HTTP/1.1\r\nHost: x\r\nX: a\r\n b\r\n\r\n",
		"a folded header by tab":         "GET /a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding:\r\n\tchunked\r\n\r\n",
		"a space before the colon":       "POST /a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding : chunked\r\n\r\n",
		"an encoding that is not known":  "POST /a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: xchunked\r\n\r\n",
		"bare LF behind a length's line": "POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 3\n\r\n\r\nabc",
	} {
		for _, piece := range []int{1, 7, 4096} {
			got := exchange(t, address, text+smuggled, piece)
			if status, _, _ := strings.Cut(got, "\r\n"); (got != "" || piece == 4096) &&
				!strings.HasPrefix(status, "HTTP/1.1 400 ") && !strings.HasPrefix(status, "HTTP/1.1 501 ") {
				t.Errorf("%s: got %q, want a refusal", name, got)
			}

			if got := handled(); len(got) > 0 {
				t.Errorf("%s, %d bytes at a time: the server handled %q, want nothing", name, piece, got)
			}
		}
	}
}

// TestFramingIsTaken: pipelined requests are all served, regardless of segment borders, and a bad
// request is rejected at any position.
func TestFramingIsTaken(t *testing.T) {
	t.Parallel()

	address, handled := newStrictServer(t)

	const (
		get   = "GET /get HTTP/1.1\r\nHost: x\r\n\r\n"
		post  = "POST /post HTTP/1.1\r\nHost: x\r\nContent-length:\t 7 \r\n\r\na\nb\r\nc\n"
		old   = "GET /old HTTP/1.0\r\nHost: x\r\nConnection: keep-alive\r\n\r\n"
		chunk = "PUT /chunked HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\na\nb\r\n0\r\n\r\n"
		bad   = "GET /bad HTTP/1.1\r\nHost: x\n\r\n"
		long  = "POST /long HTTP/1.1\r\nHost: x\r\nX: "
	)
	for _, test := range []struct {
		text string
		want []string
	}{
		{get + post + old + get + chunk + get, []string{"/get", "/post", "/old", "/get", "/chunked"}},
		{post + "\r\n" + get + chunk, []string{"/post", "/get", "/chunked"}},
		{post + bad + get, []string{"/post"}},
		{long + strings.Repeat("x", 20_000) + "\r\nConnection: close\r\n\r\n" + get, []string{"/long"}},
	} {
		for _, piece := range []int{1, 5, 64, 1 << 20} {
			got := exchange(t, address, test.text, piece)
			if got := handled(); !slices.Equal(got, test.want) {
				t.Errorf("%d bytes at a time: the server handled %q, want %q", piece, got, test.want)
			}
			if strings.Contains(test.text, chunk) && !strings.HasSuffix(got, "body=a\nb") {
				t.Errorf("%d bytes at a time: got %q, want the chunked body at its end", piece, got)
			}
		}
	}
}
