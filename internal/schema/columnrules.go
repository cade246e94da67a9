package schema

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"socle/internal/fault"
	"socle/internal/pg"
)

// updateDefault changes the default. It checks the value against the new type if that changes too.
func (u ColumnUpdate) updateDefault(ctx context.Context, tx pgx.Tx, c storedColumn) error {
	if u.DefaultValue == nil {
		return nil
	}

	text := c.Type
	if u.Type != nil {
		text = *u.Type
	}

	types := newTypes(tx)
	of, err := types.getNonSerial(ctx, "type", text)
	if err != nil {
		return err
	}

	value, err := types.checkDefault(ctx, "defaultValue", *u.DefaultValue, of)
	if err != nil {
		return err
	}

	action := "drop default"
	if value != "" {
		action = "set default " + value
	}

	return translate(c.alter(ctx, tx, action), nil)
}

// updateNotNull sets or drops the not null constraint.
func (u ColumnUpdate) updateNotNull(ctx context.Context, tx pgx.Tx, c storedColumn) error {
	if u.NotNull == nil {
		return nil
	}
	if !*u.NotNull {
		return translate(c.alter(ctx, tx, "drop not null"), func(state string) *fault.Error {
			switch state {
			// invalid_table_definition: part of the primary key; an identity column
			case "42P16", "55000", "42601":
				return fault.OnField(fault.Unprocessable, "notNull", "not_applicable",
					"can't be false for a column of the primary key, or one that counts by itself")
			}

			return nil
		})
	}

	err := inSavepoint(ctx, tx, func(part pgx.Tx) error { return c.alter(ctx, part, "set not null") })
	if pg.State(err) != "23502" { // not_null_violation
		return translate(err, nil)
	}

	n, countErr := pg.Value[int64](ctx, tx,
		"select count(*) from "+pg.Quote(c.table.Schema, c.table.Name)+" where "+pg.Quote(c.Name)+" is null")
	if countErr != nil {
		return countErr
	}

	null := fault.OnField(fault.Unprocessable, "notNull", "null", "can't be, for there are rows without a value").
		Because(err)
	null.Extra = map[string]any{"failing": n}

	return null
}

// updateUnique adds a unique constraint to the column, or drops all of its unique constraints and
// indexes.
func (u ColumnUpdate) updateUnique(ctx context.Context, tx pgx.Tx, c storedColumn) error {
	if u.Unique == nil || *u.Unique == c.Unique {
		return nil
	}
	if *u.Unique {
		return translate(alter(ctx, tx, c.table, "add unique ("+pg.Quote(c.Name)+")"), func(state string) *fault.Error {
			return (&newColumn{NewColumn: NewColumn{Name: c.Name}}).explainUnique("unique", state)
		})
	}

	all, err := pg.All[struct {
		Name                 string
		Constrained, Primary bool
	}](ctx, tx, `
		select r.relname as name, k.oid is not null as constrained, i.indisprimary as primary
		from pg_catalog.pg_index i
		join pg_catalog.pg_class r on r.oid = i.indexrelid
		left join pg_catalog.pg_constraint k on k.conindid = i.indexrelid and k.contype in ('u', 'p')
		where i.indrelid = @table and i.indisunique and i.indnkeyatts = 1 and i.indkey[0] = @column and i.indpred is null`,
		pgx.StrictNamedArgs{"table": c.table.ID, "column": c.Position})
	if err != nil {
		return err
	}

	for _, index := range all {
		if index.Primary {
			return fault.OnField(fault.Unprocessable, "unique", "not_applicable", "can't be false for the primary key")
		}

		sql := "drop index " + pg.Quote(c.table.Schema, index.Name)
		if index.Constrained {
			sql = "alter table " + pg.Quote(c.table.Schema, c.table.Name) + " drop constraint " + pg.Quote(index.Name)
		}

		if err := execute(ctx, tx, sql); err != nil {
			return translate(err, explainDrop)
		}
	}

	return nil
}

// updateName changes the comment and then the name. It runs last, since all other steps use the old
// name.
func (u ColumnUpdate) updateName(ctx context.Context, tx pgx.Tx, c storedColumn) error {
	if u.Comment != nil {
		if err := comment(ctx, tx, "column "+pg.Quote(c.table.Schema, c.table.Name, c.Name), *u.Comment); err != nil {
			return translate(err, nil)
		}
	}

	if u.Name == nil || *u.Name == c.Name {
		return nil
	}

	err := alter(ctx, tx, c.table, "rename column "+pg.Quote(c.Name)+" to "+pg.Quote(*u.Name))
	return translate(err, func(state string) *fault.Error {
		switch state {
		case "42701": // duplicate_column
			return fault.OnField(fault.Conflict, "name", "already_exists", "is the name of another column of the table")
		case "42P16": // invalid_table_definition: inherited
			return explainDrop(state)
		}

		return nil
	})
}

// DeleteColumn drops a column and returns the dependents that were dropped with it. It fails as
// [DeleteTable] does, and with NotFound for an unknown column.
func DeleteColumn(
	ctx context.Context, owner *pgxpool.Pool, project uuid.UUID, ref, name string, cascade bool,
) (Column, []Dependent, error) {
	var deleted Column
	var dependents []Dependent
	err := changeTable(ctx, owner, project, ref, func(ctx context.Context, tx pgx.Tx, t Table) error {
		c, err := findColumn(ctx, tx, t, name)
		if err != nil {
			return err
		}

		deleted = c.Column
		dependents, err = drop(ctx, tx, "alter table "+pg.Quote(t.Schema, t.Name)+" drop column "+pg.Quote(name),
			object{"pg_class", t.ID, int16(c.Position)}, cascade)
		return err
	})

	return deleted, dependents, err
}

// ColumnComments returns the comments of a table's columns by column name.
func ColumnComments(ctx context.Context, q pg.Querier, ref string) (map[string]string, error) {
	t, err := findTable(ctx, q, ref)
	if err != nil {
		return nil, err
	}

	all, err := pg.All[struct{ Name, Comment string }](ctx, q, `
		select a.attname as name, d.description as comment
		from pg_catalog.pg_attribute a
		join pg_catalog.pg_description d on d.objoid = a.attrelid and d.objsubid = a.attnum
			and d.classoid = 'pg_catalog.pg_class'::pg_catalog.regclass
		where a.attrelid = @table and a.attnum > 0 and not a.attisdropped`, pgx.StrictNamedArgs{"table": t.ID})

	comments := make(map[string]string, len(all))
	for _, c := range all {
		comments[c.Name] = c.Comment
	}

	return comments, err
}
