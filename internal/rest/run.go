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

// maxReplans limits how often a request is planned again because the schema changed after the
// catalog was read. Then the newest catalog is used whatever version the schema has.
const maxReplans = 4

// run plans, executes and answers the request. It retries a failure caused by an outdated catalog
// with a newer one.
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
		case attempts == 0 && ((!planned && isQueryError(err)) || isMissingObject(err)):
			retry = c.refresh(ctx)
		}

		if !retry {
			return err
		}
	}
}

// attempt runs the request with the current snapshot. It reports whether planning succeeded.
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

func (c *call) setSnapshot(s *snapshot) { c.snapshot, c.catalog = s, s.Catalog }

// refresh switches to a newer snapshot. It reports whether there is one.
func (c *call) refresh(ctx context.Context) bool {
	ctx, cancel := context.WithDeadline(ctx, c.deadline)
	defer cancel()

	newer := c.server.Catalog.newer(ctx, c.snapshot)
	if newer != nil {
		c.setSnapshot(newer)
	}

	return newer != nil
}

// replaceSnapshot replaces the snapshot after PostgreSQL reported it outdated.
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

// isQueryError reports whether err describes an invalid request.
func isQueryError(err error) bool {
	_, ok := errors.AsType[*query.Error](err)
	return ok && err != errOverQuota
}

// isMissingObject reports whether PostgreSQL lacks an object of the catalog.
func isMissingObject(err error) bool {
	e, ok := errors.AsType[*pgconn.PgError](err)
	return ok && stalePlanStates[e.Code]
}

// execute runs the planned request.
func (c *call) execute(ctx context.Context) (*result, error) {
	s, p := c.server, &c.planned
	e := &c.execution
	*e = execution{
		pool: c.role.Pool, acquireTimeout: s.AcquireTimeout, acquiring: &s.acquiring, deadline: c.deadline,
		catalog: c.catalog, version: schemaVersion{s.Catalog.source.Version, c.snapshot.version},
		role: c.caller.Role, readOnly: p.readOnly, rollback: s.Rollback, preRequest: s.preRequestSQL,
		sql: p.SQL, args: p.Args, check: p.check, countOnly: p.CountOnly, inert: p.Inert,
		mayPrepare: p.function != nil || c.runsUserCode(p), releasesLocks: p.ReleasesLocks,
		unnamed:     s.NoPreparedStatements,
		maxResponse: s.MaxResponse, budget: s.ResponseBudget, budgetTimeout: s.SlowClientTimeout,
	}

	if c.skipVersion {
		e.version, e.mayPrepare = schemaVersion{}, true // the schema's user code may have changed
	}
	if !p.readOnly && !p.CountOnly && e.check == nil && s.ResponseBudget.isLow() {
		e.check = func(*result) error { return nil } // wait for the response before COMMIT
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

// setSettings sets the transaction's parameters: those of the role, the request, the function and
// the configuration. They are valid until buffer is released.
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

// runsUserCode reports whether a request for a relation runs user code that could leave prepared
// statements in the session.
func (c *call) runsUserCode(p *plannedRequest) bool {
	r := c.catalog.Relations[catalog.Name{Schema: c.schema, Name: c.route.name}]
	return r != nil && (r.ReadRunsUserCode || (!p.readOnly && !r.InertWrite))
}

// searchPath returns the search_path for a schema.
func (s *Server) searchPath(schema string) []byte {
	if path := s.searchPaths[schema]; path != nil {
		return path
	}
	return []byte(pg.Quote(schema)) // schema of the root function
}

// isolationSetting has no effect inside a transaction, so it becomes an option of BEGIN.
const isolationSetting = "default_transaction_isolation"

// isolationLevel returns an isolation level for BEGIN, "" for the default.
func isolationLevel(level string) string {
	switch level = strings.ToLower(level); level {
	case "repeatable read", "serializable":
		return level
	}

	return ""
}

// appendSettings appends settings sorted by name, so that equal ones share a statement.
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
