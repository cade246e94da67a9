package platform

import (
	"context"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"socle/internal/audit"
	"socle/internal/fault"
	"socle/internal/pg"
)

// Project is a project as the platform knows it; its content is in a database of its own.
type Project struct {
	UUID             uuid.UUID `json:"uuid"`
	OrganizationUUID uuid.UUID `json:"organizationUuid"`
	Name             string    `json:"name"`
	Description      string    `json:"description"`
	Status           string    `json:"status" enum:"creating,active,deleting"`
	CreatedAt        time.Time `json:"createdAt"`
	CreatedBy        uuid.UUID `json:"createdBy"`
	UpdatedAt        time.Time `json:"updatedAt"`
	UpdatedBy        uuid.UUID `json:"updatedBy"`
}

const projectColumns = ` p.uuid, p.organization_uuid, p.name, p.description, p.status, p.created_at, p.created_by, p.updated_at, p.updated_by `

// NewProject is what a project is made of.
type NewProject struct {
	Organization      uuid.UUID
	Name, Description string
}

// Limits of a project's own members, in characters, and of an organization's projects.
const (
	maxProjectName        = 100
	maxProjectDescription = 500
	maxProjects           = 1000
)

// CreateProject notes a project that is being created. It fails with Unprocessable if the name is empty or
// too long or the organization has all the projects it may have, and with Conflict if it has one of that name.
func (s *Store) CreateProject(ctx context.Context, user uuid.UUID, n NewProject) (Project, error) {
	if l := utf8.RuneCountInString(n.Name); l < 1 || l > maxProjectName {
		return Project{}, fault.OnField(fault.Unprocessable, "name", "invalid_length", "must be 1 to %d characters", maxProjectName)
	}
	if utf8.RuneCountInString(n.Description) > maxProjectDescription {
		return Project{}, fault.OnField(fault.Unprocessable, "description", "too_long", "must be at most %d characters", maxProjectDescription)
	}
	id, err := uuid.NewV7()
	if err != nil {
		return Project{}, err
	}
	p, err := pg.One[Project](ctx, s.q, `
		insert into platform.projects as p (uuid, organization_uuid, name, description, status, created_by, updated_by)
		select @id, @organization, @name, @description, 'creating', @user, @user
		where (select count(*) from platform.projects where organization_uuid = @organization) < @max::bigint
		returning`+projectColumns,
		pgx.StrictNamedArgs{"id": id, "organization": n.Organization, "name": n.Name,
			"description": n.Description, "user": user, "max": maxProjects})
	switch {
	case pg.Violates(err, "projects_name_key"):
		return p, fault.OnField(fault.Conflict, "name", "already_exists", "is taken by another project of the organization").Because(err)
	case fault.Is(err, fault.NotFound):
		return p, fault.New(fault.Unprocessable, "the organization has %d projects, and may not have more", maxProjects).WithCode("quota")
	}
	return p, err
}

// GetProject returns a project that is not being created or deleted. It fails with NotFound if there is none.
func (s *Store) GetProject(ctx context.Context, id uuid.UUID) (Project, error) {
	return pg.One[Project](ctx, s.q, `select`+projectColumns+`from platform.projects p where p.uuid = @id and p.status = 'active'`,
		pgx.StrictNamedArgs{"id": id})
}

// ListProjects returns a page of the projects that a user may see, and how many there are in all.
func (s *Store) ListProjects(ctx context.Context, user uuid.UUID, page pg.Page) ([]Project, int64, error) {
	const visible = `
		from platform.projects p
		where p.status = 'active' and (
			exists (select from platform.members m where m.organization_uuid = p.organization_uuid and m.user_uuid = @user)
			or exists (select from platform.users u where u.uuid = @user and u.is_administrator))`
	args := pgx.StrictNamedArgs{"user": user}
	total, err := pg.Value[int64](ctx, s.q, `select count(*)`+visible, args)
	if err != nil {
		return nil, 0, err
	}
	projects, err := pg.All[Project](ctx, s.q, `select`+projectColumns+visible+page.Clause(map[string]string{
		"name": "p.name", "createdAt": "p.created_at", "updatedAt": "p.updated_at"}, "p.uuid"), args)
	return projects, total, err
}

// ActivateProject says that a project's database is there, and with which migration.
// It fails with NotFound if the project is not being created any more.
func (s *Store) ActivateProject(ctx context.Context, id uuid.UUID, version int64) (Project, error) {
	return change(ctx, s, func(tx *Store) (Project, error) {
		audit.CreatedUUID(ctx, id)
		audit.In(ctx, id)
		return pg.One[Project](ctx, tx.q, `
		update platform.projects p set status = 'active', schema_version = @version, updated_at = now()
		where uuid = @id and status in ('creating', 'active')
		returning`+projectColumns, pgx.StrictNamedArgs{"id": id, "version": version})
	})
}

// DeletingProject says that a project is going: from now on nobody can use it.
// It fails with NotFound if there is none.
func (s *Store) DeletingProject(ctx context.Context, id, user uuid.UUID) (Project, error) {
	return pg.One[Project](ctx, s.q, `
		update platform.projects p set status = 'deleting', updated_by = @user, updated_at = now()
		where uuid = @id and status = 'active'
		returning`+projectColumns, pgx.StrictNamedArgs{"id": id, "user": user})
}

// ForgetProject removes a project of which nothing is left.
func (s *Store) ForgetProject(ctx context.Context, id uuid.UUID) error {
	_, err := pg.Exec(ctx, s.q, `delete from platform.projects where uuid = @id and status in ('creating', 'deleting')`,
		pgx.StrictNamedArgs{"id": id})
	return err
}

// UnfinishedProject is a project whose creation, deletion or migration has not come to its end.
type UnfinishedProject struct {
	UUID   uuid.UUID
	Status string
}

// UnfinishedProjects returns the projects that are being created or deleted, and those whose
// database is older than a migration.
func (s *Store) UnfinishedProjects(ctx context.Context, version int64) ([]UnfinishedProject, error) {
	return pg.All[UnfinishedProject](ctx, s.q, `
		select uuid, status from platform.projects
		where status in ('creating', 'deleting') or schema_version < @version
		order by uuid`, pgx.StrictNamedArgs{"version": version})
}

// ActiveProjects returns the projects that can be used.
func (s *Store) ActiveProjects(ctx context.Context) ([]uuid.UUID, error) {
	return pg.Values[uuid.UUID](ctx, s.q, `select uuid from platform.projects where status = 'active' order by uuid`)
}

// ProjectStatus returns a project's status. It fails with NotFound if there is none.
func (s *Store) ProjectStatus(ctx context.Context, id uuid.UUID) (string, error) {
	return pg.Value[string](ctx, s.q, `select status from platform.projects where uuid = @id`,
		pgx.StrictNamedArgs{"id": id})
}
