package edgefunctions

import (
	"context"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/account"
	"github.com/socle-dev/socle/internal/function"
	"github.com/socle-dev/socle/internal/operation"
	"github.com/socle-dev/socle/internal/projectdb"
)

// maxDeployment bounds the body of a deployment in bytes: the code, escaped as JSON.
const maxDeployment = function.MaxCode + 4<<20

func (s *Server) registerFunctions(p *operation.Pipeline) {
	operation.HandleInProject(p, deployEdgeFunction, s.deployEdgeFunction, nil)
	operation.HandleInProject(p, listEdgeFunctions, s.listEdgeFunctions, nil)
	operation.HandleInProject(p, listEdgeFunctionVersions, s.listEdgeFunctionVersions, nil)
	operation.HandleInProject(p, updateEdgeFunction, s.updateEdgeFunction, s.findEdgeFunction)
	operation.HandleInProject(p, deleteEdgeFunction, s.deleteEdgeFunction, nil)
	operation.HandleInProject(p, listEdgeFunctionLog, s.listEdgeFunctionLog, nil)
}

var deployEdgeFunction = operation.Operation{
	ID: "deployEdgeFunction", Method: "PUT",
	Path: "/projects/{projectUUID}/edge-functions/{edgeFunction}", Summary: "Deploy an edge function",
	Access: operation.ProjectInPath(account.Developer), Errors: []int{400, 401, 403, 404, 422, 500},
	Timeout: operation.LongTimeout, MaxBody: maxDeployment, Grows: operation.Always,
	Notes: "Creates the function, or a new version of it. The code is one JavaScript module, as `deno bundle` makes it. " +
		"It is started once before it becomes the current version: `boot_error` has why it does not start. " +
		"The last 50 versions are kept.",
	Example: `{"code": "Deno.serve(() => new Response('hello'));", "verify_jwt": true}`,
}

type deployEdgeFunctionInput struct {
	Project uuid.UUID `path:"projectUUID" format:"uuid"`
	Name    string    `path:"edgeFunction" maxLength:"63" doc:"Letters, digits, underscores and hyphens."`
	Body    struct {
		Code      string `json:"code" minLength:"1" doc:"JavaScript, up to 20 MiB."`
		VerifyJWT *bool  `json:"verify_jwt,omitempty" doc:"Requests need a key or a token of the project. Default: unchanged, or true for a new function."`
	}
}

func (s *Server) deployEdgeFunction(
	ctx context.Context, p *projectdb.Project, in *deployEdgeFunctionInput,
) (function.EdgeFunction, error) {
	return s.Functions.Deploy(ctx, p, function.Deployment{Name: in.Name, Code: []byte(in.Body.Code),
		VerifyJWT: in.Body.VerifyJWT})
}

var listEdgeFunctions = operation.Operation{
	ID: "listEdgeFunctions", Method: "GET",
	Path: "/projects/{projectUUID}/edge-functions", Summary: "List edge functions",
	Access: operation.ProjectInPath(account.Viewer), Errors: operation.MemberErrors,
}

type listEdgeFunctionsInput struct {
	operation.PageQuery
	Sort    string    `query:"sort" enum:"name,createdAt,updatedAt" default:"name"`
	Project uuid.UUID `path:"projectUUID" format:"uuid"`
}

func (s *Server) listEdgeFunctions(
	ctx context.Context, p *projectdb.Project, in *listEdgeFunctionsInput,
) (operation.Answer[[]function.EdgeFunction, operation.PageMetadata], error) {
	page := in.By(in.Sort)
	functions, total, err := function.List(ctx, p, page)
	return operation.ListOf(functions, page, total), err
}

var listEdgeFunctionVersions = operation.Operation{
	ID: "listEdgeFunctionVersions", Method: "GET",
	Path:    "/projects/{projectUUID}/edge-functions/{edgeFunction}/versions",
	Summary: "List the versions of an edge function",
	Access:  operation.ProjectInPath(account.Viewer), Errors: operation.MemberErrors,
}

type listEdgeFunctionVersionsInput struct {
	operation.PageQuery
	Sort    string    `query:"sort" enum:"deployedAt" default:"deployedAt"`
	Project uuid.UUID `path:"projectUUID" format:"uuid"`
	Name    string    `path:"edgeFunction" maxLength:"63"`
}

func (s *Server) listEdgeFunctionVersions(
	ctx context.Context, p *projectdb.Project, in *listEdgeFunctionVersionsInput,
) (operation.Answer[[]function.EdgeFunctionVersion, operation.PageMetadata], error) {
	page := in.By(in.Sort)
	versions, total, err := function.Versions(ctx, p, in.Name, page)
	return operation.ListOf(versions, page, total), err
}

var updateEdgeFunction = operation.Operation{
	ID: "updateEdgeFunction", Method: "PUT",
	Path: "/projects/{projectUUID}/edge-functions/{edgeFunction}/settings", Summary: "Update an edge function",
	Access: operation.ProjectInPath(account.Developer), Errors: []int{400, 401, 403, 404, 422, 500},
	Notes:   "Omitted members stay unchanged. A former version becomes the current one again by its `version`.",
	Example: `{"verify_jwt": false}`,
}

type updateEdgeFunctionInput struct {
	Project uuid.UUID `path:"projectUUID" format:"uuid"`
	Name    string    `path:"edgeFunction" maxLength:"63"`
	Body    struct {
		Version   *string `json:"version,omitempty" minLength:"64" maxLength:"64" doc:"A version of the function."`
		VerifyJWT *bool   `json:"verify_jwt,omitempty" doc:"Requests need a key or a token of the project."`
	}
}

func (s *Server) findEdgeFunction(ctx context.Context, p *projectdb.Project, in *updateEdgeFunctionInput) error {
	_, err := function.Get(ctx, p.Trusted(), in.Name)
	return err
}

func (s *Server) updateEdgeFunction(
	ctx context.Context, p *projectdb.Project, in *updateEdgeFunctionInput,
) (function.EdgeFunction, error) {
	return s.Functions.Update(ctx, p, in.Name, in.Body.Version, in.Body.VerifyJWT)
}

var deleteEdgeFunction = operation.Operation{
	ID: "deleteEdgeFunction", Method: "DELETE",
	Path: "/projects/{projectUUID}/edge-functions/{edgeFunction}", Summary: "Delete an edge function",
	Access: operation.ProjectInPath(account.Developer), Errors: []int{400, 401, 403, 404, 500},
	Notes: "Deletes the function with all its versions.",
}

type deleteEdgeFunctionInput struct {
	Project uuid.UUID `path:"projectUUID" format:"uuid"`
	Name    string    `path:"edgeFunction" maxLength:"63"`
}

func (s *Server) deleteEdgeFunction(
	ctx context.Context, p *projectdb.Project, in *deleteEdgeFunctionInput,
) (function.EdgeFunction, error) {
	return s.Functions.Delete(ctx, p, in.Name)
}

var listEdgeFunctionLog = operation.Operation{
	ID: "listEdgeFunctionLog", Method: "GET",
	Path: "/projects/{projectUUID}/edge-function-log", Summary: "List what edge functions logged",
	Access: operation.ProjectInPath(account.Developer), Errors: []int{400, 401, 403, 404, 500},
	Notes: "Lines of the last seven days, up to 64 MB.",
}

type listEdgeFunctionLogInput struct {
	operation.PageQuery
	Sort     string    `query:"sort" enum:"id" default:"id"`
	Function string    `query:"function" maxLength:"63" doc:"Only lines of this function."`
	Project  uuid.UUID `path:"projectUUID" format:"uuid"`
}

func (s *Server) listEdgeFunctionLog(
	ctx context.Context, p *projectdb.Project, in *listEdgeFunctionLogInput,
) (operation.Answer[[]function.LogLine, operation.PageMetadata], error) {
	page := in.By(in.Sort)
	lines, total, err := function.Log(ctx, p, in.Function, page)
	return operation.ListOf(lines, page, total), err
}
