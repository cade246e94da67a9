// Package operation serves the operations of the platform API. An operation is a declaration
// ([Operation]), an input and a handler; the pipeline does everything around the handler. It
// authenticates and authorizes the caller, reads and validates parameters and body, replays
// requests with an Idempotency-Key, compares ETags, waits for backups, writes the envelope, and
// describes the operations in the OpenAPI document.
//
// Package api declares the operations. Only this package knows HTTP statuses, and only this one
// imports huma.
package operation

import (
	"context"
	"log/slog"
	"net/http"
	"path"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/account"
	"github.com/socle-dev/socle/internal/audit"
	"github.com/socle-dev/socle/internal/backup"
	"github.com/socle-dev/socle/internal/fair"
	"github.com/socle-dev/socle/internal/lifecycle"
	"github.com/socle-dev/socle/internal/platform"
	"github.com/socle-dev/socle/internal/projectdb"
)

// Config has the dependencies of a [Pipeline].
type Config struct {
	Store     Store
	Projects  *projectdb.Registry
	Lifecycle *lifecycle.Service
	Bodies    *fair.Pool // memory for all request bodies in flight
	AuditKey  []byte     // keys the audit log's entry hashes
	AnswerKey []byte     // seals responses stored for an Idempotency-Key
	Log       *slog.Logger

	// Examples has example values for the OpenAPI document, by member or parameter name, or by
	// schema and member names, as in Table.name.
	Examples map[string]any

	// Bearer identifies the caller by a bearer token, with their role in the scope.
	Bearer func(ctx context.Context, token string, scope account.Scope) (account.Caller, error)

	// Respondent admits a respondent to the project that owns the form in the path. ok is false if
	// the request has a member's token instead.
	Respondent func(ctx context.Context, r *http.Request) (c account.Caller, ok bool, err error)

	// Signer verifies the signature in the request's URL. It returns the user who signed it, and a
	// context with the URL's terms.
	Signer func(ctx context.Context, r *http.Request) (context.Context, account.Caller, error)

	// AwaitBackup returns when the backup that the request requires is completed. It fails with
	// Conflict, code backup_under_way, after the timeout.
	AwaitBackup func(ctx context.Context, d backup.DestructiveRequest, timeout <-chan time.Time) error

	// ClaimHolder returns the PID of the session that holds this server's claims, see
	// [platform.HoldClaims].
	ClaimHolder func() uint32
}

// Store is the part of [platform.Store] that the pipeline uses.
type Store interface {
	ProjectStatus(ctx context.Context, project uuid.UUID) (string, error)
	AuditPosition(ctx context.Context) (audit.Position, error)
	ClaimRequest(ctx context.Context, c platform.Claim) (answer []byte, err error)
	KeepAnswer(ctx context.Context, key []byte, status int, answer []byte) error
	ReleaseRequest(ctx context.Context, key []byte) error
	CheckRequestDone(ctx context.Context, auditKey string) error
}

// Pipeline serves the registered operations. It is safe for concurrent use once they are complete.
type Pipeline struct {
	config   Config
	decoding *fair.Pool // places for decoding large JSON bodies
	inFlight sync.Map   // Idempotency-Keys in flight on this server

	mux      *http.ServeMux
	openapi  *huma.OpenAPI
	registry huma.Registry
	routes   []*route
	chapter  string // chapter for the operations that are being registered
}

// New returns a pipeline without operations.
func New(c Config) *Pipeline {
	p := &Pipeline{config: c, decoding: newDecodings(), mux: http.NewServeMux()}
	p.openapi, p.registry = newOpenAPI()

	return p
}

// HasOperation reports whether an operation with an ID is registered.
func (p *Pipeline) HasOperation(id string) bool {
	return slices.ContainsFunc(p.routes, func(rt *route) bool { return rt.op.ID == id })
}

// HandlePreflight registers the response to CORS preflight requests for a path that pages from any
// origin may call with these methods.
func (p *Pipeline) HandlePreflight(path, methods string) {
	p.mux.Handle("OPTIONS "+path, preflight(methods))
}

// HandleFunc registers a handler, which is no operation, for an [http.ServeMux] pattern.
func (p *Pipeline) HandleFunc(pattern string, handler http.HandlerFunc) {
	p.mux.HandleFunc(pattern, handler)
}

// ServeHTTP dispatches a request to its operation. A request without one gets a failure envelope.
func (p *Pipeline) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	// ServeMux would redirect paths with empty or dotted segments, which name nothing.
	if name := r.URL.Path; (name != "/" && path.Clean(name) != strings.TrimSuffix(name, "/")) ||
		strings.ContainsRune(name, '\\') {
		RespondFailure(w, r, http.StatusBadRequest, "invalid_path", "the path has an empty or dotted segment")
		return
	}

	handler, ok := p.findHandler(r)
	if ok {
		p.mux.ServeHTTP(w, r)
		return
	}

	if allow := allowHeader(handler, r); allow != "" {
		w.Header().Set("Allow", allow)
		RespondFailure(w, r, http.StatusMethodNotAllowed, "method_not_allowed", "the path supports only "+allow)

		return
	}

	RespondFailure(w, r, http.StatusNotFound, "unknown_route", "the route does not exist")
}

// Serves reports whether the request's path has a handler, by any method.
func (p *Pipeline) Serves(r *http.Request) bool {
	handler, ok := p.findHandler(r)
	return ok || allowHeader(handler, r) != ""
}

// findHandler returns the request's handler. ok is false if ServeMux refuses or redirects the
// request itself.
func (p *Pipeline) findHandler(r *http.Request) (handler http.Handler, ok bool) {
	handler, pattern := p.mux.Handler(r)
	return handler, pattern != "" && reflect.TypeOf(handler) != redirectType
}

// redirectType is the handler type that ServeMux returns for a path that lacks a wildcard's
// trailing slash. Such a path names nothing here.
var redirectType = reflect.TypeOf(http.RedirectHandler("/", http.StatusTemporaryRedirect))

// allowHeader returns the Allow header in ServeMux's 405 response, or "" if it would respond 404.
func allowHeader(handler http.Handler, r *http.Request) string {
	probe := &headerRecorder{http.Header{}}
	handler.ServeHTTP(probe, r)

	return probe.Header().Get("Allow")
}

// headerRecorder is a ResponseWriter that records only headers.
type headerRecorder struct{ h http.Header }

func (w *headerRecorder) Header() http.Header         { return w.h }
func (w *headerRecorder) Write(b []byte) (int, error) { return len(b), nil }
func (w *headerRecorder) WriteHeader(int)             {}
