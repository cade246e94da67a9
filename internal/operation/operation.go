package operation

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
	Errors  []int         // failure statuses; the list is closed
	Success int           // 0: 201 for POST, else 200
	Timeout time.Duration // 0: [DefaultTimeout]; negative: none

	// Of the request.

	Body               Body // if not JSON alone
	IgnoreUnknownQuery bool // unknown query parameters are ignored

	// Normalize converts a JSON body that has several forms to the form that the schema describes.
	// prefix is the path that the conversion adds to field names.
	Normalize func(body any) (normal any, prefix string)
	Aliases   map[string]string // other names of members that Normalize accepts

	// Of the effect.

	Grows       Condition // refused while the project's database exceeds its quota
	Destructive Condition // may require a completed backup, see backupfirst.go

	// Of the response.

	MediaType string // of a file; "": application/octet-stream
	Ranges    bool   // the response is that of [http.ServeContent]

	// Wrapped responds with an array that contains the envelope, as the specification defines it
	// for the list of files.
	Wrapped bool

	// Protocol sets headers of every response, for a protocol that the OpenAPI document omits.
	Protocol func(http.Header)
}

// DefaultTimeout is the timeout of an operation.
const DefaultTimeout = 10 * time.Second

// Condition decides by the input of a request. A nil Condition never holds.
type Condition func(input any) bool

// Always holds for every request.
func Always(any) bool { return true }

// When returns a condition on an input of type I.
func When[I any](holds func(*I) bool) Condition {
	return func(input any) bool { return holds(input.(*I)) }
}

func (c Condition) holds(input any) bool { return c != nil && c(input) }

// PlainJSON is a JSON response without an envelope.
type PlainJSON []byte

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

// route is an operation with the properties derived from its declaration.
type route struct {
	*Pipeline
	op          Operation
	status      int
	input       reflect.Type
	params      []param
	body        *huma.Schema // nil: no JSON body
	bodyIndex   []int
	shape       *shape // of the body, for the parser
	uploadIndex []int  // of the field [Upload] of the input
	filesIndex  []int  // of the field [AttachedFiles] of the input
	output      reflect.Type

	reader *route // GET route of the same path; nil if none

	run    func(ctx context.Context, p *tenant.Project, input any) (any, error)
	exists func(ctx context.Context, p *tenant.Project, input any) error // nil: no existence check
}

// Handle registers an operation outside of projects. exists fails if the operation's target does
// not exist. It runs only after the validation of the body has failed, since a missing target takes
// precedence over invalid fields. It may be nil.
func Handle[I, O any](
	p *Pipeline, op Operation, handler func(context.Context, *I) (O, error), exists func(context.Context, *I) error,
) {
	var check func(context.Context, *tenant.Project, any) error
	if exists != nil {
		check = func(ctx context.Context, _ *tenant.Project, input any) error { return exists(ctx, input.(*I)) }
	}

	register[I, O](p, op, func(ctx context.Context, _ *tenant.Project, input any) (any, error) {
		return handler(ctx, input.(*I))
	}, check)
}

// HandleInProject is [Handle] for an operation in a project, which op.Access defines.
func HandleInProject[I, O any](
	p *Pipeline, op Operation, handler func(context.Context, *tenant.Project, *I) (O, error),
	exists func(context.Context, *tenant.Project, *I) error,
) {
	var check func(context.Context, *tenant.Project, any) error
	if exists != nil {
		check = func(ctx context.Context, project *tenant.Project, input any) error {
			return exists(ctx, project, input.(*I))
		}
	}

	register[I, O](p, op, func(ctx context.Context, project *tenant.Project, input any) (any, error) {
		return handler(ctx, project, input.(*I))
	}, check)
}

func register[I, O any](
	p *Pipeline, op Operation, run func(context.Context, *tenant.Project, any) (any, error),
	exists func(context.Context, *tenant.Project, any) error,
) {
	rt := &route{
		Pipeline: p,
		op:       op,
		status:   http.StatusOK,
		input:    reflect.TypeFor[I](),
		output:   reflect.TypeFor[O](),
		run:      run,
		exists:   exists,
	}

	if op.Method == http.MethodPost {
		rt.status = http.StatusCreated
	}
	if op.Success != 0 {
		rt.status = op.Success
	}
	if op.Destructive != nil {
		rt.op.Errors = withStatus(rt.op.Errors, http.StatusConflict)
	}
	if op.Access.inProject() && !op.Access.allowPaused && slices.Contains(op.Errors, http.StatusNotFound) &&
		!slices.Contains(op.Errors, http.StatusConflict) {
		// for a paused project; specified operations omit 409
		rt.op.Errors = withStatus(op.Errors, http.StatusConflict)
	}
	if op.Grows != nil && slices.Contains(rt.op.Errors, http.StatusConflict) {
		// specified operations omit 413
		rt.op.Errors = withStatus(rt.op.Errors, http.StatusRequestEntityTooLarge)
	}
	if op.Timeout == 0 {
		rt.op.Timeout = DefaultTimeout
	}

	rt.params = paramsOf(p.registry, rt.input)
	rt.params = append(rt.params, op.Access.params(p.registry)...)

	if f, ok := rt.input.FieldByName("Body"); ok {
		rt.body, rt.bodyIndex = p.registry.Schema(f.Type, true, strings.ToUpper(op.ID[:1])+op.ID[1:]+"Body"), f.Index
		rt.shape = shapeBuilder{p.registry, map[*huma.Schema]*shape{}}.build(rt.body)
		if op.Normalize != nil {
			rt.shape.acceptForms(op.Aliases)
		}

		if slices.Contains(rt.op.Errors, http.StatusConflict) && rt.op.maxBodyBytes() > uncountedBody {
			rt.op.Errors = withStatus(rt.op.Errors, http.StatusTooManyRequests) // specified operations omit 429
		}
	}

	rt.uploadIndex, rt.filesIndex = indexOf[Upload](rt.input), indexOf[AttachedFiles](rt.input)
	if (rt.uploadIndex != nil) != (op.Body.begin != nil) || (rt.filesIndex != nil) != (op.Body.member != "") {
		panic("operation: " + op.ID + ": the input does not fit the declared body")
	}
	if len(op.Body.content) > 0 && slices.Contains(rt.op.Errors, http.StatusConflict) {
		rt.op.Errors = withStatus(rt.op.Errors, http.StatusRequestTimeout)
	}

	for _, condition := range []Condition{op.Grows, op.Destructive} {
		condition.holds(reflect.New(rt.input).Interface()) // a condition on another input panics here, not later
	}

	p.routes = append(p.routes, rt)
	p.mux.Handle(op.Method+" "+op.Path, rt)

	if op.Access.kind == kindPublicForm {
		p.HandlePreflight(op.Path, op.Method)
	}
}

// indexOf returns the index of the field of type T that a struct embeds, or nil.
func indexOf[T any](input reflect.Type) []int {
	for _, f := range reflect.VisibleFields(input) {
		if f.Type == reflect.TypeFor[T]() {
			return f.Index
		}
	}

	return nil
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
	if rt.op.Destructive != nil {
		rt.extendWriteDeadline(w)
	}

	ctx, cancel := r.Context(), context.CancelFunc(func() {})
	if rt.op.Body.begin == nil && !rt.withFiles(r) && rt.op.Timeout > 0 {
		ctx, cancel = context.WithTimeout(ctx, rt.op.Timeout)
	}

	defer cancel()

	result, err := rt.serve(ctx, w, r)
	if err != nil {
		if ctx.Err() != nil && errors.Is(err, ctx.Err()) && fault.Of(err).Code != pg.OutcomeUnknown {
			err = fault.New(fault.Unavailable, "the request took too long").WithCause(err)
		}

		WriteFailure(w, r, err, rt.op.Errors)
		return
	}

	rt.write(w, r, result)
}

func (rt *route) serve(ctx context.Context, w http.ResponseWriter, r *http.Request) (any, error) {
	ctx, err := rt.op.Access.authenticate(ctx, rt.Pipeline, r)
	if err != nil {
		return nil, err
	}

	input := reflect.New(rt.input)
	if faults := bind(rt.params, r, input.Elem(), rt.op.IgnoreUnknownQuery); len(faults) > 0 {
		return nil, &fault.Error{Kind: fault.Invalid, Detail: faults[0].Name + " " + faults[0].Message, Fields: faults}
	}

	body, release, err := rt.read(ctx, w, r, input)
	defer release()

	if err != nil {
		return nil, err
	}

	project, err := rt.op.Access.authorize(ctx, rt.Pipeline)
	if err != nil {
		return nil, err
	}

	result, err := rt.execute(ctx, r, project, input, body)
	return result, rt.op.Access.explainInternal(ctx, rt.Pipeline, project, err)
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
		if _, err := rt.config.Lifecycle.GetSize(ctx, project.UUID); err != nil { // the operation may have freed space
			rt.config.Log.Warn("measure project database", "project", project.UUID, "error", err)
		}
	}

	return result, stripPrefix(err, prefix)
}

// checkQuota fails with TooLarge if the operation takes space in a database that exceeds its quota.
func (rt *route) checkQuota(project *tenant.Project, input any) error {
	if project != nil && project.OverQuota() && rt.op.Grows.holds(input) {
		return tenant.ErrOverQuota
	}
	return nil
}

// withFiles reports whether files accompany the JSON body.
func (rt *route) withFiles(r *http.Request) bool {
	media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	return rt.filesIndex != nil && err == nil && media == multipartType
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
	if rt.body == nil && rt.op.Body.begin == nil {
		return nil, release, nil
	}
	if r.Header.Get("Content-Encoding") != "" {
		return nil, release, fault.OnField(fault.Invalid, "Content-Encoding", "unknown", "is not supported")
	}
	if rt.op.Body.begin != nil {
		upload := input.Elem().FieldByIndex(rt.uploadIndex).Addr().Interface().(*Upload)
		return nil, release, rt.op.Body.begin(upload, w, r)
	}
	if rt.withFiles(r) {
		files := input.Elem().FieldByIndex(rt.filesIndex).Addr().Interface().(*AttachedFiles)
		return files.attach(ctx, rt, w, r)
	}

	media, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
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

	if rt.op.Normalize != nil {
		body, prefix = rt.op.Normalize(body)
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

	field := input.Elem().FieldByIndex(rt.bodyIndex)
	if err := json.Unmarshal(text, field.Addr().Interface()); err != nil {
		return prefix, err // the schema and the Go type disagree: a programming error
	}

	object, _ := body.(map[string]any)
	named, _ := object["projectUUID"].(string)
	if id := OptionalUUID(named); id.Valid && project != nil && id.UUID != project.UUID {
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
