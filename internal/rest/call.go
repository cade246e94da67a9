package rest

import (
	"context"
	"net/http"
	"regexp"
	"sync"
	"time"

	"github.com/socle-dev/socle/internal/httpx"
	"github.com/socle-dev/socle/internal/rest/catalog"
	"github.com/socle-dev/socle/internal/rest/plan"
	"github.com/socle-dev/socle/internal/rest/query"
	"github.com/socle-dev/socle/internal/rest/session"
)

// call is the state of one request.
type call struct {
	server *Server
	w      http.ResponseWriter
	r      *http.Request
	path   string
	// deadline ends the work in the database.
	deadline time.Time

	caller   Caller
	role     Role
	route    route
	rawQuery string // query string, without an API key
	snapshot *snapshot
	query    *query.Query
	prefer   query.Prefer
	window   query.Limit
	payload  payload
	media    media
	timings  timings
	key      *idempotencyKey // nil without one
	batch    *batch          // operations of a batch; nil for other requests
	inBatch  bool            // the call is an operation of a batch
	replica  *Replica        // standby that answers; nil: the primary

	planRequest  plan.Request
	planned      plannedRequest
	execution    session.Execution
	settingsText []byte   // text of the execution's settings
	headerValues []string // values of response headers
	skipVersion  bool     // run regardless of the schema version
	cleared      bool     // the caller may write, see clearWrite
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

	role, ok := s.Auth.Role(c.caller.Role)
	if !ok {
		return newError(http.StatusUnauthorized, "22023", `role "`+c.caller.Role+`" does not exist`)
	}

	c.role = role
	now := time.Now()
	c.deadline = now.Add(s.Limits.Timeout)

	ctx := r.Context()
	current := s.Catalog.peek(now)
	if current == nil {
		ctx, cancel := context.WithDeadline(ctx, c.deadline)
		defer cancel()

		if current, err = s.Catalog.get(ctx); err != nil {
			return catalogFailure(ctx, err)
		}
	}

	c.snapshot = current
	if c.isBatch() {
		return c.serveBatch(ctx)
	}
	if err := c.findTarget(); err != nil {
		return err
	}

	if c.route.target.Name == "" && r.Method != http.MethodOptions {
		if s.OpenAPI.Mode == "disabled" {
			return newError(http.StatusNotFound, "PGRST126", "Root endpoint metadata is disabled")
		}
		if s.RootSpec == (catalog.Name{}) {
			return c.describe(ctx)
		}

		c.route = route{target: s.RootSpec, function: true}
	}

	if r.Method == http.MethodOptions {
		c.refresh(ctx)
		return c.options()
	}

	if err := c.parse(); err != nil {
		return err
	}

	if c.key, err = c.readKey(); err != nil {
		return err
	}

	defer func() { c.payload.lease.release() }()

	if err := c.readPayload(ctx); err != nil {
		return err
	}

	c.timings.mark(&c.timings.parse)
	return c.run(ctx)
}

// findTarget finds the request's target, which takes its method.
func (c *call) findTarget() (err error) {
	if c.route, err = parseRoute(c.path); err != nil {
		return err
	}
	if c.route.target.Schema, err = c.server.profile(c.r); err != nil {
		return err
	}
	if c.route.target.Schema != c.server.Schemas[0] {
		httpx.From(c.r.Context()).Schema = c.route.target.Schema
	}

	return c.route.checkMethod(c.r.Method)
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

	c.prefer = query.ParsePrefer(r.Header["Prefer"])

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

	if name := c.route.target; !c.route.function && c.snapshot.Relations[name] == nil {
		if !c.refresh(ctx) || c.snapshot.Relations[name] == nil {
			return plan.NoRelation(c.snapshot.Catalog, name)
		}
	}

	c.payload.lease = s.bodyLease()
	if c.key != nil {
		c.payload.sum = c.key.content
	}
	if err := c.payload.read(c.w, r, s.Limits.MaxBody, c.route.function); err != nil {
		return err
	}

	if c.route.function && c.payload.raw == "json" && len(c.payload.text) == 0 {
		c.payload.text = []byte("{}") // no arguments
	}

	return nil
}

// bodyLease returns a lease without memory.
func (s *Server) bodyLease() bodyLease {
	return bodyLease{pool: s.Limits.Bodies, owner: s.Limits.Owner, timeout: s.sessions.AcquireTimeout}
}

// checkTimezone drops an unknown time zone from the preferences.
func (c *call) checkTimezone() error {
	zone := c.prefer.Timezone
	if zone == "" || utcOffset.MatchString(zone) {
		return nil
	}

	ctx, cancel := context.WithDeadline(c.r.Context(), c.deadline)
	defer cancel()

	exists, err := c.server.Catalog.hasTimezone(ctx, zone)
	if err != nil {
		return catalogFailure(ctx, err)
	}

	if !exists {
		c.prefer.Invalid = append(c.prefer.Invalid, "timezone="+zone)
		c.prefer.Timezone = ""
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
