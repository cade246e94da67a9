// Package api is the platform API: the operations on users, projects, and what belongs to a project.
//
// An operation is declared once, in the file of its entity, see [Operation]. A request goes through
// op.go (who asks, what is sent, where it acts, which rules it keeps) into the operation's handler, which calls
// the package that knows the entity. envelope.go writes the answer. No other package imports huma.
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
	"socle/internal/tenant"
	"socle/internal/token"
)

// Config is what the API works with.
type Config struct {
	Platform   *platform.Store
	Projects   *tenant.Registry
	Blobs      *blob.Store
	Passwords  *password.Hasher
	Keyring    *token.Keyring
	Lifecycle  tenant.Lifecycle
	Jobs       *job.Queue
	Bodies     *httpx.Budget  // memory of the bodies of all requests in flight
	PublicURL  string         // without a slash at its end
	AuditKey   []byte         // of the entries of the audit log
	SigningKey []byte         // of signed URLs
	AnswerKey  []byte         // seals the answers that are kept for an Idempotency-Key
	SetupToken string         // what makes the first user the administrator, from anywhere
	LinkKey    []byte         // from which the tokens of links in mails are computed
	RefreshKey []byte         // from which refresh tokens are computed
	FactorKey  []byte         // from which the keys are derived that seal second factors
	Settings   []config.Shown // that the server was started with
	RateLimit  bool
	Log        *slog.Logger

	ClaimHolder func() uint32 // PID of this server's session that holds its claims, see [platform.HoldClaims]

	// DescribeRows returns the OpenAPI document of a project's rows API.
	DescribeRows func(ctx context.Context, project uuid.UUID) ([]byte, error)
}

// Server is the platform API.
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
	rateLimit  bool
	bodies     *httpx.Budget
	decoding   chan struct{} // has an item for each large JSON body that is being decoded
	log        *slog.Logger

	claimHolder func() uint32
	inFlight    sync.Map // keys of the requests with an Idempotency-Key that are being worked on here

	describeRows func(ctx context.Context, project uuid.UUID) ([]byte, error)

	mux      *http.ServeMux
	openapi  *huma.OpenAPI
	registry huma.Registry
	routes   []*route
}

// New returns the API with all its operations.
func New(c Config) *Server {
	s := &Server{platform: c.Platform, projects: c.Projects, blobs: c.Blobs, passwords: c.Passwords,
		lifecycle: c.Lifecycle, jobs: c.Jobs,
		publicURL: c.PublicURL, auditKey: c.AuditKey, answerKey: c.AnswerKey, setupToken: c.SetupToken,
		settings: c.Settings, rateLimit: c.RateLimit, log: c.Log, describeRows: c.DescribeRows, bodies: c.Bodies,
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
	s.registerTableChanges()
	s.registerColumnChanges()
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
	s.registerFileChanges()
	s.registerSignedURLs()
	s.registerQuotas()
	s.registerTus()
	s.registerBackups()
	s.registerBackupChanges()
	s.registerBackupMoves()
	s.registerRestores()
	s.registerBackupSchedules()
	s.registerRestoreChanges()
	s.registerAudit()
	s.registerTypes()
	s.registerOrganizations()
	s.registerMembers()
	s.registerInvitations()
	s.registerAdministration()
	s.registerHealth()
	s.pair()

	return s
}

// SetKeyring replaces the keys that access tokens are signed and verified with.
func (s *Server) SetKeyring(k *token.Keyring) { s.keyring.Store(k) }

// JWKS returns the public keys of access tokens.
func (s *Server) JWKS() []byte { return s.keys().JWKS() }

func (s *Server) keys() *token.Keyring { return s.keyring.Load() }

// ServeHTTP answers any request: an operation's, or with an envelope that says that there is none.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	// A path with empty or dotted parts names nothing; ServeMux would answer with a redirect.
	if p := r.URL.Path; p != "/" && path.Clean(p) != strings.TrimSuffix(p, "/") || strings.ContainsRune(p, '\\') {
		Fail(w, r, http.StatusBadRequest, "invalid_path", "the path has an empty or a dotted part")
		return
	}

	handler, pattern := s.mux.Handler(r)
	if pattern != "" && reflect.TypeOf(handler) != redirecting {
		s.mux.ServeHTTP(w, r)
		return
	}

	if allow := allowed(handler, r); allow != "" {
		w.Header().Set("Allow", allow)
		Fail(w, r, http.StatusMethodNotAllowed, "method_not_allowed", "the path takes "+allow)

		return
	}

	Fail(w, r, http.StatusNotFound, "unknown_route", "there is no such route")
}

// redirecting is what ServeMux answers a path with that lacks nothing but the slash before a rest: here that names nothing.
var redirecting = reflect.TypeOf(http.RedirectHandler("/", http.StatusTemporaryRedirect))

// allowed returns the methods that ServeMux would name in a 405; "" if it would answer 404.
func allowed(handler http.Handler, r *http.Request) string {
	probe := &header{http.Header{}}
	handler.ServeHTTP(probe, r)

	return probe.Header().Get("Allow")
}

// header is a ResponseWriter that keeps the headers alone.
type header struct{ h http.Header }

func (w *header) Header() http.Header         { return w.h }
func (w *header) Write(b []byte) (int, error) { return len(b), nil }
func (w *header) WriteHeader(int)             {}

// Panicked answers for an operation that panicked.
func (s *Server) Panicked(w http.ResponseWriter, r *http.Request) {
	writeFailure(w, r, errPanic, []int{http.StatusInternalServerError})
}

// count counts an attempt of the kind that a limit names, by the client's network and by an account.
func (s *Server) count(ctx context.Context, byAddress, byAccount platform.Limit, account string) error {
	if err := s.countAddress(ctx, byAddress); err != nil || !s.rateLimit {
		return err
	}
	return s.platform.Attempt(ctx, byAccount, account)
}

// countAddress counts an attempt by the client's network alone.
func (s *Server) countAddress(ctx context.Context, l platform.Limit) error {
	if !s.rateLimit {
		return nil
	}
	return s.platform.Attempt(ctx, l, httpx.Network(httpx.From(ctx).Client))
}
