// Package httpx owns the HTTP layer around all interfaces: request ids, client addresses, panic
// recovery, request logging, strict framing, minimum transfer rates and the memory budget for
// bodies. It knows no routes and no response formats.
package httpx

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/netip"
	"net/url"
	"runtime/debug"
	"time"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/fair"
)

// Request holds a request's facts for the log. The interface that serves the request fills in the
// rest.
type Request struct {
	ID        string
	Start     time.Time  // when the handler started
	Client    netip.Addr // client address, as far as trusted proxies report it
	Direct    bool       // no header from a proxy or a browser page
	UserAgent string     // User-Agent, truncated
	Route     string     // route pattern, never the path, which may contain secrets
	User      uuid.UUID
	Project   uuid.UUID
	Share     fair.Key  // see [Share]; set before other goroutines use the request
	Key       uuid.UUID // project key that the client presented
	Token     bool      // client presented a token issued to one of the project's own users
	Role      string    // database role that the key or token gives
	Subject   string    // token's sub claim
	Interface string    // application interface's prefix; "" for other routes
	Target    string    // escaped path behind the interface, or its part that is no secret
	Schema    string    // target's schema, if it is not the default one
	Rows      int64     // rows in the response, or changed ones, if HasRows
	HasRows   bool
	ErrorCode string // failure code in the response
	ErrorText string // failure message in the response
	Err       error  // cause of a failure
	Statement string // normalized statement that was executed; "": not recorded
	Probe     bool   // health check; logged only on failure
	Trace     string // trace ID: the client's (traceparent) or a new one; "": none
}

type requestKey struct{}

// requestContext is a context with its request's facts.
type requestContext struct {
	context.Context
	request *Request
}

func (k *requestContext) Value(key any) any {
	if key == (requestKey{}) {
		return k.request
	}
	return k.Context.Value(key)
}

// From returns the facts about ctx's request. Outside a request it returns an empty Request.
func From(ctx context.Context) *Request {
	if r, ok := ctx.Value(requestKey{}).(*Request); ok {
		return r
	}
	return &Request{}
}

// Config configures [Wrap].
type Config struct {
	Log            *slog.Logger
	TrustedProxies []netip.Prefix                               // proxies whose X-Forwarded-For is trusted
	Slow           time.Duration                                // logs slower requests as warnings; 0: none
	Panicked       func(w http.ResponseWriter, r *http.Request) // answers for a handler that panicked before it wrote
	// Answered is called for every finished request, if not nil. It must not block.
	Answered func(a Finished)
}

// Finished is a finished request.
type Finished struct {
	*Request
	Method string // standard method, or _OTHER
	Status int    // 0: the client got no response
	Took   time.Duration
	Bytes  int64 // response body size
	URL    *url.URL
}

// Wrap returns next with the HTTP layer of this package around it.
func Wrap(next http.Handler, c Config) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		rec := &recorder{ResponseWriter: w}
		request := &rec.request
		request.Start = time.Now()
		request.ID = newID(request.Start)
		request.Client, request.Direct = clientAddr(r, c.TrustedProxies)
		request.UserAgent = userAgent(r)
		request.Trace = traceID(r)
		rec.ctx = requestContext{r.Context(), request}
		r = r.WithContext(&rec.ctx)

		h := w.Header()
		rec.id = [1]string{request.ID}
		h["X-Request-Id"] = rec.id[:]
		h["X-Content-Type-Options"] = nosniff

		if len(r.TransferEncoding) > 0 {
			// net/http hides a Content-Length beside chunked encoding. A proxy may have used it, so
			// the following bytes on the connection are untrusted (RFC 9112, section 6.1).
			rec.Header().Set("Connection", "close")
		}

		defer func() {
			if p := recover(); p != nil {
				if p == http.ErrAbortHandler { // a handler aborts a response that it has begun
					c.finish(r, rec)
					panic(p)
				}

				c.Log.Error("panic", "requestId", request.ID, "panic", p, "stack", string(debug.Stack()))

				if rec.status == 0 {
					c.Panicked(rec, r)
				} else {
					defer panic(http.ErrAbortHandler) // the response has begun: cut it off
				}
			}

			c.finish(r, rec)
		}()

		next.ServeHTTP(rec, r)
	})
}

// newID returns a version 7 UUID. It needs uniqueness, not secrecy, so the runtime's random numbers
// suffice. They take no system call.
func newID(now time.Time) string {
	var id uuid.UUID
	binary.BigEndian.PutUint64(id[:], uint64(now.UnixMilli())<<16|rand.Uint64()&0xfff|0x7000)
	binary.BigEndian.PutUint64(id[8:], rand.Uint64()>>2|1<<63)

	return id.String()
}

// StatusClientClosedRequest is logged for a request whose client disconnected before the response.
const StatusClientClosedRequest = 499

// finish logs a finished request and reports it to the hook.
func (c *Config) finish(r *http.Request, rec *recorder) {
	took := time.Since(rec.request.Start)
	if rec.status >= http.StatusInternalServerError && errors.Is(r.Context().Err(), context.Canceled) &&
		errors.Is(rec.request.Err, context.Canceled) {
		rec.status = StatusClientClosedRequest
	}

	c.logRequest(r, rec, took)
	rec.describeSpan(r)

	if c.Answered != nil {
		c.Answered(Finished{&rec.request, methodName(r), rec.status, took, rec.bytes, r.URL})
	}
}

// methodName returns the method for records. It replaces an unknown method, whose text the client
// chooses, by _OTHER, OpenTelemetry's name for it.
func methodName(r *http.Request) string {
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete,
		http.MethodOptions, http.MethodTrace, http.MethodConnect:
		return r.Method
	}

	return "_OTHER"
}

// failed reports whether the server failed, also after the response had begun. Protocols demand two
// statuses outside 4xx for client mistakes: the rows API 300 for an ambiguous embedding, S3 501 for
// a function that the server lacks.
func (w *recorder) failed() bool {
	switch {
	case w.status == http.StatusMultipleChoices, w.status == http.StatusNotImplemented:
		return false
	case w.status >= http.StatusInternalServerError:
		return true
	default:
		return w.status < http.StatusBadRequest && w.request.Err != nil
	}
}

func (c *Config) logRequest(r *http.Request, rec *recorder, took time.Duration) {
	request := &rec.request
	level, message := slog.LevelInfo, "request"
	switch {
	case rec.failed():
		level = slog.LevelError
	case c.Slow > 0 && took >= c.Slow && rec.status != http.StatusSwitchingProtocols: // whose duration is a session's
		level, message = slog.LevelWarn, "slow request"
	case request.Probe:
		level = slog.LevelDebug
	}

	if !c.Log.Enabled(r.Context(), level) {
		return
	}

	attrs := []slog.Attr{
		slog.String("method", methodName(r)), slog.String("route", request.Route), slog.Int("status", rec.status),
		slog.Float64("duration_ms", float64(took.Microseconds())/1000), slog.Int64("bytes", rec.bytes),
		slog.String("client", request.Client.String()), slog.String("requestId", request.ID),
	}

	if request.Trace != "" {
		attrs = append(attrs, slog.String("traceId", request.Trace))
	}
	if request.User != uuid.Nil {
		attrs = append(attrs, slog.String("user", request.User.String()))
	}
	if request.Project != uuid.Nil {
		attrs = append(attrs, slog.String("project", request.Project.String()))
	}
	if request.Statement != "" {
		attrs = append(attrs, slog.String("statement", request.Statement))
	}
	if request.Err != nil {
		attrs = append(attrs, slog.String("error", request.Err.Error()))
	}

	c.Log.LogAttrs(r.Context(), level, message, attrs...)
}

var nosniff = []string{"nosniff"} // shared by all responses; header values are never modified in place

// recorder records a response's status and size.
type recorder struct {
	http.ResponseWriter
	ctx     requestContext
	request Request
	id      [1]string
	status  int
	bytes   int64

	hijacked *hijacked // nil: not yet
}

// isHijacked reports whether the connection is no longer HTTP's.
func (w *recorder) isHijacked() bool {
	return w.hijacked != nil && w.hijacked.isTaken
}

func (w *recorder) WriteHeader(status int) {
	switch {
	case w.isHijacked():
		return
	case status == http.StatusSwitchingProtocols:
		w.switchProtocols()
		return
	case w.status == 0 && status >= http.StatusOK: // a final one
		w.status = status
	}

	w.ResponseWriter.WriteHeader(status)
}

func (w *recorder) Write(b []byte) (int, error) {
	if w.isHijacked() {
		return 0, http.ErrHijacked
	}
	if w.status == 0 {
		w.status = http.StatusOK
	}

	n, err := w.ResponseWriter.Write(b)
	w.bytes += int64(n)

	return n, err
}

// ReadFrom keeps sendfile available.
func (w *recorder) ReadFrom(r io.Reader) (int64, error) {
	if w.status == 0 {
		w.status = http.StatusOK
	}

	n, err := io.Copy(w.ResponseWriter, r)
	w.bytes += n

	return n, err
}

// Status returns the status written to w, the ResponseWriter that [Wrap] passes to its handler; 0
// if none yet.
func Status(w http.ResponseWriter) int {
	if rec, ok := w.(*recorder); ok {
		return rec.status
	}
	return 0
}

// Unwrap lets http.ResponseController reach the connection.
func (w *recorder) Unwrap() http.ResponseWriter { return w.ResponseWriter }
