package projects

import (
	"context"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/account"
	"github.com/socle-dev/socle/internal/event"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/operation"
	"github.com/socle-dev/socle/internal/projectdb"
)

func (s *Server) registerRealtimeLimits(p *operation.Pipeline) {
	operation.HandleInProject(p, getRealtimeLimits, s.getRealtimeLimits, nil)
	operation.HandleInProject(p, updateRealtimeLimits, s.updateRealtimeLimits, nil)
}

var getRealtimeLimits = operation.Operation{
	ID: "getRealtimeLimits", Method: "GET",
	Path: "/projects/{projectUUID}/realtime-limits", Summary: "Get the limits of channels and of the log of changes",
	Access: operation.ProjectInPath(account.Viewer), Errors: []int{400, 401, 404, 500},
}

func (s *Server) getRealtimeLimits(
	ctx context.Context, p *projectdb.Project, _ *operation.ProjectInput,
) (event.RealtimeLimits, error) {
	return event.GetLimits(ctx, p.Trusted())
}

var updateRealtimeLimits = operation.Operation{
	ID: "updateRealtimeLimits", Method: "PUT",
	Path: "/projects/{projectUUID}/realtime-limits", Summary: "Update the limits of channels and of the log of changes",
	Access: operation.ProjectInPath(account.Administrator), Errors: []int{400, 401, 403, 404, 422, 500},
	Notes: "For administrators of the instance. Omitted members stay unchanged. Open sockets and joined channels stay " +
		"open, and get other rates within seconds. The projects of an account share 20,000 sockets and 100,000 channels " +
		"on each server, and twice the deliveries of one project by default.",
	Example: `{"sockets": 500, "messages_per_second": 50, "log_hours": 72}`,
}

type updateRealtimeLimitsInput struct {
	Project uuid.UUID `path:"projectUUID" format:"uuid"`
	Body    struct {
		event.LimitChange
	}
}

func (s *Server) updateRealtimeLimits(
	ctx context.Context, p *projectdb.Project, in *updateRealtimeLimitsInput,
) (event.RealtimeLimits, error) {
	if operation.IsEmpty(in.Body) {
		return event.RealtimeLimits{}, fault.NothingToChange()
	}

	return s.Realtime.UpdateLimits(ctx, s.Platform.DB().Querier(), p, in.Body.LimitChange)
}
