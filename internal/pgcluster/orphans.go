package pgcluster

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/tick"
)

const (
	orphansTimeout    = 15 * time.Second      // for a killed server's sessions to end
	terminateInterval = 20 * time.Millisecond // between checks for terminated sessions
)

// TerminateSessions terminates all project logins' sessions on conn's PostgreSQL and waits until
// they are gone. Use it when a PostgreSQL's only Socle server starts: a killed server left the
// sessions running.
func TerminateSessions(ctx context.Context, conn *pgx.Conn) error {
	return endSessions(ctx, conn, projectLogin)
}

// TerminateOrphans terminates the sessions that a killed server left running. choose returns the
// projects that belong to this install, since other installs may share the PostgreSQL. Call it
// while no other server of the install is running, before the first session begins.
func (c *Cluster) TerminateOrphans(
	ctx context.Context, choose func(context.Context, []uuid.UUID) ([]uuid.UUID, error),
) error {
	return c.WithConn(ctx, func(conn *pgx.Conn) error {
		logins, err := pg.Values[string](ctx, conn,
			withSessions+` select distinct usename::text from sessions where usename ~ @pattern`,
			pgx.StrictNamedArgs{"pattern": projectLogin})
		if err != nil {
			return err
		}

		var projects []uuid.UUID
		for _, login := range logins {
			id, ok := c.ProjectOf(login)
			if ok && !slices.Contains(projects, id) {
				projects = append(projects, id)
			}
		}

		if len(projects) == 0 {
			return nil
		}

		if projects, err = choose(ctx, projects); err != nil {
			return err
		}

		for _, id := range projects {
			if err := endSessions(ctx, conn, "^"+c.Database(id)+"_"); err != nil {
				return err
			}
		}

		return nil
	})
}

// endSessions terminates the sessions whose login matches a pattern and waits until they are gone.
func endSessions(ctx context.Context, conn *pgx.Conn, pattern string) error {
	ctx, cancel := context.WithTimeout(ctx, orphansTimeout)
	defer cancel()

	remaining := 0
	for range tick.Poll(ctx, terminateInterval) {
		var err error
		remaining, err = pg.Value[int](ctx, conn,
			withSessions+` select count(pg_terminate_backend(pid))::int from sessions where usename ~ @pattern`,
			pgx.StrictNamedArgs{"pattern": pattern})
		if err != nil || remaining == 0 {
			return err
		}
	}

	return fmt.Errorf("%d sessions of projects do not terminate: %w", remaining, ctx.Err())
}
