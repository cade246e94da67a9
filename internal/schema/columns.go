package schema

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
)

// Column is a table column. Its type is a short name with modifiers and brackets; types in public
// are unqualified. Its default is in a request's form, "" without a default and for identity
// columns.
type Column struct {
	Name            string  `json:"name"`
	Type            string  `json:"type" example:"varchar(80)"`
	Position        int     `json:"position" minimum:"1" doc:"Ascending; the position of a dropped column is not used again."`
	NotNull         bool    `json:"notNull"`
	Unique          bool    `json:"unique" doc:"The column alone is unique, by a constraint, an index or the primary key."`
	Primary         bool    `json:"primary" doc:"The column is part of the primary key."`
	Foreign         bool    `json:"foreign" doc:"The column is a foreign key."`
	DefaultValue    string  `json:"defaultValue" doc:"In the form of a request; empty if there is none."`
	Identity        *string `json:"identity" nullable:"true" doc:"How an identity column is generated: always, or by default. Null for other columns."`
	ReferenceTable  *string `json:"referenceTable" nullable:"true" doc:"Full name of the referenced table."`
	ReferenceColumn *string `json:"referenceColumn" nullable:"true"`
}

// selectColumns selects table @id's columns with the inputs of [displayDefault]. If a column has
// several foreign keys, the one with the fewest columns wins, then the oldest. pg_get_expr gets the
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
		case a.attidentity when 'a' then 'always' when 'd' then 'by default' end as identity,
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

// ListColumns returns a table's columns in order, and their comments by name. It fails as
// [GetTable] does.
func ListColumns(
	ctx context.Context, q pg.Querier, project uuid.UUID, ref string,
) (columns []Column, comments map[string]string, err error) {
	t, err := GetTable(ctx, q, project, ref)
	if err != nil {
		return nil, nil, err
	}

	if columns, err = columnsOf(ctx, q, t.ID); err != nil {
		return nil, nil, err
	}

	comments, err = columnComments(ctx, q, t.ID)
	return columns, comments, err
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

// ColumnUpdate is a partial update of a column; nil fields stay unchanged.
type ColumnUpdate struct {
	Name         *string
	Type         *string
	Using        string // conversion to the new type, a key of [conversions]; "" means cast
	NotNull      *bool
	Unique       *bool
	DefaultValue *string // "" drops the default
	Comment      *string
}

// storedColumn is a column in the catalog.
type storedColumn struct {
	Column
	Identity  bool
	Generated bool
	table     Table
}

func (c storedColumn) alter(ctx context.Context, tx pgx.Tx, action string) error {
	return alter(ctx, tx, c.table, "alter column "+pg.Quote(c.Name)+" "+action)
}

// findColumn returns a column by any name, valid for a new column or not.
func findColumn(ctx context.Context, tx pgx.Tx, t Table, name string) (storedColumn, error) {
	columns, err := columnsOf(ctx, tx, t.ID)
	if err != nil {
		return storedColumn{}, err
	}

	i := slices.IndexFunc(columns, func(c Column) bool { return c.Name == name })
	if i < 0 {
		return storedColumn{}, fault.New(fault.NotFound, "there is no such column")
	}

	kind, err := pg.One[struct{ Identity, Generated bool }](ctx, tx, `
		select attidentity <> '' as identity, attgenerated <> '' as generated from pg_catalog.pg_attribute
		where attrelid = @table and attname = @name`, pgx.StrictNamedArgs{"table": t.ID, "name": name})
	return storedColumn{Column: columns[i], Identity: kind.Identity, Generated: kind.Generated, table: t}, err
}

// UpdateColumn changes a column in one transaction. It fails as [GetTable] does, with NotFound for
// an unknown column, with Conflict on name if the name is taken, with Conflict, code in_use, if
// dependent objects prevent the change, with Conflict, code busy, if the table is locked, and with
// Unprocessable on the field at fault.
//
// If rows prevent the change, the error has two extra members: failing counts these rows (1000
// means at least as many), and example is one row's key.
func UpdateColumn(
	ctx context.Context, owner *pgxpool.Pool, project uuid.UUID, ref, name string, u ColumnUpdate,
) (Column, error) {
	var column Column
	err := changeTable(ctx, owner, project, ref, func(ctx context.Context, tx pgx.Tx, t Table) error {
		c, err := findColumn(ctx, tx, t, name)
		if err != nil {
			return err
		}

		if err := u.validate(c); err != nil {
			return err
		}

		steps := []func(context.Context, pgx.Tx, storedColumn) error{
			u.updateType, u.updateDefault, u.updateNotNull, u.updateUnique, u.updateName,
		}
		for _, step := range steps {
			if err := step(ctx, tx, c); err != nil {
				return err
			}
		}

		columns, err := columnsOf(ctx, tx, t.ID)
		for _, current := range columns {
			if current.Position == c.Position {
				column = current
			}
		}

		return err
	})

	return column, err
}

// validate checks the update without further queries.
func (u ColumnUpdate) validate(c storedColumn) error {
	if u.Name != nil && *u.Name != c.Name {
		if err := checkName(fault.Unprocessable, "name", *u.Name); err != nil {
			return err
		}

		if slices.Contains(systemColumns, *u.Name) {
			return fault.OnField(fault.Unprocessable, "name", "reserved",
				"is reserved for a system column")
		}
	}

	if _, ok := conversions[u.Using]; !ok && u.Using != "" {
		return fault.OnField(fault.Unprocessable, "using", "not_allowed", "must be one of %s",
			strings.Join(slices.Sorted(maps.Keys(conversions)), ", "))
	}
	if u.Using != "" && u.Type == nil {
		return fault.OnField(fault.Unprocessable, "using", "not_applicable", "requires a type")
	}
	if u.Using != "" && c.Generated {
		return fault.OnField(fault.Unprocessable, "using", "not_applicable", "is not allowed for a generated column")
	}
	if u.DefaultValue != nil && (c.Identity || c.Generated) {
		return fault.OnField(fault.Unprocessable, "defaultValue", "not_applicable",
			"is not allowed for an identity or generated column")
	}
	if u.Comment != nil {
		return checkComment("comment", *u.Comment)
	}

	return nil
}

// DeleteColumn drops a column and returns the dependents dropped with it. It fails as
// [DeleteTable] does, and with NotFound for an unknown column.
func DeleteColumn(
	ctx context.Context, owner *pgxpool.Pool, project uuid.UUID, ref, name string, cascade bool,
) (Column, []Dependent, error) {
	var column Column
	var dependents []Dependent
	err := changeTable(ctx, owner, project, ref, func(ctx context.Context, tx pgx.Tx, t Table) error {
		c, err := findColumn(ctx, tx, t, name)
		if err != nil {
			return err
		}

		column = c.Column
		dependents, err = drop(ctx, tx, "alter table "+pg.Quote(t.Schema, t.Name)+" drop column "+pg.Quote(name),
			object{"pg_class", t.ID, int16(c.Position)}, cascade)
		return err
	})

	return column, dependents, err
}

// columnComments returns the comments of a table's columns by column name.
func columnComments(ctx context.Context, q pg.Querier, table uint32) (map[string]string, error) {
	all, err := pg.All[struct{ Name, Comment string }](ctx, q, `
		select a.attname as name, d.description as comment
		from pg_catalog.pg_attribute a
		join pg_catalog.pg_description d on d.objoid = a.attrelid and d.objsubid = a.attnum
			and d.classoid = 'pg_catalog.pg_class'::pg_catalog.regclass
		where a.attrelid = @table and a.attnum > 0 and not a.attisdropped`, pgx.StrictNamedArgs{"table": table})

	comments := make(map[string]string, len(all))
	for _, c := range all {
		comments[c.Name] = c.Comment
	}

	return comments, err
}
