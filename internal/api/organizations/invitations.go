package organizations

import (
	"context"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/account"
	"github.com/socle-dev/socle/internal/operation"
)

func (s *Server) registerInvitations(p *operation.Pipeline) {
	operation.Handle(p, createInvitation, s.createInvitation, nil)
	operation.Handle(p, listInvitations, s.listInvitations, nil)
	operation.Handle(p, resendInvitation, s.resendInvitation, nil)
	operation.Handle(p, deleteInvitation, s.deleteInvitation, nil)
	operation.Handle(p, previewInvitation, s.previewInvitation, nil)
	operation.Handle(p, acceptInvitation, s.acceptInvitation, nil)
}

var createInvitation = operation.Operation{
	ID: "createInvitation", Method: "POST",
	Path: "/organizations/{organizationUUID}/invitations", Summary: "Create an invitation",
	Access: operation.OrganizationInPath(account.Admin), Errors: []int{400, 401, 403, 404, 409, 422, 429, 500},
	Notes: "Mails a link to the address, which works once, for seven days. Callers cannot grant a role above their " +
		"own: 403. An address can have one invitation to an organization: 409.",
	Example: `{"email": "grace@example.com", "role_id": 4}`,
}

type createInvitationInput struct {
	UUID uuid.UUID `path:"organizationUUID" format:"uuid"`
	Body struct {
		Email  string `json:"email" maxLength:"254"`
		RoleID int    `json:"role_id" minimum:"2" maximum:"5" doc:"2 owner, 3 admin, 4 developer, 5 viewer."`
	}
}

func (s *Server) createInvitation(ctx context.Context, in *createInvitationInput) (account.Invited, error) {
	return s.Accounts.CreateInvitation(ctx, operation.Caller(ctx), operation.ClientOf(ctx), in.UUID, in.Body.Email,
		account.Role(in.Body.RoleID))
}

var listInvitations = operation.Operation{
	ID: "listInvitations", Method: "GET",
	Path: "/organizations/{organizationUUID}/invitations", Summary: "List an organization's invitations",
	Access: operation.OrganizationInPath(account.Admin), Errors: operation.RestrictedErrors,
	Notes: "Lists invitations that have not been accepted. An expired invitation is listed for thirty days and can " +
		"be resent.",
}

type listInvitationsInput struct {
	operation.PageQuery
	Sort string    `query:"sort" enum:"email,createdAt,expiresAt" default:"createdAt"`
	UUID uuid.UUID `path:"organizationUUID" format:"uuid"`
}

func (s *Server) listInvitations(
	ctx context.Context, in *listInvitationsInput,
) (operation.Answer[[]account.Invited, operation.PageMetadata], error) {
	page := in.By(in.Sort)
	all, total, err := s.Accounts.ListInvitations(ctx, in.UUID, page)
	return operation.ListOf(all, page, total), err
}

type invitationInput struct {
	Organization uuid.UUID `path:"organizationUUID" format:"uuid"`
	UUID         uuid.UUID `path:"invitationUUID" format:"uuid"`
}

var resendInvitation = operation.Operation{
	ID: "resendInvitation", Method: "POST",
	Path: "/organizations/{organizationUUID}/invitations/{invitationUUID}/resend", Summary: "Resend an invitation",
	Access: operation.OrganizationInPath(account.Admin), Success: 200,
	Errors: []int{400, 401, 403, 404, 409, 422, 429, 500},
	Notes: "Mails a new link, valid for seven days; earlier links become invalid. Fails with `already_member` or " +
		"`quota_exceeded` if the address can't become a member any more.",
}

func (s *Server) resendInvitation(ctx context.Context, in *invitationInput) (account.Invited, error) {
	return s.Accounts.ResendInvitation(ctx, operation.Caller(ctx), operation.ClientOf(ctx), in.Organization, in.UUID)
}

var deleteInvitation = operation.Operation{
	ID: "deleteInvitation", Method: "DELETE",
	Path: "/organizations/{organizationUUID}/invitations/{invitationUUID}", Summary: "Delete an invitation",
	Access: operation.OrganizationInPath(account.Admin), Errors: operation.RestrictedErrors,
}

func (s *Server) deleteInvitation(ctx context.Context, in *invitationInput) (account.Invited, error) {
	return s.Accounts.DeleteInvitation(ctx, in.Organization, operation.Caller(ctx), in.UUID)
}

var previewInvitation = operation.Operation{
	ID: "previewInvitation", Method: "GET", Path: "/invitations/preview",
	Summary: "Preview an invitation", Access: operation.Anonymous, Errors: []int{400, 404, 500},
	Notes: "For holders of the link, signed in or not. Forged, used, expired and void tokens all return 404.",
}

type previewInvitationInput struct {
	Token string `query:"token" required:"true" maxLength:"200" doc:"Token from the link in the mail."`
}

func (s *Server) previewInvitation(
	ctx context.Context, in *previewInvitationInput,
) (account.InvitationPreview, error) {
	return s.Accounts.PreviewInvitation(ctx, in.Token)
}

var acceptInvitation = operation.Operation{
	ID: "acceptInvitation", Method: "POST", Path: "/invitations/accept", Summary: "Accept an invitation",
	Access: operation.SignedIn, Errors: []int{400, 401, 403, 422, 500},
	Notes: "Makes the caller a member of the inviting organization. The invitation must be for the caller's own " +
		"address: 403 otherwise. New users sign up with the token as `invitation_token`.",
}

type acceptInvitationInput struct {
	Body struct {
		Token string `json:"token" maxLength:"200" doc:"Token from the link in the mail."`
	}
}

func (s *Server) acceptInvitation(ctx context.Context, in *acceptInvitationInput) (account.Organization, error) {
	return s.Accounts.AcceptInvitation(ctx, operation.Caller(ctx).User, in.Body.Token)
}
