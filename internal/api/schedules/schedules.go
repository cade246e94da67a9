package schedules

import (
	"context"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/account"
	"github.com/socle-dev/socle/internal/operation"
	"github.com/socle-dev/socle/internal/projectdb"
	"github.com/socle-dev/socle/internal/schedule"
)

func (s *Server) registerSchedules(p *operation.Pipeline) {
	operation.HandleInProject(p, createSchedule, s.createSchedule, nil)
	operation.HandleInProject(p, listSchedules, s.listSchedules, nil)
	operation.HandleInProject(p, getSchedule, s.getSchedule, nil)
	operation.HandleInProject(p, updateSchedule, s.updateSchedule, s.findSchedule)
	operation.HandleInProject(p, deleteSchedule, s.deleteSchedule, nil)
}

// answer is a schedule with its next due times, and the secret of its endpoint.
type answer = operation.Answer[schedule.Schedule, schedule.Details]

func (s *Server) answer(p *projectdb.Project, found schedule.Schedule, err error) (answer, error) {
	if err != nil {
		return answer{}, err
	}
	return answer{Content: found, Metadata: s.Schedules.Details(p.UUID, found)}, nil
}

var createSchedule = operation.Operation{
	ID: "createSchedule", Method: "POST",
	Path: "/projects/{projectUUID}/schedules", Summary: "Create a schedule",
	Access: operation.ProjectInPath(account.Developer), Errors: []int{400, 401, 403, 404, 409, 422, 500},
	Notes: "Runs SQL as the project's owner, or calls an endpoint, whenever the clock of the time zone matches. A time " +
		"that clocks skip or repeat counts once. The same schedules are rows of `cron.job`, as `cron.schedule` " +
		"makes them. A run that could not begin within an hour is missed. Each project has two runs on a server at " +
		"a time.",
	Example: `{"name": "nightly", "cron": "0 3 * * *", "timezone": "Europe/Berlin", "command": "delete from carts where updated_at < now() - interval '30 days'"}`,
}

type createScheduleInput struct {
	Project uuid.UUID `path:"projectUUID" format:"uuid"`
	Body    struct {
		Name           string  `json:"name" minLength:"1" maxLength:"255" doc:"Unique in the project."`
		Cron           string  `json:"cron" minLength:"1" maxLength:"255" doc:"Cron expression with five fields: minute, hour, day of the month ($: the last), month, day of the week; or a word such as @daily; or an interval such as 30 seconds."`
		Timezone       *string `json:"timezone,omitempty" minLength:"1" maxLength:"100" doc:"Time zone of the cron expression, such as Europe/Berlin. Default: UTC."`
		Command        *string `json:"command,omitempty" minLength:"1" maxLength:"65536" doc:"SQL. Its statements are one transaction, unless they begin and end transactions themselves."`
		Endpoint       *string `json:"endpoint,omitempty" minLength:"1" maxLength:"500" doc:"URL that receives a signed POST instead of a command, or functions://NAME for an edge function."`
		Overlap        *string `json:"overlap,omitempty" enum:"skip,queue" doc:"What happens when a run is due while the one before is in progress: it is skipped, or runs once afterwards. Default: skip."`
		TimeoutSeconds *int    `json:"timeout_seconds,omitempty" minimum:"1" maximum:"600" doc:"Time limit of a run; a URL has at most 10, an edge function at most its time to the answer, 150 by default. Default: 600."`
		Active         *bool   `json:"active,omitempty" doc:"Default: true."`
	}
}

func (s *Server) createSchedule(ctx context.Context, p *projectdb.Project, in *createScheduleInput) (answer, error) {
	b := in.Body
	created, err := s.Schedules.Create(ctx, p, schedule.Values{Name: &b.Name, Cron: &b.Cron, Timezone: b.Timezone,
		Command: b.Command, Endpoint: b.Endpoint, Overlap: b.Overlap, TimeoutSeconds: b.TimeoutSeconds,
		Active: b.Active})
	return s.answer(p, created, err)
}

var listSchedules = operation.Operation{
	ID: "listSchedules", Method: "GET",
	Path: "/projects/{projectUUID}/schedules", Summary: "List schedules",
	Access: operation.ProjectInPath(account.Developer), Errors: []int{400, 401, 403, 404, 409, 500},
}

type listSchedulesInput struct {
	operation.PageQuery
	Sort    string    `query:"sort" enum:"id,name,nextRunAt" default:"id"`
	Project uuid.UUID `path:"projectUUID" format:"uuid"`
}

func (s *Server) listSchedules(
	ctx context.Context, p *projectdb.Project, in *listSchedulesInput,
) (operation.Answer[[]schedule.Schedule, operation.PageMetadata], error) {
	page := in.By(in.Sort)
	all, total, err := s.Schedules.List(ctx, p, page)
	return operation.ListOf(all, page, total), err
}

var getSchedule = operation.Operation{
	ID: "getSchedule", Method: "GET",
	Path: "/projects/{projectUUID}/schedules/{scheduleName}", Summary: "Get a schedule",
	Access: operation.ProjectInPath(account.Developer), Errors: []int{400, 401, 403, 404, 409, 500},
}

type scheduleInput struct {
	Project  uuid.UUID `path:"projectUUID" format:"uuid"`
	Schedule string    `path:"scheduleName" maxLength:"255" doc:"Name or id of the schedule."`
}

func (s *Server) getSchedule(ctx context.Context, p *projectdb.Project, in *scheduleInput) (answer, error) {
	schedule, err := s.Schedules.Get(ctx, p, in.Schedule)
	return s.answer(p, schedule, err)
}

var updateSchedule = operation.Operation{
	ID: "updateSchedule", Method: "PUT",
	Path: "/projects/{projectUUID}/schedules/{scheduleName}", Summary: "Update a schedule",
	Access: operation.ProjectInPath(account.Developer), Errors: []int{400, 401, 403, 404, 409, 422, 500},
	Notes: "Omitted members stay unchanged. A command replaces the endpoint, and an endpoint the command. A run in " +
		"progress goes on.",
	Example: `{"cron": "0 4 * * *", "active": true}`,
}

type updateScheduleInput struct {
	Project  uuid.UUID `path:"projectUUID" format:"uuid"`
	Schedule string    `path:"scheduleName" maxLength:"255" doc:"Name or id of the schedule."`
	Body     struct {
		Name           *string `json:"name,omitempty" minLength:"1" maxLength:"255" doc:"Unique in the project."`
		Cron           *string `json:"cron,omitempty" minLength:"1" maxLength:"255"`
		Timezone       *string `json:"timezone,omitempty" minLength:"1" maxLength:"100"`
		Command        *string `json:"command,omitempty" minLength:"1" maxLength:"65536"`
		Endpoint       *string `json:"endpoint,omitempty" minLength:"1" maxLength:"500"`
		Overlap        *string `json:"overlap,omitempty" enum:"skip,queue"`
		TimeoutSeconds *int    `json:"timeout_seconds,omitempty" minimum:"1" maximum:"600"`
		Active         *bool   `json:"active,omitempty"`
	}
}

func (s *Server) findSchedule(ctx context.Context, p *projectdb.Project, in *updateScheduleInput) error {
	return s.Schedules.Find(ctx, p, in.Schedule)
}

func (s *Server) updateSchedule(ctx context.Context, p *projectdb.Project, in *updateScheduleInput) (answer, error) {
	updated, err := s.Schedules.Update(ctx, p, in.Schedule, schedule.Values(in.Body))
	return s.answer(p, updated, err)
}

var deleteSchedule = operation.Operation{
	ID: "deleteSchedule", Method: "DELETE",
	Path: "/projects/{projectUUID}/schedules/{scheduleName}", Summary: "Delete a schedule",
	Access: operation.ProjectInPath(account.Developer), Errors: []int{400, 401, 403, 404, 409, 500},
	Notes: "A run in progress goes on.",
}

func (s *Server) deleteSchedule(
	ctx context.Context, p *projectdb.Project, in *scheduleInput,
) (schedule.Schedule, error) {
	return s.Schedules.Delete(ctx, p, in.Schedule)
}
