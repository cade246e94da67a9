package schema

import (
	"context"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"socle/internal/fault"
	"socle/internal/pg"
)

// CompactTable writes a table and its indexes anew, with its partitions, so that they take no more room than their rows need. Nobody reads or writes the table
// meanwhile, and while it goes on there are two of it. As the owner: what an index's expression calls is the owner's code.
// It fails with NotFound if there is no such table, with Unprocessable if it is not the owner's or an index can't be made anew, and with Conflict, code busy, if others hold it.
func CompactTable(ctx context.Context, owner *pgxpool.Pool, table uint32) error {
	conn, err := pg.Acquire(ctx, owner)
	if err != nil {
		return err
	}
	defer conn.Release()
	// For the session, which is cleaned afterwards: such a statement takes no transaction around it.
	if _, err := pg.Exec(ctx, conn, strings.ReplaceAll(settle, "true", "false")); err != nil {
		return err
	}
	t, err := tableByID(ctx, conn, table)
	if err != nil {
		return err
	}
	// A table that is somebody else's would be passed over with a warning.
	owned, err := pg.Value[bool](ctx, conn, `
		select pg_catalog.bool_and(pg_catalog.pg_has_role(c.relowner, 'usage')) from pg_catalog.pg_class c
		where c.oid = @table or c.oid in (select p.relid from pg_catalog.pg_partition_tree(@table) p)`, pgx.StrictNamedArgs{"table": t.ID})
	if err != nil {
		return err
	}
	if !owned {
		return fault.New(fault.Unprocessable, "this belongs to the platform or to an extension").WithCode("not_owned")
	}
	return pg.Fault(refused(run(ctx, conn, "vacuum (full) "+pg.Quote(t.Schema, t.Name)), func(state string) *fault.Error {
		switch {
		case state == "42P01" || state == "3F000": // undefined_table, invalid_schema_name: dropped or renamed just now
			return noTable()
		case ofUser(state) && state != "42501":
			return fault.New(fault.Unprocessable, "an index of the table can't be made anew").WithCode("failed")
		}
		return nil
	}))
}

// Compacted returns how many hundredths of a table's pages have been read by who compacts it, nil if nobody does.
func Compacted(ctx context.Context, q pg.Querier, table uint32) (*int, error) {
	read, err := pg.Values[int](ctx, q, `
		select (100 * c.heap_blks_scanned / greatest(c.heap_blks_total, 1))::int from pg_catalog.pg_stat_progress_cluster c
		where c.datname = pg_catalog.current_database() and (c.relid = @table or c.relid in (select p.relid from pg_catalog.pg_partition_tree(@table) p))
		limit 1`, pgx.StrictNamedArgs{"table": table})
	if err != nil || len(read) == 0 {
		return nil, err
	}
	return &read[0], nil
}
