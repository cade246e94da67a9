package projectdb

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
)

// prepareLock is the key of the advisory lock for [Registry.Prepare], an arbitrary constant of this
// package.
const prepareLock = 0x50c1e_7e4a47

// Version returns the newest migration of project databases.
func Version() int64 {
	versions, err := pg.Versions(migrations)
	if err != nil {
		panic(err)
	}

	return versions[len(versions)-1]
}

// template returns the name of the database that projects are cloned from. It contains a digest of
// the migrations, so that releases side by side have one each.
func template() string {
	sum := sha256.New()

	files, err := fs.Glob(migrations, "*.sql")
	if err != nil {
		panic(err)
	}

	for _, name := range files {
		text, err := fs.ReadFile(migrations, name)
		if err != nil {
			panic(err)
		}

		fmt.Fprintf(sum, "%s %d\n%s", name, len(text), text)
	}

	return "socle_template_" + hex.EncodeToString(sum.Sum(nil)[:6])
}

// completeTemplate selects a complete template.
const completeTemplate = `select from pg_database where datname = @name and datistemplate and not datallowconn`

// Prepared reports whether the server that q is connected to has everything that [Registry.Prepare]
// creates.
func Prepared(ctx context.Context, q pg.Querier) (bool, error) {
	return pg.Value[bool](ctx, q, `
		select (select count(*) from pg_roles where rolname in ('anon', 'authenticated', 'service_role', '`+readerRole+`')) = 4
			and exists (`+completeTemplate+`)`, pgx.StrictNamedArgs{"name": template()})
}

// Prepare creates the objects that all projects of a server share, if missing: the three roles of
// the rows API, that of readers, and the template. Concurrent calls by several servers are safe.
func (r *Registry) Prepare(ctx context.Context) error {
	return r.withPrepareLock(ctx, func(conn *pgx.Conn) error {
		for _, role := range []string{
			"anon nologin noinherit", "authenticated nologin noinherit", "service_role nologin noinherit bypassrls",
			readerRole + " nologin noinherit",
		} {
			if err := execIgnoring(conn, ctx, "create role "+role, "42710"); err != nil {
				return fmt.Errorf("create role %s: %w", role, err)
			}
		}

		if err := r.createTemplate(ctx, conn); err != nil {
			return fmt.Errorf("create template: %w", err)
		}

		return nil
	})
}

// withPrepareLock runs f under the lock for preparing the server. An advisory lock belongs to a
// database, and several installs may share the server. So the lock is taken in database postgres,
// or in the platform database if postgres was dropped.
func (r *Registry) withPrepareLock(ctx context.Context, f func(*pgx.Conn) error) error {
	c := r.base.ConnConfig.Copy()
	c.Database = "postgres"
	err := pg.WithLock(ctx, c, prepareLock, f)
	if pg.State(err) == "3D000" { // invalid_catalog_name
		return pg.WithLock(ctx, r.base.ConnConfig, prepareLock, f)
	}

	return err
}

// createTemplate creates the template if it does not exist. Setting allow_connections to false is
// the last step, so a template that allows no connections is complete. Any other database of that
// name is left from an interrupted call.
func (r *Registry) createTemplate(ctx context.Context, conn *pgx.Conn) error {
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
	if err := execAll(ctx, conn, []string{
		"create database " + pg.Quote(name) + " template template0 encoding 'UTF8' allow_connections false",
		"revoke all on database " + pg.Quote(name) + " from public",
		"alter database " + pg.Quote(name) + " allow_connections true",
	}); err != nil {
		return err
	}

	c := r.base.ConnConfig.Copy()
	c.Database = name
	if err := pg.MigrateTo(ctx, c, Schema, migrations, Version()); err != nil {
		return err
	}

	_, err = conn.Exec(ctx, "alter database "+pg.Quote(name)+" is_template true allow_connections false")
	return err
}

// Provision creates a project's roles and database, or continues an interrupted creation: every
// step is idempotent. It returns the migration that the database has reached.
func (r *Registry) Provision(ctx context.Context, project uuid.UUID) (int64, error) {
	conn, err := pgx.ConnectConfig(ctx, r.base.ConnConfig)
	if err != nil {
		return 0, pg.Fault(err)
	}
	defer conn.Close(context.WithoutCancel(ctx))

	return Version(), r.provision(ctx, conn, project, r.provisionSteps())
}

// provision is [Registry.Provision] by steps that it is given, on a connection to the platform
// database.
func (r *Registry) provision(ctx context.Context, conn *pgx.Conn, project uuid.UUID, steps []provisionStep) error {
	for _, step := range steps {
		if err := step(ctx, conn, project); err != nil {
			return fmt.Errorf("provision project %s: %w", project, pg.Fault(err))
		}
	}

	return nil
}

// provisionStep is a step of creating a project. It takes a connection to the platform database.
type provisionStep func(context.Context, *pgx.Conn, uuid.UUID) error

func (r *Registry) provisionSteps() []provisionStep {
	return []provisionStep{r.createLogins, r.createDatabase, r.grantDatabase, r.initDatabase}
}

// creationSteps are the steps for a new project, which its first request follows at once. They
// leave an open connection in the pool.
func (r *Registry) creationSteps() []provisionStep {
	return []provisionStep{r.createLogins, r.createDatabase, r.grantDatabase, r.initPooled}
}

// createLogins creates the project's logins. It sets their attributes before memberships: from
// PostgreSQL 16 on, GRANT copies the inheritance of the member.
func (r *Registry) createLogins(ctx context.Context, conn *pgx.Conn, project uuid.UUID) error {
	memberOf := map[login][]string{
		request: {"anon", "authenticated"},
		service: {"service_role"},
		dump:    {"pg_read_all_data"},
	}

	var grants []string
	for _, l := range projectLogins {
		name := pg.Quote(r.login(project, l))
		if err := execIgnoring(conn, ctx, "create role "+name, "42710"); err != nil {
			return err
		}

		for _, group := range memberOf[l] {
			grants = append(grants, "grant "+pg.Quote(group)+" to "+name)
		}
	}

	if err := r.setLoginAttributes(ctx, conn, project); err != nil {
		return err
	}

	return execBatch(ctx, conn, grants)
}

// setLoginAttributes sets the attributes of the project's logins and removes all that a tenant must
// not have.
func (r *Registry) setLoginAttributes(ctx context.Context, conn *pgx.Conn, project uuid.UUID) error {
	logins, err := r.existingLogins(ctx, conn, project)
	if err != nil {
		return err
	}

	var statements []string
	for _, l := range logins {
		statements = append(statements, r.loginAttributes(project, l)...)
	}

	set := "alter role " + pg.Quote(r.login(project, dump)) + " set "
	// Package backup parses the messages of pg_dump.
	return execBatch(ctx, conn, append(statements, set+"default_transaction_read_only = on", set+"lc_messages = 'C'"))
}

// loginAttributes returns the statements that set the attributes of a login.
func (r *Registry) loginAttributes(project uuid.UUID, l login) []string {
	attributes := map[login]string{owner: "noinherit connection limit 20", request: "noinherit connection limit 50",
		service: "noinherit connection limit 50", dump: "inherit bypassrls connection limit 8",
		auth:   "noinherit connection limit 20",
		reader: "inherit bypassrls connection limit 20"}

	role := "alter role " + pg.Quote(r.login(project, l))
	return []string{role + " reset all", role + " login nosuperuser nocreatedb nocreaterole noreplication " +
		attributes[l] + " password " + pg.Literal(pg.SCRAMVerifier(r.password(r.login(project, l))))}
}

// resetLogins undoes changes by user code to the project's logins. PostgreSQL lets a login change
// its own password and its own settings, in general and for a database. It fails if the logins are
// gone.
func (r *Registry) resetLogins(ctx context.Context, project uuid.UUID) error {
	conn, err := pgx.ConnectConfig(ctx, r.base.ConnConfig)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))

	if err := r.setLoginAttributes(ctx, conn, project); err != nil {
		return err
	}

	logins, err := r.existingLogins(ctx, conn, project)
	if err != nil {
		return err
	}

	name := r.Database(project)
	var statements []string
	for _, l := range logins {
		statements = append(statements,
			"alter role "+pg.Quote(r.login(project, l))+" in database "+pg.Quote(name)+" reset all")
		statements = append(statements, r.grantConnect(project, l, name)...)
	}

	return execBatch(ctx, conn, statements)
}

// createDatabase clones the template into the project's database if that does not exist.
func (r *Registry) createDatabase(ctx context.Context, conn *pgx.Conn, project uuid.UUID) error {
	if err := clone(ctx, conn, r.Database(project)); pg.State(err) != "42P04" { // duplicate_database
		return err
	}
	return nil
}

// clone creates a database from the template, closed to connections. It retries while the template
// is in use: another server may be cloning it, or PostgreSQL has not noticed yet that a client is
// gone.
func clone(ctx context.Context, conn *pgx.Conn, name string) error {
	for {
		err := execRetrying(ctx, conn,
			"create database "+pg.Quote(name)+" template "+pg.Quote(template())+" allow_connections false")
		if pg.State(err) != "55006" { // object_in_use
			return err
		}

		select {
		case <-ctx.Done():
			return err
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// grantDatabase opens the database to the project's own logins only.
func (r *Registry) grantDatabase(ctx context.Context, conn *pgx.Conn, project uuid.UUID) error {
	name := pg.Quote(r.Database(project))
	statements := []string{"revoke all on database " + name + " from public",
		"grant create, temporary on database " + name + " to " + pg.Quote(r.login(project, owner))}

	return execBatch(ctx, conn,
		append(append(statements, r.grantConnectStatements(project, r.Database(project))...),
			"alter database "+name+" allow_connections true"))
}

// tempFileLimit limits the temporary files of one session of a project, for sorts, joins and
// cursors, since all projects share the disk. Restores of backups, which sort for indexes, are
// exempt.
const tempFileLimit = "8GB"

// grantConnectStatements returns the statements that let a project's logins connect to a database.
func (r *Registry) grantConnectStatements(project uuid.UUID, database string) []string {
	var statements []string
	for _, l := range projectLogins {
		statements = append(statements, r.grantConnect(project, l, database)...)
	}

	return statements
}

// grantConnect returns the statements that let a project's login connect to a database.
func (r *Registry) grantConnect(project uuid.UUID, l login, database string) []string {
	role, name := pg.Quote(r.login(project, l)), pg.Quote(database)
	statements := []string{"grant connect on database " + name + " to " + role}
	for _, setting := range loginSettings {
		statements = append(statements, "alter role "+role+" in database "+name+" set "+setting)
	}

	return statements
}

func (r *Registry) initDatabase(ctx context.Context, _ *pgx.Conn, project uuid.UUID) error {
	conn, err := pgx.ConnectConfig(ctx, r.config(project, trusted))
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))

	return r.initContent(ctx, conn, project)
}

func (r *Registry) initPooled(ctx context.Context, _ *pgx.Conn, project uuid.UUID) error {
	conn, err := pg.Acquire(ctx, r.Open(project).Trusted())
	if err != nil {
		return err
	}
	defer conn.Release()

	return r.initContent(ctx, conn.Conn(), project)
}

// initContent migrates a project's database, to which conn is connected, and, once, transfers
// schema public and default privileges to the owner. It leaves a schema public that no longer has
// its first owner: the transfer is done, and the owner may have changed privileges since.
func (r *Registry) initContent(ctx context.Context, conn *pgx.Conn, project uuid.UUID) error {
	if err := r.migrate(ctx, conn, project); err != nil {
		return err
	}

	fresh, err := pg.Value[bool](ctx, conn, `
		select exists (select from pg_namespace where nspname = 'public' and nspowner = 'pg_database_owner'::regrole)`)
	if err != nil || !fresh {
		return err
	}

	return execUntriggered(ctx, conn, r.ownershipStatements(project))
}

// ownershipStatements returns the statements that give a new database to the project's owner:
// schema public and default privileges.
func (r *Registry) ownershipStatements(project uuid.UUID) []string {
	name := pg.Quote(r.login(project, owner))
	return []string{
		// Objects of the owner are closed to all but the service role, which acts for the whole
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

// migrate applies the migrations to a database of a project and grants the project's logins their
// privileges in schema socle, on which PUBLIC has none. Logins of the rows API read the catalog
// version. The owner executes the functions by which its transactions write audit entries and
// record migrations, which it also reads.
func (r *Registry) migrate(ctx context.Context, conn *pgx.Conn, project uuid.UUID) error {
	if err := pg.Migrate(ctx, conn, Schema, migrations); err != nil {
		return err
	}

	login := pg.Quote(r.login(project, owner))
	rows := pg.Quote(r.login(project, request)) + ", " + pg.Quote(r.login(project, service))

	if err := r.handOver(ctx, conn, project); err != nil {
		return err
	}

	return execUntriggered(ctx, conn, []string{
		"grant usage on schema " + pg.Quote(Schema) + " to " + login + ", " + rows,
		"grant select on socle.catalogue_version, socle.catalogue_changes to " + rows,
		"grant execute on function socle.lock_audit(), socle.append_audit(bigint, text, bytea), " +
			"socle.write_audit(text, bytea), socle.lock_audit_entries(), " +
			"socle.record_migration(text, text, text, uuid, double precision) to " + login,
		"grant select on socle.applied_migrations to " + login,
	})
}

// Destroy drops a project's database and logins, or the remains of them. It returns the logins that
// cannot be dropped yet because objects of other projects refer to them. Those can no longer log
// in.
func (r *Registry) Destroy(ctx context.Context, project uuid.UUID) (retired []string, err error) {
	conn, err := pgx.ConnectConfig(ctx, r.base.ConnConfig)
	if err != nil {
		return nil, pg.Fault(err)
	}
	defer conn.Close(context.WithoutCancel(ctx))

	if err := dropDatabase(ctx, conn, r.Database(project)); err != nil {
		return nil, fmt.Errorf("destroy project %s: %w", project, pg.Fault(err))
	}
	if err := r.dropCopies(ctx, conn, project); err != nil {
		return nil, fmt.Errorf("destroy project %s: %w", project, pg.Fault(err))
	}

	r.unregister(project) // after terminating sessions, since it waits for connections in use

	var names []string
	for _, l := range append(slices.Clone(projectLogins), reader) {
		names = append(names, r.login(project, l))
	}

	retired, err = dropLogins(ctx, conn, names)
	if err != nil {
		return nil, fmt.Errorf("destroy project %s: %w", project, pg.Fault(err))
	}

	return retired, nil
}
