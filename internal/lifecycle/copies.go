package projectdb

import (
	"context"
	"encoding/hex"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/token"
)

// FileKey returns the key of a project's file in blob storage.
func FileKey(project, blob uuid.UUID) string {
	id := blob.String()
	return "projects/" + project.String() + "/files/" + id[:2] + "/" + id
}

// BackupKey returns the encryption key of backups: 32 bytes derived from the secret of the install.
func (r *Registry) BackupKey() []byte { return token.Derive(r.secret, "backups") }

// ConnectDump connects to a project's database under the dump login. It waits while the database is
// being swapped. The caller closes the connection.
func (r *Registry) ConnectDump(ctx context.Context, project uuid.UUID) (*pgx.Conn, error) {
	if err := r.Open(project).gate.wait(ctx); err != nil {
		return nil, err
	}
	return r.connect(ctx, r.config(project, dump))
}

// connect connects to a project's database under one of its logins, outside the pools. The caller
// closes the connection.
func (r *Registry) connect(ctx context.Context, c *pgx.ConnConfig) (*pgx.Conn, error) {
	r.supervisor.Supervise(c)
	conn, err := pgx.ConnectConfig(ctx, c)

	return conn, pg.Fault(err)
}

// address returns the connection URI of c for a PostgreSQL client program, and the password
// separately.
func (r *Registry) address(c *pgx.ConnConfig) (address, password string) {
	return pg.ProgramAddress(c, r.given, "-c lock_timeout=30s"), c.Password
}

// Copy is a database filled beside the project's own. It is closed to users of the project until it
// is swapped in.
type Copy struct {
	Project  uuid.UUID
	registry *Registry
	id       uuid.UUID
	kind     string
}

// Copy returns a handle on the copy of a project with an id, whether it exists or not.
func (r *Registry) Copy(project, id uuid.UUID) *Copy {
	return &Copy{project, r, id, "_new_"}
}

// DropOrphan drops an orphaned copy by the name of its database.
func (r *Registry) DropOrphan(ctx context.Context, database string) error {
	return r.drop(ctx, database)
}

// name and replaced derive the names from the id, so that a later sweep finds leftovers.
func (c *Copy) name() string {
	return c.registry.Database(c.Project) + c.kind + hex.EncodeToString(c.id[8:])
}
func (c *Copy) replaced() string {
	return c.registry.Database(c.Project) + "_old_" + hex.EncodeToString(c.id[8:])
}

// Proof returns a handle on the copy that proves a backup. id is the backup's; asked distinguishes
// a proof on demand from a periodic one of the same backup. It is never swapped in.
func (r *Registry) Proof(project, id uuid.UUID, asked bool) *Copy {
	return &Copy{project, r, id, map[bool]string{false: "_proof_", true: "_asked_"}[asked]}
}

// scratchKind is the part of a database's name that marks a scratch copy.
const scratchKind = "_scratch_"

// Scratch returns a handle on the copy in which migrations of a project are tried. A project has
// one at a time. It is never swapped in.
func (r *Registry) Scratch(project uuid.UUID) *Copy { return &Copy{project, r, uuid.Nil, scratchKind} }

// ScratchDatabases matches the names of all scratch copies of a server.
const ScratchDatabases = `^socle_[0-9a-f]{32}` + scratchKind

func (c *Copy) config(l login, database string) *pgx.ConnConfig {
	config := c.registry.config(c.Project, l)
	config.Database = database

	return config
}

func (c *Copy) connect(ctx context.Context, l login, database string) (*pgx.Conn, error) {
	if l != trusted {
		return c.registry.connect(ctx, c.config(l, database))
	}

	conn, err := pgx.ConnectConfig(ctx, c.config(l, database))
	return conn, pg.Fault(err)
}

// ConnectTrusted connects to the copy under the platform's login. The caller closes the connection.
func (c *Copy) ConnectTrusted(ctx context.Context) (*pgx.Conn, error) {
	return c.connect(ctx, trusted, c.name())
}

// ConnectOwner connects to the copy as the project's owner. The caller closes the connection.
func (c *Copy) ConnectOwner(ctx context.Context) (*pgx.Conn, error) {
	return c.connect(ctx, owner, c.name())
}

// ConnectDump connects to the copy under the dump login. The caller closes the connection.
func (c *Copy) ConnectDump(ctx context.Context) (*pgx.Conn, error) {
	return c.connect(ctx, dump, c.name())
}

// DumpURL returns the connection URI of the copy for pg_dump, and the password separately.
func (c *Copy) DumpURL() (address, password string) {
	return c.registry.address(c.config(dump, c.name()))
}

// closeTablesTrigger is the event trigger of the platform that must not touch tables while they are
// restored.
const closeTablesTrigger = "socle_close_new_tables"

// Create creates the copy like a new project database, with the platform's schemas at migration
// version. It leaves out the owner's default privileges and disables the trigger that closes new
// tables: the restore brings both. The owner may connect only after the extensions are created.
//
// It fails with Unprocessable if the migration is newer than this release.
func (c *Copy) Create(ctx context.Context, version int64, extensions []Extension) error {
	return c.registry.admin(ctx, func(conn *pgx.Conn) error {
		if err := c.registry.setLoginAttributes(ctx, conn, c.Project); err != nil {
			return err
		}
		if err := c.create(ctx, conn, version); err != nil {
			return err
		}

		inside, err := c.ConnectTrusted(ctx)
		if err != nil {
			return err
		}
		defer inside.Close(context.WithoutCancel(ctx))

		if err := execAll(ctx, inside, []string{"alter event trigger " + closeTablesTrigger + " disable"}); err != nil {
			return err
		}
		if err := c.createExtensions(ctx, inside, extensions); err != nil {
			return err
		}
		if err := c.registry.handOver(ctx, inside, c.Project); err != nil {
			return err
		}

		return execUntriggered(ctx, inside, []string{
			"alter schema public owner to " + pg.Quote(c.registry.login(c.Project, owner)),
			"revoke all on schema public from public, anon, authenticated, service_role",
			"grant usage on schema public to public", // as initdb does; the dump is relative to that
			"grant create, temporary, connect on database " + pg.Quote(c.name()) + " to " +
				pg.Quote(c.registry.login(c.Project, owner)),
			"grant connect on database " + pg.Quote(c.name()) + " to " + pg.Quote(c.registry.login(c.Project, dump)),
		})
	})
}

// CreateEmpty creates the copy like the database of a new project with extensions, with the same
// limits. It replaces a copy that a killed server left behind.
func (c *Copy) CreateEmpty(ctx context.Context, extensions []Extension) error {
	return c.registry.admin(ctx, func(conn *pgx.Conn) error {
		if err := dropDatabase(ctx, conn, c.name()); err != nil {
			return err
		}
		if err := c.create(ctx, conn, Version()); err != nil {
			return err
		}
		if err := execBatch(ctx, conn, []string{
			"grant create, temporary on database " + pg.Quote(c.name()) + " to " +
				pg.Quote(c.registry.login(c.Project, owner)),
		}); err != nil {
			return err
		}

		inside, err := c.ConnectTrusted(ctx)
		if err != nil {
			return err
		}
		defer inside.Close(context.WithoutCancel(ctx))

		if err := c.createExtensions(ctx, inside, extensions); err != nil {
			return err
		}
		if err := c.revokeSchemaCreate(ctx, inside); err != nil {
			return err
		}
		if err := c.registry.handOver(ctx, inside, c.Project); err != nil {
			return err
		}
		if err := execUntriggered(ctx, inside, c.registry.ownershipStatements(c.Project)); err != nil {
			return err
		}

		return execBatch(ctx, conn, c.registry.grantConnectStatements(c.Project, c.name()))
	})
}

// Size returns the size of the copy in bytes.
func (c *Copy) Size(ctx context.Context, q pg.Querier) (int64, error) {
	return pg.Value[int64](ctx, q,
		`select coalesce(max(pg_database_size(oid)), 0)::bigint from pg_database where datname = @name`,
		pgx.StrictNamedArgs{"name": c.name()})
}

// create creates the copy's database at a migration. Nearly always that is the newest, and the
// database is a clone of the template.
func (c *Copy) create(ctx context.Context, conn *pgx.Conn, version int64) error {
	name := pg.Quote(c.name())
	opened := []string{
		"revoke all on database " + name + " from public", "alter database " + name + " allow_connections true",
	}

	if version == Version() {
		if err := clone(ctx, conn, c.name()); err != nil {
			return err
		}
		return execAll(ctx, conn, opened)
	}

	if err := execAll(ctx, conn,
		append([]string{"create database " + name + " template template0 encoding 'UTF8' allow_connections false"},
			opened...)); err != nil {
		return err
	}

	return pg.MigrateTo(ctx, c.config(trusted, c.name()), Schema, migrations, version)
}

// Finish migrates the copy to the newest version and admits all logins of the project. conn is of
// the platform's login in the copy.
func (c *Copy) Finish(ctx context.Context, conn *pgx.Conn) error {
	if err := c.migrateRestored(ctx, conn); err != nil {
		return err
	}

	return pg.Fault(execBatch(ctx, conn, c.registry.grantConnectStatements(c.Project, c.name())))
}

// migrateRestored enables the event trigger, takes back [schema.ExtensionsSchema] and migrates the
// copy.
func (c *Copy) migrateRestored(ctx context.Context, conn *pgx.Conn) error {
	if err := execAll(ctx, conn, []string{"alter event trigger " + closeTablesTrigger + " enable"}); err != nil {
		return err
	}
	if err := c.revokeSchemaCreate(ctx, conn); err != nil {
		return err
	}

	return c.registry.migrate(ctx, conn, c.Project)
}

// Drop drops the copy if it exists.
func (c *Copy) Drop(ctx context.Context) error { return c.registry.drop(ctx, c.name()) }

// DropReplaced drops the database that the copy replaced, if it exists.
func (c *Copy) DropReplaced(ctx context.Context) error { return c.registry.drop(ctx, c.replaced()) }

// ConnectReplaced connects under the platform's login to the database that the copy replaced. The
// caller closes the connection.
func (c *Copy) ConnectReplaced(ctx context.Context) (*pgx.Conn, error) {
	return c.connect(ctx, trusted, c.replaced())
}

// Reopen opens the project's database after an incomplete swap.
func (c *Copy) Reopen(ctx context.Context) error {
	return c.registry.admin(ctx, func(conn *pgx.Conn) error {
		return c.registry.removeConnectionLimit(ctx, conn, c.Project)
	})
}

// terminateSessions terminates the sessions in a database that is not in use, and waits until they
// are gone.
func terminateSessions(ctx context.Context, conn *pgx.Conn, name string) error {
	tick := time.NewTicker(terminateInterval)
	defer tick.Stop()

	for {
		remaining, err := pg.Value[int64](ctx, conn,
			`select count(pg_terminate_backend(pid)) from pg_stat_activity where datname = @name`,
			pgx.StrictNamedArgs{"name": name})
		if err != nil || remaining == 0 {
			return err
		}

		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

// admin runs f on a connection of its own to the platform database.
func (r *Registry) admin(ctx context.Context, f func(*pgx.Conn) error) error {
	conn, err := pgx.ConnectConfig(ctx, r.base.ConnConfig)
	if err != nil {
		return pg.Fault(err)
	}
	defer conn.Close(context.WithoutCancel(ctx))

	return pg.Fault(f(conn))
}

func (r *Registry) drop(ctx context.Context, name string) error {
	return r.admin(ctx, func(conn *pgx.Conn) error { return dropDatabase(ctx, conn, name) })
}

// dropDatabase drops a database, if it exists, and terminates its sessions.
func dropDatabase(ctx context.Context, conn *pgx.Conn, name string) error {
	if _, err := conn.Exec(ctx, "drop database if exists "+pg.Quote(name)+" with (force)"); err != nil {
		return fmt.Errorf("drop database %s: %w", name, err)
	}
	return nil
}

// dropCopies drops all copies of a project, and the databases that copies replaced.
func (r *Registry) dropCopies(ctx context.Context, conn *pgx.Conn, project uuid.UUID) error {
	names, err := pg.Values[string](ctx, conn,
		`select datname from pg_database where starts_with(datname, @name::text || '_')`,
		pgx.StrictNamedArgs{"name": r.Database(project)})
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
