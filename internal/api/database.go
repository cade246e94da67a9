package api

import (
	"context"
	"net/http"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/account"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/httpx"
	"github.com/socle-dev/socle/internal/operation"
	"github.com/socle-dev/socle/internal/pgproxy"
	"github.com/socle-dev/socle/internal/projectdb"
)

func (s *Server) registerDatabase() {
	operation.HandleInProject(s.pipeline, connectDatabase, s.connectDatabase, nil)
}

var connectDatabase = operation.Operation{
	ID: "connectDatabase", Method: "GET",
	Path: "/projects/{projectUUID}/database/connect", Summary: "Connect to a project's database",
	Access: operation.ProjectInPath(account.Admin), Errors: []int{400, 401, 403, 404, 409, 429, 500},
	Success: http.StatusSwitchingProtocols, Upgrade: pgproxy.Protocol,
	Notes: "Upgrades the connection to PostgreSQL's protocol, from the client's startup packet on, for a session of " +
		"the project's owner. The user and the database of the packet do not matter, and no password is asked for. " +
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
	if in.Upgrade != pgproxy.Protocol {
		return nil, fault.OnField(fault.Invalid, "Upgrade", "unknown", "must be "+pgproxy.Protocol)
	}

	release, err := s.proxy.Admit(p.UUID.String())
	if err != nil {
		return nil, err
	}

	client := pgproxy.Client{Project: p.UUID, Entry: operation.AuditEntry(ctx)}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		client.Entry.Target = r.URL.Path
		client.Check = s.checkAccess(caller(ctx), r, p.UUID)

		conn, err := httpx.Upgrade(w, pgproxy.Protocol)
		if err != nil {
			release()
			httpx.From(r.Context()).Err = err

			return
		}

		s.proxy.ServeTunnel(conn, client, release)
	}), nil
}

// checkAccess returns a function that fails if the caller of a request may connect to a project's
// database no longer.
func (s *Server) checkAccess(c account.Caller, r *http.Request, project uuid.UUID) func(context.Context) error {
	scope := account.Scope{Project: uuid.NullUUID{UUID: project, Valid: true}}

	return func(ctx context.Context) error {
		var err error
		if c.ByToken {
			c, err = s.authenticateBearer(ctx, r, scope)
		} else {
			c, err = s.accounts.AuthenticateSession(ctx, c.User, c.Session, scope) // outlives the access token
		}

		if err != nil {
			return err
		}

		return connectDatabase.Access.Authorize(c)
	}
}
