package schema

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
)

// Dependent is an object that depends on another one.
type Dependent struct {
	Kind string `json:"kind" example:"view"`
	Name string `json:"name" doc:"As the database prints it." example:"public.totals"`
}

// MentionsMetadata lists the functions that a change may break, as response metadata.
type MentionsMetadata struct {
	Mentions []Dependent `json:"mentions,omitempty" nullable:"false" doc:"Functions whose text has the former name, if any: adjust them."`
}

// object is an object's catalog address: catalog table, OID, and column number or 0.
type object struct {
	Catalogue string
	ID        uint32
	Column    int16
}

// drop runs a drop statement on a locked object. With cascade, dependents are dropped too and
// returned. Without cascade, drop fails with Conflict, code in_use, and lists the dependents.
func drop(ctx context.Context, tx pgx.Tx, statement string, o object, cascade bool) ([]Dependent, error) {
	if cascade {
		dependents, err := dependentsOf(ctx, tx, o)
		if err != nil {
			return nil, err
		}

		return dependents, translate(execute(ctx, tx, statement+" cascade"), explainDrop)
	}

	// A savepoint keeps the transaction usable after the error, to query dependents.
	err := pgx.BeginFunc(ctx, tx, func(part pgx.Tx) error { return execute(ctx, part, statement+" restrict") })
	if pg.State(err) != "2BP01" { // dependent_objects_still_exist
		return []Dependent{}, translate(err, explainDrop)
	}

	dependents, listErr := dependentsOf(ctx, tx, o)
	if listErr != nil {
		return nil, listErr
	}

	if len(dependents) == 0 {
		return nil, belongsToWhole().WithCause(err)
	}

	return nil, withDependents(fault.New(fault.Conflict, "other objects depend on it: delete or change them first").
		WithCode("in_use").WithCause(err), dependents)
}

// withDependents adds the member dependents to a fault.
func withDependents(f *fault.Error, dependents []Dependent) *fault.Error {
	f.Extra = map[string]any{"dependents": dependents}
	return f
}

// belongsToWhole is the fault for a partition's index or trigger that is part of the partitioned
// table's. PostgreSQL reports a dependency, which has no dependents.
func belongsToWhole() *fault.Error {
	return fault.New(fault.Conflict, "it belongs to a partitioned table: delete it there").WithCode("in_use")
}

func explainDrop(state string) *fault.Error {
	if state == "42P16" { // invalid_table_definition: inherited, or part of a partition key
		return fault.New(fault.Conflict, "it is inherited or part of a partition key").WithCode("in_use")
	}
	return nil
}

// dependentsOf returns an object's direct and indirect dependents, without its own parts (a table's
// indexes or row type, an extension's members). A view depends through its rewrite rule, which is
// not returned.
func dependentsOf(ctx context.Context, tx pgx.Tx, o object) ([]Dependent, error) {
	return pg.All[Dependent](ctx, tx, `
		with recursive reached as (
			select @catalogue::pg_catalog.regclass::oid as class, @id::oid as id, @column::int4 as part, true as own, false as shown
			union
			select case when r.oid is null then d.classid else 'pg_catalog.pg_class'::pg_catalog.regclass::oid end,
				coalesce(r.ev_class, d.objid), d.objsubid, g.own and d.deptype <> 'n', d.deptype = 'n'
			from reached g
			join pg_catalog.pg_depend d on d.refclassid = g.class and d.refobjid = g.id and (g.part = 0 or d.refobjsubid = g.part)
			left join pg_catalog.pg_rewrite r on d.classid = 'pg_catalog.pg_rewrite'::pg_catalog.regclass and r.oid = d.objid
			where d.deptype in ('n', 'a', 'i', 'e')
		)
		select distinct i.type as kind, i.identity as name
		from reached g cross join lateral pg_catalog.pg_identify_object(g.class, g.id, g.part) i
		where g.shown and i.type is not null and not exists (
			select from reached o where o.own and o.class = g.class and o.id = g.id and o.part in (0, g.part))
			and not exists (select from pg_catalog.pg_constraint k
				where g.class = 'pg_catalog.pg_constraint'::pg_catalog.regclass and k.oid = g.id and not `+notClone+`)
		order by kind, name`,
		pgx.StrictNamedArgs{"catalogue": "pg_catalog." + o.Catalogue, "id": o.ID, "column": o.Column})
}

// columnUser is a direct dependent on a column.
type columnUser struct {
	Dependent
	Follows bool // PostgreSQL changes it with the column's type
}

// usersOf returns the objects that use a column, with columns of its table's row type, and the
// tables or the type that it comes from. PostgreSQL rebuilds indexes and constraints when the
// column's type changes, and refuses the change for all others.
func usersOf(ctx context.Context, tx pgx.Tx, table uint32, column int16) ([]columnUser, error) {
	return pg.All[columnUser](ctx, tx, `
		with recursive row_types as (
			select c.reltype as id from pg_catalog.pg_class c where c.oid = @table
			union
			select u.id from row_types r cross join lateral (
				select t.oid from pg_catalog.pg_type t where r.id in (t.typelem, t.typbasetype)
				union all
				select c.reltype from pg_catalog.pg_attribute a join pg_catalog.pg_class c on c.oid = a.attrelid and c.relkind = 'c'
				where a.atttypid = r.id and not a.attisdropped
			) u (id)
		), found as (
			select d.classid, d.objid, d.objsubid from pg_catalog.pg_depend d
			where d.refclassid = 'pg_catalog.pg_class'::pg_catalog.regclass and d.refobjid = @table and d.refobjsubid = @column
			union
			select 'pg_catalog.pg_constraint'::pg_catalog.regclass, k.oid, 0 from pg_catalog.pg_constraint k
			where k.confrelid = @table and @column = any (k.confkey) and `+notClone+`
			union
			select 'pg_catalog.pg_class'::pg_catalog.regclass, p.partrelid, 0 from pg_catalog.pg_partitioned_table p
			where p.partrelid = @table and @column = any (p.partattrs::int2[])
		), named as (
			select case when a.attnum is not null then 'generated column' when p.partrelid is not null then 'partition key'
					when i.type = 'rule' and r.rulename = '_RETURN' then v.type else i.type end as kind,
				case when a.attnum is not null then pg_catalog.format('%s.%I', g.identity, a.attname)
					when i.type = 'rule' and r.rulename = '_RETURN' then v.identity else i.identity end as name,
				i.type in ('index', 'table constraint') as follows
			from found f
			left join pg_catalog.pg_rewrite r on f.classid = 'pg_catalog.pg_rewrite'::pg_catalog.regclass and r.oid = f.objid
			left join pg_catalog.pg_attrdef d on f.classid = 'pg_catalog.pg_attrdef'::pg_catalog.regclass and d.oid = f.objid
			left join pg_catalog.pg_attribute a on a.attrelid = d.adrelid and a.attnum = d.adnum and a.attnum <> @column
				and a.attgenerated <> ''
			left join pg_catalog.pg_partitioned_table p on f.classid = 'pg_catalog.pg_class'::pg_catalog.regclass
				and p.partrelid = f.objid and f.objid = @table
			cross join lateral pg_catalog.pg_identify_object(f.classid, f.objid, f.objsubid) i
			left join lateral pg_catalog.pg_identify_object('pg_catalog.pg_class'::pg_catalog.regclass, r.ev_class, 0) v on true
			left join lateral pg_catalog.pg_identify_object('pg_catalog.pg_class'::pg_catalog.regclass, d.adrelid, 0) g on true
			where (d.oid is null or a.attnum is not null) and i.type not in ('sequence', 'statistics object', 'table column', 'toast table')
		)
		select kind, name, follows from named
		union
		select 'column', pg_catalog.format('%s.%I', i.identity, a.attname), false
		from pg_catalog.pg_attribute a join row_types r on r.id = a.atttypid
		join pg_catalog.pg_class c on c.oid = a.attrelid and c.relkind in ('r', 'p', 'm')
		cross join lateral pg_catalog.pg_identify_object('pg_catalog.pg_class'::pg_catalog.regclass, c.oid, 0) i
		where not a.attisdropped
		union
		select i.type, i.identity, false
		from pg_catalog.pg_attribute a join pg_catalog.pg_inherits h on h.inhrelid = a.attrelid
		join pg_catalog.pg_attribute o on o.attrelid = h.inhparent and o.attname = a.attname and not o.attisdropped
		cross join lateral pg_catalog.pg_identify_object('pg_catalog.pg_class'::pg_catalog.regclass, h.inhparent, 0) i
		where a.attrelid = @table and a.attnum = @column and a.attinhcount > 0
		union
		select i.type, i.identity, false
		from pg_catalog.pg_class c
		cross join lateral pg_catalog.pg_identify_object('pg_catalog.pg_type'::pg_catalog.regclass, c.reloftype, 0) i
		where c.oid = @table and c.reloftype <> 0
		order by kind, name`,
		pgx.StrictNamedArgs{"table": table, "column": column})
}

// dependentsOfType returns the users that block a column's type change: those that prevent any
// change, or, with follows, those that PostgreSQL could not rebuild.
func dependentsOfType(ctx context.Context, tx pgx.Tx, c storedColumn, follows bool) ([]Dependent, error) {
	users, err := usersOf(ctx, tx, c.table.ID, int16(c.Position))
	dependents := []Dependent{}
	for _, u := range users {
		if u.Follows == follows {
			dependents = append(dependents, u.Dependent)
		}
	}

	return dependents, err
}
