// Package rest serves the rows and functions of one database over HTTP by PostgREST's contract.
//
// A request is authenticated and parsed here; package query parses its query string, and package
// plan builds one SQL statement from it. The pipeline runs the statement with the caller's role and
// claims in a single round trip, and the response is the text that PostgreSQL produced.
//
// Package catalog reads the schema. Settings files and listeners belong to package standalone,
// projects and their keys to package restapi.
package rest

import (
	"errors"
	"net/http"
	"time"

	"github.com/socle-dev/socle/internal/actor"
	"github.com/socle-dev/socle/internal/httpx"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/rest/catalog"
	"github.com/socle-dev/socle/internal/rest/plan"
	"github.com/socle-dev/socle/internal/rest/session"
)

// Server serves one database. It is safe for concurrent use.
type Server struct {
	Config
	searchPaths   map[string][]byte // search_path by schema
	preRequestSQL string
	appSettings   []actor.Setting
	descriptions  descriptions
	plans         plan.Plans
	sessions      *session.Executor
}

// New returns a server with the given configuration.
func New(c Config) *Server {
	if c.Limits.MaxBody == 0 {
		c.Limits.MaxBody = 10 << 20
	}
	if c.Limits.Timeout == 0 {
		c.Limits.Timeout = 30 * time.Second
	}
	if c.Limits.Bodies == nil {
		c.Limits.Bodies = httpx.NewBodyPool(BodyPoolSize)
	}
	if c.Limits.Owner == nil {
		c.Limits.Owner = httpx.Stranger
	}
	if c.Hooks.Quota == nil {
		c.Hooks.Quota = func() (over, far bool) { return false, false }
	}

	s := &Server{
		Config:       c,
		searchPaths:  map[string][]byte{},
		appSettings:  appendSettings(nil, c.Settings),
		descriptions: descriptions{ttl: descriptionTTL},
		sessions:     session.New(c.Session),
	}

	for _, schema := range c.Schemas {
		path := pg.Quote(schema)
		for _, extra := range c.SearchPath {
			if extra != schema {
				path += ", " + pg.Quote(extra)
			}
		}

		s.searchPaths[schema] = []byte(path)
	}

	if c.PreRequest != (catalog.Name{}) {
		s.preRequestSQL = "select " + pg.Quote(c.PreRequest.Schema, c.PreRequest.Name) + "()"
	}

	return s
}

// Size returns the approximate memory in bytes of the server's caches: catalog, statements and
// descriptions.
func (s *Server) Size() int {
	size := s.plans.Size() + s.descriptions.size()
	if s.Catalog != nil {
		if cached := s.Catalog.current.Load(); cached != nil {
			size += cached.size
		}
	}

	return size
}

// ServeHTTP serves the contract's paths: /, /relation and /rpc/function.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.Serve(w, r, r.URL.EscapedPath())
}

// Serve is ServeHTTP for a server mounted below another path. path is the remaining path, escaped.
func (s *Server) Serve(w http.ResponseWriter, r *http.Request, path string) {
	if s.cors(w, r) {
		return
	}

	httpx.From(r.Context()).Target = path

	c := callPool.Get().(*call)
	c.server, c.w, c.r, c.path = s, w, r, path
	if s.Features.ServerTiming {
		c.timings.last = time.Now()
	}

	err := c.serve()
	if aborted, ok := errors.AsType[*abortedError](err); ok {
		if _, gone := errors.AsType[session.ClientError](aborted.cause); !gone {
			httpx.From(r.Context()).Err = err
		}
		panic(http.ErrAbortHandler)
	}

	if err != nil {
		s.writeError(w, r, c.caller.Role, err)
	}

	c.release()
}

// Fail answers a request that fails before it reaches a database.
func (s *Server) Fail(w http.ResponseWriter, r *http.Request, err error) {
	if !s.cors(w, r) {
		s.writeError(w, r, "", err)
	}
}
