package lifecycle

import (
	"context"
	"errors"
	"io"
	"slices"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/pg"
)

// Swap replaces the project's database by the copy and keeps the old one under another name. The
// old database's audit log is carried over, so that a restore forgets nothing.
//
// Both databases have no connections while f runs. f receives the statements and must execute them
// in the platform database transaction that records the swap. If f fails, nothing has changed.
// Requests on all servers wait meanwhile, see [projectdb.Registry.Subscribe].
func (c *Copy) Swap(ctx context.Context, f func(renames []string) error) error {
	return c.swap(ctx, c.name(), []string{
		"alter database " + pg.Quote(c.cluster.Database(c.Project)) + " rename to " + pg.Quote(c.replacedName()),
		"alter database " + pg.Quote(c.name()) + " rename to " + pg.Quote(c.cluster.Database(c.Project)),
	}, f)
}

// SwapBack puts the replaced database back in the copy's place, and keeps the copy's under its
// former name. Call [Copy.MigrateReplaced] before. Otherwise it works like [Copy.Swap].
func (c *Copy) SwapBack(ctx context.Context, f func(renames []string) error) error {
	return c.swap(ctx, c.replacedName(), []string{
		"alter database " + pg.Quote(c.cluster.Database(c.Project)) + " rename to " + pg.Quote(c.name()),
		"alter database " + pg.Quote(c.replacedName()) + " rename to " + pg.Quote(c.cluster.Database(c.Project)),
		"alter database " + pg.Quote(c.name()) + " rename to " + pg.Quote(c.replacedName()),
		"alter database " + pg.Quote(c.cluster.Database(c.Project)) + " connection limit -1",
	}, f)
}

// MigrateReplaced migrates the database that the copy replaced to the newest version. conn is from
// [Copy.ConnectReplaced].
func (c *Copy) MigrateReplaced(ctx context.Context, conn *pgx.Conn) error {
	return c.databases.migrate(ctx, conn, c.Project)
}

func (c *Copy) swap(ctx context.Context, incoming string, renames []string, f func(renames []string) error) error {
	release, err := c.databases.Registry.HoldRequests(ctx, c.Project)
	if err != nil {
		return err
	}
	defer release()

	if err := c.swapClosed(ctx, incoming, renames, f); err != nil {
		undoCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoTimeout)
		defer cancel()

		return errors.Join(err, c.Reopen(undoCtx))
	}

	c.databases.Registry.ResetPools(c.Project)
	return nil
}

// swapClosed closes both databases and calls f.
func (c *Copy) swapClosed(
	ctx context.Context, incoming string, renames []string, f func(renames []string) error,
) error {
	if err := c.cluster.WithConn(ctx, func(conn *pgx.Conn) error {
		if err := c.databases.closeDatabase(ctx, conn, c.Project); err != nil {
			return err
		}
		if err := c.copyAuditLog(ctx, incoming); err != nil {
			return err
		}

		return terminateSessions(ctx, conn, incoming)
	}); err != nil {
		return err
	}

	return f(renames)
}

// copyAuditLog replaces the incoming database's audit log by the project database's.
func (c *Copy) copyAuditLog(ctx context.Context, incoming string) error {
	from, err := c.cluster.ConnectTrusted(ctx, c.cluster.Database(c.Project))
	if err != nil {
		return err
	}
	defer from.Close(context.WithoutCancel(ctx))

	to, err := c.cluster.ConnectTrusted(ctx, incoming)
	if err != nil {
		return err
	}
	defer to.Close(context.WithoutCancel(ctx))

	return pgx.BeginFunc(ctx, to, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "truncate socle.audit, socle.audit_head, socle.audit_pending"); err != nil {
			return err
		}

		for _, table := range []string{
			"socle.audit (seq, entry, hash)", "socle.audit_head (log, seq, hash)",
			"socle.audit_pending (entry, mac, key)",
		} {
			out, in := io.Pipe()
			go func() {
				_, err := from.PgConn().CopyTo(ctx, in, "copy "+table+" to stdout")
				in.CloseWithError(err)
			}()

			_, err := tx.Conn().PgConn().CopyFrom(ctx, out, "copy "+table+" from stdin")
			out.CloseWithError(err) // stops a CopyTo that still runs
			if err != nil {
				return err
			}
		}

		return nil
	})
}

// ClosedProjects returns the given projects whose database accepts no connections.
func (d Databases) ClosedProjects(ctx context.Context, projects []uuid.UUID) (unavailable []uuid.UUID, err error) {
	names := make([]string, len(projects))
	for i, id := range projects {
		names[i] = d.Registry.Database(id)
	}

	err = d.Registry.Platform().WithConn(ctx, func(conn *pgx.Conn) error {
		closedNames, err := pg.Values[string](ctx, conn,
			`select datname::text from pg_database where datname = any(@names) and datconnlimit = 0`,
			pgx.StrictNamedArgs{"names": names})
		for _, name := range closedNames {
			unavailable = append(unavailable, projects[slices.Index(names, name)])
		}

		return err
	})

	return unavailable, err
}
