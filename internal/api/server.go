// Package api is the platform API: the operations on users, organizations, projects, and the
// contents of a project.
//
// Each operation is declared once, in the file of its entity. Package operation serves the requests
// and calls the operation's handler, which calls the package that owns the entity. Rules of a
// domain and SQL belong to those packages.
package api

import (
	"context"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"

	"github.com/google/uuid"

	"socle/internal/account"
	"socle/internal/backup"
	"socle/internal/blob"
	"socle/internal/config"
	"socle/internal/httpx"
	"socle/internal/object"
	"socle/internal/operation"
	"socle/internal/password"
	"socle/internal/platform"
	"socle/internal/queue"
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
	Queue      *queue.Queue
	Mails      *account.Mails
	Backups    *backup.Service
	Cleaner    *object.Cleaner
	TableJobs  *tenant.TableJobs
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
	RateLimit  bool
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
	queue      *queue.Queue
	mails      *account.Mails
	backups    *backup.Service
	cleaner    *object.Cleaner
	tableJobs  *tenant.TableJobs
	publicURL  string
	signingKey []byte
	setupToken string
	linkKey    []byte
	refreshKey []byte
	factorKey  []byte
	settings   []config.Shown
	rateLimit  bool
	log        *slog.Logger

	describeRows func(ctx context.Context, project uuid.UUID) ([]byte, error)

	pipeline *operation.Pipeline
}

// New returns the API with all operations.
func New(c Config) *Server {
	s := &Server{platform: c.Platform, projects: c.Projects, blobs: c.Blobs, passwords: c.Passwords,
		lifecycle: c.Lifecycle, queue: c.Queue, mails: c.Mails, backups: c.Backups, cleaner: c.Cleaner,
		tableJobs: c.TableJobs,
		publicURL: c.PublicURL, setupToken: c.SetupToken,
		settings: c.Settings, rateLimit: c.RateLimit, log: c.Log, describeRows: c.DescribeRows}

	s.linkKey, s.refreshKey, s.factorKey, s.signingKey = c.LinkKey, c.RefreshKey, c.FactorKey, c.SigningKey
	s.variants = object.NewVariants(c.Blobs, c.Cleaner.Discard)

	s.SetKeyring(c.Keyring)
	s.pipeline = operation.New(operation.Config{Store: c.Platform, Projects: c.Projects, Lifecycle: c.Lifecycle,
		Bodies: c.Bodies, AuditKey: c.AuditKey, AnswerKey: c.AnswerKey, Log: c.Log, Bearer: s.authenticateBearer,
		Respondent: s.authenticateRespondent, Signer: s.authenticateSignature, AwaitBackup: c.Backups.Await,
		ClaimHolder: c.ClaimHolder})

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
	s.pipeline.Complete()

	return s
}

// SetKeyring replaces the keys that sign and verify access tokens.
func (s *Server) SetKeyring(k *token.Keyring) { s.keyring.Store(k) }

// JWKS returns the public keys that verify access tokens.
func (s *Server) JWKS() []byte { return s.keys().JWKS() }

func (s *Server) keys() *token.Keyring { return s.keyring.Load() }

// ServeHTTP serves a request for an operation.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.pipeline.ServeHTTP(w, r) }

// Document returns the OpenAPI 3.1 document of the platform API, indented. It generates the
// document on first use; all servers have the same.
func Document() []byte { return document() }

var document = sync.OnceValue(func() []byte { return New(Config{}).pipeline.Document() })

// ServePanic responds to the request of an operation that panicked.
func (s *Server) ServePanic(w http.ResponseWriter, r *http.Request) {
	operation.WriteFailure(w, r, errPanic, []int{http.StatusInternalServerError})
}

// countAttempt counts an attempt against two limits: of the client's network and of the account.
func (s *Server) countAttempt(ctx context.Context, networkLimit, accountLimit platform.Limit, account string) error {
	if err := s.countNetworkAttempt(ctx, networkLimit); err != nil || !s.rateLimit {
		return err
	}
	return s.platform.CountAttempt(ctx, accountLimit, account)
}

// countNetworkAttempt counts an attempt against a limit of the client's network.
func (s *Server) countNetworkAttempt(ctx context.Context, l platform.Limit) error {
	if !s.rateLimit {
		return nil
	}
	return s.platform.CountAttempt(ctx, l, httpx.Network(httpx.From(ctx).Client))
}
