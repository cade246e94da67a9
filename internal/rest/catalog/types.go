package catalog

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/pg"
)

// Type is an enum, a domain, a composite type, or a type with its own conversion to JSON.
type Type struct {
	Name
	Type       string // SQL text, as in the type's columns and parameters
	Kind       byte   // pg_type.typtype
	Values     []string
	Base       string      // a domain's base type, through domains over domains, without length
	Attributes []Parameter // a composite type's attributes
	Row        bool        // composite type for a relation's rows, which has the relation's name
	JSON       bool        // a cast converts it to JSON
}

// ReadTypes returns the types in all schemas but PostgreSQL's own, by schema and name. They are not
// part of a [Catalog]: only generated descriptions need them, requests do not.
func ReadTypes(ctx context.Context, q pg.Querier) ([]Type, error) {
	type row struct {
		Schema, Name, Type, Base string
		Kind                     byte
		Labels, Names, Types     []string
		Row, JSON                bool
	}

	rows, err := pg.All[row](ctx, q, `
		with recursive `+domains+`
		select n.nspname as schema, t.typname as name, pg_catalog.format_type(t.oid, -1) as type, t.typtype as kind,
			array(select e.enumlabel::text from pg_catalog.pg_enum e
				where e.enumtypid = t.oid order by e.enumsortorder) as labels,
			case when domain.id is null then '' else pg_catalog.format_type(domain.base, -1) end as base,
			array(select a.attname::text from pg_catalog.pg_attribute a
				where a.attrelid = t.typrelid and a.attnum > 0 and not a.attisdropped order by a.attnum) as names,
			array(select pg_catalog.format_type(a.atttypid, -1) from pg_catalog.pg_attribute a
				where a.attrelid = t.typrelid and a.attnum > 0 and not a.attisdropped order by a.attnum) as types,
			coalesce(c.relkind <> 'c', false) as row,
			exists (select from pg_catalog.pg_cast conversion
				where conversion.castsource = t.oid and conversion.casttarget = 'json'::pg_catalog.regtype
					and conversion.castmethod = 'f') as json
		from pg_catalog.pg_type t
		join pg_catalog.pg_namespace n on n.oid = t.typnamespace
		left join domains domain on domain.id = t.oid
		left join pg_catalog.pg_class c on c.oid = t.typrelid
		where t.typtype in ('b', 'c', 'd', 'e') and t.typcategory <> 'A'
			and n.nspname not in ('pg_catalog', 'information_schema', 'pg_toast')
		order by n.nspname, t.typname`)

	types := make([]Type, len(rows))
	for i, r := range rows {
		types[i] = Type{Name: Name{r.Schema, r.Name}, Type: r.Type, Kind: r.Kind, Values: r.Labels, Base: r.Base,
			Row: r.Row, JSON: r.JSON}
		for n, name := range r.Names {
			types[i].Attributes = append(types[i].Attributes, Parameter{Name: name, Type: r.Types[n]})
		}
	}

	return types, err
}

// ReadComputed returns the functions in the schemas whose only parameter is an unnamed row.
// Requests can't call them, but select them as a column of the row or embed them.
func ReadComputed(ctx context.Context, q pg.Querier, schemas []string) ([]*Function, error) {
	rows, err := pg.All[functionRow](ctx, q, selectFunctions, pgx.StrictNamedArgs{"schemas": schemas})
	var functions []*Function
	for _, row := range rows {
		if f := row.function(nil); row.ArgumentID != 0 && !callable(f.Params) {
			functions = append(functions, f)
		}
	}

	return functions, err
}
