package transfer

import (
	"context"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"socle/internal/fault"
	"socle/internal/pg"
	"socle/internal/schema"
)

// What becomes of a row of the file that the table has one like.
const (
	Insert = "insert" // it is rejected
	Upsert = "upsert" // it takes the other one's place, in the columns that the file has
	Ignore = "ignore" // the other one stays as it is
)

// staged is where the rows of a batch wait to be compared with those that are there.
const staged = "pg_temp.socle_import"

// merge returns the statement by which staged rows get into the table, and makes the place for them; "" if rows are simply inserted.
// It fails with Invalid on on_conflict.
func (o Options) merge(ctx context.Context, tx pgx.Tx, t schema.Table, columns []string) (string, error) {
	if o.Mode == "" || o.Mode == Insert {
		return "", nil
	}

	key, err := o.key(ctx, tx, t, columns)
	if err != nil {
		return "", err
	}

	all := quote(columns)
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
		" from " + staged +
		" on conflict (" + quote(key) + ") " + do, nil
}

// key returns the columns by which rows are told apart: those that were named, or the primary key. They must be unique, and the file must have them.
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
				return nil, fault.OnField(fault.Invalid, "on_conflict", "missing", "must be columns that the file has")
			}
		}

		return k.Columns, nil
	}

	if len(wanted) == 0 {
		return nil, fault.OnField(fault.Invalid, "on_conflict", "required",
			"is required, for the table has no primary key")
	}

	return nil, fault.OnField(fault.Invalid, "on_conflict", "not_unique",
		"must be columns that are together unique or the primary key")
}

func quote(columns []string) string {
	quoted := make([]string, len(columns))
	for i, c := range columns {
		quoted[i] = pg.Quote(c)
	}

	return strings.Join(quoted, ", ")
}
