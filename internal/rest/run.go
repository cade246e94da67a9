package rest

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"socle/internal/pg"
	"socle/internal/rest/catalog"
	"socle/internal/rest/plan"
	"socle/internal/rest/query"
)

// staleMost is how often a request is planned anew because the schema changed since the catalogue was read. After that it runs by
// the newest catalogue there is, whatever version the schema has by then.
const maxReplans = 4

// run plans the request, executes it and answers. What fails by a catalogue that is out of date is tried again by a newer one.
func (c *call) run(ctx context.Context) error {
	for attempts := 0; ; attempts++ {
		planned, err := c.attempt(ctx)
		if err == nil {
			return nil
		}

		if c.planned.overQuota && pg.State(err) == "25006" { // read_only_sql_transaction
			return errOverQuota
		}

		retry := false
		switch {
		case isStaleCatalog(err):
			retry = c.replaceSnapshot(ctx, attempts)
		case attempts == 0 && (!planned && isQueryError(err) || isMissingObject(err)):
			retry = c.refresh(ctx)
		}

		if !retry {
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
	p.streams = p.readOnly && p.check == nil && c.media.handler == nil && c.media.explain == ""
	c.timings.mark(&c.timings.plan)

	res, err := c.execute(ctx)
	if err != nil {
		return true, err
	}
	defer res.release()

	if res.responded {
		return true, res.spool.wait()
	}

	c.timings.mark(&c.timings.transaction)
	return true, c.respond(res)
}

// use has the request planned by a catalogue.
func (c *call) setSnapshot(l *snapshot) { c.snapshot, c.catalog = l, l.Catalog }

// renew takes a newer catalogue, if there is one.
func (c *call) refresh(ctx context.Context) bool {
	ctx, cancel := context.WithDeadline(ctx, c.deadline)
	defer cancel()

	newer := c.server.Catalog.newer(ctx, c.snapshot)
	if newer != nil {
		c.setSnapshot(newer)
	}

	return newer != nil
}

// replan takes another catalogue than the one that PostgreSQL has said to be out of date.
func (c *call) replaceSnapshot(ctx context.Context, attempts int) bool {
	ctx, cancel := context.WithDeadline(ctx, c.deadline)
	defer cancel()

	newer, err := c.server.Catalog.replace(ctx, c.snapshot)
	if err != nil {
		return false
	}

	c.setSnapshot(newer)
	c.skipVersion = attempts+1 >= maxReplans

	return true
}

// isRefusal reports whether err says what is wrong with the request.
func isQueryError(err error) bool {
	_, ok := errors.AsType[*query.Error](err)
	return ok && err != errOverQuota
}

// missing reports whether PostgreSQL misses something that the catalogue has.
func isMissingObject(err error) bool {
	e, ok := errors.AsType[*pgconn.PgError](err)
	return ok && stalePlanStates[e.Code]
}

// execute runs what is planned.
func (c *call) execute(ctx context.Context) (*result, error) {
	s, p := c.server, &c.planned
	e := &c.execution
	*e = execution{
		pool: c.role.Pool, acquireTimeout: s.AcquireTimeout, acquiring: &s.acquiring, deadline: c.deadline,
		catalog: c.catalog, version: schemaVersion{s.Catalog.source.Version, c.snapshot.version},
		role: c.caller.Role, readOnly: p.readOnly, rollback: s.Rollback, preRequest: s.preRequestSQL,
		sql: p.SQL, args: p.Args, check: p.check, countOnly: p.Bare, inert: p.Inert,
		mayPrepare: p.function != nil || c.runsUserCode(p), releasesLocks: p.Unlocks,
		unnamed:     s.NoPreparedStatements,
		maxResponse: s.MaxResponse, budget: s.ResponseBudget, budgetTimeout: s.SlowClientTimeout,
	}

	if c.skipVersion {
		e.version, e.mayPrepare = schemaVersion{}, true // its code may be another by now
	}
	if !p.readOnly && !p.Bare && e.check == nil && s.ResponseBudget.isLow() {
		e.check = func(*result) error { return nil } // that its answer is here
	}
	if p.streams {
		e.stream = c
	}

	if s.OnExecute != nil {
		s.OnExecute(ctx, c.media.explain+p.SQL)
	}

	if s.TxOverride && c.prefer.Tx != "" {
		e.rollback = c.prefer.Tx == "rollback"
	}

	if c.media.explain != "" {
		e.sql, e.explain, e.check, e.releasesLocks, e.countOnly = c.media.explain+p.SQL, true, nil, false, false
	} else if p.count == plan.Planned || p.count == plan.Estimated {
		e.countSQL, e.countArgs = p.CountSQL, p.CountArgs
	}

	buffer := newScratch()
	defer buffer.release()

	c.setSettings(e, buffer)
	return execute(ctx, e, &c.pipeline)
}

// settings gives an execution the parameters of its transaction: those of the role, what the database is told of the request, and those of the function
// and the configuration. They are good until buffer is released.
func (c *call) setSettings(e *execution, buffer *scratch) {
	s, f := c.server, c.planned.function
	e.settings = buffer.settings[:0]
	if path := s.searchPath(c.schema); string(path) != c.role.SearchPath {
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

	e.settings = append(e.settings, s.appSettings...)
	buffer.settings = e.settings
	e.isolation = isolationLevel(e.isolation)
}

// runs reports whether a request for a relation runs code that may leave statements prepared in the session.
func (c *call) runsUserCode(p *plannedRequest) bool {
	r := c.catalog.Relations[catalog.Name{Schema: c.schema, Name: c.route.name}]
	return r != nil && (r.ReadRuns || !p.readOnly && !r.InertWrite)
}

// path returns the search path of requests for a schema.
func (s *Server) searchPath(schema string) []byte {
	if path := s.searchPaths[schema]; path != nil {
		return path
	}
	return []byte(pg.Quote(schema)) // of the function that answers for the root
}

// isolationSetting takes effect when a transaction begins, so it is no setting within one.
const isolationSetting = "default_transaction_isolation"

// isolation returns a level that begin takes, "" for the usual one.
func isolationLevel(level string) string {
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
