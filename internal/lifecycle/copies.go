package lifecycle

import (
	"context"
	"encoding/hex"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/pgcluster"
	"github.com/socle-dev/socle/internal/projectdb"
	"github.com/socle-dev/socle/internal/tick"
)

// Copy is a database filled beside the project's own. It is closed to the project's users until it
// is swapped in.
type Copy struct {
	Project   uuid.UUID
	databases Databases
	cluster   *pgcluster.Cluster // with the project's database, and the copy
	id        uuid.UUID
	kind      string
}

func (d Databases) newCopy(project, id uuid.UUID, kind string) *Copy {
	return &Copy{project, d, d.Registry.Cluster(project), id, kind}
}

// Copy returns a handle on a project's copy with an id, whether it exists or not.
func (d Databases) Copy(project, id uuid.UUID) *Copy { return d.newCopy(project, id, "_new_") }

// DropOrphan drops a project's orphaned copy by database name.
func (d Databases) DropOrphan(ctx context.Context, project uuid.UUID, database string) error {
	return drop(ctx, d.Registry.Cluster(project), database)
}

// name and replacedName derive the names from the id, so that a later sweep finds leftovers.
func (c *Copy) name() string {
	return c.cluster.Database(c.Project) + c.kind + hex.EncodeToString(c.id[8:])
}
func (c *Copy) replacedName() string {
	return c.cluster.Database(c.Project) + "_old_" + hex.EncodeToString(c.id[8:])
}

// Proof returns a handle on the copy that proves a backup. id is the backup's; onDemand
// distinguishes a proof on demand from a periodic proof. It is never swapped in.
func (d Databases) Proof(project, id uuid.UUID, onDemand bool) *Copy {
	return d.newCopy(project, id, map[bool]string{false: "_proof_", true: "_asked_"}[onDemand])
}

// Scratch returns a handle on the copy in which a project's migrations are tried. A project has one
// at a time. It is never swapped in.
func (d Databases) Scratch(project uuid.UUID) *Copy {
	return d.newCopy(project, uuid.Nil, pgcluster.ScratchKind)
}

// ScratchDatabases matches the names of all scratch copies on a server.
const ScratchDatabases = `^socle_[0-9a-f]{32}` + pgcluster.ScratchKind

// ownerLogin returns the name of the project's owner login.
func (c *Copy) ownerLogin() string { return c.cluster.OwnerLogin(c.Project) }

// config returns the configuration for connections to the copy under a project login.
func (c *Copy) config(l pgcluster.Login) *pgx.ConnConfig {
	config := c.cluster.Config(c.Project, l)
	config.Database = c.name()

	return config
}

// ConnectTrusted connects to the copy under the platform's login. The caller closes the connection.
func (c *Copy) ConnectTrusted(ctx context.Context) (*pgx.Conn, error) {
	return c.cluster.ConnectTrusted(ctx, c.name())
}

// ConnectOwner connects to the copy as the project's owner. The caller closes the connection.
func (c *Copy) ConnectOwner(ctx context.Context) (*pgx.Conn, error) {
	return c.cluster.Connect(ctx, c.config(pgcluster.Owner))
}

// ConnectDump connects to the copy under the dump login. The caller closes the connection.
func (c *Copy) ConnectDump(ctx context.Context) (*pgx.Conn, error) {
	return c.cluster.Connect(ctx, c.config(pgcluster.Dump))
}

// DumpURL returns the copy's connection URI for pg_dump, and the password separately.
func (c *Copy) DumpURL() (address, password string) {
	return c.cluster.ProgramAddress(c.config(pgcluster.Dump))
}

// closeTablesTrigger is the platform's event trigger that must not touch tables while they are
// restored.
const closeTablesTrigger = "socle_close_new_tables"

// Create creates the copy like a new project database, with the platform's schemas at migration
// version. It leaves out the owner's default privileges, the publication and the extensions for new
// projects, and disables the trigger that closes new tables: the restore brings all of them. The
// owner may connect only after the extensions are created.
//
// It fails with Unprocessable if the migration is newer than this release.
func (c *Copy) Create(ctx context.Context, version int64, extensions []projectdb.Extension) error {
	return c.cluster.WithConn(ctx, func(conn *pgx.Conn) error {
		if err := c.cluster.SetLoginAttributes(ctx, conn, c.Project); err != nil {
			return err
		}
		if err := c.create(ctx, conn, version); err != nil {
			return err
		}

		trusted, err := c.ConnectTrusted(ctx)
		if err != nil {
			return err
		}
		defer trusted.Close(context.WithoutCancel(ctx))

		if err := pgcluster.ExecUntriggered(ctx, trusted, []string{
			"alter event trigger " + closeTablesTrigger + " disable",
			"drop publication if exists " + projectdb.Publication,
		}); err != nil {
			return err
		}
		if err := dropExtensions(ctx, trusted); err != nil {
			return err
		}
		if err := c.createExtensions(ctx, trusted, extensions); err != nil {
			return err
		}
		if err := c.databases.handOver(ctx, trusted, c.Project); err != nil {
			return err
		}

		return pgcluster.ExecUntriggered(ctx, trusted, []string{
			"alter schema public owner to " + pg.Quote(c.ownerLogin()),
			"revoke all on schema public from public, anon, authenticated, service_role",
			"grant usage on schema public to public", // as initdb does; the dump is relative to that
			"grant create, temporary, connect on database " + pg.Quote(c.name()) + " to " +
				pg.Quote(c.ownerLogin()),
			"grant connect on database " + pg.Quote(c.name()) + " to " + pg.Quote(c.cluster.DumpLogin(c.Project)),
		})
	})
}

// CreateEmpty creates the copy like a new project's database with extensions, with the same limits.
// It replaces a copy that a killed server left behind.
func (c *Copy) CreateEmpty(ctx context.Context, extensions []projectdb.Extension) error {
	return c.cluster.WithConn(ctx, func(conn *pgx.Conn) error {
		if err := dropDatabase(ctx, conn, c.name()); err != nil {
			return err
		}
		if err := c.create(ctx, conn, projectdb.Version()); err != nil {
			return err
		}
		if err := pgcluster.ExecBatch(ctx, conn, []string{
			"grant create, temporary on database " + pg.Quote(c.name()) + " to " +
				pg.Quote(c.ownerLogin()),
		}); err != nil {
			return err
		}

		trusted, err := c.ConnectTrusted(ctx)
		if err != nil {
			return err
		}
		defer trusted.Close(context.WithoutCancel(ctx))

		if err := c.createExtensions(ctx, trusted, extensions); err != nil {
			return err
		}
		if err := c.revokeSchemaCreate(ctx, trusted); err != nil {
			return err
		}
		if err := c.databases.handOver(ctx, trusted, c.Project); err != nil {
			return err
		}
		if err := pgcluster.ExecUntriggered(ctx, trusted, c.databases.ownershipStatements(c.Project)); err != nil {
			return err
		}

		return pgcluster.ExecBatch(ctx, conn, c.cluster.GrantConnect(c.Project, c.name()))
	})
}

// Size returns the copy's size in bytes.
func (c *Copy) Size(ctx context.Context, q pg.Querier) (int64, error) {
	return pg.Value[int64](ctx, q,
		`select coalesce(max(pg_database_size(oid)), 0)::bigint from pg_database where datname = @name`,
		pgx.StrictNamedArgs{"name": c.name()})
}

// create creates the copy's database at a migration. Nearly always that is the newest, and the
// database is a clone of the template.
func (c *Copy) create(ctx context.Context, conn *pgx.Conn, version int64) error {
	name := pg.Quote(c.name())
	statements := []string{
		"revoke all on database " + name + " from public", "alter database " + name + " allow_connections true",
	}

	if version == projectdb.Version() {
		if err := clone(ctx, conn, c.name()); err != nil {
			return err
		}
		return pgcluster.ExecAll(ctx, conn, statements)
	}

	if err := pgcluster.ExecAll(ctx, conn,
		append([]string{"create database " + name + " template template0 encoding 'UTF8' allow_connections false"},
			statements...)); err != nil {
		return err
	}

	return pg.MigrateTo(ctx, c.cluster.TrustedConfig(c.name()), projectdb.Schema, projectdb.Migrations(), version)
}

// Finish migrates the copy to the newest version and admits all project logins. conn is on the
// platform's login in the copy.
func (c *Copy) Finish(ctx context.Context, conn *pgx.Conn) error {
	if err := c.migrateRestored(ctx, conn); err != nil {
		return err
	}

	return pg.Fault(pgcluster.ExecBatch(ctx, conn, c.cluster.GrantConnect(c.Project, c.name())))
}

// migrateRestored enables the event trigger, takes back [schema.ExtensionsSchema] and migrates the
// copy.
func (c *Copy) migrateRestored(ctx context.Context, conn *pgx.Conn) error {
	if err := pgcluster.Exec(ctx, conn, "alter event trigger "+closeTablesTrigger+" enable"); err != nil {
		return err
	}
	if err := c.revokeSchemaCreate(ctx, conn); err != nil {
		return err
	}

	return c.databases.migrate(ctx, conn, c.Project)
}

// Drop drops the copy if it exists.
func (c *Copy) Drop(ctx context.Context) error { return drop(ctx, c.cluster, c.name()) }

// DropReplaced drops the database that the copy replaced, if it exists.
func (c *Copy) DropReplaced(ctx context.Context) error { return drop(ctx, c.cluster, c.replacedName()) }

// ConnectReplaced connects under the platform's login to the database that the copy replaced. The
// caller closes the connection.
func (c *Copy) ConnectReplaced(ctx context.Context) (*pgx.Conn, error) {
	return c.cluster.ConnectTrusted(ctx, c.replacedName())
}

// Reopen opens the project's database after an incomplete swap.
func (c *Copy) Reopen(ctx context.Context) error {
	return c.cluster.WithConn(ctx, func(conn *pgx.Conn) error {
		return c.databases.removeConnectionLimit(ctx, conn, c.Project)
	})
}

// terminateSessions terminates the sessions in a database that is not in use, and waits until they
// are gone.
func terminateSessions(ctx context.Context, conn *pgx.Conn, name string) error {
	for range tick.Poll(ctx, terminateInterval) {
		remaining, err := pg.Value[int64](ctx, conn,
			`select count(pg_terminate_backend(pid)) from pg_stat_activity where datname = @name`,
			pgx.StrictNamedArgs{"name": name})
		if err != nil || remaining == 0 {
			return err
		}
	}

	return ctx.Err()
}

// drop drops a database on a cluster, see [dropDatabase].
func drop(ctx context.Context, c *pgcluster.Cluster, name string) error {
	return c.WithConn(ctx, func(conn *pgx.Conn) error { return dropDatabase(ctx, conn, name) })
}

// dropDatabase drops a database, if it exists, and terminates the sessions.
func dropDatabase(ctx context.Context, conn *pgx.Conn, name string) error {
	if _, err := conn.Exec(ctx, "drop database if exists "+pg.Quote(name)+" with (force)"); err != nil {
		return fmt.Errorf("drop database %s: %w", name, err)
	}
	return nil
}

// dropCopies drops all of a project's copies, and the databases that copies replaced.
func (d Databases) dropCopies(ctx context.Context, conn *pgx.Conn, project uuid.UUID) error {
	names, err := pg.Values[string](ctx, conn,
		`select datname from pg_database where starts_with(datname, @name::text || '_')`,
		pgx.StrictNamedArgs{"name": d.Registry.Database(project)})
	if err != nil {
		return err
	}

	for _, name := range names {
		if err := dropDatabase(ctx, conn, name); err != nil {
			return err
		}
	}

	return nil
}
