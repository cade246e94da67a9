package schedules

import (
	"context"
	"strconv"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/account"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/operation"
	"github.com/socle-dev/socle/internal/projectdb"
	"github.com/socle-dev/socle/internal/schedule"
)

func (s *Server) registerRuns(p *operation.Pipeline) {
	operation.HandleInProject(p, runSchedule, s.runSchedule, nil)
	operation.HandleInProject(p, listScheduleRuns, s.listScheduleRuns, nil)
}

var runSchedule = operation.Operation{
	ID: "runSchedule", Method: "POST",
	Path: "/projects/{projectUUID}/schedules/{scheduleName}/run", Summary: "Run a schedule now",
	Access: operation.ProjectInPath(account.Developer), Errors: []int{400, 401, 403, 404, 409, 500},
	Notes: "Returns the run, which is queued: it begins within about a second, or after the schedule's run in progress. A " +
		"schedule that is not active runs too.",
}

func (s *Server) runSchedule(ctx context.Context, p *projectdb.Project, in *scheduleInput) (schedule.JobRun, error) {
	return s.Schedules.Request(ctx, p, in.Schedule)
}

var listScheduleRuns = operation.Operation{
	ID: "listScheduleRuns", Method: "GET",
	Path: "/projects/{projectUUID}/schedules/{scheduleName}/runs", Summary: "List a schedule's runs",
	Access: operation.ProjectInPath(account.Developer), Errors: []int{400, 401, 403, 404, 409, 500},
	Notes: "Newest first. Of each schedule the last 1,000 runs are kept, for a week. If there are more, `metadata.next` is " +
		"the `cursor` of the next page.",
}

type listScheduleRunsInput struct {
	Project  uuid.UUID `path:"projectUUID" format:"uuid"`
	Schedule string    `path:"scheduleName" maxLength:"255" doc:"Name or id of the schedule."`
	Limit    int       `query:"limit" minimum:"1" maximum:"100" default:"20"`
	Cursor   string    `query:"cursor" maxLength:"40" doc:"metadata.next of the previous page."`
}

// runsMetadata has the cursor for the next page.
type runsMetadata struct {
	Limit int     `json:"limit"`
	Next  *string `json:"next" nullable:"true" doc:"Cursor of the next page; null on the last page."`
}

func (s *Server) listScheduleRuns(
	ctx context.Context, p *projectdb.Project, in *listScheduleRunsInput,
) (operation.Answer[[]schedule.JobRun, runsMetadata], error) {
	none := operation.Answer[[]schedule.JobRun, runsMetadata]{}

	before, err := int64(0), error(nil)
	if in.Cursor != "" {
		if before, err = strconv.ParseInt(in.Cursor, 10, 64); err != nil || before < 1 {
			return none, fault.OnField(fault.Invalid, "cursor", "invalid_format", "is not a cursor of this list")
		}
	}

	runs, err := s.Schedules.Runs(ctx, p, in.Schedule, before, in.Limit+1)
	if err != nil {
		return none, err
	}

	metadata := runsMetadata{Limit: in.Limit}
	if len(runs) > in.Limit {
		runs = runs[:in.Limit]
		metadata.Next = new(strconv.FormatInt(runs[in.Limit-1].ID, 10))
	}

	return operation.WithMetadata(runs, metadata), nil
}
