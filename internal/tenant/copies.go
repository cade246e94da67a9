package tenant

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"socle/internal/pg"
	"socle/internal/token"
)

// FileKey returns where the bytes of a file of a project lie.
func FileKey(project, blob uuid.UUID) string {
	id := blob.String()
	return "projects/" + project.String() + "/files/" + id[:2] + "/" + id
}

// BackupKey returns what backups are encrypted under: 32 bytes that follow from the secret of the instance.
func (r *Registry) BackupKey() []byte { return token.Derive(r.secret, "backups") }

// ConnectDump connects to a project's database under the login that makes dumps. The caller closes the connection. It waits while another
// database takes that one's place.
func (r *Registry) ConnectDump(ctx context.Context, project uuid.UUID) (*pgx.Conn, error) {
	if err := r.Open(project).gate.pass(ctx); err != nil {
		return nil, err
	}
	return r.connect(ctx, r.config(project, dump))
}

// connect connects to a project's database under one of its logins, outside of the pools. The caller closes the connection.
func (r *Registry) connect(ctx context.Context, c *pgx.ConnConfig) (*pgx.Conn, error) {
	r.supervisor.Supervise(c)
	conn, err := pgx.ConnectConfig(ctx, c)

	return conn, pg.Fault(err)
}

// address returns how a program of PostgreSQL connects as c does, and the password that goes with it.
func (r *Registry) address(c *pgx.ConnConfig) (address, password string) {
	q := url.Values{"host": {c.Host}, "port": {strconv.Itoa(int(c.Port))}, "user": {c.User}, "dbname": {c.Database},
		"options": {"-c lock_timeout=30s"}}
	maps.Copy(q, r.tls)

	return "postgresql:///?" + strings.ReplaceAll(q.Encode(), "+", "%20"), c.Password // libpq takes a plus for a plus
}

// Copy is a database that is made for a project beside the one that it has: closed to everyone who uses the project,
// until it takes that one's place.
type Copy struct {
	Project  uuid.UUID
	registry *Registry
	id       uuid.UUID
	kind     string
}

// Copy returns the copy of a project that an id stands for, made or not.
func (r *Registry) Copy(project, id uuid.UUID) *Copy {
	return &Copy{project, r, id, "_new_"}
}

// DropStray drops a copy that nobody makes any more, by its database's name.
func (r *Registry) DropStray(ctx context.Context, database string) error {
	return r.drop(ctx, database)
}

// The names follow from the id, so that whoever comes by later finds what was left.
func (c *Copy) name() string {
	return c.registry.Database(c.Project) + c.kind + hex.EncodeToString(c.id[8:])
}
func (c *Copy) replaced() string {
	return c.registry.Database(c.Project) + "_old_" + hex.EncodeToString(c.id[8:])
}

// Proof returns the copy of a project that is made to see whether a backup, which id stands for, can be restored. It takes nothing's place. One that somebody
// asked for is another than one that is made of itself.
func (r *Registry) Proof(project, id uuid.UUID, asked bool) *Copy {
	return &Copy{project, r, id, map[bool]string{false: "_proof_", true: "_asked_"}[asked]}
}

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

// ConnectTrusted connects under the platform's login. The caller closes the connection.
func (c *Copy) ConnectTrusted(ctx context.Context) (*pgx.Conn, error) {
	return c.connect(ctx, trusted, c.name())
}

// ConnectOwner connects as the project's owner. The caller closes the connection.
func (c *Copy) ConnectOwner(ctx context.Context) (*pgx.Conn, error) {
	return c.connect(ctx, owner, c.name())
}

// ConnectDump connects under the login that makes dumps. The caller closes the connection.
func (c *Copy) ConnectDump(ctx context.Context) (*pgx.Conn, error) {
	return c.connect(ctx, dump, c.name())
}

// OwnerURL returns how a program connects as the project's owner, and the password that goes with it.
func (c *Copy) OwnerURL() (address, password string) {
	return c.registry.address(c.config(owner, c.name()))
}

// event triggers of the platform that must not meddle with what is restored as it was
const closing = "socle_close_new_tables"

// Make makes the copy as a project's database is when it is new, with the platform's schemas at a migration, but without the
// owner's default privileges and with no trigger that closes tables: both come with what is restored into it.
// It fails with Unprocessable if the migration is newer than this release. The owner gets in when the extensions are there, not before.
func (c *Copy) Make(ctx context.Context, version int64, extensions []Extension) error {
	return c.registry.admin(ctx, func(conn *pgx.Conn) error {
		if err := c.registry.setRoles(ctx, conn, c.Project); err != nil {
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

		if err := execAll(ctx, inside, []string{"alter event trigger " + closing + " disable"}); err != nil {
			return err
		}
		if err := c.extend(ctx, inside, extensions); err != nil {
			return err
		}

		return atOnce(ctx, inside, []string{
			"alter schema public owner to " + pg.Quote(c.registry.login(c.Project, owner)),
			"revoke all on schema public from public, anon, authenticated, service_role",
			"grant usage on schema public to public", // as initdb leaves it, from where the dump goes on
			"grant create, temporary, connect on database " + pg.Quote(c.name()) + " to " +
				pg.Quote(c.registry.login(c.Project, owner)),
			"grant connect on database " + pg.Quote(c.name()) + " to " + pg.Quote(c.registry.login(c.Project, dump)),
		})
	})
}

// create makes the copy's database at a migration. Nearly always that is the newest, which the template of new projects has.
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

// Finish brings the copy up to date, and opens it to all logins of the project, though nobody knows it yet.
func (c *Copy) Finish(ctx context.Context) error {
	conn, err := c.ConnectTrusted(ctx)
	if err != nil {
		return err
	}

	err = execAll(ctx, conn, []string{"alter event trigger " + closing + " enable"})
	if err == nil {
		err = c.closeRoom(ctx, conn)
	}
	if err == nil {
		err = c.registry.migrate(ctx, conn, c.Project)
	}

	if err := errors.Join(err, conn.Close(context.WithoutCancel(ctx))); err != nil {
		return err
	}

	return c.registry.admin(ctx, func(conn *pgx.Conn) error {
		return atOnce(ctx, conn, c.registry.admitLogins(c.Project, c.name()))
	})
}

// Drop drops the copy, if it is there.
func (c *Copy) Drop(ctx context.Context) error { return c.registry.drop(ctx, c.name()) }

// DropReplaced drops the database that the copy took the place of, if it is there.
func (c *Copy) DropReplaced(ctx context.Context) error { return c.registry.drop(ctx, c.replaced()) }

// ConnectReplaced connects under the platform's login to the database that the copy took the place of. The caller closes the connection.
func (c *Copy) ConnectReplaced(ctx context.Context) (*pgx.Conn, error) {
	return c.connect(ctx, trusted, c.replaced())
}

// Reopen opens the project's database, after a swap that has not come to its end.
func (c *Copy) Reopen(ctx context.Context) error {
	return c.registry.admin(ctx, func(conn *pgx.Conn) error { return c.registry.unlimitDatabase(ctx, conn, c.Project) })
}

// emptied ends the sessions in a database of ours that nobody has a reason to be in, and waits until they are gone.
func (r *Registry) emptied(ctx context.Context, name string) error {
	return r.admin(ctx, func(conn *pgx.Conn) error {
		tick := time.NewTicker(endEvery)
		defer tick.Stop()

		for {
			left, err := pg.Value[int64](ctx, conn,
				`select count(pg_terminate_backend(pid)) from pg_stat_activity where datname = @name`,
				pgx.StrictNamedArgs{"name": name})
			if err != nil || left == 0 {
				return err
			}

			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-tick.C:
			}
		}
	})
}

// admin runs f on a connection to the platform database that is no part of a pool.
func (r *Registry) admin(ctx context.Context, f func(*pgx.Conn) error) error {
	conn, err := pgx.ConnectConfig(ctx, r.base.ConnConfig)
	if err != nil {
		return pg.Fault(err)
	}
	defer conn.Close(context.WithoutCancel(ctx))

	return pg.Fault(f(conn))
}

func (r *Registry) drop(ctx context.Context, name string) error {
	return r.admin(ctx, func(conn *pgx.Conn) error {
		if _, err := conn.Exec(ctx, "drop database if exists "+pg.Quote(name)+" with (force)"); err != nil {
			return fmt.Errorf("drop database %s: %w", name, err)
		}
		return nil
	})
}

// dropCopies drops all databases that were made beside a project's own.
func (r *Registry) dropCopies(ctx context.Context, conn *pgx.Conn, project uuid.UUID) error {
	names, err := pg.Values[string](ctx, conn,
		`select datname from pg_database where starts_with(datname, @name::text || '_')`,
		pgx.StrictNamedArgs{"name": r.Database(project)})
	for _, name := range names {
		if err == nil {
			_, err = conn.Exec(ctx, "drop database if exists "+pg.Quote(name)+" with (force)")
		}
	}

	return err
}
