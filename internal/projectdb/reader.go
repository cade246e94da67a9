package projectdb

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/pgcluster"
)

// A project has a fifth login, the reader, from the first read-only session on. It reads all the
// owner's tables, past row level security as the owner does, and nothing in the platform's schemas.
// It can write to none for lack of privileges: PostgreSQL lets every login lift
// default_transaction_read_only.

// ensureReader creates the project's reader, and grants it the tables that it cannot read yet.
func (p *Project) ensureReader(ctx context.Context) error {
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
		pgx.StrictNamedArgs{"owner": p.cluster.OwnerLogin(p.UUID),
			"reader": p.cluster.Login(p.UUID, pgcluster.Reader)})
	if err != nil {
		return err
	}

	if !now.Login {
		if err := p.cluster.CreateReader(ctx, p.UUID); err != nil {
			return err
		}
	}

	var grants []string
	if !now.Default {
		alter := "alter default privileges for role " + pg.Quote(p.cluster.OwnerLogin(p.UUID))
		grants = append(grants, alter+" grant select on tables to "+pgcluster.ReaderRole,
			alter+" grant select on sequences to "+pgcluster.ReaderRole)
	}

	for _, schema := range now.Schemas {
		grants = append(grants, "grant usage on schema "+pg.Quote(schema)+" to "+pgcluster.ReaderRole,
			"grant select on all tables in schema "+pg.Quote(schema)+" to "+pgcluster.ReaderRole,
			"grant select on all sequences in schema "+pg.Quote(schema)+" to "+pgcluster.ReaderRole)
	}

	if len(grants) == 0 {
		return nil
	}

	conn, err := pg.Acquire(ctx, p.Trusted())
	if err != nil {
		return err
	}
	defer conn.Release()

	return pg.Fault(pgcluster.ExecBatch(ctx, conn.Conn(), grants))
}
