package organizations

import (
	"context"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/account"
	"github.com/socle-dev/socle/internal/operation"
)

func (s *Server) registerMembers(p *operation.Pipeline) {
	operation.Handle(p, listMembers, s.listMembers, nil)
	operation.Handle(p, updateMember, s.updateMember, s.findMember)
	operation.Handle(p, deleteMember, s.deleteMember, nil)
	operation.Handle(p, leaveOrganization, s.leaveOrganization, nil)
	operation.Handle(p, transferOrganization, s.transferOrganization, nil)
}

var listMembers = operation.Operation{
	ID: "listMembers", Method: "GET",
	Path: "/organizations/{organizationUUID}/members", Summary: "List an organization's members",
	Access: operation.OrganizationInPath(account.Viewer), Errors: []int{400, 401, 404, 500},
}

type listMembersInput struct {
	operation.PageQuery
	Sort string    `query:"sort" enum:"username,email,roleId,createdAt" default:"createdAt"`
	UUID uuid.UUID `path:"organizationUUID" format:"uuid"`
}

func (s *Server) listMembers(
	ctx context.Context, in *listMembersInput,
) (operation.Answer[[]account.Member, operation.PageMetadata], error) {
	page := in.By(in.Sort)
	members, total, err := s.Accounts.ListMembers(ctx, in.UUID, page)
	return operation.ListOf(members, page, total), err
}

type memberInput struct {
	Organization uuid.UUID `path:"organizationUUID" format:"uuid"`
	User         uuid.UUID `path:"memberUUID" format:"uuid" doc:"The user's UUID."`
}

var updateMember = operation.Operation{
	ID: "updateMember", Method: "PUT",
	Path: "/organizations/{organizationUUID}/members/{memberUUID}", Summary: "Update a member's role",
	Access: operation.OrganizationInPath(account.Admin), Errors: []int{400, 401, 403, 404, 409, 422, 500},
	Notes: "Callers cannot change a member whose role is above their own, or grant a role above their own: 403. " +
		"The last owner cannot be demoted: 409, `last_owner`. The new role applies from the member's next request.",
	Example: `{"role_id": 4}`,
}

type updateMemberInput struct {
	Organization uuid.UUID `path:"organizationUUID" format:"uuid"`
	User         uuid.UUID `path:"memberUUID" format:"uuid" doc:"The user's UUID."`
	Body         struct {
		RoleID int `json:"role_id" minimum:"2" maximum:"5" doc:"2 owner, 3 admin, 4 developer, 5 viewer."`
	}
}

func (s *Server) findMember(ctx context.Context, in *updateMemberInput) error {
	_, err := s.Accounts.GetMember(ctx, in.Organization, in.User)
	return err
}

func (s *Server) updateMember(ctx context.Context, in *updateMemberInput) (account.Member, error) {
	return s.Accounts.UpdateMember(ctx, in.Organization, operation.Caller(ctx), in.User, account.Role(in.Body.RoleID))
}

var deleteMember = operation.Operation{
	ID: "deleteMember", Method: "DELETE",
	Path: "/organizations/{organizationUUID}/members/{memberUUID}", Summary: "Remove a member",
	Access: operation.OrganizationInPath(account.Admin), Errors: []int{400, 401, 403, 404, 409, 500},
	Notes: "Callers cannot remove a member whose role is above their own: 403. The last owner cannot be removed: " +
		"409, `last_owner`. Pending invitations created by the member are deleted.",
}

func (s *Server) deleteMember(ctx context.Context, in *memberInput) (account.Member, error) {
	return s.Accounts.DeleteMember(ctx, in.Organization, operation.Caller(ctx), in.User)
}

var leaveOrganization = operation.Operation{
	ID: "leaveOrganization", Method: "DELETE",
	Path: "/organizations/{organizationUUID}/membership", Summary: "Leave an organization",
	Access: operation.OrganizationInPath(account.Viewer), Errors: []int{400, 401, 404, 409, 500},
	Notes: "The last owner cannot leave: 409, `last_owner`. A user who leaves their personal organization after " +
		"transferring it gets another one: the first that they own, or a new one.",
}

func (s *Server) leaveOrganization(ctx context.Context, in *organizationInput) (account.Member, error) {
	return s.Accounts.LeaveOrganization(ctx, in.UUID, operation.Caller(ctx))
}

var transferOrganization = operation.Operation{
	ID: "transferOrganization", Method: "PUT",
	Path: "/organizations/{organizationUUID}/owner", Summary: "Transfer an organization",
	Access: operation.OrganizationInPath(account.Owner), Errors: organizationErrors,
	Notes: "Makes another member an owner and the caller an admin, in one transaction.",
}

type transferOrganizationInput struct {
	UUID uuid.UUID `path:"organizationUUID" format:"uuid"`
	Body struct {
		UserUUID uuid.UUID `json:"user_uuid" format:"uuid" doc:"UUID of a member."`
	}
}

func (s *Server) transferOrganization(ctx context.Context, in *transferOrganizationInput) (account.Member, error) {
	return s.Accounts.TransferOrganization(ctx, in.UUID, operation.Caller(ctx), in.Body.UserUUID)
}
