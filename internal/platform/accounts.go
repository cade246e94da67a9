package platform

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"socle/internal/fault"
	"socle/internal/pg"
)

// DeleteUser deletes a user, their sessions, their memberships, and the organizations without
// another member or a project. Rows that the user created elsewhere stay and keep their UUID. It
// fails with NotFound for an unknown user. It fails with Conflict if an organization would lose its
// last owner, or the install its last administrator.
func (s *Store) DeleteUser(ctx context.Context, id uuid.UUID) (User, error) {
	return change(ctx, s, func(tx *Store) (User, error) {
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
			if err := tx.anotherAdministrator(ctx, id); err != nil {
				return user, err
			}
		}

		if err := tx.anotherOwner(ctx, id); err != nil {
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

		return user, err
	})
}

// anotherAdministrator fails with Conflict if the user is the last active administrator of the
// install. The row lock serializes concurrent deletions, so that one administrator remains.
func (s *Store) anotherAdministrator(ctx context.Context, user uuid.UUID) error {
	if _, err := pg.Value[bool](ctx, s.q, `select one from platform.instance for no key update`); err != nil {
		return err
	}

	another, err := pg.Value[bool](ctx, s.q, `
		select exists (select from platform.users where is_administrator and status = 'active' and uuid <> @user)`,
		pgx.StrictNamedArgs{"user": user})
	if err == nil && !another {
		return fault.New(fault.Conflict, "the instance would have no administrator").WithCode("last_administrator")
	}

	return err
}

// anotherOwner fails with Conflict, and lists the organizations, if the user is the only owner of
// organizations that have other members or projects. It locks all organizations of the user against
// concurrent membership changes.
func (s *Store) anotherOwner(ctx context.Context, user uuid.UUID) error {
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
		Detail: "organizations that have projects or other members would have no owner: hand them over, or delete their projects, first"}
}
