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

	// Of the request.

	Example            string // JSON body for the document; "": its required members
	Body               Body   // if not JSON alone
	MaxBody            int64  // bytes of a JSON body; 0: [maxBody]
	IgnoreUnknownQuery bool   // unknown query parameters are ignored

	ListOf  string            // list of the body of which one item may be the whole body; "": none
	Aliases map[string]string // other spellings of the body's members, and of its lists' items

	// Of the effect.

	Grows       Condition // refused while the project's database exceeds its quota
	Destructive Condition // may require a completed backup, see backupfirst.go

	// Of the response.

	Upgrade   string // protocol that the connection switches to, with status 101; "": none
	MediaType string // media type of a file; "": application/octet-stream
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

// WithMetadata returns an answer of content and metadata.
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
	chapter     string // chapter of the document
	status      int
	inputType   reflect.Type
	params      []param
	bodySchema  *huma.Schema // nil: no JSON body; of the list, if one item may be the whole body
	bodyIndex   []int
	shape       *shape // shape of the body, for the parser
	uploadIndex []int  // index of the field [Upload] in the input
	filesIndex  []int  // index of the field [AttachedFiles] in the input
	output      reflect.Type

	reader *route // GET route of the same path; nil if none

	run    func(ctx context.Context, p *projectdb.Project, input any) (any, error)
	exists func(ctx context.Context, p *projectdb.Project, input any) error // nil: no existence check
}

// Handle registers an operation outside of projects. exists fails if the operation's target does
// not exist. It runs only after the validation of the body has failed, since a missing target takes
// precedence over invalid fields. It may be nil.
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
	if op.Access.inProject && !op.Access.paused && slices.Contains(op.Errors, http.StatusNotFound) &&
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
