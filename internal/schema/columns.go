package schema

import (
	"context"

	"github.com/jackc/pgx/v5"

	"socle/internal/pg"
)

// Column is a column of a table. Its type is a short name with modifiers and brackets; types of
// public are unqualified. Its default is the value that a client would send for the same default.
// It is "" without a default and for identity columns.
type Column struct {
	Name            string  `json:"name"`
	Type            string  `json:"type" example:"varchar(80)"`
	Position        int     `json:"position" minimum:"1" doc:"Ascending in the table; the place of a dropped column stays empty."`
	NotNull         bool    `json:"notNull"`
	Unique          bool    `json:"unique" doc:"No two rows have the same value: a constraint, an index or the primary key on this column alone."`
	Primary         bool    `json:"primary" doc:"The primary key, or a part of it."`
	Foreign         bool    `json:"foreign" doc:"Refers to another column."`
	DefaultValue    string  `json:"defaultValue" doc:"As it would be sent; empty if there is none."`
	ReferenceTable  *string `json:"referenceTable" nullable:"true" doc:"Full name of the table referred to."`
	ReferenceColumn *string `json:"referenceColumn" nullable:"true"`
}

// selectColumns selects the columns of table @id with the inputs of [displayDefault]. Of several
// foreign keys it takes the one with the fewest columns, then the oldest. pg_get_expr gets the
// table only for generated columns, which alone refer to other columns: with a table, it loads all
// columns for each default.
const selectColumns = `
	select a.attname as name, shown.name as type, a.attnum as position,
		a.attnotnull or (t.typtype = 'd' and t.typnotnull) as not_null,
		exists (select from pg_catalog.pg_index i
			where i.indrelid = a.attrelid and i.indisunique and i.indisvalid and i.indnkeyatts = 1
				and i.indkey[0] = a.attnum and i.indpred is null) as unique,
		exists (select from pg_catalog.pg_index i
			where i.indrelid = a.attrelid and i.indisprimary and a.attnum = any (i.indkey[0:i.indnkeyatts - 1])) as primary,
		f.reference_table is not null as foreign, f.reference_table, f.reference_column,
		coalesce(pg_catalog.pg_get_expr(d.adbin, case when a.attgenerated <> '' then d.adrelid else 0 end), '') as default_value,
		array[pg_catalog.format_type(a.atttypid, -1), printed.full_name,
			coalesce(pg_catalog.format_type(nullif(t.typbasetype, 0), -1), '')] as own_types,
		t.typcategory = 'S' as textual
	from pg_catalog.pg_attribute a
	join pg_catalog.pg_type t on t.oid = a.atttypid
	left join pg_catalog.pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum
	left join lateral (
		select rn.nspname || '.' || rc.relname as reference_table, ra.attname as reference_column
		from pg_catalog.pg_constraint k
		join pg_catalog.pg_class rc on rc.oid = k.confrelid
		join pg_catalog.pg_namespace rn on rn.oid = rc.relnamespace
		join pg_catalog.pg_attribute ra on ra.attrelid = k.confrelid
			and ra.attnum = k.confkey[pg_catalog.array_position(k.conkey, a.attnum)]
		where k.conrelid = a.attrelid and k.contype = 'f' and a.attnum = any (k.conkey)
		order by pg_catalog.cardinality(k.conkey), k.oid limit 1
	) f on true
	cross join lateral (select pg_catalog.format_type(a.atttypid, a.atttypmod) as full_name) printed
	cross join lateral (select ` + displayType + ` as name) shown
	where a.attrelid = @id and a.attnum > 0 and not a.attisdropped
	order by a.attnum`

// ListColumns returns the columns, in order, of the table with a full name or an ID. It fails as
// [GetTable] does.
func ListColumns(ctx context.Context, q pg.Querier, ref string) ([]Column, error) {
	t, err := findTable(ctx, q, ref)
	if err != nil {
		return nil, err
	}

	return columnsOf(ctx, q, t.ID)
}

func columnsOf(ctx context.Context, q pg.Querier, table uint32) ([]Column, error) {
	type row struct {
		Column
		OwnTypes []string
		Textual  bool
	}

	rows, err := pg.All[row](ctx, q, selectColumns, pgx.StrictNamedArgs{"id": table})
	if err != nil {
		return nil, err
	}

	columns := make([]Column, len(rows))
	for i, r := range rows {
		c := r.Column
		c.Type = shortType(c.Type)
		c.DefaultValue = displayDefault(c.DefaultValue, r.OwnTypes, r.Textual)
		columns[i] = c
	}

	return columns, nil
}
