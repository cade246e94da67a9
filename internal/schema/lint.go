package schema

import (
	"context"

	"github.com/socle-dev/socle/internal/pg"
)

// Finding is a possible problem in a project's database.
type Finding struct {
	Code     string `json:"code" example:"rls_disabled"`
	Severity string `json:"severity" enum:"error,warning,info" doc:"An error exposes data that is probably private."`
	Object   string `json:"object" doc:"Name of the object, as the database prints it." example:"public.orders"`
	Sentence string `json:"sentence" doc:"Description and remedy, for people."`
}

// findingTexts describes each code's problem and remedy.
var findingTexts = map[string]string{
	"rls_disabled":              "Row level security is disabled, and anon or authenticated can access all rows of the table. Enable it and add policies.",
	"rls_disabled_closed":       "Row level security is disabled. Only the owner and service_role can access the table, but a grant would expose all of its rows.",
	"policies_without_rls":      "The table has policies, but row level security is disabled, so they have no effect. Enable it.",
	"rls_without_policy":        "The table is granted to anon or authenticated, but has no policy, so they see no rows. Add a policy, or revoke the grant.",
	"policies_without_grants":   "The table has policies for anon or authenticated, but neither has a privilege on it, so they get permission denied. Grant them as Supabase does: socle default-privileges update --mode supabase --existing; or for this table: socle grants update.",
	"policy_writes_for_all":     "The policy allows anonymous callers to write any row. Add a condition, or restrict it to the role authenticated.",
	"policy_reads_for_all":      "The policy allows anonymous callers to read every row. Add a condition unless this is intended.",
	"security_definer_view":     "The view reads rows with the privileges of its owner, bypassing policies, and anon or authenticated may read it. Make it security_invoker.",
	"security_definer_function": "The function runs with the privileges of its owner, bypassing policies, and anon or authenticated may execute it. Make it security invoker, or revoke execute.",
	"function_search_path":      "The function runs with the privileges of its owner without a fixed search_path: callers control how its names resolve. Set a search_path.",
	"materialized_view_exposed": "No policy protects the rows of the materialized view, and anon or authenticated may read it. Revoke select.",
	"foreign_key_without_index": "The columns of the foreign key have no index: deleting or updating a referenced row scans the whole table. Create an index.",
	"table_without_primary_key": "The table has no primary key, so its rows can't be identified. Add a primary key.",
	"invalid_index":             "The index is invalid, since its build failed: it slows writes and serves no query. Delete it and create it again.",
	"constraint_not_valid":      "The constraint is enforced for new rows only. Validate it.",
}

// Lint checks a project's database and returns the findings, most severe first. It reads only the
// catalog.
func Lint(ctx context.Context, q pg.Querier) ([]Finding, error) {
	findings, err := pg.All[Finding](ctx, q, selectFindings)
	for i, f := range findings {
		findings[i].Sentence = findingTexts[f.Code]
	}

	return findings, err
}

// selectFindings finds all problems in one statement. "exposed" means accessible to the roles anon
// or authenticated, by their own grants or by grants to public.
const selectFindings = `
	with relations as (
		select c.oid, c.relkind, c.relrowsecurity, pg_catalog.quote_ident(n.nspname) || '.' || pg_catalog.quote_ident(c.relname) as object,
			exists (select from pg_catalog.aclexplode(c.relacl) a left join pg_catalog.pg_roles r on r.oid = a.grantee
				where (a.grantee = 0 or r.rolname in ('anon', 'authenticated')) and (c.relkind in ('r', 'p') or a.privilege_type = 'SELECT')) as exposed,
			exists (select from pg_catalog.pg_policy p where p.polrelid = c.oid) as guarded, ` + isOpened + ` as opened,
			exists (select from pg_catalog.pg_index i where i.indrelid = c.oid and i.indisprimary) as keyed,
			coalesce((select o.option_value::bool from pg_catalog.pg_options_to_table(c.reloptions) o
				where o.option_name = 'security_invoker'), false) as invoker
		from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
		where c.relkind in ('r', 'p', 'v', 'm') and c.relpersistence <> 't' and ` + userSchema + ` and ` + notMember + `
	), policies as (
		select pg_catalog.quote_ident(p.polname) || ' on ' || r.object as object, p.polcmd in ('a', 'w', 'd', '*')
				and (p.polcmd in ('d', '*', 'w') and pg_catalog.pg_get_expr(p.polqual, p.polrelid) = 'true' and coalesce(pg_catalog.pg_get_expr(p.polwithcheck, p.polrelid), 'true') = 'true'
					or p.polcmd = 'a' and pg_catalog.pg_get_expr(p.polwithcheck, p.polrelid) = 'true') as writes,
			p.polcmd in ('r', '*') and pg_catalog.pg_get_expr(p.polqual, p.polrelid) = 'true' as reads
		from pg_catalog.pg_policy p join relations r on r.oid = p.polrelid
		where p.polpermissive and exists (select from pg_catalog.unnest(p.polroles) x(role) left join pg_catalog.pg_roles o on o.oid = x.role
			where x.role = 0 or o.rolname = 'anon')
	), functions as (
		select p.proconfig, pg_catalog.quote_ident(n.nspname) || '.' || pg_catalog.quote_ident(p.proname) || '(' ||
				pg_catalog.pg_get_function_identity_arguments(p.oid) || ')' as object,
			exists (select from pg_catalog.aclexplode(coalesce(p.proacl, pg_catalog.acldefault('f', p.proowner))) a
				left join pg_catalog.pg_roles r on r.oid = a.grantee where a.grantee = 0 or r.rolname in ('anon', 'authenticated')) as exposed
		from pg_catalog.pg_proc p join pg_catalog.pg_namespace n on n.oid = p.pronamespace
		where p.prosecdef and ` + userSchema + ` and not exists (
			select from pg_catalog.pg_depend x where x.classid = 'pg_catalog.pg_proc'::pg_catalog.regclass and x.objid = p.oid and x.deptype = 'e')
	), findings(severity, code, object) as (
		select 'error', 'rls_disabled', object from relations where relkind in ('r', 'p') and not relrowsecurity and exposed
		union all
		select 'warning', 'rls_disabled_closed', object from relations where relkind in ('r', 'p') and not relrowsecurity and not exposed
		union all
		select 'error', 'policies_without_rls', object from relations where relkind in ('r', 'p') and not relrowsecurity and guarded
		union all
		select 'warning', 'policies_without_grants', object from relations where relkind in ('r', 'p') and relrowsecurity and not opened and exists (
			select from pg_catalog.pg_policy p cross join lateral pg_catalog.unnest(p.polroles) x(role)
			left join pg_catalog.pg_roles o on o.oid = x.role
			where p.polrelid = relations.oid and p.polpermissive and (x.role = 0 or o.rolname in ('anon', 'authenticated')))
		union all
		select 'info', 'rls_without_policy', object from relations where relkind in ('r', 'p') and relrowsecurity and exposed and not guarded
		union all
		select 'info', 'table_without_primary_key', object from relations where relkind in ('r', 'p') and not keyed
		union all
		select 'error', 'policy_writes_for_all', object from policies where writes
		union all
		select 'warning', 'policy_reads_for_all', object from policies where reads and not writes
		union all
		select 'error', 'security_definer_view', object from relations where relkind = 'v' and exposed and not invoker
		union all
		select 'warning', 'materialized_view_exposed', object from relations where relkind = 'm' and exposed
		union all
		select 'error', 'security_definer_function', object from functions where exposed
		union all
		select 'warning', 'function_search_path', object from functions
		where not exists (select from pg_catalog.unnest(proconfig) x(setting) where x.setting like 'search_path=%')
		union all
		select 'info', 'foreign_key_without_index', pg_catalog.quote_ident(k.conname) || ' on ' || r.object
		from pg_catalog.pg_constraint k join relations r on r.oid = k.conrelid
		where k.contype = 'f' and ` + notClone + ` and not exists (
			select from pg_catalog.pg_index i where i.indrelid = k.conrelid and i.indisvalid and i.indpred is null
				and i.indnkeyatts >= pg_catalog.cardinality(k.conkey)
				and (i.indkey::int2[])[0:pg_catalog.cardinality(k.conkey) - 1] @> k.conkey)
		union all
		select 'info', 'constraint_not_valid', pg_catalog.quote_ident(k.conname) || ' on ' || r.object
		from pg_catalog.pg_constraint k join relations r on r.oid = k.conrelid where not k.convalidated and ` + notClone + `
		union all
		select 'warning', 'invalid_index', pg_catalog.quote_ident(x.relname) || ' on ' || r.object
		from pg_catalog.pg_index i join relations r on r.oid = i.indrelid join pg_catalog.pg_class x on x.oid = i.indexrelid
		where not i.indisvalid and not exists (
			select from pg_catalog.pg_stat_progress_create_index b where b.index_relid = i.indexrelid) -- in progress
	)
	select f.code, f.severity, f.object, '' as sentence from findings f
	order by pg_catalog.array_position('{error,warning,info}'::text[], f.severity), f.code, f.object
	limit 1000`
