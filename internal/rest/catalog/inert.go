package catalog

import (
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
)

// A relation is inert if a request can read or write it without running user code: only
// PostgreSQL's own functions run, none of which changes the session. The reader examines all places
// where a table can have user code:
//
//   - Expressions of policies, checks, indexes and statistics; for writes, also of defaults and
//     generated columns. The reader finds called functions in the text of the node trees. It
//     follows neither subqueries, whose relations have their own policies, nor domains, whose
//     checks are elsewhere: a table with either is not inert. It follows SQL functions without
//     arguments whose body is parsed when they are created, as auth.uid().
//   - Types with code that shows or reads their values: domains, composites, ranges.
//   - For writes, triggers and rules, and the tables that foreign keys reach by cascades, or by
//     policies that also hold for their owner. The reader does not follow inheritance: a table with
//     children is not inert.
//   - Operators, casts and index support functions that are not written in C. Any expression can
//     use one of these, so a database that has one has no inert relations.
//
// PostgreSQL only selects the texts. Its regular expressions would take most of the read time.

// selectHarmless selects PostgreSQL's own functions that do not change the session, and whether the
// database has operators, casts or index support functions that are not written in C.
const selectHarmless = `
	select array(
			select p.oid from pg_catalog.pg_proc p
			where p.oid < 16384 and p.prolang in (select l.oid from pg_catalog.pg_language l where l.lanname in ('internal', 'c'))
				and (p.provolatile = 'i'
					or p.oid in (select o.oprcode from pg_catalog.pg_operator o where o.oid < 16384)
					or p.oid in (select k.castfunc from pg_catalog.pg_cast k where k.oid < 16384)
					or p.pronamespace = 'pg_catalog'::pg_catalog.regnamespace and p.proname in (
						'current_setting', 'now', 'transaction_timestamp', 'statement_timestamp', 'clock_timestamp', 'nextval', 'gen_random_uuid', 'random'))
		) as functions,
		exists (
			select from (
				select o.oprcode::pg_catalog.oid as code from pg_catalog.pg_operator o where o.oid >= 16384
				union all select k.castfunc from pg_catalog.pg_cast k where k.oid >= 16384 and k.castfunc <> 0
				union all select a.amproc::pg_catalog.oid from pg_catalog.pg_amproc a where a.oid >= 16384) as added
			where not exists (
				select from pg_catalog.pg_proc p join pg_catalog.pg_language l on l.oid = p.prolang
				where p.oid = added.code and l.lanname in ('internal', 'c'))) as extended`

func (r *reader) readHarmless(read pgx.Rows) error {
	type row struct {
		Functions []uint32
		Extended  bool
	}
	rows, err := collect[row](read)
	for _, row := range rows {
		r.hasExtensions = row.Extended
		r.harmless = make(map[uint32]bool, len(row.Functions))
		for _, id := range row.Functions {
			r.harmless[id] = true
		}
	}

	return err
}

// maxTree is the maximum size of examined expressions and bodies, in bytes. Larger ones count as
// user code.
const maxTree = "1048576"

// selectBodies selects the functions whose body can be examined.
const selectBodies = `
	select p.oid, p.prosqlbody::text
	from pg_catalog.pg_proc p
	where p.prosqlbody is not null and p.prokind = 'f' and not p.prosecdef and p.proconfig is null and p.pronargs = 0
		and pg_catalog.octet_length(p.prosqlbody::text) <= ` + maxTree

// readBodies adds the functions whose body calls only PostgreSQL's own.
func (r *reader) readBodies(read pgx.Rows) error {
	var id uint32
	var tree string
	var ids []uint32 // not at once: none may call another
	_, err := pgx.ForEachRow(read, []any{&id, &tree}, func() error {
		if !r.runsUserCode(tree) {
			ids = append(ids, id)
		}

		return nil
	})

	for _, id := range ids {
		r.harmless[id] = true
	}

	return err
}

// selectTrees selects the expressions on the exposed relations and on their neighbors by foreign
// keys. Reads do not evaluate the expressions for writes.
const selectTrees = `
	with exposed as materialized (
		select c.oid from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace where n.nspname = any (@schemas)
	),
	examined as materialized (
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
	)
	select t.relation, t.writes, case when pg_catalog.octet_length(t.tree) <= ` + maxTree + ` then t.tree end
	from trees t where t.tree is not null and t.relation in (select x.oid from examined x)`

// readTrees determines which relations run user code.
func (r *reader) readTrees(read pgx.Rows) error {
	var relation uint32
	var writes bool
	var tree *string // nil if it is too large
	_, err := pgx.ForEachRow(read, []any{&relation, &writes, &tree}, func() error {
		switch {
		case tree != nil && !r.runsUserCode(*tree):
		case writes:
			r.codeInWrites[relation] = true
		default:
			r.codeInReads[relation] = true
		}

		return nil
	})

	return err
}

// runsUserCode reports whether the expression or body in a node tree may run user code.
func (r *reader) runsUserCode(tree string) bool {
	for _, node := range []string{"{RTE ", "{RANGETBLENTRY ", "{COERCETODOMAIN "} {
		if strings.Contains(tree, node) {
			return true
		}
	}

	for {
		var field string
		if _, tree, _ = strings.Cut(tree, ":"); tree == "" {
			return false
		}

		field, tree, _ = strings.Cut(tree, " ")
		switch field {
		case "funcid", "opfuncid", "hashfuncid", "negfuncid", "aggfnoid", "winfnoid":
			digits, _, _ := strings.Cut(tree, " ")
			if id, err := strconv.ParseUint(digits, 10, 32); err != nil || (id != 0 && !r.harmless[uint32(id)]) {
				return true
			}
		}
	}
}

// setInert marks the inert relations.
func (r *reader) setInert(constraints []constraint) {
	if r.hasExtensions {
		return
	}

	for id, relation := range r.relations {
		inert := (relation.Kind == 'r' && relation.Constrained) || relation.Kind == 'm'
		relation.InertRead = inert && !r.codeInReads[id] && !r.codeInTypes[id]
		relation.InertWrite = relation.InertRead && relation.Kind == 'r' && !r.codeInWrites[id]
	}

	for _, k := range constraints {
		if k.Kind != 'f' {
			continue
		}

		if from := r.relations[k.RelationID]; from != nil && (k.TargetForced || r.codeInReads[k.TargetID]) {
			from.InertWrite = false
		}
		if to := r.relations[k.TargetID]; to != nil && (k.Forced || k.Cascades || r.codeInReads[k.RelationID]) {
			to.InertWrite = false
		}
	}
}
