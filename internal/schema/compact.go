package schema

import (
	"context"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/tick"
)

// CompactTable rewrites a table with its partitions and indexes into the minimal space for their
// rows. The table is locked meanwhile and needs space for a second copy. The owner's login runs it,
// since index expressions are user code. Rows visible to an old snapshot stay: see
// [AwaitSnapshots].
//
// A plain VACUUM removes deleted rows first, since it ignores other databases' transactions, which
// VACUUM FULL's snapshot includes. It fails with NotFound for an unknown table, with Unprocessable
// if the owner does not own the table or an index can't be rebuilt, and with Conflict, code busy,
// if the table is locked.
func CompactTable(ctx context.Context, owner *pgxpool.Pool, table uint32) error {
	conn, err := pg.Acquire(ctx, owner)
	if err != nil {
		return err
	}
	defer conn.Release()

	// Set for the session, since VACUUM can't run in a transaction; the pool resets the session
	// afterwards.
	if _, err := pg.Exec(ctx, conn, strings.ReplaceAll(sessionSettings, "true", "false")); err != nil {
		return err
	}

	t, err := tableByID(ctx, conn, table)
	if err != nil {
		return err
	}

	// VACUUM would skip another owner's table with a warning.
	isOwner, err := pg.Value[bool](ctx, conn, `
		select pg_catalog.bool_and(pg_catalog.pg_has_role(c.relowner, 'usage')) from pg_catalog.pg_class c
		where c.oid = @table or c.oid in (select p.relid from pg_catalog.pg_partition_tree(@table) p)`,
		pgx.StrictNamedArgs{"table": t.ID})
	if err != nil {
		return err
	}

	if !isOwner {
		return fault.New(fault.Unprocessable, "the object belongs to the platform or to an extension").
			WithCode("not_owned")
	}

	name := pg.Quote(t.Schema, t.Name)
	err = executeOn(ctx, conn, "vacuum (index_cleanup off, truncate off) "+name)
	if err == nil {
		err = executeOn(ctx, conn, "vacuum (full) "+name)
	}

	return pg.Fault(translate(err, func(state string) *fault.Error {
		switch {
		// undefined_table, invalid_schema_name: dropped or renamed concurrently
		case state == "42P01" || state == "3F000":
			return noTable()
		case blamesUser(state) && state != "42501":
			return fault.New(fault.Unprocessable, "an index of the table can't be rebuilt").WithCode("failed")
		}

		return nil
	}))
}

const (
	foreignTimeout  = 5 * time.Second  // for other projects' transactions
	snapshotTimeout = 10 * time.Second // for the project's own snapshots
)

// NextTransaction returns the PostgreSQL server's next transaction ID. Committed deletions have
// lower IDs.
func NextTransaction(ctx context.Context, q pg.Querier) (int64, error) {
	return pg.Value[int64](ctx, q, `
		select pg_catalog.pg_snapshot_xmax(pg_catalog.pg_current_snapshot())::text::bigint`)
}

// AwaitSnapshots waits until no snapshot can see rows that transactions before next deleted. VACUUM
// FULL keeps such rows and reports no error: it would block the table and free nothing. It fails
// with Conflict, code busy, if this database's snapshots outlast [snapshotTimeout]. It waits at
// most [foreignTimeout] for other databases' transactions, since no project may stop another's
// compactions: see [CompactTable].
func AwaitSnapshots(ctx context.Context, q pg.Querier, next int64) error {
	start := time.Now()
	const maxPause = 250 * time.Millisecond
	for pause := 5 * time.Millisecond; ; pause = min(2*pause, maxPause) {
		h, err := horizonBefore(ctx, q, next)
		if err != nil {
			return err
		}

		elapsed := time.Since(start)
		if !h.Own && (!h.Foreign || elapsed >= foreignTimeout) {
			return nil
		}
		if elapsed >= snapshotTimeout {
			return fault.New(fault.Conflict,
				"a transaction that began before the compaction can still see deleted rows").WithCode("busy")
		}

		if err := tick.Pause(ctx, pause); err != nil {
			return err
		}
	}
}

// horizon reports which transactions hold back VACUUM FULL's horizon.
type horizon struct {
	Own bool // sessions in this database, or replication
	// running transactions in any database, which VACUUM FULL's snapshot includes
	Foreign bool
}

// horizonBefore computes the horizon as PostgreSQL does, which ignores snapshots of VACUUM without
// FULL.
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

// CompactionProgress returns the percentage of a table's pages that a running compaction has read,
// nil if none runs.
func CompactionProgress(ctx context.Context, q pg.Querier, table uint32) (*int, error) {
	blocks, err := pg.Values[int](ctx, q, `
		select (100 * c.heap_blks_scanned / greatest(c.heap_blks_total, 1))::int from pg_catalog.pg_stat_progress_cluster c
		where c.datname = pg_catalog.current_database() and (c.relid = @table or c.relid in (select p.relid from pg_catalog.pg_partition_tree(@table) p))
		limit 1`, pgx.StrictNamedArgs{"table": table})
	if err != nil || len(blocks) == 0 {
		return nil, err
	}

	return &blocks[0], nil
}
