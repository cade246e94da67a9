package edgefunctions

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/account"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/function"
	"github.com/socle-dev/socle/internal/operation"
	"github.com/socle-dev/socle/internal/projectdb"
)

func (s *Server) registerLimits(p *operation.Pipeline) {
	operation.HandleInProject(p, getEdgeFunctionLimits, s.getEdgeFunctionLimits, nil)
	operation.HandleInProject(p, updateEdgeFunctionLimits, s.updateEdgeFunctionLimits, nil)
	operation.HandleInProject(p, listEdgeFunctionMetrics, s.listEdgeFunctionMetrics, nil)
}

var getEdgeFunctionLimits = operation.Operation{
	ID: "getEdgeFunctionLimits", Method: "GET",
	Path: "/projects/{projectUUID}/edge-function-limits", Summary: "Get the limits of edge functions",
	Access: operation.ProjectInPath(account.Viewer), Errors: []int{400, 401, 404, 500},
}

func (s *Server) getEdgeFunctionLimits(
	ctx context.Context, p *projectdb.Project, _ *operation.ProjectInput,
) (function.Limits, error) {
	return function.GetLimits(ctx, p.Trusted())
}

var updateEdgeFunctionLimits = operation.Operation{
	ID: "updateEdgeFunctionLimits", Method: "PUT",
	Path: "/projects/{projectUUID}/edge-function-limits", Summary: "Update the limits of edge functions",
	Access: operation.ProjectInPath(account.Administrator), Errors: []int{400, 401, 403, 404, 422, 500},
	Notes: "For administrators of the instance. Omitted members stay unchanged. Processes under the former limits finish " +
		"their requests.",
	Example: `{"memory_mb": 512, "cpu_milliseconds": 5000}`,
}

type updateEdgeFunctionLimitsInput struct {
	Project uuid.UUID `path:"projectUUID" format:"uuid"`
	Body    struct {
		function.LimitChange
	}
}

func (s *Server) updateEdgeFunctionLimits(
	ctx context.Context, p *projectdb.Project, in *updateEdgeFunctionLimitsInput,
) (function.Limits, error) {
	if operation.IsEmpty(in.Body) {
		return function.Limits{}, fault.NothingToChange()
	}

	return s.Functions.UpdateLimits(ctx, p, in.Body.LimitChange)
}

var listEdgeFunctionMetrics = operation.Operation{
	ID: "listEdgeFunctionMetrics", Method: "GET",
	Path: "/projects/{projectUUID}/edge-function-metrics", Summary: "List what edge functions used",
	Access: operation.ProjectInPath(account.Viewer), Errors: operation.MemberErrors,
	Notes: "What each function that was called did in the last hours, on all servers, up to some seconds ago. Hours are " +
		"whole; the last seven days are kept.",
}

type listEdgeFunctionMetricsInput struct {
	Hours   int       `query:"hours" minimum:"1" maximum:"168" default:"24"`
	Project uuid.UUID `path:"projectUUID" format:"uuid"`
}

func (s *Server) listEdgeFunctionMetrics(
	ctx context.Context, p *projectdb.Project, in *listEdgeFunctionMetricsInput,
) ([]function.Metrics, error) {
	return function.ListMetrics(ctx, p, time.Now().Add(-time.Duration(in.Hours)*time.Hour))
}
