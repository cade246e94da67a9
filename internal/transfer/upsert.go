package transfer

import (
	"context"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/schema"
)

// Modes for rows that conflict with a row of the table.
const (
	Insert = "insert" // reject the row
	Upsert = "upsert" // update the existing row, in the columns of the file
	Ignore = "ignore" // keep the existing row
)

// stagingTable is the temporary table for a batch before its merge.
const stagingTable = "pg_temp.socle_import"

// merge creates the staging table and returns the statement that moves staged rows into the table;
// "" for plain inserts. It fails with Invalid on on_conflict.
func (o Options) merge(ctx context.Context, tx pgx.Tx, t schema.Table, columns []string) (string, error) {
	if o.Mode == "" || o.Mode == Insert {
		return "", nil
	}

	key, err := o.key(ctx, tx, t, columns)
	if err != nil {
		return "", err
	}

	all := quoteColumns(columns)
	var set []string
	for _, c := range columns {
		if !slices.Contains(key, c) {
			set = append(set, pg.Quote(c)+" = excluded."+pg.Quote(c))
		}
	}

	do := "do nothing"
	if o.Mode == Upsert && len(set) > 0 {
		do = "do update set " + strings.Join(set, ", ")
	}

	if _, err := tx.Exec(ctx,
		"create temporary table socle_import on commit drop as select "+all+" from "+pg.Quote(t.Schema, t.Name)+
			" with no data"); err != nil {
		return "", err
	}

	return "insert into " + pg.Quote(t.Schema, t.Name) + " (" + all + ") overriding system value select " + all +
		" from " + stagingTable +
		" on conflict (" + quoteColumns(key) + ") " + do, nil
}

// key returns the columns of the conflict target: on_conflict, or the primary key. They must be
// unique and present in the file.
func (o Options) key(ctx context.Context, tx pgx.Tx, t schema.Table, columns []string) ([]string, error) {
	keys, err := pg.All[struct {
		Columns []string
		Primary bool
	}](ctx, tx, `
		select array(select a.attname::text from pg_catalog.unnest(i.indkey::int2[]) with ordinality n(number, at)
			join pg_catalog.pg_attribute a on a.attrelid = i.indrelid and a.attnum = n.number where n.at <= i.indnkeyatts order by a.attname) as columns,
			i.indisprimary as primary
		from pg_catalog.pg_index i
		where i.indrelid = @table and i.indisunique and i.indimmediate and i.indisvalid and i.indpred is null and i.indexprs is null`,
		pgx.StrictNamedArgs{"table": t.ID})
	if err != nil {
		return nil, err
	}

	wanted := slices.Compact(slices.Sorted(slices.Values(o.OnConflict)))
	for _, k := range keys {
		slices.Sort(k.Columns)

		if len(wanted) == 0 && !k.Primary || len(wanted) > 0 && !slices.Equal(k.Columns, wanted) {
			continue
		}

		for _, c := range k.Columns {
			if !slices.Contains(columns, c) {
				return nil, fault.OnField(fault.Invalid, "on_conflict", "missing", "must be columns of the file")
			}
		}

		return k.Columns, nil
	}

	if len(wanted) == 0 {
		return nil, fault.OnField(fault.Invalid, "on_conflict", "required",
			"is required, since the table has no primary key")
	}

	return nil, fault.OnField(fault.Invalid, "on_conflict", "not_unique",
		"must be columns that are together unique, or the primary key")
}

func quoteColumns(columns []string) string {
	quoted := make([]string, len(columns))
	for i, c := range columns {
		quoted[i] = pg.Quote(c)
	}

	return strings.Join(quoted, ", ")
}
