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
	Unavailable func(ctx context.Context) error
	// Full says whether the database has more bytes than it may: then it is read, and rows are deleted, and nothing else is changed. nil: it never has.
	OverQuota func() bool
	// Overgrown says whether it has grown since, by code that runs when rows are deleted or functions are called: then those are not either. nil: it never has.
	FarOverQuota func() bool
	APIKeys      bool   // the header apikey holds a token too, for requests without another
	Anonymous    string // the role of requests without a token; "" refuses them

	Schemas    []string     // exposed; the first is the default
	SearchPath []string     // schemas behind the exposed one
	PreRequest catalog.Name // a function called before every statement; zero: none
	RootSpec   catalog.Name // a function that answers for the root; zero: none
	Settings   map[string]string

	Rollback       bool // no request changes anything,
	TxOverride     bool // unless, or if, Prefer: tx= says so
	MaxRows        *int64
	MaxBody        int64         // bytes of a request; 0 is 10 MiB
	MaxResponse    int           // bytes of an answer that is held: a write's, and a volatile function's; 0 is 32 MiB
	Timeout        time.Duration // of a request in the database; 0 is 30 s
	AcquireTimeout time.Duration // of a request for a connection; 0 is 8 s
	// with a client that takes nothing of its answer while others wait for its connection; 0 is 2 s
	SlowClientTimeout time.Duration
	// whether somebody waits for a connection that is not one of this server's pools, but could be had for one of those; nil: nobody does
	PoolContended  func() bool
	ResponseBudget *ResponseBudget // answers that wait for their clients; nil: 128 MiB for this server alone
	BodyBudget     *httpx.Budget   // memory of the bodies of requests; nil: 256 MiB for this server alone
	BudgetOwner    string          // whom Bodies charges
	// no connection keeps statements prepared, for a pooler that gives each transaction another one
	NoPreparedStatements bool
	SharedOrigin         bool // code of the database shares its origin with others', see confine.go
	TerseErrors          bool // failures are told by code and message alone
	Aggregates           bool // may be asked for
	AliasesOnly          bool // an embedded relation that has an alias is named by that alone
	Plan                 bool // the plan of a statement may be asked for
	ServerTiming         bool
	Origins              []string // of pages that may read answers; nil: all

	OnExecute func(ctx context.Context, sql string) // is told of the statement of a request; nil: nobody is

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
	Anonymous  bool              // as the anonymous one: what it may not do is 401, since a token may help
}

// Server serves one database. It is safe for concurrent use.
type Server struct {
	Config
	searchPaths   map[string][]byte // search_path by schema
	preRequestSQL string
	appSettings   []setting
	descriptions  descriptions
	plans         plan.Plans
	acquiring     atomic.Int32 // requests that wait for a connection
}

// New returns a server.
func New(c Config) *Server {
	if c.MaxBody == 0 {
		c.MaxBody = 10 << 20
	}
	if c.MaxResponse == 0 {
		c.MaxResponse = 32 << 20
	}
	if c.Timeout == 0 {
		c.Timeout = 30 * time.Second
	}
	if c.AcquireTimeout == 0 {
		c.AcquireTimeout = defaultAcquireTimeout
	}
	if c.SlowClientTimeout == 0 {
		c.SlowClientTimeout = defaultSlowClientTimeout
	}

	never := func() bool { return false }
	if c.OverQuota == nil {
		c.OverQuota = never
	}
	if c.FarOverQuota == nil {
		c.FarOverQuota = never
	}
	if c.ResponseBudget == nil {
		c.ResponseBudget = NewResponseBudget(ResponseBudgetSize)
	}
	if c.BodyBudget == nil {
		c.BodyBudget = httpx.NewBudget(BodyBudgetSize)
	}

	s := &Server{
		Config:       c,
		searchPaths:  map[string][]byte{},
		appSettings:  appendSettings(nil, c.Settings),
		descriptions: descriptions{ttl: descriptionTTL},
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

	c := callPool.Get().(*call)
	*c = call{server: s, w: w, r: r, path: path}
	if s.ServerTiming {
		c.timings.last = time.Now()
	}

	err := c.serve()
	if aborted, ok := errors.AsType[*abortedError](err); ok {
		if _, gone := aborted.cause.(clientGoneError); !gone {
			httpx.From(r.Context()).Err = err
		}
		panic(http.ErrAbortHandler)
	}

	if err != nil {
		s.writeError(w, r, c.caller.Role, err)
	}

	c.release()
}

// awaited reports whether somebody waits for a connection of a pool.
func (s *Server) contended(pool *pgxpool.Pool) bool {
	if s.PoolContended != nil && s.PoolContended() {
		return true
	}

	stat := pool.Stat()
	return s.acquiring.Load() > 0 && stat.AcquiredConns() == stat.MaxConns()
}

// call is one request.
type call struct {
	server   *Server
	w        http.ResponseWriter
	r        *http.Request
	path     string
	deadline time.Time // the database is to be done with it

	caller      Caller
	role        Role
	route       route
	schema      string
	rawQuery    string // the query string
	snapshot    *snapshot
	catalog     *catalog.Catalog // of known
	query       *query.Query
	prefer      query.Prefer
	preferError error // by a strict Prefer
	window      query.Limit
	payload     payload
	bodyLease   bodyLease // that the payload takes
	media       media
	timings     timings

	planRequest  plan.Request
	planned      plannedRequest
	execution    execution
	pipeline     pipeline
	headerValues []string // of headers of the answer
	skipVersion  bool     // it runs whatever version the schema has
}

// calls are memory that requests use one after another.
var callPool = sync.Pool{New: func() any { return new(call) }}

// release gives the call's memory to the next request, unless something is still being sent.
func (c *call) release() {
	if c.pipeline.writeDone == nil {
		*c = call{}
		callPool.Put(c)
	}
}

// serve answers, or fails before it has.
func (c *call) serve() error {
	s, r := c.server, c.r
	var err error
	if c.caller, err = s.caller(r); err != nil {
		return err
	}

	c.timings.mark(&c.timings.jwt)

	role, ok := s.Role(c.caller.Role)
	if !ok {
		return newError(http.StatusUnauthorized, "22023", `role "`+c.caller.Role+`" does not exist`)
	}

	c.role = role
	now := time.Now()
	c.deadline = now.Add(s.Timeout)

	ctx := r.Context()
	known := s.Catalog.peek(now)
	if known == nil {
		ctx, cancel := context.WithDeadline(ctx, c.deadline)
		defer cancel()

		if known, err = s.Catalog.get(ctx); err != nil {
			return catalogFailure(ctx, err)
		}
	}

	c.setSnapshot(known)
	if c.route, err = parseRoute(c.path); err != nil {
		return err
	}
	if c.schema, err = s.profile(r); err != nil {
		return err
	}
	if err := c.route.checkMethod(r.Method); err != nil {
		return err
	}

	if c.route.name == "" && r.Method != http.MethodOptions {
		if s.OpenAPIMode == "disabled" {
			return newError(http.StatusNotFound, "PGRST126", "Root endpoint metadata is disabled")
		}
		if s.RootSpec == (catalog.Name{}) {
			return c.describe(ctx)
		}

		c.route, c.schema = route{name: s.RootSpec.Name, function: true}, s.RootSpec.Schema
	}

	if r.Method == http.MethodOptions {
		c.refresh(ctx)
		return c.options()
	}

	if err := c.parse(); err != nil {
		return err
	}

	defer func() { c.bodyLease.release() }()

	if err := c.readPayload(ctx); err != nil {
		return err
	}

	c.timings.mark(&c.timings.parse)
	return c.run(ctx)
}

// read reads what is asked, as far as that takes no catalogue.
func (c *call) parse() error {
	s, r := c.server, c.r
	reads := r.Method == http.MethodGet || r.Method == http.MethodHead

	var err error
	c.rawQuery = s.rawQuery(r)
	if c.query, err = query.Parse(c.rawQuery, query.Options{RPC: c.route.function && reads}); err != nil {
		return err
	}

	if c.window, err = window(r, c.query); err != nil {
		return err
	}

	if values := r.Header["Prefer"]; values != nil {
		c.prefer, c.preferError = query.ParsePrefer(values)
	}

	if r.Method == http.MethodPut {
		for _, l := range c.query.Limits {
			if len(l.Path) == 0 {
				return newError(http.StatusBadRequest, "PGRST114",
					"limit/offset querystring parameters are not allowed for PUT")
			}
		}
	}

	return c.checkTimezone()
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
		if !c.refresh(ctx) || c.catalog.Relations[name] == nil {
			return plan.NoRelation(c.catalog, name)
		}
	}

	c.bodyLease = bodyLease{budget: s.BodyBudget, owner: s.BudgetOwner, timeout: s.AcquireTimeout}
	if c.payload, err = readBody(c.w, r, s.MaxBody, c.route.function, &c.bodyLease); err != nil {
		return err
	}

	if c.route.function && c.payload.raw == "json" && len(c.payload.text) == 0 {
		c.payload.text = []byte("{}") // no arguments
	}

	return nil
}

// readZone leaves a time zone out that nobody knows.
func (c *call) checkTimezone() error {
	zone := c.prefer.Timezone
	if zone == "" || utcOffset.MatchString(zone) {
		return nil
	}

	ctx, cancel := context.WithDeadline(c.r.Context(), c.deadline)
	defer cancel()

	known, err := c.server.Catalog.hasTimezone(ctx, zone)
	if err != nil {
		return catalogFailure(ctx, err)
	}

	if !known {
		c.prefer.Invalid = append(c.prefer.Invalid, "timezone="+zone)
		c.prefer.Timezone = ""
		c.preferError = c.prefer.Strict()
	}

	return nil
}

// offset is a time zone that is so many hours and minutes from UTC. PostgreSQL takes hours alone to be east of it, with minutes west.
var utcOffset = regexp.MustCompile(`^[+-]?[0-9]{1,2}(:[0-5][0-9])?$`)

func catalogFailure(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return &catalogError{err}
}

// catalogError is the failure of reading the catalogue.
type catalogError struct{ cause error }

func (e *catalogError) Error() string { return "read the catalogue: " + e.cause.Error() }
func (e *catalogError) Unwrap() error { return e.cause }
