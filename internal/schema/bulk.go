package schema

import (
	"context"
	"strconv"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
)

// BulkColumn describes a column for import and export.
type BulkColumn struct {
	Name      string
	Type      string   // as in a cast
	Plain     bool     // type is numeric, boolean, date or time
	Number    bool     // type is numeric
	Date      bool     // type is a date or time
	JSON      JSONForm // form of the type's values in JSON
	Generated bool     // generated column
	Key       int      // position in the primary key, from 1; 0 if not part of it
}

// JSONForm is the JSON representation of a type's values.
type JSONForm string

// JSON forms. Under JSONScalar, a value is a number, a boolean or its text.
const (
	JSONScalar    JSONForm = ""
	JSONText      JSONForm = "json"      // the type is json or jsonb: the value itself
	JSONStructure JSONForm = "structure" // an array, or the object of a composite value
	JSONPairs     JSONForm = "pairs"     // the object of an hstore
)

// ApplySettings sets the session parameters that this package's statements rely on, in a
// transaction of the owner.
func ApplySettings(ctx context.Context, tx pgx.Tx) error {
	_, err := tx.Exec(ctx, sessionSettings)
	return err
}

// LockTable finds a table and locks it against changes and drops until the transaction ends. Rows
// may be written meanwhile. It fails as [GetTable] does, and with Conflict, code busy, if the table
// is locked.
func LockTable(ctx context.Context, tx pgx.Tx, project uuid.UUID, ref string) (Table, []BulkColumn, error) {
	t, err := GetTable(ctx, tx, project, ref)
	if err != nil {
		return Table{}, nil, err
	}

	err = execute(ctx, tx, "lock table "+pg.Quote(t.Schema, t.Name)+" in access share mode")
	switch pg.State(err) {
	case "42P01", "3F000", "42809": // undefined table or schema, another kind of thing
		return Table{}, nil, noTable().WithCause(err)
	}

	if err != nil {
		return Table{}, nil, pg.Fault(translate(err, nil))
	}

	current, err := findTable(ctx, tx, strconv.FormatUint(uint64(t.ID), 10))
	if err != nil {
		return Table{}, nil, err
	}

	if current.FullName() != t.FullName() {
		return Table{}, nil, fault.New(fault.Conflict, "a concurrent change is in progress; try again").WithCode("busy")
	}

	columns, err := bulkColumns(ctx, tx, t.ID)
	return t, columns, err
}

func bulkColumns(ctx context.Context, tx pgx.Tx, id uint32) ([]BulkColumn, error) {
	return pg.All[BulkColumn](ctx, tx, `
		select a.attname as name, pg_catalog.format_type(a.atttypid, a.atttypmod) as type,
			t.typcategory in ('N', 'B', 'D', 'T') as plain, t.typcategory = 'N' as number, t.typcategory = 'D' as date,
			case when base.typname in ('json', 'jsonb') then 'json' when t.typcategory in ('A', 'C') then 'structure'
			     when base.typname = 'hstore' then 'pairs' else '' end as json,
			a.attgenerated <> '' as generated,
			coalesce((select k.n from pg_catalog.pg_index i, pg_catalog.unnest(i.indkey::int2[]) with ordinality k(number, n)
				where i.indrelid = a.attrelid and i.indisprimary and k.number = a.attnum and k.n <= i.indnkeyatts), 0)::int as key
		from pg_catalog.pg_attribute a
		join pg_catalog.pg_type t on t.oid = a.atttypid
		cross join lateral (
			with recursive domain as (
				select t.typname, t.typtype, t.typbasetype
				union all
				select b.typname, b.typtype, b.typbasetype
				from domain d join pg_catalog.pg_type b on b.oid = d.typbasetype where d.typtype = 'd'
			)
			select typname::text from domain where typtype <> 'd'
		) base
		where a.attrelid = @id and a.attnum > 0 and not a.attisdropped
		order by a.attnum`, pgx.StrictNamedArgs{"id": id})
}
