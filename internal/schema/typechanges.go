package schema

import (
	"context"
	"errors"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
)

// conversions are SQL conversions from a value v to a type.
var conversions = map[string]func(v, to string) string{
	"cast":    func(v, to string) string { return v + "::" + to },
	"trimmed": func(v, to string) string { return "pg_catalog.btrim(" + v + "::pg_catalog.text)::" + to },
	"empty_as_null": func(v, to string) string {
		return "nullif(pg_catalog.btrim(" + v + "::pg_catalog.text), '')::" + to
	},
	"epoch_seconds": func(v, to string) string {
		return "pg_catalog.to_timestamp(" + v + "::pg_catalog.float8)::" + to
	},
	"epoch_milliseconds": func(v, to string) string {
		return "pg_catalog.to_timestamp(" + v + "::pg_catalog.float8 / 1000)::" + to
	},
	"json":        func(v, to string) string { return "pg_catalog.to_jsonb(" + v + ")::" + to },
	"one_element": func(v, to string) string { return "array[" + v + "]::" + to },
}

// identityTypes are the types that an identity column can have.
var identityTypes = []uint32{pgtype.Int2OID, pgtype.Int4OID, pgtype.Int8OID}

// updateType changes the type, and the default with it.
func (u ColumnUpdate) updateType(ctx context.Context, tx pgx.Tx, c storedColumn) error {
	if u.Type == nil {
		return nil
	}

	types := newTypes(tx)
	to, err := types.getNonSerial(ctx, "type", *u.Type)
	if err != nil {
		return err
	}
	if c.Identity && !slices.Contains(identityTypes, to.OID) {
		return fault.OnField(fault.Unprocessable, "type", "invalid_type",
			"must be smallint, integer or bigint for an identity column")
	}

	// The type has no modifier: a cast to varchar(3) would truncate silently, but the assignment
	// after it fails.
	bareType, err := pg.Value[string](ctx, tx, `select pg_catalog.format_type(@type::oid, -1)`,
		pgx.StrictNamedArgs{"type": to.OID})
	if err != nil {
		return err
	}

	using := conversions["cast"]
	if u.Using != "" {
		using = conversions[u.Using]
	}

	value, err := u.convertDefault(ctx, types, c, to, using, bareType)
	if err != nil {
		return err
	}

	action := "type " + to.SQL
	if !c.Generated { // its values are computed anew
		action += " using " + using(pg.Quote(c.Name), bareType)
	}

	err = inSavepoint(ctx, tx, func(part pgx.Tx) error { return c.alter(ctx, part, action) })
	if err == nil && value != "" {
		return translate(c.alter(ctx, tx, "set default "+value), nil)
	}

	state := pg.State(err)
	// datatype_mismatch, from an expression that is the default, or from a foreign key
	if state == "42804" && u.DefaultValue == nil && c.DefaultValue != "" && !c.Generated && value == "" {
		if c.changesWithoutDefault(ctx, tx, action) {
			return unconverted().WithCause(err)
		}
	}

	if state != "" && blamesValue(state) {
		if c.Generated {
			return fault.OnField(fault.Unprocessable, "type", "invalid_type",
				"can't hold all values of the generated column").WithCause(err)
		}

		failing, checkErr := c.failingRows(ctx, tx, to, using("r.v", bareType))
		if checkErr != nil {
			return checkErr
		}

		return failing.WithCause(err)
	}

	if state == "" {
		return err
	}

	return c.explainDependents(ctx, tx, err)
}

// changesWithoutDefault reports whether a change succeeds for the column without its default. It
// undoes both.
func (c storedColumn) changesWithoutDefault(ctx context.Context, tx pgx.Tx, action string) bool {
	errUndo := errors.New("undo")
	err := inSavepoint(ctx, tx, func(part pgx.Tx) error {
		if err := c.alter(ctx, part, "drop default"); err != nil {
			return err
		}
		if err := c.alter(ctx, part, action); err != nil {
			return err
		}

		return errUndo
	})

	return errors.Is(err, errUndo)
}

func unconverted() *fault.Error {
	return badDefault("defaultValue", "can't be converted to the type: give another one, or an empty one")
}

// explainDependents translates the error from a type change and adds the dependents to blame.
func (c storedColumn) explainDependents(ctx context.Context, tx pgx.Tx, cause error) error {
	f := explainType(pg.State(cause))
	if f == nil {
		return translate(cause, nil)
	}

	inUse := f.CodeWord() == "in_use"
	if !inUse && f.CodeWord() != "invalid_type" {
		return f.WithCause(cause)
	}

	dependents, err := dependentsOfType(ctx, tx, c, !inUse)
	if err != nil {
		return err
	}
	if len(dependents) > 0 {
		f = withDependents(f, dependents)
	}

	return f.WithCause(cause)
}

// convertDefault drops the default if it is a constant or a call, and returns it as SQL for the new
// type: a constant is converted like the column's values. Otherwise it returns "", and PostgreSQL
// casts the expression.
func (u ColumnUpdate) convertDefault(
	ctx context.Context, types *types, c storedColumn, to dataType, using func(v, to string) string, bareType string,
) (string, error) {
	if c.Generated || c.Identity {
		return "", nil
	}

	expression, err := pg.Value[string](ctx, types.tx, `
		select coalesce(pg_catalog.max(pg_catalog.pg_get_expr(adbin, 0)), '') from pg_catalog.pg_attrdef
		where adrelid = @table and adnum = @column`, pgx.StrictNamedArgs{"table": c.table.ID, "column": c.Position})
	if err != nil || expression == "" {
		return "", err
	}

	call, isCall := parseCall(expression)
	value := ""
	switch {
	case u.DefaultValue != nil, isNull(expression):
	case isCall:
		if types.checkCall(ctx, "defaultValue", call, to) != nil {
			return "", nil
		}
		value = call.call
	case isConstant(expression):
		if value, err = types.convert(ctx, using("("+expression+")", bareType), to); err != nil {
			return "", err
		}
	default:
		return "", nil
	}

	return value, translate(c.alter(ctx, types.tx, "drop default"), nil)
}

// convert returns a constant expression's literal.
func (t *types) convert(ctx context.Context, expression string, to dataType) (string, error) {
	var text *string
	err := inSavepoint(ctx, t.tx, func(part pgx.Tx) (err error) {
		text, err = pg.Value[*string](ctx, part, "select ("+expression+")::pg_catalog.text")
		return err
	})
	switch state := pg.State(err); {
	case state == "42846": // cannot_coerce, which the rows' values meet too
		return "", explainType(state).WithCause(err)
	case state != "" && blamesUser(state):
		return "", unconverted().WithCause(err)
	}
	if err != nil || text == nil {
		return "", err
	}

	return pg.Literal(*text), t.checkValue(ctx, "defaultValue", *text, to)
}

// inSavepoint runs f in a savepoint, so that a failure does not abort tx.
func inSavepoint(ctx context.Context, tx pgx.Tx, f func(part pgx.Tx) error) error {
	return pgx.BeginFunc(ctx, tx, f)
}

// blamesValue reports whether a row's value made a type change fail: invalid data, a domain
// constraint, or an exception from a function that a user defined as a cast.
func blamesValue(state string) bool {
	switch state[:2] {
	case "22", "P0", "38", "39":
		return true
	}

	return state == "23514" || state == "23502"
}

func explainType(state string) *fault.Error {
	switch state {
	case "42846": // cannot_coerce
		return fault.OnField(fault.Unprocessable, "type", "no_cast",
			"can't be cast to from the column's type: choose another using")
		// feature_not_supported: used by a view, rule or policy, or by a column of the row type;
		// invalid_table_definition: inherited; wrong_object_type: the table has a type
	case "0A000", "42P16", "42809":
		return fault.New(fault.Conflict, "other objects depend on the column's type: delete them, change the type, "+
			"and create them again").WithCode("in_use")
		// foreign keys, checks, indexes and generated columns that do not accept the type
	case "42804", "42883", "42704", "42P17", "42830":
		return fault.OnField(fault.Unprocessable, "type", "invalid_type",
			"conflicts with the column's constraints, indexes or foreign keys")
	case "22023", "42601": // type not valid for an identity column
		return fault.OnField(fault.Unprocessable, "type", "invalid_type", "can't be the type of this column")
	case "23505": // unique_violation
		return fault.OnField(fault.Unprocessable, "type", "not_unique",
			"would create duplicate values in a unique column")
	case "23503": // foreign_key_violation
		return fault.OnField(fault.Unprocessable, "type", "not_found", "would break a foreign key")
	}

	return nil
}
