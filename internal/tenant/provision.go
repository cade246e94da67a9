package tenant

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"socle/internal/pg"
)

// prepareLock is the advisory lock under which a server is prepared: an arbitrary constant of this package.
const prepareLock = 0x50c1e_7e4a47

// Version returns the newest migration of project databases.
func Version() int64 {
	versions, err := pg.Versions(migrations)
	if err != nil {
		panic(err)
	}

	return versions[len(versions)-1]
}

// template returns the name of the database that projects are cloned from. It
// follows from the migrations, so releases side by side have one each.
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

// openDatabases are those of every server's that are open to the logins of projects, wholeTemplate is a template that is complete.
const (
	openDatabases = `select datname from pg_database where datname in ('postgres', 'template1') and has_database_privilege('public', oid, 'connect')`
	wholeTemplate = `select from pg_database where datname = @name and datistemplate and not datallowconn`
)

// Prepared reports whether the server that q is connected to has all that [Registry.Prepare] makes.
func Prepared(ctx context.Context, q pg.Querier) (bool, error) {
	return pg.Value[bool](ctx, q, `
		select (select count(*) from pg_roles where rolname in ('anon', 'authenticated', 'service_role')) = 3
			and not exists (`+openDatabases+`)
			and exists (`+wholeTemplate+`)`, pgx.StrictNamedArgs{"name": template()})
}

// Prepare makes what all projects of a server share, where it is missing: the three roles of the
// rows API, and the template. It closes the databases that PostgreSQL itself leaves open to every login, where the platform's
// login may. Any number of servers may do so at once.
func (r *Registry) Prepare(ctx context.Context) error {
	return r.alone(ctx, func(conn *pgx.Conn) error {
		for _, role := range []string{
			"anon nologin noinherit", "authenticated nologin noinherit", "service_role nologin noinherit bypassrls",
		} {
			if err := ignoring(conn, ctx, "create role "+role, "42710"); err != nil {
				return fmt.Errorf("role %s: %w", role, err)
			}
		}

		if err := closeDatabases(ctx, conn); err != nil {
			return err
		}
		if err := r.makeTemplate(ctx, conn); err != nil {
			return fmt.Errorf("template: %w", err)
		}

		return nil
	})
}

// alone runs f while nobody else prepares the server. An advisory lock is a database's own, and several platforms
// may share the server, so the lock is taken in the database that every server has; or in the platform's, where
// someone has removed that one.
func (r *Registry) alone(ctx context.Context, f func(*pgx.Conn) error) error {
	c := r.base.ConnConfig.Copy()
	c.Database = "postgres"
	err := pg.Locked(ctx, c, prepareLock, f)
	if pg.State(err) == "3D000" { // invalid_catalog_name
		return pg.Locked(ctx, r.base.ConnConfig, prepareLock, f)
	}

	return err
}

// closeDatabases closes the databases that initdb made to the logins of projects. On a server that is not
// ours we may not be allowed to; socle doctor says so.
func closeDatabases(ctx context.Context, conn *pgx.Conn) error {
	open, err := pg.Values[string](ctx, conn, openDatabases)
	if err != nil {
		return err
	}

	for _, name := range open {
		if err := ignoring(conn, ctx, "revoke all on database "+pg.Quote(name)+" from public", "42501"); err != nil {
			return fmt.Errorf("close database %s: %w", name, err)
		}
	}

	return nil
}

// makeTemplate makes the template unless it is there. A template that allows no connections is
// whole: that is set last. Anything else of its name was left by someone who was interrupted.
func (r *Registry) makeTemplate(ctx context.Context, conn *pgx.Conn) error {
	name := template()
	whole, err := pg.Value[bool](ctx, conn, `select exists (`+wholeTemplate+`)`, pgx.StrictNamedArgs{"name": name})
	if err != nil || whole {
		return err
	}

	if _, err := conn.Exec(ctx, "drop database if exists "+pg.Quote(name)+" with (force)"); err != nil {
		return err
	}

	// A database is open to everyone when it is made, so it takes no connections until that is revoked.
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

// Provision makes a project's roles and database, or finishes making them: every step is one that is already
// taken or can be taken again. It returns the migration that the database has reached.
func (r *Registry) Provision(ctx context.Context, project uuid.UUID) (int64, error) {
	conn, err := pgx.ConnectConfig(ctx, r.base.ConnConfig)
	if err != nil {
		return 0, pg.Fault(err)
	}
	defer conn.Close(context.WithoutCancel(ctx))

	return Version(), r.provision(ctx, conn, project)
}

// provision is [Registry.Provision] on a connection to the platform database.
func (r *Registry) provision(ctx context.Context, conn *pgx.Conn, project uuid.UUID) error {
	for _, step := range r.steps() {
		if err := step(ctx, conn, project); err != nil {
			return fmt.Errorf("provision %s: %w", project, pg.Fault(err))
		}
	}

	return nil
}

// steps are those of making a project, each on a connection to the platform database.
func (r *Registry) steps() []func(context.Context, *pgx.Conn, uuid.UUID) error {
	return []func(context.Context, *pgx.Conn, uuid.UUID) error{r.makeRoles, r.makeDatabase, r.grantDatabase, r.furnish}
}

// makeRoles makes the project's logins. They get their attributes first: from PostgreSQL 16 on, whether a member inherits is settled when it
// becomes one.
func (r *Registry) makeRoles(ctx context.Context, conn *pgx.Conn, project uuid.UUID) error {
	member := map[login][]string{
		request: {"anon", "authenticated"},
		service: {"service_role"},
		dump:    {"pg_read_all_data"},
	}

	var grants []string
	for _, l := range projectLogins {
		name := pg.Quote(r.login(project, l))
		if err := ignoring(conn, ctx, "create role "+name, "42710"); err != nil {
			return err
		}

		for _, group := range member[l] {
			grants = append(grants, "grant "+pg.Quote(group)+" to "+name)
		}
	}

	if err := r.setRoles(ctx, conn, project); err != nil {
		return err
	}

	return atOnce(ctx, conn, grants)
}

// setRoles gives the project's logins their attributes, closed against all that a tenant should not have.
func (r *Registry) setRoles(ctx context.Context, conn *pgx.Conn, project uuid.UUID) error {
	attributes := map[login]string{owner: "noinherit connection limit 20", request: "noinherit connection limit 50",
		service: "noinherit connection limit 50", dump: "inherit bypassrls connection limit 8"}

	var statements []string
	for _, l := range projectLogins {
		role := "alter role " + pg.Quote(r.login(project, l))
		statements = append(statements, role+" reset all", role+
			" login nosuperuser nocreatedb nocreaterole noreplication "+
			attributes[l]+" password "+pg.Literal(pg.Verifier(r.password(r.login(project, l)))))
	}

	set := "alter role " + pg.Quote(r.login(project, dump)) + " set "
	// what pg_dump is told is read
	return atOnce(ctx, conn, append(statements, set+"default_transaction_read_only = on", set+"lc_messages = 'C'"))
}

// restoreRoles undoes what a tenant's code did to the project's logins: PostgreSQL lets a login change its own password and
// its own settings, in general and in a database. It fails if they are gone.
func (r *Registry) restoreRoles(ctx context.Context, project uuid.UUID) error {
	conn, err := pgx.ConnectConfig(ctx, r.base.ConnConfig)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))

	if err := r.setRoles(ctx, conn, project); err != nil {
		return err
	}

	name := r.Database(project)
	var statements []string
	for _, l := range projectLogins {
		statements = append(statements,
			"alter role "+pg.Quote(r.login(project, l))+" in database "+pg.Quote(name)+" reset all")
	}

	return atOnce(ctx, conn, append(statements, r.admitLogins(project, name)...))
}

// makeDatabase clones the template into the project's database, unless it is there.
func (r *Registry) makeDatabase(ctx context.Context, conn *pgx.Conn, project uuid.UUID) error {
	if err := clone(ctx, conn, r.Database(project)); pg.State(err) != "42P04" { // duplicate_database
		return err
	}
	return nil
}

// clone makes a database of the template, which takes no connections yet. Another server may be cloning it at this
// moment, or a cluster may not have noticed yet that a client of the template is gone: then it tries again.
func clone(ctx context.Context, conn *pgx.Conn, name string) error {
	for {
		err := alter(ctx, conn,
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

// grantDatabase opens the database, to the project's own logins alone.
func (r *Registry) grantDatabase(ctx context.Context, conn *pgx.Conn, project uuid.UUID) error {
	name := pg.Quote(r.Database(project))
	statements := []string{"revoke all on database " + name + " from public",
		"grant create, temporary on database " + name + " to " + pg.Quote(r.login(project, owner))}

	return atOnce(ctx, conn,
		append(append(statements, r.admitLogins(project, r.Database(project))...),
			"alter database "+name+" allow_connections true"))
}

// mostTemporary bounds the temporary files of one session of a project, for sorts, joins and cursors,
// since all projects share the disk. Restores of backups, which sort for indexes, are not bounded.
const mostTemporary = "8GB"

// bounds are the settings of a project's logins in its database that only a superuser can change:
// the size of temporary files, and what its code can write into PostgreSQL's log.
var bounds = []string{"temp_file_limit = '" + mostTemporary + "'", "log_min_messages = fatal"}

// isBound is the condition that setting, a name=value of pg_db_role_setting, is one of bounds.
const isBound = `setting ~ '^(temp_file_limit|log_min_messages)='`

// admitLogins returns the statements that let a project's logins into a database.
func (r *Registry) admitLogins(project uuid.UUID, database string) []string {
	var statements []string
	for _, l := range projectLogins {
		role, name := pg.Quote(r.login(project, l)), pg.Quote(database)
		statements = append(statements, "grant connect on database "+name+" to "+role)
		for _, setting := range bounds {
			statements = append(statements, "alter role "+role+" in database "+name+" set "+setting)
		}
	}

	return statements
}

// furnish brings a project's database up to date and gives the owner what is the owner's: once, since
// what the owner makes of it is theirs. That schema public has an owner of its own says that it is done.
func (r *Registry) furnish(ctx context.Context, _ *pgx.Conn, project uuid.UUID) error {
	conn, err := pgx.ConnectConfig(ctx, r.config(project, trusted))
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))

	if err := r.migrate(ctx, conn, project); err != nil {
		return err
	}

	fresh, err := pg.Value[bool](ctx, conn, `
		select exists (select from pg_namespace where nspname = 'public' and nspowner = 'pg_database_owner'::regrole)`)
	if err != nil || !fresh {
		return err
	}

	name := pg.Quote(r.login(project, owner))
	return atOnce(ctx, conn, []string{
		// What the owner makes is closed to everyone but the service role, which answers for the whole project.
		"alter default privileges for role " + name + " revoke execute on functions from public",
		"alter default privileges for role " + name + " revoke usage on types from public",
		"alter default privileges for role " + name + " grant all on tables to service_role",
		"alter default privileges for role " + name + " grant all on sequences to service_role",
		"alter default privileges for role " + name + " grant all on functions to service_role",
		"alter default privileges for role " + name + " grant usage on types to anon, authenticated, service_role",
		"alter schema public owner to " + name,
	})
}

// migrate applies the migrations to a database of a project, and grants the project's logins what they
// need of schema socle, which PUBLIC has no rights on: the logins of the rows API read the version of
// the schema, and the owner executes the functions by which its transactions write audit entries.
func (r *Registry) migrate(ctx context.Context, conn *pgx.Conn, project uuid.UUID) error {
	if err := pg.Migrate(ctx, conn, Schema, migrations); err != nil {
		return err
	}

	login := pg.Quote(r.login(project, owner))
	rows := pg.Quote(r.login(project, request)) + ", " + pg.Quote(r.login(project, service))

	return atOnce(ctx, conn, []string{
		"grant usage on schema " + pg.Quote(Schema) + " to " + login + ", " + rows,
		"grant select on socle.catalogue_version to " + rows,
		"grant execute on function socle.lock_audit(), socle.append_audit(bigint, text, bytea) to " + login,
	})
}

// Destroy removes a project's database and logins, or what is left of them. It returns the logins that can't be dropped yet,
// since objects of other projects name them; they can't log in any more.
func (r *Registry) Destroy(ctx context.Context, project uuid.UUID) (retired []string, err error) {
	conn, err := pgx.ConnectConfig(ctx, r.base.ConnConfig)
	if err != nil {
		return nil, pg.Fault(err)
	}
	defer conn.Close(context.WithoutCancel(ctx))

	if _, err := conn.Exec(ctx, "drop database if exists "+pg.Quote(r.Database(project))+" with (force)"); err != nil {
		return nil, fmt.Errorf("destroy %s: %w", project, pg.Fault(err))
	}
	if err := r.dropCopies(ctx, conn, project); err != nil {
		return nil, fmt.Errorf("destroy %s: %w", project, pg.Fault(err))
	}

	r.forget(project) // after its sessions were ended: it waits for those who use one

	var names []string
	for _, l := range projectLogins {
		names = append(names, r.login(project, l))
	}

	retired, err = dropRoles(ctx, conn, names)
	if err != nil {
		return nil, fmt.Errorf("destroy %s: %w", project, pg.Fault(err))
	}

	return retired, nil
}

// ignoring runs a statement and takes the given SQLSTATE for success.
func ignoring(conn *pgx.Conn, ctx context.Context, sql, state string) error {
	if err := alter(ctx, conn, sql); pg.State(err) != state {
		return err
	}
	return nil
}

func execAll(ctx context.Context, conn *pgx.Conn, statements []string) error {
	for _, sql := range statements {
		if err := alter(ctx, conn, sql); err != nil {
			return errors.Join(fmt.Errorf("%s", sql), err)
		}
	}

	return nil
}

// atOnce runs statements in one transaction and one round trip. What makes or drops a database can't be among them.
func atOnce(ctx context.Context, conn *pgx.Conn, statements []string) error {
	return alter(ctx, conn, strings.Join(statements, ";\n"))
}

// alterTries is how often a statement is tried that meets another: each time, someone else's was done instead.
const alterTries = 20

// alter runs a statement, or several in one transaction, on the catalogue that all databases of the server share. Where it meets another on the same row, PostgreSQL makes it wait for
// that and then fail: two jobs of one project may set its logins' attributes at the same time, and the owner may set its own. It did nothing then, and is tried again.
func alter(ctx context.Context, conn *pgx.Conn, sql string) error {
	var err error
	for range alterTries {
		_, err = conn.Exec(ctx, sql)
		// internal_error (tuple concurrently updated), unique_violation
		if s := pg.State(err); s != "XX000" && s != "23505" {
			return err
		}
	}

	return err
}
