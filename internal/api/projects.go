package api

import (
	"context"
	"strings"

	"github.com/google/uuid"

	"socle/internal/fault"
	"socle/internal/platform"
	"socle/internal/tenant"
)

func (s *Server) registerProjects() {
	open(s, createProject, s.createProject)
	open(s, listProjects, s.listProjects)
	within(s, getProject, s.getProject, nil)
	within(s, deleteProject, s.deleteProject, nil)
}

var createProject = Operation{
	ID: "createProject", Method: "POST", Path: "/projects", Summary: "Create a project", Access: signedIn, Errors: creating, Timeout: lasting,
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
	organization, err := s.organization(ctx, in.Body.OrganizationUUID)
	if err != nil {
		return platform.Project{}, err
	}
	return s.lifecycle.Create(ctx, caller(ctx).User, platform.NewProject{
		Organization: organization, Name: strings.TrimSpace(in.Body.Name), Description: in.Body.Description})
}

// organization returns the organization that the caller may make projects in: the named one, or their own.
func (s *Server) organization(ctx context.Context, named *uuid.UUID) (uuid.UUID, error) {
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
		return uuid.Nil, fault.OnField(fault.Unprocessable, "organization_uuid", "not_found", "names no organization of yours")
	}
	if err != nil {
		return uuid.Nil, err
	}
	if !role.AtLeast(platform.Admin) {
		return uuid.Nil, fault.New(fault.Forbidden, "this needs the role of %s, and yours is %s", platform.Admin, role)
	}
	return organization, nil
}

var listProjects = Operation{
	ID: "listProjects", Method: "GET", Path: "/projects", Summary: "List projects", Access: signedIn, Errors: specified,
	Notes: "The projects of the organizations that the caller is a member of; an administrator sees all.",
}

type listProjectsInput struct {
	PageQuery
	Sort string `query:"sort" enum:"name,createdAt,updatedAt" default:"createdAt"`
}

func (s *Server) listProjects(ctx context.Context, in *listProjectsInput) (Answer[[]platform.Project, PageMetadata], error) {
	page := in.by(in.Sort)
	projects, total, err := s.platform.ListProjects(ctx, caller(ctx).User, page)
	return listOf(projects, page, total), err
}

type projectInput struct {
	UUID uuid.UUID `path:"projectUUID" format:"uuid"`
}

var getProject = Operation{
	ID: "getProject", Method: "GET", Path: "/projects/{projectUUID}", Summary: "Get a project",
	Access: projectInPath(platform.Viewer), Errors: []int{400, 401, 404, 500},
}

func (s *Server) getProject(ctx context.Context, p *tenant.Project, _ *projectInput) (platform.Project, error) {
	return s.platform.GetProject(ctx, p.UUID)
}

var deleteProject = Operation{
	ID: "deleteProject", Method: "DELETE", Path: "/projects/{projectUUID}", Summary: "Delete a project",
	Access: projectInPath(platform.Owner), Errors: reading, Timeout: lasting,
	Notes: "The project, its database, its files and its backups are gone when this answers, and can't be brought back.",
}

func (s *Server) deleteProject(ctx context.Context, p *tenant.Project, _ *projectInput) (platform.Project, error) {
	return s.lifecycle.Delete(ctx, p.UUID, caller(ctx).User)
}
