package projectdb

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/platform"
)

// Pause makes a project unavailable and keeps its data. When it returns, its database has no
// connections and accepts none.
//
// It fails with Conflict if the project is paused, and with NotFound if there is no such project.
func (l Lifecycle) Pause(ctx context.Context, id, user uuid.UUID) (platform.Project, error) {
	p, err := l.Store.PauseProject(ctx, id, user)
	if fault.Is(err, fault.NotFound) {
		if status, unknown := l.Store.ProjectStatus(ctx, id); unknown == nil && status == platform.Paused {
			return p, fault.New(fault.Conflict, "the project is paused").WithCode("project_paused").WithCause(err)
		}
	}
	if err != nil {
		return p, err
	}

	l.notifyChanged(id)
	return p, l.withLock(ctx, id, pg.LockBlocking, func() error { return l.closeInactive(ctx, id) })
}

// Delete makes a project unavailable as Pause does and releases its name. [Lifecycle.Finish] purges
// it after the retention that is set for the install.
//
// It fails with NotFound if there is no active or paused project.
func (l Lifecycle) Delete(ctx context.Context, id, user uuid.UUID) (platform.Project, error) {
	p, err := l.Store.DeleteProject(ctx, id, user)
	if err != nil {
		return p, err
	}

	l.notifyChanged(id)
	return p, l.withLock(ctx, id, pg.LockBlocking, func() error { return l.closeInactive(ctx, id) })
}

// Resume makes a paused project active. It fails with Conflict if the project is not paused.
func (l Lifecycle) Resume(ctx context.Context, id, user uuid.UUID) (platform.Project, error) {
	p, err := l.reactivate(ctx, id, user, platform.Paused)
	if fault.Is(err, fault.NotFound) {
		return p, fault.New(fault.Conflict, "the project is not paused").WithCode("not_paused").WithCause(err)
	}

	return p, err
}

// Restore makes a deleted project active. It fails with Conflict if the project is not deleted or
// its name was taken meanwhile.
func (l Lifecycle) Restore(ctx context.Context, id, user uuid.UUID) (platform.Project, error) {
	p, err := l.reactivate(ctx, id, user, platform.Deleted)
	if fault.Is(err, fault.NotFound) {
		return p, fault.New(fault.Conflict, "the project is not deleted").WithCode("not_deleted").WithCause(err)
	}

	return p, err
}

// reactivate makes a project in the given state, paused or deleted, active. It opens the database
// before it changes the state, so that no caller finds it closed. Meanwhile the row records that
// the database must be closed again if the change fails.
func (l Lifecycle) reactivate(ctx context.Context, id, user uuid.UUID, state string) (platform.Project, error) {
	var p platform.Project
	err := l.withLock(ctx, id, pg.LockBlocking, func() error {
		if err := l.Store.MarkDatabaseOpening(ctx, id, state); err != nil {
			return err
		}

		var err error
		if p, err = l.openAndReactivate(ctx, id, user, state); err != nil {
			after, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoTimeout)
			defer cancel()

			return errors.Join(err, l.closeInactive(after, id))
		}

		l.notifyChanged(id)
		return nil
	})

	return p, err
}

func (l Lifecycle) openAndReactivate(
	ctx context.Context, id, user uuid.UUID, state string,
) (platform.Project, error) {
	version, err := l.Registry.openDatabase(ctx, id)
	if err != nil {
		return platform.Project{}, err
	}

	return l.Store.ReactivateProject(ctx, id, user, state, version)
}

func (l Lifecycle) notifyChanged(id uuid.UUID) {
	if l.OnChange != nil {
		l.OnChange(id)
	}
}

// closeInactive closes the database of a project that is paused or deleted.
func (l Lifecycle) closeInactive(ctx context.Context, id uuid.UUID) error {
	status, err := l.Store.ProjectStatus(ctx, id)
	switch {
	case fault.Is(err, fault.NotFound):
		return nil
	case err != nil:
		return err
	case status != platform.Paused && status != platform.Deleted:
		return nil
	}

	if err := l.Registry.admin(ctx, func(conn *pgx.Conn) error {
		return l.Registry.closeDatabase(ctx, conn, id)
	}); err != nil {
		return err
	}

	return l.Store.MarkDatabaseClosed(ctx, id)
}

// openDatabase opens a project's database to its logins and migrates it. It returns the version
// reached.
func (r *Registry) openDatabase(ctx context.Context, project uuid.UUID) (int64, error) {
	conn, err := pgx.ConnectConfig(ctx, r.base.ConnConfig)
	if err != nil {
		return 0, pg.Fault(err)
	}
	defer conn.Close(context.WithoutCancel(ctx))

	for _, step := range []provisionStep{r.createLogins, r.removeConnectionLimit, r.grantDatabase, r.initDatabase} {
		if err := step(ctx, conn, project); err != nil {
			return 0, fmt.Errorf("open the database of project %s: %w", project, pg.Fault(err))
		}
	}

	return Version(), nil
}

func (r *Registry) removeConnectionLimit(ctx context.Context, conn *pgx.Conn, project uuid.UUID) error {
	return execAll(ctx, conn, []string{"alter database " + pg.Quote(r.Database(project)) + " connection limit -1"})
}

// selectConnected terminates sessions in a database and counts them, and also the backends that are
// connecting. It selects sessions that began before @since, and those of the project's logins of
// any time. A connecting backend holds a lock on the database from before it checks the connection
// limit until its session is visible.
const selectConnected = `
	select count(pg_terminate_backend(a.pid)) + (
		select count(*) from pg_locks l
		where l.locktype = 'object' and l.classid = 'pg_database'::regclass and l.objid = (select d.oid from pg_database d where d.datname = @name))
	from pg_stat_activity a left join pg_roles r on r.oid = a.usesysid
	where a.datname = @name and a.backend_type <> 'autovacuum worker' and (a.backend_start < @since or not r.rolsuper)`

// terminateInterval is the interval between checks for terminated sessions.
const terminateInterval = 20 * time.Millisecond

// closeDatabase closes a project's database and terminates its sessions. The platform's own login,
// a superuser, is exempt from the connection limit of 0. A database that does not exist counts as
// closed.
func (r *Registry) closeDatabase(ctx context.Context, conn *pgx.Conn, project uuid.UUID) error {
	if err := execIgnoring(conn, ctx, "alter database "+pg.Quote(r.Database(project))+" connection limit 0",
		"3D000"); err != nil {
		return fmt.Errorf("close the database of project %s: %w", project, pg.Fault(err))
	}

	r.endSessions(project)

	since, err := pg.Value[time.Time](ctx, conn, `select clock_timestamp()`)
	if err != nil {
		return err
	}

	tick := time.NewTicker(terminateInterval)
	defer tick.Stop()

	for {
		remaining, err := pg.Value[int64](ctx, conn, selectConnected,
			pgx.StrictNamedArgs{"name": r.Database(project), "since": since})
		if err != nil {
			return fmt.Errorf("close the database of project %s: %w", project, err)
		}

		if remaining == 0 {
			r.resetPools(project)
			return nil
		}

		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

// rejectClosed makes connections of the platform's own login fail on a closed database, too: a
// request that began earlier must not continue in a paused project. Resuming, upgrading and
// removing a project uses no pool.
func rejectClosed(c *pgxpool.Config) {
	prepare := c.AfterConnect
	c.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
		if err := prepare(ctx, conn); err != nil {
			return err
		}

		closed, err := pg.Value[bool](ctx, conn,
			`select datconnlimit = 0 from pg_database where datname = current_database()`)
		if err == nil && closed {
			err = errClosed
		}

		return err
	}
}

// endSessions ends the client sessions of a project whose database was closed.
func (r *Registry) endSessions(project uuid.UUID) {
	r.mu.Lock()
	p := r.projects[project]
	r.mu.Unlock()

	if p != nil {
		p.endSessions(errClosed)
	}
}

// resetPools closes the idle connections of a project, and the others when they are released.
func (r *Registry) resetPools(project uuid.UUID) {
	r.mu.Lock()
	p := r.projects[project]
	r.mu.Unlock()

	if p == nil {
		return
	}

	p.mu.Lock()
	defer p.mu.Unlock()

	for _, pool := range p.pools {
		pool.Reset()
	}
}
