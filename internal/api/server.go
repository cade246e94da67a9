// Package api is the platform API: the operations on users, organizations, projects, and a
// project's contents.
//
// Each operation is declared once, in the chapter's package and the entity's file. Package
// operation serves the requests and calls the operation's handler, which calls the package that
// owns the entity. Domain rules and SQL belong to those packages.
package api

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"sync"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/account"
	"github.com/socle-dev/socle/internal/api/accounts"
	"github.com/socle-dev/socle/internal/api/backups"
	"github.com/socle-dev/socle/internal/api/edgefunctions"
	"github.com/socle-dev/socle/internal/api/endusers"
	"github.com/socle-dev/socle/internal/api/files"
	"github.com/socle-dev/socle/internal/api/forms"
	"github.com/socle-dev/socle/internal/api/instance"
	"github.com/socle-dev/socle/internal/api/keys"
	"github.com/socle-dev/socle/internal/api/organizations"
	"github.com/socle-dev/socle/internal/api/projects"
	"github.com/socle-dev/socle/internal/api/rows"
	"github.com/socle-dev/socle/internal/api/schedules"
	"github.com/socle-dev/socle/internal/api/sql"
	"github.com/socle-dev/socle/internal/api/tables"
	"github.com/socle-dev/socle/internal/api/webhooks"
	"github.com/socle-dev/socle/internal/backup"
	"github.com/socle-dev/socle/internal/blob"
	"github.com/socle-dev/socle/internal/config"
	"github.com/socle-dev/socle/internal/enduser"
	"github.com/socle-dev/socle/internal/fair"
	"github.com/socle-dev/socle/internal/form"
	"github.com/socle-dev/socle/internal/function"
	"github.com/socle-dev/socle/internal/lifecycle"
	"github.com/socle-dev/socle/internal/migration"
	"github.com/socle-dev/socle/internal/object"
	"github.com/socle-dev/socle/internal/operation"
	"github.com/socle-dev/socle/internal/pgproxy"
	"github.com/socle-dev/socle/internal/platform"
	"github.com/socle-dev/socle/internal/projectdb"
	"github.com/socle-dev/socle/internal/queue"
	"github.com/socle-dev/socle/internal/realtimeapi"
	"github.com/socle-dev/socle/internal/requestlog"
	"github.com/socle-dev/socle/internal/schedule"
	"github.com/socle-dev/socle/internal/submission"
	"github.com/socle-dev/socle/internal/tablejob"
	"github.com/socle-dev/socle/internal/tus"
	"github.com/socle-dev/socle/internal/webhook"
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
	Proxy     *pgproxy.Proxy // proxy for PostgreSQL clients

	Submissions *submission.Service
	Migrations  *migration.Service
	EndUsers    *enduser.Service
	Schedules   *schedule.Service
	Webhooks    *webhook.Service
	Functions   *function.Service
	Realtime    *realtimeapi.Server
	Requests    *requestlog.Counter

	Bodies     *fair.Pool     // memory for the bodies in all requests in flight
	PublicURL  string         // without trailing slash
	AuditKey   []byte         // keys the audit log's entry hashes
	SigningKey []byte         // signs URLs
	AnswerKey  []byte         // seals responses stored for an Idempotency-Key
	Settings   []config.Shown // configuration that the server was started with
	Log        *slog.Logger

	// ClaimHolder returns the PID for the session that holds this server's claims, see
	// [platform.HoldClaims].
	ClaimHolder func() uint32

	// DescribeRows returns the OpenAPI document for a project's rows API.
	DescribeRows func(ctx context.Context, project uuid.UUID) ([]byte, error)
}

// Server is the platform API. It is safe for concurrent use.
type Server struct{ pipeline *operation.Pipeline }

// New returns the API with all operations, by chapter in the order in which users meet them:
// account, project, project contents, install.
func New(c Config) *Server {
	files := &files.Server{Accounts: c.Accounts, Blobs: c.Blobs, Cleaner: c.Cleaner, Platform: c.Platform,
		PublicURL: c.PublicURL, SigningKey: c.SigningKey, Variants: c.Variants}
	forms := &forms.Server{Cleaner: c.Cleaner, Platform: c.Platform, Submissions: c.Submissions}

	p := operation.New(operation.Config{Store: c.Platform, Projects: c.Projects, Lifecycle: c.Lifecycle,
		Bodies: c.Bodies, AuditKey: c.AuditKey, AnswerKey: c.AnswerKey, Log: c.Log, Bearer: c.Accounts.Authenticate,
		Respondent: forms.AuthenticateRespondent, Signer: files.AuthenticateSignature, AwaitBackup: c.Backups.Await,
		ClaimHolder: c.ClaimHolder, Examples: examples})

	operation.DescribeAs[form.Opt[string], string](p)
	operation.DescribeAs[form.Opt[bool], bool](p)
	operation.DescribeAs[form.Opt[int64], int64](p)
	operation.DescribeAs[form.Opt[[]string], []string](p)

	for _, chapter := range []interface{ Register(p *operation.Pipeline) }{
		&accounts.Server{Accounts: c.Accounts},
		&organizations.Server{Accounts: c.Accounts},
		&projects.Server{Accounts: c.Accounts, Backups: c.Backups, Lifecycle: c.Lifecycle, Platform: c.Platform,
			Realtime: c.Realtime, Requests: c.Requests},
		&tables.Server{TableJobs: c.TableJobs},
		&keys.Server{Platform: c.Platform, Projects: c.Projects},
		&endusers.Server{Accounts: c.Accounts, EndUsers: c.EndUsers},
		&rows.Server{Blobs: c.Blobs, DescribeRows: c.DescribeRows, Platform: c.Platform},
		&sql.Server{Accounts: c.Accounts, EndUsers: c.EndUsers, Migrations: c.Migrations, Platform: c.Platform,
			Proxy: c.Proxy},
		&schedules.Server{Schedules: c.Schedules},
		&edgefunctions.Server{Functions: c.Functions},
		files,
		forms,
		&webhooks.Server{Webhooks: c.Webhooks},
		&backups.Server{Backups: c.Backups, Platform: c.Platform},
		&instance.Server{Accounts: c.Accounts, Blobs: c.Blobs, Log: c.Log, Platform: c.Platform, Queue: c.Queue,
			Settings: c.Settings},
	} {
		chapter.Register(p)
	}
	p.Complete()

	return &Server{p}
}

// ServeHTTP serves a request for an operation.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if files.IsTus(r.URL.Path) {
		tus.OverrideMethod(r)
	}

	s.pipeline.ServeHTTP(w, r)
}

// Document returns the platform API's OpenAPI 3.1 document, indented. It generates the document on
// first use; all servers have the same.
func Document() []byte { return document() }

var document = sync.OnceValue(func() []byte { return New(Config{}).pipeline.Document() })

var errPanic = errors.New("panic")

// Serves reports whether there is an operation for a request's path, by any method.
func (s *Server) Serves(r *http.Request) bool { return s.pipeline.Serves(r) }

// ServePanic responds to a request whose operation panicked.
func (s *Server) ServePanic(w http.ResponseWriter, r *http.Request) {
	operation.WriteFailure(w, r, errPanic, []int{http.StatusInternalServerError})
}
