package platform

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/audit"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
)

// ActivateProject sets a project to active after its database was created at a schema version. It
// fails with NotFound if the project is not being created any more.
func (s *Store) ActivateProject(ctx context.Context, id uuid.UUID, version int64) (Project, error) {
	return pg.InTxValue(ctx, s.InTx, func(tx *Store) (Project, error) {
		audit.CreatedUUID(ctx, id)
		audit.In(ctx, id)

		return pg.One[Project](ctx, tx.q, `
			update platform.projects p set status = 'active', schema_version = @version, updated_at = now()
			where uuid = @id and status in ('creating', 'active')
			returning`+projectColumns, pgx.StrictNamedArgs{"id": id, "version": version})
	})
}

// PauseProject sets an active project to paused. It becomes inaccessible, and its database is to be
// closed. It fails with NotFound for an unknown project.
func (s *Store) PauseProject(ctx context.Context, id, user uuid.UUID) (Project, error) {
	return pg.InTxValue(ctx, s.InTx, func(tx *Store) (Project, error) {
		return pg.One[Project](ctx, tx.q, `
			update platform.projects p set status = 'paused', closed = false, updated_by = @user, updated_at = now()
			where uuid = @id and status = 'active'
			returning`+projectColumns, pgx.StrictNamedArgs{"id": id, "user": user})
	})
}

// DeleteProject sets a project to deleted, from which it can be restored. It becomes inaccessible,
// its name is free, and its database is to be closed. It fails with NotFound unless the project is
// active or paused.
func (s *Store) DeleteProject(ctx context.Context, id, user uuid.UUID) (Project, error) {
	return pg.InTxValue(ctx, s.InTx, func(tx *Store) (Project, error) {
		return pg.One[Project](ctx, tx.q, `
			update platform.projects p set status = 'deleted', deleted_at = now(), closed = false, updated_by = @user, updated_at = now()
			where uuid = @id and status in ('active', 'paused')
			returning`+projectColumns, pgx.StrictNamedArgs{"id": id, "user": user})
	})
}

// MarkDatabaseClosed records that a paused or deleted project's database rejects connections.
func (s *Store) MarkDatabaseClosed(ctx context.Context, id uuid.UUID) error {
	_, err := pg.Exec(ctx, s.q,
		`update platform.projects set closed = true where uuid = @id and status in ('paused', 'deleted')`,
		pgx.StrictNamedArgs{"id": id})
	return err
}

// MarkDatabaseOpening records that the database for a project in this status, paused or deleted, is
// about to be opened. A background job closes it again unless the project becomes active. It fails
// with NotFound if the project has another status.
func (s *Store) MarkDatabaseOpening(ctx context.Context, id uuid.UUID, state string) error {
	_, err := pg.Value[uuid.UUID](ctx, s.q, `
		update platform.projects set closed = false where uuid = @id and status = @state returning uuid`,
		pgx.StrictNamedArgs{"id": id, "state": state})
	return err
}

// ReactivateProject sets a project in this status, paused or deleted, to active. Its database is
// open and at this schema version. It fails with NotFound if the project has another status, and
// with Conflict if the name was taken meanwhile.
func (s *Store) ReactivateProject(
	ctx context.Context, id, user uuid.UUID, state string, version int64,
) (Project, error) {
	return pg.InTxValue(ctx, s.InTx, func(tx *Store) (Project, error) {
		p, err := pg.One[Project](ctx, tx.q, `
			update platform.projects p
			set status = 'active', deleted_at = null, schema_version = @version, updated_by = @user, updated_at = now()
			where uuid = @id and status = @state
			returning`+projectColumns, pgx.StrictNamedArgs{"id": id, "user": user, "state": state, "version": version})

		return p, projectNameConflict(err)
	})
}

// StartPurge sets a project to deleting. It fails with NotFound unless the project is active,
// paused or deleted. It fails with Conflict if the project requires a backup before destructive
// operations, because the backups are removed with it.
func (s *Store) StartPurge(ctx context.Context, id, user uuid.UUID) (Project, error) {
	p, err := pg.One[Project](ctx, s.q, `
		update platform.projects p
		set status = case when backup_before_destructive then status else 'deleting' end, updated_by = @user, updated_at = now()
		where uuid = @id and status in ('active', 'paused', 'deleted')
		returning`+projectColumns, pgx.StrictNamedArgs{"id": id, "user": user})
	if err != nil {
		return p, err
	}

	if p.BackupBeforeDestructive {
		return p, fault.New(fault.Conflict,
			"a purge also deletes the backups, but the project requires one before destructive operations: "+
				"delete it without purge, or turn backup_before_destructive off first").
			WithCode("backup_first")
	}

	return p, nil
}

// ExpireProject sets a project to deleting that was deleted longer ago than keep. It reports
// whether it did.
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

// DeletePurgedProject deletes a purged project's row and request log. The project's restores go
// with it, so the new projects from unfinished restores are set to deleting: nothing would fill
// them.
func (s *Store) DeletePurgedProject(ctx context.Context, id uuid.UUID) error {
	return pg.InTx(ctx, s.b, func(tx pgx.Tx) error {
		args := pgx.StrictNamedArgs{"id": id}

		// The row lock excludes new restores, which refer to the row.
		_, err := pg.Value[uuid.UUID](ctx, tx, `
			select uuid from platform.projects where uuid = @id and status in ('creating', 'deleting') for update`, args)
		if err != nil {
			return fault.Ignore(err, fault.NotFound)
		}

		for _, sql := range []string{
			`update platform.projects set status = 'deleting', updated_at = now()
			where uuid in (select project_uuid from platform.restores
				where backup_project_uuid = @id and target = 'new' and status in ('pending', 'running'))`,
			`delete from platform.projects where uuid = @id`,
			`delete from platform.requests where project_uuid = @id`,
		} {
			if _, err := pg.Exec(ctx, tx, sql, args); err != nil {
				return err
			}
		}

		return nil
	})
}

// UnfinishedProject is a project with unfinished background work.
type UnfinishedProject struct {
	UUID   uuid.UUID
	Status string
}

// UnfinishedProjects returns the projects that are being created or purged, whose database is below
// a schema version or is to be closed, or that were deleted longer ago than keep.
func (s *Store) UnfinishedProjects(
	ctx context.Context, version int64, keep time.Duration,
) ([]UnfinishedProject, error) {
	return pg.All[UnfinishedProject](ctx, s.q, `
		select uuid, status from platform.projects
		where status in ('creating', 'deleting') or status = 'active' and schema_version < @version
			or status in ('paused', 'deleted') and not closed or status = 'deleted' and deleted_at < now() - @keep::interval
		order by uuid`, pgx.StrictNamedArgs{"version": version, "keep": keep})
}

// ActiveProjects returns all active projects.
func (s *Store) ActiveProjects(ctx context.Context) ([]uuid.UUID, error) {
	return pg.Values[uuid.UUID](ctx, s.q, `select uuid from platform.projects where status = 'active' order by uuid`)
}

// ProjectNames returns all projects by name, deleted ones included.
func (s *Store) ProjectNames(ctx context.Context) ([]NamedProject, error) {
	return pg.All[NamedProject](ctx, s.q, `select uuid, name, status from platform.projects order by name, uuid`)
}

// NamedProject holds a project's name and status.
type NamedProject struct {
	UUID         uuid.UUID
	Name, Status string
}

// ExistingProjects returns the projects that have a row, in any status.
func (s *Store) ExistingProjects(ctx context.Context, projects []uuid.UUID) ([]uuid.UUID, error) {
	return pg.Values[uuid.UUID](ctx, s.q, `select uuid from platform.projects where uuid = any(@projects)`,
		pgx.StrictNamedArgs{"projects": projects})
}

// InactiveProjects returns all paused and deleted projects.
func (s *Store) InactiveProjects(ctx context.Context) ([]uuid.UUID, error) {
	return pg.Values[uuid.UUID](ctx, s.q,
		`select uuid from platform.projects where status in ('paused', 'deleted') order by uuid`)
}

// ProjectStatuses returns every recorded project's status.
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

// PurgedProjects returns which unknown projects existed according to the audit log. It scans the
// whole log.
func (s *Store) PurgedProjects(ctx context.Context, projects []uuid.UUID) ([]uuid.UUID, error) {
	if len(projects) == 0 {
		return nil, nil
	}

	return pg.Values[uuid.UUID](ctx, s.q, `
		select o from unnest(@of::uuid[]) o
		where exists (select from socle.audit where entry::jsonb ->> 'project' = o::text)
			or exists (select from socle.audit_pending where entry::jsonb ->> 'project' = o::text)`,
		pgx.StrictNamedArgs{"of": projects})
}

// ProjectCreation holds a project's origin.
type ProjectCreation struct {
	User       uuid.UUID
	RequestKey string // hash for the request's Idempotency-Key; "": none
}

// ProjectCreation returns the user and the request that create a project. It fails with NotFound
// for an unknown project.
func (s *Store) ProjectCreation(ctx context.Context, id uuid.UUID) (ProjectCreation, error) {
	return pg.One[ProjectCreation](ctx, s.q, `
		select created_by as user, coalesce(request_key, '') as request_key from platform.projects where uuid = @id`,
		pgx.StrictNamedArgs{"id": id})
}

// ProjectStatus returns a project's status. It fails with NotFound for an unknown project.
func (s *Store) ProjectStatus(ctx context.Context, id uuid.UUID) (string, error) {
	return pg.Value[string](ctx, s.q, `select status from platform.projects where uuid = @id`,
		pgx.StrictNamedArgs{"id": id})
}

// SwapDatabase swaps in another database for a project by the renames, and records the project's
// forms and schema version. It needs a store in a transaction. It fails with Conflict if the
// project is not active.
func (s *Store) SwapDatabase(
	ctx context.Context, project uuid.UUID, forms []uuid.UUID, version int64, renames []string,
) error {
	n, err := pg.Exec(ctx, s.q,
		`update platform.projects set schema_version = @version where uuid = @project and status = 'active'`,
		pgx.StrictNamedArgs{"project": project, "version": version})
	if err != nil {
		return err
	}

	if n == 0 {
		return fault.New(fault.Conflict, "the project is no longer active")
	}

	args := pgx.StrictNamedArgs{"project": project, "forms": forms}
	if _, err := pg.Exec(ctx, s.q,
		`delete from platform.forms where project_uuid = @project and uuid <> all(@forms::uuid[])`, args); err != nil {
		return err
	}

	if _, err := pg.Exec(ctx, s.q, `
		insert into platform.forms (uuid, project_uuid)
		select f, @project from unnest(@forms::uuid[]) f
		where not exists (select from platform.forms o where o.uuid = f and o.project_uuid = @project)`,
		args); err != nil {
		return err
	}

	for _, sql := range renames {
		if _, err := s.q.Exec(ctx, sql); err != nil {
			return pg.Fault(err)
		}
	}

	return nil
}

// AbandonProject sets a project to status deleting if it has any other: it was created for a
// restore that failed.
func (s *Store) AbandonProject(ctx context.Context, id uuid.UUID) error {
	_, err := pg.Exec(ctx, s.q, `
		update platform.projects set status = 'deleting', updated_at = now()
		where uuid = @project and status in ('creating', 'active', 'paused', 'deleted')`,
		pgx.StrictNamedArgs{"project": id})
	return err
}
