package schema

import (
	"context"
	"strings"

	"github.com/jackc/pgx/v5"

	"socle/internal/fault"
	"socle/internal/pg"
)

// addConstraints adds the comments and constraints of new columns, one statement each, so that an
// error identifies its field. References come last, since they may be to columns of the same
// request.
func addConstraints(ctx context.Context, tx pgx.Tx, t Table, columns []*newColumn) error {
	var key []*newColumn
	for _, c := range columns {
		if c.Primary {
			key = append(key, c)
		}
	}

	if err := addKey(ctx, tx, t, key); err != nil {
		return err
	}

	for _, c := range columns {
		if !c.Unique || c.Primary && len(key) == 1 { // that key is unique already
			continue
		}

		if err := execute(ctx, tx,
			"alter table "+pg.Quote(t.Schema, t.Name)+" add unique ("+pg.Quote(c.Name)+")"); err != nil {
			return translate(err, func(state string) *fault.Error { return c.explainUnique("unique", state) })
		}
	}

	for _, c := range columns {
		if c.foreign() {
			if err := c.addReference(ctx, tx, t); err != nil {
				return err
			}
		}

		if c.Comment != "" {
			if err := comment(ctx, tx, "column "+pg.Quote(t.Schema, t.Name, c.Name), c.Comment); err != nil {
				return err
			}
		}
	}

	return nil
}

// addKey makes the columns the primary key. Errors blame the first column.
func addKey(ctx context.Context, tx pgx.Tx, t Table, columns []*newColumn) error {
	if len(columns) == 0 {
		return nil
	}

	names := make([]string, len(columns))
	for i, c := range columns {
		names[i] = pg.Quote(c.Name)
	}

	err := execute(ctx, tx,
		"alter table "+pg.Quote(t.Schema, t.Name)+" add primary key ("+strings.Join(names, ", ")+")")
	return translate(err, func(state string) *fault.Error {
		if state == "42P16" { // invalid_table_definition
			return columns[0].fault(fault.Conflict, "primary", "already_exists",
				"can't be, for the table has a primary key")
		}

		return columns[0].explainUnique("primary", state)
	})
}

// explainUnique translates an SQLSTATE for an index on the column or on a key that includes it.
func (c *newColumn) explainUnique(field, state string) *fault.Error {
	switch state {
	case "23505": // unique_violation
		return c.fault(fault.Unprocessable, field, "not_unique",
			"can't be, for the table has rows that would have the same value")
	// undefined_object (no operator class), feature_not_supported (a key of a partitioned table)
	case "42704", "0A000":
		return c.fault(fault.Unprocessable, field, "not_supported", "can't be for this type, or for this table")
	case "54000", "54011": // program_limit_exceeded, too_many_columns
		return c.fault(fault.Unprocessable, field, "too_many", "can't be for so many columns, or so long values")
	}

	return nil
}

// addReference adds the column's foreign key.
func (c *newColumn) addReference(ctx context.Context, tx pgx.Tx, t Table) error {
	schema, table, _ := splitName(c.ReferenceTable)
	noTable := c.fault(fault.Unprocessable, "referenceTable", "not_found", "is not one of the project's tables")
	noColumn := c.fault(fault.Unprocessable, "referenceColumn", "not_found", "is not a column of that table")

	target, err := tableByName(ctx, tx, schema, table)
	if fault.Is(err, fault.NotFound) {
		return noTable.Because(err)
	}
	if err != nil {
		return err
	}

	found, err := pg.Value[bool](ctx, tx, `
		select exists (select from pg_catalog.pg_attribute
			where attrelid = @table and attname = @column and attnum > 0 and not attisdropped)`,
		pgx.StrictNamedArgs{"table": target.ID, "column": c.ReferenceColumn})
	if err != nil {
		return err
	}

	if !found {
		return noColumn
	}

	err = execute(ctx, tx, "alter table "+pg.Quote(t.Schema, t.Name)+" add foreign key ("+pg.Quote(c.Name)+
		") references "+pg.Quote(schema, table)+" ("+pg.Quote(c.ReferenceColumn)+")")
	return translate(err, func(state string) *fault.Error {
		switch state {
		case "42P01": // undefined_table: dropped concurrently
			return noTable
		case "42703": // undefined_column: dropped concurrently
			return noColumn
			// invalid_foreign_key: not unique; object_not_in_prerequisite_state: deferrable unique
			// constraint
		case "42830", "55000":
			return c.fault(fault.Unprocessable, "referenceColumn", "not_unique",
				"is neither unique nor the primary key of that table")
			// datatype_mismatch, undefined_function (no comparison operator), undefined_object
		case "42804", "42883", "42704":
			return c.fault(fault.Unprocessable, "type", "invalid_type",
				"can't be compared with the type of the column referred to")
		case "23503": // foreign_key_violation
			return c.fault(fault.Unprocessable, "defaultValue", "not_found",
				"is not a value of the column referred to, and the table has rows")
		// insufficient_privilege, other persistence, no table
		case "42501", "42P16", "42809", "0A000":
			return c.fault(fault.Unprocessable, "referenceTable", "not_supported",
				"is not a table that this one may refer to")
		}

		return nil
	})
}
