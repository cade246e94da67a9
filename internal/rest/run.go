package rest

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/socle-dev/socle/internal/actor"
	"github.com/socle-dev/socle/internal/httpx"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/rest/plan"
	"github.com/socle-dev/socle/internal/rest/query"
	"github.com/socle-dev/socle/internal/rest/session"
)

// maxReplans limits how often a request is planned again because the schema changed after the
// catalog was read. The last plan runs with the newest catalog, current or not.
const maxReplans = 8

// errSchemaChanges answers a request whose last plan was outdated too. Nothing was changed.
var errSchemaChanges = newError(http.StatusServiceUnavailable, "PGRST002",
	"The schema changes faster than it can be read. Repeat the request.")

// run plans, executes and answers the request. It retries a failure caused by an outdated catalog
// with a newer one.
func (c *call) run(ctx context.Context) error {
	if answered, err := c.readReplica(ctx); answered {
		return err
	}

	for attempts := 0; ; attempts++ {
		planned, err := c.attempt(ctx)
		if err == nil {
			c.server.Catalog.startSettling(c.snapshot, c.role.Pool)
			return nil
		}

		if c.planned.overQuota && pg.State(err) == "25006" { // read_only_sql_transaction
			return errOverQuota
		}

		switch {
		case session.IsStaleCatalog(err):
			if c.server.Catalog.unsettle(c.snapshot, c.execution.Version) {
				continue
			}
			if err := c.replaceSnapshot(ctx, attempts); err != nil {
				return err
			}
		case isGuard(err):
			if attempts >= maxReplans || isInProgress(err) {
				return errInProgress
			}
		case !((!planned && isQueryError(err)) || isChangedSchema(err)) || !c.refresh(ctx):
			return err
		case attempts >= maxReplans && planned && !inUserCode(err):
			return errSchemaChanges
		case attempts >= maxReplans:
			return err
		}
	}
}

// attempt runs the request with the current snapshot. It reports whether planning succeeded.
func (c *call) attempt(ctx context.Context) (planned bool, err error) {
	if c.batch != nil {
		return c.attemptBatch(ctx)
	}

	if err := c.plan(); err != nil {
		return false, err
	}

	p := &c.planned
	if c.key != nil && !p.readOnly {
		if replayed, err := c.replay(ctx); replayed || err != nil {
			return true, err
		}
	}

	p.streams = p.readOnly && p.check == nil && c.media.handler == nil && c.media.explain == ""
	c.timings.mark(&c.timings.plan)

	if err := c.clearWrite(ctx); err != nil {
		return true, err
	}

	res, err := c.execute(ctx)
	if err != nil {
		return true, err
	}
	defer res.Release()

	c.timings.mark(&c.timings.transaction)
	if !p.readOnly && c.server.Hooks.Written != nil {
		c.server.Hooks.Written()
	}
	if !p.readOnly {
		c.setPosition(ctx)
	}

	return true, c.respond(res)
}

// clearWrite calls the caller's BeforeWrite, unless the request only reads or was cleared before.
func (c *call) clearWrite(ctx context.Context) error {
	if c.planned.readOnly || c.cleared || c.caller.BeforeWrite == nil {
		return nil
	}

	ctx, cancel := context.WithDeadline(ctx, c.deadline)
	defer cancel()

	if err := c.caller.BeforeWrite(ctx); err != nil {
		return err
	}

	c.cleared = true
	return nil
}

// inUserCode reports whether an error comes from a function.
func inUserCode(err error) bool {
	e, ok := errors.AsType[*pgconn.PgError](err)
	return ok && e.Where != ""
}

// refresh switches to a newer snapshot. It reports whether there is one.
func (c *call) refresh(ctx context.Context) bool {
	ctx, cancel := context.WithDeadline(ctx, c.deadline)
	defer cancel()

	newer := c.server.Catalog.newer(ctx, c.snapshot)
	if newer != nil {
		c.snapshot = newer
	}

	return newer != nil
}

// replaceSnapshot replaces the snapshot after PostgreSQL reported it outdated.
func (c *call) replaceSnapshot(ctx context.Context, attempts int) error {
	ctx, cancel := context.WithDeadline(ctx, c.deadline)
	defer cancel()

	newer, err := c.server.Catalog.replace(ctx, c.snapshot)
	if err != nil {
		return catalogFailure(ctx, err)
	}

	c.snapshot = newer
	c.skipVersion = attempts+1 >= maxReplans

	return nil
}

// isChangedSchema reports whether a statement may have failed because the schema changed after the
// catalog was read. Nothing was changed.
func isChangedSchema(err error) bool {
	e, ok := errors.AsType[*pgconn.PgError](err)
	if !ok || session.IsOutcomeUnknown(err) {
		return false
	}

	missingType := e.Code == "42704" && !plan.IsTooLong(e.Code, e.Message)
	return missingType || isConcurrentDrop(err)
}

// isQueryError reports whether err describes an invalid request.
func isQueryError(err error) bool {
	_, ok := errors.AsType[*query.Error](err)
	return ok && err != errOverQuota
}

// execute runs the planned request.
func (c *call) execute(ctx context.Context) (*session.Result, error) {
	settings, isolation := c.settings(c.execution.Settings[:0])
	c.prepare(isolation)
	c.execution.ReadOnly, c.execution.Streams = c.planned.readOnly, c.planned.streams
	c.execution.Step = c.step(settings)

	if c.key != nil && !c.planned.readOnly {
		c.execution.Guard = c.key.claim()
		c.execution.Next = c.keepAnswer
	}
	if c.server.Features.LogSQL {
		httpx.From(ctx).Statement = c.execution.Statement.SQL
	}

	return c.server.sessions.Execute(ctx, &c.execution)
}

// prepare sets the execution's members that do not depend on the statement.
func (c *call) prepare(isolation string) {
	s := c.server
	c.execution = session.Execution{
		Pool: c.role.Pool, Deadline: c.deadline, Catalog: c.snapshot.Catalog,
		Version: s.Catalog.require(c.snapshot), Isolation: isolation, Rollback: s.Features.Rollback,
		Owner: s.Limits.Owner,
	}

	if r := c.replica; r != nil {
		// The number of changes is of no use there: WAL has sequences some values ahead.
		c.execution.Pool, c.execution.Guard = r.Pool, r.Check
		c.execution.Version = s.Catalog.requireVersion(c.snapshot)
	}
	if c.skipVersion {
		c.execution.Version = session.Version{}
	}
	if s.Features.TxOverride && c.prefer.Tx != "" {
		c.execution.Rollback = c.prefer.Tx == "rollback"
	}
}

// step returns the planned statement with the transaction's parameters.
func (c *call) step(settings []actor.Setting) session.Step {
	s, p, explain := c.server, &c.planned, c.media.explain
	step := session.Step{
		Role: c.caller.Role, Settings: settings, PreRequest: s.preRequestSQL, Check: p.check,
		Statement: session.Statement{SQL: p.SQL, Args: p.Args, CountOnly: p.CountOnly, Inert: p.Inert,
			MayPrepare: p.function != nil || c.runsUserCode(p), ReleasesLocks: p.ReleasesLocks},
	}

	if c.skipVersion { // the schema's user code may have changed
		step.Statement.MayPrepare = true
	}

	if explain != "" {
		step.Check = nil
		step.Statement = session.Statement{SQL: explain + p.SQL, Args: p.Args, Explain: true, Inert: p.Inert,
			MayPrepare: step.Statement.MayPrepare}
	} else if p.count == plan.Planned || (p.count == plan.Estimated && s.Limits.MaxRows != nil) {
		step.Estimate = session.Statement{SQL: p.CountSQL, Args: p.CountArgs}
	}

	return step
}

// settings appends the transaction's parameters: those of the role, the request, the function and
// the configuration. It also returns the isolation level.
func (c *call) settings(to []actor.Setting) (all []actor.Setting, isolation string) {
	s, f := c.server, c.planned.function
	if path := s.searchPath(c.route.target.Schema); c.inBatch || string(path) != c.role.SearchPath {
		to = append(to, actor.Setting{Name: "search_path", Value: path})
	}

	to = appendSettings(to, c.role.Settings)
	to = c.appendRequest(to)
	if c.inBatch { // those of the operation before
		to = append(to, actor.Setting{Name: "response.headers", Value: []byte{}},
			actor.Setting{Name: "response.status", Value: []byte{}})
	}

	isolation = c.role.Settings[isolationSetting]
	if f != nil && len(f.Settings) > 0 && !c.inBatch { // they would last to the end of the batch
		to = appendSettings(to, f.Settings)
		isolation = cmp.Or(f.Settings[isolationSetting], isolation)
	}

	return append(to, s.appSettings...), isolationLevel(isolation)
}

// appendRequest appends the parameters that describe the request. Their values share a text.
func (c *call) appendRequest(to []actor.Setting) []actor.Setting {
	b := c.settingsText[:0]
	method := len(b)
	b = append(b, c.r.Method...)

	path := len(b)
	b = append(b, c.path...)
	headers := len(b)
	b = appendHeaders(b, c.r, c.caller.HideCredentials)

	cookies := len(b)
	b = appendCookies(b, c.r, c.caller.HideCredentials)
	role := len(b)
	b = append(b, c.caller.Role...)

	claims := len(b)
	b = c.caller.appendClaims(b)
	zone := len(b)
	b = append(b, c.prefer.Timezone...)
	c.settingsText = b

	to = append(to,
		actor.Setting{Name: "role", Value: b[role:claims]},
		actor.Setting{Name: "request.jwt.claims", Value: b[claims:zone]},
		actor.Setting{Name: "request.method", Value: b[method:path]},
		actor.Setting{Name: "request.path", Value: b[path:headers]},
		actor.Setting{Name: "request.headers", Value: b[headers:cookies]},
		actor.Setting{Name: "request.cookies", Value: b[cookies:role]})

	if c.prefer.Timezone != "" {
		to = append(to, actor.Setting{Name: "timezone", Value: b[zone:]})
	}

	return to
}

// runsUserCode reports whether a request for a relation runs user code that could leave prepared
// statements in the session.
func (c *call) runsUserCode(p *plannedRequest) bool {
	r := c.snapshot.Relations[c.route.target]
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
func appendSettings(to []actor.Setting, from map[string]string) []actor.Setting {
	if len(from) == 0 {
		return to
	}

	for _, name := range slices.Sorted(maps.Keys(from)) {
		if name != isolationSetting {
			to = append(to, actor.Setting{Name: name, Value: []byte(from[name])})
		}
	}

	return to
}
