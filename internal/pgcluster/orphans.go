package projectdb

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/socle-dev/socle/internal/pg"
)

const (
	orphansTimeout     = 15 * time.Second // for the sessions of a killed server to end
	onlyServerTimeout  = time.Second      // for PostgreSQL to notice lost connections
	onlyServerInterval = 100 * time.Millisecond
)

// TerminateSessions terminates all sessions of projects' logins on the PostgreSQL of conn and waits
// until they are gone. Use it at start of the only Socle server of a PostgreSQL: the sessions were
// left running by a killed server.
func TerminateSessions(ctx context.Context, conn *pgx.Conn) error {
	return endSessions(ctx, conn, ofProjects)
}

// TerminateOrphans terminates the sessions that a killed server left running, unless another server
// of this install is running. known filters project UUIDs for those of this install, since other
// installs may share the PostgreSQL. It must be called before the registry is used.
func (r *Registry) TerminateOrphans(
	ctx context.Context, platform *pgxpool.Pool, known func(context.Context, []uuid.UUID) ([]uuid.UUID, error),
) error {
	pooled, err := pg.Acquire(ctx, platform)
	if err != nil {
		return err
	}
	defer pooled.Release()

	conn := pooled.Conn()
	only, err := isOnlyServer(ctx, conn)
	if err != nil || !only {
		return err
	}

	logins, err := pg.Values[string](ctx, conn,
		withSessions+` select distinct usename::text from sessions where usename ~ @pattern`,
		pgx.StrictNamedArgs{"pattern": ofProjects})
	if err != nil {
		return err
	}

	var projects []uuid.UUID
	for _, login := range logins {
		id, ok := r.ProjectOf(login)
		if ok && !slices.Contains(projects, id) {
			projects = append(projects, id)
		}
	}

	if len(projects) == 0 {
		return nil
	}

	if projects, err = known(ctx, projects); err != nil {
		return err
	}

	for _, id := range projects {
		if err := endSessions(ctx, conn, "^"+r.Database(id)+"_"); err != nil {
			return err
		}
	}

	return nil
}

// isOnlyServer reports whether no other server of the install is running. Each server holds a
// shared lock as long as it listens, see [Registry.Subscribe].
func isOnlyServer(ctx context.Context, conn *pgx.Conn) (only bool, err error) {
	for deadline := time.Now().Add(onlyServerTimeout); ; {
		only, err = pg.Value[bool](ctx, conn, `select pg_try_advisory_lock($1, 0)`, swapLock)
		if err != nil || only || time.Now().After(deadline) {
			break
		}

		select {
		case <-ctx.Done():
			return false, ctx.Err()
		case <-time.After(onlyServerInterval):
		}
	}

	if only {
		_, err = pg.Exec(ctx, conn, `select pg_advisory_unlock($1, 0)`, swapLock)
	}

	return only, err
}

// endSessions terminates the sessions of the logins that match a pattern and waits until they are
// gone.
func endSessions(ctx context.Context, conn *pgx.Conn, pattern string) error {
	ctx, cancel := context.WithTimeout(ctx, orphansTimeout)
	defer cancel()

	tick := time.NewTicker(terminateInterval)
	defer tick.Stop()

	for {
		remaining, err := pg.Value[int](ctx, conn,
			withSessions+` select count(pg_terminate_backend(pid))::int from sessions where usename ~ @pattern`,
			pgx.StrictNamedArgs{"pattern": pattern})
		if err != nil || remaining == 0 {
			return err
		}

		select {
		case <-ctx.Done():
			return fmt.Errorf("%d sessions of projects do not terminate: %w", remaining, ctx.Err())
		case <-tick.C:
		}
	}
}
