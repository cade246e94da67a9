// Package rest serves the rows and functions of one database over HTTP by PostgREST's contract.
//
// A request is authenticated and parsed here; package query parses its query string, and package
// plan builds one SQL statement from it. The pipeline runs the statement with the caller's role and
// claims in a single round trip, and the response is the text that PostgreSQL produced.
//
// Package catalog reads the schema. Settings files and listeners belong to package standalone,
// projects and their keys to package server.
package rest

import (
	"context"
	"errors"
	"net/http"
	"regexp"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"socle/internal/httpx"
	"socle/internal/pg"
	"socle/internal/rest/catalog"
	"socle/internal/rest/plan"
	"socle/internal/rest/query"
	"socle/internal/rest/session"
)

// Config configures a Server.
type Config struct {
	Catalog *Cache
	// Role returns the pool and settings of a role. It reports false if callers cannot have the
	// role.
	Role func(role string) (Role, bool)
	// Verify returns the caller of a token. It fails with a *query.Error or a *fault.Error. nil
	// means that tokens are not supported.
	Verify func(ctx context.Context, token string) (Caller, error)
	// Unavailable maps a lost connection to a specific error, such as "project paused". It returns
	// nil to keep the original error. nil means that there is no such error.
	Unavailable func(ctx context.Context) error
	// OverQuota reports whether the database exceeds its quota; then only reads and deletes are
	// allowed. nil means no quota.
	OverQuota func() bool
	// FarOverQuota reports whether the database has grown further since, through user code in
	// deletes or functions; then deletes and volatile functions are refused too. nil means never.
	FarOverQuota func() bool
	APIKeys      bool   // accept a token in the header apikey if Authorization has none
	Anonymous    string // role of requests without a token; "" refuses them

	Schemas    []string     // exposed schemas; the first is the default
	SearchPath []string     // schemas that follow the exposed one in search_path
	PreRequest catalog.Name // function called before every statement; zero means none
	RootSpec   catalog.Name // function that answers requests for the root; zero means none
	Settings   map[string]string

	Rollback     bool // roll back every transaction
	TxOverride   bool // let Prefer: tx= override Rollback
	MaxRows      *int64
	MaxBody      int64          // bytes of a request body; 0 means 10 MiB
	Timeout      time.Duration  // of a request in the database; 0 means 30 s
	BodyBudget   *httpx.Budget  // nil means 256 MiB for this server alone
	BudgetOwner  string         // owner that BodyBudget is charged to
	Session      session.Config // of the work in the database
	SharedOrigin bool           // with other projects' user code, see shared_origin.go
	TerseErrors  bool           // error bodies have only code and message
	Aggregates   bool           // allow aggregate functions in select
	AliasesOnly  bool           // an embedded relation with an alias is known by its alias only
	Plan         bool           // allow clients to request the execution plan
	ServerTiming bool
	Origins      []string // allowed by CORS; nil means all

	// OnExecute is called with the SQL of every request; nil means no hook.
	OnExecute func(ctx context.Context, sql string)

	// OpenAPIMode is "follow-privileges" (also ""), "ignore-privileges" or "disabled".
	OpenAPIMode     string
	OpenAPIServer   string // server URL in the description; "" means that of the request
	OpenAPISecurity bool   // declare JWT security in the description
}

// Role has the pool and settings for requests of a role.
type Role struct {
	Pool *pgxpool.Pool
	// SearchPath is the search_path that the pool's connections start with. Requests with the same
	// search_path need not set it. "" means unknown.
	SearchPath string
	Settings   map[string]string // set for each transaction, such as statement_timeout
	// Anonymous marks the role of anonymous requests: a lack of privileges is 401, since a token
	// could help.
	Anonymous bool
}

// Server serves one database. It is safe for concurrent use.
type Server struct {
	Config
	searchPaths   map[string][]byte // search_path by schema
	preRequestSQL string
	appSettings   []session.Setting
	descriptions  descriptions
	plans         plan.Plans
	sessions      *session.Executor
}

// New returns a server with the given configuration.
func New(c Config) *Server {
	if c.MaxBody == 0 {
		c.MaxBody = 10 << 20
	}
	if c.Timeout == 0 {
		c.Timeout = 30 * time.Second
	}

	never := func() bool { return false }
	if c.OverQuota == nil {
		c.OverQuota = never
	}
	if c.FarOverQuota == nil {
		c.FarOverQuota = never
	}
	if c.BodyBudget == nil {
		c.BodyBudget = httpx.NewBudget(BodyBudgetSize)
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

	c := callPool.Get().(*call)
	c.server, c.w, c.r, c.path = s, w, r, path
	if s.ServerTiming {
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

// call is the state of one request.
type call struct {
	server *Server
	w      http.ResponseWriter
	r      *http.Request
	path   string
	// deadline ends the work in the database.
	deadline time.Time

	caller      Caller
	role        Role
	route       route
	schema      string
	rawQuery    string // query string, without an API key
	snapshot    *snapshot
	catalog     *catalog.Catalog
	query       *query.Query
	prefer      query.Prefer
	preferError error // of Prefer: handling=strict
	window      query.Limit
	payload     payload
	bodyLease   bodyLease // memory of the payload
	media       media
	timings     timings

	planRequest  plan.Request
	planned      plannedRequest
	execution    session.Execution
	settingsText []byte   // of the execution's settings
	headerValues []string // of response headers
	skipVersion  bool     // run regardless of the schema version
}

var callPool = sync.Pool{New: func() any { return new(call) }}

// release returns the call to the pool, with the memory of its settings.
func (c *call) release() {
	settings, text := c.execution.Settings, c.settingsText
	clear(settings)
	*c = call{}
	if cap(text) <= maxPooledText {
		c.execution.Settings, c.settingsText = settings[:0], text[:0]
	}

	callPool.Put(c)
}

// maxPooledText is the size in bytes up to which the text of settings is reused.
const maxPooledText = 1 << 20

// serve writes a response. If it returns an error, nothing has been written, except for an
// *abortedError.
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
	current := s.Catalog.peek(now)
	if current == nil {
		ctx, cancel := context.WithDeadline(ctx, c.deadline)
		defer cancel()

		if current, err = s.Catalog.get(ctx); err != nil {
			return catalogFailure(ctx, err)
		}
	}

	c.setSnapshot(current)
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

// parse parses the query string and headers, without the catalog.
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

// readPayload reads the request body. It first checks that the target relation exists.
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

	c.bodyLease = bodyLease{budget: s.BodyBudget, owner: s.BudgetOwner, timeout: s.sessions.AcquireTimeout}
	if c.payload, err = readBody(c.w, r, s.MaxBody, c.route.function, &c.bodyLease); err != nil {
		return err
	}

	if c.route.function && c.payload.raw == "json" && len(c.payload.text) == 0 {
		c.payload.text = []byte("{}") // no arguments
	}

	return nil
}

// checkTimezone drops an unknown time zone from the preferences.
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
		c.preferError = c.prefer.StrictError()
	}

	return nil
}

// utcOffset matches a time zone given as hours and minutes from UTC. PostgreSQL reads hours alone
// as east of UTC, with minutes as west.
var utcOffset = regexp.MustCompile(`^[+-]?[0-9]{1,2}(:[0-5][0-9])?$`)

func catalogFailure(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return &catalogError{err}
}

// catalogError is a failure to read the catalog.
type catalogError struct{ cause error }

func (e *catalogError) Error() string { return "read the catalog: " + e.cause.Error() }
func (e *catalogError) Unwrap() error { return e.cause }
