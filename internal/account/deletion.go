package account

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
)

// Proof confirms an irreversible change to a user's own account.
type Proof struct {
	Password string
	Code     string // code of the second factor; "" if the user has none
}

// DeleteAccount deletes a signed-in user, as [Service.DeleteUser] does. It fails with Unprocessable
// on password or code if the proof is wrong.
func (s *Service) DeleteAccount(ctx context.Context, client Client, id uuid.UUID, proof Proof) (User, error) {
	user, err := s.confirmPassword(ctx, client, id, proof.Password)
	if err != nil {
		return User{}, err
	}

	spend, err := s.checkSecondFactor(ctx, client, user.UUID, proof.Code)
	if err != nil {
		return User{}, err
	}

	var account User
	err = s.withSecondFactor(ctx, client, spend, user.UUID, func(tx *Service) error {
		var err error
		account, err = tx.removeUser(ctx, user.UUID)
		return err
	})
	if fault.Is(err, fault.NotFound) {
		err = errSessionEnded()
	}

	return account, err
}

// DeleteUser deletes another user on behalf of an administrator, and notifies them by mail. It
// fails with Forbidden for any other actor, with NotFound for an unknown user, and with Conflict if
// an organization would lose its last owner, or the install its last administrator.
func (s *Service) DeleteUser(ctx context.Context, actor Caller, id uuid.UUID) (User, error) {
	if !actor.Administrator || actor.User == id {
		return User{}, fault.New(fault.Forbidden, "deleting another user needs an administrator of the instance")
	}

	return pg.InTxValue(ctx, s.inTx, func(tx *Service) (User, error) { return tx.removeUser(ctx, id) })
}

// removeUser deletes a user and notifies them by mail. Call it in a transaction.
func (s *Service) removeUser(ctx context.Context, id uuid.UUID) (User, error) {
	user, err := s.deleteUser(ctx, id)
	if err != nil {
		return user, err
	}

	return user, s.mail(ctx, Mail{
		Template: "account-deleted",
		To:       user.Email,
		Data:     map[string]string{"username": user.Username},
	})
}

// deleteUser deletes the row of a user, their sessions, memberships and invitations, and the
// organizations without another member or a project. Rows that the user created elsewhere stay and
// keep their UUID. It fails with NotFound for an unknown user. It fails with Conflict if an
// organization would lose its last owner, or the install its last administrator.
func (s *Service) deleteUser(ctx context.Context, id uuid.UUID) (User, error) {
	return pg.InTxValue(ctx, s.inTx, func(tx *Service) (User, error) {
		args := pgx.StrictNamedArgs{"user": id}
		administrates, err := pg.Value[bool](ctx, tx.q, `
			select is_administrator and status = 'active' from platform.users where uuid = @user for update`, args)
		if err != nil {
			return User{}, err
		}

		user, err := tx.GetUser(ctx, id)
		if err != nil {
			return user, err
		}

		if administrates {
			if err := tx.requireOtherAdministrator(ctx, id); err != nil {
				return user, err
			}
		}

		if err := tx.requireOtherOwners(ctx, id); err != nil {
			return user, err
		}

		// One statement, because users and organizations reference each other.
		_, err = pg.Exec(ctx, tx.q, `
			with empty as (
				delete from platform.organizations o
				where exists (select from platform.members where organization_uuid = o.uuid and user_uuid = @user)
				and not exists (select from platform.members where organization_uuid = o.uuid and user_uuid <> @user)
				and not exists (select from platform.projects where organization_uuid = o.uuid))
			delete from platform.users where uuid = @user`, args)
		if err != nil {
			return user, err
		}

		return user, tx.voidInvitations(ctx, id)
	})
}

// requireOtherAdministrator fails with Conflict if the user is the last active administrator of the
// install. The row lock serializes concurrent deletions, so that one administrator remains.
func (s *Service) requireOtherAdministrator(ctx context.Context, user uuid.UUID) error {
	if _, err := pg.Value[bool](ctx, s.q, `select one from platform.instance for no key update`); err != nil {
		return err
	}

	another, err := pg.Value[bool](ctx, s.q, `
		select exists (select from platform.users where is_administrator and status = 'active' and uuid <> @user)`,
		pgx.StrictNamedArgs{"user": user})
	if err != nil {
		return err
	}

	if !another {
		return fault.New(fault.Conflict, "the instance would have no administrator").WithCode("last_administrator")
	}

	return nil
}

// requireOtherOwners fails with Conflict, and lists the organizations, if the user is the only
// owner of organizations that have other members or projects. It locks all organizations of the
// user against concurrent membership changes.
func (s *Service) requireOtherOwners(ctx context.Context, user uuid.UUID) error {
	args := pgx.StrictNamedArgs{"user": user}
	if _, err := pg.Values[uuid.UUID](ctx, s.q, `
		select o.uuid from platform.organizations o
		where exists (select from platform.members where organization_uuid = o.uuid and user_uuid = @user)
		order by o.uuid for update`, args); err != nil {
		return err
	}

	ownerless, err := pg.Values[uuid.UUID](ctx, s.q, `
		select m.organization_uuid from platform.members m
		where m.user_uuid = @user and m.role = 2
		and not exists (select from platform.members where organization_uuid = m.organization_uuid and role = 2 and user_uuid <> @user)
		and (exists (select from platform.members where organization_uuid = m.organization_uuid and user_uuid <> @user)
			or exists (select from platform.projects where organization_uuid = m.organization_uuid))
		order by m.organization_uuid`, args)
	if err != nil || len(ownerless) == 0 {
		return err
	}

	return &fault.Error{Kind: fault.Conflict, Code: "last_owner", Extra: map[string]any{"organizations": ownerless},
		Detail: "organizations with projects or other members would lose their only owner: " +
			"transfer them or delete their projects first"}
}
