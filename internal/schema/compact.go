package schema

import (
	"context"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"socle/internal/fault"
	"socle/internal/pg"
)

// CompactTable rewrites a table with its partitions and indexes, so that they occupy no more space
// than their rows need. The table is locked meanwhile, and exists twice. It runs on the owner's
// login, since index expressions are the owner's code. Rows that an old snapshot can see stay: see
// [AwaitSnapshots]. VACUUM removes deleted rows first, since it ignores transactions of other
// databases, which the snapshot of VACUUM FULL contains. It fails with NotFound for an unknown
// table, with Unprocessable if the owner does not own the table or an index can't be rebuilt, and
// with Conflict, code busy, if others hold a lock on it.
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
		where c.oid = @table or c.oid in (select p.relid from pg_catalog.pg_partition_tree(@table) p)`,
		pgx.StrictNamedArgs{"table": t.ID})
	if err != nil {
		return err
	}

	if !owned {
		return fault.New(fault.Unprocessable, "this belongs to the platform or to an extension").WithCode("not_owned")
	}

	name := pg.Quote(t.Schema, t.Name)
	err = run(ctx, conn, "vacuum (index_cleanup off, truncate off) "+name)
	if err == nil {
		err = run(ctx, conn, "vacuum (full) "+name)
	}

	return pg.Fault(refused(err, func(state string) *fault.Error {
		switch {
		case state == "42P01" || state == "3F000": // undefined_table, invalid_schema_name: dropped or renamed just now
			return noTable()
		case ofUser(state) && state != "42501":
			return fault.New(fault.Unprocessable, "an index of the table can't be made anew").WithCode("failed")
		}

		return nil
	}))
}

const (
	foreignWait  = 5 * time.Second  // of a compaction for transactions of other projects
	snapshotWait = 10 * time.Second // for snapshots of its own project
)

// NextTransaction returns the ID that the next transaction of the PostgreSQL server gets. Rows
// whose deletion is committed were deleted by older transactions.
func NextTransaction(ctx context.Context, q pg.Querier) (int64, error) {
	return pg.Value[int64](ctx, q, `
		select pg_catalog.pg_snapshot_xmax(pg_catalog.pg_current_snapshot())::text::bigint`)
}

// AwaitSnapshots waits until no snapshot can see rows that transactions before next have deleted.
// VACUUM FULL keeps such rows, and reports no error: it would block the table and free nothing.
// It fails with Conflict, code busy, if snapshots of this database hold for [snapshotWait]. For
// transactions of other databases it waits no longer than [foreignWait], since no project may stop
// the compactions of another: see [CompactTable].
func AwaitSnapshots(ctx context.Context, q pg.Querier, next int64) error {
	begun := time.Now()
	const longest = 250 * time.Millisecond
	for pause := 5 * time.Millisecond; ; pause = min(2*pause, longest) {
		h, err := horizonBefore(ctx, q, next)
		if err != nil {
			return err
		}

		waited := time.Since(begun)
		if !h.Own && (!h.Foreign || waited >= foreignWait) {
			return nil
		}
		if waited >= snapshotWait {
			return fault.New(fault.Conflict,
				"a transaction that began before the compaction can still see deleted rows").WithCode("busy")
		}

		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause):
		}
	}
}

// horizon says what keeps the horizon of a VACUUM FULL before a transaction.
type horizon struct {
	Own     bool // sessions of this database, or replication
	Foreign bool // a running transaction, maybe of another database: it is in the snapshot of VACUUM FULL itself
}

// horizonBefore computes the horizon as PostgreSQL does. VACUUM without FULL has a snapshot that
// PostgreSQL does not count.
func horizonBefore(ctx context.Context, q pg.Querier, next int64) (horizon, error) {
	return pg.One[horizon](ctx, q, `
		with bound as (select pg_catalog.age(@next::bigint::text::pg_catalog.xid8::pg_catalog.xid) as age)
		select exists (
				select from pg_catalog.pg_stat_activity a
				where (a.datname = pg_catalog.current_database() or a.backend_type = 'walsender') and a.pid <> pg_catalog.pg_backend_pid()
				  and not exists (select from pg_catalog.pg_stat_progress_vacuum v where v.pid = a.pid)
				  and (pg_catalog.age(a.backend_xmin) > bound.age or pg_catalog.age(a.backend_xid) > bound.age))
			  or exists (select from pg_catalog.pg_replication_slots s where pg_catalog.age(s.xmin) > bound.age) as own,
			pg_catalog.age(pg_catalog.pg_snapshot_xmin(pg_catalog.pg_current_snapshot())::pg_catalog.xid) > bound.age as foreign
		from bound`, pgx.StrictNamedArgs{"next": next})
}

// Compacted returns the percentage of a table's pages that a running compaction has read, nil if
// none runs.
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
