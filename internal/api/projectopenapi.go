package api

import (
	"context"

	"socle/internal/platform"
	"socle/internal/tenant"
)

// plainJSON is a JSON response without an envelope.
type plainJSON []byte

var getProjectOpenAPI = Operation{
	ID: "getProjectOpenAPI", Method: "GET",
	Path: "/projects/{projectUUID}/openapi.json", Summary: "Get the description of a project's rows API",
	Access: projectInPath(platform.Viewer), Errors: []int{400, 401, 404, 500},
	Notes: "An OpenAPI 2.0 document of the tables, views and functions of the schema `public`, as the root of the rows API shows it to a secret key. It stands in no envelope.",
}

func (s *Server) getProjectOpenAPI(ctx context.Context, p *tenant.Project, _ *projectInput) (plainJSON, error) {
	return s.describeRows(ctx, p.UUID)
}
