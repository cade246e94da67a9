package sql

import (
	"context"
	"net/http"
	"time"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/account"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/httpx"
	"github.com/socle-dev/socle/internal/operation"
	"github.com/socle-dev/socle/internal/pgproxy"
	"github.com/socle-dev/socle/internal/pgwire"
	"github.com/socle-dev/socle/internal/platform"
	"github.com/socle-dev/socle/internal/projectdb"
)

func (s *Server) registerDatabase(p *operation.Pipeline) {
	operation.HandleInProject(p, connectDatabase, s.connectDatabase, nil)
	operation.HandleInProject(p, createDatabaseCredential, s.createDatabaseCredential, nil)
	operation.HandleInProject(p, listDatabaseCredentials, s.listDatabaseCredentials, nil)
	operation.HandleInProject(p, deleteDatabaseCredential, s.deleteDatabaseCredential, nil)
}

var connectDatabase = operation.Operation{
	ID: "connectDatabase", Method: "GET",
	Path: "/projects/{projectUUID}/database/connect", Summary: "Connect to a project's database",
	Access: operation.ProjectInPath(account.Admin), Errors: []int{400, 401, 403, 404, 409, 429, 500},
	Success: http.StatusSwitchingProtocols, Upgrade: pgwire.TunnelProtocol,
	Notes: "Upgrades the connection to PostgreSQL's protocol, from the client's startup packet on, for a session of " +
		"the project's owner. The user and the database of the packet do not matter, and no password is asked for. " +
		"Both sides send their bytes in frames: a length in four bytes, big endian, and that many bytes. An empty " +
		"frame is a heartbeat. Each side sends a frame every 15 seconds, and gives up after 45 seconds without one. " +
		"`socle db proxy` and `socle db psql` use this.\n\n" +
		"The session ends with the connection, when the caller loses the right to it, and when the project is " +
		"paused, deleted or restored. It is recorded in the audit log when it begins and when it ends.",
}

type connectDatabaseInput struct {
	Project uuid.UUID `path:"projectUUID" format:"uuid"`
	Upgrade string    `header:"Upgrade" doc:"socle-postgres/1"`
}

func (s *Server) connectDatabase(
	ctx context.Context, p *projectdb.Project, in *connectDatabaseInput,
) (http.Handler, error) {
	if in.Upgrade != pgwire.TunnelProtocol {
		return nil, fault.OnField(fault.Invalid, "Upgrade", "unknown", "must be "+pgwire.TunnelProtocol)
	}

	lease, err := s.Proxy.Admit(ctx, p.UUID)
	if err != nil {
		return nil, err
	}

	client := pgproxy.Client{Project: p.UUID, Entry: operation.AuditEntry(ctx)}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		client.Entry.Target = r.URL.Path
		client.Check = s.checkAccess(operation.Caller(ctx), r, p.UUID)

		conn, err := httpx.Upgrade(w, pgwire.TunnelProtocol)
		if err != nil {
			lease.Release()
			httpx.From(r.Context()).Err = err

			return
		}

		s.Proxy.ServeTunnel(conn, client, lease)
	}), nil
}

// checkAccess returns a function that fails once a request's caller may no longer connect to a
// project's database.
func (s *Server) checkAccess(c account.Caller, r *http.Request, project uuid.UUID) func(context.Context) error {
	scope := account.Scope{Project: uuid.NullUUID{UUID: project, Valid: true}}
	token, _ := operation.BearerToken(r) // "" is refused

	return func(ctx context.Context) error {
		var now account.Caller
		var err error
		if c.ByToken {
			now, err = s.Accounts.Authenticate(ctx, token, scope)
		} else {
			now, err = s.Accounts.AuthenticateSession(ctx, c.User, c.Session, scope) // outlives the access token
		}

		switch {
		case err != nil:
			return err
		case now.Status == platform.Deleted:
			return fault.Missing()
		}

		return connectDatabase.Access.Authorize(now)
	}
}

var createDatabaseCredential = operation.Operation{
	ID: "createDatabaseCredential", Method: "POST",
	Path: "/projects/{projectUUID}/database-credentials", Summary: "Create a database credential",
	Access: operation.ProjectInPath(account.Admin), Errors: []int{400, 401, 403, 404, 409, 422, 500},
	Notes: "A user name and a password by which PostgreSQL clients connect to the project's database at the " +
		"server's PostgreSQL address (`SOCLE_POSTGRES_ADDR`), over TLS. The database is the project's name or UUID.",
}

// databasePassword has a new password, which is shown once.
type databasePassword struct {
	Password string `json:"password" doc:"The password. It is shown only in this response."`
}

type createDatabaseCredentialInput struct {
	Project uuid.UUID `path:"projectUUID" format:"uuid"`
	Body    struct {
		Name      string     `json:"name" minLength:"1" maxLength:"100"`
		Access    string     `json:"access" enum:"owner,read_only"`
		ExpiresAt *time.Time `json:"expires_at,omitempty" format:"date-time" doc:"Absent: never."`
	}
}

func (s *Server) createDatabaseCredential(
	ctx context.Context, p *projectdb.Project, in *createDatabaseCredentialInput,
) (operation.Answer[pgproxy.Credential, databasePassword], error) {
	credential, password, err := pgproxy.CreateCredential(ctx, s.Platform.DB(), pgproxy.NewCredential{
		Project: p.UUID, User: operation.Caller(ctx).User, Name: in.Body.Name, Access: in.Body.Access,
		ExpiresAt: in.Body.ExpiresAt,
	})
	return operation.Secret(credential, databasePassword{password}), err
}

var listDatabaseCredentials = operation.Operation{
	ID: "listDatabaseCredentials", Method: "GET",
	Path: "/projects/{projectUUID}/database-credentials", Summary: "List a project's database credentials",
	Access: operation.ProjectInPath(account.Admin), Errors: operation.RestrictedErrors,
}

type listDatabaseCredentialsInput struct {
	operation.PageQuery
	Sort    string    `query:"sort" enum:"name,access,createdAt" default:"createdAt"`
	Project uuid.UUID `path:"projectUUID" format:"uuid"`
}

func (s *Server) listDatabaseCredentials(
	ctx context.Context, p *projectdb.Project, in *listDatabaseCredentialsInput,
) (operation.Answer[[]pgproxy.Credential, operation.PageMetadata], error) {
	page := in.By(in.Sort)
	credentials, total, err := pgproxy.ListCredentials(ctx, s.Platform.DB(), p.UUID, page)
	return operation.ListOf(credentials, page, total), err
}

var deleteDatabaseCredential = operation.Operation{
	ID: "deleteDatabaseCredential", Method: "DELETE",
	Path: "/projects/{projectUUID}/database-credentials/{credentialUUID}", Summary: "Revoke a database credential",
	Access: operation.ProjectInPath(account.Admin), Errors: operation.RestrictedErrors,
	Notes: "Its sessions end within seconds.",
}

type deleteDatabaseCredentialInput struct {
	Project uuid.UUID `path:"projectUUID" format:"uuid"`
	UUID    uuid.UUID `path:"credentialUUID" format:"uuid"`
}

func (s *Server) deleteDatabaseCredential(
	ctx context.Context, p *projectdb.Project, in *deleteDatabaseCredentialInput,
) (pgproxy.Credential, error) {
	return pgproxy.DeleteCredential(ctx, s.Platform.DB(), p.UUID, in.UUID)
}
