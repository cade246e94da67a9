package account

import (
	"context"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/audit"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
)

// Organization is an organization from the view of one user.
type Organization struct {
	UUID      uuid.UUID `json:"uuid"`
	Name      string    `json:"name"`
	RoleID    Role      `json:"roleId" minimum:"1" maximum:"5" doc:"Role of the caller in it: 1 administrator of the instance, 2 owner, 3 admin, 4 developer, 5 viewer."`
	CreatedAt time.Time `json:"createdAt"`
	UpdatedAt time.Time `json:"updatedAt"`
}

// organizationsTable joins organizations with the role of the user @user in them.
const (
	organizationColumns = ` o.uuid, o.name, case when u.is_administrator then 1 else m.role end as role_id, o.created_at, o.updated_at `
	organizationsTable  = `
		platform.organizations o
		join platform.users u on u.uuid = @user
		left join platform.members m on m.organization_uuid = o.uuid and m.user_uuid = u.uuid `
)

const maxOrganizationName = 100

// CreateOrganization creates an organization owned by user. It fails with Unprocessable if the name
// is invalid or the user owns the allowed number of organizations.
func (s *Service) CreateOrganization(ctx context.Context, user uuid.UUID, name string) (Organization, error) {
	name, err := cleanOrganizationName(name)
	if err != nil {
		return Organization{}, err
	}

	id, err := uuid.NewV7()
	if err != nil {
		return Organization{}, err
	}

	var o Organization
	err = s.inTx(ctx, func(tx *Service) error {
		audit.CreatedUUID(ctx, id)

		settings, err := tx.Store.Settings(ctx)
		if err != nil {
			return err
		}

		if err := tx.lockUser(ctx, user); err != nil {
			return err
		}

		count, err := pg.Value[int64](ctx, tx.q,
			`select count(*) from platform.members where user_uuid = @user and role = 2`,
			pgx.StrictNamedArgs{"user": user})
		if err != nil {
			return err
		}

		if count >= settings.OrganizationsPerUser {
			return fault.New(fault.Unprocessable, "you have reached the limit of organizations: you own %d", count).
				WithCode("quota_exceeded")
		}

		if err := tx.createOrganization(ctx, id, name); err != nil {
			return err
		}
		if err := tx.addMember(ctx, id, user, Owner); err != nil {
			return err
		}

		o, err = tx.GetOrganization(ctx, id, user)
		return err
	})

	return o, err
}

// cleanOrganizationName returns a name in its stored form.
func cleanOrganizationName(name string) (string, error) {
	name = strings.TrimSpace(name)
	if n := utf8.RuneCountInString(name); n < 1 || n > maxOrganizationName {
		return "", fault.OnField(fault.Unprocessable, "name", "invalid_length",
			"must be 1 to %d characters, not all blank", maxOrganizationName)
	}

	return name, nil
}

func (s *Service) createOrganization(ctx context.Context, id uuid.UUID, name string) error {
	_, err := pg.Exec(ctx, s.q, `insert into platform.organizations (uuid, name) values (@id, @name)`,
		pgx.StrictNamedArgs{"id": id, "name": name})
	return err
}

// GetOrganization returns an organization from the view of a user. It fails with NotFound if the
// organization is unknown or the user has no role in it.
func (s *Service) GetOrganization(ctx context.Context, id, user uuid.UUID) (Organization, error) {
	return pg.One[Organization](ctx, s.q, `select`+organizationColumns+`from`+organizationsTable+`
		where o.uuid = @id and (u.is_administrator or m.role is not null)`,
		pgx.StrictNamedArgs{"id": id, "user": user})
}

// ListOrganizations returns a page of the organizations of a user and the total count. With all, an
// administrator gets every organization of the install.
func (s *Service) ListOrganizations(
	ctx context.Context, user uuid.UUID, all bool, page pg.Page,
) ([]Organization, int64, error) {
	return pg.List[Organization](ctx, s.q, pg.Listing{
		Columns: organizationColumns,
		From:    organizationsTable + `where m.role is not null or @all::boolean and u.is_administrator`,
		Sorts:   map[string]string{"name": "o.name", "createdAt": "o.created_at", "updatedAt": "o.updated_at"},
		Tie:     "o.uuid",
	}, page, pgx.StrictNamedArgs{"user": user, "all": all})
}

// RenameOrganization renames an organization. It fails with Unprocessable on name if the name is
// invalid.
func (s *Service) RenameOrganization(
	ctx context.Context, id uuid.UUID, actor Caller, name string,
) (Organization, error) {
	name, err := cleanOrganizationName(name)
	if err != nil {
		return Organization{}, err
	}

	var o Organization
	err = s.withMembershipLock(ctx, id, actor, Admin, func(tx *Service, _ Role) error {
		if _, err := pg.Exec(ctx, tx.q,
			`update platform.organizations set name = @name, updated_at = now() where uuid = @id`,
			pgx.StrictNamedArgs{"id": id, "name": name}); err != nil {
			return err
		}

		o, err = tx.GetOrganization(ctx, id, actor.User)
		return err
	})

	return o, err
}

// DeleteOrganization deletes an organization with its members and invitations. It fails with
// Conflict if it has projects or is a user's home organization.
func (s *Service) DeleteOrganization(ctx context.Context, id uuid.UUID, actor Caller) (Organization, error) {
	var o Organization
	err := s.withMembershipLock(ctx, id, actor, Owner, func(tx *Service, _ Role) error {
		var err error
		if o, err = tx.GetOrganization(ctx, id, actor.User); err != nil {
			return err
		}

		_, err = pg.Exec(ctx, tx.q, `delete from platform.organizations where uuid = @id`,
			pgx.StrictNamedArgs{"id": id})
		switch {
		case pg.Violates(err, "projects_organization"):
			return fault.New(fault.Conflict, "the organization has projects").WithCode("in_use").WithCause(err)
		case pg.Violates(err, "users_organization"):
			return fault.New(fault.Conflict, "the organization is a user's own, and is deleted with their account").
				WithCode("own_organization").WithCause(err)
		}

		return err
	})

	return o, err
}

// roleIn returns the role of a user in an organization, which is Administrator for an administrator
// of the install. It fails with NotFound if the organization is unknown or the user has no role in
// it.
func (s *Service) roleIn(ctx context.Context, organization, user uuid.UUID) (Role, error) {
	return pg.Value[Role](ctx, s.q, `
		select case when u.is_administrator then 1 else m.role end
		from platform.organizations o
		join platform.users u on u.uuid = @user
		left join platform.members m on m.organization_uuid = o.uuid and m.user_uuid = u.uuid
		where o.uuid = @organization and (u.is_administrator or m.role is not null)`,
		pgx.StrictNamedArgs{"organization": organization, "user": user})
}

// withMembershipLock runs f in a transaction that holds the lock on an organization's membership. f
// gets the actor's current role, so concurrent role changes are serialized. It fails with NotFound
// if the actor has no role in the organization, and with Forbidden if the role is below minimum.
func (s *Service) withMembershipLock(
	ctx context.Context, organization uuid.UUID, actor Caller, minimum Role, f func(tx *Service, role Role) error,
) error {
	return s.inTx(ctx, func(tx *Service) error {
		if _, err := pg.Exec(ctx, tx.q, `select from platform.organizations where uuid = @id for no key update`,
			pgx.StrictNamedArgs{"id": organization}); err != nil {
			return err
		}

		role, err := tx.roleIn(ctx, organization, actor.User)
		if err != nil {
			return err
		}

		role = actor.CapRole(role) // a personal access token may have a lower role than its user
		if err := role.Require(minimum); err != nil {
			return err
		}

		return f(tx, role)
	})
}

// OrganizationForProject returns the organization for a new project of the actor: the named one, or
// the actor's own. It fails with Unprocessable on organization_uuid if the actor has no role there,
// and with Forbidden unless the actor is at least admin there and not limited to projects.
func (s *Service) OrganizationForProject(ctx context.Context, actor Caller, choice *uuid.UUID) (uuid.UUID, error) {
	user, err := s.GetUser(ctx, actor.User)
	if err != nil {
		return uuid.Nil, err
	}

	organization := user.OrganizationUUID
	if choice != nil {
		organization = *choice
	}

	role, err := s.roleIn(ctx, organization, user.UUID)
	if fault.Is(err, fault.NotFound) {
		return uuid.Nil, fault.OnField(fault.Unprocessable, "organization_uuid", "not_found",
			"must name one of your organizations")
	}
	if err != nil {
		return uuid.Nil, err
	}

	if err := actor.CheckNewProjects(); err != nil {
		return uuid.Nil, err
	}

	return organization, actor.CapRole(role).Require(Admin)
}
