package operation

import (
	"context"
	"errors"
	"net/http"
	"reflect"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/httpx"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/platform"
	"github.com/socle-dev/socle/internal/projectdb"
)

// request is a request on its way through the stages.
type request struct {
	*route
	w    http.ResponseWriter
	http *http.Request

	input   reflect.Value      // pointer to the operation's input
	body    any                // parsed JSON; nil if there is none
	project *projectdb.Project // nil outside projects
}

// step runs the stages that follow, and returns the operation's result.
type step func(ctx context.Context) (result any, err error)

// stage is one step in the pipeline. It fails, or returns next's result.
type stage func(q *request, ctx context.Context, next step) (any, error)

// stages are a request's stages. Their order is part of the API's contract; docs/architecture.md
// has their statuses.
var stages = []stage{
	(*request).authenticate,
	(*request).parse,
	(*request).authorize,
	(*request).validate,
	(*request).audit,
	(*request).measureAfter,
	(*request).replay,
	(*request).checkQuota,
	(*request).backUpFirst,
	(*request).ifMatch,
	(*request).handle,
}

// pass runs a request through stages.
func (q *request) pass(ctx context.Context, stages []stage) (any, error) {
	return stages[0](q, ctx, func(ctx context.Context) (any, error) { return q.pass(ctx, stages[1:]) })
}

// ServeHTTP passes a request through the stages and writes the response.
func (rt *route) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	httpx.From(r.Context()).Route = rt.op.Method + " " + rt.op.Path

	if rt.op.Access.anyOrigin {
		allowAnyOrigin(w.Header())
	}
	if rt.op.Protocol != nil {
		rt.op.Protocol(w.Header())
	}
	if rt.op.Destructive != nil {
		rt.extendWriteDeadline(w)
	}

	ctx, cancel := r.Context(), context.CancelFunc(func() {})
	if rt.op.Body.begin == nil && !rt.withFiles(r) && rt.op.Timeout > 0 {
		ctx, cancel = context.WithTimeout(ctx, rt.op.Timeout)
	}

	defer cancel()

	q := &request{route: rt, w: w, http: r, input: reflect.New(rt.inputType)}
	result, err := q.pass(ctx, stages)
	if err != nil {
		if ctx.Err() != nil && errors.Is(err, ctx.Err()) && fault.Of(err).Code != pg.OutcomeUnknown {
			err = fault.New(fault.Unavailable, "the request took too long").WithCause(err)
		}

		WriteFailure(w, r, err, rt.op.Errors)
		return
	}

	rt.respond(w, r, result)
}

// authenticate identifies the caller from the database and adds the caller to the context. A
// request without credentials, or with an invalid token, takes no database connection.
func (q *request) authenticate(ctx context.Context, next step) (any, error) {
	ctx, c, err := q.op.Access.identify(ctx, q.Pipeline, q.http)
	if err != nil {
		return nil, err
	}

	if c.Status == platform.Deleted && !q.op.Access.allowDeleted {
		c.Project, c.Role, c.Status = uuid.NullUUID{}, 0, ""
	}

	record := httpx.From(ctx)
	record.User, record.Project = c.User, c.Project.UUID

	return next(context.WithValue(ctx, callerKey{}, c))
}

// parse reads the parameters, and the JSON body or the start of a multipart body.
func (q *request) parse(ctx context.Context, next step) (any, error) {
	if faults := bind(q.params, q.http, q.input.Elem(), q.op.IgnoreUnknownQuery); len(faults) > 0 {
		return nil, invalid(fault.Invalid, faults)
	}

	body, release, err := q.readBody(ctx)
	defer release()

	if err != nil {
		return nil, err
	}

	q.body = body

	return next(ctx)
}

// authorize checks the caller's rights and opens the project, if the operation acts in one.
func (q *request) authorize(ctx context.Context, next step) (any, error) {
	access, c := q.op.Access, Caller(ctx)
	if err := access.Authorize(c); err != nil {
		return nil, err
	}

	if !access.inProject {
		return next(ctx)
	}

	q.project = q.config.Projects.Open(c.Project.UUID)
	result, err := next(ctx)

	return result, access.explainInternal(ctx, q.Pipeline, c.Project.UUID, err)
}

// validate checks the body against its schema and decodes it into the input. A missing target's
// failure takes precedence.
func (q *request) validate(ctx context.Context, next step) (any, error) {
	prefix, err := q.decodeBody()
	if err != nil {
		if q.exists != nil {
			if missing := q.exists(ctx, q.project, q.input.Interface()); missing != nil {
				return nil, missing
			}
		}

		return nil, stripPrefix(err, prefix)
	}

	result, err := next(ctx)
	return result, stripPrefix(err, prefix)
}

// measureAfter measures a database that exceeds its quota after a change, which may have freed
// space.
func (q *request) measureAfter(ctx context.Context, next step) (any, error) {
	result, err := next(ctx)
	if err == nil && q.project != nil && q.project.OverQuota() && !isRead(q.op.Method) {
		if _, err := q.config.Lifecycle.GetSize(ctx, q.project.UUID); err != nil {
			q.config.Log.Warn("measure project database", "project", q.project.UUID, "error", err)
		}
	}

	return result, err
}

// checkQuota fails with TooLarge if the operation takes space in a database that exceeds its quota.
func (q *request) checkQuota(ctx context.Context, next step) (any, error) {
	if q.project != nil && q.project.OverQuota() && q.op.Grows.holds(q.input.Interface()) {
		return nil, projectdb.ErrOverQuota
	}
	return next(ctx)
}

// handle calls the operation's handler.
func (q *request) handle(ctx context.Context, _ step) (any, error) {
	return q.run(ctx, q.project, q.input.Interface())
}

// stripPrefix removes a prefix that the client did not send from an error's field names.
func stripPrefix(err error, prefix string) error {
	e, ok := errors.AsType[*fault.Error](err)
	if !ok || prefix == "" {
		return err
	}

	clone := *e
	clone.Detail = strings.ReplaceAll(e.Detail, prefix, "")
	clone.Fields = slices.Clone(e.Fields)
	for i, f := range clone.Fields {
		clone.Fields[i].Name = strings.TrimPrefix(f.Name, prefix)
	}

	return &clone
}

// respond writes a result.
func (rt *route) respond(w http.ResponseWriter, r *http.Request, result any) {
	if h, ok := result.(http.Handler); ok { // a file or a stored response
		h.ServeHTTP(w, r)
		return
	}

	answer := rt.render(result)
	if isRead(r.Method) {
		tag := etagOf(answer.Body)
		w.Header().Set("ETag", tag)

		if MatchesETag(r.Header.Values("If-None-Match"), tag, true) {
			w.WriteHeader(http.StatusNotModified)
			return
		}
	}

	answer.ServeHTTP(w, r)
}

// render converts a result to a response.
func (rt *route) render(result any) rendered {
	if d, ok := result.(PlainJSON); ok {
		return rendered{Status: rt.status, Header: http.Header{}, Body: d}
	}

	e := envelope{Content: result, Errors: []string{}, Metadata: struct{}{}, Success: true}
	header := http.Header{}
	if a, ok := result.(detailedResult); ok {
		e.Content, e.Metadata, header = a.parts()
	}

	if rt.op.Wrapped {
		return rendered{Status: rt.status, Header: header, Body: encode([]envelope{e})}
	}

	return rendered{Status: rt.status, Header: header, Body: encode(e)}
}
