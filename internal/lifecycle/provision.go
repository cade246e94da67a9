package lifecycle

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/pgcluster"
	"github.com/socle-dev/socle/internal/projectdb"
	"github.com/socle-dev/socle/internal/tick"
)

// prepareLock is the advisory lock key for [Prepare], an arbitrary constant for this package.
const prepareLock = 0x50c1e_7e4a47

// Databases creates, opens, closes and drops project databases, with their logins, and the copies
// of these databases. It changes no row in the platform database.
type Databases struct{ Registry *projectdb.Registry }

// template returns the name of the database that projects are cloned from. It contains a digest of
// the migrations, so that releases side by side have one each.
func template() string {
	sum := sha256.New()

	files, err := fs.Glob(projectdb.Migrations(), "*.sql")
	if err != nil {
		panic(err)
	}

	for _, name := range files {
		text, err := fs.ReadFile(projectdb.Migrations(), name)
		if err != nil {
			panic(err)
		}

		fmt.Fprintf(sum, "%s %d\n%s", name, len(text), text)
	}

	return "socle_template_" + hex.EncodeToString(sum.Sum(nil)[:6])
}

// completeTemplate selects a complete template.
const completeTemplate = `select from pg_database where datname = @name and datistemplate and not datallowconn`

// Prepared reports whether q's server has everything that [Prepare] creates.
func Prepared(ctx context.Context, q pg.Querier) (bool, error) {
	return pg.Value[bool](ctx, q, `
		select (select count(*) from pg_roles where rolname in ('anon', 'authenticated', 'service_role', '`+pgcluster.ReaderRole+`')) = 4
			and exists (`+completeTemplate+`)`, pgx.StrictNamedArgs{"name": template()})
}

// Prepare creates the objects that all projects on a cluster share, if missing: the three roles for
// the rows API, the readers' role, and the template. Concurrent calls by several servers are safe.
func Prepare(ctx context.Context, c *pgcluster.Cluster) error {
	return withPrepareLock(ctx, c, func(conn *pgx.Conn) error {
		for _, role := range []string{
			"anon nologin noinherit", "authenticated nologin noinherit", "service_role nologin noinherit bypassrls",
			pgcluster.ReaderRole + " nologin noinherit",
		} {
			if err := pgcluster.ExecIgnoring(ctx, conn, "create role "+role, "42710"); err != nil {
				return fmt.Errorf("create role %s: %w", role, err)
			}
		}

		if err := createTemplate(ctx, c, conn); err != nil {
			return fmt.Errorf("create template: %w", err)
		}

		return nil
	})
}

// withPrepareLock runs f under the lock for preparing the server. An advisory lock belongs to a
// database, and several installs may share the server. So the lock is taken in database postgres,
// or in the platform database if postgres was dropped.
func withPrepareLock(ctx context.Context, c *pgcluster.Cluster, f func(*pgx.Conn) error) error {
	err := pg.WithLock(ctx, c.TrustedConfig("postgres"), prepareLock, f)
	if pg.State(err) == "3D000" { // invalid_catalog_name
		return pg.WithLock(ctx, c.PlatformConfig(), prepareLock, f)
	}

	return err
}

// createTemplate creates the template if it does not exist. Setting allow_connections to false is
// the last step, so a template that allows no connections is complete. Any other database with that
// name is left from an interrupted call.
func createTemplate(ctx context.Context, c *pgcluster.Cluster, conn *pgx.Conn) error {
	name := template()
	complete, err := pg.Value[bool](ctx, conn, `select exists (`+completeTemplate+`)`,
		pgx.StrictNamedArgs{"name": name})
	if err != nil || complete {
		return err
	}

	if err := dropDatabase(ctx, conn, name); err != nil {
		return err
	}

	// CREATE DATABASE grants CONNECT to PUBLIC, so the database takes no connections until that is
	// revoked.
	if err := pgcluster.ExecAll(ctx, conn, []string{
		"create database " + pg.Quote(name) + " template template0 encoding 'UTF8' allow_connections false",
		"revoke all on database " + pg.Quote(name) + " from public",
		"alter database " + pg.Quote(name) + " allow_connections true",
	}); err != nil {
		return err
	}

	if err := pg.MigrateTo(ctx, c.TrustedConfig(name), projectdb.Schema, projectdb.Migrations(),
		projectdb.Version()); err != nil {
		return err
	}

	_, err = conn.Exec(ctx, "alter database "+pg.Quote(name)+" is_template true allow_connections false")
	return err
}

// Provision creates a project's roles and database, or continues an interrupted creation: every
// step is idempotent. It returns the migration that the database has reached.
func (d Databases) Provision(ctx context.Context, project uuid.UUID) (int64, error) {
	return projectdb.Version(), d.Registry.Cluster(project).WithConn(ctx, func(conn *pgx.Conn) error {
		return d.runSteps(ctx, conn, project, d.provisionSteps())
	})
}

// runSteps runs a project's creation steps on a connection to the platform database.
func (d Databases) runSteps(ctx context.Context, conn *pgx.Conn, project uuid.UUID, steps []provisionStep) error {
	for _, step := range steps {
		if err := step(ctx, conn, project); err != nil {
			return fmt.Errorf("provision project %s: %w", project, pg.Fault(err))
		}
	}

	return nil
}

// provisionStep is a step in a project's creation. It takes a connection to the platform database.
type provisionStep func(context.Context, *pgx.Conn, uuid.UUID) error

func (d Databases) provisionSteps() []provisionStep {
	return []provisionStep{d.createLogins, d.createDatabase, d.grantDatabase, d.initDatabase}
}

// creationSteps are the steps for a new project, which its first request follows at once. They
// leave an open connection in the pool.
func (d Databases) creationSteps() []provisionStep {
	return []provisionStep{d.createLogins, d.createDatabase, d.grantDatabase, d.initPooled}
}

func (d Databases) createLogins(ctx context.Context, conn *pgx.Conn, project uuid.UUID) error {
	return d.Registry.Cluster(project).CreateLogins(ctx, conn, project)
}

// createDatabase clones the template into the project's database if that does not exist.
func (d Databases) createDatabase(ctx context.Context, conn *pgx.Conn, project uuid.UUID) error {
	if err := clone(ctx, conn, d.Registry.Database(project)); pg.State(err) != "42P04" { // duplicate_database
		return err
	}
	return nil
}

// clone creates a database from the template, closed to connections. It retries while the template
// is in use: another server may be cloning it, or PostgreSQL has not noticed yet that a client is
// gone.
func clone(ctx context.Context, conn *pgx.Conn, name string) error {
	strategy, err := copyStrategy(ctx, conn)
	if err != nil {
		return err
	}

	for {
		err := pgcluster.Exec(ctx, conn, "create database "+pg.Quote(name)+" template "+pg.Quote(template())+
			" allow_connections false strategy "+strategy)
		if pg.State(err) != "55006" { // object_in_use
			return err
		}

		if tick.Pause(ctx, 100*time.Millisecond) != nil {
			return err
		}
	}
}

// copyStrategy returns how the server should copy databases. Copying files takes half the processor
// time of writing each page to the log, and two checkpoints, which are cheap only without fsync.
func copyStrategy(ctx context.Context, conn *pgx.Conn) (string, error) {
	return pg.Value[string](ctx, conn,
		`select case current_setting('fsync') when 'off' then 'file_copy' else 'wal_log' end`)
}

// grantDatabase opens the database to the project's own logins only.
func (d Databases) grantDatabase(ctx context.Context, conn *pgx.Conn, project uuid.UUID) error {
	cluster, database := d.Registry.Cluster(project), d.Registry.Database(project)
	name := pg.Quote(database)

	return pgcluster.ExecBatch(ctx, conn, slices.Concat(
		[]string{"revoke all on database " + name + " from public",
			"grant create, temporary on database " + name + " to " + pg.Quote(cluster.OwnerLogin(project))},
		cluster.GrantConnect(project, database),
		[]string{"alter database " + name + " allow_connections true"}))
}

func (d Databases) initDatabase(ctx context.Context, _ *pgx.Conn, project uuid.UUID) error {
	conn, err := d.Registry.Cluster(project).ConnectTrusted(ctx, d.Registry.Database(project))
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))

	return d.initContent(ctx, conn, project)
}

func (d Databases) initPooled(ctx context.Context, _ *pgx.Conn, project uuid.UUID) error {
	conn, err := pg.Acquire(ctx, d.Registry.Open(project).Trusted())
	if err != nil {
		return err
	}
	defer conn.Release()

	return d.initContent(ctx, conn.Conn(), project)
}

// initContent migrates the project's database on conn, and, once, transfers schema public and
// default privileges to the owner. It leaves a schema public that no longer has its first owner:
// the transfer is done, and the owner may have changed privileges since.
func (d Databases) initContent(ctx context.Context, conn *pgx.Conn, project uuid.UUID) error {
	if err := d.migrate(ctx, conn, project); err != nil {
		return err
	}

	fresh, err := pg.Value[bool](ctx, conn, `
		select exists (select from pg_namespace where nspname = 'public' and nspowner = 'pg_database_owner'::regrole)`)
	if err != nil || !fresh {
		return err
	}

	return pgcluster.ExecUntriggered(ctx, conn, d.ownershipStatements(project))
}

// ownershipStatements returns the statements that give a new database to the project's owner:
// schema public and default privileges.
func (d Databases) ownershipStatements(project uuid.UUID) []string {
	name := pg.Quote(d.Registry.OwnerLogin(project))
	return []string{
		// The owner's objects are closed to all but the service role, which acts for the whole
		// project.
		"alter default privileges for role " + name + " revoke execute on functions from public",
		"alter default privileges for role " + name + " revoke usage on types from public",
		"alter default privileges for role " + name + " grant all on tables to service_role",
		"alter default privileges for role " + name + " grant all on sequences to service_role",
		"alter default privileges for role " + name + " grant all on functions to service_role",
		"alter default privileges for role " + name + " grant usage on types to anon, authenticated, service_role",
		"alter schema public owner to " + name,
	}
}

// migrate applies the migrations to a project's database and grants the project's logins their
// privileges in schema socle, on which PUBLIC has none. The rows API's logins read the catalog
// version. The owner executes the functions by which its transactions write audit entries and
// record migrations, which it also reads.
func (d Databases) migrate(ctx context.Context, conn *pgx.Conn, project uuid.UUID) error {
	if err := pg.Migrate(ctx, conn, projectdb.Schema, projectdb.Migrations()); err != nil {
		return err
	}

	login := pg.Quote(d.Registry.OwnerLogin(project))
	rows := pg.Quote(d.Registry.Login(project, pgcluster.Request)) + ", " +
		pg.Quote(d.Registry.Login(project, pgcluster.Service))

	if err := d.handOver(ctx, conn, project); err != nil {
		return err
	}

	return pgcluster.ExecUntriggered(ctx, conn, []string{
		"grant usage on schema " + pg.Quote(projectdb.Schema) + " to " + login + ", " + rows,
		"grant select on socle.catalogue_version, socle.catalogue_changes to " + rows,
		"grant execute on function socle.find_answer(bytea), socle.claim_answer(bytea), " +
			"socle.keep_answer(bytea, bytea, smallint, jsonb, bytea) to " + rows,
		"grant execute on function socle.lock_audit(), socle.append_audit(bigint, text, bytea), " +
			"socle.write_audit(text, bytea), socle.lock_audit_entries(), " +
			"socle.record_migration(text, text, text, uuid, double precision) to " + login,
		"grant select on socle.applied_migrations to " + login,
	})
}

// Destroy drops a project's database and logins, or their remains. It returns the logins that
// cannot be dropped yet because other projects' objects refer to them. Those can no longer log in.
func (d Databases) Destroy(ctx context.Context, project uuid.UUID) (logins []string, err error) {
	conn, err := pgx.ConnectConfig(ctx, d.Registry.Cluster(project).PlatformConfig())
	if err != nil {
		return nil, pg.Fault(err)
	}
	defer conn.Close(context.WithoutCancel(ctx))

	if err := dropDatabase(ctx, conn, d.Registry.Database(project)); err != nil {
		return nil, fmt.Errorf("destroy project %s: %w", project, pg.Fault(err))
	}
	if err := d.dropCopies(ctx, conn, project); err != nil {
		return nil, fmt.Errorf("destroy project %s: %w", project, pg.Fault(err))
	}

	d.Registry.Forget(project) // after terminating sessions, since it waits for connections in use

	logins, err = dropLogins(ctx, conn, d.Registry.LoginNames(project))
	if err != nil {
		return nil, fmt.Errorf("destroy project %s: %w", project, pg.Fault(err))
	}

	return logins, nil
}
