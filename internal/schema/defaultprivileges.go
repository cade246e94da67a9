package schema

import (
	"context"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
)

// DefaultPrivileges are applications' privileges on the owner's new objects. PostgreSQL stores them
// in the project's database, so backups include them.
type DefaultPrivileges struct {
	Mode         string   `json:"mode" enum:"closed,supabase,custom" doc:"custom: set by SQL to something else."`
	ClosedTables []string `json:"closedTables" nullable:"false" doc:"Tables and views of schema public without privileges of anon and authenticated, at most 1000." example:"[\"public.orders\"]"`
}

// [DefaultPrivileges] modes.
const (
	closedMode   = "closed"
	supabaseMode = "supabase"
)

// DefaultPrivilegesUpdate changes default privileges. Existing also grants them on existing
// objects, and needs [supabaseMode].
type DefaultPrivilegesUpdate struct {
	Mode     string
	Existing bool
}

// rowsOpened lists anon's and authenticated's privileges on tables. Supabase grants TRUNCATE,
// REFERENCES and TRIGGER too: policies don't apply to these, and no client can use them.
var rowsOpened = strings.Join(rowPrivileges, ", ")

// defaultPrivilegeStatements has the statements for each mode, for the owner's login.
var defaultPrivilegeStatements = map[string][]string{
	supabaseMode: {
		"alter default privileges in schema public grant " + rowsOpened + " on tables to anon, authenticated",
		"alter default privileges in schema public grant all on sequences to anon, authenticated",
		"alter default privileges in schema public grant execute on functions to anon, authenticated",
		"alter default privileges grant execute on functions to public",
	},
	closedMode: {
		"alter default privileges in schema public revoke all on tables from public, anon, authenticated",
		"alter default privileges in schema public revoke all on sequences from public, anon, authenticated",
		"alter default privileges in schema public revoke all on functions from public, anon, authenticated",
		"alter default privileges revoke all on tables from public, anon, authenticated",
		"alter default privileges revoke all on sequences from public, anon, authenticated",
		"alter default privileges revoke all on functions from public, anon, authenticated",
	},
}

// selectDefaultPrivileges compares the default privileges of schema public's owner with each
// mode's. It counts privileges of anon, authenticated and public.
const selectDefaultPrivileges = `
	with granted as (
		select d.defaclnamespace <> 0 as in_public, d.defaclobjtype as kind, coalesce(r.rolname, 'public') as role, a.privilege_type as privilege
		from pg_catalog.pg_default_acl d
		cross join lateral pg_catalog.aclexplode(d.defaclacl) a
		left join pg_catalog.pg_roles r on r.oid = a.grantee
		where d.defaclrole = (select n.nspowner from pg_catalog.pg_namespace n where n.nspname = 'public')
			and d.defaclnamespace in (0, 'public'::pg_catalog.regnamespace) and d.defaclobjtype in ('r', 'S', 'f')
			and (a.grantee = 0 or r.rolname in ('anon', 'authenticated'))
	), functions as (
		select exists (
			select from pg_catalog.pg_default_acl d
			where d.defaclrole = (select n.nspowner from pg_catalog.pg_namespace n where n.nspname = 'public')
				and d.defaclnamespace = 0 and d.defaclobjtype = 'f') as changed
	)
	select case
			when (select changed from functions) and not exists (select from granted) then 'closed'
			when ((select not changed from functions) or exists (select from granted where not in_public and kind = 'f' and role = 'public'))
				and not exists (
					select from pg_catalog.unnest('{anon,authenticated}'::text[]) n(role)
					cross join (values ('r', 'SELECT'), ('r', 'INSERT'), ('r', 'UPDATE'), ('r', 'DELETE'),
						('S', 'USAGE'), ('S', 'SELECT'), ('S', 'UPDATE'), ('f', 'EXECUTE')) p(kind, privilege)
					where not exists (select from granted g where g.role = n.role and g.kind = p.kind::"char" and g.privilege = p.privilege))
				then 'supabase'
			else 'custom'
		end as mode,
		array(
			select pg_catalog.quote_ident(n.nspname) || '.' || pg_catalog.quote_ident(c.relname)
			from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
			where n.nspname = 'public' and c.relkind in ('r', 'p', 'v', 'm', 'f') and ` + notMember + ` and not ` + isOpened + `
			order by c.relname limit 1000) as closed_tables`

// isOpened is the SQL condition that anon, authenticated or public has a privilege on relation c or
// on a column.
const isOpened = `(
	exists (select from pg_catalog.aclexplode(c.relacl) a left join pg_catalog.pg_roles r on r.oid = a.grantee
		where a.grantee = 0 or r.rolname in ('anon', 'authenticated'))
	or exists (select from pg_catalog.pg_attribute t cross join lateral pg_catalog.aclexplode(t.attacl) a
		left join pg_catalog.pg_roles r on r.oid = a.grantee
		where t.attrelid = c.oid and (a.grantee = 0 or r.rolname in ('anon', 'authenticated'))))`

// GetDefaultPrivileges returns a project's default privileges.
func GetDefaultPrivileges(ctx context.Context, q pg.Querier) (DefaultPrivileges, error) {
	return pg.One[DefaultPrivileges](ctx, q, selectDefaultPrivileges)
}

// UpdateDefaultPrivileges sets a project's default privileges. It fails with Unprocessable on
// existing for a mode that grants nothing, and with Conflict, code busy, if objects keep changing.
func UpdateDefaultPrivileges(
	ctx context.Context, owner *pgxpool.Pool, u DefaultPrivilegesUpdate,
) (DefaultPrivileges, error) {
	if u.Existing && u.Mode != supabaseMode {
		return DefaultPrivileges{}, existingNotApplicable()
	}

	var updated DefaultPrivileges
	err := changeNamed(ctx, owner, func(ctx context.Context, tx pgx.Tx) error {
		statements := defaultPrivilegeStatements[u.Mode]
		if u.Existing {
			existing, err := pg.Values[string](ctx, tx, selectExistingGrants)
			if err != nil {
				return err
			}

			statements = append(statements[:len(statements):len(statements)], existing...)
		}

		for _, sql := range statements {
			err := execute(ctx, tx, sql)
			switch pg.State(err) {
			case "XX000", "42P01", "42883": // a concurrent grant, a table or function dropped since
				return errConcurrentChange
			}
			if err != nil {
				return translate(err, nil)
			}
		}

		var err error
		updated, err = GetDefaultPrivileges(ctx, tx)
		return err
	})

	return updated, err
}

// CopyDefaultPrivileges gives an empty database a project's mode, on the database owner's
// connection. Privileges that the project's own statements set are not copied.
func CopyDefaultPrivileges(ctx context.Context, from pg.Querier, owner *pgx.Conn) error {
	current, err := GetDefaultPrivileges(ctx, from)
	if err != nil || current.Mode != supabaseMode {
		return err
	}

	for _, sql := range defaultPrivilegeStatements[supabaseMode] {
		if _, err := owner.Exec(ctx, sql); err != nil {
			return err
		}
	}

	return nil
}

// selectExistingGrants returns the statements that open the owner's existing objects as the
// default privileges of [supabaseMode] open new ones. Tables without row level security stay
// closed, since nothing would protect their rows.
const selectExistingGrants = `
	with relations as (
		select c.oid, c.relkind, pg_catalog.quote_ident(n.nspname) || '.' || pg_catalog.quote_ident(c.relname) as name
		from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
		where n.nspname = 'public' and c.relowner = current_user::pg_catalog.regrole and ` + notMember + `
			and (c.relkind in ('v', 'm', 'S') or c.relkind in ('r', 'p') and c.relrowsecurity)
	), routines as (
		select n.nspname, p.oid::pg_catalog.regprocedure::text as name
		from pg_catalog.pg_proc p join pg_catalog.pg_namespace n on n.oid = p.pronamespace
		where ` + userSchema + ` and p.proowner = current_user::pg_catalog.regrole
			and p.prorettype not in ('pg_catalog.trigger'::pg_catalog.regtype, 'pg_catalog.event_trigger'::pg_catalog.regtype)
			and not exists (select from pg_catalog.pg_depend x
				where x.classid = 'pg_catalog.pg_proc'::pg_catalog.regclass and x.objid = p.oid and x.deptype = 'e')
	)
	select 'grant select, insert, update, delete on table ' || pg_catalog.string_agg(name, ', ' order by name) || ' to anon, authenticated'
	from relations where relkind <> 'S' having count(*) > 0
	union all
	select 'grant all on table ' || pg_catalog.string_agg(name, ', ' order by name) || ' to service_role'
	from relations where relkind <> 'S' having count(*) > 0
	union all
	select 'grant all on sequence ' || pg_catalog.string_agg(name, ', ' order by name) || ' to anon, authenticated, service_role'
	from relations where relkind = 'S' having count(*) > 0
	union all
	select 'grant execute on routine ' || pg_catalog.string_agg(name, ', ' order by name) || ' to public'
	from routines having count(*) > 0
	union all
	select 'grant execute on routine ' || pg_catalog.string_agg(name, ', ' order by name) || ' to anon, authenticated, service_role'
	from routines where nspname = 'public' having count(*) > 0`

func existingNotApplicable() *fault.Error {
	return fault.OnField(fault.Unprocessable, "existing", "not_applicable",
		"grants privileges, so it needs the mode supabase: revoke those of a table by its grants")
}
