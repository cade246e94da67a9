package account

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/audit"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/ratelimit"
)

// invitationTTL is an invitation's lifetime after it was sent.
const invitationTTL = 7 * 24 * time.Hour

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

// Limits for unsolicited mails.
var (
	invitationNetworkLimit   = ratelimit.Limit{Name: "invitation address", Most: 120, Window: time.Hour}
	invitationRecipientLimit = ratelimit.Limit{Name: "invitation recipient", Most: 10, Window: 24 * time.Hour}
)

// CreateInvitation invites an address to an organization by mail. It replaces an expired
// invitation. It fails with Forbidden if the role is above the actor's, with Conflict on email if
// the address is invited or a member already, with Unprocessable if the address is malformed or the
// organization has the allowed number of members, and with TooMany beyond the limits.
func (s *Service) CreateInvitation(
	ctx context.Context, actor Caller, client Client, organization uuid.UUID, address string, role Role,
) (Invited, error) {
	email, err := cleanEmail(address)
	if err != nil {
		return Invited{}, err
	}

	return s.invite(ctx, actor, client, email, func(tx *Service) (Invited, error) {
		return tx.insertInvitation(ctx, organization, actor, email, role)
	})
}

// ResendInvitation mails a new link for an invitation and voids earlier ones. It fails as
// [Service.renewInvitation] does, and with TooMany beyond the limits.
func (s *Service) ResendInvitation(
	ctx context.Context, actor Caller, client Client, organization, id uuid.UUID,
) (Invited, error) {
	former, err := s.getInvitation(ctx, organization, id)
	if err != nil {
		return former, err
	}

	return s.invite(ctx, actor, client, former.Email, func(tx *Service) (Invited, error) {
		return tx.renewInvitation(ctx, organization, actor, id)
	})
}

// invite creates an invitation by f and mails it, within the limits.
func (s *Service) invite(
	ctx context.Context, actor Caller, client Client, email string, f func(tx *Service) (Invited, error),
) (Invited, error) {
	if err := s.Attempts.CountFrom(ctx, invitationNetworkLimit, client.Network, invitationRecipientLimit,
		actor.User.String()+"\x00"+foldEmail(email)); err != nil {
		return Invited{}, err
	}

	return pg.InTxValue(ctx, s.inTx, func(tx *Service) (Invited, error) {
		i, err := f(tx)
		if err != nil {
			return i, err
		}

		return i, tx.mailInvitation(ctx, actor.User, i)
	})
}

// mailInvitation enqueues an invitation's mail. Its link adds the recipient to the organization.
func (s *Service) mailInvitation(ctx context.Context, inviter uuid.UUID, i Invited) error {
	user, err := s.GetUser(ctx, inviter)
	if err != nil {
		return err
	}

	organization, err := s.GetOrganization(ctx, i.OrganizationUUID, inviter)
	if err != nil {
		return err
	}

	link, err := s.CreateLink(ctx, NewLink{
		Purpose: Invitation, Subject: someUUID(i.UUID), Email: i.Email, TTL: invitationTTL,
	})
	if err != nil {
		return err
	}

	return s.mail(ctx, Mail{Template: "invitation", To: i.Email, Link: someUUID(link.UUID),
		Data: map[string]string{"organization": organization.Name, "inviter": user.Username, "role": i.RoleID.String(),
			"expires": i.ExpiresAt.UTC().Format("2 January 2006 15:04 " + time.UTC.String())}})
}

// insertInvitation inserts the row of an invitation of an address to an organization. It replaces
// an expired invitation. It fails with Forbidden if the role is above the actor's, with Conflict on
// email if the address is invited or a member already, and with Unprocessable if the organization
// has the allowed number of members.
func (s *Service) insertInvitation(
	ctx context.Context, organization uuid.UUID, actor Caller, email string, role Role,
) (Invited, error) {
	id, err := uuid.NewV7()
	if err != nil {
		return Invited{}, err
	}

	var i Invited
	err = s.withMembershipLock(ctx, organization, actor, Admin, func(tx *Service, mine Role) error {
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
			pgx.StrictNamedArgs{"id": id, "organization": organization, "email": email, "folded": foldEmail(email),
				"role": role, "actor": actor.User, "life": invitationTTL})
		if fault.Is(err, fault.NotFound) {
			return fault.OnField(fault.Conflict, "email", "already_exists", "is already invited").WithCause(err)
		}

		return err
	})

	return i, err
}

// requireRoom fails unless an address can be invited to an organization. The caller holds the
// organization's lock.
func (s *Service) requireRoom(ctx context.Context, organization uuid.UUID, email string) error {
	settings, err := s.Store.Settings(ctx)
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
		pgx.StrictNamedArgs{"organization": organization, "folded": foldEmail(email)})
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

// getInvitation returns an invitation to an organization. It fails with NotFound for an unknown
// invitation.
func (s *Service) getInvitation(ctx context.Context, organization, id uuid.UUID) (Invited, error) {
	return pg.One[Invited](ctx, s.q, `select`+invitationColumns+`from platform.invitations i
		where i.uuid = @id and i.organization_uuid = @organization`,
		pgx.StrictNamedArgs{"id": id, "organization": organization})
}

// ListInvitations returns a page of an organization's invitations, expired ones included, and the
// total count.
func (s *Service) ListInvitations(ctx context.Context, organization uuid.UUID, page pg.Page) ([]Invited, int64, error) {
	return pg.List[Invited](ctx, s.q, pg.Listing{
		Columns: invitationColumns,
		From:    `platform.invitations i where i.organization_uuid = @organization`,
		Sorts: map[string]string{
			"email": "i.email_folded", "createdAt": "i.created_at", "expiresAt": "i.expires_at",
		},
		Tie: "i.uuid",
	}, page, pgx.StrictNamedArgs{"organization": organization})
}

// renewInvitation restarts the TTL of an invitation and deletes its earlier links. It fails with
// NotFound for an unknown invitation, with Forbidden if its role is above the actor's, and as
// [Service.requireRoom] does: an expired invitation did not count.
func (s *Service) renewInvitation(
	ctx context.Context, organization uuid.UUID, actor Caller, id uuid.UUID,
) (Invited, error) {
	var i Invited
	err := s.withMembershipLock(ctx, organization, actor, Admin, func(tx *Service, mine Role) error {
		former, err := tx.invitationUpTo(ctx, organization, id, mine)
		if err != nil {
			return err
		}

		if err := tx.requireRoom(ctx, organization, former.Email); err != nil {
			return err
		}

		// Links first, in the lock order of acceptInvitation.
		if err := tx.deleteLinks(ctx, id); err != nil {
			return err
		}

		i, err = pg.One[Invited](ctx, tx.q, `
			update platform.invitations i set sent_at = now(), expires_at = now() + @life::interval
			where uuid = @id and organization_uuid = @organization
			returning`+invitationColumns, pgx.StrictNamedArgs{
			"id": id, "organization": organization, "life": invitationTTL,
		})
		return err
	})

	return i, err
}

// DeleteInvitation withdraws an invitation. It fails with NotFound for an unknown invitation, and
// with Forbidden if its role is above the actor's.
func (s *Service) DeleteInvitation(
	ctx context.Context, organization uuid.UUID, actor Caller, id uuid.UUID,
) (Invited, error) {
	var i Invited
	err := s.withMembershipLock(ctx, organization, actor, Admin, func(tx *Service, mine Role) error {
		if _, err := tx.invitationUpTo(ctx, organization, id, mine); err != nil {
			return err
		}
		if err := tx.deleteLinks(ctx, id); err != nil {
			return err
		}

		var err error
		i, err = pg.One[Invited](ctx, tx.q, `
			delete from platform.invitations i where uuid = @id and organization_uuid = @organization
			returning`+invitationColumns, pgx.StrictNamedArgs{"id": id, "organization": organization})
		return err
	})

	return i, err
}

// invitationUpTo returns an invitation to an organization. It fails with NotFound for an unknown
// invitation, and with Forbidden if its role is above mine.
func (s *Service) invitationUpTo(ctx context.Context, organization, id uuid.UUID, mine Role) (Invited, error) {
	i, err := s.getInvitation(ctx, organization, id)
	if err == nil && !mine.AtLeast(i.RoleID) {
		err = fault.New(fault.Forbidden, "you can only change invitations up to your own role, %s", mine)
	}

	return i, err
}

// voidInvitations deletes the invitations that a user has sent and could not send any more. Call it
// in the transaction that takes a right from the user.
func (s *Service) voidInvitations(ctx context.Context, user uuid.UUID) error {
	_, err := pg.Exec(ctx, s.q, `
		delete from platform.invitations i
		where i.created_by = @user and not exists (
			select from platform.users u
			left join platform.members m on m.organization_uuid = i.organization_uuid and m.user_uuid = u.uuid
			where u.uuid = @user and u.status = 'active'
			and (u.is_administrator or m.role <= least(i.role, @minimum)))`,
		pgx.StrictNamedArgs{"user": user, "minimum": Admin})
	return err
}

// deleteExpiredInvitations deletes invitations that expired at least 30 days ago.
func (s *Service) deleteExpiredInvitations(ctx context.Context) error {
	_, err := pg.Exec(ctx, s.q, `delete from platform.invitations where expires_at < now() - interval '30 days'`)
	return err
}
