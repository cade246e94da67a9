package backup

import (
	"context"
	"errors"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"socle/internal/fault"
	"socle/internal/pg"
	"socle/internal/platform"
	"socle/internal/tenant"
)

// Undo swaps back the database that a restore replaced, immediately. The restored database is then
// kept in its place, as the replaced one was. It fails like [store.undoable].
func (s *Service) Undo(ctx context.Context, project, id uuid.UUID) (Restore, error) {
	var undone Restore
	err := s.Lifecycle.WithLock(ctx, project, func() error {
		r, err := s.undoable(ctx, project, id)
		if err != nil {
			return err
		}

		c := s.projects.Copy(r.ProjectUUID, r.UUID)
		if err := c.MigrateReplaced(ctx); err != nil {
			if pg.State(err) == "3D000" { // invalid_catalog_name
				err = fault.New(fault.Conflict, "the database from before this restore is no longer kept").
					WithCode("nothing_kept").WithCause(err)
			}

			return err
		}

		forms, err := s.carryQuota(ctx, r.ProjectUUID, c.ConnectReplaced)
		if err != nil {
			return err
		}

		return c.SwapBack(ctx, func(renames []string) error {
			undone, err = s.recordUndo(ctx, r, forms, tenant.Version(), renames)
			return err
		})
	})

	return undone, err
}

// OpenGates opens the gates of projects that a server closed for an undo and left closed when it
// stopped.
func (s *Service) OpenGates(ctx context.Context) error {
	projects, err := s.undoableProjects(ctx)
	if err != nil || len(projects) == 0 {
		return err
	}

	closed, err := s.projects.ClosedProjects(ctx, projects)
	errs := []error{err}
	for _, id := range closed {
		errs = append(errs, s.Lifecycle.WithLock(ctx, id, func() error { // an undo in progress has ended now
			closedNow, err := s.projects.ClosedProjects(ctx, []uuid.UUID{id})
			if err != nil || len(closedNow) == 0 {
				return err
			}

			status, err := s.platform.ProjectStatus(ctx, id)
			if err != nil || status != platform.Active {
				return fault.Ignore(err, fault.NotFound)
			}

			return s.projects.Copy(id, uuid.Nil).Reopen(ctx)
		}))
	}

	return errors.Join(errs...)
}

// carryQuota copies the project's quota to a database about to replace the project's, and returns
// its forms. Quotas are set by administrators and are not restored.
func (s *Service) carryQuota(
	ctx context.Context, project uuid.UUID, connect func(context.Context) (*pgx.Conn, error),
) ([]uuid.UUID, error) {
	type quota struct{ MaxFiles, MaxBytes *int64 }
	q, err := pg.One[quota](ctx, s.projects.Open(project).Trusted(), `select max_files, max_bytes from storage.usage`)
	if err != nil {
		return nil, err
	}

	conn, err := connect(ctx)
	if err != nil {
		return nil, err
	}
	defer conn.Close(context.WithoutCancel(ctx))

	if _, err := pg.Exec(ctx, conn, `update storage.usage set max_files = @files, max_bytes = @bytes`,
		pgx.StrictNamedArgs{"files": q.MaxFiles, "bytes": q.MaxBytes}); err != nil {
		return nil, err
	}

	return pg.Values[uuid.UUID](ctx, conn, `select uuid from forms.forms`)
}

// DropReplaced removes the database replaced by a restore, and its files. It does nothing while the
// database is still to be kept.
func (s *Service) DropReplaced(ctx context.Context, r Restore) error {
	return s.Lifecycle.WithLock(ctx, r.ProjectUUID, func() error { // excludes a concurrent undo
		expired, err := s.isExpired(ctx, r.UUID)
		if err != nil || !expired {
			return err
		}

		c := s.projects.Copy(r.ProjectUUID, r.UUID)
		blobs, err := blobsOf(ctx, c.ConnectReplaced)
		if err != nil {
			return err
		}

		if err := s.deleteBlobs(ctx, r.ProjectUUID, blobs); err != nil {
			return err
		}
		if err := c.DropReplaced(ctx); err != nil {
			return err
		}

		return s.markReplacedDropped(ctx, r.UUID)
	})
}

// repairImported repairs the platform's rows of an imported backup, which no trigger has checked:
// it deletes dangling references and recomputes counters.
func repairImported(ctx context.Context, c *tenant.Copy) error {
	conn, err := c.ConnectTrusted(ctx)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))

	return pg.InTx(ctx, conn, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "set local session_replication_role = replica"); err != nil {
			return err
		}

		for _, sql := range repairStatements {
			if _, err := pg.Exec(ctx, tx, sql); err != nil {
				return err
			}
		}

		return nil
	})
}

var repairStatements = []string{
	`delete from storage.files f where not exists (select from storage.containers c where c.uuid = f.container_uuid)`,
	`delete from forms.fields f where not exists (select from forms.forms o where o.uuid = f.form_uuid)`,
	`delete from forms.definitions d where not exists (select from forms.forms o where o.uuid = d.form_uuid)`,
	`delete from forms.responses r where not exists (select from forms.forms o where o.uuid = r.form_uuid)`,
	`update storage.containers c set (total_files, total_size) = (
		select count(*), coalesce(sum(f.size), 0) from storage.files f where f.container_uuid = c.uuid)`,
	`delete from storage.sorted_blocks`,
	`insert into storage.sorted_blocks (container_uuid, sort, first_text, first_number, first_time, first_uuid, files)
		select c.uuid, k.sort, '', -1, '-infinity', '00000000-0000-0000-0000-000000000000', 0
		from storage.containers c cross join storage.sort_keys('', '', 0, now(), now()) k`,
	`select storage.split_sorted(b) from storage.sorted_blocks b`,
	`insert into storage.usage (files, bytes) values (0, 0) on conflict do nothing`,
	`update storage.usage set (files, bytes) = (select count(*), coalesce(sum(size), 0) from storage.files)`,
	`update forms.forms f set total_responses = (select count(*) from forms.responses r where r.form_uuid = f.uuid and r.state = 'complete')`,
}
