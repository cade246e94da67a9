package account

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
)

// Member is a user in an organization.
type Member struct {
	UserUUID  uuid.UUID `json:"userUuid"`
	Username  string    `json:"username"`
	Email     string    `json:"email"`
	RoleID    Role      `json:"roleId" minimum:"2" maximum:"5" doc:"2 owner, 3 admin, 4 developer, 5 viewer."`
	CreatedAt time.Time `json:"createdAt" doc:"When the user became a member."`
}

const (
	memberColumns = ` m.user_uuid, u.username, u.email, m.role as role_id, m.created_at `
	membersTable  = ` platform.members m join platform.users u on u.uuid = m.user_uuid `
)

func (s *Service) addMember(ctx context.Context, organization, user uuid.UUID, role Role) error {
	_, err := pg.Exec(ctx, s.q, `
		insert into platform.members (organization_uuid, user_uuid, role) values (@organization, @user, @role)`,
		pgx.StrictNamedArgs{"organization": organization, "user": user, "role": role})
	return err
}

// GetMember returns an organization's member. It fails with NotFound if the user is not a member.
func (s *Service) GetMember(ctx context.Context, organization, user uuid.UUID) (Member, error) {
	return pg.One[Member](ctx, s.q,
		`select`+memberColumns+`from`+membersTable+`where m.organization_uuid = @organization and m.user_uuid = @user`,
		pgx.StrictNamedArgs{"organization": organization, "user": user})
}

// ListMembers returns a page of an organization's members and the total count.
func (s *Service) ListMembers(ctx context.Context, organization uuid.UUID, page pg.Page) ([]Member, int64, error) {
	return pg.List[Member](ctx, s.q, pg.Listing{
		Columns: memberColumns,
		From:    membersTable + `where m.organization_uuid = @organization`,
		Sorts: map[string]string{
			"username": "u.username_folded", "email": "u.email_folded", "roleId": "m.role", "createdAt": "m.created_at",
		},
		Tie: "m.user_uuid",
	}, page, pgx.StrictNamedArgs{"organization": organization})
}

// UpdateMember changes the role of a member. It fails with Forbidden if the old or the new role is
// above the actor's, with NotFound for an unknown member, and with Conflict if the organization
// would lose its last owner.
func (s *Service) UpdateMember(
	ctx context.Context, organization uuid.UUID, actor Caller, user uuid.UUID, role Role,
) (Member, error) {
	var m Member
	err := s.withMembershipLock(ctx, organization, actor, Admin, func(tx *Service, mine Role) error {
		former, err := tx.GetMember(ctx, organization, user)
		if err != nil {
			return err
		}

		if !mine.AtLeast(former.RoleID) || !mine.AtLeast(role) {
			return fault.New(fault.Forbidden, "you can only assign and change roles up to your own, %s", mine)
		}

		if err := tx.setRole(ctx, organization, user, role); err != nil {
			return err
		}

		m, err = tx.GetMember(ctx, organization, user)
		return err
	})

	return m, err
}

// TransferOrganization makes another member an owner, and the actor, if an owner, an admin. It
// fails with Unprocessable on user_uuid if the user is not a member.
func (s *Service) TransferOrganization(
	ctx context.Context, organization uuid.UUID, actor Caller, user uuid.UUID,
) (Member, error) {
	var m Member
	err := s.withMembershipLock(ctx, organization, actor, Owner, func(tx *Service, _ Role) error {
		err := tx.setRole(ctx, organization, user, Owner)
		if fault.Is(err, fault.NotFound) {
			return fault.OnField(fault.Unprocessable, "user_uuid", "not_found",
				"must name a member of the organization").
				WithCause(err)
		}
		if err != nil {
			return err
		}

		former, err := tx.GetMember(ctx, organization, actor.User)
		// An administrator of the install need not be a member.
		if err == nil && former.RoleID == Owner && actor.User != user {
			err = tx.setRole(ctx, organization, actor.User, Admin)
		}

		if err != nil && !fault.Is(err, fault.NotFound) {
			return err
		}

		m, err = tx.GetMember(ctx, organization, user)
		return err
	})

	return m, err
}

// setRole changes a member's role, and voids the invitations that they could no longer send.
// Promotion to owner makes no member accountable, see platform.account_of.
func (s *Service) setRole(ctx context.Context, organization, user uuid.UUID, role Role) error {
	n, err := pg.Exec(ctx, s.q, `
		update platform.members set role = @role, accountable = case when role = 2 then accountable else @role::smallint <> 2 end
		where organization_uuid = @organization and user_uuid = @user`,
		pgx.StrictNamedArgs{"organization": organization, "user": user, "role": role})
	if err != nil {
		return lastOwnerConflict(err)
	}

	if n == 0 {
		return fault.New(fault.NotFound, "there is no such member")
	}

	return s.voidInvitations(ctx, user)
}

// DeleteMember removes a member from an organization and voids their invitations. It fails with
// NotFound for an unknown member, with Forbidden if their role is above the actor's, and with
// Conflict if the organization would lose its last owner.
func (s *Service) DeleteMember(
	ctx context.Context, organization uuid.UUID, actor Caller, user uuid.UUID,
) (Member, error) {
	var m Member
	err := s.withMembershipLock(ctx, organization, actor, Admin, func(tx *Service, mine Role) error {
		var err error
		if m, err = tx.GetMember(ctx, organization, user); err != nil {
			return err
		}

		if !mine.AtLeast(m.RoleID) {
			return fault.New(fault.Forbidden, "you can only remove members up to your own role, %s", mine)
		}

		return tx.deleteMember(ctx, organization, user)
	})

	return m, err
}

// LeaveOrganization removes the actor from an organization. It fails with NotFound if they are not
// a member, and with Conflict if the organization would lose its last owner.
func (s *Service) LeaveOrganization(ctx context.Context, organization uuid.UUID, actor Caller) (Member, error) {
	var m Member
	err := s.withMembershipLock(ctx, organization, actor, Viewer, func(tx *Service, _ Role) error {
		var err error
		if m, err = tx.GetMember(ctx, organization, actor.User); err != nil {
			return err
		}

		return tx.deleteMember(ctx, organization, actor.User)
	})

	return m, err
}

func (s *Service) deleteMember(ctx context.Context, organization, user uuid.UUID) error {
	if _, err := pg.Exec(ctx, s.q, `
		delete from platform.members where organization_uuid = @organization and user_uuid = @user`,
		pgx.StrictNamedArgs{"organization": organization, "user": user}); err != nil {
		return lastOwnerConflict(err)
	}

	if err := s.voidInvitations(ctx, user); err != nil {
		return err
	}

	return s.assignHome(ctx, organization, user)
}

// assignHome assigns a new home organization to a user who has left theirs: the first that they
// own, or else a new one. Every user has a home organization, and one that was handed over can be
// deleted.
func (s *Service) assignHome(ctx context.Context, former, user uuid.UUID) error {
	before, err := pg.One[struct {
		Username         string
		OrganizationUUID uuid.UUID
	}](ctx, s.q, `select username, organization_uuid from platform.users where uuid = @user for no key update`,
		pgx.StrictNamedArgs{"user": user})
	if err != nil || before.OrganizationUUID != former {
		return err
	}

	home, err := pg.Value[uuid.UUID](ctx, s.q, `
		select organization_uuid from platform.members where user_uuid = @user and role = 2 order by created_at, organization_uuid limit 1`,
		pgx.StrictNamedArgs{"user": user})
	if fault.Is(err, fault.NotFound) {
		home, err = s.createHome(ctx, user, before.Username)
	}
	if err != nil {
		return err
	}

	_, err = pg.Exec(ctx, s.q,
		`update platform.users set organization_uuid = @home, updated_at = now() where uuid = @user`,
		pgx.StrictNamedArgs{"home": home, "user": user})
	return err
}

func (s *Service) createHome(ctx context.Context, user uuid.UUID, name string) (uuid.UUID, error) {
	id, err := uuid.NewV7()
	if err != nil {
		return id, err
	}

	if err := s.createOrganization(ctx, id, name); err != nil {
		return id, err
	}

	return id, s.addMember(ctx, id, user, Owner)
}

// lastOwnerConflict translates a violation of the constraint on the last owner of an organization.
func lastOwnerConflict(err error) error {
	if pg.Violates(err, "members_last_owner") {
		return fault.New(fault.Conflict, "the organization would lose its only owner").WithCode("last_owner").
			WithCause(err)
	}
	return err
}
