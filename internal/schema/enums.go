package schema

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/namespace"
	"github.com/socle-dev/socle/internal/pg"
)

// Enum is an enum type.
type Enum struct {
	ID     uint32   `json:"id"`
	Name   string   `json:"name"`
	Schema string   `json:"schema"`
	Values []string `json:"values" nullable:"false" doc:"In order."`
}

// maxEnumValue is PostgreSQL's limit, in bytes per enum value.
const maxEnumValue = 63

const userEnums = `
	from pg_catalog.pg_type t join pg_catalog.pg_namespace n on n.oid = t.typnamespace
	where t.typtype = 'e' and ` + userSchema

const selectEnums = `
	select t.oid as id, t.typname as name, n.nspname as schema,
		array(select e.enumlabel::text from pg_catalog.pg_enum e where e.enumtypid = t.oid order by e.enumsortorder) as values,
		count(*) over () as total` + userEnums

type enumRow struct {
	Enum
	Total int64
}

var enumSorts = map[string]string{"name": "t.typname", "schema": "n.nspname", "id": "t.oid"}

// ListEnums returns a page of enums, never nil, and the total number. Pages are sorted by name,
// schema or id; ties are broken by id.
func ListEnums(ctx context.Context, q pg.Querier, page pg.Page) ([]Enum, int64, error) {
	rows, err := pg.All[enumRow](ctx, q, selectEnums+page.Clause(enumSorts, "t.oid"), page.Args(nil))
	if err != nil {
		return nil, 0, err
	}

	enums := make([]Enum, len(rows))
	var total int64
	for i, r := range rows {
		enums[i], total = r.Enum, r.Total
	}

	if len(rows) == 0 && page.Number > 1 { // past the end, where no row has the total
		total, err = pg.Value[int64](ctx, q, "select count(*)"+userEnums)
	}

	return enums, total, err
}

// GetEnum returns the enum by full name: schema.enum, or enum for public.enum. It fails with
// Invalid on the field enum if the schema is reserved for the platform, and with NotFound for an
// unknown enum.
func GetEnum(ctx context.Context, q pg.Querier, ref string) (Enum, error) {
	schema, name, ok := strings.Cut(ref, ".")
	if !ok {
		schema, name = public, ref
	}

	if namespace.IsReserved(schema) || !pg.Storable(ref) {
		return Enum{}, fault.OnField(fault.Invalid, "enum", "invalid_value",
			"must be the name of one of the project's enums")
	}

	row, err := pg.One[enumRow](ctx, q, selectEnums+` and n.nspname = @schema and t.typname = @name`,
		pgx.StrictNamedArgs{"schema": schema, "name": name})
	if fault.Is(err, fault.NotFound) {
		return Enum{}, fault.New(fault.NotFound, "there is no such enum").WithCause(err)
	}

	return row.Enum, err
}

func (e Enum) sql() string { return pg.Quote(e.Schema, e.Name) }

// CreateEnum creates an enum. It fails with Invalid on schema if the schema is reserved for the
// platform, with Conflict on name if the name is taken, and with Unprocessable on the field at
// fault.
func CreateEnum(ctx context.Context, owner *pgxpool.Pool, schema, name string, values []string) (Enum, error) {
	if schema == "" {
		schema = public
	}

	if err := checkSchema(fault.Unprocessable, schema); err != nil {
		return Enum{}, err
	}
	if err := checkName(fault.Unprocessable, "name", name); err != nil {
		return Enum{}, err
	}

	literals := make([]string, len(values))
	for i, v := range values {
		field := "values." + strconv.Itoa(i)
		if err := checkEnumValue(field, v); err != nil {
			return Enum{}, err
		}

		if slices.Contains(values[:i], v) {
			return Enum{}, fault.OnField(fault.Unprocessable, field, "duplicate", "is a duplicate of an earlier value")
		}

		literals[i] = pg.Literal(v)
	}

	var enum Enum
	err := change(ctx, owner, func(ctx context.Context, tx pgx.Tx) error {
		err := execute(ctx, tx, "create type "+pg.Quote(schema, name)+" as enum ("+strings.Join(literals, ", ")+")")
		if err != nil {
			return translate(err, explainTable)
		}

		enum, err = GetEnum(ctx, tx, schema+"."+name)
		return err
	})

	return enum, err
}

func checkEnumValue(field, value string) error {
	if value == "" || len(value) > maxEnumValue || !pg.Storable(value) {
		return fault.OnField(fault.Unprocessable, field, "invalid_value", "must be 1 to %d bytes of text", maxEnumValue)
	}
	return nil
}

// changeEnum runs f for an enum and returns the new state.
func changeEnum(
	ctx context.Context, owner *pgxpool.Pool, ref string, f func(ctx context.Context, tx pgx.Tx, e Enum) error,
) (Enum, error) {
	var enum Enum
	err := changeNamed(ctx, owner, func(ctx context.Context, tx pgx.Tx) error {
		e, err := GetEnum(ctx, tx, ref)
		if err != nil {
			return err
		}

		if err := f(ctx, tx, e); err != nil {
			return err
		}

		enum, err = GetEnum(ctx, tx, ref)
		return err
	})

	return enum, err
}

// explainEnum translates the error from a change to an enum that existed when the change began.
func explainEnum(err error, field string) error {
	switch pg.State(err) {
	// undefined_object, invalid_schema_name; internal_error if dropped concurrently
	case "42704", "3F000", "XX000":
		return errConcurrentChange
	}

	return translate(err, func(state string) *fault.Error {
		switch state {
		case "42710", "23505": // duplicate_object; unique_violation if created concurrently
			return fault.OnField(fault.Conflict, field, "already_exists", "already is a value of the enum")
		case "22023": // invalid_parameter_value: renamed concurrently
			return fault.New(fault.NotFound, "there is no such value")
		}

		return nil
	})
}

// CreateEnumValue adds a value to an enum, at the end or next to another value. It fails as
// [GetEnum] does, with Conflict on value if the enum has it already, and with Unprocessable on the
// field at fault.
func CreateEnumValue(ctx context.Context, owner *pgxpool.Pool, ref, value, before, after string) (Enum, error) {
	return changeEnum(ctx, owner, ref, func(ctx context.Context, tx pgx.Tx, e Enum) error {
		if err := checkEnumValue("value", value); err != nil {
			return err
		}

		sql := "alter type " + e.sql() + " add value " + pg.Literal(value)

		if before != "" && after != "" {
			return fault.OnField(fault.Unprocessable, "after", "not_applicable", "can't be combined with before")
		}

		for field, neighbour := range map[string]string{"before": before, "after": after} {
			if neighbour == "" {
				continue
			}
			if !slices.Contains(e.Values, neighbour) {
				return fault.OnField(fault.Unprocessable, field, "not_found", "is not a value of the enum")
			}

			sql += " " + field + " " + pg.Literal(neighbour)
		}

		return explainEnum(execute(ctx, tx, sql), "value")
	})
}

// RenameEnumValue renames an enum value; the current name is accepted. It fails as [GetEnum]
// does, with NotFound for an unknown value, with Conflict on value if the enum has the new name
// already, and with Unprocessable on value if the new name is invalid.
func RenameEnumValue(ctx context.Context, owner *pgxpool.Pool, ref, value, to string) (Enum, error) {
	return changeEnum(ctx, owner, ref, func(ctx context.Context, tx pgx.Tx, e Enum) error {
		if !slices.Contains(e.Values, value) {
			return fault.New(fault.NotFound, "there is no such value")
		}

		if err := checkEnumValue("value", to); err != nil {
			return err
		}

		if value == to {
			return nil
		}

		return explainEnum(
			execute(ctx, tx, "alter type "+e.sql()+" rename value "+pg.Literal(value)+" to "+pg.Literal(to)), "value",
		)
	})
}

// DeleteEnum drops an enum. It fails as [GetEnum] does, and with Conflict, code in_use and the
// member dependents, if other objects depend on it.
func DeleteEnum(ctx context.Context, owner *pgxpool.Pool, ref string) (Enum, error) {
	var enum Enum
	err := changeNamed(ctx, owner, func(ctx context.Context, tx pgx.Tx) error {
		var err error
		if enum, err = GetEnum(ctx, tx, ref); err != nil {
			return err
		}

		_, err = drop(ctx, tx, "drop type "+enum.sql(), object{"pg_type", enum.ID, 0}, false)
		if fault.Is(err, fault.Conflict) {
			return err
		}

		return explainEnum(err, "")
	})

	return enum, err
}
