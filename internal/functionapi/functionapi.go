// Package functionapi serves applications' calls of edge functions over HTTP, by the contract of
// Supabase's, so that its clients work unchanged: addresses, keys, statuses and error codes.
//
// Processes and their limits belong to package function. Package gateway finds a request's project
// and verifies keys and tokens.
package functionapi

import (
	"cmp"
	"context"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/function"
	"github.com/socle-dev/socle/internal/gateway"
	"github.com/socle-dev/socle/internal/httpx"
)

// Prefix is the interface's path below the project's.
const Prefix = "/functions/v1"

// Config has the dependencies that projects share.
type Config struct {
	Functions *function.Service
	PublicURL string // the install's address without trailing slash; "" if unknown
}

// New returns the gateway interface.
func New(c Config) gateway.Interface {
	open := func(p *gateway.Project, _ gateway.Cache) (gateway.Handler, error) {
		return gateway.Handler{Serve: (&project{&c, p}).serve, Cache: states{c.Functions, p}}, nil
	}

	return gateway.Interface{Prefix: Prefix, Open: open, Fail: func(w http.ResponseWriter, r *http.Request, err error) {
		if !httpx.ApplicationCORS(w, r) {
			fail(w, r, err)
		}
	}}
}

// states is what the service keeps of a project.
type states struct {
	functions *function.Service
	project   *gateway.Project
}

// Size returns 0: the service bounds it for all projects.
func (s states) Size() int { return 0 }

// Forget drops what is known of the functions.
func (s states) Forget() { s.functions.Forget(s.project.UUID) }

// Close ends the processes.
func (s states) Close() { s.functions.End(s.project.UUID) }

type project struct {
	*Config
	*gateway.Project
}

// serve serves a request. path is the escaped URL path after [Prefix].
func (p *project) serve(w http.ResponseWriter, r *http.Request, path string) {
	request := httpx.From(r.Context())
	request.Route, request.Target = "/projects/{projectUUID}"+Prefix+"/{name}", path

	call, err := p.acquire(r, path)
	if err != nil {
		if !httpx.ApplicationCORS(w, r) { // a page may read why
			fail(w, r, err)
		}

		return
	}
	defer call.Release()

	p.forward(w, r, call, path)
}

// acquire returns a process of the function in the path, if the caller may call it.
func (p *project) acquire(r *http.Request, path string) (*function.Call, error) {
	if p.Inactive != nil {
		p.Functions.End(p.UUID)
		return nil, p.Inactive
	}

	name, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	if !function.IsName(name) {
		return nil, errUnknownFunction
	}
	if function.Depth(r.Header) >= function.MaxDepth {
		return nil, errTooDeep
	}

	ctx, cancel := context.WithTimeout(r.Context(), function.AnswerTimeout)
	defer cancel()

	verify, err := p.Functions.Find(ctx, p.Database, name)
	if err != nil {
		return nil, err
	}
	if verify && r.Method != http.MethodOptions { // a preflight has no key
		if err := p.verify(r); err != nil {
			return nil, err
		}
	}

	return p.Functions.Acquire(ctx, p.Database, name)
}

var (
	errUnknownFunction = fault.New(fault.NotFound, "Requested function was not found").WithCode("NOT_FOUND")
	errMissingKey      = fault.New(fault.Unauthenticated, "Missing authorization header").
				WithCode("UNAUTHORIZED_NO_AUTH_HEADER")
)

// errTooDeep reports a chain of functions that call each other.
var errTooDeep = errors.New("the chain of calls is too long")

// verify fails with Unauthenticated unless the request has a key or a token of the project. An end
// user's token in the Authorization header goes first, but clients repeat the key there.
func (p *project) verify(r *http.Request) error {
	if err := gateway.RefuseAs(r); err != nil {
		return err
	}

	key := cmp.Or(r.Header.Get("Apikey"), r.URL.Query().Get("apikey"))
	scheme, text, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	text = strings.TrimSpace(text)
	if !strings.EqualFold(scheme, "bearer") || text == "" || (key != "" && !strings.Contains(text, ".")) {
		text = key
	}
	if text == "" {
		return errMissingKey
	}

	_, err := p.Verify(r.Context(), text)
	return err
}

// discardLog takes what the proxy says about connections of clients.
var discardLog = log.New(io.Discard, "", 0)

// errNoAnswer reports that a function has not answered in time.
var errNoAnswer = errors.New("no answer in time")

// buffers are those of bodies.
var buffers = &bufferPool{}

// bufferPool implements [httputil.BufferPool].
type bufferPool struct{ pool sync.Pool }

const bufferSize = 32 << 10

func (p *bufferPool) Get() []byte {
	if b, ok := p.pool.Get().(*[bufferSize]byte); ok {
		return b[:]
	}

	return make([]byte, bufferSize)
}

func (p *bufferPool) Put(b []byte) { p.pool.Put((*[bufferSize]byte)(b)) }

// forward passes a request to a function, and its answer to the client.
func (p *project) forward(w http.ResponseWriter, r *http.Request, call *function.Call, path string) {
	ctx, cancel := context.WithCancelCause(r.Context())
	defer cancel(nil)

	limits := call.Limits()
	deadline := time.Now().Add(limits.Wall())
	control := http.NewResponseController(w)
	_ = errors.Join(control.SetReadDeadline(deadline), control.SetWriteDeadline(deadline),
		control.EnableFullDuplex()) // what a connection lacks, it does without

	wall := time.AfterFunc(limits.Wall(), func() { cancel(errNoAnswer) })
	defer wall.Stop()

	answer := time.AfterFunc(limits.Answer(), func() { cancel(errNoAnswer) })
	defer answer.Stop()

	r = r.WithContext(ctx)
	r.Body = http.MaxBytesReader(w, r.Body, limits.Body())
	// Answers of an unknown length and events are flushed as they come. Others are whole soon, and
	// a flush of their headers alone would cost another write here and another read there.
	proxy := &httputil.ReverseProxy{
		Transport: call, BufferPool: buffers, ErrorLog: discardLog,
		Rewrite: func(out *httputil.ProxyRequest) { p.rewrite(out, path) },
		ModifyResponse: func(res *http.Response) error {
			answer.Stop()
			protect(res)
			return nil
		},
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			if context.Cause(ctx) == errNoAnswer {
				err = errNoAnswer
			}
			if r.Header.Get("Origin") != "" {
				w.Header().Set("Access-Control-Allow-Origin", "*")
			}
			fail(w, r, err)
		},
	}
	proxy.ServeHTTP(w, r)
}

// rewrite makes the request that the function gets: its path begins with the function's name.
// Cookies are those of the platform's own pages, so no function gets them.
func (p *project) rewrite(r *httputil.ProxyRequest, path string) {
	r.Out.URL = &url.URL{Scheme: "http", Host: "function", RawQuery: r.In.URL.RawQuery}
	r.Out.URL.Path, r.Out.URL.RawPath = r.In.URL.Path, path
	if decoded, err := url.PathUnescape(path); err == nil {
		r.Out.URL.Path = decoded
	}

	scheme, host := "http", r.In.Host
	if r.In.TLS != nil {
		scheme = "https"
	}
	if public, err := url.Parse(p.PublicURL); err == nil && public.Host != "" {
		scheme, host = public.Scheme, public.Host
	}

	r.Out.Host = host
	r.Out.Header.Del("Cookie")
	function.SetDepth(r.Out.Header, function.Depth(r.In.Header)+1)
	r.Out.Header.Set("X-Forwarded-For", httpx.From(r.In.Context()).Client.String())
	r.Out.Header.Set("X-Forwarded-Host", host)
	r.Out.Header.Set("X-Forwarded-Proto", scheme)
}

// originHeaders are headers by which an answer would act on the whole origin, which is that of the
// platform's own pages.
var originHeaders = []string{"Set-Cookie", "Clear-Site-Data", "Strict-Transport-Security", "Service-Worker-Allowed",
	"Alt-Svc", "Public-Key-Pins", "Nel", "Report-To", "Reporting-Endpoints", "Origin-Agent-Cluster", "X-Relay-Error"}

// protect keeps an answer from acting on the platform's origin. HTML is text, as Supabase has it.
func protect(res *http.Response) {
	for _, name := range originHeaders {
		res.Header.Del(name)
	}

	media, parameters, _ := strings.Cut(res.Header.Get("Content-Type"), ";")
	if media = strings.ToLower(strings.TrimSpace(media)); media == "text/html" || media == "application/xhtml+xml" {
		res.Header.Set("Content-Type", strings.TrimSuffix("text/plain;"+parameters, ";"))
	}

	res.Header.Set("Content-Security-Policy", httpx.Sandbox)
	res.Header.Set("X-Content-Type-Options", "nosniff")
}
