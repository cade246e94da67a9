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

// Operation declares an operation once. Its route, its place in the OpenAPI document, who may call it,
// how its input is judged and with which statuses it fails follow from here.
type Operation struct {
	ID      string // camelCase verb and noun, the handler's name
	Method  string
	Path    string
	Summary string
	Notes   string // what a user has to know beyond the summary, in Markdown
	Access  Access
	Errors  []int // the failure statuses, closed: a failure is written with one of these
	// the answer is an array that holds the envelope, as the specification has it for the list of files
	Wrapped bool
	Timeout time.Duration // 0 means usual
	// sets headers of every answer, by a protocol of its own that the OpenAPI document leaves out
	Protocol func(http.Header)
	Success  int // 0 means 201 for POST, which creates, and 200 for all else

	Grows       bool // it is refused while the project's database has more bytes than it may
	Destructive bool // a backup may have to be completed before it, see destructive.go
}

// The failure statuses that operations share. The specification's ten closed lists are reads, writes and
// their likes without 422; all other operations answer by their nature.
var (
	specified         = []int{400, 401, 500}
	specifiedWithBody = []int{400, 401, 422, 500}
	reading           = []int{400, 401, 403, 404, 500}
	creating          = []int{400, 401, 403, 409, 422, 500}
	looking           = []int{400, 401, 404, 500}                // what every member may read
	shaping           = []int{400, 401, 403, 404, 409, 422, 500} // the structure of a project's database
	unshaping         = []int{400, 401, 403, 404, 409, 500}
)

const (
	usual   = 10 * time.Second // what an operation may take
	lasting = 30 * time.Second // what one that changes a database's structure may take
)

// Answer is the result of an operation that says more than its content. An operation with nothing to
// add returns the content itself.
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

type answer interface {
	parts() (content, metadata any, header http.Header)
	types() (content, metadata reflect.Type)
}

// ProjectInBody is embedded in a body that may name the project once more.
type ProjectInBody struct {
	ProjectUUID *uuid.UUID `json:"projectUUID,omitempty" format:"uuid" doc:"If given, the project that the request acts in."`
}

func (b ProjectInBody) project() *uuid.UUID { return b.ProjectUUID }

// uploading is an input that embeds [Upload].
type uploading interface {
	begin(w http.ResponseWriter, r *http.Request) error
}

// attaching is an input that embeds [Attached].
type attaching interface {
	attach(ctx context.Context, rt *route, w http.ResponseWriter, r *http.Request) (body any, give func(), err error)
}

// normalizer is a body that takes more than one form. normalize brings a value into the form that the schema describes;
// prefix is what that adds in front of the client's field names.
type normalizer interface {
	normalize(v any) (normal any, prefix string)
}

// route is an operation with all that was derived from it.
type route struct {
	*Server
	op       Operation
	status   int
	input    reflect.Type
	params   []param
	body     *huma.Schema // nil: no JSON body
	bodyAt   []int
	shape    *shape // of the body, as it is read
	upload   bool
	sent     bool // a file is the body itself
	attached bool // files may come with the JSON body
	output   reflect.Type

	twin *route // reads what this one changes; nil if none does

	run      func(ctx context.Context, p *tenant.Project, input any) (any, error)
	existing func(ctx context.Context, p *tenant.Project, input any) error // nil: nothing to look for
}

// open registers an operation that needs no project.
func open[I, O any](s *Server, op Operation, handler func(context.Context, *I) (O, error)) {
	register[I, O](s, op, func(ctx context.Context, _ *tenant.Project, input any) (any, error) {
		return handler(ctx, input.(*I))
	}, nil)
}

// openChecked is open for an operation whose target must be looked at before the rules of its fields.
func openChecked[I, O any](
	s *Server, op Operation, handler func(context.Context, *I) (O, error), existing func(context.Context, *I) error,
) {
	register[I, O](s, op, func(ctx context.Context, _ *tenant.Project, input any) (any, error) {
		return handler(ctx, input.(*I))
	}, func(ctx context.Context, _ *tenant.Project, input any) error { return existing(ctx, input.(*I)) })
}

// within registers an operation that acts in a project: op.Access says how the request names it and
// what role the caller needs there. existing fails if what the operation acts on is not there; it is asked only when
// a rule of the body is broken, since that a thing is missing comes before what is wrong with the fields. It may be nil.
func within[I, O any](
	s *Server, op Operation, handler func(context.Context, *tenant.Project, *I) (O, error),
	existing func(context.Context, *tenant.Project, *I) error,
) {
	var look func(context.Context, *tenant.Project, any) error
	if existing != nil {
		look = func(ctx context.Context, p *tenant.Project, input any) error { return existing(ctx, p, input.(*I)) }
	}

	register[I, O](s, op, func(ctx context.Context, p *tenant.Project, input any) (any, error) {
		return handler(ctx, p, input.(*I))
	}, look)
}

func register[I, O any](
	s *Server, op Operation, run func(context.Context, *tenant.Project, any) (any, error),
	existing func(context.Context, *tenant.Project, any) error,
) {
	rt := &route{
		Server:   s,
		op:       op,
		status:   http.StatusOK,
		input:    reflect.TypeFor[I](),
		output:   reflect.TypeFor[O](),
		run:      run,
		existing: existing,
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
	if op.Access.inProject() && !op.Access.paused && slices.Contains(op.Errors, http.StatusNotFound) &&
		!slices.Contains(op.Errors, http.StatusConflict) {
		// the project is paused; the specified operations know no 409
		rt.op.Errors = withStatus(op.Errors, http.StatusConflict)
	}
	if op.Grows && slices.Contains(rt.op.Errors, http.StatusConflict) {
		// the specified operations know no 413 either
		rt.op.Errors = withStatus(rt.op.Errors, http.StatusRequestEntityTooLarge)
	}
	if op.Timeout == 0 {
		rt.op.Timeout = usual
	}

	rt.params = paramsOf(s.registry, rt.input)
	rt.params = append(rt.params, op.Access.params(s.registry)...)

	if f, ok := rt.input.FieldByName("Body"); ok {
		rt.body, rt.bodyAt = s.registry.Schema(f.Type, true, strings.ToUpper(op.ID[:1])+op.ID[1:]+"Body"), f.Index
		made := shapes{s.registry, map[*huma.Schema]*shape{}}
		if _, ok := reflect.New(f.Type).Interface().(normalizer); ok {
			rt.shape = made.normalized(rt.body)
		} else {
			rt.shape = made.of(rt.body)
		}

		if slices.Contains(rt.op.Errors, http.StatusConflict) && rt.op.mostBody() > bodyAllowance {
			rt.op.Errors = withStatus(rt.op.Errors, http.StatusTooManyRequests) // nor 429
		}
	}

	_, rt.upload = reflect.New(rt.input).Interface().(uploading)
	_, rt.sent = reflect.New(rt.input).Interface().(sending)
	_, rt.attached = reflect.New(rt.input).Interface().(attaching)
	if (rt.upload || rt.sent || rt.attached) && slices.Contains(rt.op.Errors, http.StatusConflict) {
		rt.op.Errors = withStatus(rt.op.Errors, http.StatusRequestTimeout)
	}

	s.routes = append(s.routes, rt)
	s.mux.Handle(op.Method+" "+op.Path, rt)

	if op.Access.by == byVisitor {
		s.mux.Handle("OPTIONS "+op.Path, preflight(op.Method))
	}
}

// withStatus returns a list of failure statuses with one that it may have already.
func withStatus(list []int, status int) []int {
	if slices.Contains(list, status) {
		return list
	}

	list = append(slices.Clone(list), status)
	slices.Sort(list)

	return list
}

// ServeHTTP takes a request through its stations: who asks, what is sent, where it acts, whether
// it keeps the rules, and what it does.
func (rt *route) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	httpx.From(r.Context()).Route = rt.op.Method + " " + rt.op.Path

	if rt.op.Access.by == byVisitor || rt.op.Access.signed {
		fromAnywhere(w.Header())
	}
	if rt.op.Protocol != nil {
		rt.op.Protocol(w.Header())
	}
	if rt.op.Destructive {
		rt.staying(w)
	}

	ctx, cancel := r.Context(), context.CancelFunc(func() {})
	if !rt.upload && !rt.sent && !rt.withFiles(r) && rt.op.Timeout > 0 {
		ctx, cancel = context.WithTimeout(ctx, rt.op.Timeout)
	}

	defer cancel()

	result, err := rt.serve(ctx, w, r)
	if err != nil {
		if ctx.Err() != nil && errors.Is(err, ctx.Err()) && fault.Of(err).Code != pg.OutcomeUnknown {
			err = fault.New(fault.Unavailable, "the request took too long").Because(err)
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

	body, give, err := rt.read(ctx, w, r, input)
	defer give()

	if err != nil {
		return nil, err
	}

	project, err := rt.op.Access.enter(ctx, rt.Server)
	if err != nil {
		return nil, err
	}

	result, err := rt.act(ctx, r, project, input, body)
	return result, rt.op.Access.overtaken(ctx, rt.Server, project, err)
}

// act judges the body and runs the operation.
func (rt *route) act(
	ctx context.Context, r *http.Request, project *tenant.Project, input reflect.Value, body any,
) (any, error) {
	prefix, err := rt.fill(input, body, project)
	if err != nil {
		if rt.existing != nil {
			if missing := rt.existing(ctx, project, input.Interface()); missing != nil {
				return nil, missing
			}
		}

		return nil, named(err, prefix)
	}

	ctx = rt.noted(ctx, r, body)
	result, err := rt.once(ctx, r, project, input.Interface(), body, func(ctx context.Context) (any, error) {
		if err := rt.fits(project, input.Interface()); err != nil {
			return nil, err
		}

		return rt.backUpFirst(ctx, r, project, input.Interface(), body, func(ctx context.Context) (any, error) {
			return rt.ifMatch(ctx, r, project, func(ctx context.Context) (any, error) {
				return rt.run(ctx, project, input.Interface())
			})
		})
	})
	if err == nil && project != nil && project.Full() && !reads(rt.op.Method) {
		if _, err := rt.lifecycle.GetSize(ctx, project.UUID); err != nil { // it may have made room
			rt.log.Warn("measure a project's database", "project", project.UUID, "error", err)
		}
	}

	return result, named(err, prefix)
}

// slim is an input of an operation that Grows that may ask for something that takes no room.
type slim interface{ slim() bool }

// fits fails with TooLarge if the operation takes room in the project's database and that has none.
func (rt *route) fits(project *tenant.Project, input any) error {
	if s, ok := input.(slim); !rt.op.Grows || !project.Full() || ok && s.slim() {
		return nil
	}
	return tenant.ErrFull
}

// withFiles reports whether files come with the JSON body.
func (rt *route) withFiles(r *http.Request) bool {
	media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	return rt.attached && err == nil && media == "multipart/form-data"
}

// named gives the fields at fault the names that the client knows them by, without what a normalizer added.
func named(err error, prefix string) error {
	e, ok := errors.AsType[*fault.Error](err)
	if !ok || prefix == "" {
		return err
	}

	renamed := *e
	renamed.Detail = strings.ReplaceAll(e.Detail, prefix, "")
	renamed.Fields = slices.Clone(e.Fields)
	for i, f := range renamed.Fields {
		renamed.Fields[i].Name = strings.TrimPrefix(f.Name, prefix)
	}

	return &renamed
}

// read reads the body as far as its form goes: JSON, or the beginning of a multipart body. What it takes of the budget for bodies is
// given back by give, which is never nil.
func (rt *route) read(
	ctx context.Context, w http.ResponseWriter, r *http.Request, input reflect.Value,
) (body any, give func(), err error) {
	give = nothingTaken
	if rt.body == nil && !rt.upload && !rt.sent {
		return nil, give, nil
	}
	if r.Header.Get("Content-Encoding") != "" {
		return nil, give, fault.OnField(fault.Invalid, "Content-Encoding", "unknown", "is not taken")
	}
	if rt.sent {
		return nil, give, input.Interface().(sending).send(w, r)
	}

	media, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if rt.upload {
		if raw, ok := input.Interface().(interface {
			beginRaw(w http.ResponseWriter, r *http.Request, media string) error
		}); ok && err == nil && media != "multipart/form-data" {
			return nil, give, raw.beginRaw(w, r, media)
		}
		if err != nil || media != "multipart/form-data" || len(params["boundary"]) > 70 {
			return nil, give, fault.OnField(fault.Invalid, "Content-Type", "unknown", "must be multipart/form-data")
		}

		return nil, give, input.Interface().(uploading).begin(w, r)
	}

	if rt.withFiles(r) {
		return input.Interface().(attaching).attach(ctx, rt, w, r)
	}

	// What curl says when it is told nothing is taken for JSON, if it is JSON.
	if err != nil || media != "application/json" && media != "application/x-www-form-urlencoded" {
		return nil, give, fault.OnField(fault.Invalid, "Content-Type", "unknown", "must be application/json")
	}
	if charset := params["charset"]; charset != "" && !strings.EqualFold(charset, "utf-8") {
		return nil, give, fault.OnField(fault.Invalid, "Content-Type", "unknown", "must be in UTF-8")
	}

	return rt.readJSON(ctx, w, r)
}

// fill judges a body by its schema and reads it into the input. It returns what was put in front of the client's field names.
func (rt *route) fill(input reflect.Value, body any, project *tenant.Project) (prefix string, err error) {
	if rt.body == nil {
		return "", nil
	}

	field := input.Elem().FieldByIndex(rt.bodyAt)
	if n, ok := field.Addr().Interface().(normalizer); ok {
		body, prefix = n.normalize(body)
	}

	check := rules{registry: rt.registry}
	check.check("", rt.body, body)

	if len(check.faults) > 0 {
		return prefix, unprocessable(check.faults)
	}

	text, err := json.Marshal(body, numbers)
	if err != nil {
		return prefix, err
	}

	if err := json.Unmarshal(text, field.Addr().Interface()); err != nil {
		return prefix, err // what keeps the rules fits the type, or the rules are wrong
	}

	b, ok := field.Interface().(interface{ project() *uuid.UUID })
	if ok && b.project() != nil && project != nil && *b.project() != project.UUID {
		return prefix, fault.OnField(fault.Unprocessable, "projectUUID", "mismatch",
			"must be the project that the request acts in")
	}

	return prefix, nil
}

// unprocessable returns the failure of the fields of a body.
func unprocessable(faults []fault.Field) error {
	return &fault.Error{Kind: fault.Unprocessable, Detail: faults[0].Name + " " + faults[0].Message, Fields: faults}
}

// write answers with a result.
func (rt *route) write(w http.ResponseWriter, r *http.Request, result any) {
	if h, ok := result.(http.Handler); ok { // a file, or an answer that was kept
		h.ServeHTTP(w, r)
		return
	}

	answer := rt.render(result)
	if reads(r.Method) {
		tag := tagOf(answer.Body)
		w.Header().Set("ETag", tag)

		if matches(r.Header.Values("If-None-Match"), tag, true) {
			w.WriteHeader(http.StatusNotModified)
			return
		}
	}

	answer.ServeHTTP(w, r)
}

// render makes the answer of a result.
func (rt *route) render(result any) rendered {
	if d, ok := result.(plainJSON); ok {
		return rendered{Status: rt.status, Header: http.Header{}, Body: d}
	}

	e := envelope{Content: result, Errors: []string{}, Metadata: struct{}{}, Success: true}
	header := http.Header{}
	if a, ok := result.(answer); ok {
		e.Content, e.Metadata, header = a.parts()
	}

	if rt.op.Wrapped {
		return rendered{Status: rt.status, Header: header, Body: encode([]envelope{e})}
	}

	return rendered{Status: rt.status, Header: header, Body: encode(e)}
}
