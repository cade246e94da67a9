package projects

import (
	"context"
	"net/http"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/account"
	"github.com/socle-dev/socle/internal/operation"
	"github.com/socle-dev/socle/internal/platform"
	"github.com/socle-dev/socle/internal/projectdb"
)

func (s *Server) registerProjects(p *operation.Pipeline) {
	operation.Handle(p, createProject, s.createProject, nil)
	operation.Handle(p, listProjects, s.listProjects, nil)
	operation.HandleInProject(p, getProject, s.getProject, nil)
	operation.HandleInProject(p, updateProject, s.updateProject, nil)
	operation.HandleInProject(p, deleteProject, s.deleteProject, nil)
	operation.HandleInProject(p, restoreProject, s.restoreProject, nil)
	operation.HandleInProject(p, pauseProject, s.pauseProject, nil)
	operation.HandleInProject(p, resumeProject, s.resumeProject, nil)
}

var createProject = operation.Operation{
	ID: "createProject", Method: "POST", Path: "/projects", Summary: "Create a project",
	Access: operation.SignedInOrToken,
	Errors: operation.CreateErrors, Timeout: operation.LongTimeout,
	Notes: "The project's database is ready when the request returns. The default organization is the caller's " +
		"personal one. Needs the role of admin there.",
	Example: `{"name": "Book shop"}`,
}

type createProjectInput struct {
	Body struct {
		Name             string     `json:"name" minLength:"1" maxLength:"100"`
		Description      string     `json:"description,omitempty" maxLength:"500"`
		OrganizationUUID *uuid.UUID `json:"organization_uuid,omitempty" format:"uuid"`
	}
}

func (s *Server) createProject(ctx context.Context, in *createProjectInput) (platform.Project, error) {
	organization, err := s.Accounts.OrganizationForProject(ctx, operation.Caller(ctx), in.Body.OrganizationUUID)
	if err != nil {
		return platform.Project{}, err
	}

	return s.Lifecycle.Create(ctx, operation.Caller(ctx).User, platform.NewProject{
		Organization: organization, Name: in.Body.Name, Description: in.Body.Description})
}

var listProjects = operation.Operation{
	ID: "listProjects", Method: "GET", Path: "/projects", Summary: "List projects",
	Access: operation.SignedInOrToken, Errors: operation.SpecifiedErrors,
	Notes: "Lists the projects of the caller's organizations; administrators get all projects. Deleted projects " +
		"are listed only with `status=deleted`.",
}

type listProjectsInput struct {
	operation.PageQuery
	Sort         string  `query:"sort" enum:"name,createdAt,updatedAt" default:"createdAt"`
	Search       string  `query:"search" maxLength:"100" doc:"Part of the name, case-insensitive."`
	Organization *string `query:"organizationUuid" format:"uuid" doc:"List projects of this organization only."`
	Status       string  `query:"status" enum:"active,paused,deleted" doc:"List projects with this status only. Default: active and paused."`
}

func (s *Server) listProjects(
	ctx context.Context, in *listProjectsInput,
) (operation.Answer[[]platform.Project, operation.PageMetadata], error) {
	page, filter := in.By(in.Sort), platform.ProjectFilter{
		Search: in.Search,
		Status: in.Status,
		Only:   operation.Caller(ctx).Projects,
	}
	if in.Organization != nil {
		filter.Organization = operation.OptionalUUID(*in.Organization)
	}

	projects, total, err := s.Platform.ListProjects(ctx, operation.Caller(ctx).User, filter, page)
	return operation.ListOf(projects, page, total), err
}

var getProject = operation.Operation{
	ID: "getProject", Method: "GET", Path: "/projects/{projectUUID}", Summary: "Get a project",
	Access: operation.ProjectInPath(account.Viewer).OrPaused(), Errors: []int{400, 401, 404, 500},
}

func (s *Server) getProject(
	ctx context.Context, p *projectdb.Project, _ *operation.ProjectInput,
) (platform.Project, error) {
	return s.Platform.GetProject(ctx, p.UUID)
}

var updateProject = operation.Operation{
	ID: "updateProject", Method: "PUT", Path: "/projects/{projectUUID}", Summary: "Update a project",
	Access: operation.ProjectInPath(account.Admin), Errors: []int{400, 401, 403, 404, 409, 422, 500},
	Notes: "Omitted members stay unchanged. With `backup_before_destructive`, destructive operations make a backup " +
		"first, and the project cannot be purged.",
	Example: `{"name": "Book shop", "backup_before_destructive": true}`,
}

type updateProjectInput struct {
	UUID uuid.UUID `path:"projectUUID" format:"uuid"`
	Body struct {
		Name        *string `json:"name,omitempty" minLength:"1" maxLength:"100"`
		Description *string `json:"description,omitempty" maxLength:"500"`

		BackupBeforeDestructive *bool `json:"backup_before_destructive,omitempty" doc:"Whether destructive operations require a completed backup first."`
	}
}

func (s *Server) updateProject(
	ctx context.Context, p *projectdb.Project, in *updateProjectInput,
) (platform.Project, error) {
	return s.Platform.UpdateProject(ctx, p.UUID, operation.Caller(ctx).User, platform.ProjectUpdate(in.Body))
}

var deleteProject = operation.Operation{
	ID: "deleteProject", Method: "DELETE", Path: "/projects/{projectUUID}", Summary: "Delete a project",
	Access: operation.ProjectInPath(account.Owner).OrPaused().OrDeleted(), Errors: operation.DDLDeleteErrors,
	Timeout: operation.LongTimeout,
	Notes: "The project becomes inaccessible and its name available at once. It can be restored for a week, or for " +
		"the number of days in the setting `deleted_project_days`; then it is purged with its database, files and " +
		"backups. `purge=true` purges it at once and irrevocably, even if it is already deleted; this fails with " +
		"409 and the code `backup_first` if the project has `backupBeforeDestructive`, since the purge includes " +
		"its backups.",
}

type deleteProjectInput struct {
	UUID  uuid.UUID `path:"projectUUID" format:"uuid"`
	Purge string    `query:"purge" enum:"true,false" default:"false" doc:"Purge the project and all its data before the response."`
}

func (s *Server) deleteProject(
	ctx context.Context, p *projectdb.Project, in *deleteProjectInput,
) (platform.Project, error) {
	if in.Purge == "true" {
		return s.Lifecycle.Remove(ctx, p.UUID, operation.Caller(ctx).User)
	}
	return s.Lifecycle.Delete(ctx, p.UUID, operation.Caller(ctx).User)
}

var restoreProject = operation.Operation{
	ID: "restoreProject", Method: "POST", Path: "/projects/{projectUUID}/restore",
	Summary: "Restore a deleted project", Success: http.StatusOK,
	Access: operation.ProjectInPath(account.Owner).OrPaused().OrDeleted(), Errors: []int{
		400, 401, 403, 404, 409, 500,
	}, Timeout: operation.LongTimeout,
	Notes: "The project becomes active again, as it was when it was deleted. Fails with 409 if another project has " +
		"taken its name.",
}

func (s *Server) restoreProject(
	ctx context.Context, p *projectdb.Project, _ *operation.ProjectInput,
) (platform.Project, error) {
	return s.Lifecycle.Restore(ctx, p.UUID, operation.Caller(ctx).User)
}

var pauseProject = operation.Operation{
	ID: "pauseProject", Method: "POST", Path: "/projects/{projectUUID}/pause",
	Summary: "Pause a project", Success: http.StatusOK,
	Access: operation.ProjectInPath(account.Admin), Errors: operation.RestrictedErrors, Timeout: operation.LongTimeout,
	Notes: "The project and its data are retained. Until it is resumed, access to them is refused with the code " +
		"`project_paused`. Work in progress is canceled.",
}

func (s *Server) pauseProject(
	ctx context.Context, p *projectdb.Project, _ *operation.ProjectInput,
) (platform.Project, error) {
	return s.Lifecycle.Pause(ctx, p.UUID, operation.Caller(ctx).User)
}

var resumeProject = operation.Operation{
	ID: "resumeProject", Method: "POST", Path: "/projects/{projectUUID}/resume",
	Summary: "Resume a project", Success: http.StatusOK,
	Access: operation.ProjectInPath(account.Admin).OrPaused(), Errors: []int{400, 401, 403, 404, 409, 500},
	Timeout: operation.LongTimeout,
}

func (s *Server) resumeProject(
	ctx context.Context, p *projectdb.Project, _ *operation.ProjectInput,
) (platform.Project, error) {
	return s.Lifecycle.Resume(ctx, p.UUID, operation.Caller(ctx).User)
}
