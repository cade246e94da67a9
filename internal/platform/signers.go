package platform

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"socle/internal/fault"
	"socle/internal/pg"
)

// AuthenticateSigner returns a caller for the user who signed a URL, with the user's current role
// in a project. It fails with Unauthenticated if the user has no role in the project any more.
func (s *Store) AuthenticateSigner(ctx context.Context, user, project uuid.UUID) (Caller, error) {
	row, err := pg.One[struct {
		IsAdministrator bool
		Role            *Role
		Status          string
	}](ctx, s.q, `
		select u.is_administrator, p.status, case when u.is_administrator then 1 else m.role end as role
		from platform.users u
		join platform.projects p on p.uuid = @project and p.status in ('active', 'paused', 'deleted')
		left join platform.members m on m.organization_uuid = p.organization_uuid and m.user_uuid = u.uuid
		where u.uuid = @user and u.status = 'active'`,
		pgx.StrictNamedArgs{"user": user, "project": project})
	if fault.Is(err, fault.NotFound) || err == nil && row.Role == nil {
		return Caller{}, fault.New(fault.Unauthenticated, "whoever signed the URL may not do this any more").
			WithCode("invalid_signature")
	}
	if err != nil {
		return Caller{}, err
	}

	return Caller{
		User:          user,
		Administrator: row.IsAdministrator,
		Project:       uuid.NullUUID{UUID: project, Valid: true},
		Role:          *row.Role,
		Status:        row.Status,
	}, nil
}
