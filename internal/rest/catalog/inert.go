package catalog

import (
	"github.com/jackc/pgx/v5"
)

// selectInert finds the tables that a request can read or write without running user code: only
// PostgreSQL's own functions run, none of which changes the session. It examines all places where a
// table can have user code:
//
//   - Expressions of policies, checks, indexes and statistics; for writes, also of defaults and
//     generated columns. It finds called functions in the text of the node trees. It follows
//     neither subqueries, whose relations have their own policies, nor domains, whose checks are
//     elsewhere: a table with either is not inert. It follows SQL functions without arguments whose
//     body is parsed when they are created, as auth.uid().
//   - Types with code that shows or reads their values: domains, composites, ranges.
//   - For writes, triggers and rules, and the tables that foreign keys reach by cascades, or by
//     policies that also hold for their owner. It does not follow inheritance: a table with
//     children is not inert.
//   - Operators, casts and index support functions that are not written in C. Any expression can
//     use one of these, so a database that has one has no inert tables.
const selectInert = `
	with own as (select p.oid from pg_catalog.pg_proc p join pg_catalog.pg_language l on l.oid = p.prolang where l.lanname in ('internal', 'c')),
	builtin as (
		select p.oid::text as id from pg_catalog.pg_proc p join own on own.oid = p.oid
		where p.oid < 16384 and (p.provolatile = 'i'
			or p.oid in (select o.oprcode from pg_catalog.pg_operator o where o.oid < 16384)
			or p.oid in (select k.castfunc from pg_catalog.pg_cast k where k.oid < 16384)
			or p.pronamespace = 'pg_catalog'::pg_catalog.regnamespace and p.proname in (
				'current_setting', 'now', 'transaction_timestamp', 'statement_timestamp', 'clock_timestamp', 'nextval', 'gen_random_uuid', 'random'))
	),
	harmless as (
		select id from builtin
		union all
		select p.oid::text from pg_catalog.pg_proc p
		where p.prosqlbody is not null and p.prokind = 'f' and not p.prosecdef and p.proconfig is null and p.pronargs = 0
			and p.prosqlbody::text !~ '\{(RTE|RANGETBLENTRY|COERCETODOMAIN) ' and not exists (
			select from pg_catalog.regexp_matches(p.prosqlbody::text, ':(?:funcid|opfuncid|hashfuncid|negfuncid|aggfnoid|winfnoid) ([1-9][0-9]*)', 'g') as found (id)
			where found.id[1] not in (select b.id from builtin b))
	),
	exposed as (
		select c.oid from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace where n.nspname = any (@schemas)
	),
	looked_at as (
		select e.oid from exposed e
		union select k.confrelid from pg_catalog.pg_constraint k where k.contype = 'f' and k.conrelid in (select e.oid from exposed e)
		union select k.conrelid from pg_catalog.pg_constraint k where k.contype = 'f' and k.confrelid in (select e.oid from exposed e)
	),
	trees (relation, writes, tree) as (
		select o.polrelid, false, o.polqual::text from pg_catalog.pg_policy o
		union all select o.polrelid, true, o.polwithcheck::text from pg_catalog.pg_policy o
		union all select d.adrelid, a.attgenerated <> 'v', d.adbin::text from pg_catalog.pg_attrdef d
			join pg_catalog.pg_attribute a on a.attrelid = d.adrelid and a.attnum = d.adnum
		union all select k.conrelid, false, k.conbin::text from pg_catalog.pg_constraint k
		union all select i.indrelid, false, i.indexprs::text from pg_catalog.pg_index i
		union all select i.indrelid, false, i.indpred::text from pg_catalog.pg_index i
		union all select s.stxrelid, false, s.stxexprs::text from pg_catalog.pg_statistic_ext s
	),
	running as materialized (
		select t.relation, pg_catalog.bool_and(t.writes) as only_writes from trees t
		where t.tree is not null and t.relation in (select l.oid from looked_at l) and (t.tree ~ '\{(RTE|RANGETBLENTRY|COERCETODOMAIN) ' or exists (
			select from pg_catalog.regexp_matches(t.tree, ':(?:funcid|opfuncid|hashfuncid|negfuncid|aggfnoid|winfnoid) ([1-9][0-9]*)', 'g') as found (id)
			where found.id[1] not in (select h.id from harmless h)))
		group by t.relation
	)
	select c.oid as id,
		c.relkind = 'r' and not c.relhasrules
			and not exists (select from pg_catalog.pg_trigger t where t.tgrelid = c.oid and not t.tgisinternal)
			and not exists (select from running r where r.relation = c.oid)
			and not exists (
				select from pg_catalog.pg_constraint k
				join pg_catalog.pg_class other on other.oid = case when k.confrelid = c.oid then k.conrelid else k.confrelid end
				where k.contype = 'f' and (k.conrelid = c.oid or k.confrelid = c.oid) and (other.relforcerowsecurity
					or exists (select from running r where r.relation = other.oid and not r.only_writes)
					or k.confrelid = c.oid and not (k.confupdtype in ('a', 'r') and k.confdeltype in ('a', 'r')))) as write
	from pg_catalog.pg_class c
	join pg_catalog.pg_namespace n on n.oid = c.relnamespace
	where ` + relationCondition + ` and c.relkind in ('r', 'm') and not c.relhassubclass
		and not exists (select from running r where r.relation = c.oid and not r.only_writes)
		and not exists (
			select from pg_catalog.pg_attribute a
			join pg_catalog.pg_type t on t.oid = a.atttypid
			left join pg_catalog.pg_type element on element.oid = t.typelem
			where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped and t.oid >= 16384
				and (t.typtype not in ('b', 'e') or element.typtype not in ('b', 'e')))
		and not exists (
			select from (
				select o.oprcode::pg_catalog.oid as code from pg_catalog.pg_operator o where o.oid >= 16384
				union all select k.castfunc from pg_catalog.pg_cast k where k.oid >= 16384 and k.castfunc <> 0
				union all select a.amproc::pg_catalog.oid from pg_catalog.pg_amproc a where a.oid >= 16384) as added
			where added.code not in (select own.oid from own))`

// readInert marks the inert relations.
func (r *reader) readInert(read pgx.Rows) error {
	type row struct {
		ID    uint32
		Write bool
	}
	rows, err := collect[row](read)
	for _, row := range rows {
		if relation := r.relations[row.ID]; relation != nil {
			relation.InertRead, relation.InertWrite = true, row.Write
		}
	}

	return err
}
