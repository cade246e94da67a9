package lifecycle

import (
	"context"
	"slices"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/namespace"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/pgcluster"
	"github.com/socle-dev/socle/internal/projectdb"
	"github.com/socle-dev/socle/internal/schema"
)

// CheckExtensions fails with Unprocessable if the server lacks one of the extensions. A foreign
// backup's extensions must also be in [schema.AllowedExtensions] or installed in the project's
// database. q is any database on the server.
func (d Databases) CheckExtensions(
	ctx context.Context, q pg.Querier, project uuid.UUID, extensions []projectdb.Extension, foreign bool,
) error {
	if len(extensions) == 0 {
		return nil
	}

	available, err := pg.Values[string](ctx, q, `select name::text from pg_available_extensions`)
	if err != nil {
		return err
	}

	var present []projectdb.Extension
	if foreign {
		conn, err := d.Registry.Cluster(project).ConnectTrusted(ctx, d.Registry.Database(project))
		if err != nil {
			return err
		}
		defer conn.Close(context.WithoutCancel(ctx))

		if present, err = projectdb.Extensions(ctx, conn); err != nil {
			return err
		}
	}

	for _, e := range extensions {
		isPresent := slices.ContainsFunc(present, func(p projectdb.Extension) bool { return p.Name == e.Name })
		switch {
		case isEmulated(e):
		case !slices.Contains(available, e.Name):
			return fault.New(fault.Unprocessable,
				"the backup needs the extension %.63q, which this server does not have",
				e.Name).WithCode("extension_missing")
		case foreign && !isPresent && !slices.Contains(schema.AllowedExtensions, e.Name):
			return fault.New(fault.Unprocessable,
				"the backup needs the extension %.63q, which an operator must install in the project first",
				e.Name).WithCode("extension_missing")
		case foreign && (e.Schema == "" || namespace.IsReserved(e.Schema)):
			return fault.New(fault.Unprocessable,
				"the backup has the extension %.63q in a schema that is not the project's",
				e.Name).WithCode("extension_missing")
		}
	}

	return nil
}

// isEmulated reports whether an extension is emulated if the server lacks it.
func isEmulated(e projectdb.Extension) bool {
	return schema.IsEmulated(e.Name) && e.Schema == schema.ExtensionsSchema
}

// dropExtensions drops a new project's extensions with their schema. A backup may have others, or
// the same ones elsewhere.
func dropExtensions(ctx context.Context, conn *pgx.Conn) error {
	all, err := projectdb.Extensions(ctx, conn)
	if err != nil {
		return err
	}

	var statements []string
	for _, e := range all {
		statements = append(statements, "drop extension "+pg.Quote(e.Name))
	}

	return pgcluster.ExecUntriggered(ctx, conn,
		append(statements, "drop schema if exists "+schema.ExtensionsSchema))
}

// createExtensions creates extensions in a copy while only the platform's login can connect, so
// that their scripts, which run as a superuser, find no user objects. The owner gets their schemas,
// except [schema.ExtensionsSchema]: there it may create objects until [Copy.Finish].
func (c *Copy) createExtensions(ctx context.Context, conn *pgx.Conn, extensions []projectdb.Extension) error {
	if len(extensions) == 0 {
		return nil
	}

	// PostgreSQL reads all extension files for this.
	type file struct {
		Name  string
		Fixed bool // it names its schema
	}
	files, err := pg.All[file](ctx, conn, `
		select name::text, bool_or(schema is not null) as fixed from pg_available_extension_versions group by 1`)
	if err != nil {
		return err
	}

	for _, e := range extensions {
		statements := []string{"create extension " + pg.Quote(e.Name)}
		i := slices.IndexFunc(files, func(f file) bool { return f.Name == e.Name })
		switch {
		case i < 0 && isEmulated(e):
			script, err := schema.EmulationScript(e.Name)
			if err != nil {
				return err
			}
			statements = append(c.createSchemaStatements(e.Schema), script)
		case i < 0 || !files[i].Fixed:
			statements = append(c.createSchemaStatements(e.Schema),
				"create extension "+pg.Quote(e.Name)+" schema "+pg.Quote(e.Schema))
		}

		if err := pgcluster.ExecAll(ctx, conn, statements); err != nil {
			return err
		}
	}

	return nil
}

// createSchemaStatements returns the statements that create a schema for extensions. The owner may
// restore its objects into [schema.ExtensionsSchema], see [Copy.revokeSchemaCreate].
func (c *Copy) createSchemaStatements(name string) []string {
	to := pg.Quote(c.ownerLogin())
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

	return pgcluster.ExecAll(ctx, conn,
		[]string{
			"revoke create on schema " + schema.ExtensionsSchema + " from " +
				pg.Quote(c.ownerLogin()),
		})
}

// GrantInsert grants the owner INSERT on the configuration tables among members.
func (c *Copy) GrantInsert(ctx context.Context, members []projectdb.ExtensionMember) error {
	return c.execOnFilled(ctx, members, func(table string) string {
		return "grant insert on " + table + " to " + pg.Quote(c.ownerLogin())
	})
}

// RevokeInsert revokes the privileges that [Copy.GrantInsert] granted.
func (c *Copy) RevokeInsert(ctx context.Context, members []projectdb.ExtensionMember) error {
	return c.execOnFilled(ctx, members, func(table string) string {
		return "revoke insert on " + table + " from " + pg.Quote(c.ownerLogin())
	})
}

// execOnFilled executes a statement for each configuration table among members.
func (c *Copy) execOnFilled(
	ctx context.Context, members []projectdb.ExtensionMember, statement func(table string) string,
) error {
	var statements []string
	for _, m := range members {
		if m.Filled {
			statements = append(statements, statement(pg.Quote(m.Schema)+"."+pg.Quote(m.Name)))
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

	return pgcluster.ExecAll(ctx, conn, statements)
}
