package schema

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
)

// maxColumns is PostgreSQL's limit per table.
const maxColumns = 1600

// NewColumn describes a column to create. The serial types make an identity column with the integer
// type. A column is a foreign key if Foreign is set or either reference field is set; then both are
// required.
type NewColumn struct {
	Name            string `json:"name" doc:"1 to 63 letters, digits or _, not starting with a digit."`
	Type            string `json:"type" doc:"A type of the database with modifiers and array brackets: varchar(80), numeric(10,2), text[], serial, an enum. The default schema is public." example:"varchar(80)"`
	NotNull         bool   `json:"notNull,omitempty" doc:"Requires a default if the table has rows."`
	Unique          bool   `json:"unique,omitempty"`
	Primary         bool   `json:"primary,omitempty" doc:"Implies notNull. Several primary columns of one request form a composite key."`
	Foreign         bool   `json:"foreign,omitempty" doc:"Requires referenceTable and referenceColumn, which imply it."`
	DefaultValue    string `json:"defaultValue,omitempty" nullable:"true" doc:"A value, a literal in SQL's single quotes, or one of now(), current_timestamp, localtimestamp, current_date, current_time, localtime, clock_timestamp(), statement_timestamp(), transaction_timestamp(), gen_random_uuid(). For text types a value with other signs than letters, digits, spaces and _-.:/@+#%&!?=~*^ needs quotes. Empty and null are no default."`
	ReferenceTable  string `json:"referenceTable,omitempty" nullable:"true" doc:"schema.table, or table for public.table."`
	ReferenceColumn string `json:"referenceColumn,omitempty" nullable:"true" doc:"A unique or primary key column of that table."`
	Comment         string `json:"comment,omitempty" nullable:"true" maxLength:"10000" doc:"Comment for people."`
}

// newColumn is a requested column with its position in the request and its SQL.
type newColumn struct {
	NewColumn
	prefix string // for field names in errors
	clause string // SQL definition: name, type, default, not null
}

func (c *newColumn) fault(kind fault.Kind, field, code, message string) *fault.Error {
	return fault.OnField(kind, c.prefix+field, code, "%s", message)
}

func (c *newColumn) foreign() bool {
	return c.Foreign || c.ReferenceTable != "" || c.ReferenceColumn != ""
}

// CreateColumns adds columns to a table in one transaction. It returns them in request order. It
// fails as [GetTable] does, with Conflict on a column's name or primary if the table already has
// such a column or a primary key, with Conflict, code busy, if the table is locked, and with
// Unprocessable on the field at fault.
func CreateColumns(
	ctx context.Context, owner *pgxpool.Pool, project uuid.UUID, ref string, columns []NewColumn,
) ([]Column, error) {
	var added []Column
	err := changeNamed(ctx, owner, func(ctx context.Context, tx pgx.Tx) error {
		t, err := GetTable(ctx, tx, project, ref)
		if err != nil {
			return err
		}

		requests, err := checkColumns(columns, checkName)
		if err != nil {
			return err
		}

		// before the lock, since it may run user code
		if err := resolveColumns(ctx, tx, requests); err != nil {
			return err
		}
		if err := lock(ctx, tx, t); err != nil {
			return err
		}

		for _, c := range requests {
			if err := execute(ctx, tx, "alter table "+pg.Quote(t.Schema, t.Name)+" add column "+c.clause); err != nil {
				return translate(err, c.explain)
			}
		}

		if err := addConstraints(ctx, tx, t, requests); err != nil {
			return err
		}

		added, err = lastColumns(ctx, tx, t, len(requests))
		return err
	})

	return added, err
}

// lastColumns returns a table's last n columns, in order.
func lastColumns(ctx context.Context, tx pgx.Tx, t Table, n int) ([]Column, error) {
	all, err := columnsOf(ctx, tx, t.ID)
	if err != nil {
		return nil, err
	}

	return all[len(all)-n:], nil
}

// explain translates an SQLSTATE from ADD COLUMN.
func (c *newColumn) explain(state string) *fault.Error {
	switch state {
	case "42701": // duplicate_column
		return c.fault(fault.Conflict, "name", "already_exists", "is already used by a column of the table")
	case "23502": // not_null_violation
		field := "type" // a domain's not null
		if c.NotNull {
			field = "notNull"
		} else if c.Primary {
			field = "primary"
		}

		return c.fault(fault.Unprocessable, field, "no_default", "requires a default, since the table has rows")
	case "54011": // too_many_columns
		return fault.OnField(fault.Unprocessable, "columns", "too_many",
			"would exceed the limit of %d columns per table", maxColumns)
	// invalid_table_definition, program_limit_exceeded, datatype_mismatch: in a child table
	case "42P16", "54000", "42804":
		return c.fault(fault.Unprocessable, "type", "invalid_type", "can't be the type of a column of this table")
	}

	if state[:2] == "22" || state == "23514" { // data exceptions, check_violation
		return c.fault(fault.Unprocessable, "defaultValue", "invalid_default", "is not a value of the column's type")
	}

	return nil
}

// nameCheck fails with a kind on a field unless a text is a valid name.
type nameCheck func(kind fault.Kind, field, name string) error

// checkColumns validates the columns without the database.
func checkColumns(columns []NewColumn, checkName nameCheck) ([]*newColumn, error) {
	if len(columns) == 0 {
		return nil, fault.OnField(fault.Unprocessable, "columns", "required", "must not be empty")
	}
	if len(columns) > maxColumns {
		return nil, fault.OnField(fault.Unprocessable, "columns", "too_many", "must be at most %d", maxColumns)
	}

	requests := make([]*newColumn, len(columns))
	names := make(map[string]bool, len(columns))
	for i, column := range columns {
		c := &newColumn{NewColumn: column, prefix: "columns." + strconv.Itoa(i) + "."}
		if err := checkName(fault.Unprocessable, c.prefix+"name", c.Name); err != nil {
			return nil, err
		}

		if slices.Contains(systemColumns, c.Name) {
			return nil, c.fault(fault.Unprocessable, "name", "reserved", "is reserved for a system column")
		}
		if names[c.Name] {
			return nil, c.fault(fault.Unprocessable, "name", "duplicate",
				"is a duplicate of an earlier column of the request")
		}

		names[c.Name] = true

		if err := c.checkReference(); err != nil {
			return nil, err
		}
		if err := checkComment(c.prefix+"comment", c.Comment); err != nil {
			return nil, err
		}

		requests[i] = c
	}

	return requests, nil
}

// checkReference validates the names in a foreign column's reference.
func (c *newColumn) checkReference() error {
	if !c.foreign() {
		return nil
	}
	if c.ReferenceTable == "" {
		return c.fault(fault.Unprocessable, "referenceTable", "required",
			"must name the referenced table")
	}
	if c.ReferenceColumn == "" {
		return c.fault(fault.Unprocessable, "referenceColumn", "required",
			"must name the referenced column")
	}
	if !pg.Storable(c.ReferenceColumn) || len(c.ReferenceColumn) > maxName {
		return c.fault(fault.Unprocessable, "referenceColumn", "invalid_format", "must be the name of a column")
	}

	return nil
}

// resolveColumns resolves the columns' types, checks their defaults and builds their clauses.
func resolveColumns(ctx context.Context, tx pgx.Tx, columns []*newColumn) error {
	types := newTypes(tx)
	for _, c := range columns {
		t, err := types.get(ctx, c.prefix+"type", c.Type)
		if err != nil {
			return err
		}

		value, err := types.checkDefault(ctx, c.prefix+"defaultValue", c.DefaultValue, t)
		if err != nil {
			return err
		}

		c.clause = pg.Quote(c.Name) + " " + t.SQL
		switch {
		case t.identity && value != "":
			return c.fault(fault.Unprocessable, "defaultValue", "not_applicable",
				"must be empty for an identity column")
		case t.identity:
			c.clause += " generated by default as identity"
		case value != "":
			c.clause += " default " + value
		}

		if c.NotNull || c.Primary || t.identity {
			c.clause += " not null"
		}
	}

	return nil
}

// addConstraints adds the comments and constraints for new columns, one statement each, so that an
// error identifies its field. References come last, since they may be to columns in the same
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
				"can't be true: the table already has a primary key")
		}

		return columns[0].explainUnique("primary", state)
	})
}

// explainUnique translates an SQLSTATE for an index on the column or on a key that includes it.
func (c *newColumn) explainUnique(field, state string) *fault.Error {
	switch state {
	case "23505": // unique_violation
		return c.fault(fault.Unprocessable, field, "not_unique",
			"can't be true: the table has rows that would have duplicate values")
	// undefined_object (no operator class), feature_not_supported (a key of a partitioned table)
	case "42704", "0A000":
		return c.fault(fault.Unprocessable, field, "not_supported", "is not supported for this type or table")
	case "54000", "54011": // program_limit_exceeded, too_many_columns
		return c.fault(fault.Unprocessable, field, "too_many",
			"is not possible for so many columns, or for such long values")
	}

	return nil
}

// addReference adds the column's foreign key.
func (c *newColumn) addReference(ctx context.Context, tx pgx.Tx, t Table) error {
	noTable := c.fault(fault.Unprocessable, "referenceTable", "not_found", "is not one of the project's tables")
	noColumn := c.fault(fault.Unprocessable, "referenceColumn", "not_found", "is not a column of the referenced table")

	target, err := namedTable(ctx, tx, c.ReferenceTable)
	if _, _, ok := splitName(c.ReferenceTable); !ok && fault.Is(err, fault.NotFound) {
		return c.fault(fault.Unprocessable, "referenceTable", "invalid_value",
			"must be the name of one of the project's tables")
	}
	if fault.Is(err, fault.NotFound) {
		return noTable.WithCause(err)
	}
	if err != nil {
		return err
	}

	exists, err := pg.Value[bool](ctx, tx, `
		select exists (select from pg_catalog.pg_attribute
			where attrelid = @table and attname = @column and attnum > 0 and not attisdropped)`,
		pgx.StrictNamedArgs{"table": target.ID, "column": c.ReferenceColumn})
	if err != nil {
		return err
	}

	if !exists {
		if err := checkName(fault.Unprocessable, c.prefix+"referenceColumn", c.ReferenceColumn); err != nil {
			return err
		}
		return noColumn
	}

	err = execute(ctx, tx, "alter table "+pg.Quote(t.Schema, t.Name)+" add foreign key ("+pg.Quote(c.Name)+
		") references "+pg.Quote(target.Schema, target.Name)+" ("+pg.Quote(c.ReferenceColumn)+")")
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
				"is neither unique nor the primary key of the referenced table")
			// datatype_mismatch, undefined_function (no comparison operator), undefined_object
		case "42804", "42883", "42704":
			return c.fault(fault.Unprocessable, "type", "invalid_type",
				"can't be compared with the type of the referenced column")
		case "23503": // foreign_key_violation
			return c.fault(fault.Unprocessable, "defaultValue", "not_found",
				"is not a value of the referenced column, and the table has rows")
		// insufficient_privilege, other persistence, no table
		case "42501", "42P16", "42809", "0A000":
			return c.fault(fault.Unprocessable, "referenceTable", "not_supported",
				"is not a table that this one can reference")
		}

		return nil
	})
}
