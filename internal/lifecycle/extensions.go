package projectdb

import (
	"context"
	"slices"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/schema"
)

// Extension is an extension in a project's database. Its script ran as a superuser, so the platform
// or an operator installed it.
type Extension struct {
	Name   string `json:"name"`
	Schema string `json:"schema"`
}

// Extensions returns the extensions of the database that q is connected to, in order of creation.
// It omits plpgsql, which every database has.
func Extensions(ctx context.Context, q pg.Querier) ([]Extension, error) {
	return pg.All[Extension](ctx, q, `
		select e.extname as name, n.nspname as schema
		from pg_catalog.pg_extension e join pg_catalog.pg_namespace n on n.oid = e.extnamespace
		where e.extname <> 'plpgsql' order by e.oid`)
}

// ServerVersion returns PostgreSQL's server_version_num, such as 150018.
func ServerVersion(ctx context.Context, q pg.Querier) (int, error) {
	return pg.Value[int](ctx, q, `select current_setting('server_version_num')::int`)
}

// CheckExtensions fails with Unprocessable if the server lacks one of the wanted extensions. Those
// of a foreign backup must also be in [schema.AllowedExtensions] or installed in the project's
// database. q is any database of the server.
func (r *Registry) CheckExtensions(
	ctx context.Context, q pg.Querier, project uuid.UUID, wanted []Extension, foreign bool,
) error {
	if len(wanted) == 0 {
		return nil
	}

	offered, err := pg.Values[string](ctx, q, `select name::text from pg_available_extensions`)
	if err != nil {
		return err
	}

	var present []Extension
	if foreign {
		conn, err := pgx.ConnectConfig(ctx, r.config(project, trusted))
		if err != nil {
			return pg.Fault(err)
		}
		defer conn.Close(context.WithoutCancel(ctx))

		if present, err = Extensions(ctx, conn); err != nil {
			return err
		}
	}

	for _, e := range wanted {
		installed := slices.ContainsFunc(present, func(p Extension) bool { return p.Name == e.Name })
		switch {
		case !slices.Contains(offered, e.Name):
			return fault.New(fault.Unprocessable,
				"the backup needs the extension %.63q, which this server does not have",
				e.Name).WithCode("extension_missing")
		case foreign && !installed && !slices.Contains(schema.AllowedExtensions, e.Name):
			return fault.New(fault.Unprocessable,
				"the backup needs the extension %.63q, which an operator must install in the project first",
				e.Name).WithCode("extension_missing")
		case foreign && reserved(e.Schema):
			return fault.New(fault.Unprocessable,
				"the backup has the extension %.63q in a schema that is not the project's",
				e.Name).WithCode("extension_missing")
		}
	}

	return nil
}

func reserved(schema string) bool {
	return schema == "" || strings.HasPrefix(schema, "pg_") ||
		slices.Contains([]string{"auth", "forms", "realtime", Schema, "storage", "information_schema"}, schema)
}

// createExtensions creates extensions in a copy while only the platform's login can connect, so
// that their scripts, which run as a superuser, find no objects of users. The owner gets their
// schemas, except [schema.ExtensionsSchema]: there it may create objects until [Copy.Finish].
func (c *Copy) createExtensions(ctx context.Context, conn *pgx.Conn, extensions []Extension) error {
	if len(extensions) == 0 {
		return nil
	}

	// PostgreSQL reads the files of all extensions for this.
	fixed, err := pg.Values[string](ctx, conn,
		`select distinct name::text from pg_available_extension_versions where schema is not null`)
	if err != nil {
		return err
	}

	for _, e := range extensions {
		statements := []string{"create extension " + pg.Quote(e.Name)}
		if !slices.Contains(fixed, e.Name) {
			statements = append(c.createSchemaStatements(e.Schema),
				"create extension "+pg.Quote(e.Name)+" schema "+pg.Quote(e.Schema))
		}

		if err := execAll(ctx, conn, statements); err != nil {
			return err
		}
	}

	return nil
}

// createSchemaStatements returns the statements that create a schema for extensions. The owner may
// restore its objects into [schema.ExtensionsSchema], see [Copy.revokeSchemaCreate].
func (c *Copy) createSchemaStatements(name string) []string {
	to := pg.Quote(c.registry.login(c.Project, owner))
	if name != schema.ExtensionsSchema {
		return []string{"create schema if not exists " + pg.Quote(name) + " authorization " + to}
	}

	return []string{
		"create schema if not exists " + name, "grant usage on schema " + name + " to public",
		"grant create on schema " + name + " to " + to,
	}
}

// revokeSchemaCreate revokes the privileges that createSchemaStatements granted to the owner.
func (c *Copy) revokeSchemaCreate(ctx context.Context, conn *pgx.Conn) error {
	exists, err := pg.Value[bool](ctx, conn, `
		select exists (select from pg_namespace where nspname = @name and nspowner = current_user::regrole)`,
		pgx.StrictNamedArgs{"name": schema.ExtensionsSchema})
	if err != nil || !exists {
		return err
	}

	return execAll(ctx, conn,
		[]string{
			"revoke create on schema " + schema.ExtensionsSchema + " from " +
				pg.Quote(c.registry.login(c.Project, owner)),
		})
}

// ExtensionMember is a table of an extension.
type ExtensionMember struct {
	Schema, Name string
	Filled       bool // a configuration table, whose user rows are in dumps
}

// ExtensionMembers returns the tables of a database's extensions.
func ExtensionMembers(ctx context.Context, q pg.Querier) ([]ExtensionMember, error) {
	return pg.All[ExtensionMember](ctx, q, `
		select n.nspname as schema, c.relname as name, c.oid = any(coalesce(e.extconfig, '{}')) as filled
		from pg_depend d
		join pg_extension e on e.oid = d.refobjid
		join pg_class c on c.oid = d.objid
		join pg_namespace n on n.oid = c.relnamespace
		where d.classid = 'pg_class'::regclass and d.refclassid = 'pg_extension'::regclass and d.deptype = 'e' and c.relkind = 'r'`)
}

// GrantInsert grants the owner INSERT on the configuration tables among members.
func (c *Copy) GrantInsert(ctx context.Context, members []ExtensionMember) error {
	return c.execOnMembers(ctx, members, func(table string, m ExtensionMember) string {
		if !m.Filled {
			return ""
		}
		return "grant insert on " + table + " to " + pg.Quote(c.registry.login(c.Project, owner))
	})
}

// RevokeInsert revokes the privileges that Lend granted.
func (c *Copy) RevokeInsert(ctx context.Context, members []ExtensionMember) error {
	return c.execOnMembers(ctx, members, func(table string, m ExtensionMember) string {
		if !m.Filled {
			return ""
		}
		return "revoke insert on " + table + " from " + pg.Quote(c.registry.login(c.Project, owner))
	})
}

func (c *Copy) execOnMembers(
	ctx context.Context, members []ExtensionMember, statement func(table string, m ExtensionMember) string,
) error {
	var statements []string
	for _, m := range members {
		if sql := statement(pg.Quote(m.Schema)+"."+pg.Quote(m.Name), m); sql != "" {
			statements = append(statements, sql)
		}
	}

	if len(statements) == 0 {
		return nil
	}

	conn, err := c.ConnectTrusted(ctx)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))

	return execAll(ctx, conn, statements)
}
