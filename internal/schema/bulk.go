package schema

import (
	"context"
	"strconv"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"socle/internal/fault"
	"socle/internal/pg"
)

// BulkColumn describes a column for import and export.
type BulkColumn struct {
	Name      string
	Plain     bool // type is numeric, boolean, date or time
	Generated bool // generated column
	Key       int  // position in the primary key, from 1; 0 if not part of it
}

// ApplySettings sets the session parameters that the statements of this package rely on, in a
// transaction of the owner.
func ApplySettings(ctx context.Context, tx pgx.Tx) error {
	_, err := tx.Exec(ctx, sessionSettings)
	return err
}

// LockTable finds the table of ref and locks it against changes and drops until the transaction
// ends. Rows may be written meanwhile. It fails as [GetTable] does, and with Conflict, code busy,
// if the table is locked.
func LockTable(ctx context.Context, tx pgx.Tx, project uuid.UUID, ref string) (Table, []BulkColumn, error) {
	t, err := GetTable(ctx, tx, project, ref)
	if err != nil {
		return Table{}, nil, err
	}

	err = execute(ctx, tx, "lock table "+pg.Quote(t.Schema, t.Name)+" in access share mode")
	switch pg.State(err) {
	case "42P01", "3F000", "42809": // undefined table or schema, another kind of thing
		return Table{}, nil, noTable().Because(err)
	}

	if err != nil {
		return Table{}, nil, pg.Fault(translate(err, nil))
	}

	locked, err := findTable(ctx, tx, strconv.FormatUint(uint64(t.ID), 10))
	if err == nil && locked.FullName() != t.FullName() {
		err = fault.New(fault.Conflict, "others change it at the same time; try again").WithCode("busy")
	}
	if err != nil {
		return Table{}, nil, err
	}

	columns, err := bulkColumns(ctx, tx, t.ID)
	return t, columns, err
}

func bulkColumns(ctx context.Context, tx pgx.Tx, id uint32) ([]BulkColumn, error) {
	return pg.All[BulkColumn](ctx, tx, `
		select a.attname as name, t.typcategory in ('N', 'B', 'D', 'T') as plain, a.attgenerated <> '' as generated,
			coalesce((select k.n from pg_catalog.pg_index i, pg_catalog.unnest(i.indkey::int2[]) with ordinality k(number, n)
				where i.indrelid = a.attrelid and i.indisprimary and k.number = a.attnum and k.n <= i.indnkeyatts), 0)::int as key
		from pg_catalog.pg_attribute a join pg_catalog.pg_type t on t.oid = a.atttypid
		where a.attrelid = @id and a.attnum > 0 and not a.attisdropped
		order by a.attnum`, pgx.StrictNamedArgs{"id": id})
}

// CreatePlainTable creates a table without constraints in tx, with row level security enabled. It
// fails as [CreateTable] does.
func CreatePlainTable(ctx context.Context, tx pgx.Tx, n NewTable) (Table, error) {
	if n.Schema == "" {
		n.Schema = public
	}

	if err := checkSchema(fault.Invalid, n.Schema); err != nil {
		return Table{}, err
	}
	if err := checkName(fault.Invalid, "name", n.Name); err != nil {
		return Table{}, err
	}

	columns, err := checkColumns(n.Columns)
	if err != nil {
		return Table{}, err
	}

	if err := resolveColumns(ctx, tx, columns); err != nil {
		return Table{}, err
	}

	sql := "create table " + pg.Quote(n.Schema, n.Name) + " ("
	for i, c := range columns {
		if i > 0 {
			sql += ", "
		}
		sql += c.clause
	}

	if err := execute(ctx, tx, sql+")"); err != nil {
		return Table{}, translate(err, explainTable)
	}
	if err := execute(ctx, tx, "alter table "+pg.Quote(n.Schema, n.Name)+" enable row level security"); err != nil {
		return Table{}, err
	}

	return tableByName(ctx, tx, n.Schema, n.Name)
}
