package operation

import (
	"context"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/projectdb"
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

	// Specified marks an operation whose failure statuses the specification fixes: it answers 500
	// where others answer 503.
	Specified bool

	// Request.

	Example            string // JSON body for the document; "": its required members
	Body               Body   // if not JSON alone
	MaxBody            int64  // bytes per JSON body; 0: [maxBody]
	IgnoreUnknownQuery bool   // unknown query parameters are ignored

	ListOf  string            // body member with a list, one item of which may be the whole body; "": none
	Aliases map[string]string // alternative spellings for members in the body and its lists' items

	// Effect.

	Grows       Condition // refused while the project's database exceeds its quota
	Destructive Condition // may require a completed backup, see backupfirst.go

	// Response.

	Upgrade   string // protocol that the connection switches to, with status 101; "": none
	MediaType string // media type for a file; "": application/octet-stream
	Ranges    bool   // the handler responds by [http.ServeContent]

	// Wrapped responds with an array that contains the envelope, as the specification requires for
	// the file list.
	Wrapped bool

	// Protocol sets every response's headers, for a protocol that the OpenAPI document omits.
	Protocol func(http.Header)
}

// DefaultTimeout is an operation's timeout unless it declares one.
const DefaultTimeout = 10 * time.Second

// Condition decides by a request's input. A nil Condition never holds.
type Condition func(input any) bool

// Always holds for every request.
func Always(any) bool { return true }

// When returns a condition on an input with type I.
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

// WithMetadata returns an answer with content and metadata.
func WithMetadata[C, M any](content C, metadata M) Answer[C, M] {
	return Answer[C, M]{Content: content, Metadata: metadata}
}

// Secret returns an answer that no cache may store.
func Secret[C, M any](content C, metadata M) Answer[C, M] {
	return Answer[C, M]{Content: content, Metadata: metadata, Header: http.Header{"Cache-Control": {"no-store"}}}
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
	chapter     string // chapter in the document
	status      int
	inputType   reflect.Type
	params      []param
	bodySchema  *huma.Schema // nil: no JSON body; the list's schema if one item may be the whole body
	bodyIndex   []int
	shape       *shape // body shape, for the parser
	uploadIndex []int  // field index of [Upload] in the input
	filesIndex  []int  // field index of [AttachedFiles] in the input
	output      reflect.Type

	reader *route // GET route with the same path; nil if none

	run    func(ctx context.Context, p *projectdb.Project, input any) (any, error)
	exists func(ctx context.Context, p *projectdb.Project, input any) error // nil: no existence check
}

// Handle registers an operation outside projects. exists fails if the operation's target does not
// exist. It runs only if the body is invalid, since a missing target takes precedence over invalid
// fields. It may be nil.
func Handle[I, O any](
	p *Pipeline, op Operation, handler func(context.Context, *I) (O, error), exists func(context.Context, *I) error,
) {
	var check func(context.Context, *projectdb.Project, any) error
	if exists != nil {
		check = func(ctx context.Context, _ *projectdb.Project, input any) error { return exists(ctx, input.(*I)) }
	}

	register[I, O](p, op, func(ctx context.Context, _ *projectdb.Project, input any) (any, error) {
		return handler(ctx, input.(*I))
	}, check)
}

// HandleInProject is [Handle] for an operation in a project, which op.Access defines.
func HandleInProject[I, O any](
	p *Pipeline, op Operation, handler func(context.Context, *projectdb.Project, *I) (O, error),
	exists func(context.Context, *projectdb.Project, *I) error,
) {
	var check func(context.Context, *projectdb.Project, any) error
	if exists != nil {
		check = func(ctx context.Context, project *projectdb.Project, input any) error {
			return exists(ctx, project, input.(*I))
		}
	}

	register[I, O](p, op, func(ctx context.Context, project *projectdb.Project, input any) (any, error) {
		return handler(ctx, project, input.(*I))
	}, check)
}

func register[I, O any](
	p *Pipeline, op Operation, run func(context.Context, *projectdb.Project, any) (any, error),
	exists func(context.Context, *projectdb.Project, any) error,
) {
	rt := &route{
		Pipeline:  p,
		op:        op,
		chapter:   p.chapter,
		status:    http.StatusOK,
		inputType: reflect.TypeFor[I](),
		output:    reflect.TypeFor[O](),
		run:       run,
		exists:    exists,
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
	if op.Access.inProject && !op.Access.allowPaused && slices.Contains(op.Errors, http.StatusNotFound) &&
		!slices.Contains(op.Errors, http.StatusConflict) {
		// for a paused project; specified operations omit 409
		rt.op.Errors = withStatus(op.Errors, http.StatusConflict)
	}
	if op.Grows != nil && slices.Contains(rt.op.Errors, http.StatusConflict) {
		// specified operations omit 413
		rt.op.Errors = withStatus(rt.op.Errors, http.StatusRequestEntityTooLarge)
	}
	if !op.Specified && slices.Contains(op.Errors, http.StatusInternalServerError) {
		rt.op.Errors = withStatus(rt.op.Errors, http.StatusServiceUnavailable)
	}
	if op.Timeout == 0 {
		rt.op.Timeout = DefaultTimeout
	}

	rt.params = paramsOf(p.registry, rt.inputType)
	rt.params = append(rt.params, op.Access.addedParams(p.registry)...)

	if f, ok := rt.inputType.FieldByName("Body"); ok {
		name := strings.ToUpper(op.ID[:1]) + op.ID[1:] + "Body"
		rt.bodySchema, rt.bodyIndex = p.registry.Schema(f.Type, true, name), f.Index
		rt.shape = shapeBuilder{p.registry, map[*huma.Schema]*shape{}}.build(rt.bodySchema)
		rt.shape.acceptForms(op.ListOf, op.Aliases)

		if slices.Contains(rt.op.Errors, http.StatusConflict) && rt.op.maxBodyBytes() > uncountedBody {
			rt.op.Errors = withStatus(rt.op.Errors, http.StatusTooManyRequests) // specified operations omit 429
		}
	}

	rt.uploadIndex, rt.filesIndex = indexOf[Upload](rt.inputType), indexOf[AttachedFiles](rt.inputType)
	if (rt.uploadIndex != nil) != (op.Body.begin != nil) || (rt.filesIndex != nil) != (op.Body.member != "") {
		panic("operation: " + op.ID + ": the input does not fit the declared body")
	}
	if len(op.Body.content) > 0 && slices.Contains(rt.op.Errors, http.StatusConflict) {
		rt.op.Errors = withStatus(rt.op.Errors, http.StatusRequestTimeout)
	}

	for _, condition := range []Condition{op.Grows, op.Destructive} {
		condition.holds(reflect.New(rt.inputType).Interface()) // a condition on another input panics here, not later
	}

	p.routes = append(p.routes, rt)
	p.mux.Handle(op.Method+" "+op.Path, rt)
}

// indexOf returns the index of the embedded field with type T, or nil.
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
