package httpx_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/socle-dev/socle/internal/httpx"
)

// serve sends one request through Wrap and returns the response and the log records.
func serve(
	t *testing.T, h http.HandlerFunc, r *http.Request, trusted ...netip.Prefix,
) (*httptest.ResponseRecorder, []map[string]any) {
	t.Helper()

	var log bytes.Buffer
	w := httptest.NewRecorder()
	httpx.Wrap(h, httpx.Config{Log: slog.New(slog.NewJSONHandler(&log, nil)), TrustedProxies: trusted,
		Panicked: func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusInternalServerError)
		}}).ServeHTTP(w, r)

	var records []map[string]any
	for line := range strings.Lines(log.String()) {
		var record map[string]any
		if err := json.Unmarshal([]byte(line), &record); err != nil {
			t.Fatalf("log line %q: %v", line, err)
		}

		records = append(records, record)
	}

	return w, records
}

func TestOneRecordForEachRequest(t *testing.T) {
	t.Parallel()

	w, records := serve(t, func(w http.ResponseWriter, r *http.Request) {
		request := httpx.From(r.Context())
		request.Route, request.Err = "GET /x", errors.New("line one\nlevel=ERROR msg=forged")
		w.WriteHeader(http.StatusTeapot)
	}, httptest.NewRequest("GET", "/x?token=secret", nil))
	if len(records) != 1 {
		t.Fatalf("got %d records, want 1: %v", len(records), records)
	}

	r := records[0]
	if d, ok := r["duration_ms"].(float64); !ok || d < 0 || d > 60_000 {
		t.Errorf("duration: got %v, want milliseconds", r["duration_ms"])
	}
	if r["status"] != 418.0 || r["route"] != "GET /x" || r["requestId"] != w.Header().Get("X-Request-Id") ||
		r["error"] != "line one\nlevel=ERROR msg=forged" {
		t.Errorf("got record %v", r)
	}

	if text, _ := json.Marshal(r); bytes.Contains(text, []byte("secret")) {
		t.Errorf("the record shows the query: %s", text)
	}
}

// TestUnknownMethod: the record of a request has no text of the client's as its method.
func TestUnknownMethod(t *testing.T) {
	t.Parallel()

	for method, want := range map[string]string{"PATCH": "PATCH", "patch": "_OTHER",
		"A" + strings.Repeat("b", 9000): "_OTHER"} {
		_, records := serve(t, func(w http.ResponseWriter, r *http.Request) {
			r.Method = method // as an override of tus does
			w.WriteHeader(http.StatusMethodNotAllowed)
		}, httptest.NewRequest("POST", "/", nil))
		if len(records) != 1 || records[0]["method"] != want {
			t.Errorf("%.20s: got %.200v, want the method %s", method, records, want)
		}
	}
}

// TestCanceledRequest checks that a failure of a request whose client has disconnected counts as
// that, not as a failure of the server, unless it has another cause.
func TestCanceledRequest(t *testing.T) {
	t.Parallel()

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	canceled, waiting := httptest.NewRequestWithContext(ctx, "GET", "/", nil), httptest.NewRequest("GET", "/", nil)

	for _, test := range []struct {
		request       *http.Request
		err           error
		status, level string
	}{
		{canceled, fmt.Errorf("open a file: %w", context.Canceled), "499", "INFO"},
		{canceled, errors.New("broken"), "500", "ERROR"},
		{waiting, context.Canceled, "500", "ERROR"},
	} {
		_, records := serve(t, func(w http.ResponseWriter, r *http.Request) {
			httpx.From(r.Context()).Err = test.err
			w.WriteHeader(http.StatusInternalServerError)
		}, test.request)
		if got := fmt.Sprint(records[0]["status"], " ", records[0]["level"]); got != test.status+" "+test.level {
			t.Errorf("%v: got %s, want %s %s", test.err, got, test.status, test.level)
		}
	}
}

// TestLevelOfFailure checks that a failure is one of the server if the response is a 5xx, had begun
// as a success or redirects with it, but not that of an ambiguous request (300) or for a function
// that the server lacks (501).
func TestLevelOfFailure(t *testing.T) {
	t.Parallel()

	for status, want := range map[int]string{
		200: "ERROR", 206: "ERROR", 300: "INFO", 303: "ERROR", 404: "INFO", 501: "INFO", 503: "ERROR",
	} {
		_, records := serve(t, func(w http.ResponseWriter, r *http.Request) {
			httpx.From(r.Context()).Err = errors.New("broken")
			w.WriteHeader(status)
		}, httptest.NewRequest("GET", "/", nil))
		if got := records[0]["level"]; got != want {
			t.Errorf("status %d: got level %v, want %s", status, got, want)
		}
	}
}

// TestInformationalStatus logs the final status of a request.
func TestInformationalStatus(t *testing.T) {
	t.Parallel()

	_, records := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusContinue)
		w.WriteHeader(http.StatusNoContent)
	}, httptest.NewRequest("PUT", "/", nil))
	if got := records[0]["status"]; got != 204.0 {
		t.Errorf("got status %v, want 204", got)
	}
}

// TestSlowRequest checks the record of a request beyond the limit, with the client's trace.
func TestSlowRequest(t *testing.T) {
	t.Parallel()

	const trace = "4bf92f3577b34da6a3ce929d0e0e4736"
	var log bytes.Buffer
	r := httptest.NewRequest("GET", "/x", nil)
	r.Header.Set("Traceparent", "00-"+trace+"-00f067aa0ba902b7-01")
	httpx.Wrap(http.NotFoundHandler(), httpx.Config{
		Log: slog.New(slog.NewJSONHandler(&log, nil)), Slow: time.Nanosecond,
	}).ServeHTTP(httptest.NewRecorder(), r)

	var record map[string]any
	if err := json.Unmarshal(log.Bytes(), &record); err != nil || record["level"] != "WARN" ||
		record["msg"] != "slow request" || record["traceId"] != trace {
		t.Errorf("got %v, %s", err, log.String())
	}
}

func TestPanicIsAnswered(t *testing.T) {
	t.Parallel()

	w, records := serve(t, func(http.ResponseWriter, *http.Request) {
		panic("boom")
	}, httptest.NewRequest("GET", "/", nil))
	if w.Code != http.StatusInternalServerError || strings.Contains(w.Body.String(), "boom") {
		t.Errorf("got %d %q", w.Code, w.Body)
	}
	if len(records) != 2 || records[0]["panic"] != "boom" ||
		!strings.Contains(records[0]["stack"].(string), "httpx_test.go") {
		t.Errorf("got records %v, want the panic with its stack, and the request", records)
	}
}

// TestPanicCutsOffAnAnswerThatHasBegun: the client must not mistake half a response for a whole
// one.
func TestPanicCutsOffAnAnswerThatHasBegun(t *testing.T) {
	t.Parallel()

	defer func() {
		if p := recover(); p != http.ErrAbortHandler {
			t.Errorf("got panic %v, want http.ErrAbortHandler", p)
		}
	}()

	serve(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("half"))
		panic("boom")
	}, httptest.NewRequest("GET", "/", nil))
}

func TestClient(t *testing.T) {
	t.Parallel()

	proxy := netip.MustParsePrefix("10.0.0.0/8")
	for _, tt := range []struct {
		peer, forwarded string
		trusted         []netip.Prefix
		want            string
		direct          bool
	}{
		{"192.0.2.7:1", "", nil, "192.0.2.7", true},
		{"192.0.2.7:1", "198.51.100.1", nil, "192.0.2.7", false},
		{"127.0.0.1:1", "198.51.100.1", nil, "127.0.0.1", false},
		{"10.0.0.1:1", "198.51.100.1", []netip.Prefix{proxy}, "198.51.100.1", false},
		{"10.0.0.1:1", "203.0.113.9, 198.51.100.1", []netip.Prefix{proxy}, "198.51.100.1", false},
		{"10.0.0.1:1", "198.51.100.1, 10.0.0.2", []netip.Prefix{proxy}, "198.51.100.1", false},
		{"10.0.0.1:1", "forged", []netip.Prefix{proxy}, "10.0.0.1", false},
		{"192.0.2.7:1", "198.51.100.1", []netip.Prefix{proxy}, "192.0.2.7", false},
		{"[::ffff:192.0.2.7]:1", "", nil, "192.0.2.7", true},
		{"[2001:db8::1%eth0]:1", "", nil, "2001:db8::1", true},
	} {
		r := httptest.NewRequest("GET", "/", nil)
		r.RemoteAddr = tt.peer

		if tt.forwarded != "" {
			r.Header.Set("X-Forwarded-For", tt.forwarded)
		}

		serve(t, func(_ http.ResponseWriter, r *http.Request) {
			request := httpx.From(r.Context())
			if request.Client.String() != tt.want || request.Direct != tt.direct {
				t.Errorf("%s forwarding %q: got %v, direct %v, want %s, %v", tt.peer, tt.forwarded, request.Client,
					request.Direct, tt.want, tt.direct)
			}
		}, r, tt.trusted...)
	}
}

func TestNetwork(t *testing.T) {
	t.Parallel()

	for addr, want := range map[string]string{
		"192.0.2.7": "192.0.2.7", "2001:db8::1": "2001:db8::/64", "2001:db8::ffff:1": "2001:db8::/64",
	} {
		if got := httpx.Network(netip.MustParseAddr(addr)); got != want {
			t.Errorf("Network(%s) = %s, want %s", addr, got, want)
		}
	}
}
