package pgcluster

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/pg"
)

// Login is a PostgreSQL login for one purpose. No project login can assume another one.
type Login struct {
	name       string   // last part of the role name
	attributes string   // role attributes, beside those that no login has
	memberOf   []string // roles that it may assume, or whose privileges it has
	settings   []string // role settings
	optional   bool     // a project can lack it

	maxTxAge     time.Duration // maximum transaction age, see [Cluster.Watch]
	platformWork bool          // jobs have their own limits
}

// ReaderRole has all readers' privileges. Objects name it instead of the login, so that a dump of
// one project restores into another one.
const ReaderRole = "socle_reader"

// A project's logins, and the platform's.
var (
	// Trusted is the platform's own login. It has access to all databases.
	Trusted = Login{}

	// Owner is the project's owner: DDL and users' SQL. No policy applies to it, also with FORCE
	// ROW LEVEL SECURITY, as none applies to Supabase's postgres: schemas rely on that in functions
	// with SECURITY DEFINER. It has privileges on no platform table that policies protect from it,
	// see TestOwnerPassesRowSecurity.
	Owner = Login{name: "owner", attributes: "noinherit bypassrls connection limit 24", maxTxAge: ownerTxTimeout}
	// Request may assume anon or authenticated.
	Request = Login{name: "request", attributes: "noinherit connection limit 50",
		memberOf: []string{"anon", "authenticated"}, maxTxAge: rowsTxTimeout}
	// Service may assume service_role.
	Service = Login{name: "service", attributes: "noinherit connection limit 50",
		memberOf: []string{"service_role"}, maxTxAge: rowsTxTimeout}
	// Dump reads everything, password hashes included; for pg_dump only. Package backup parses
	// pg_dump's messages.
	Dump = Login{name: "dump", attributes: "inherit bypassrls connection limit 8",
		memberOf: []string{"pg_read_all_data"},
		settings: []string{"default_transaction_read_only = on", "lc_messages = 'C'"}, platformWork: true}
	// Auth owns the tables in schema auth. A project lacks it until it is migrated.
	Auth = Login{name: "auth", attributes: "noinherit connection limit 20", optional: true, maxTxAge: rowsTxTimeout}
	// Reader reads the owner's tables. A project has it from the first read-only session on.
	Reader = Login{name: "reader", attributes: "inherit bypassrls connection limit 20",
		memberOf: []string{ReaderRole}, optional: true, maxTxAge: ownerTxTimeout}
)

// ProjectLogins are every project's logins. Some projects also have a [Reader].
var ProjectLogins = []Login{Owner, Request, Service, Dump, Auth}

// allLogins are the logins that a project can have.
var allLogins = append(slices.Clone(ProjectLogins), Reader)

// String returns the last part of the login's names, such as owner.
func (l Login) String() string { return l.name }

// loginOf returns the login for a project role, by name.
func loginOf(role string) Login {
	for _, l := range allLogins {
		if strings.HasSuffix(role, "_"+l.name) {
			return l
		}
	}

	return Login{}
}

// LoginNames returns the names of all logins that a project can have.
func (n Names) LoginNames(project uuid.UUID) []string {
	names := make([]string, len(allLogins))
	for i, l := range allLogins {
		names[i] = n.Login(project, l)
	}

	return names
}

// CreateLogins creates a project's missing logins. It sets their attributes before memberships:
// from PostgreSQL 16 on, GRANT copies the member's inheritance.
func (c *Cluster) CreateLogins(ctx context.Context, conn *pgx.Conn, project uuid.UUID) error {
	var grants []string
	for _, l := range ProjectLogins {
		if err := c.createRole(ctx, conn, project, l); err != nil {
			return err
		}
		grants = append(grants, c.grantMemberships(project, l)...)
	}

	if err := c.SetLoginAttributes(ctx, conn, project); err != nil {
		return err
	}

	return ExecBatch(ctx, conn, grants)
}

// CreateReader creates the project's reader, or completes it.
func (c *Cluster) CreateReader(ctx context.Context, project uuid.UUID) error {
	return c.WithConn(ctx, func(conn *pgx.Conn) error {
		if err := c.createRole(ctx, conn, project, Reader); err != nil {
			return err
		}

		return ExecBatch(ctx, conn, slices.Concat(c.setAttributes(project, Reader),
			c.grantMemberships(project, Reader), c.grantConnect(project, Reader, c.Database(project))))
	})
}

func (c *Cluster) createRole(ctx context.Context, conn *pgx.Conn, project uuid.UUID, l Login) error {
	return ExecIgnoring(ctx, conn, "create role "+pg.Quote(c.Login(project, l)), "42710") // duplicate_object
}

// grantMemberships returns the statements that make a login a member of its roles.
func (c *Cluster) grantMemberships(project uuid.UUID, l Login) []string {
	var statements []string
	for _, role := range l.memberOf {
		statements = append(statements, "grant "+pg.Quote(role)+" to "+pg.Quote(c.Login(project, l)))
	}

	return statements
}

// SetLoginAttributes sets the attributes of the project's logins and removes all that a tenant must
// not have.
func (c *Cluster) SetLoginAttributes(ctx context.Context, conn *pgx.Conn, project uuid.UUID) error {
	logins, err := c.existingLogins(ctx, conn, project)
	if err != nil {
		return err
	}

	var statements []string
	for _, l := range logins {
		statements = append(statements, c.setAttributes(project, l)...)
	}

	return ExecBatch(ctx, conn, statements)
}

// setAttributes returns the statements that set a login's attributes and settings.
func (c *Cluster) setAttributes(project uuid.UUID, l Login) []string {
	name := c.Login(project, l)
	role := "alter role " + pg.Quote(name)
	statements := []string{role + " reset all", role + " login nosuperuser nocreatedb nocreaterole noreplication " +
		l.attributes + " password " + pg.Literal(pg.SCRAMVerifier(c.password(name)))}
	for _, setting := range l.settings {
		statements = append(statements, role+" set "+setting)
	}

	return statements
}

// ResetLogins undoes changes by user code to the project's logins. PostgreSQL lets a login change
// its own password and its own settings, in general and for a database. It fails if the logins are
// gone.
func (c *Cluster) ResetLogins(ctx context.Context, project uuid.UUID) error {
	conn, err := pgx.ConnectConfig(ctx, c.PlatformConfig())
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))

	if err := c.SetLoginAttributes(ctx, conn, project); err != nil {
		return err
	}

	logins, err := c.existingLogins(ctx, conn, project)
	if err != nil {
		return err
	}

	name := c.Database(project)
	var statements []string
	for _, l := range logins {
		statements = append(statements,
			"alter role "+pg.Quote(c.Login(project, l))+" in database "+pg.Quote(name)+" reset all")
		statements = append(statements, c.grantConnect(project, l, name)...)
	}

	return ExecBatch(ctx, conn, statements)
}

// existingLogins returns a project's logins without the optional ones that do not exist.
func (c *Cluster) existingLogins(ctx context.Context, conn *pgx.Conn, project uuid.UUID) ([]Login, error) {
	existing, err := pg.Values[string](ctx, conn, `select rolname::text from pg_roles where rolname = any(@names)`,
		pgx.StrictNamedArgs{"names": c.LoginNames(project)})
	if err != nil {
		return nil, err
	}

	return slices.DeleteFunc(slices.Clone(allLogins), func(l Login) bool {
		return l.optional && !slices.Contains(existing, c.Login(project, l))
	}), nil
}

// GrantConnect returns the statements that let a project's logins connect to a database.
func (c *Cluster) GrantConnect(project uuid.UUID, database string) []string {
	var statements []string
	for _, l := range ProjectLogins {
		statements = append(statements, c.grantConnect(project, l, database)...)
	}

	return statements
}

func (c *Cluster) grantConnect(project uuid.UUID, l Login, database string) []string {
	role, name := pg.Quote(c.Login(project, l)), pg.Quote(database)
	statements := []string{"grant connect on database " + name + " to " + role}
	for _, setting := range loginSettings {
		statements = append(statements, "alter role "+role+" in database "+name+" set "+setting)
	}

	return statements
}

// tempFileLimit limits the temporary files in one project session, for sorts, joins and cursors,
// since all projects share the disk. Backup restores, which sort for indexes, are exempt.
const tempFileLimit = "8GB"

// loginSettings are project logins' settings in their database that only a superuser can change:
// the size of temporary files, and messages from user code in PostgreSQL's log.
var loginSettings = []string{"temp_file_limit = '" + tempFileLimit + "'", "log_min_messages = fatal"}

// isLoginSetting is a condition on setting, a name=value in pg_db_role_setting: it is in
// loginSettings.
const isLoginSetting = `setting ~ '^(temp_file_limit|log_min_messages)='`

// LoginSettings returns the names of the settings that an operator gave the project logins for q's
// database. No dump has them.
func LoginSettings(ctx context.Context, q pg.Querier) ([]string, error) {
	return pg.Values[string](ctx, q, `
		select split_part(setting, '=', 1)
		from pg_db_role_setting s
		join pg_roles r on r.oid = s.setrole and starts_with(r.rolname, current_database() || '_') and r.rolname <> current_user
		cross join unnest(s.setconfig) setting
		where (s.setdatabase = 0 or s.setdatabase = (select oid from pg_database where datname = current_database()))
			and not `+isLoginSetting+`
		order by 1`)
}
