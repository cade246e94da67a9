// Package api is the platform API: the operations on users, organizations, projects, and the
// contents of a project.
//
// Each operation is declared once, in the file of its entity, see [Operation]. A request passes
// through the stages of op.go (authentication, parameters, body, authorization, validation) to the
// operation's handler, which calls the package that owns the entity. envelope.go writes the
// response. Rules of a domain and SQL belong to those packages. No other package imports huma.
package api

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"path"
	"reflect"
	"strings"
	"sync"

	"github.com/danielgtaylor/huma/v2"
	"github.com/google/uuid"

	"socle/internal/account"
	"socle/internal/blob"
	"socle/internal/config"
	"socle/internal/httpx"
	"socle/internal/job"
	"socle/internal/object"
	"socle/internal/platform"
	"socle/internal/tenant"
)

// Config has the dependencies and settings of the API.
type Config struct {
	Platform   *platform.Store
	Accounts   *account.Service
	Projects   *tenant.Registry
	Blobs      *blob.Store
	Lifecycle  tenant.Lifecycle
	Jobs       *job.Queue
	Bodies     *httpx.Budget  // memory for the bodies of all requests in flight
	PublicURL  string         // without trailing slash
	AuditKey   []byte         // keys the audit log's entry hashes
	SigningKey []byte         // signs URLs
	AnswerKey  []byte         // seals responses stored for an Idempotency-Key
	Settings   []config.Shown // configuration that the server was started with
	Log        *slog.Logger

	// ClaimHolder returns the PID of the session that holds this server's claims, see
	// [platform.HoldClaims].
	ClaimHolder func() uint32

	// DescribeRows returns the OpenAPI document of a project's rows API.
	DescribeRows func(ctx context.Context, project uuid.UUID) ([]byte, error)
}

// Server is the platform API. It is safe for concurrent use.
type Server struct {
	platform   *platform.Store
	accounts   *account.Service
	projects   *tenant.Registry
	blobs      *blob.Store
	variants   *object.Variants
	lifecycle  tenant.Lifecycle
	jobs       *job.Queue
	publicURL  string
	auditKey   []byte
	answerKey  []byte
	signingKey []byte
	settings   []config.Shown
	bodies     *httpx.Budget
	decoding   chan struct{} // semaphore for decoding large JSON bodies
	log        *slog.Logger

	claimHolder func() uint32
	inFlight    sync.Map // Idempotency-Keys of requests in flight on this server

	describeRows func(ctx context.Context, project uuid.UUID) ([]byte, error)

	mux      *http.ServeMux
	openapi  *huma.OpenAPI
	registry huma.Registry
	routes   []*route
}

// New returns the API with all operations.
func New(c Config) *Server {
	s := &Server{platform: c.Platform, accounts: c.Accounts, projects: c.Projects, blobs: c.Blobs,
		lifecycle: c.Lifecycle, jobs: c.Jobs,
		publicURL: c.PublicURL, auditKey: c.AuditKey, answerKey: c.AnswerKey, signingKey: c.SigningKey,
		settings: c.Settings, log: c.Log, describeRows: c.DescribeRows, bodies: c.Bodies,
		decoding: make(chan struct{}, maxDecodings), mux: http.NewServeMux()}

	s.variants = object.NewVariants(c.Blobs, func(ctx context.Context, project uuid.UUID) {
		s.jobs.Discard(ctx, project)
	})

	s.claimHolder = c.ClaimHolder

	s.openapi, s.registry = newOpenAPI()
	s.registerUsers()
	s.registerSessions()
	s.registerPasswords()
	s.registerAccounts()
	s.registerTokens()
	s.registerFactors()
	s.registerProjects()
	s.registerRequests()
	s.registerStatistics()
	s.registerKeys()
	s.registerJWTKeys()
	s.registerTables()
	s.registerColumns()
	s.registerIndexes()
	s.registerCompactions()
	s.registerConstraints()
	s.registerPolicies()
	s.registerGrants()
	s.registerEnums()
	s.registerExtensions()
	s.registerLint()
	s.registerFunctions()
	s.registerTriggers()
	s.registerSQL()
	s.registerTransfers()
	s.registerForms()
	s.registerFields()
	s.registerSubmissions()
	s.registerResponses()
	s.registerContainers()
	s.registerFiles()
	s.registerSignedURLs()
	s.registerQuotas()
	s.registerTus()
	s.registerBackups()
	s.registerBackupArchives()
	s.registerRestores()
	s.registerAudit()
	s.registerTypes()
	s.registerOrganizations()
	s.registerMembers()
	s.registerInvitations()
	s.registerAdministration()
	s.registerHealth()
	s.linkReaders()

	return s
}

// ServeHTTP dispatches a request to its operation. A request without one gets a failure envelope.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	// ServeMux would redirect paths with empty or dotted segments, which name nothing.
	if p := r.URL.Path; (p != "/" && path.Clean(p) != strings.TrimSuffix(p, "/")) || strings.ContainsRune(p, '\\') {
		RespondFailure(w, r, http.StatusBadRequest, "invalid_path", "the path has an empty or dotted segment")
		return
	}

	handler, pattern := s.mux.Handler(r)
	if pattern != "" && reflect.TypeOf(handler) != redirectType {
		s.mux.ServeHTTP(w, r)
		return
	}

	if allow := allowed(handler, r); allow != "" {
		w.Header().Set("Allow", allow)
		RespondFailure(w, r, http.StatusMethodNotAllowed, "method_not_allowed", "the path supports only "+allow)

		return
	}

	RespondFailure(w, r, http.StatusNotFound, "unknown_route", "the route does not exist")
}

// redirectType is the type of the handler that ServeMux returns for a path that lacks the trailing
// slash of a wildcard. Such a path names nothing here.
var redirectType = reflect.TypeOf(http.RedirectHandler("/", http.StatusTemporaryRedirect))

// allowed returns the Allow header of a 405 response of ServeMux, or "" if it would respond 404.
func allowed(handler http.Handler, r *http.Request) string {
	probe := &headerRecorder{http.Header{}}
	handler.ServeHTTP(probe, r)

	return probe.Header().Get("Allow")
}

// headerRecorder is a ResponseWriter that records only headers.
type headerRecorder struct{ h http.Header }

func (w *headerRecorder) Header() http.Header         { return w.h }
func (w *headerRecorder) Write(b []byte) (int, error) { return len(b), nil }
func (w *headerRecorder) WriteHeader(int)             {}

var errPanic = errors.New("panic")

// ServePanic responds to the request of an operation that panicked.
func (s *Server) ServePanic(w http.ResponseWriter, r *http.Request) {
	writeFailure(w, r, errPanic, []int{http.StatusInternalServerError})
}
