package platform

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"socle/internal/fault"
	"socle/internal/pg"
)

// ListRestores returns a page of the restores of backups of a project and the total count.
func (s *Store) ListRestores(ctx context.Context, project uuid.UUID, page pg.Page) ([]Restore, int64, error) {
	args := pgx.StrictNamedArgs{"project": project}
	total, err := pg.Value[int64](ctx, s.q,
		`select count(*) from platform.restores where backup_project_uuid = @project`, args)
	if err != nil {
		return nil, 0, err
	}

	restores, err := pg.All[Restore](ctx, s.q,
		`select`+restoreColumns+`from platform.restores where backup_project_uuid = @project`+
			page.Clause(map[string]string{"createdAt": "created_at", "completedAt": "completed_at"}, "uuid"), args)
	return restores, total, err
}

// UndoableRestore returns a restore that can be undone. It fails with NotFound for an unknown
// restore, and with Conflict if the replaced database is not kept or the restore was already
// undone.
func (s *Store) UndoableRestore(ctx context.Context, project, id uuid.UUID) (Restore, error) {
	r, err := s.GetRestore(ctx, project, id)
	switch {
	case err != nil:
		return r, err
	case r.KeptUntil == nil:
		return r, fault.New(fault.Conflict, "nothing is kept of what was before this restore").WithCode("nothing_kept")
	case r.UndoneAt != nil:
		return r, fault.New(fault.Conflict, "the project has gone back to what was before this restore").
			WithCode("already_undone")
	}

	return r, nil
}

// UndoRestore swaps the replaced database back in and records it, as [Store.CompleteRestore] does.
// It fails with Conflict if the replaced database is not kept any more.
func (s *Store) UndoRestore(
	ctx context.Context, r Restore, forms []uuid.UUID, version int64, renames []string,
) (Restore, error) {
	return change(ctx, s, func(tx *Store) (Restore, error) {
		undone, err := pg.One[Restore](ctx, tx.q, `
			update platform.restores set undone_at = now(), kept_until = now() + @keep::interval
			where uuid = @id and kept_until > now() and undone_at is null
			returning`+restoreColumns, pgx.StrictNamedArgs{"id": r.UUID, "keep": replacedKept})
		if fault.Is(err, fault.NotFound) {
			return r, fault.New(fault.Conflict, "nothing is kept any more of what was before this restore").
				WithCode("nothing_kept").Because(err)
		}
		if err != nil {
			return r, err
		}

		return undone, takePlace(ctx, tx.Tx(), r.ProjectUUID, forms, version, renames)
	})
}

// RestoreExpired reports whether the database that a restore replaced has passed its retention.
func (s *Store) RestoreExpired(ctx context.Context, id uuid.UUID) (bool, error) {
	return pg.Value[bool](ctx, s.q,
		`select exists (select from platform.restores where uuid = @id and kept_until < now())`,
		pgx.StrictNamedArgs{"id": id})
}

// UndoableProjects returns the active projects for which a replaced database is kept.
func (s *Store) UndoableProjects(ctx context.Context) ([]uuid.UUID, error) {
	return pg.Values[uuid.UUID](ctx, s.q, `
		select distinct p.uuid from platform.restores r join platform.projects p on p.uuid = r.project_uuid
		where r.kept_until is not null and p.status = 'active'`)
}

// takePlace swaps in the database of a project by the renames, and records the project's forms and
// schema version. It fails with Conflict if the project is not active.
func takePlace(
	ctx context.Context, tx pgx.Tx, project uuid.UUID, forms []uuid.UUID, version int64, renames []string,
) error {
	n, err := pg.Exec(ctx, tx,
		`update platform.projects set schema_version = @version where uuid = @project and status = 'active'`,
		pgx.StrictNamedArgs{"project": project, "version": version})
	if err == nil && n == 0 {
		err = fault.New(fault.Conflict, "the project is not active any more")
	}
	if err != nil {
		return err
	}

	args := pgx.StrictNamedArgs{"project": project, "forms": forms}
	if _, err := pg.Exec(ctx, tx,
		`delete from platform.forms where project_uuid = @project and uuid <> all(@forms::uuid[])`, args); err != nil {
		return err
	}

	if _, err := pg.Exec(ctx, tx, `
		insert into platform.forms (uuid, project_uuid)
		select f, @project from unnest(@forms::uuid[]) f
		where not exists (select from platform.forms o where o.uuid = f and o.project_uuid = @project)`,
		args); err != nil {
		return err
	}

	for _, sql := range renames {
		if _, err := tx.Exec(ctx, sql); err != nil {
			return pg.Fault(err)
		}
	}

	return nil
}
