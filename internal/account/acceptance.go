package account

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/audit"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/token"
)

// invitationByLink returns a link's invitation. It fails with [InvalidLink] if the link or the
// invitation is not valid any more.
func (s *Service) invitationByLink(ctx context.Context, link uuid.UUID) (Invited, error) {
	i, err := pg.One[Invited](ctx, s.q, `select`+invitationColumns+`
		from platform.links l join platform.invitations i on i.uuid = l.subject_uuid
		where l.uuid = @link and l.purpose = @purpose and l.used_at is null and l.expires_at > now() and i.expires_at > now()`,
		pgx.StrictNamedArgs{"link": link, "purpose": Invitation})
	if fault.Is(err, fault.NotFound) {
		return i, InvalidLink()
	}

	return i, err
}

// InvitationPreview is the part of an invitation that a holder of its link may see.
type InvitationPreview struct {
	OrganizationName string    `json:"organizationName"`
	Inviter          string    `json:"inviter" doc:"Name of the inviting user; empty if deleted."`
	Email            string    `json:"email" doc:"Invited address."`
	RoleID           Role      `json:"roleId" minimum:"2" maximum:"5" doc:"Role of the future member: 2 owner, 3 admin, 4 developer, 5 viewer."`
	ExpiresAt        time.Time `json:"expiresAt"`
	HasAccount       bool      `json:"hasAccount" doc:"Whether the invited address belongs to an account, whose user accepts by logging in; others sign up."`
}

// previewByLink returns an invitation's preview by its link. It fails with NotFound if the link or
// the invitation is not valid any more.
func (s *Service) previewByLink(ctx context.Context, link uuid.UUID) (InvitationPreview, error) {
	return pg.One[InvitationPreview](ctx, s.q, `
		select o.name as organization_name, coalesce(u.username, '') as inviter, i.email, i.role as role_id, least(i.expires_at, l.expires_at) as expires_at,
			exists (select from platform.users a where a.email_folded = i.email_folded) as has_account
		from platform.links l
		join platform.invitations i on i.uuid = l.subject_uuid
		join platform.organizations o on o.uuid = i.organization_uuid
		left join platform.users u on u.uuid = i.created_by
		where l.uuid = @link and l.purpose = @purpose and l.used_at is null and l.expires_at > now() and i.expires_at > now()`,
		pgx.StrictNamedArgs{"link": link, "purpose": Invitation})
}

// PreviewInvitation returns an invitation's preview by its link token. It fails with NotFound if
// the link or the invitation is not valid.
func (s *Service) PreviewInvitation(ctx context.Context, linkToken string) (InvitationPreview, error) {
	link, ok := token.ParseLink(s.LinkKey, Invitation, linkToken)
	if !ok {
		return InvitationPreview{}, fault.New(fault.NotFound, "the invitation does not exist or is no longer valid")
	}

	return s.previewByLink(ctx, link)
}

// AcceptInvitation makes a user a member by a link token and marks the link as used. It fails as
// [Service.acceptInvitation] does.
func (s *Service) AcceptInvitation(ctx context.Context, user uuid.UUID, linkToken string) (Organization, error) {
	link, ok := token.ParseLink(s.LinkKey, Invitation, linkToken)
	if !ok {
		return Organization{}, InvalidLink()
	}

	return s.acceptInvitation(ctx, link, user)
}

// AcceptByLogin is [Service.AcceptInvitation] for the user with these credentials, in one
// transaction and without a session. It fails as [Service.Login] does for the credentials.
func (s *Service) AcceptByLogin(
	ctx context.Context, client Client, in Credentials, linkToken string,
) (Organization, error) {
	var o Organization
	err := s.withCredentials(ctx, client, in, func(tx *Service, user User, _ string) error {
		audit.SetActor(ctx, user.UUID)

		if err := tx.rememberNetwork(ctx, client, user); err != nil {
			return err
		}

		var err error
		o, err = tx.AcceptInvitation(ctx, user.UUID, linkToken)
		return err
	})

	return o, err
}

// AcceptBySignUp is [Service.SignUp] by an invitation, without a session.
func (s *Service) AcceptBySignUp(ctx context.Context, client Client, in SignUp) error {
	return s.signUp(ctx, Caller{}, client, in, func(tx *Service, user User, _ string) error {
		audit.SetActor(ctx, user.UUID)

		return tx.rememberNetwork(ctx, client, user)
	})
}

// acceptInvitation makes a user a member by a link and marks the link as used. A user who is
// already a member keeps their role. It fails with [InvalidLink] if the link or the invitation is
// not valid any more, and with Forbidden if another address than the user's was invited.
func (s *Service) acceptInvitation(ctx context.Context, link, user uuid.UUID) (Organization, error) {
	var o Organization
	err := s.inTx(ctx, func(tx *Service) error {
		claim, err := tx.UseLink(ctx, Invitation, link)
		if err != nil {
			return err
		}

		i, err := pg.One[struct {
			OrganizationUUID uuid.UUID
			Role             Role
			Theirs           bool
		}](ctx, tx.q, `
			delete from platform.invitations i using platform.users u
			where i.uuid = @subject and i.expires_at > now() and u.uuid = @user
			returning i.organization_uuid, i.role, i.email_folded = u.email_folded as theirs`,
			pgx.StrictNamedArgs{"subject": claim.SubjectUUID, "user": user})
		if fault.Is(err, fault.NotFound) {
			return InvalidLink()
		}
		if err != nil {
			return err
		}

		if !i.Theirs {
			return fault.New(fault.Forbidden, "the invitation is for another e-mail address").WithCode("other_address")
		}

		if _, err := pg.Exec(ctx, tx.q, `
			insert into platform.members (organization_uuid, user_uuid, role) values (@organization, @user, @role)
			on conflict (organization_uuid, user_uuid) do nothing`,
			pgx.StrictNamedArgs{"organization": i.OrganizationUUID, "user": user, "role": i.Role}); err != nil {
			return err
		}

		o, err = tx.GetOrganization(ctx, i.OrganizationUUID, user)
		return err
	})

	return o, err
}

// invitationLink returns the UUID of the link in an invitation token after checking that it invites
// email. It returns the zero UUID without a token.
func (s *Service) invitationLink(ctx context.Context, text, email string) (uuid.UUID, error) {
	if text == "" {
		return uuid.Nil, nil
	}

	link, ok := token.ParseLink(s.LinkKey, Invitation, text)
	if !ok {
		return uuid.Nil, badInvitation(InvalidLink())
	}

	i, err := s.invitationByLink(ctx, link)
	if err != nil {
		return uuid.Nil, badInvitation(err)
	}

	if foldEmail(email) != foldEmail(i.Email) {
		return uuid.Nil, fault.OnField(fault.Unprocessable, "email", "other_address", "must be the invited address")
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
