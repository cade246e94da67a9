package projectdb

import (
	"context"
	"slices"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/pg"
)

// A project has a fifth login, the reader, from its first read-only session on. It reads all tables
// of the owner, past row level security as the owner does, and nothing of the platform's schemas.
// It can write to none for lack of privileges: PostgreSQL lets every login lift
// default_transaction_read_only.

// readerRole has the privileges of all readers. Objects name it instead of the login, so that a
// dump of one project restores into another one.
const readerRole = "socle_reader"

// ensureReader creates the project's reader, and grants it the tables that it cannot read yet.
func (p *Project) ensureReader(ctx context.Context) error {
	r := p.registry

	type state struct {
		Login   bool     // the reader is complete
		Default bool     // new tables and sequences are granted
		Schemas []string // with tables or sequences that are not granted
	}
	now, err := pg.One[state](ctx, p.Trusted(), `
		with owned as (
			select c.relnamespace as schema, c.oid from pg_class c
			where c.relowner = (select oid from pg_roles where rolname = @owner) and c.relkind in ('r', 'p', 'v', 'm', 'f', 'S')
				and c.relpersistence <> 't' and c.relnamespace <> to_regnamespace('storage')
		)
		select
			exists (select from pg_roles where rolname = @reader and rolcanlogin and has_database_privilege(oid, current_database(), 'connect')
				and pg_has_role(oid, 'socle_reader', 'usage')) as login,
			(select count(*) = 2 from pg_default_acl d, aclexplode(d.defaclacl) a
				where d.defaclrole = (select oid from pg_roles where rolname = @owner) and d.defaclobjtype in ('r', 'S') and d.defaclnamespace = 0
					and a.grantee = 'socle_reader'::regrole and a.privilege_type = 'SELECT') as default,
			array(select distinct n.nspname::text from owned o join pg_namespace n on n.oid = o.schema
				where not has_table_privilege('socle_reader', o.oid, 'select') or not has_schema_privilege('socle_reader', n.oid, 'usage')) as schemas`,
		pgx.StrictNamedArgs{"owner": r.login(p.UUID, owner), "reader": r.login(p.UUID, reader)})
	if err != nil {
		return err
	}

	if !now.Login {
		if err := r.createReader(ctx, p); err != nil {
			return err
		}
	}

	var grants []string
	if !now.Default {
		alter := "alter default privileges for role " + pg.Quote(r.login(p.UUID, owner))
		grants = append(grants, alter+" grant select on tables to "+readerRole,
			alter+" grant select on sequences to "+readerRole)
	}

	for _, schema := range now.Schemas {
		grants = append(grants, "grant usage on schema "+pg.Quote(schema)+" to "+readerRole,
			"grant select on all tables in schema "+pg.Quote(schema)+" to "+readerRole,
			"grant select on all sequences in schema "+pg.Quote(schema)+" to "+readerRole)
	}

	if len(grants) == 0 {
		return nil
	}

	conn, err := pg.Acquire(ctx, p.Trusted())
	if err != nil {
		return err
	}
	defer conn.Release()

	return pg.Fault(execBatch(ctx, conn.Conn(), grants))
}

// createReader creates the reader's login, or completes it.
func (r *Registry) createReader(ctx context.Context, p *Project) error {
	return r.admin(ctx, func(conn *pgx.Conn) error {
		name := pg.Quote(r.login(p.UUID, reader))
		if err := execIgnoring(conn, ctx, "create role "+name, "42710"); err != nil {
			return err
		}

		return execBatch(ctx, conn, append(append(r.loginAttributes(p.UUID, reader),
			"grant "+readerRole+" to "+name), r.grantConnect(p.UUID, reader, r.Database(p.UUID))...))
	})
}

// existingLogins returns the logins of a project that exist: it may lack the reader, and the auth
// login until it is migrated.
func (r *Registry) existingLogins(ctx context.Context, conn *pgx.Conn, project uuid.UUID) ([]login, error) {
	known := append(slices.Clone(projectLogins), reader)
	names := make([]string, len(known))
	for i, l := range known {
		names[i] = r.login(project, l)
	}

	existing, err := pg.Values[string](ctx, conn, `select rolname::text from pg_roles where rolname = any(@names)`,
		pgx.StrictNamedArgs{"names": names})
	if err != nil {
		return nil, err
	}

	return slices.DeleteFunc(known, func(l login) bool {
		optional := l == reader || l == auth
		return optional && !slices.Contains(existing, r.login(project, l))
	}), nil
}
