// Package rest serves the rows and functions of one database over HTTP by PostgREST's contract. It finds out who asks and what,
// has package plan make a statement of it, runs that in one round trip with the caller's role and claims,
// and passes on the answer that PostgreSQL made.
package rest

import (
	"context"
	"errors"
	"net/http"
	"regexp"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"socle/internal/httpx"
	"socle/internal/pg"
	"socle/internal/rest/catalog"
	"socle/internal/rest/plan"
	"socle/internal/rest/query"
)

// Config is what a Server needs to know.
type Config struct {
	Catalog *Cache
	// Role returns what a caller's role may use; false if no caller may have it.
	Role func(role string) (Role, bool)
	// Verify returns who a token is for. It fails with a *query.Error or a *fault.Error. nil: no token is believed.
	Verify func(ctx context.Context, token string) (Caller, error)
	// Ended is asked when the database is out of reach, and says what to answer instead if that is because it is not served any more. nil: it always is.
	Ended func(ctx context.Context) error
	// Full says whether the database has more bytes than it may: then it is read, and rows are deleted, and nothing else is changed. nil: it never has.
	Full func() bool
	// Overgrown says whether it has grown since, by code that runs when rows are deleted or functions are called: then those are not either. nil: it never has.
	Overgrown func() bool
	APIKeys   bool   // the header apikey holds a token too, for requests without another
	Anonymous string // the role of requests without a token; "" refuses them

	Schemas    []string     // exposed; the first is the default
	SearchPath []string     // schemas behind the exposed one
	PreRequest catalog.Name // a function called before every statement; zero: none
	RootSpec   catalog.Name // a function that answers for the root; zero: none
	Settings   map[string]string

	Rollback   bool // no request changes anything,
	TxOverride bool // unless, or if, Prefer: tx= says so
	MaxRows    *int64
	MaxBody    int64         // bytes of a request; 0 is 10 MiB
	MaxAnswer  int           // bytes of an answer that is held: a write's, and a volatile function's; 0 is 32 MiB
	Timeout    time.Duration // of a request in the database; 0 is 30 s
	Wait       time.Duration // of a request for a connection; 0 is 8 s
	// with a client that takes nothing of its answer while others wait for its connection; 0 is 2 s
	Patience time.Duration
	// whether somebody waits for a connection that is not one of this server's pools, but could be had for one of those; nil: nobody does
	Awaited func() bool
	Held    *Held         // answers that wait for their clients; nil: 128 MiB for this server alone
	Bodies  *httpx.Budget // memory of the bodies of requests; nil: 256 MiB for this server alone
	Owner   string        // whom Bodies charges
	// no connection keeps statements prepared, for a pooler that gives each transaction another one
	Unprepared   bool
	Confined     bool // code of the database shares its origin with others', see confine.go
	Terse        bool // failures are told by code and message alone
	Aggregates   bool // may be asked for
	AliasesOnly  bool // an embedded relation that has an alias is named by that alone
	Plan         bool // the plan of a statement may be asked for
	ServerTiming bool
	Origins      []string // of pages that may read answers; nil: all

	Executing func(ctx context.Context, sql string) // is told of the statement of a request; nil: nobody is

	OpenAPIMode     string // of the root: "follow-privileges", which is also "", "ignore-privileges" or "disabled"
	OpenAPIServer   string // the URL of this server in the description; "": where the request went
	OpenAPISecurity bool   // the description asks for a token
}

// Role is what the requests of a role use.
type Role struct {
	Pool *pgxpool.Pool
	// SearchPath is what the pool's connections were told to start with, so that a request of that search path need not set it. "": nothing
	// is known of it.
	SearchPath string
	Settings   map[string]string // for each transaction, such as statement_timeout
	Stranger   bool              // as the anonymous one: what it may not do is 401, since a token may help
}

// Server serves one database. It is safe for concurrent use.
type Server struct {
	Config
	paths        map[string][]byte // search_path by schema
	before       string
	app          []setting
	descriptions descriptions
	plans        plan.Plans
	waiting      atomic.Int32 // requests that wait for a connection
}

// New returns a server.
func New(c Config) *Server {
	if c.MaxBody == 0 {
		c.MaxBody = 10 << 20
	}
	if c.MaxAnswer == 0 {
		c.MaxAnswer = 32 << 20
	}
	if c.Timeout == 0 {
		c.Timeout = 30 * time.Second
	}
	if c.Wait == 0 {
		c.Wait = acquireTimeout
	}
	if c.Patience == 0 {
		c.Patience = patient
	}

	never := func() bool { return false }
	if c.Full == nil {
		c.Full = never
	}
	if c.Overgrown == nil {
		c.Overgrown = never
	}
	if c.Held == nil {
		c.Held = NewHeld(HeldSize)
	}
	if c.Bodies == nil {
		c.Bodies = httpx.NewBudget(BodiesSize)
	}

	s := &Server{
		Config:       c,
		paths:        map[string][]byte{},
		app:          appendSettings(nil, c.Settings),
		descriptions: descriptions{fresh: describedFresh},
	}

	for _, schema := range c.Schemas {
		path := pg.Quote(schema)
		for _, extra := range c.SearchPath {
			if extra != schema {
				path += ", " + pg.Quote(extra)
			}
		}

		s.paths[schema] = []byte(path)
	}

	if c.PreRequest != (catalog.Name{}) {
		s.before = "select " + pg.Quote(c.PreRequest.Schema, c.PreRequest.Name) + "()"
	}

	return s
}

// Size returns about how many bytes of memory the server keeps for requests to come: its catalogue, statements and descriptions.
func (s *Server) Size() int {
	size := s.plans.Size() + s.descriptions.size()
	if s.Catalog != nil {
		if l := s.Catalog.current.Load(); l != nil {
			size += l.size
		}
	}

	return size
}

// ServeHTTP answers a request whose path is that of the contract: /, /relation or /rpc/function.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.Serve(w, r, r.URL.EscapedPath())
}

// Serve is ServeHTTP for a server below another path: path is the rest of it, escaped.
func (s *Server) Serve(w http.ResponseWriter, r *http.Request, path string) {
	if s.cors(w, r) {
		return
	}

	c := calls.Get().(*call)
	*c = call{server: s, w: w, r: r, path: path}
	if s.ServerTiming {
		c.times.last = time.Now()
	}

	err := c.serve()
	if broken, ok := errors.AsType[*brokenError](err); ok {
		if _, gone := broken.cause.(goneError); !gone {
			httpx.From(r.Context()).Err = err
		}
		panic(http.ErrAbortHandler)
	}

	if err != nil {
		s.fail(w, r, c.caller.Role, err)
	}

	c.release()
}

// awaited reports whether somebody waits for a connection of a pool.
func (s *Server) awaited(pool *pgxpool.Pool) bool {
	if s.Awaited != nil && s.Awaited() {
		return true
	}

	stat := pool.Stat()
	return s.waiting.Load() > 0 && stat.AcquiredConns() == stat.MaxConns()
}

// call is one request.
type call struct {
	server *Server
	w      http.ResponseWriter
	r      *http.Request
	path   string
	until  time.Time // the database is to be done with it

	caller  Caller
	role    Role
	route   route
	schema  string
	asked   string // the query string
	known   *loaded
	catalog *catalog.Catalog // of known
	query   *query.Query
	prefer  query.Prefer
	refused error // by a strict Prefer
	window  query.Limit
	payload payload
	room    bodyRoom // that the payload takes
	media   media
	times   times

	wanted    plan.Request
	planned   planned
	execution execution
	exchange  exchange
	values    []string // of headers of the answer
	unchecked bool     // it runs whatever version the schema has
}

// calls are memory that requests use one after another.
var calls = sync.Pool{New: func() any { return new(call) }}

// release gives the call's memory to the next request, unless something is still being sent.
func (c *call) release() {
	if c.exchange.sent == nil {
		*c = call{}
		calls.Put(c)
	}
}

// serve answers, or fails before it has.
func (c *call) serve() error {
	s, r := c.server, c.r
	var err error
	if c.caller, err = s.caller(r); err != nil {
		return err
	}

	c.times.mark(&c.times.jwt)

	role, ok := s.Role(c.caller.Role)
	if !ok {
		return fail(http.StatusUnauthorized, "22023", `role "`+c.caller.Role+`" does not exist`)
	}

	c.role = role
	now := time.Now()
	c.until = now.Add(s.Timeout)

	ctx := r.Context()
	known := s.Catalog.known(now)
	if known == nil {
		ctx, cancel := context.WithDeadline(ctx, c.until)
		defer cancel()

		if known, err = s.Catalog.get(ctx); err != nil {
			return noCatalog(ctx, err)
		}
	}

	c.use(known)
	if c.route, err = routeOf(c.path); err != nil {
		return err
	}
	if c.schema, err = s.profile(r); err != nil {
		return err
	}
	if err := c.route.allowed(r.Method); err != nil {
		return err
	}

	if c.route.name == "" && r.Method != http.MethodOptions {
		if s.OpenAPIMode == "disabled" {
			return fail(http.StatusNotFound, "PGRST126", "Root endpoint metadata is disabled")
		}
		if s.RootSpec == (catalog.Name{}) {
			return c.describe(ctx)
		}

		c.route, c.schema = route{name: s.RootSpec.Name, function: true}, s.RootSpec.Schema
	}

	if r.Method == http.MethodOptions {
		c.renew(ctx)
		return c.options()
	}

	if err := c.read(); err != nil {
		return err
	}

	defer func() { c.room.release() }()

	if err := c.readPayload(ctx); err != nil {
		return err
	}

	c.times.mark(&c.times.parse)
	return c.run(ctx)
}

// read reads what is asked, as far as that takes no catalogue.
func (c *call) read() error {
	s, r := c.server, c.r
	reads := r.Method == http.MethodGet || r.Method == http.MethodHead

	var err error
	c.asked = s.asked(r)
	if c.query, err = query.Parse(c.asked, query.Options{RPC: c.route.function && reads}); err != nil {
		return err
	}

	if c.window, err = window(r, c.query); err != nil {
		return err
	}

	if values := r.Header["Prefer"]; values != nil {
		c.prefer, c.refused = query.ParsePrefer(values)
	}

	if r.Method == http.MethodPut {
		for _, l := range c.query.Limits {
			if len(l.Path) == 0 {
				return fail(http.StatusBadRequest, "PGRST114",
					"limit/offset querystring parameters are not allowed for PUT")
			}
		}
	}

	return c.readZone()
}

// readPayload reads the body, if the request has one and there is the relation that it is for.
func (c *call) readPayload(ctx context.Context) (err error) {
	s, r := c.server, c.r
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodDelete:
		return nil
	}

	if name := (catalog.Name{Schema: c.schema, Name: c.route.name}); !c.route.function &&
		c.catalog.Relations[name] == nil {
		if !c.renew(ctx) || c.catalog.Relations[name] == nil {
			return plan.NoRelation(c.catalog, name)
		}
	}

	c.room = bodyRoom{budget: s.Bodies, owner: s.Owner, wait: s.Wait}
	if c.payload, err = readBody(c.w, r, s.MaxBody, c.route.function, &c.room); err != nil {
		return err
	}

	if c.route.function && c.payload.raw == "json" && len(c.payload.text) == 0 {
		c.payload.text = []byte("{}") // no arguments
	}

	return nil
}

// readZone leaves a time zone out that nobody knows.
func (c *call) readZone() error {
	zone := c.prefer.Timezone
	if zone == "" || offset.MatchString(zone) {
		return nil
	}

	ctx, cancel := context.WithDeadline(c.r.Context(), c.until)
	defer cancel()

	known, err := c.server.Catalog.knowsZone(ctx, zone)
	if err != nil {
		return noCatalog(ctx, err)
	}

	if !known {
		c.prefer.Invalid = append(c.prefer.Invalid, "timezone="+zone)
		c.prefer.Timezone = ""
		c.refused = c.prefer.Strict()
	}

	return nil
}

// offset is a time zone that is so many hours and minutes from UTC. PostgreSQL takes hours alone to be east of it, with minutes west.
var offset = regexp.MustCompile(`^[+-]?[0-9]{1,2}(:[0-5][0-9])?$`)

func noCatalog(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return &catalogError{err}
}

// catalogError is the failure of reading the catalogue.
type catalogError struct{ cause error }

func (e *catalogError) Error() string { return "read the catalogue: " + e.cause.Error() }
func (e *catalogError) Unwrap() error { return e.cause }
