package api

import (
	"context"
	"net/http"

	"github.com/google/uuid"

	"socle/internal/fault"
	"socle/internal/platform"
	"socle/internal/tenant"
)

func (s *Server) registerProjects() {
	open(s, createProject, s.createProject)
	open(s, listProjects, s.listProjects)
	within(s, getProject, s.getProject, nil)
	within(s, updateProject, s.updateProject, nil)
	within(s, deleteProject, s.deleteProject, nil)
	within(s, restoreProject, s.restoreProject, nil)
	within(s, pauseProject, s.pauseProject, nil)
	within(s, resumeProject, s.resumeProject, nil)
	within(s, getProjectOpenAPI, s.getProjectOpenAPI, nil)
}

var createProject = Operation{
	ID: "createProject", Method: "POST", Path: "/projects", Summary: "Create a project", Access: signedInOrToken,
	Errors: createErrors, Timeout: longTimeout,
	Notes: "The project's database is there when this answers. Without an organization it goes to the one made with the user. Needs the role of admin there.",
}

type createProjectInput struct {
	Body struct {
		Name             string     `json:"name" minLength:"1" maxLength:"100"`
		Description      string     `json:"description,omitempty" maxLength:"500"`
		OrganizationUUID *uuid.UUID `json:"organization_uuid,omitempty" format:"uuid"`
	}
}

func (s *Server) createProject(ctx context.Context, in *createProjectInput) (platform.Project, error) {
	organization, err := s.targetOrganization(ctx, in.Body.OrganizationUUID)
	if err != nil {
		return platform.Project{}, err
	}

	return s.lifecycle.Create(ctx, caller(ctx).User, platform.NewProject{
		Organization: organization, Name: in.Body.Name, Description: in.Body.Description})
}

// targetOrganization returns the organization for a new project: the named one, or the caller's
// own. The caller must be at least admin there.
func (s *Server) targetOrganization(ctx context.Context, named *uuid.UUID) (uuid.UUID, error) {
	user, err := s.platform.GetUser(ctx, caller(ctx).User)
	if err != nil {
		return uuid.Nil, err
	}

	organization := user.OrganizationUUID
	if named != nil {
		organization = *named
	}

	role, err := s.platform.RoleIn(ctx, organization, user.UUID)
	if fault.Is(err, fault.NotFound) {
		return uuid.Nil, fault.OnField(fault.Unprocessable, "organization_uuid", "not_found",
			"names no organization of yours")
	}
	if err != nil {
		return uuid.Nil, err
	}

	if caller(ctx).Only != nil {
		return uuid.Nil, fault.New(fault.Forbidden, "a personal access token of single projects makes no others").
			WithCode("token_not_allowed")
	}
	if role = caller(ctx).AtMost(role); !role.AtLeast(platform.Admin) {
		return uuid.Nil, fault.New(fault.Forbidden, "this needs the role of %s, and yours is %s", platform.Admin, role)
	}

	return organization, nil
}

var listProjects = Operation{
	ID: "listProjects", Method: "GET", Path: "/projects", Summary: "List projects",
	Access: signedInOrToken, Errors: specifiedErrors,
	Notes: "The projects of the organizations that the caller is a member of; an administrator sees all. Deleted ones are listed by `status=deleted` only.",
}

type listProjectsInput struct {
	PageQuery
	Sort         string  `query:"sort" enum:"name,createdAt,updatedAt" default:"createdAt"`
	Search       string  `query:"search" maxLength:"100" doc:"A part of the name, whatever its case."`
	Organization *string `query:"organizationUuid" format:"uuid" doc:"List the projects of this organization only."`
	Status       string  `query:"status" enum:"active,paused,deleted" doc:"List the projects of this status only; those that are active or paused if it is not given."`
}

func (s *Server) listProjects(
	ctx context.Context, in *listProjectsInput,
) (Answer[[]platform.Project, PageMetadata], error) {
	page, filter := in.page(in.Sort), platform.ProjectFilter{
		Search: in.Search,
		Status: in.Status,
		Only:   caller(ctx).Only,
	}
	if in.Organization != nil {
		filter.Organization = optionalUUID(*in.Organization)
	}

	projects, total, err := s.platform.ListProjects(ctx, caller(ctx).User, filter, page)
	return listOf(projects, page, total), err
}

type projectInput struct {
	UUID uuid.UUID `path:"projectUUID" format:"uuid"`
}

var getProject = Operation{
	ID: "getProject", Method: "GET", Path: "/projects/{projectUUID}", Summary: "Get a project",
	Access: projectInPath(platform.Viewer).orPaused(), Errors: []int{400, 401, 404, 500},
}

func (s *Server) getProject(ctx context.Context, p *tenant.Project, _ *projectInput) (platform.Project, error) {
	return s.platform.GetProject(ctx, p.UUID)
}

var updateProject = Operation{
	ID: "updateProject", Method: "PUT", Path: "/projects/{projectUUID}", Summary: "Change a project",
	Access: projectInPath(platform.Admin), Errors: []int{400, 401, 403, 404, 409, 422, 500},
	Notes: "What the body does not name stays as it is. With `backup_before_destructive`, the operations that say so make a backup first, and `purge` of the project is refused.",
}

type updateProjectInput struct {
	UUID uuid.UUID `path:"projectUUID" format:"uuid"`
	Body struct {
		Name        *string `json:"name,omitempty" minLength:"1" maxLength:"100"`
		Description *string `json:"description,omitempty" maxLength:"500"`

		BackupBeforeDestructive *bool `json:"backup_before_destructive,omitempty" doc:"Whether nothing of the project is destroyed before a backup of it is completed."`
	}
}

func (s *Server) updateProject(
	ctx context.Context, p *tenant.Project, in *updateProjectInput,
) (platform.Project, error) {
	return s.platform.UpdateProject(ctx, p.UUID, caller(ctx).User, platform.ProjectUpdate(in.Body))
}

var deleteProject = Operation{
	ID: "deleteProject", Method: "DELETE", Path: "/projects/{projectUUID}", Summary: "Delete a project",
	Access: projectInPath(platform.Owner).orPaused().orDeleted(), Errors: ddlDeleteErrors, Timeout: longTimeout,
	Notes: "From now on the project is not there for anyone, and its name is free. For a week, or as many days as the setting `deleted_project_days` says, it can be restored; then it is removed with its database, " +
		"its files and its backups. With `purge=true` that happens at once, to a project that is deleted already too, and can't be undone; " +
		"409 with the code `backup_first` if the project has `backupBeforeDestructive`, since its backups would go with it.",
}

type deleteProjectInput struct {
	UUID  uuid.UUID `path:"projectUUID" format:"uuid"`
	Purge string    `query:"purge" enum:"true,false" default:"false" doc:"Remove the project and all that belongs to it before this answers."`
}

func (s *Server) deleteProject(
	ctx context.Context, p *tenant.Project, in *deleteProjectInput,
) (platform.Project, error) {
	if in.Purge == "true" {
		return s.lifecycle.Remove(ctx, p.UUID, caller(ctx).User)
	}
	return s.lifecycle.Delete(ctx, p.UUID, caller(ctx).User)
}

var restoreProject = Operation{
	ID: "restoreProject", Method: "POST", Path: "/projects/{projectUUID}/restore",
	Summary: "Restore a deleted project", Success: http.StatusOK,
	Access: projectInPath(platform.Owner).orPaused().orDeleted(), Errors: []int{
		400, 401, 403, 404, 409, 500,
	}, Timeout: longTimeout,
	Notes: "The project is active again, as it was when it was deleted. Another project may have taken its name meanwhile: that is 409.",
}

func (s *Server) restoreProject(ctx context.Context, p *tenant.Project, _ *projectInput) (platform.Project, error) {
	return s.lifecycle.Restore(ctx, p.UUID, caller(ctx).User)
}

var pauseProject = Operation{
	ID: "pauseProject", Method: "POST", Path: "/projects/{projectUUID}/pause",
	Summary: "Pause a project", Success: http.StatusOK,
	Access: projectInPath(platform.Admin), Errors: restrictedErrors, Timeout: longTimeout,
	Notes: "Until it is resumed, the project and its data are kept, and whatever would reach them is refused, with the code `project_paused`. " +
		"What is under way in it is ended.",
}

func (s *Server) pauseProject(ctx context.Context, p *tenant.Project, _ *projectInput) (platform.Project, error) {
	return s.lifecycle.Pause(ctx, p.UUID, caller(ctx).User)
}

var resumeProject = Operation{
	ID: "resumeProject", Method: "POST", Path: "/projects/{projectUUID}/resume",
	Summary: "Resume a paused project", Success: http.StatusOK,
	Access: projectInPath(platform.Admin).orPaused(), Errors: []int{400, 401, 403, 404, 409, 500}, Timeout: longTimeout,
}

func (s *Server) resumeProject(ctx context.Context, p *tenant.Project, _ *projectInput) (platform.Project, error) {
	return s.lifecycle.Resume(ctx, p.UUID, caller(ctx).User)
}

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
