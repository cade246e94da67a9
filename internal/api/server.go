// Package api is the platform API: the operations on users, organizations, projects, and the
// contents of a project.
//
// Each operation is declared once, in the file of its entity. Package operation serves the requests
// and calls the operation's handler, which calls the package that owns the entity. Rules of a
// domain and SQL belong to those packages.
package api

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"sync"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/account"
	"github.com/socle-dev/socle/internal/backup"
	"github.com/socle-dev/socle/internal/blob"
	"github.com/socle-dev/socle/internal/config"
	"github.com/socle-dev/socle/internal/enduser"
	"github.com/socle-dev/socle/internal/fair"
	"github.com/socle-dev/socle/internal/lifecycle"
	"github.com/socle-dev/socle/internal/migration"
	"github.com/socle-dev/socle/internal/object"
	"github.com/socle-dev/socle/internal/operation"
	"github.com/socle-dev/socle/internal/pgproxy"
	"github.com/socle-dev/socle/internal/platform"
	"github.com/socle-dev/socle/internal/projectdb"
	"github.com/socle-dev/socle/internal/queue"
	"github.com/socle-dev/socle/internal/submission"
	"github.com/socle-dev/socle/internal/tablejob"
	"github.com/socle-dev/socle/internal/tus"
)

// Config has the dependencies and settings of the API.
type Config struct {
	Platform  *platform.Store
	Accounts  *account.Service
	Projects  *projectdb.Registry
	Blobs     *blob.Store
	Variants  *object.Variants
	Lifecycle *lifecycle.Service
	Queue     *queue.Queue
	Backups   *backup.Service
	Cleaner   *object.Cleaner
	TableJobs *tablejob.Service
	Proxy     *pgproxy.Proxy // proxy for clients of PostgreSQL's protocol

	Submissions *submission.Service
	Migrations  *migration.Service
	EndUsers    *enduser.Service

	Bodies     *fair.Pool     // memory for the bodies of all requests in flight
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
	platform  *platform.Store
	accounts  *account.Service
	projects  *projectdb.Registry
	blobs     *blob.Store
	variants  *object.Variants
	lifecycle *lifecycle.Service
	queue     *queue.Queue
	backups   *backup.Service
	cleaner   *object.Cleaner
	tableJobs *tablejob.Service
	proxy     *pgproxy.Proxy

	submissions *submission.Service
	migrations  *migration.Service
	endUsers    *enduser.Service

	publicURL  string
	signingKey []byte
	settings   []config.Shown
	log        *slog.Logger

	describeRows func(ctx context.Context, project uuid.UUID) ([]byte, error)

	pipeline *operation.Pipeline
}

// New returns the API with all operations.
func New(c Config) *Server {
	s := &Server{platform: c.Platform, accounts: c.Accounts, projects: c.Projects, blobs: c.Blobs, variants: c.Variants,
		lifecycle: c.Lifecycle, queue: c.Queue, backups: c.Backups, cleaner: c.Cleaner, tableJobs: c.TableJobs,
		proxy: c.Proxy, submissions: c.Submissions, migrations: c.Migrations, endUsers: c.EndUsers,
		publicURL: c.PublicURL, signingKey: c.SigningKey,
		settings: c.Settings, log: c.Log, describeRows: c.DescribeRows}

	s.pipeline = operation.New(operation.Config{Store: c.Platform, Projects: c.Projects, Lifecycle: c.Lifecycle,
		Bodies: c.Bodies, AuditKey: c.AuditKey, AnswerKey: c.AnswerKey, Log: c.Log, Bearer: s.authenticateBearer,
		Respondent: s.authenticateRespondent, Signer: s.authenticateSignature, AwaitBackup: c.Backups.Await,
		ClaimHolder: c.ClaimHolder, Examples: examples})

	s.describeTypes()
	for _, c := range s.chapters() {
		s.pipeline.Chapter(c.name, c.description+" [Rules](/docs?api=api#api/description/"+c.rules+").")
		for _, register := range c.entities {
			register()
		}
	}
	s.pipeline.Complete()

	return s
}

// ServeHTTP serves a request for an operation.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if isTus(r.URL.Path) {
		tus.OverrideMethod(r)
	}

	s.pipeline.ServeHTTP(w, r)
}

// Document returns the OpenAPI 3.1 document of the platform API, indented. It generates the
// document on first use; all servers have the same.
func Document() []byte { return document() }

var document = sync.OnceValue(func() []byte { return New(Config{}).pipeline.Document() })

var errPanic = errors.New("panic")

// ServePanic responds to the request of an operation that panicked.
func (s *Server) ServePanic(w http.ResponseWriter, r *http.Request) {
	operation.WriteFailure(w, r, errPanic, []int{http.StatusInternalServerError})
}
