package rows

import (
	"context"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/account"
	"github.com/socle-dev/socle/internal/operation"
	"github.com/socle-dev/socle/internal/platform"
	"github.com/socle-dev/socle/internal/projectdb"
)

// registerRows registers the operations on the rows API, which package rest serves.
func (s *Server) registerRows(p *operation.Pipeline) {
	operation.HandleInProject(p, getProjectOpenAPI, s.getProjectOpenAPI, nil)
	operation.HandleInProject(p, getRestSettings, s.getRestSettings, nil)
	operation.HandleInProject(p, updateRestSettings, s.updateRestSettings, nil)
}

var getProjectOpenAPI = operation.Operation{
	ID: "getProjectOpenAPI", Method: "GET",
	Path: "/projects/{projectUUID}/openapi.json", Summary: "Get the OpenAPI document of a project's rows API",
	Access: operation.ProjectInPath(account.Viewer), Errors: []int{400, 401, 404, 500},
	Notes: "An OpenAPI 2.0 document of the tables, views and functions in the schema `public`, as the root of the " +
		"rows API returns it for a secret key. The response has no envelope.",
}

func (s *Server) getProjectOpenAPI(
	ctx context.Context, p *projectdb.Project, _ *operation.ProjectInput,
) (operation.PlainJSON, error) {
	return s.DescribeRows(ctx, p.UUID)
}

var getRestSettings = operation.Operation{
	ID: "getRestSettings", Method: "GET",
	Path: "/projects/{projectUUID}/rest-settings", Summary: "Get a project's rows API settings",
	Access: operation.ProjectInPath(account.Admin), Errors: operation.RestrictedErrors,
}

func (s *Server) getRestSettings(
	ctx context.Context, p *projectdb.Project, _ *operation.ProjectInput,
) (platform.RestSettings, error) {
	return s.Platform.GetRestSettings(ctx, p.UUID)
}

var updateRestSettings = operation.Operation{
	ID: "updateRestSettings", Method: "PUT",
	Path: "/projects/{projectUUID}/rest-settings", Summary: "Update a project's rows API settings",
	Access: operation.ProjectInPath(account.Admin), Errors: []int{400, 401, 403, 404, 422, 500},
	Notes: "Takes effect within seconds. Omitted members stay unchanged. Exposing a schema grants no rights: roles " +
		"need USAGE on the schema and privileges on its contents. A timeout ends a statement with `57014`; 30 " +
		"seconds is the limit in any case.",
	Example: `{"schemas": ["public"], "max_rows": 1000, "aggregates": true, "anon_timeout_ms": 3000}`,
}

type updateRestSettingsInput struct {
	Project uuid.UUID `path:"projectUUID" format:"uuid"`
	Body    struct {
		Schemas     []string `json:"schemas,omitempty" minItems:"1" maxItems:"20"`
		MaxRows     *int     `json:"max_rows,omitempty" minimum:"0" maximum:"1000000" doc:"Maximum number of rows of a response. 0: no limit."`
		Aggregates  *bool    `json:"aggregates,omitempty" doc:"Allow aggregates in select."`
		Plan        *bool    `json:"plan,omitempty" doc:"Allow requests for the plan of a statement."`
		ReadReplica *bool    `json:"read_replica,omitempty" doc:"Answer reads from a read replica of PostgreSQL, if there is a fresh one and the request does not prefer the primary."`
		TxEnd       *string  `json:"tx_end,omitempty" enum:"commit,commit-allow-override,rollback,rollback-allow-override" doc:"How transactions end, and whether requests may choose."`

		AnonTimeoutMS          *int `json:"anon_timeout_ms,omitempty" minimum:"0" maximum:"30000" doc:"Timeout of a statement of anon in milliseconds. 0: 30 seconds."`
		AuthenticatedTimeoutMS *int `json:"authenticated_timeout_ms,omitempty" minimum:"0" maximum:"30000" doc:"Timeout of a statement of authenticated in milliseconds. 0: 30 seconds."`
		ServiceRoleTimeoutMS   *int `json:"service_role_timeout_ms,omitempty" minimum:"0" maximum:"30000" doc:"Timeout of a statement of service_role in milliseconds. 0: 30 seconds."`
	}
}

func (s *Server) updateRestSettings(
	ctx context.Context, p *projectdb.Project, in *updateRestSettingsInput,
) (platform.RestSettings, error) {
	return s.Platform.UpdateRestSettings(ctx, p.UUID, operation.Caller(ctx).User, platform.RestSettingsUpdate(in.Body))
}
