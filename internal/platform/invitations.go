package platform

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"socle/internal/audit"
	"socle/internal/fault"
	"socle/internal/pg"
)

// InvitationTTL is the TTL of an invitation after it was sent.
const InvitationTTL = 7 * 24 * time.Hour

// Invited is a pending invitation to an organization.
type Invited struct {
	UUID             uuid.UUID `json:"uuid"`
	OrganizationUUID uuid.UUID `json:"organizationUuid"`
	Email            string    `json:"email"`
	RoleID           Role      `json:"roleId" minimum:"2" maximum:"5" doc:"Role of the future member: 2 owner, 3 admin, 4 developer, 5 viewer."`
	CreatedAt        time.Time `json:"createdAt"`
	CreatedBy        uuid.UUID `json:"createdBy"`
	SentAt           time.Time `json:"sentAt"`
	ExpiresAt        time.Time `json:"expiresAt"`
}

const invitationColumns = ` i.uuid, i.organization_uuid, i.email, i.role as role_id, i.created_at, i.created_by, i.sent_at, i.expires_at `

// CreateInvitation invites an address to an organization. It replaces an expired invitation. It
// fails with Forbidden if the role is above the actor's, with Conflict on email if the address is
// invited or a member already, and with Unprocessable if the organization has the allowed number of
// members.
func (s *Store) CreateInvitation(
	ctx context.Context, organization uuid.UUID, actor Caller, email string, role Role,
) (Invited, error) {
	id, err := uuid.NewV7()
	if err != nil {
		return Invited{}, err
	}

	var i Invited
	err = s.withMembershipLock(ctx, organization, actor, Admin, func(tx *Store, mine Role) error {
		audit.CreatedUUID(ctx, id)

		if !mine.AtLeast(role) {
			return fault.New(fault.Forbidden, "you can only invite members up to your own role, %s", mine)
		}

		if err := tx.requireRoom(ctx, organization, email); err != nil {
			return err
		}

		i, err = pg.One[Invited](ctx, tx.q, `
			insert into platform.invitations as i (uuid, organization_uuid, email, email_folded, role, created_by, expires_at)
			values (@id, @organization, @email, @folded, @role, @actor, now() + @life::interval)
			on conflict (organization_uuid, email_folded) do update set uuid = excluded.uuid, email = excluded.email, role = excluded.role,
				created_at = now(), created_by = excluded.created_by, sent_at = now(), expires_at = excluded.expires_at
			where i.expires_at <= now()
			returning`+invitationColumns,
			pgx.StrictNamedArgs{"id": id, "organization": organization, "email": email, "folded": fold(email),
				"role": role, "actor": actor.User, "life": InvitationTTL})
		if fault.Is(err, fault.NotFound) {
			return fault.OnField(fault.Conflict, "email", "already_exists", "is already invited").WithCause(err)
		}

		return err
	})

	return i, err
}

// requireRoom fails unless an address can be invited to an organization. The caller holds the
// lock of the organization.
func (s *Store) requireRoom(ctx context.Context, organization uuid.UUID, email string) error {
	settings, err := s.Settings(ctx)
	if err != nil {
		return err
	}

	state, err := pg.One[struct {
		Heads  int64
		Member bool
	}](ctx, s.q, `
		select (select count(*) from platform.members where organization_uuid = @organization)
		     + (select count(*) from platform.invitations where organization_uuid = @organization
		        and expires_at > now() and email_folded <> @folded) as heads,
		       exists (select from platform.members m join platform.users u on u.uuid = m.user_uuid
		        where m.organization_uuid = @organization and u.email_folded = @folded) as member`,
		pgx.StrictNamedArgs{"organization": organization, "folded": fold(email)})
	switch {
	case err != nil:
		return err
	case state.Member:
		return fault.OnField(fault.Conflict, "email", "already_member", "already belongs to a member")
	case state.Heads >= settings.MembersPerOrganization:
		return fault.New(fault.Unprocessable,
			"the organization has reached its limit of members: it has %d, invitations included",
			state.Heads).WithCode("quota_exceeded")
	}

	return nil
}

// GetInvitation returns an invitation to an organization. It fails with NotFound for an unknown
// invitation.
func (s *Store) GetInvitation(ctx context.Context, organization, id uuid.UUID) (Invited, error) {
	return pg.One[Invited](ctx, s.q, `select`+invitationColumns+`from platform.invitations i
		where i.uuid = @id and i.organization_uuid = @organization`,
		pgx.StrictNamedArgs{"id": id, "organization": organization})
}

// ListInvitations returns a page of the invitations of an organization, expired ones included, and
// the total count.
func (s *Store) ListInvitations(ctx context.Context, organization uuid.UUID, page pg.Page) ([]Invited, int64, error) {
	args := pgx.StrictNamedArgs{"organization": organization}
	total, err := pg.Value[int64](ctx, s.q,
		`select count(*) from platform.invitations where organization_uuid = @organization`, args)
	if err != nil {
		return nil, 0, err
	}

	all, err := pg.All[Invited](ctx, s.q,
		`select`+invitationColumns+`from platform.invitations i where i.organization_uuid = @organization`+
			page.Clause(map[string]string{
				"email": "i.email_folded", "createdAt": "i.created_at", "expiresAt": "i.expires_at",
			}, "i.uuid"), args)
	return all, total, err
}

// RenewInvitation restarts the TTL of an invitation and deletes its earlier links. It fails with
// NotFound for an unknown invitation, and with Forbidden if its role is above the actor's.
func (s *Store) RenewInvitation(
	ctx context.Context, organization uuid.UUID, actor Caller, id uuid.UUID,
) (Invited, error) {
	var i Invited
	err := s.withMembershipLock(ctx, organization, actor, Admin, func(tx *Store, mine Role) error {
		if err := tx.requireInvitationRole(ctx, organization, id, mine); err != nil {
			return err
		}

		// Links first, in the lock order of AcceptInvitation.
		err := tx.DeleteLinks(ctx, id)
		if err != nil {
			return err
		}

		i, err = pg.One[Invited](ctx, tx.q, `
			update platform.invitations i set sent_at = now(), expires_at = now() + @life::interval
			where uuid = @id and organization_uuid = @organization
			returning`+invitationColumns, pgx.StrictNamedArgs{
			"id": id, "organization": organization, "life": InvitationTTL,
		})
		return err
	})

	return i, err
}

// DeleteInvitation withdraws an invitation. It fails with NotFound for an unknown invitation, and
// with Forbidden if its role is above the actor's.
func (s *Store) DeleteInvitation(
	ctx context.Context, organization uuid.UUID, actor Caller, id uuid.UUID,
) (Invited, error) {
	var i Invited
	err := s.withMembershipLock(ctx, organization, actor, Admin, func(tx *Store, mine Role) error {
		if err := tx.requireInvitationRole(ctx, organization, id, mine); err != nil {
			return err
		}

		err := tx.DeleteLinks(ctx, id)
		if err != nil {
			return err
		}

		i, err = pg.One[Invited](ctx, tx.q, `
			delete from platform.invitations i where uuid = @id and organization_uuid = @organization
			returning`+invitationColumns, pgx.StrictNamedArgs{"id": id, "organization": organization})
		return err
	})

	return i, err
}

// requireInvitationRole fails with Forbidden if the role of an invitation is above mine.
func (s *Store) requireInvitationRole(ctx context.Context, organization, id uuid.UUID, mine Role) error {
	i, err := s.GetInvitation(ctx, organization, id)
	if err != nil {
		return err
	}

	if !mine.AtLeast(i.RoleID) {
		return fault.New(fault.Forbidden, "you can only change invitations up to your own role, %s", mine)
	}

	return nil
}

// InvitationByLink returns the invitation of a link. It fails with [InvalidLink] if the link or the
// invitation is not valid any more.
func (s *Store) InvitationByLink(ctx context.Context, link uuid.UUID) (Invited, error) {
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
}

// PreviewInvitation returns the preview of an invitation by its link. It fails with NotFound if the
// link or the invitation is not valid any more.
func (s *Store) PreviewInvitation(ctx context.Context, link uuid.UUID) (InvitationPreview, error) {
	return pg.One[InvitationPreview](ctx, s.q, `
		select o.name as organization_name, coalesce(u.username, '') as inviter, i.email, i.role as role_id, least(i.expires_at, l.expires_at) as expires_at
		from platform.links l
		join platform.invitations i on i.uuid = l.subject_uuid
		join platform.organizations o on o.uuid = i.organization_uuid
		left join platform.users u on u.uuid = i.created_by
		where l.uuid = @link and l.purpose = @purpose and l.used_at is null and l.expires_at > now() and i.expires_at > now()`,
		pgx.StrictNamedArgs{"link": link, "purpose": Invitation})
}

// AcceptInvitation makes a user a member by a link and marks the link as used. A user who is
// already a member keeps their role. It fails with [InvalidLink] if the link or the invitation is
// not valid any more, and with Forbidden if another address than the user's was invited.
func (s *Store) AcceptInvitation(ctx context.Context, link, user uuid.UUID) (Organization, error) {
	var o Organization
	err := s.InTx(ctx, func(tx *Store) error {
		used, err := tx.UseLink(ctx, Invitation, link)
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
			pgx.StrictNamedArgs{"subject": used.SubjectUUID, "user": user})
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

// ForgetInvitations deletes invitations that expired at least 30 days ago.
func (s *Store) ForgetInvitations(ctx context.Context) error {
	_, err := pg.Exec(ctx, s.q, `delete from platform.invitations where expires_at < now() - interval '30 days'`)
	return err
}
