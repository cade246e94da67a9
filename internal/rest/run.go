package rest

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"socle/internal/pg"
	"socle/internal/rest/catalog"
	"socle/internal/rest/plan"
	"socle/internal/rest/query"
)

// planned is a request with its statement.
type planned struct {
	plan.Plan
	function *catalog.Function // of a call
	readOnly bool
	confined bool // readOnly because the database is full
	passes   bool // answers while a long body comes; else it is held
	count    plan.Count
	check    func(*result) error
}

// staleMost is how often a request is planned anew because the schema changed since the catalogue was read. After that it runs by
// the newest catalogue there is, whatever version the schema has by then.
const staleMost = 4

// run plans the request, executes it and answers. What fails by a catalogue that is out of date is tried again by a newer one.
func (c *call) run(ctx context.Context) error {
	for tries := 0; ; tries++ {
		planned, err := c.attempt(ctx)
		if err == nil {
			return nil
		}

		if c.planned.confined && pg.State(err) == "25006" { // read_only_sql_transaction
			return errFull
		}

		again := false
		switch {
		case isStale(err):
			again = c.replan(ctx, tries)
		case tries == 0 && (!planned && isRefusal(err) || missing(err)):
			again = c.renew(ctx)
		}

		if !again {
			return err
		}
	}
}

// attempt is run by the catalogue at hand. It reports whether the request could be planned.
func (c *call) attempt(ctx context.Context) (planned bool, err error) {
	if err := c.plan(); err != nil {
		return false, err
	}

	p := &c.planned
	p.passes = p.readOnly && p.check == nil && c.media.handler == nil && c.media.explain == ""
	c.times.mark(&c.times.plan)

	got, err := c.execute(ctx)
	if err != nil {
		return true, err
	}
	defer got.release()

	if got.passed {
		return true, got.spool.wait()
	}

	c.times.mark(&c.times.transaction)
	return true, c.answer(got)
}

// use has the request planned by a catalogue.
func (c *call) use(l *loaded) { c.known, c.catalog = l, l.Catalog }

// renew takes a newer catalogue, if there is one.
func (c *call) renew(ctx context.Context) bool {
	ctx, cancel := context.WithDeadline(ctx, c.until)
	defer cancel()

	newer := c.server.Catalog.newer(ctx, c.known)
	if newer != nil {
		c.use(newer)
	}

	return newer != nil
}

// replan takes another catalogue than the one that PostgreSQL has said to be out of date.
func (c *call) replan(ctx context.Context, tries int) bool {
	ctx, cancel := context.WithDeadline(ctx, c.until)
	defer cancel()

	newer, err := c.server.Catalog.renewed(ctx, c.known)
	if err != nil {
		return false
	}

	c.use(newer)
	c.unchecked = tries+1 >= staleMost

	return true
}

// isRefusal reports whether err says what is wrong with the request.
func isRefusal(err error) bool {
	_, ok := errors.AsType[*query.Error](err)
	return ok && err != errFull
}

// missing reports whether PostgreSQL misses something that the catalogue has.
func missing(err error) bool {
	e, ok := errors.AsType[*pgconn.PgError](err)
	return ok && stale[e.Code]
}

// plan makes the statement.
func (c *call) plan() error {
	s, r := c.server, &c.wanted
	*r = plan.Request{
		Target: catalog.Name{Schema: c.schema, Name: c.route.name}, Query: c.query, Range: c.window,
		MaxRows: s.MaxRows, Aggregates: s.Aggregates, Before: s.before != "", AliasesOnly: s.AliasesOnly,
		Confined: s.Confined, Head: c.r.Method == http.MethodHead,
	}

	switch c.prefer.Count {
	case "exact":
		r.Count = plan.Exact
	case "planned":
		r.Count = plan.Planned
	case "estimated":
		r.Count = plan.Estimated
	}

	switch c.prefer.Return {
	case "headers-only":
		r.Return = plan.HeadersOnly
	case "representation":
		r.Return = plan.Representation
	}

	c.planned = planned{count: r.Count}

	switch {
	case c.route.function:
		return c.planCall(r)
	case c.r.Method == http.MethodGet || c.r.Method == http.MethodHead:
		return c.planRead(r)
	}

	return c.planWrite(r)
}

func (c *call) planRead(r *plan.Request) (err error) {
	if err := c.negotiate(r, r.Target); err != nil {
		return err
	}

	if c.refused != nil {
		return c.refused
	}

	c.planned.readOnly = true
	c.planned.Plan, err = c.server.plans.Plan('r', plan.Read, c.catalog, r)
	return err
}

func (c *call) planWrite(r *plan.Request) (err error) {
	if c.refused != nil {
		return c.refused
	}
	if c.server.Full() && (c.r.Method != http.MethodDelete || c.server.Overgrown()) {
		return errFull
	}

	if err := c.negotiate(r, r.Target); err != nil {
		return err
	}
	if err := c.writeCSV(r.Target); err != nil {
		return err
	}

	r.MaxBody = c.server.MaxAnswer
	r.Body = c.payload.text
	r.Missing = c.prefer.Missing == "default"
	out := &c.planned
	if c.media.single() && c.r.Method != http.MethodPut {
		out.check = checkSingle
	}

	switch c.r.Method {
	case http.MethodPost:
		switch c.prefer.Resolution {
		case "merge-duplicates":
			r.Resolve = plan.MergeDuplicates
		case "ignore-duplicates":
			r.Resolve = plan.IgnoreDuplicates
		}

		out.Plan, err = c.server.plans.Plan('i', plan.Insert, c.catalog, r)
	case http.MethodPut:
		out.check = checkPut
		out.Plan, err = c.server.plans.Plan('p', plan.Put, c.catalog, r)
	case http.MethodPatch:
		out.Plan, err = c.server.plans.Plan('u', plan.Update, c.catalog, r)
	case http.MethodDelete:
		out.Plan, err = c.server.plans.Plan('d', plan.Delete, c.catalog, r)
	}

	if c.r.Method == http.MethodPatch || c.r.Method == http.MethodDelete {
		out.check = c.checkMost(out.check)
	}

	return err
}

// writeCSV makes JSON of a body in CSV for a relation, which must have the columns that columns= or else the first line names.
func (c *call) writeCSV(target catalog.Name) error {
	rel := c.catalog.Relations[target]
	if c.payload.csv == nil || rel == nil {
		return nil
	}

	for _, name := range c.payload.csv.names {
		if c.query.Columns == nil && rel.ByName[name] == nil {
			return plan.NoColumn(rel, name)
		}
	}

	wanted := make(map[string]bool, len(c.query.Columns))
	for _, name := range c.query.Columns {
		wanted[name] = true
	}

	return c.takeCSV(func(name string) bool {
		return rel.ByName[name] != nil && (c.query.Columns == nil || wanted[name])
	}, false)
}

// takeCSV replaces a body in CSV by the JSON of the columns that keep wants, or of their first row.
func (c *call) takeCSV(keep func(name string) bool, one bool) error {
	text, err := c.payload.csv.json(keep, one, csvGrowth*c.server.MaxBody)
	if err != nil {
		return err
	}

	c.payload.text, c.payload.csv = text, nil
	return c.room.take(c.r.Context(), int64(len(text)))
}

// csvGrowth is how many times as large as the longest body rows in CSV may become as JSON, which has the columns' names in each row.
const csvGrowth = 3

func (c *call) planCall(r *plan.Request) error {
	get := c.r.Method != http.MethodPost
	f, err := c.choose(r.Target, get)
	if err != nil {
		return err
	}

	readOnly := get || f.Volatility != 'v'
	confined := !readOnly && c.server.Full()
	if confined && c.server.Overgrown() {
		return errFull
	}

	readOnly = readOnly || confined
	if !readOnly {
		r.MaxBody = c.server.MaxAnswer
	}

	target := f.Name
	if f.Returns.Composite && f.Returns.Relation != (catalog.Name{}) {
		target = f.Returns.Relation
	}

	if err := c.negotiate(r, target); err != nil {
		return err
	}

	if c.refused != nil {
		return c.refused
	}

	switch {
	case get:
	case c.payload.form != nil: // of a variadic parameter all values count
		q := *c.query
		q.Params = nil
		for name, values := range c.payload.form {
			for _, v := range values {
				q.Params = append(q.Params, query.Param{Name: name, Value: v})
			}
		}

		r.Query = &q
	default:
		if c.payload.csv != nil {
			err = c.takeCSV(func(name string) bool {
				return slices.ContainsFunc(f.Params, func(p catalog.Parameter) bool { return p.Name == name })
			}, true)
			if err != nil {
				return err
			}
		}

		r.Body = c.payload.text
	}

	p, err := plan.Call(c.catalog, r, f)
	if err != nil {
		return err
	}

	out := &c.planned
	out.Plan, out.function, out.readOnly, out.confined = *p, f, readOnly, confined

	if c.strictMost() && !f.Returns.Set {
		return fail(http.StatusBadRequest, "PGRST128",
			"Function must return SETOF or TABLE when max-affected preference is used with handling=strict")
	}

	if c.media.single() && !readOnly {
		out.check = checkSingle
	}

	out.check = c.checkMost(out.check)
	return nil
}

// choose returns the function that the arguments are for.
func (c *call) choose(name catalog.Name, get bool) (*catalog.Function, error) {
	switch {
	case get:
		var given []string
		seen := map[string]bool{}
		for _, p := range c.query.Params {
			if !seen[p.Name] {
				seen[p.Name] = true
				given = append(given, p.Name)
			}
		}

		return plan.Choose(c.catalog, name, given, "")
	case c.payload.raw == "json":
		return plan.ChooseJSON(c.catalog, name, c.query.Columns, c.payload.text)
	case c.payload.raw == "":
		given := c.query.Columns
		switch {
		case given != nil:
		case c.payload.csv != nil:
			given = c.payload.csv.names
		default:
			var err error
			if given, err = plan.Keys(c.payload.text); err != nil {
				return nil, err
			}
		}

		return plan.Choose(c.catalog, name, given, "")
	}

	return plan.Choose(c.catalog, name, c.query.Columns, c.payload.raw)
}

func (c *call) negotiate(r *plan.Request, target catalog.Name) error {
	var err error
	if c.media, err = c.server.negotiate(c.r, c.catalog, target, c.query); err != nil {
		return err
	}

	r.Format, r.Handler = c.media.format, c.media.handler
	return nil
}

func checkSingle(r *result) error {
	if r.page == 1 {
		return nil
	}

	e := fail(http.StatusNotAcceptable, "PGRST116", "Cannot coerce the result to a single JSON object")
	e.Details = "The result contains " + formatInt(r.page) + " rows"

	return e
}

func checkPut(r *result) error {
	if r.page == 1 {
		return nil
	}
	return fail(http.StatusBadRequest, "PGRST115", "Payload values do not match URL in primary key column(s)")
}

func (c *call) strictMost() bool { return c.prefer.Handling == "strict" && c.prefer.MaxAffected != nil }

// checkMost adds the check for max-affected to another.
func (c *call) checkMost(other func(*result) error) func(*result) error {
	if !c.strictMost() {
		return other
	}

	return func(r *result) error {
		if r.page > *c.prefer.MaxAffected {
			e := fail(http.StatusBadRequest, "PGRST124", "Query result exceeds max-affected preference constraint")
			e.Details = "The query affects " + formatInt(r.page) + " rows"

			return e
		}

		if other != nil {
			return other(r)
		}

		return nil
	}
}

// execute runs what is planned.
func (c *call) execute(ctx context.Context) (*result, error) {
	s, p := c.server, &c.planned
	e := &c.execution
	*e = execution{
		pool: c.role.Pool, catalog: c.catalog, version: version{s.Catalog.source.Version, c.known.version},
		role: c.caller.Role, readOnly: p.readOnly, before: s.before,
		sql: p.SQL, args: p.Args, check: p.check, most: s.MaxAnswer, until: c.until, rollback: s.Rollback,
		called: p.function != nil || c.runs(p), unlocks: p.Unlocks,
		inert: p.Inert, bare: p.Bare, unnamed: s.Unprepared, wait: s.Wait, held: s.Held,
		patience: s.Patience, waiting: &s.waiting,
	}

	if c.unchecked {
		e.version, e.called = version{}, true // its code may be another by now
	}
	if !p.readOnly && !p.Bare && e.check == nil && s.Held.scarce() {
		e.check = func(*result) error { return nil } // that its answer is here
	}
	if p.passes {
		e.pass = c
	}

	if s.Executing != nil {
		s.Executing(ctx, c.media.explain+p.SQL)
	}

	if s.TxOverride && c.prefer.Tx != "" {
		e.rollback = c.prefer.Tx == "rollback"
	}

	if c.media.explain != "" {
		e.sql, e.explain, e.check, e.unlocks, e.bare = c.media.explain+p.SQL, true, nil, false, false
	} else if p.count == plan.Planned || p.count == plan.Estimated {
		e.count, e.countArgs = p.CountSQL, p.CountArgs
	}

	buffer := takeScratch()
	defer buffer.release()

	c.settings(e, buffer)
	return execute(ctx, e, &c.exchange)
}

// settings gives an execution the parameters of its transaction: those of the role, what the database is told of the request, and those of the function
// and the configuration. They are good until buffer is released.
func (c *call) settings(e *execution, buffer *scratch) {
	s, f := c.server, c.planned.function
	e.settings = buffer.settings[:0]
	if path := s.path(c.schema); string(path) != c.role.SearchPath {
		e.settings = append(e.settings, setting{"search_path", path})
	}

	e.settings = appendSettings(e.settings, c.role.Settings)
	e.isolation = c.role.Settings[isolationSetting]
	b := buffer.text[:0]
	method := len(b)
	b = append(b, c.r.Method...)

	path := len(b)
	b = append(b, c.path...)
	headers := len(b)
	b = appendHeaders(b, c.r)

	cookies := len(b)
	b = appendCookies(b, c.r)
	role := len(b)
	b = append(b, c.caller.Role...)

	claims := len(b)
	b = c.caller.appendClaims(b)
	zone := len(b)
	b = append(b, c.prefer.Timezone...)
	buffer.text = b

	e.settings = append(e.settings,
		setting{"role", b[role:claims]}, setting{"request.jwt.claims", b[claims:zone]},
		setting{"request.method", b[method:path]}, setting{"request.path", b[path:headers]},
		setting{"request.headers", b[headers:cookies]}, setting{"request.cookies", b[cookies:role]})

	if c.prefer.Timezone != "" {
		e.settings = append(e.settings, setting{"timezone", b[zone:]})
	}

	if f != nil && len(f.Settings) > 0 {
		e.settings = appendSettings(e.settings, f.Settings)
		if level := f.Settings[isolationSetting]; level != "" {
			e.isolation = level
		}
	}

	e.settings = append(e.settings, s.app...)
	buffer.settings = e.settings
	e.isolation = isolation(e.isolation)
}

// runs reports whether a request for a relation runs code that may leave statements prepared in the session.
func (c *call) runs(p *planned) bool {
	r := c.catalog.Relations[catalog.Name{Schema: c.schema, Name: c.route.name}]
	return r != nil && (r.ReadRuns || !p.readOnly && !r.InertWrite)
}

// path returns the search path of requests for a schema.
func (s *Server) path(schema string) []byte {
	if path := s.paths[schema]; path != nil {
		return path
	}
	return []byte(pg.Quote(schema)) // of the function that answers for the root
}

// isolationSetting takes effect when a transaction begins, so it is no setting within one.
const isolationSetting = "default_transaction_isolation"

// isolation returns a level that begin takes, "" for the usual one.
func isolation(level string) string {
	switch level = strings.ToLower(level); level {
	case "repeatable read", "serializable":
		return level
	}

	return ""
}

// appendSettings appends settings in the order of their names, so that equal ones make one statement.
func appendSettings(to []setting, from map[string]string) []setting {
	if len(from) == 0 {
		return to
	}

	for _, name := range slices.Sorted(maps.Keys(from)) {
		if name != isolationSetting {
			to = append(to, setting{name, []byte(from[name])})
		}
	}

	return to
}
