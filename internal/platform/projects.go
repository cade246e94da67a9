package platform

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

// Project is the platform's record of a project. A separate database has the project's content.
type Project struct {
	UUID             uuid.UUID  `json:"uuid"`
	OrganizationUUID uuid.UUID  `json:"organizationUuid"`
	Name             string     `json:"name"`
	Description      string     `json:"description"`
	Status           string     `json:"status" enum:"creating,active,paused,deleted,deleting"`
	CreatedAt        time.Time  `json:"createdAt"`
	CreatedBy        uuid.UUID  `json:"createdBy"`
	UpdatedAt        time.Time  `json:"updatedAt"`
	UpdatedBy        uuid.UUID  `json:"updatedBy"`
	DeletedAt        *time.Time `json:"deletedAt" nullable:"true" doc:"When it was deleted. It can be restored until it is purged."`

	BackupBeforeDestructive bool `json:"backupBeforeDestructive" doc:"Whether destructive operations require a completed backup first."`
}

// Project statuses that members see.
const (
	Creating = "creating"
	Active   = "active"
	Paused   = "paused"  // data is kept but inaccessible
	Deleted  = "deleted" // as paused, and hidden until restored; later purged
)

const projectColumns = ` p.uuid, p.organization_uuid, p.name, p.description, p.status, p.created_at, p.created_by, p.updated_at, p.updated_by, p.deleted_at,
	p.backup_before_destructive `

// NewProject holds a new project's parameters.
type NewProject struct {
	Organization      uuid.UUID
	Name, Description string

	// With runs in the transaction that records the project; may be nil.
	With func(tx *Store, p Project) error
}

// ProjectUpdate changes a project. Nil fields are left unchanged.
type ProjectUpdate struct {
	Name, Description       *string
	BackupBeforeDestructive *bool
}

// Limits of a project's fields, in characters.
const (
	maxProjectName        = 100
	maxProjectDescription = 500
)

// CreateProject records a project in status creating. It fails with Unprocessable if the name is
// empty or too long or the organization or its account has the allowed number of projects, and with
// Conflict if the organization has a project with that name. Deleted projects count until they are
// purged, because they occupy space.
func (s *Store) CreateProject(ctx context.Context, user uuid.UUID, n NewProject) (Project, error) {
	name, err := cleanProjectName(n.Name)
	if err != nil {
		return Project{}, err
	}

	if err := checkProjectDescription(n.Description); err != nil {
		return Project{}, err
	}

	id, err := uuid.NewV7()
	if err != nil {
		return Project{}, err
	}

	settings, err := s.Settings(ctx)
	if err != nil {
		return Project{}, err
	}

	maxProjects := settings.ProjectsPerOrganization
	var p Project
	// No audit entry here: ActivateProject writes it.
	err = pg.InTx(ctx, s.b, func(tx pgx.Tx) error {
		// The row lock serializes concurrent creations, so that each one counts the others.
		// Creating a project makes an owner accountable for the organization.
		if _, err := pg.Value[uuid.UUID](ctx, tx, `
			with consent as (
				update platform.members set accountable = true
				where organization_uuid = @organization and user_uuid = @user and role = 2 and not accountable)
			select uuid from platform.organizations where uuid = @organization for no key update`,
			pgx.StrictNamedArgs{"organization": n.Organization, "user": user}); fault.Is(err, fault.NotFound) {
			return fault.OnField(fault.Unprocessable, "organization_uuid", "not_found",
				"must name one of your organizations").WithCause(err)
		} else if err != nil {
			return err
		}

		if err := checkAccountProjects(ctx, tx, n.Organization, settings.ProjectsPerUser); err != nil {
			return err
		}

		var err error
		p, err = pg.One[Project](ctx, tx, `
			insert into platform.projects as p (uuid, organization_uuid, name, description, status, created_by, updated_by, request_key)
			select @id, @organization, @name, @description, 'creating', @user, @user, nullif(@request_key, '')
			where (select count(*) from platform.projects where organization_uuid = @organization) < @most::bigint
			returning`+projectColumns,
			pgx.StrictNamedArgs{"id": id, "organization": n.Organization, "name": name,
				"description": n.Description, "user": user, "most": maxProjects, "request_key": audit.KeyOf(ctx)})
		if fault.Is(err, fault.NotFound) {
			return fault.New(fault.Unprocessable,
				"the organization has reached its limit of %d projects, restorable ones included",
				maxProjects).WithCode("quota_exceeded")
		}

		if err = projectNameConflict(err); err != nil || n.With == nil {
			return err
		}

		return n.With(s.WithTx(tx), p)
	})

	return p, err
}

// checkAccountProjects fails with Unprocessable if an organization's account has the allowed number
// of projects. Until the transaction ends, no other project can be created in the account.
func checkAccountProjects(ctx context.Context, tx pgx.Tx, organization uuid.UUID, most int64) error {
	account, err := pg.Value[uuid.UUID](ctx, tx, `
		select a.account from (select platform.account_of(@organization) as account) a
		cross join lateral pg_advisory_xact_lock(hashtextextended('projects of ' || a.account, 0))`,
		pgx.StrictNamedArgs{"organization": organization})
	if err != nil {
		return err
	}

	full, err := pg.Value[bool](ctx, tx, `
		select count(*) >= @most::bigint and not exists (
			select from platform.users where uuid = @account and is_administrator)
		from (
			select organization_uuid from platform.members where user_uuid = @account and role = 2
			union select @account
		) o
		join platform.projects p on p.organization_uuid = o.organization_uuid
		where platform.account_of(o.organization_uuid) = @account`,
		pgx.StrictNamedArgs{"account": account, "most": most})
	if err != nil || !full {
		return err
	}

	return fault.New(fault.Unprocessable, "the owner of the organization has reached the limit of %d projects in all "+
		"organizations, restorable ones included", most).WithCode("quota_exceeded")
}

// GetProject returns a project that is active or paused. It fails with NotFound in any other
// status.
func (s *Store) GetProject(ctx context.Context, id uuid.UUID) (Project, error) {
	return pg.One[Project](ctx, s.q,
		`select`+projectColumns+`from platform.projects p where p.uuid = @id and p.status in ('active', 'paused')`,
		pgx.StrictNamedArgs{"id": id})
}

// AccountOf returns the account that a project counts to. It fails with NotFound for an unknown
// project.
func (s *Store) AccountOf(ctx context.Context, project uuid.UUID) (uuid.UUID, error) {
	return pg.Value[uuid.UUID](ctx, s.q,
		`select platform.account_of(p.organization_uuid) from platform.projects p where p.uuid = @project`,
		pgx.StrictNamedArgs{"project": project})
}

// ProjectFilter narrows a project list.
type ProjectFilter struct {
	Search       string        // part of the name, case-insensitive; "": any
	Organization uuid.NullUUID // null: any
	Only         []uuid.UUID   // nil: all
	Status       string        // [Active], [Paused] or [Deleted]; "": the first two
}

// ListProjects returns a page of projects that a user may see and the total count.
func (s *Store) ListProjects(
	ctx context.Context, user uuid.UUID, f ProjectFilter, page pg.Page,
) ([]Project, int64, error) {
	const visible = `platform.projects p
		where p.status = any(@statuses) and strpos(lower(p.name), lower(@search)) > 0
			and (@organization::uuid is null or p.organization_uuid = @organization)
			and (@only::uuid[] is null or p.uuid = any(@only)) and (
			exists (select from platform.members m where m.organization_uuid = p.organization_uuid and m.user_uuid = @user)
			or exists (select from platform.users u where u.uuid = @user and u.is_administrator))`

	statuses := []string{f.Status}
	if f.Status == "" {
		statuses = []string{Active, Paused}
	}

	args := pgx.StrictNamedArgs{
		"user": user, "statuses": statuses, "search": f.Search, "organization": f.Organization, "only": f.Only,
	}

	return pg.List[Project](ctx, s.q, pg.Listing{
		Columns: projectColumns,
		From:    visible,
		Sorts:   map[string]string{"name": "p.name", "createdAt": "p.created_at", "updatedAt": "p.updated_at"},
		Tie:     "p.uuid",
	}, page, args)
}

// UpdateProject changes an active or paused project. It fails with Unprocessable if the update is
// empty or a value is invalid, with Conflict if the name is taken, and with NotFound for an unknown
// project.
func (s *Store) UpdateProject(ctx context.Context, id, user uuid.UUID, u ProjectUpdate) (Project, error) {
	if u == (ProjectUpdate{}) {
		return Project{}, fault.NothingToChange()
	}

	if u.Name != nil {
		name, err := cleanProjectName(*u.Name)
		if err != nil {
			return Project{}, err
		}

		u.Name = &name
	}

	if u.Description != nil {
		if err := checkProjectDescription(*u.Description); err != nil {
			return Project{}, err
		}
	}

	return pg.InTxValue(ctx, s.InTx, func(tx *Store) (Project, error) {
		p, err := pg.One[Project](ctx, tx.q, `
			update platform.projects p
			set name = coalesce(@name, name), description = coalesce(@description, description),
				backup_before_destructive = coalesce(@first, backup_before_destructive), updated_by = @user, updated_at = now()
			where uuid = @id and status in ('active', 'paused')
			returning`+projectColumns,
			pgx.StrictNamedArgs{
				"id": id, "user": user, "name": u.Name,
				"description": u.Description, "first": u.BackupBeforeDestructive,
			})

		return p, projectNameConflict(err)
	})
}

// cleanProjectName returns a name in stored form.
func cleanProjectName(name string) (string, error) {
	name = strings.TrimSpace(name)
	switch {
	case name == "":
		return "", fault.OnField(fault.Unprocessable, "name", "required", "must not be blank")
	case utf8.RuneCountInString(name) > maxProjectName:
		return "", fault.OnField(fault.Unprocessable, "name", "too_long", "must be at most %d characters",
			maxProjectName)
	}

	return name, nil
}

func checkProjectDescription(text string) error {
	if utf8.RuneCountInString(text) > maxProjectDescription {
		return fault.OnField(fault.Unprocessable, "description", "too_long", "must be at most %d characters",
			maxProjectDescription)
	}

	return nil
}

// projectNameConflict turns a unique violation on a project's name into Conflict on the field.
func projectNameConflict(err error) error {
	if pg.Violates(err, "projects_name_key") {
		return fault.OnField(fault.Conflict, "name", "already_exists",
			"is taken by another project of the organization").WithCause(err)
	}

	return err
}

// OwnerOf returns the account that owns a project: the first owner of its organization. Projects
// share limits within one account, so that no account counts for another.
func (s *Store) OwnerOf(ctx context.Context, project uuid.UUID) (uuid.UUID, error) {
	return pg.Value[uuid.UUID](ctx, s.q, `
		select m.user_uuid
		from platform.projects p join platform.members m on m.organization_uuid = p.organization_uuid and m.role = 2
		where p.uuid = @project order by m.created_at, m.user_uuid limit 1`, pgx.StrictNamedArgs{"project": project})
}
