package function

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/socle-dev/socle/internal/fair"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/outbound"
	"github.com/socle-dev/socle/internal/projectdb"
)

const (
	// MaxDepth is the number of functions in a chain in which each calls the next.
	MaxDepth = 5

	// AnswerTimeout is the time in which a function begins its answer.
	AnswerTimeout = 150 * time.Second

	depthHeader    = "X-Socle-Depth" // also in package runtime
	serviceKeyName = "SUPABASE_SERVICE_ROLE_KEY"
)

// Depth returns how many functions have called each other up to a request.
func Depth(h http.Header) int {
	depth, err := strconv.Atoi(h.Get(depthHeader))
	if err != nil {
		return 0
	}

	return depth
}

// SetDepth notes the depth of a function's request.
func SetDepth(h http.Header, depth int) { h.Set(depthHeader, strconv.Itoa(depth)) }

// Endpoints sends requests to the addresses that a project names for its schedules, webhooks and
// hooks: those of its functions within the server, all others by a client for the internet.
type Endpoints struct {
	service *Service
	project *projectdb.Project
	outside *outbound.Client
}

// Endpoints returns the endpoints of a project. A nil service has no functions.
func (s *Service) Endpoints(p *projectdb.Project, outside *outbound.Client) Endpoints {
	return Endpoints{s, p, outside}
}

// Do sends a request as [outbound.Client.Do] does. A function is called as the project's service,
// so verify_jwt does not matter, and has the time of the project's limits unless ctx ends before. A
// function that can't answer has the answer of [FailureOf].
func (e Endpoints) Do(ctx context.Context, tenant fair.Key, r *http.Request) (outbound.Response, error) {
	if !outbound.IsFunction(r.URL) {
		return e.outside.Do(ctx, tenant, r)
	}

	return e.outside.Via(insideTransport{e.service, e.project}, e.timeout(ctx, r.URL.Host)).Do(ctx, tenant, r)
}

// timeout returns the time for a function's whole answer. The call itself reports what is wrong
// with the function.
func (e Endpoints) timeout(ctx context.Context, name string) time.Duration {
	if e.service == nil {
		return AnswerTimeout
	}

	st, err := e.service.find(ctx, e.project, name)
	if err != nil {
		return AnswerTimeout
	}

	return min(st.Answer(), st.Wall())
}

// insideTransport calls functions of a project.
type insideTransport struct {
	service *Service
	project *projectdb.Project
}

// RoundTrip implements [http.RoundTripper].
func (t insideTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	call, err := t.acquire(r)
	if err != nil {
		return failed(r, err)
	}

	res, err := call.RoundTrip(call.inside(r))
	if err != nil {
		call.Release()
		return failed(r, err)
	}

	res.Body = &releasingBody{res.Body, call}
	return res, nil
}

func (t insideTransport) acquire(r *http.Request) (*Call, error) {
	if t.service == nil {
		return nil, fault.New(fault.NotFound, "no functions are available")
	}

	return t.service.Acquire(r.Context(), t.project, r.URL.Host)
}

// inside returns the request that the function gets: that of a client with the key of the service.
func (c *Call) inside(r *http.Request) *http.Request {
	inside := r.Clone(r.Context())
	inside.URL.Scheme, inside.URL.Host = "http", "function"
	inside.URL.Path = "/" + r.URL.Host + r.URL.Path
	inside.Host = selfHost

	SetDepth(inside.Header, 1)
	inside.Header.Set("X-Forwarded-Proto", "http")
	if inside.Header.Get("Authorization") == "" {
		inside.Header.Set("Authorization", "Bearer "+c.worker.serviceKey)
	}

	return inside
}

// failed returns the answer for a call that no function answered.
func failed(r *http.Request, err error) (*http.Response, error) {
	f, ok := FailureOf(err)
	if !ok || r.Context().Err() != nil {
		return nil, err
	}

	header, body := f.content()
	return &http.Response{StatusCode: f.Status, Header: header, Request: r, Proto: "HTTP/1.1", ProtoMajor: 1,
		ProtoMinor: 1, ContentLength: int64(len(body)), Body: io.NopCloser(bytes.NewReader(body))}, nil
}

// releasingBody ends a call with its answer.
type releasingBody struct {
	io.ReadCloser
	call *Call
}

// Close implements [io.Closer].
func (b *releasingBody) Close() error {
	if b.call != nil {
		b.call.Release()
		b.call = nil
	}

	return b.ReadCloser.Close()
}
