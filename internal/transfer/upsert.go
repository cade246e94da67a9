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

// Modes for rows that conflict with a row in the table.
const (
	Insert = "insert" // reject the row
	Upsert = "upsert" // update the existing row, in the file's columns
	Ignore = "ignore" // keep the existing row
)

// Temporary tables in an import.
const (
	stagingTable = "pg_temp.socle_import" // a batch before its merge
	shapeTable   = "pg_temp.socle_shape"  // without rows: the file's array and composite columns
)

// merge creates the staging table and returns the statement that moves staged rows into the table;
// "" if COPY can write them there. It fails with Invalid on on_conflict.
func (o Options) merge(ctx context.Context, tx pgx.Tx, t schema.Table, columns []ImportedColumn) (string, error) {
	conflict, err := o.conflict(ctx, tx, t, columns)
	if err != nil {
		return "", err
	}

	var structures []string
	for _, c := range columns {
		if o.Format == JSONL && c.json == schema.JSONStructure {
			structures = append(structures, c.Name)
		}
	}
	if conflict == "" && len(structures) == 0 {
		return "", nil
	}

	return o.stage(ctx, tx, t, columns, structures, conflict)
}

// stage creates the temporary tables. PostgreSQL reads arrays and composite values from JSON
// itself; a string is such a value's text.
func (o Options) stage(
	ctx context.Context, tx pgx.Tx, t schema.Table, columns []ImportedColumn, structures []string, conflict string,
) (string, error) {
	var staged, names, values, members []string
	for _, c := range columns {
		name := pg.Quote(c.Name)
		names = append(names, name)

		if !slices.Contains(structures, c.Name) {
			staged, values = append(staged, name), append(values, "s."+name)
			continue
		}

		staged = append(staged, "null::pg_catalog.json as "+name)
		values = append(values, "case when pg_catalog.json_typeof(s."+name+") = 'string' then (s."+name+
			" #>> '{}')::"+c.typeName+" else r."+name+" end")
		members = append(members, pg.Literal(c.Name)+", case when pg_catalog.json_typeof(s."+name+
			") <> 'string' then s."+name+" end")
	}

	from := " from " + pg.Quote(t.Schema, t.Name) + " with no data"
	tables := "create temporary table socle_import on commit drop as select " + strings.Join(staged, ", ") + from
	source := stagingTable + " s"
	if len(structures) > 0 {
		tables += "; create temporary table socle_shape on commit drop as select " + quoteColumns(structures) + from
		source += ", pg_catalog.json_populate_record(null::" + shapeTable + ", pg_catalog.json_build_object(" +
			strings.Join(members, ", ") + ")) r"
	}

	if _, err := tx.Exec(ctx, tables); err != nil {
		return "", err
	}

	return "insert into " + pg.Quote(t.Schema, t.Name) + " (" + strings.Join(names, ", ") +
		") overriding system value select " + strings.Join(values, ", ") + " from " + source + conflict, nil
}

// conflict returns the ON CONFLICT clause; "" for plain inserts.
func (o Options) conflict(
	ctx context.Context, tx pgx.Tx, t schema.Table, columns []ImportedColumn,
) (string, error) {
	if o.Mode == "" || o.Mode == Insert {
		return "", nil
	}

	names := columnNamesOf(columns)
	key, err := o.key(ctx, tx, t, names)
	if err != nil {
		return "", err
	}

	var set []string
	for _, c := range names {
		if !slices.Contains(key, c) {
			set = append(set, pg.Quote(c)+" = excluded."+pg.Quote(c))
		}
	}

	do := "do nothing"
	if o.Mode == Upsert && len(set) > 0 {
		do = "do update set " + strings.Join(set, ", ")
	}

	return " on conflict (" + quoteColumns(key) + ") " + do, nil
}

// key returns the conflict target's columns: on_conflict, or the primary key. They must be unique
// and present in the file.
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

	names := slices.Compact(slices.Sorted(slices.Values(o.OnConflict)))
	for _, k := range keys {
		slices.Sort(k.Columns)

		if len(names) == 0 && !k.Primary || len(names) > 0 && !slices.Equal(k.Columns, names) {
			continue
		}

		for _, c := range k.Columns {
			if !slices.Contains(columns, c) {
				return nil, fault.OnField(fault.Invalid, "on_conflict", "missing", "must be columns of the file")
			}
		}

		return k.Columns, nil
	}

	if len(names) == 0 {
		return nil, fault.OnField(fault.Invalid, "on_conflict", "required",
			"is required, since the table has no primary key")
	}

	return nil, fault.OnField(fault.Invalid, "on_conflict", "not_unique",
		"must be columns that are together unique, or the primary key")
}

func columnNamesOf(columns []ImportedColumn) []string {
	names := make([]string, len(columns))
	for i, c := range columns {
		names[i] = c.Name
	}

	return names
}

func quoteColumns(columns []string) string {
	names := make([]string, len(columns))
	for i, c := range columns {
		names[i] = pg.Quote(c)
	}

	return strings.Join(names, ", ")
}
