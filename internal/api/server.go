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
	"log/slog"
	"net/http"
	"path"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/danielgtaylor/huma/v2"
	"github.com/google/uuid"

	"socle/internal/blob"
	"socle/internal/config"
	"socle/internal/httpx"
	"socle/internal/job"
	"socle/internal/object"
	"socle/internal/password"
	"socle/internal/platform"
	"socle/internal/ratelimit"
	"socle/internal/tenant"
	"socle/internal/token"
)

// Config has the dependencies and settings of the API.
type Config struct {
	Platform   *platform.Store
	Projects   *tenant.Registry
	Blobs      *blob.Store
	Passwords  *password.Hasher
	Keyring    *token.Keyring
	Lifecycle  tenant.Lifecycle
	Jobs       *job.Queue
	Bodies     *httpx.Budget  // memory for the bodies of all requests in flight
	PublicURL  string         // without trailing slash
	AuditKey   []byte         // keys the audit log's entry hashes
	SigningKey []byte         // signs URLs
	AnswerKey  []byte         // seals responses stored for an Idempotency-Key
	SetupToken string         // lets any client create the first user as administrator
	LinkKey    []byte         // derives the tokens of mailed links
	RefreshKey []byte         // derives refresh tokens
	FactorKey  []byte         // derives the keys that seal second factors
	Settings   []config.Shown // configuration that the server was started with
	Attempts   ratelimit.Attempts
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
	projects   *tenant.Registry
	blobs      *blob.Store
	variants   *object.Variants
	passwords  *password.Hasher
	keyring    atomic.Pointer[token.Keyring]
	lifecycle  tenant.Lifecycle
	jobs       *job.Queue
	publicURL  string
	auditKey   []byte
	answerKey  []byte
	signingKey []byte
	setupToken string
	linkKey    []byte
	refreshKey []byte
	factorKey  []byte
	settings   []config.Shown
	attempts   ratelimit.Attempts
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
	s := &Server{platform: c.Platform, projects: c.Projects, blobs: c.Blobs, passwords: c.Passwords,
		lifecycle: c.Lifecycle, jobs: c.Jobs,
		publicURL: c.PublicURL, auditKey: c.AuditKey, answerKey: c.AnswerKey, setupToken: c.SetupToken,
		settings: c.Settings, attempts: c.Attempts, log: c.Log, describeRows: c.DescribeRows, bodies: c.Bodies,
		decoding: make(chan struct{}, maxDecodings), mux: http.NewServeMux()}

	s.linkKey, s.refreshKey, s.factorKey, s.signingKey = c.LinkKey, c.RefreshKey, c.FactorKey, c.SigningKey
	s.variants = object.NewVariants(c.Blobs, func(ctx context.Context, project uuid.UUID) {
		s.jobs.Discard(ctx, project)
	})

	s.claimHolder = c.ClaimHolder

	s.SetKeyring(c.Keyring)
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

// SetKeyring replaces the keys that sign and verify access tokens.
func (s *Server) SetKeyring(k *token.Keyring) { s.keyring.Store(k) }

// JWKS returns the public keys that verify access tokens.
func (s *Server) JWKS() []byte { return s.keys().JWKS() }

func (s *Server) keys() *token.Keyring { return s.keyring.Load() }

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

// ServePanic responds to the request of an operation that panicked.
func (s *Server) ServePanic(w http.ResponseWriter, r *http.Request) {
	writeFailure(w, r, errPanic, []int{http.StatusInternalServerError})
}

// countAttempt counts an attempt against two limits: of the client's network and of the account.
func (s *Server) countAttempt(ctx context.Context, networkLimit, accountLimit ratelimit.Limit, account string) error {
	if err := s.attempts.Count(ctx, networkLimit, networkOf(ctx)); err != nil {
		return err
	}
	return s.attempts.Count(ctx, accountLimit, account)
}
