package platform

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"socle/internal/pg"
)

func (s *Store) createOrganization(ctx context.Context, id uuid.UUID, name string) error {
	_, err := pg.Exec(ctx, s.q, `insert into platform.organizations (uuid, name) values (@id, @name)`,
		pgx.StrictNamedArgs{"id": id, "name": name})
	return err
}

func (s *Store) addMember(ctx context.Context, organization, user uuid.UUID, role Role) error {
	_, err := pg.Exec(ctx, s.q, `
		insert into platform.members (organization_uuid, user_uuid, role) values (@organization, @user, @role)`,
		pgx.StrictNamedArgs{"organization": organization, "user": user, "role": role})
	return err
}

// RoleIn returns the role of a user in an organization; an administrator's is Administrator in all.
// It fails with NotFound if the organization does not exist or the user is no member of it.
func (s *Store) RoleIn(ctx context.Context, organization, user uuid.UUID) (Role, error) {
	return pg.Value[Role](ctx, s.q, `
		select case when u.is_administrator then 1 else m.role end
		from platform.organizations o
		join platform.users u on u.uuid = @user
		left join platform.members m on m.organization_uuid = o.uuid and m.user_uuid = u.uuid
		where o.uuid = @organization and (u.is_administrator or m.role is not null)`,
		pgx.StrictNamedArgs{"organization": organization, "user": user})
}
