package api

import (
	"context"
	"errors"
	"mime"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/go-json-experiment/json"
	"github.com/google/uuid"

	"socle/internal/fault"
	"socle/internal/httpx"
	"socle/internal/pg"
	"socle/internal/tenant"
)

// Operation declares an operation. Its route, its OpenAPI description, its access check, the
// validation of its input and its failure statuses follow from the declaration.
type Operation struct {
	ID      string // camelCase verb and noun, same as the handler
	Method  string
	Path    string
	Summary string
	Notes   string // Markdown, for users: contract beyond the summary
	Access  Access
	Errors  []int // failure statuses; the list is closed
	// The response is an array that contains the envelope, as the specification defines it for the
	// list of files.
	Wrapped bool
	Timeout time.Duration // 0: defaultTimeout; negative: none
	// Protocol sets headers of every response, for a protocol that the OpenAPI document omits.
	Protocol func(http.Header)
	Success  int // 0: 201 for POST, else 200

	Grows       bool // refused while the project's database exceeds its quota
	Destructive bool // may require a completed backup, see destructive.go
}

// Failure statuses that operations share. The specification fixes the lists of ten operations;
// all others declare the statuses that apply.
var (
	specifiedErrors     = []int{400, 401, 500}
	specifiedBodyErrors = []int{400, 401, 422, 500}
	restrictedErrors    = []int{400, 401, 403, 404, 500}
	createErrors        = []int{400, 401, 403, 409, 422, 500}
	memberErrors        = []int{400, 401, 404, 500}                // reads that every member may do
	ddlErrors           = []int{400, 401, 403, 404, 409, 422, 500} // changes of a project's schema
	ddlDeleteErrors     = []int{400, 401, 403, 404, 409, 500}
)

const (
	defaultTimeout = 10 * time.Second // of an operation
	longTimeout    = 30 * time.Second // of schema changes and other long operations
)

// Answer is the result of an operation that returns metadata or headers beside its content. Other
// operations return the content itself.
type Answer[C, M any] struct {
	Content  C
	Metadata M
	Header   http.Header
}

func (a Answer[C, M]) parts() (content, metadata any, header http.Header) {
	return a.Content, a.Metadata, a.Header
}

func (Answer[C, M]) types() (content, metadata reflect.Type) {
	return reflect.TypeFor[C](), reflect.TypeFor[M]()
}

type detailedResult interface {
	parts() (content, metadata any, header http.Header)
	types() (content, metadata reflect.Type)
}

// ProjectInBody is embedded in a body that may repeat the project.
type ProjectInBody struct {
	ProjectUUID *uuid.UUID `json:"projectUUID,omitempty" format:"uuid" doc:"Must be the project of the request, if given."`
}

func (b ProjectInBody) project() *uuid.UUID { return b.ProjectUUID }

// uploadInput is implemented by inputs that embed [Upload].
type uploadInput interface {
	begin(w http.ResponseWriter, r *http.Request) error
}

// attachInput is implemented by inputs that embed [AttachedFiles].
type attachInput interface {
	attach(ctx context.Context, rt *route, w http.ResponseWriter, r *http.Request) (body any, release func(), err error)
}

// normalizer is a body that has several forms. normalize converts a value to the form that the
// schema describes. prefix is the path that the conversion adds to field names.
type normalizer interface {
	normalize(v any) (normal any, prefix string)
}

// route is an operation with the properties derived from its declaration.
type route struct {
	*Server
	op            Operation
	status        int
	input         reflect.Type
	params        []param
	body          *huma.Schema // nil: no JSON body
	bodyIndex     []int
	shape         *shape // of the body, for the parser
	upload        bool
	rawBody       bool // the body is the raw file
	attachedFiles bool // files may accompany the JSON body
	output        reflect.Type

	reader *route // GET route of the same path; nil if none

	run    func(ctx context.Context, p *tenant.Project, input any) (any, error)
	exists func(ctx context.Context, p *tenant.Project, input any) error // nil: no existence check
}

// open registers an operation outside of projects.
func open[I, O any](s *Server, op Operation, handler func(context.Context, *I) (O, error)) {
	register[I, O](s, op, func(ctx context.Context, _ *tenant.Project, input any) (any, error) {
		return handler(ctx, input.(*I))
	}, nil)
}

// openChecked is open with an existence check, see within.
func openChecked[I, O any](
	s *Server, op Operation, handler func(context.Context, *I) (O, error), exists func(context.Context, *I) error,
) {
	register[I, O](s, op, func(ctx context.Context, _ *tenant.Project, input any) (any, error) {
		return handler(ctx, input.(*I))
	}, func(ctx context.Context, _ *tenant.Project, input any) error { return exists(ctx, input.(*I)) })
}

// within registers an operation in a project. op.Access defines the project and the required role.
// exists fails if the operation's target does not exist. It runs only after the validation of the
// body has failed, since a missing target takes precedence over invalid fields. It may be nil.
func within[I, O any](
	s *Server, op Operation, handler func(context.Context, *tenant.Project, *I) (O, error),
	exists func(context.Context, *tenant.Project, *I) error,
) {
	var check func(context.Context, *tenant.Project, any) error
	if exists != nil {
		check = func(ctx context.Context, p *tenant.Project, input any) error { return exists(ctx, p, input.(*I)) }
	}

	register[I, O](s, op, func(ctx context.Context, p *tenant.Project, input any) (any, error) {
		return handler(ctx, p, input.(*I))
	}, check)
}

func register[I, O any](
	s *Server, op Operation, run func(context.Context, *tenant.Project, any) (any, error),
	exists func(context.Context, *tenant.Project, any) error,
) {
	rt := &route{
		Server: s,
		op:     op,
		status: http.StatusOK,
		input:  reflect.TypeFor[I](),
		output: reflect.TypeFor[O](),
		run:    run,
		exists: exists,
	}

	if op.Method == http.MethodPost {
		rt.status = http.StatusCreated
	}
	if op.Success != 0 {
		rt.status = op.Success
	}
	if op.Destructive {
		rt.op.Errors = withStatus(rt.op.Errors, http.StatusConflict)
	}
	if op.Access.inProject() && !op.Access.allowPaused && slices.Contains(op.Errors, http.StatusNotFound) &&
		!slices.Contains(op.Errors, http.StatusConflict) {
		// for a paused project; specified operations omit 409
		rt.op.Errors = withStatus(op.Errors, http.StatusConflict)
	}
	if op.Grows && slices.Contains(rt.op.Errors, http.StatusConflict) {
		// specified operations omit 413
		rt.op.Errors = withStatus(rt.op.Errors, http.StatusRequestEntityTooLarge)
	}
	if op.Timeout == 0 {
		rt.op.Timeout = defaultTimeout
	}

	rt.params = paramsOf(s.registry, rt.input)
	rt.params = append(rt.params, op.Access.params(s.registry)...)

	if f, ok := rt.input.FieldByName("Body"); ok {
		rt.body, rt.bodyIndex = s.registry.Schema(f.Type, true, strings.ToUpper(op.ID[:1])+op.ID[1:]+"Body"), f.Index
		builder := shapeBuilder{s.registry, map[*huma.Schema]*shape{}}
		if _, ok := reflect.New(f.Type).Interface().(normalizer); ok {
			rt.shape = builder.buildNormalized(rt.body)
		} else {
			rt.shape = builder.build(rt.body)
		}

		if slices.Contains(rt.op.Errors, http.StatusConflict) && rt.op.maxBodyBytes() > uncountedBody {
			rt.op.Errors = withStatus(rt.op.Errors, http.StatusTooManyRequests) // specified operations omit 429
		}
	}

	_, rt.upload = reflect.New(rt.input).Interface().(uploadInput)
	_, rt.rawBody = reflect.New(rt.input).Interface().(rawBodyInput)
	_, rt.attachedFiles = reflect.New(rt.input).Interface().(attachInput)
	if (rt.upload || rt.rawBody || rt.attachedFiles) && slices.Contains(rt.op.Errors, http.StatusConflict) {
		rt.op.Errors = withStatus(rt.op.Errors, http.StatusRequestTimeout)
	}

	s.routes = append(s.routes, rt)
	s.mux.Handle(op.Method+" "+op.Path, rt)

	if op.Access.kind == kindPublicForm {
		s.mux.Handle("OPTIONS "+op.Path, preflight(op.Method))
	}
}

// withStatus returns the sorted list with status added, unless it is present.
func withStatus(list []int, status int) []int {
	if slices.Contains(list, status) {
		return list
	}

	list = append(slices.Clone(list), status)
	slices.Sort(list)

	return list
}

// ServeHTTP runs the stages of a request: authentication, parameters, body, authorization,
// validation, handler.
func (rt *route) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	httpx.From(r.Context()).Route = rt.op.Method + " " + rt.op.Path

	if rt.op.Access.kind == kindPublicForm || rt.op.Access.allowSigned {
		allowAnyOrigin(w.Header())
	}
	if rt.op.Protocol != nil {
		rt.op.Protocol(w.Header())
	}
	if rt.op.Destructive {
		rt.extendWriteDeadline(w)
	}

	ctx, cancel := r.Context(), context.CancelFunc(func() {})
	if !rt.upload && !rt.rawBody && !rt.withFiles(r) && rt.op.Timeout > 0 {
		ctx, cancel = context.WithTimeout(ctx, rt.op.Timeout)
	}

	defer cancel()

	result, err := rt.serve(ctx, w, r)
	if err != nil {
		if ctx.Err() != nil && errors.Is(err, ctx.Err()) && fault.Of(err).Code != pg.OutcomeUnknown {
			err = fault.New(fault.Unavailable, "the request took too long").WithCause(err)
		}

		writeFailure(w, r, err, rt.op.Errors)
		return
	}

	rt.write(w, r, result)
}

func (rt *route) serve(ctx context.Context, w http.ResponseWriter, r *http.Request) (any, error) {
	ctx, err := rt.op.Access.authenticate(ctx, rt.Server, r)
	if err != nil {
		return nil, err
	}

	input := reflect.New(rt.input)
	if faults := bind(rt.params, r, input.Elem()); len(faults) > 0 {
		return nil, &fault.Error{Kind: fault.Invalid, Detail: faults[0].Name + " " + faults[0].Message, Fields: faults}
	}

	body, release, err := rt.read(ctx, w, r, input)
	defer release()

	if err != nil {
		return nil, err
	}

	project, err := rt.op.Access.authorize(ctx, rt.Server)
	if err != nil {
		return nil, err
	}

	result, err := rt.execute(ctx, r, project, input, body)
	return result, rt.op.Access.explainInternal(ctx, rt.Server, project, err)
}

// execute validates the body and runs the operation.
func (rt *route) execute(
	ctx context.Context, r *http.Request, project *tenant.Project, input reflect.Value, body any,
) (any, error) {
	prefix, err := rt.decodeBody(input, body, project)
	if err != nil {
		if rt.exists != nil {
			if missing := rt.exists(ctx, project, input.Interface()); missing != nil {
				return nil, missing
			}
		}

		return nil, stripPrefix(err, prefix)
	}

	ctx = rt.withAudit(ctx, r, body)
	result, err := rt.runOnce(ctx, r, project, input.Interface(), body, func(ctx context.Context) (any, error) {
		if err := rt.checkQuota(project, input.Interface()); err != nil {
			return nil, err
		}

		return rt.backUpFirst(ctx, r, project, input.Interface(), body, func(ctx context.Context) (any, error) {
			return rt.ifMatch(ctx, r, project, func(ctx context.Context) (any, error) {
				return rt.run(ctx, project, input.Interface())
			})
		})
	})
	if err == nil && project != nil && project.OverQuota() && !isRead(rt.op.Method) {
		if _, err := rt.lifecycle.GetSize(ctx, project.UUID); err != nil { // the operation may have freed space
			rt.log.Warn("measure project database", "project", project.UUID, "error", err)
		}
	}

	return result, stripPrefix(err, prefix)
}

// noSpaceInput is an input of a Grows operation that may request a change that takes no space.
type noSpaceInput interface{ needsNoSpace() bool }

// checkQuota fails with TooLarge if the operation takes space in a database that exceeds its quota.
func (rt *route) checkQuota(project *tenant.Project, input any) error {
	if s, ok := input.(noSpaceInput); !rt.op.Grows || !project.OverQuota() || (ok && s.needsNoSpace()) {
		return nil
	}
	return tenant.ErrOverQuota
}

// withFiles reports whether files accompany the JSON body.
func (rt *route) withFiles(r *http.Request) bool {
	media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	return rt.attachedFiles && err == nil && media == "multipart/form-data"
}

// stripPrefix removes the prefix of a normalizer from the field names of an error, to restore the
// client's names.
func stripPrefix(err error, prefix string) error {
	e, ok := errors.AsType[*fault.Error](err)
	if !ok || prefix == "" {
		return err
	}

	stripped := *e
	stripped.Detail = strings.ReplaceAll(e.Detail, prefix, "")
	stripped.Fields = slices.Clone(e.Fields)
	for i, f := range stripped.Fields {
		stripped.Fields[i].Name = strings.TrimPrefix(f.Name, prefix)
	}

	return &stripped
}

// read reads a JSON body, or the start of a multipart body. release returns the memory reserved
// from the body budget; it is never nil.
func (rt *route) read(
	ctx context.Context, w http.ResponseWriter, r *http.Request, input reflect.Value,
) (body any, release func(), err error) {
	release = noRelease
	if rt.body == nil && !rt.upload && !rt.rawBody {
		return nil, release, nil
	}
	if r.Header.Get("Content-Encoding") != "" {
		return nil, release, fault.OnField(fault.Invalid, "Content-Encoding", "unknown", "is not supported")
	}
	if rt.rawBody {
		return nil, release, input.Interface().(rawBodyInput).beginRawBody(w, r)
	}

	media, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if rt.upload {
		if raw, ok := input.Interface().(interface {
			beginRaw(w http.ResponseWriter, r *http.Request, media string) error
		}); ok && err == nil && media != "multipart/form-data" {
			return nil, release, raw.beginRaw(w, r, media)
		}
		if err != nil || media != "multipart/form-data" || len(params["boundary"]) > 70 {
			return nil, release, fault.OnField(fault.Invalid, "Content-Type", "unknown", "must be multipart/form-data")
		}

		return nil, release, input.Interface().(uploadInput).begin(w, r)
	}

	if rt.withFiles(r) {
		return input.Interface().(attachInput).attach(ctx, rt, w, r)
	}

	// curl sends this content type by default; the body is parsed as JSON.
	if err != nil || (media != "application/json" && media != "application/x-www-form-urlencoded") {
		return nil, release, fault.OnField(fault.Invalid, "Content-Type", "unknown", "must be application/json")
	}
	if charset := params["charset"]; charset != "" && !strings.EqualFold(charset, "utf-8") {
		return nil, release, fault.OnField(fault.Invalid, "Content-Type", "unknown", "must be in UTF-8")
	}

	return rt.readJSON(ctx, w, r)
}

// decodeBody validates a body against its schema and decodes it into the input. It returns the
// prefix that a normalizer added to field names.
func (rt *route) decodeBody(input reflect.Value, body any, project *tenant.Project) (prefix string, err error) {
	if rt.body == nil {
		return "", nil
	}

	field := input.Elem().FieldByIndex(rt.bodyIndex)
	if n, ok := field.Addr().Interface().(normalizer); ok {
		body, prefix = n.normalize(body)
	}

	check := rules{registry: rt.registry}
	check.check("", rt.body, body)

	if len(check.faults) > 0 {
		return prefix, unprocessable(check.faults)
	}

	text, err := json.Marshal(body, numberOptions)
	if err != nil {
		return prefix, err
	}

	if err := json.Unmarshal(text, field.Addr().Interface()); err != nil {
		return prefix, err // the schema and the Go type disagree: a programming error
	}

	b, ok := field.Interface().(interface{ project() *uuid.UUID })
	if ok && b.project() != nil && project != nil && *b.project() != project.UUID {
		return prefix, fault.OnField(fault.Unprocessable, "projectUUID", "mismatch",
			"must be the project of the request")
	}

	return prefix, nil
}

// unprocessable returns the failure of invalid body fields.
func unprocessable(faults []fault.Field) error {
	return &fault.Error{Kind: fault.Unprocessable, Detail: faults[0].Name + " " + faults[0].Message, Fields: faults}
}

// write responds with a result.
func (rt *route) write(w http.ResponseWriter, r *http.Request, result any) {
	if h, ok := result.(http.Handler); ok { // a file or a stored response
		h.ServeHTTP(w, r)
		return
	}

	answer := rt.render(result)
	if isRead(r.Method) {
		tag := etagOf(answer.Body)
		w.Header().Set("ETag", tag)

		if matchesETag(r.Header.Values("If-None-Match"), tag, true) {
			w.WriteHeader(http.StatusNotModified)
			return
		}
	}

	answer.ServeHTTP(w, r)
}

// render converts a result to a response.
func (rt *route) render(result any) rendered {
	if d, ok := result.(plainJSON); ok {
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
