package schema

import (
	"context"
	"regexp"
	"strconv"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
)

// Table is a user table: ordinary, partitioned, or a partition. A partitioned table's rows and size
// count for its partitions, so its own are 0.
type Table struct {
	ID            uint32 `json:"id" doc:"OID of the table; it stays the same when the table is renamed."`
	Name          string `json:"name"`
	Schema        string `json:"schema"`
	EstimatedRows int64  `json:"estimatedRows" minimum:"0" doc:"Estimate of the planner; 0 until the table is first analyzed."`
	TotalSize     string `json:"totalSize" doc:"Human-readable size, including indexes and TOAST." example:"16 kB"`
}

// FullName returns schema.table.
func (t Table) FullName() string { return t.Schema + "." + t.Name }

// TableUUID returns the UUID for a project's table: version 5, from the decimal OID in the project
// UUID's namespace. It is as stable as the OID and needs no storage.
func TableUUID(project uuid.UUID, id uint32) uuid.UUID {
	return uuid.NewSHA1(project, strconv.AppendUint(nil, uint64(id), 10))
}

const (
	selectTables = busyRelations + `
	select c.id, c.name, c.schema, c.estimated_rows, c.total,
		pg_catalog.pg_size_pretty(case when exists (
			select from busy b where b.relation in (c.id, c.reltoastrelid)
				or b.relation in (select i.indexrelid from pg_catalog.pg_index i where i.indrelid in (c.id, c.reltoastrelid)))
		then (
			select sum(p.relpages)::bigint * pg_catalog.current_setting('block_size')::bigint from pg_catalog.pg_class p
			where p.oid in (c.id, c.reltoastrelid)
				or p.oid in (select i.indexrelid from pg_catalog.pg_index i where i.indrelid in (c.id, c.reltoastrelid)))
		else coalesce(pg_catalog.pg_total_relation_size(c.id), 0) end) as total_size
	from (
		select c.oid as id, c.relname as name, n.nspname as schema, greatest(c.reltuples, 0)::bigint as estimated_rows,
			c.reltoastrelid, count(*) over () as total ` + userTables

	// userTables is the from clause in selectTables. A condition and the page follow, then a
	// closing parenthesis and c.
	userTables = `
		from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
		where c.relkind in ('r', 'p') and c.relpersistence <> 't' and ` + userSchema + ` and ` + notMember

	selectTableByID   = selectTables + ` and c.oid = @id) c`
	selectTableByName = selectTables + ` and n.nspname = @schema and c.relname = @name) c`
)

// tableRow is a table with the total number of tables.
type tableRow struct {
	Table
	Total int64
}

var tableSorts = map[string]string{"name": "name", "schema": "schema", "id": "id", "estimatedRows": "estimated_rows"}

// nameMatches is a condition on the full name, in any case. An empty text matches all.
const nameMatches = `
	and pg_catalog.strpos(pg_catalog.lower(n.nspname || '.' || c.relname), pg_catalog.lower(@search)) > 0`

// ListTables returns a page of the tables with search in their full name, never nil, and their
// total number. Pages are sorted by name, schema, id or estimatedRows; ties are broken by id.
func ListTables(ctx context.Context, q pg.Querier, page pg.Page, search string) ([]Table, int64, error) {
	args := pgx.StrictNamedArgs{"search": search}

	// Sizes are computed for this page's tables only; the page is then sorted again.
	rows, err := pg.All[tableRow](ctx, q,
		selectTables+nameMatches+page.Clause(tableSorts, "id")+") c"+page.Order(tableSorts, "id"), page.Args(args))
	if err != nil {
		return nil, 0, err
	}

	if len(rows) == 0 && page.Number > 1 { // past the end, where no row has the total
		total, err := pg.Value[int64](ctx, q, "select count(*)"+userTables+nameMatches, args)
		return []Table{}, total, err
	}

	tables := make([]Table, len(rows))
	var total int64
	for i, r := range rows {
		tables[i], total = r.Table, r.Total
	}

	return tables, total, nil
}

var (
	numberRef = regexp.MustCompile(`^[0-9]+$`)
	uuidRef   = regexp.MustCompile(`^[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}$`)
)

// GetTable returns the table for ref: a full name (schema.table, or table for public.table), an ID,
// or a UUID. It fails with Invalid on the field table if ref is none of these or names a reserved
// schema, and with NotFound for an unknown table. A UUID can't be mapped back to an OID, so
// GetTable compares all tables' UUIDs.
func GetTable(ctx context.Context, q pg.Querier, project uuid.UUID, ref string) (Table, error) {
	if !uuidRef.MatchString(ref) {
		return findTable(ctx, q, ref)
	}

	id, err := tableIDByUUID(ctx, q, project, uuid.MustParse(ref))
	if err != nil {
		return Table{}, err
	}

	return tableByID(ctx, q, id)
}

// findTable returns a table by full name or ID. It fails as [GetTable] does.
func findTable(ctx context.Context, q pg.Querier, ref string) (Table, error) {
	if numberRef.MatchString(ref) {
		id, err := strconv.ParseUint(ref, 10, 32)
		if err != nil {
			return Table{}, badRef()
		}

		return tableByID(ctx, q, uint32(id))
	}

	t, err := namedTable(ctx, q, ref)
	if _, _, ok := splitName(ref); !ok && fault.Is(err, fault.NotFound) {
		return Table{}, badRef()
	}

	return t, err
}

// namedTable returns a table by full name. A name that is no [identifier] must match exactly one
// table, as [Table.FullName] prints it or unqualified in public.
func namedTable(ctx context.Context, q pg.Querier, name string) (Table, error) {
	if schema, table, ok := splitName(name); ok {
		return tableByName(ctx, q, schema, table)
	}
	if !pg.Storable(name) {
		return Table{}, noTable()
	}

	ids, err := pg.Values[uint32](ctx, q, "select c.oid"+userTables+`
		and (n.nspname || '.' || c.relname = @name or n.nspname = 'public' and c.relname = @name)`,
		pgx.StrictNamedArgs{"name": name})
	if err != nil {
		return Table{}, err
	}
	if len(ids) != 1 {
		return Table{}, noTable()
	}

	return tableByID(ctx, q, ids[0])
}

func tableByName(ctx context.Context, q pg.Querier, schema, name string) (Table, error) {
	return queryTable(ctx, q, selectTableByName, pgx.StrictNamedArgs{"schema": schema, "name": name})
}

func tableByID(ctx context.Context, q pg.Querier, id uint32) (Table, error) {
	return queryTable(ctx, q, selectTableByID, pgx.StrictNamedArgs{"id": id})
}

func queryTable(ctx context.Context, q pg.Querier, sql string, args pgx.StrictNamedArgs) (Table, error) {
	row, err := pg.One[tableRow](ctx, q, sql, args)
	if fault.Is(err, fault.NotFound) {
		return Table{}, noTable().WithCause(err)
	}

	return row.Table, err
}

func tableIDByUUID(ctx context.Context, q pg.Querier, project, table uuid.UUID) (uint32, error) {
	ids, err := pg.Values[uint32](ctx, q, "select c.oid"+userTables)
	if err != nil {
		return 0, err
	}

	for _, id := range ids {
		if TableUUID(project, id) == table {
			return id, nil
		}
	}

	return 0, noTable()
}

func badRef() error {
	return fault.OnField(fault.Invalid, "table", "invalid_value",
		"must be the name, ID or UUID of one of the project's tables")
}

func noTable() *fault.Error { return fault.New(fault.NotFound, "there is no such table") }

// RenameTable renames a table within its schema; the current name is accepted. It fails as
// [GetTable] does, with Unprocessable on name if the name is invalid, with Conflict on name if it
// is taken, and with Conflict, code busy, if the table is locked.
func RenameTable(ctx context.Context, owner *pgxpool.Pool, project uuid.UUID, ref, name string) (Table, error) {
	var table Table
	err := changeNamed(ctx, owner, func(ctx context.Context, tx pgx.Tx) error {
		t, err := GetTable(ctx, tx, project, ref)
		if err != nil {
			return err
		}

		if err := checkName(fault.Unprocessable, "name", name); err != nil {
			return err
		}
		if err := lock(ctx, tx, t); err != nil {
			return err
		}

		if t.Name != name {
			err := execute(ctx, tx, "alter table "+pg.Quote(t.Schema, t.Name)+" rename to "+pg.Quote(name))
			if err != nil {
				return translate(err, nameTaken)
			}
		}

		table = t
		table.Name = name

		return nil
	})

	return table, err
}

// nameTaken translates the SQLSTATEs for a name in use: by a relation, by a type (each table has a
// row type with its name), or by a concurrent creation.
func nameTaken(state string) *fault.Error {
	switch state {
	// duplicate_table, duplicate_object, unique_violation in the catalog
	case "42P07", "42710", "23505":
		return fault.OnField(fault.Conflict, "name", "already_exists",
			"is already used by a table, view or type of the schema")
	}

	return nil
}

// TableDetails are the table properties that [Table] does not have.
type TableDetails struct {
	Comment          string   `json:"comment"`
	RowLevelSecurity bool     `json:"rowLevelSecurity" doc:"Whether row level security is enabled."`
	PrimaryKey       []string `json:"primaryKey" nullable:"false" doc:"Columns of the primary key, in order."`
}

// GetTableDetails returns a table's details, or the zero value if it was dropped.
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

// TableUpdate is a partial table update; nil fields stay unchanged.
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
	var table Table
	err := changeTable(ctx, owner, project, ref, func(ctx context.Context, tx pgx.Tx, t Table) error {
		table = t

		if u.RowLevelSecurity != nil {
			action := "enable row level security"
			if !*u.RowLevelSecurity {
				err := requireConfirmation(u.Confirm, "exposes all rows to every role with privileges on the table")
				if err != nil {
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

	return table, err
}

// DeleteTable drops a table and returns the dependents dropped with it. It fails as [GetTable]
// does, with Conflict, code in_use and the member dependents, if other objects depend on it and
// cascade is not set, and with Conflict, code busy, if the table is locked.
func DeleteTable(
	ctx context.Context, owner *pgxpool.Pool, project uuid.UUID, ref string, cascade bool,
) (Table, []Dependent, error) {
	var table Table
	var dependents []Dependent
	err := changeTable(ctx, owner, project, ref, func(ctx context.Context, tx pgx.Tx, t Table) error {
		var err error
		table = t
		dependents, err = drop(ctx, tx, "drop table "+pg.Quote(t.Schema, t.Name), object{"pg_class", t.ID, 0}, cascade)
		return err
	})
	return table, dependents, err
}
