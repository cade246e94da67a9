package tables

import (
	"context"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/account"
	"github.com/socle-dev/socle/internal/operation"
	"github.com/socle-dev/socle/internal/projectdb"
	"github.com/socle-dev/socle/internal/schema"
)

func (s *Server) registerDefaultPrivileges(p *operation.Pipeline) {
	operation.HandleInProject(p, getDefaultPrivileges, s.getDefaultPrivileges, nil)
	operation.HandleInProject(p, updateDefaultPrivileges, s.updateDefaultPrivileges, nil)
}

var getDefaultPrivileges = operation.Operation{
	ID: "getDefaultPrivileges", Method: "GET",
	Path: "/projects/{projectUUID}/default-privileges", Summary: "Get a project's default privileges",
	Access: operation.ProjectInPath(account.Viewer), Errors: operation.MemberErrors,
}

func (s *Server) getDefaultPrivileges(
	ctx context.Context, p *projectdb.Project, _ *operation.ProjectInput,
) (schema.DefaultPrivileges, error) {
	return schema.GetDefaultPrivileges(ctx, p.Trusted())
}

var updateDefaultPrivileges = operation.Operation{
	ID: "updateDefaultPrivileges", Method: "PUT",
	Path: "/projects/{projectUUID}/default-privileges", Summary: "Update a project's default privileges",
	Access: operation.ProjectInPath(account.Developer), Errors: []int{400, 401, 403, 404, 422, 500},
	Timeout: operation.LongTimeout,
	Notes: "With `closed`, new tables and functions have no privileges but for `service_role`. With `supabase`, " +
		"`anon` and `authenticated` may read and write new tables of the schema `public` as far as policies allow, " +
		"and execute new functions. Row level security stays on for new tables. `existing` grants the same on what " +
		"exists already, also where it was revoked, but for tables without row level security.",
	Example: `{"mode": "supabase", "existing": true}`,
}

type updateDefaultPrivilegesInput struct {
	Project uuid.UUID `path:"projectUUID" format:"uuid"`
	Body    struct {
		Mode     string `json:"mode" enum:"closed,supabase" doc:"Who may use new objects: service_role only, or anon and authenticated too."`
		Existing bool   `json:"existing,omitempty" doc:"Also grant the privileges on existing tables, sequences and functions."`
	}
}

func (s *Server) updateDefaultPrivileges(
	ctx context.Context, p *projectdb.Project, in *updateDefaultPrivilegesInput,
) (schema.DefaultPrivileges, error) {
	return schema.UpdateDefaultPrivileges(ctx, p.Owner(), schema.DefaultPrivilegesUpdate(in.Body))
}
