package catalog

import (
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
)

// domains resolves domains to their base types, through domains over domains.
const domains = `
	steps (id, base, modifier, not_null) as (
		select t.oid, t.typbasetype, t.typtypmod, t.typnotnull
		from pg_catalog.pg_type t
		where t.typtype = 'd'
		union all
		select s.id, t.typbasetype, case when s.modifier >= 0 then s.modifier else t.typtypmod end, s.not_null or t.typnotnull
		from steps s
		join pg_catalog.pg_type t on t.oid = s.base
		where t.typtype = 'd'
	),
	domains as (
		select s.id, s.base, s.modifier, s.not_null
		from steps s
		join pg_catalog.pg_type t on t.oid = s.base
		where t.typtype <> 'd'
	)`

// selectColumns prints defaults without their table, which does not affect the text: with it,
// PostgreSQL would open and lock the table. An identity column has no default expression, so its
// default is a description.
const selectColumns = `
	with recursive ` + domains + `,
	enums as (
		select e.enumtypid as id, pg_catalog.array_agg(e.enumlabel::text order by e.enumsortorder) as labels
		from pg_catalog.pg_enum e
		group by e.enumtypid
	),
	sequences as (
		select d.refobjid as relation, d.refobjsubid as number, d.objid as id
		from pg_catalog.pg_depend d
		where d.classid = 'pg_catalog.pg_class'::pg_catalog.regclass and d.refclassid = d.classid
			and d.deptype = 'i' and d.refobjsubid > 0
	)
	select a.attrelid as relation_id, a.attnum as number, a.attname as name, a.atttypid as type_id,
		coalesce(comment.description, '') as description,
		pg_catalog.format_type(a.atttypid, a.atttypmod) as type,
		case when domain.id is null then '' else pg_catalog.format_type(domain.base, -1) end as base_type,
		a.attnotnull or coalesce(domain.not_null, false) as not_null,
		a.atthasdef or a.attidentity <> '' or t.typdefaultbin is not null as has_default,
		coalesce(case when a.attidentity <> '' then pg_catalog.format('nextval(%L::regclass)', sequence.id::pg_catalog.regclass)
			when a.attgenerated <> '' then null
			else coalesce(pg_catalog.pg_get_expr(def.adbin, 0), pg_catalog.pg_get_expr(t.typdefaultbin, 0)) end, '') as "default",
		a.attgenerated <> '' or a.attidentity = 'a' as generated,
		case when base.modifier < 0 then 0
			when base.id in ('varchar'::pg_catalog.regtype, 'bpchar'::pg_catalog.regtype) then base.modifier - 4
			when base.id in ('bit'::pg_catalog.regtype, 'varbit'::pg_catalog.regtype) then base.modifier
			else 0 end as max_length,
		enum.labels as enum,
		(select b.typtype = 'c' from pg_catalog.pg_type b where b.oid = base.id) as composite,
		t.oid >= 16384 and (t.typtype not in ('b', 'e')
			or exists (select from pg_catalog.pg_type e where e.oid = t.typelem and e.typtype not in ('b', 'e'))) as user_code
	from pg_catalog.pg_class c
	join pg_catalog.pg_namespace n on n.oid = c.relnamespace
	join pg_catalog.pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
	join pg_catalog.pg_type t on t.oid = a.atttypid
	left join domains domain on domain.id = a.atttypid
	cross join lateral (select coalesce(domain.base, a.atttypid) as id,
		case when a.atttypmod >= 0 then a.atttypmod else coalesce(domain.modifier, -1) end as modifier) base
	left join enums enum on enum.id = base.id
	left join sequences sequence on sequence.relation = a.attrelid and sequence.number = a.attnum
	left join pg_catalog.pg_attrdef def on def.adrelid = a.attrelid and def.adnum = a.attnum
	left join pg_catalog.pg_description comment on comment.objoid = a.attrelid and comment.objsubid = a.attnum
		and comment.classoid = 'pg_catalog.pg_class'::pg_catalog.regclass
	where ` + relationCondition + `
	order by a.attrelid, a.attnum`

func (r *reader) readColumns(read pgx.Rows) error {
	type row struct {
		RelationID, TypeID                uint32
		Number                            int16
		Name, Description, Type, BaseType string
		NotNull, HasDefault, Generated    bool
		Default                           string
		MaxLength                         int
		Enum                              []string
		Composite, UserCode               bool
	}

	rows, err := collect[row](read)
	for _, row := range rows {
		relation := r.relations[row.RelationID]
		if relation == nil {
			continue // created after the relations were read
		}

		c := &Column{
			Name: row.Name, Description: row.Description, Type: row.Type, BaseType: row.BaseType,
			NotNull: row.NotNull, HasDefault: row.HasDefault, Default: row.Default, Generated: row.Generated,
			MaxLength: row.MaxLength, Enum: row.Enum, Composite: row.Composite,
		}
		if c.BaseType == "" {
			c.BaseType = c.Type
		} else {
			d := r.casts[row.TypeID]
			c.ToJSON, c.FromJSON, c.FromText = d.toJSON, d.fromJSON, d.fromText
		}

		r.codeInTypes[row.RelationID] = r.codeInTypes[row.RelationID] || row.UserCode
		relation.Columns = append(relation.Columns, c)
		relation.ByName[c.Name] = c
		r.columns = append(r.columns, column{attribute{row.RelationID, row.Number}, c.Name})
	}

	return err
}

// representation holds the functions that format and parse a domain's values.
type representation struct{ toJSON, fromJSON, fromText Name }

// selectCasts selects representations. It omits casts whose function this login cannot execute.
const selectCasts = `
		select k.castsource as source, k.casttarget as target, n.nspname as schema, p.proname as name
		from pg_catalog.pg_cast k
		join pg_catalog.pg_proc p on p.oid = k.castfunc
		join pg_catalog.pg_namespace n on n.oid = p.pronamespace
		join pg_catalog.pg_type s on s.oid = k.castsource
		join pg_catalog.pg_type t on t.oid = k.casttarget
		where k.castcontext = 'i' and k.castmethod = 'f' and (s.typtype = 'd' or t.typtype = 'd')
			and pg_catalog.has_function_privilege(p.oid, 'execute')`

func (r *reader) readCasts(read pgx.Rows) error {
	type row struct {
		Source, Target uint32
		Schema, Name   string
	}
	rows, err := collect[row](read)
	casts := map[uint32]representation{}
	for _, row := range rows {
		function := Name{row.Schema, row.Name}
		from, to := casts[row.Source], casts[row.Target]
		switch {
		case row.Target == pgtype.JSONOID:
			from.toJSON = function
			casts[row.Source] = from
		case row.Source == pgtype.JSONOID:
			to.fromJSON = function
			casts[row.Target] = to
		case row.Source == pgtype.TextOID:
			to.fromText = function
			casts[row.Target] = to
		}
	}

	r.casts = casts
	return err
}
