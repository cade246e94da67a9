package organizations

import (
	"context"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/account"
	"github.com/socle-dev/socle/internal/operation"
)

func (s *Server) registerOrganizations(p *operation.Pipeline) {
	operation.Handle(p, createOrganization, s.createOrganization, nil)
	operation.Handle(p, listOrganizations, s.listOrganizations, nil)
	operation.Handle(p, getOrganization, s.getOrganization, nil)
	operation.Handle(p, updateOrganization, s.updateOrganization, nil)
	operation.Handle(p, deleteOrganization, s.deleteOrganization, nil)
}

// Failure statuses for operations that change an organization.
var organizationErrors = []int{400, 401, 403, 404, 422, 500}

type organizationInput struct {
	UUID uuid.UUID `path:"organizationUUID" format:"uuid"`
}

// OrganizationBody has the organization fields that users set.
type OrganizationBody struct {
	Name string `json:"name" minLength:"1" maxLength:"100"`
}

var createOrganization = operation.Operation{
	ID: "createOrganization", Method: "POST", Path: "/organizations", Summary: "Create an organization",
	Access: operation.SignedIn, Errors: operation.SpecifiedBodyErrors,
	Notes: "The caller becomes its owner. Each user already has one organization, created with the account.",
}

type createOrganizationInput struct{ Body OrganizationBody }

func (s *Server) createOrganization(ctx context.Context, in *createOrganizationInput) (account.Organization, error) {
	return s.Accounts.CreateOrganization(ctx, operation.Caller(ctx).User, in.Body.Name)
}

var listOrganizations = operation.Operation{
	ID: "listOrganizations", Method: "GET", Path: "/organizations", Summary: "List organizations",
	Access: operation.SignedIn, Errors: operation.SpecifiedErrors,
	Notes: "Lists the caller's organizations. With `scope=all`, administrators of the instance get all organizations.",
}

type listOrganizationsInput struct {
	operation.PageQuery
	Sort  string `query:"sort" enum:"name,createdAt,updatedAt" default:"createdAt"`
	Scope string `query:"scope" enum:"mine,all" default:"mine"`
}

func (s *Server) listOrganizations(
	ctx context.Context, in *listOrganizationsInput,
) (operation.Answer[[]account.Organization, operation.PageMetadata], error) {
	page := in.By(in.Sort)
	organizations, total, err := s.Accounts.ListOrganizations(ctx, operation.Caller(ctx).User, in.Scope == "all", page)
	return operation.ListOf(organizations, page, total), err
}

var getOrganization = operation.Operation{
	ID: "getOrganization", Method: "GET", Path: "/organizations/{organizationUUID}", Summary: "Get an organization",
	Access: operation.OrganizationInPath(account.Viewer), Errors: []int{400, 401, 404, 500},
}

func (s *Server) getOrganization(ctx context.Context, in *organizationInput) (account.Organization, error) {
	return s.Accounts.GetOrganization(ctx, in.UUID, operation.Caller(ctx).User)
}

var updateOrganization = operation.Operation{
	ID: "updateOrganization", Method: "PUT",
	Path: "/organizations/{organizationUUID}", Summary: "Rename an organization",
	Access: operation.OrganizationInPath(account.Admin), Errors: organizationErrors,
}

type updateOrganizationInput struct {
	UUID uuid.UUID `path:"organizationUUID" format:"uuid"`
	Body OrganizationBody
}

func (s *Server) updateOrganization(ctx context.Context, in *updateOrganizationInput) (account.Organization, error) {
	return s.Accounts.RenameOrganization(ctx, in.UUID, operation.Caller(ctx), in.Body.Name)
}

var deleteOrganization = operation.Operation{
	ID: "deleteOrganization", Method: "DELETE",
	Path: "/organizations/{organizationUUID}", Summary: "Delete an organization",
	Access: operation.OrganizationInPath(account.Owner), Errors: []int{400, 401, 403, 404, 409, 500},
	Notes: "Deletes its members and invitations. Fails with 409 while it has projects (`in_use`) or is the " +
		"personal organization of a member, named by their `organizationUuid` (`own_organization`).",
}

func (s *Server) deleteOrganization(ctx context.Context, in *organizationInput) (account.Organization, error) {
	return s.Accounts.DeleteOrganization(ctx, in.UUID, operation.Caller(ctx))
}
