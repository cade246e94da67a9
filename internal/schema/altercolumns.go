package schema

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"socle/internal/fault"
	"socle/internal/pg"
)

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

// conversions are the SQL conversions of a value v to a type.
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

// storedColumn is a column as the catalog has it.
type storedColumn struct {
	Column
	Identity  bool
	Generated bool
	table     Table
}

func (c storedColumn) alter(ctx context.Context, tx pgx.Tx, action string) error {
	return alter(ctx, tx, c.table, "alter column "+pg.Quote(c.Name)+" "+action)
}

// findColumn returns a column of a table by any name, valid for a new column or not.
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
// If rows prevent the change, the error has two extra members: failing is the number of such rows
// (1000 means at least as many), and example is the key of one of them.
func UpdateColumn(
	ctx context.Context, owner *pgxpool.Pool, project uuid.UUID, ref, name string, u ColumnUpdate,
) (Column, error) {
	var changed Column
	err := changeTable(ctx, owner, project, ref, func(ctx context.Context, tx pgx.Tx, t Table) error {
		c, err := findColumn(ctx, tx, t, name)
		if err != nil {
			return err
		}

		if err := u.check(c); err != nil {
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
		for _, after := range columns {
			if after.Position == c.Position {
				changed = after
			}
		}

		return err
	})

	return changed, err
}

// check validates the update without further queries.
func (u ColumnUpdate) check(c storedColumn) error {
	if u.Name != nil && *u.Name != c.Name {
		if err := checkName(fault.Unprocessable, "name", *u.Name); err != nil {
			return err
		}

		if slices.Contains(systemColumns, *u.Name) {
			return fault.OnField(fault.Unprocessable, "name", "reserved",
				"is a name that the database keeps for itself")
		}
	}

	if _, ok := conversions[u.Using]; !ok && u.Using != "" {
		return fault.OnField(fault.Unprocessable, "using", "not_allowed", "must be one of %s",
			strings.Join(slices.Sorted(maps.Keys(conversions)), ", "))
	}
	if u.Using != "" && u.Type == nil {
		return fault.OnField(fault.Unprocessable, "using", "not_applicable", "means nothing without a type")
	}
	if u.DefaultValue != nil && (c.Identity || c.Generated) {
		return fault.OnField(fault.Unprocessable, "defaultValue", "not_applicable",
			"can't be for a column that counts by itself or is computed")
	}
	if u.Comment != nil {
		return checkComment("comment", *u.Comment)
	}

	return nil
}

// updateType changes the type. PostgreSQL casts the default; if it can't, the default is parsed
// again for the new type.
func (u ColumnUpdate) updateType(ctx context.Context, tx pgx.Tx, c storedColumn) error {
	if u.Type == nil {
		return nil
	}

	types := newTypes(tx)
	to, err := types.getNonSerial(ctx, "type", *u.Type)
	if err != nil {
		return err
	}

	// The type has no modifier: a cast to varchar(3) would truncate silently, but the assignment
	// after it fails.
	unmodified, err := pg.Value[string](ctx, tx, `select pg_catalog.format_type(@type::oid, -1)`,
		pgx.StrictNamedArgs{"type": to.OID})
	if err != nil {
		return err
	}

	using := conversions["cast"]
	if u.Using != "" {
		using = conversions[u.Using]
	}

	if u.DefaultValue != nil && c.DefaultValue != "" {
		if err := c.alter(ctx, tx, "drop default"); err != nil {
			return translate(err, nil)
		}
	}

	action := "type " + to.SQL + " using " + using(pg.Quote(c.Name), unmodified)
	err = inSavepoint(ctx, tx, func(part pgx.Tx) error { return c.alter(ctx, part, action) })
	// datatype_mismatch, of the default
	if pg.State(err) == "42804" && u.DefaultValue == nil && c.DefaultValue != "" {
		value, checkErr := types.checkDefault(ctx, "defaultValue", c.DefaultValue, to)
		if checkErr != nil {
			return checkErr
		}

		err = inSavepoint(ctx, tx, func(part pgx.Tx) error {
			if err := c.alter(ctx, part, "drop default"); err != nil {
				return err
			}
			if err := c.alter(ctx, part, action); err != nil {
				return err
			}

			return c.alter(ctx, part, "set default "+value)
		})
	}

	state := pg.State(err)
	if state != "" && blamesValue(state) {
		failing, checkErr := c.failingRows(ctx, tx, to, using("r.v", unmodified))
		if checkErr != nil {
			return checkErr
		}

		return failing.Because(err)
	}

	return translate(err, explainType)
}

// inSavepoint runs f in a savepoint, so that its failure does not abort tx.
func inSavepoint(ctx context.Context, tx pgx.Tx, f func(part pgx.Tx) error) error {
	return pgx.BeginFunc(ctx, tx, f)
}

// blamesValue reports whether a row's value made a change of type fail: invalid data, a constraint
// of a domain, or an exception of a function that a user defined as a cast.
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
			"is one that no cast leads to from the column's, or not in this way: choose another using")
		// feature_not_supported: used by a view, rule or policy; part of a partitioned or inherited
		// table
	case "0A000", "42P16":
		return fault.New(fault.Conflict, "a view, a policy, a trigger or a partition depends on the column's type").
			WithCode("in_use")
		// foreign keys, checks, indexes and generated columns that do not accept the type
	case "42804", "42883", "42704", "42P17", "42830":
		return fault.OnField(fault.Unprocessable, "type", "invalid_type",
			"does not go with the column's constraints, indexes, or keys that refer to it")
	case "22023", "42601": // type not valid for an identity column
		return fault.OnField(fault.Unprocessable, "type", "invalid_type", "can't be the type of this column")
	case "23505": // unique_violation
		return fault.OnField(fault.Unprocessable, "type", "not_unique",
			"can't be, for rows would have the same value in a unique column")
	case "23503": // foreign_key_violation
		return fault.OnField(fault.Unprocessable, "type", "not_found", "can't be, for rows would refer to nothing")
	}

	return nil
}

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

	found, err := pg.One[struct {
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
		"can't be, for there are rows whose value is none of that type")

	example := map[string]string{}
	if err := json.Unmarshal([]byte(found.Example), &example); err != nil {
		return nil, err
	}

	failing.Extra = map[string]any{"failing": found.Failing, "example": example}
	return failing, nil
}
