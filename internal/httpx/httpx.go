// Package httpx is what every request goes through before an interface sees it, and after: a
// request id, the client's address, recovery from panics, and one log record.
// It knows no route and no answer's form.
package httpx

import (
	"context"
	"encoding/binary"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/netip"
	"runtime/debug"
	"time"

	"github.com/google/uuid"
)

// Request is what is known of a request, for the log. The interface that serves the request fills in
// what it learns.
type Request struct {
	ID        string
	Start     time.Time  // when it was there
	Client    netip.Addr // who asks, as far as trusted proxies tell
	Direct    bool       // nobody stands between: neither a proxy nor the page of a browser named itself in the headers
	Agent     string     // what the client calls itself, cut short
	Route     string     // the route's pattern, never the path, which may hold secrets
	User      uuid.UUID
	Project   uuid.UUID
	Key       uuid.UUID // of the project, which the client has shown
	Token     bool      // the client has shown a token of the project's own users
	Err       error     // why it failed
	Statement string    // that was executed for it, without values; "" if nobody wants to know
	Probe     bool      // asked by a machine every few seconds: worth a log record only if it fails
}

type requestKey struct{}

// known is the context of a request of which something is known.
type known struct {
	context.Context
	request *Request
}

func (k *known) Value(key any) any {
	if key == (requestKey{}) {
		return k.request
	}
	return k.Context.Value(key)
}

// From returns what is known of the request that ctx belongs to.
// Outside of a request it returns an empty Request.
func From(ctx context.Context) *Request {
	if r, ok := ctx.Value(requestKey{}).(*Request); ok {
		return r
	}
	return &Request{}
}

// Config says how requests are taken.
type Config struct {
	Log            *slog.Logger
	TrustedProxies []netip.Prefix                               // whose X-Forwarded-For is believed
	Panicked       func(w http.ResponseWriter, r *http.Request) // answers for a handler that panicked before it wrote
	// is told of every request, if it is not nil; it must not wait for anything
	Answered func(a Answered)
}

// Answered is a request that was answered.
type Answered struct {
	*Request
	Method string
	Status int // 0 if the client was left without one
	Took   time.Duration
}

// Wrap returns next with all that this package does around it.
func Wrap(next http.Handler, c Config) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		rec := &recorder{ResponseWriter: w}
		request := &rec.request
		request.Start = time.Now()
		request.ID = newID(request.Start)
		request.Client, request.Direct = client(r, c.TrustedProxies)
		request.Agent = agent(r)
		rec.known = known{r.Context(), request}
		r = r.WithContext(&rec.known)

		h := w.Header()
		rec.id = [1]string{request.ID}
		h["X-Request-Id"] = rec.id[:]
		h["X-Content-Type-Options"] = nosniff

		if len(r.TransferEncoding) > 0 {
			// net/http hides a Content-Length that came beside the chunks. Where a proxy may have gone by that, what
			// follows on the connection can't be trusted to be a request (RFC 9112, section 6.1).
			rec.Header().Set("Connection", "close")
		}

		defer func() {
			if p := recover(); p != nil {
				if p == http.ErrAbortHandler { // a handler that gives up an answer it has begun
					c.answered(r, rec)
					panic(p)
				}

				c.Log.Error("panic", "requestId", request.ID, "panic", p, "stack", string(debug.Stack()))

				if rec.status == 0 {
					c.Panicked(rec, r)
				} else {
					defer panic(http.ErrAbortHandler) // what was begun can't be mended: cut it off
				}
			}

			c.answered(r, rec)
		}()

		next.ServeHTTP(rec, r)
	})
}

// newID returns a UUID of version 7. It tells requests apart and guards nothing, so the runtime's random numbers do, which take no
// system call.
func newID(now time.Time) string {
	var id uuid.UUID
	binary.BigEndian.PutUint64(id[:], uint64(now.UnixMilli())<<16|rand.Uint64()&0xfff|0x7000)
	binary.BigEndian.PutUint64(id[8:], rand.Uint64()>>2|1<<63)

	return id.String()
}

// answered tells of a request that was answered.
func (c *Config) answered(r *http.Request, rec *recorder) {
	took := time.Since(rec.request.Start)
	logRequest(c.Log, r, rec, took)

	if c.Answered != nil {
		c.Answered(Answered{&rec.request, r.Method, rec.status, took})
	}
}

func logRequest(log *slog.Logger, r *http.Request, rec *recorder, took time.Duration) {
	known := &rec.request
	level := slog.LevelInfo
	switch {
	case rec.status >= 500, rec.status < 400 && known.Err != nil: // or it failed after the answer was begun
		level = slog.LevelError
	case known.Probe:
		level = slog.LevelDebug
	}

	if !log.Enabled(r.Context(), level) {
		return
	}

	attrs := []slog.Attr{
		slog.String("method", r.Method), slog.String("route", known.Route), slog.Int("status", rec.status),
		slog.Duration("duration", took), slog.Int64("bytes", rec.bytes),
		slog.String("client", known.Client.String()), slog.String("requestId", known.ID),
	}

	if known.User != uuid.Nil {
		attrs = append(attrs, slog.String("user", known.User.String()))
	}
	if known.Project != uuid.Nil {
		attrs = append(attrs, slog.String("project", known.Project.String()))
	}
	if known.Statement != "" {
		attrs = append(attrs, slog.String("statement", known.Statement))
	}
	if known.Err != nil {
		attrs = append(attrs, slog.String("error", known.Err.Error()))
	}

	log.LogAttrs(r.Context(), level, "request", attrs...)
}

var nosniff = []string{"nosniff"} // shared by all answers: nobody changes a header's values in place

// recorder notes what is answered.
type recorder struct {
	http.ResponseWriter
	known   known
	request Request
	id      [1]string
	status  int
	bytes   int64
}

func (w *recorder) WriteHeader(status int) {
	if w.status == 0 {
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *recorder) Write(b []byte) (int, error) {
	if w.status == 0 {
		w.status = http.StatusOK
	}

	n, err := w.ResponseWriter.Write(b)
	w.bytes += int64(n)

	return n, err
}

// ReadFrom lets a file go to the connection without passing through this process.
func (w *recorder) ReadFrom(r io.Reader) (int64, error) {
	if w.status == 0 {
		w.status = http.StatusOK
	}

	n, err := io.Copy(w.ResponseWriter, r)
	w.bytes += n

	return n, err
}

// Status returns the status that was answered through w, the ResponseWriter that [Wrap] gave to its handler; 0 if none was.
func Status(w http.ResponseWriter) int {
	if rec, ok := w.(*recorder); ok {
		return rec.status
	}
	return 0
}

// Unwrap lets http.ResponseController reach the connection.
func (w *recorder) Unwrap() http.ResponseWriter { return w.ResponseWriter }
