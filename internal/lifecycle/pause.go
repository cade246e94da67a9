package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/pgcluster"
	"github.com/socle-dev/socle/internal/platform"
	"github.com/socle-dev/socle/internal/projectdb"
	"github.com/socle-dev/socle/internal/tick"
)

// Pause makes a project unavailable and keeps its data. When it returns, the database has no
// connections and accepts none.
//
// It fails with Conflict if the project is paused, and with NotFound if there is no such project.
func (s *Service) Pause(ctx context.Context, id, user uuid.UUID) (platform.Project, error) {
	p, err := s.Store.PauseProject(ctx, id, user)
	if fault.Is(err, fault.NotFound) {
		if status, statusErr := s.Store.ProjectStatus(ctx, id); statusErr == nil && status == platform.Paused {
			return p, fault.New(fault.Conflict, "the project is paused").WithCode("project_paused").WithCause(err)
		}
	}
	if err != nil {
		return p, err
	}

	s.notifyChanged(id)
	return p, s.withLock(ctx, id, pg.LockBlocking, func() error { return s.closeInactive(ctx, id) })
}

// Delete makes a project unavailable as Pause does and releases its name. [Service.Finish] purges
// it after the retention that is set for the install.
//
// It fails with NotFound if there is no active or paused project.
func (s *Service) Delete(ctx context.Context, id, user uuid.UUID) (platform.Project, error) {
	p, err := s.Store.DeleteProject(ctx, id, user)
	if err != nil {
		return p, err
	}

	s.notifyChanged(id)
	return p, s.withLock(ctx, id, pg.LockBlocking, func() error { return s.closeInactive(ctx, id) })
}

// Resume makes a paused project active. It fails with Conflict if the project is not paused.
func (s *Service) Resume(ctx context.Context, id, user uuid.UUID) (platform.Project, error) {
	p, err := s.reactivate(ctx, id, user, platform.Paused)
	if fault.Is(err, fault.NotFound) {
		return p, fault.New(fault.Conflict, "the project is not paused").WithCode("not_paused").WithCause(err)
	}

	return p, err
}

// Restore makes a deleted project active. It fails with Conflict if the project is not deleted or
// its name was taken meanwhile.
func (s *Service) Restore(ctx context.Context, id, user uuid.UUID) (platform.Project, error) {
	p, err := s.reactivate(ctx, id, user, platform.Deleted)
	if fault.Is(err, fault.NotFound) {
		return p, fault.New(fault.Conflict, "the project is not deleted").WithCode("not_deleted").WithCause(err)
	}

	return p, err
}

// reactivate makes a project in the given state, paused or deleted, active. It opens the database
// before it changes the state, so that no caller finds it closed. Meanwhile the row records that
// the database must be closed again if the change fails.
func (s *Service) reactivate(ctx context.Context, id, user uuid.UUID, state string) (platform.Project, error) {
	var p platform.Project
	err := s.withLock(ctx, id, pg.LockBlocking, func() error {
		if err := s.Store.MarkDatabaseOpening(ctx, id, state); err != nil {
			return err
		}

		var err error
		if p, err = s.openAndReactivate(ctx, id, user, state); err != nil {
			undoCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoTimeout)
			defer cancel()

			return errors.Join(err, s.closeInactive(undoCtx, id))
		}

		s.notifyChanged(id)
		return nil
	})

	return p, err
}

func (s *Service) openAndReactivate(
	ctx context.Context, id, user uuid.UUID, state string,
) (platform.Project, error) {
	version, err := s.openDatabase(ctx, id)
	if err != nil {
		return platform.Project{}, err
	}

	return s.Store.ReactivateProject(ctx, id, user, state, version)
}

func (s *Service) notifyChanged(id uuid.UUID) {
	if s.onChange != nil {
		s.onChange(id)
	}
}

// closeInactive closes a paused or deleted project's database.
func (s *Service) closeInactive(ctx context.Context, id uuid.UUID) error {
	status, err := s.Store.ProjectStatus(ctx, id)
	switch {
	case fault.Is(err, fault.NotFound):
		return nil
	case err != nil:
		return err
	case status != platform.Paused && status != platform.Deleted:
		return nil
	}

	if err := s.Registry.Cluster(id).WithConn(ctx, func(conn *pgx.Conn) error {
		return s.closeDatabase(ctx, conn, id)
	}); err != nil {
		return err
	}

	return s.Store.MarkDatabaseClosed(ctx, id)
}

// openDatabase opens a project's database to its logins and migrates it. It returns the version
// reached.
func (d Databases) openDatabase(ctx context.Context, project uuid.UUID) (int64, error) {
	conn, err := pgx.ConnectConfig(ctx, d.Registry.Cluster(project).PlatformConfig())
	if err != nil {
		return 0, pg.Fault(err)
	}
	defer conn.Close(context.WithoutCancel(ctx))

	for _, step := range []provisionStep{d.createLogins, d.removeConnectionLimit, d.grantDatabase, d.initDatabase} {
		if err := step(ctx, conn, project); err != nil {
			return 0, fmt.Errorf("open the database of project %s: %w", project, pg.Fault(err))
		}
	}

	return projectdb.Version(), nil
}

func (d Databases) removeConnectionLimit(ctx context.Context, conn *pgx.Conn, project uuid.UUID) error {
	return pgcluster.Exec(ctx, conn, "alter database "+pg.Quote(d.Registry.Database(project))+" connection limit -1")
}

// selectConnected terminates sessions in a database and counts them, and also the backends that are
// connecting. It selects sessions that began before @since, and all sessions on project logins. A
// connecting backend holds a lock on the database from before it checks the connection limit until
// the session is visible.
const selectConnected = `
	select count(pg_terminate_backend(a.pid)) + (
		select count(*) from pg_locks l
		where l.locktype = 'object' and l.classid = 'pg_database'::regclass and l.objid = (select d.oid from pg_database d where d.datname = @name))
	from pg_stat_activity a left join pg_roles r on r.oid = a.usesysid
	where a.datname = @name and a.backend_type <> 'autovacuum worker' and (a.backend_start < @since or not r.rolsuper)`

// terminateInterval is the interval between checks for terminated sessions.
const terminateInterval = 20 * time.Millisecond

// closeDatabase closes a project's database and terminates its sessions. The platform's own login,
// a superuser, is exempt from the connection limit 0. A database that does not exist counts as
// closed.
func (d Databases) closeDatabase(ctx context.Context, conn *pgx.Conn, project uuid.UUID) error {
	if err := pgcluster.ExecIgnoring(ctx, conn,
		"alter database "+pg.Quote(d.Registry.Database(project))+" connection limit 0", "3D000"); err != nil {
		return fmt.Errorf("close the database of project %s: %w", project, pg.Fault(err))
	}

	d.Registry.EndSessions(project)

	since, err := pg.Value[time.Time](ctx, conn, `select clock_timestamp()`)
	if err != nil {
		return err
	}

	for range tick.Poll(ctx, terminateInterval) {
		remaining, err := pg.Value[int64](ctx, conn, selectConnected,
			pgx.StrictNamedArgs{"name": d.Registry.Database(project), "since": since})
		if err != nil {
			return fmt.Errorf("close the database of project %s: %w", project, err)
		}

		if remaining == 0 {
			d.Registry.ResetPools(project)
			return nil
		}
	}

	return ctx.Err()
}
