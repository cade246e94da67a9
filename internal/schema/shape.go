package schema

import (
	"context"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"socle/internal/fault"
	"socle/internal/pg"
)

// changeTable is [changeNamed] for the table of ref, which it locks exclusively. It fails as
// [GetTable] does, and with Conflict, code busy, if the table is locked.
func changeTable(
	ctx context.Context, owner *pgxpool.Pool, project uuid.UUID, ref string,
	f func(ctx context.Context, tx pgx.Tx, t Table) error,
) error {
	return changeNamed(ctx, owner, func(ctx context.Context, tx pgx.Tx) error {
		t, err := GetTable(ctx, tx, project, ref)
		if err != nil {
			return err
		}

		if err := lock(ctx, tx, t); err != nil {
			return err
		}

		return f(ctx, tx, t)
	})
}

// alter runs an ALTER TABLE statement.
func alter(ctx context.Context, tx pgx.Tx, t Table, action string) error {
	return execute(ctx, tx, "alter table "+pg.Quote(t.Schema, t.Name)+" "+action)
}

// comment sets the comment of the object that sql names; "" removes it.
func comment(ctx context.Context, tx pgx.Tx, sql, text string) error {
	return execute(ctx, tx, "comment on "+sql+" is "+pg.Literal(text))
}

const maxComment = 10_000 // bytes

func checkComment(field, text string) error {
	if len(text) > maxComment || !storable(text) {
		return fault.OnField(fault.Unprocessable, field, "invalid_value",
			"must be text of at most %d bytes without a NUL", maxComment)
	}

	return nil
}

// requireConfirmation fails with Unprocessable on confirm unless the client confirmed a step that
// opens data.
func requireConfirmation(confirm bool, what string) error {
	if confirm {
		return nil
	}
	return fault.OnField(fault.Unprocessable, "confirm", "confirmation_required", "must be true, for this %s", what)
}

// columnNames returns the names of a table's columns in order.
func columnNames(ctx context.Context, q pg.Querier, table uint32) ([]string, error) {
	return pg.Values[string](ctx, q, `
		select attname from pg_catalog.pg_attribute where attrelid = @table and attnum > 0 and not attisdropped order by attnum`,
		pgx.StrictNamedArgs{"table": table})
}

// quoted returns names as an SQL list.
func quoted(names []string) string {
	all := make([]string, len(names))
	for i, name := range names {
		all[i] = pg.Quote(name)
	}

	return strings.Join(all, ", ")
}

// TableDetails are the properties of a table that [Table] does not have.
type TableDetails struct {
	Comment          string   `json:"comment"`
	RowLevelSecurity bool     `json:"rowLevelSecurity" doc:"Whether policies decide which rows the project's own users see."`
	PrimaryKey       []string `json:"primaryKey" nullable:"false" doc:"Its columns, in the key's order."`
}

// GetTableDetails returns the details of a table, or the zero value if it was dropped.
func GetTableDetails(ctx context.Context, q pg.Querier, table uint32) (TableDetails, error) {
	d, err := pg.One[TableDetails](ctx, q, `
		select coalesce(pg_catalog.obj_description(c.oid, 'pg_class'), '') as comment, c.relrowsecurity as row_level_security,
			coalesce((select pg_catalog.array_agg(a.attname::text order by k.n)
				from pg_catalog.pg_index i
				cross join lateral pg_catalog.unnest(i.indkey::int2[]) with ordinality k(number, n)
				join pg_catalog.pg_attribute a on a.attrelid = c.oid and a.attnum = k.number
				where i.indrelid = c.oid and i.indisprimary and k.n <= i.indnkeyatts), '{}') as primary_key
		from pg_catalog.pg_class c where c.oid = @table`, pgx.StrictNamedArgs{"table": table})
	if fault.Is(err, fault.NotFound) {
		return TableDetails{PrimaryKey: []string{}}, nil
	}

	return d, err
}

// TableUpdate is a partial update of a table; nil fields stay unchanged.
type TableUpdate struct {
	Comment          *string
	RowLevelSecurity *bool
	Confirm          bool
}

// UpdateTable changes a table. It fails as [GetTable] does, with Unprocessable on confirm if row
// level security would be disabled without confirmation, and with Conflict, code busy, if the table
// is locked.
func UpdateTable(
	ctx context.Context, owner *pgxpool.Pool, project uuid.UUID, ref string, u TableUpdate,
) (Table, error) {
	var changed Table
	err := changeTable(ctx, owner, project, ref, func(ctx context.Context, tx pgx.Tx, t Table) error {
		changed = t

		if u.RowLevelSecurity != nil {
			action := "enable row level security"
			if !*u.RowLevelSecurity {
				if err := requireConfirmation(u.Confirm, "opens all rows to whoever may use the table"); err != nil {
					return err
				}
				action = "disable row level security"
			}

			if err := alter(ctx, tx, t, action); err != nil {
				return translate(err, nil)
			}
		}

		if u.Comment == nil {
			return nil
		}

		if err := checkComment("comment", *u.Comment); err != nil {
			return err
		}

		return translate(comment(ctx, tx, "table "+pg.Quote(t.Schema, t.Name), *u.Comment), nil)
	})

	return changed, err
}

// DeleteTable drops a table and returns the dependents that were dropped with it. It fails as
// [GetTable] does, with Conflict, code in_use and the member dependents, if other objects depend on
// it and cascade is not set, and with Conflict, code busy, if the table is locked.
func DeleteTable(
	ctx context.Context, owner *pgxpool.Pool, project uuid.UUID, ref string, cascade bool,
) (Table, []Dependent, error) {
	var deleted Table
	var dependents []Dependent
	err := changeTable(ctx, owner, project, ref, func(ctx context.Context, tx pgx.Tx, t Table) error {
		var err error
		deleted = t
		dependents, err = drop(ctx, tx, "drop table "+pg.Quote(t.Schema, t.Name), object{"pg_class", t.ID, 0}, cascade)
		return err
	})
	return deleted, dependents, err
}
