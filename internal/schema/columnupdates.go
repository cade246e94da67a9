package schema

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
)

const (
	maxFailing       = 1000
	castCheckTimeout = "5 s"
)

// failingRows counts the rows with a value that can't be converted to the type. It converts row by
// row and stops after [maxFailing] failures or [castCheckTimeout].
func (c storedColumn) failingRows(ctx context.Context, tx pgx.Tx, to dataType, value string) (*fault.Error, error) {
	details, err := GetTableDetails(ctx, tx, c.table.ID)
	if err != nil {
		return nil, err
	}

	key := "null::pg_catalog.text"
	if len(details.PrimaryKey) > 0 {
		var parts []string
		for _, name := range details.PrimaryKey {
			parts = append(parts, pg.Literal(name)+", c."+pg.Quote(name)+"::pg_catalog.text")
		}

		key = "pg_catalog.jsonb_build_object(" + strings.Join(parts, ", ") + ")::pg_catalog.text"
	}

	err = execute(ctx, tx, "do "+pg.Literal(`declare r record; v `+to.SQL+`; n pg_catalog.int8 := 0; k pg_catalog.text;
		began pg_catalog.timestamptz := pg_catalog.clock_timestamp();
		begin
			for r in select c.`+pg.Quote(c.Name)+` as v, `+key+` as k from `+pg.Quote(c.table.Schema, c.table.Name)+` c loop
				begin
					v := `+value+`;
				exception when others then
					n := n + 1;
					k := coalesce(k, r.k);
				end;
				exit when n >= `+strconv.Itoa(maxFailing)+` or pg_catalog.clock_timestamp() - began > '`+castCheckTimeout+`'::pg_catalog.interval;
			end loop;
			perform pg_catalog.set_config('socle.failing', n::pg_catalog.text, true), pg_catalog.set_config('socle.example', coalesce(k, '{}'), true);
		end`))
	if err != nil {
		return nil, translate(err, explainType)
	}

	result, err := pg.One[struct {
		Failing int64
		Example string
	}](
		ctx, tx,
		`select pg_catalog.current_setting('socle.failing')::int8 as failing, pg_catalog.current_setting('socle.example') as example`,
	)
	if err != nil {
		return nil, err
	}

	failing := fault.OnField(fault.Unprocessable, "type", "cast_fails",
		"can't be applied: some rows have values that can't be converted")

	example := map[string]string{}
	if err := json.Unmarshal([]byte(result.Example), &example); err != nil {
		return nil, err
	}

	failing.Extra = map[string]any{"failing": result.Failing, "example": example}
	return failing, nil
}

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
	target, err := types.getNonSerial(ctx, "type", text)
	if err != nil {
		return err
	}

	value, err := types.checkDefault(ctx, "defaultValue", *u.DefaultValue, target)
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
					"can't be false for a primary key or identity column")
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

	null := fault.OnField(fault.Unprocessable, "notNull", "null", "can't be true: some rows have no value").
		WithCause(err)
	null.Extra = map[string]any{"failing": n}

	return null
}

// updateUnique adds a unique constraint to the column, or drops all its unique constraints and
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
		ID                   uint32
		Constrained, Primary bool
	}](ctx, tx, `
		select r.relname as name, coalesce(k.oid, r.oid) as id, k.oid is not null as constrained, i.indisprimary as primary
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

		sql, target := "drop index "+pg.Quote(c.table.Schema, index.Name), object{"pg_class", index.ID, 0}
		if index.Constrained {
			sql = "alter table " + pg.Quote(c.table.Schema, c.table.Name) + " drop constraint " + pg.Quote(index.Name)
			target.Catalogue = "pg_constraint"
		}

		if _, err := drop(ctx, tx, sql, target, false); err != nil {
			return err
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
			return fault.OnField(fault.Conflict, "name", "already_exists", "is already used by a column of the table")
		case "42P16": // invalid_table_definition: inherited
			return explainDrop(state)
		}

		return nil
	})
}
