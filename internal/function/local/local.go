// Package local serves the edge functions of a repository on the machine of their developer, and
// loads them anew as their files change.
//
// A function runs in the sandbox that it has on the server, so what works here works there. Where
// the system has none, as on macOS, [Config.Walls] is false and it runs with all rights of the
// developer, which the caller has to tell.
//
// Bundles are those of package bundle; keys and secrets come from the caller.
package local

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/socle-dev/socle/internal/function/bundle"
	"github.com/socle-dev/socle/internal/function/runtime"
	"github.com/socle-dev/socle/internal/outbound"
	"github.com/socle-dev/socle/internal/repository"
	"github.com/socle-dev/socle/internal/tick"
)

const (
	// Prefix is the path below which functions are served, as a project does.
	Prefix = "/functions/v1/"

	bootTimeout   = 10 * time.Second
	endTimeout    = 5 * time.Second
	watchInterval = 250 * time.Millisecond
)

// Config has what a [Server] needs.
type Config struct {
	Bundler  *bundle.Bundler
	Outbound *outbound.Client
	Project  string // host and port of the project's server, which functions may reach; "": none
	Walls    bool

	Functions   func() ([]repository.Function, error) // as the files say now
	Environment func() (map[string]string, error)
	Verify      func(r *http.Request) error         // fails for a request without a key or token
	Changed     func() string                       // differs after a change of the files
	Log         func(function, stream, text string) // safe for concurrent use
}

// Server serves functions. It is safe for concurrent use.
type Server struct {
	Config

	mu      sync.Mutex
	loaded  map[string]*instance
	stopped bool // no process may start, since nothing would end it
}

// instance is a function that runs, or is about to.
type instance struct {
	ready   chan struct{} // closed when process or err is set
	process process
	err     error
}

// process is a function's process.
type process interface {
	http.RoundTripper
	End(ctx context.Context, reason string)
	Exited() <-chan struct{}
}

// New returns a server without processes.
func New(c Config) *Server { return &Server{Config: c, loaded: map[string]*instance{}} }

// Run loads functions anew after changes, until ctx ends. Then it ends all.
func (s *Server) Run(ctx context.Context) {
	loaded := s.Changed()
	before := loaded
	for range tick.Every(ctx, watchInterval) {
		now := s.Changed()
		if now != loaded && now == before { // no file is still being written
			loaded = now
			s.Log("", "event", "The files changed: functions load anew")
			s.reset("changed")
		}
		before = now
	}

	s.mu.Lock()
	s.stopped = true
	s.mu.Unlock()

	s.reset("shutdown")
}

// reset ends all processes, so that the next requests start new ones.
func (s *Server) reset(reason string) {
	s.mu.Lock()
	old := s.loaded
	s.loaded = map[string]*instance{}
	s.mu.Unlock()

	var open sync.WaitGroup
	for _, i := range old {
		open.Go(func() {
			if <-i.ready; i.process == nil {
				return
			}

			ctx, cancel := context.WithTimeout(context.Background(), endTimeout)
			defer cancel()
			i.process.End(ctx, reason)
		})
	}
	open.Wait()
}

// discardLog takes what the proxies say about connections.
var discardLog = log.New(io.Discard, "", 0)

// ServeHTTP serves a request to a function.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path, ok := strings.CutPrefix(r.URL.EscapedPath(), Prefix)
	project, after, found := strings.Cut(r.URL.EscapedPath(), Prefix)
	if found && strings.HasPrefix(project, "/projects/") { // the address on a server
		path, ok = after, true
	}
	name, _, _ := strings.Cut(path, "/")
	if !ok || name == "" {
		fail(w, http.StatusNotFound, "functions are at "+Prefix+"NAME")
		return
	}

	f, err := s.find(name)
	if err == nil && (f.VerifyJWT == nil || *f.VerifyJWT) && r.Method != http.MethodOptions {
		if err := s.Verify(r); err != nil {
			fail(w, http.StatusUnauthorized, err.Error())
			return
		}
	}

	var p process
	if err == nil {
		p, err = s.process(r.Context(), f)
	}
	if errors.Is(err, errUnknown) {
		fail(w, http.StatusNotFound, err.Error())
		return
	}
	if err != nil {
		s.Log(name, "event", err.Error())
		fail(w, http.StatusServiceUnavailable, err.Error())
		return
	}

	s.forward(w, r, p, path)
}

// fail answers a request that no function gets.
func fail(w http.ResponseWriter, status int, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Access-Control-Allow-Origin", "*")
	w.Header().Set("X-Relay-Error", "true")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{"code": status, "message": message})
}

// errUnknown reports that the repository has no such function.
var errUnknown = errors.New("the repository has no such function")

func (s *Server) find(name string) (repository.Function, error) {
	all, err := s.Functions()
	if err != nil {
		return repository.Function{}, err
	}

	i := slices.IndexFunc(all, func(f repository.Function) bool { return f.Name == name })
	if i < 0 {
		return repository.Function{}, errUnknown
	}

	return all[i], nil
}

// errStopped reports that the server ends.
var errStopped = errors.New("the server ends")

// process returns the process of a function, which it starts if there is none.
func (s *Server) process(ctx context.Context, f repository.Function) (process, error) {
	s.mu.Lock()
	if s.stopped {
		s.mu.Unlock()
		return nil, errStopped
	}

	i := s.loaded[f.Name]
	if i != nil && i.ended() {
		i = nil
	}
	if i == nil {
		i = &instance{ready: make(chan struct{})}
		s.loaded[f.Name] = i
		go func() { // ends when the function has started, which has its own timeout
			defer close(i.ready)
			i.process, i.err = s.start(context.WithoutCancel(ctx), f)
		}()
	}
	s.mu.Unlock()

	select {
	case <-i.ready:
		return i.process, i.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// ended reports whether a new process is to be started: this one has ended, or did not start.
func (i *instance) ended() bool {
	select {
	case <-i.ready:
	default:
		return false
	}
	if i.err != nil {
		return true
	}

	select {
	case <-i.process.Exited():
		return true
	default:
		return false
	}
}

// start bundles a function and starts it.
func (s *Server) start(ctx context.Context, f repository.Function) (process, error) {
	made, err := s.Bundler.Bundle(ctx, f)
	if err != nil {
		return nil, err
	}

	env, err := s.Environment()
	if err != nil {
		return nil, err
	}

	ctx, cancel := context.WithTimeout(ctx, bootTimeout)
	defer cancel()

	record := func(l runtime.Line) { s.Log(f.Name, l.Stream, l.Text) }
	if !s.Walls {
		p, err := startOpen(ctx, s.Bundler, made.Code, env, record)
		if err != nil {
			return nil, err
		}
		return p, nil
	}

	p, err := runtime.Start(ctx, runtime.Config{Program: s.Bundler.Program, MemoryMB: runtime.DefaultMemoryMB,
		Outward: http.HandlerFunc(s.serveOutward), Log: record})
	if err != nil {
		return nil, err
	}
	if err := p.Load(ctx, runtime.Module{Code: made.Code, Env: env}); err != nil {
		p.Close()
		return nil, err
	}

	return p, nil
}

// forward passes a request to a process: its path begins with the function's name, as on a server.
func (s *Server) forward(w http.ResponseWriter, r *http.Request, p process, path string) {
	proxy := &httputil.ReverseProxy{Transport: p, FlushInterval: -1, ErrorLog: discardLog,
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL = &url.URL{Scheme: "http", Host: "function", Path: "/" + path, RawPath: "/" + path,
				RawQuery: r.In.URL.RawQuery}
			if decoded, err := url.PathUnescape(path); err == nil {
				r.Out.URL.Path = "/" + decoded
			}
			r.Out.Host = r.In.Host
			r.SetXForwarded()
		},
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			if r.Context().Err() == nil {
				fail(w, http.StatusBadGateway, "the function's process ended, or its answer is none: "+err.Error())
			}
		}}
	proxy.ServeHTTP(w, r)
}
