package api

import (
	"context"
	"time"

	"github.com/google/uuid"

	"socle/internal/fault"
	"socle/internal/platform"
	"socle/internal/ratelimit"
	"socle/internal/token"
)

func (s *Server) registerInvitations() {
	open(s, createInvitation, s.createInvitation)
	open(s, listInvitations, s.listInvitations)
	open(s, resendInvitation, s.resendInvitation)
	open(s, deleteInvitation, s.deleteInvitation)
	open(s, previewInvitation, s.previewInvitation)
	open(s, acceptInvitation, s.acceptInvitation)
}

// Limits of unsolicited mails.
var (
	invitationNetworkLimit   = ratelimit.Limit{Name: "invitation address", Most: 120, Window: time.Hour}
	invitationRecipientLimit = ratelimit.Limit{Name: "invitation recipient", Most: 10, Window: 24 * time.Hour}
)

var createInvitation = Operation{
	ID: "createInvitation", Method: "POST",
	Path: "/organizations/{organizationUUID}/invitations", Summary: "Create an invitation",
	Access: organizationInPath(platform.Admin), Errors: []int{400, 401, 403, 404, 409, 422, 429, 500},
	Notes: "Mails a link to the address, which works once, for seven days. Callers cannot grant a role above their " +
		"own: 403. An address can have one invitation to an organization: 409.",
}

type createInvitationInput struct {
	UUID uuid.UUID `path:"organizationUUID" format:"uuid"`
	Body struct {
		Email  string `json:"email" maxLength:"254"`
		RoleID int    `json:"role_id" minimum:"2" maximum:"5" doc:"2 owner, 3 admin, 4 developer, 5 viewer."`
	}
}

func (s *Server) createInvitation(ctx context.Context, in *createInvitationInput) (platform.Invited, error) {
	email, err := platform.CleanEmail(in.Body.Email)
	if err != nil {
		return platform.Invited{}, err
	}

	return s.invite(ctx, email, func(tx *platform.Store) (platform.Invited, error) {
		return tx.CreateInvitation(ctx, in.UUID, caller(ctx), email, platform.Role(in.Body.RoleID))
	})
}

// invite creates an invitation by f and mails it, within the limits.
func (s *Server) invite(
	ctx context.Context, email string, f func(tx *platform.Store) (platform.Invited, error),
) (platform.Invited, error) {
	if err := s.countAttempt(ctx, invitationNetworkLimit, invitationRecipientLimit,
		platform.EmailKey(email)); err != nil {
		return platform.Invited{}, err
	}

	var i platform.Invited
	err := s.platform.InTx(ctx, func(tx *platform.Store) error {
		var err error
		if i, err = f(tx); err != nil {
			return err
		}

		return s.jobs.SendInvitation(ctx, tx, caller(ctx).User, i)
	})

	return i, err
}

var listInvitations = Operation{
	ID: "listInvitations", Method: "GET",
	Path: "/organizations/{organizationUUID}/invitations", Summary: "List an organization's invitations",
	Access: organizationInPath(platform.Admin), Errors: restrictedErrors,
	Notes: "Lists invitations that have not been accepted. An expired invitation is listed for thirty days and can " +
		"be resent.",
}

type listInvitationsInput struct {
	PageQuery
	Sort string    `query:"sort" enum:"email,createdAt,expiresAt" default:"createdAt"`
	UUID uuid.UUID `path:"organizationUUID" format:"uuid"`
}

func (s *Server) listInvitations(
	ctx context.Context, in *listInvitationsInput,
) (Answer[[]platform.Invited, PageMetadata], error) {
	page := in.page(in.Sort)
	all, total, err := s.platform.ListInvitations(ctx, in.UUID, page)
	return listOf(all, page, total), err
}

type invitationInput struct {
	Organization uuid.UUID `path:"organizationUUID" format:"uuid"`
	UUID         uuid.UUID `path:"invitationUUID" format:"uuid"`
}

var resendInvitation = Operation{
	ID: "resendInvitation", Method: "POST",
	Path: "/organizations/{organizationUUID}/invitations/{invitationUUID}/resend", Summary: "Resend an invitation",
	Access: organizationInPath(platform.Admin), Errors: []int{400, 401, 403, 404, 429, 500}, Success: 200,
	Notes: "Mails a new link, valid for seven days; earlier links become invalid.",
}

func (s *Server) resendInvitation(ctx context.Context, in *invitationInput) (platform.Invited, error) {
	before, err := s.platform.GetInvitation(ctx, in.Organization, in.UUID)
	if err != nil {
		return before, err
	}

	return s.invite(ctx, before.Email, func(tx *platform.Store) (platform.Invited, error) {
		return tx.RenewInvitation(ctx, in.Organization, caller(ctx), in.UUID)
	})
}

var deleteInvitation = Operation{
	ID: "deleteInvitation", Method: "DELETE",
	Path: "/organizations/{organizationUUID}/invitations/{invitationUUID}", Summary: "Delete an invitation",
	Access: organizationInPath(platform.Admin), Errors: restrictedErrors,
}

func (s *Server) deleteInvitation(ctx context.Context, in *invitationInput) (platform.Invited, error) {
	return s.platform.DeleteInvitation(ctx, in.Organization, caller(ctx), in.UUID)
}

var previewInvitation = Operation{
	ID: "previewInvitation", Method: "GET", Path: "/invitations/preview",
	Summary: "Preview an invitation", Access: anonymous, Errors: []int{400, 404, 500},
	Notes: "For holders of the link, signed in or not. Forged, used, expired and void tokens all return 404.",
}

type previewInvitationInput struct {
	Token string `query:"token" required:"true" maxLength:"200" doc:"Token from the link in the mail."`
}

func (s *Server) previewInvitation(
	ctx context.Context, in *previewInvitationInput,
) (platform.InvitationPreview, error) {
	link, ok := token.ParseLink(s.linkKey, platform.Invitation, in.Token)
	if !ok {
		return platform.InvitationPreview{}, fault.New(fault.NotFound,
			"the invitation does not exist or is no longer valid")
	}

	return s.platform.PreviewInvitation(ctx, link)
}

var acceptInvitation = Operation{
	ID: "acceptInvitation", Method: "POST", Path: "/invitations/accept", Summary: "Accept an invitation",
	Access: signedIn, Errors: []int{400, 401, 403, 422, 500},
	Notes: "Makes the caller a member of the inviting organization. The invitation must be for the caller's own " +
		"address: 403 otherwise. New users sign up with the token as `invitation_token`.",
}

type acceptInvitationInput struct {
	Body struct {
		Token string `json:"token" maxLength:"200" doc:"Token from the link in the mail."`
	}
}

func (s *Server) acceptInvitation(ctx context.Context, in *acceptInvitationInput) (platform.Organization, error) {
	link, ok := token.ParseLink(s.linkKey, platform.Invitation, in.Body.Token)
	if !ok {
		return platform.Organization{}, platform.InvalidLink()
	}

	return s.platform.AcceptInvitation(ctx, link, caller(ctx).User)
}

// invitationLink returns the UUID of the link in an invitation token after checking that it invites
// email. It returns the zero UUID without a token.
func (s *Server) invitationLink(ctx context.Context, text, email string) (uuid.UUID, error) {
	if text == "" {
		return uuid.Nil, nil
	}

	link, ok := token.ParseLink(s.linkKey, platform.Invitation, text)
	if !ok {
		return uuid.Nil, badInvitation(platform.InvalidLink())
	}

	i, err := s.platform.InvitationByLink(ctx, link)
	if err != nil {
		return uuid.Nil, badInvitation(err)
	}

	if platform.EmailKey(email) != platform.EmailKey(i.Email) {
		return uuid.Nil, fault.OnField(fault.Unprocessable, "email", "other_address",
			"must be the invited address")
	}

	return link, nil
}

// badInvitation moves an Unprocessable error to the field of the sign-up body that holds the
// invitation token.
func badInvitation(err error) error {
	if !fault.Is(err, fault.Unprocessable) {
		return err
	}

	return fault.OnField(fault.Unprocessable, "invitation_token", "invalid_token",
		"does not belong to a pending invitation").WithCause(err)
}
