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

// PauseProject says that an active project is paused: from now on nobody can use it, and its database is to be closed.
// It fails with NotFound if there is none.
func (s *Store) PauseProject(ctx context.Context, id, user uuid.UUID) (Project, error) {
	return change(ctx, s, func(tx *Store) (Project, error) {
		return pg.One[Project](ctx, tx.q, `
			update platform.projects p set status = 'paused', closed = false, updated_by = @user, updated_at = now()
			where uuid = @id and status = 'active'
			returning`+projectColumns, pgx.StrictNamedArgs{"id": id, "user": user})
	})
}

// DeleteProject says that a project is deleted, as one that can be restored: from now on nobody can use it, its name is
// free, and its database is to be closed. It fails with NotFound if there is none that is active or paused.
func (s *Store) DeleteProject(ctx context.Context, id, user uuid.UUID) (Project, error) {
	return change(ctx, s, func(tx *Store) (Project, error) {
		return pg.One[Project](ctx, tx.q, `
			update platform.projects p set status = 'deleted', deleted_at = now(), closed = false, updated_by = @user, updated_at = now()
			where uuid = @id and status in ('active', 'paused')
			returning`+projectColumns, pgx.StrictNamedArgs{"id": id, "user": user})
	})
}

// DatabaseClosed says that the database of a paused or deleted project takes no connections any more.
func (s *Store) DatabaseClosed(ctx context.Context, id uuid.UUID) error {
	_, err := pg.Exec(ctx, s.q,
		`update platform.projects set closed = true where uuid = @id and status in ('paused', 'deleted')`,
		pgx.StrictNamedArgs{"id": id})
	return err
}

// DatabaseOpening says that the database of a project that is in a state, paused or deleted, is about to be opened, so that it is closed
// again unless the project becomes active. It fails with NotFound if the project is in another state.
func (s *Store) DatabaseOpening(ctx context.Context, id uuid.UUID, state string) error {
	_, err := pg.Value[uuid.UUID](ctx, s.q, `
		update platform.projects set closed = false where uuid = @id and status = @state returning uuid`,
		pgx.StrictNamedArgs{"id": id, "state": state})
	return err
}

// ReactivateProject makes a project active that is in a state, paused or deleted, and whose database is open and has a
// migration. It fails with NotFound if the project is in another state, and with Conflict if its name was taken meanwhile.
func (s *Store) ReactivateProject(
	ctx context.Context, id, user uuid.UUID, state string, version int64,
) (Project, error) {
	return change(ctx, s, func(tx *Store) (Project, error) {
		p, err := pg.One[Project](ctx, tx.q, `
			update platform.projects p
			set status = 'active', deleted_at = null, schema_version = @version, updated_by = @user, updated_at = now()
			where uuid = @id and status = @state
			returning`+projectColumns, pgx.StrictNamedArgs{"id": id, "user": user, "state": state, "version": version})

		return p, projectNameTaken(err)
	})
}

// RemovingProject says that a project is being removed for good. It fails with NotFound if there is none that is active, paused or deleted,
// and with Conflict if it is to have a backup before anything of it is destroyed: its backups go with it.
func (s *Store) RemovingProject(ctx context.Context, id, user uuid.UUID) (Project, error) {
	p, err := pg.One[Project](ctx, s.q, `
		update platform.projects p
		set status = case when backup_before_destructive then status else 'deleting' end, updated_by = @user, updated_at = now()
		where uuid = @id and status in ('active', 'paused', 'deleted')
		returning`+projectColumns, pgx.StrictNamedArgs{"id": id, "user": user})
	if err == nil && p.BackupBeforeDestructive {
		err = fault.New(fault.Conflict,
			"the project's backups go with it, and it is to have one before anything of it is destroyed: delete it without purge, or change backup_before_destructive first").
			WithCode("backup_first")
	}

	return p, err
}

// ExpireProject says that a project which was deleted longer ago than keep is being removed, and reports whether it is one.
func (s *Store) ExpireProject(ctx context.Context, id uuid.UUID, keep time.Duration) (bool, error) {
	err := s.InTx(ctx, func(tx *Store) error {
		_, err := pg.Value[uuid.UUID](ctx, tx.q, `
			update platform.projects set status = 'deleting', updated_at = now()
			where uuid = @id and status = 'deleted' and deleted_at < now() - @keep::interval
			returning uuid`, pgx.StrictNamedArgs{"id": id, "keep": keep})
		return err
	})
	if fault.Is(err, fault.NotFound) {
		return false, nil
	}

	return err == nil, err
}

// ForgetProject removes a project of which nothing is left, and what was asked of it.
func (s *Store) ForgetProject(ctx context.Context, id uuid.UUID) error {
	return pg.InTx(ctx, s.b, func(tx pgx.Tx) error {
		args := pgx.StrictNamedArgs{"id": id}
		n, err := pg.Exec(ctx, tx,
			`delete from platform.projects where uuid = @id and status in ('creating', 'deleting')`, args)
		if err != nil || n == 0 {
			return err
		}

		_, err = pg.Exec(ctx, tx, `delete from platform.requests where project_uuid = @id`, args)
		return err
	})
}

// UnfinishedProject is a project with which something has not come to its end.
type UnfinishedProject struct {
	UUID   uuid.UUID
	Status string
}

// UnfinishedProjects returns the projects that are being created or removed, those whose database is older than a migration or is to
// be closed, and those that were deleted longer ago than keep.
func (s *Store) UnfinishedProjects(
	ctx context.Context, version int64, keep time.Duration,
) ([]UnfinishedProject, error) {
	return pg.All[UnfinishedProject](ctx, s.q, `
		select uuid, status from platform.projects
		where status in ('creating', 'deleting') or status = 'active' and schema_version < @version
			or status in ('paused', 'deleted') and not closed or status = 'deleted' and deleted_at < now() - @keep::interval
		order by uuid`, pgx.StrictNamedArgs{"version": version, "keep": keep})
}

// ActiveProjects returns the projects that can be used.
func (s *Store) ActiveProjects(ctx context.Context) ([]uuid.UUID, error) {
	return pg.Values[uuid.UUID](ctx, s.q, `select uuid from platform.projects where status = 'active' order by uuid`)
}

// ProjectNames returns all projects by name, deleted ones that can still be restored included.
func (s *Store) ProjectNames(ctx context.Context) ([]NamedProject, error) {
	return pg.All[NamedProject](ctx, s.q, `select uuid, name, status from platform.projects order by name, uuid`)
}

// NamedProject is the name and the status of a project.
type NamedProject struct {
	UUID         uuid.UUID
	Name, Status string
}

// KnownProjects returns those of some projects that there are or were, until they are removed.
func (s *Store) KnownProjects(ctx context.Context, projects []uuid.UUID) ([]uuid.UUID, error) {
	return pg.Values[uuid.UUID](ctx, s.q, `select uuid from platform.projects where uuid = any(@projects)`,
		pgx.StrictNamedArgs{"projects": projects})
}

// ClosedProjects returns the projects that are kept and that nobody can use: paused ones and deleted ones.
func (s *Store) ClosedProjects(ctx context.Context) ([]uuid.UUID, error) {
	return pg.Values[uuid.UUID](ctx, s.q,
		`select uuid from platform.projects where status in ('paused', 'deleted') order by uuid`)
}

// ProjectStatuses returns the status of each project that there is or that is being made or removed.
func (s *Store) ProjectStatuses(ctx context.Context) (map[uuid.UUID]string, error) {
	all, err := pg.All[struct {
		UUID   uuid.UUID
		Status string
	}](ctx, s.q, `select uuid, status from platform.projects`)
	statuses := make(map[uuid.UUID]string, len(all))
	for _, p := range all {
		statuses[p.UUID] = p.Status
	}

	return statuses, err
}

// GoneProjects returns which of some projects that there are not there have been, by what the audit log says, all of which it reads.
func (s *Store) GoneProjects(ctx context.Context, of []uuid.UUID) ([]uuid.UUID, error) {
	if len(of) == 0 {
		return nil, nil
	}

	return pg.Values[uuid.UUID](ctx, s.q, `
		select o from unnest(@of::uuid[]) o
		where exists (select from socle.audit where entry::jsonb ->> 'project' = o::text)`,
		pgx.StrictNamedArgs{"of": of})
}

// ProjectCreation is what is known of a project's creation.
type ProjectCreation struct {
	User       uuid.UUID
	RequestKey string // hash of the request's Idempotency-Key; "" if it had none
}

// ProjectCreation returns who creates a project, and by which request. It fails with NotFound if there is none.
func (s *Store) ProjectCreation(ctx context.Context, id uuid.UUID) (ProjectCreation, error) {
	return pg.One[ProjectCreation](ctx, s.q, `
		select created_by as user, coalesce(request_key, '') as request_key from platform.projects where uuid = @id`,
		pgx.StrictNamedArgs{"id": id})
}

// ProjectStatus returns a project's status. It fails with NotFound if there is none.
func (s *Store) ProjectStatus(ctx context.Context, id uuid.UUID) (string, error) {
	return pg.Value[string](ctx, s.q, `select status from platform.projects where uuid = @id`,
		pgx.StrictNamedArgs{"id": id})
}
