package schema

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/pg"
)

// Statistics are PostgreSQL's database statistics.
type Statistics struct {
	DatabaseSize  int64             `json:"databaseSize" doc:"Bytes."`
	Since         *time.Time        `json:"since" nullable:"true" doc:"Time of the last reset of the statistics; null if there was none."`
	CacheHitRatio *float64          `json:"cacheHitRatio" nullable:"true" minimum:"0" maximum:"1" doc:"Share of block reads that PostgreSQL's buffer cache served."`
	Connections   []Connections     `json:"connections"`
	Tables        []TableStatistics `json:"tables" doc:"The largest tables."`
	UnusedIndexes []UnusedIndex     `json:"unusedIndexes" doc:"Indexes that no query has used and that enforce no uniqueness, largest first."`
}

// Connections counts a login's connections.
type Connections struct {
	Login  string `json:"login" doc:"Purpose of the login: owner, request, service or dump; platform for Socle's own."`
	Total  int64  `json:"total"`
	Active int64  `json:"active" doc:"Connections that are running a statement."`
}

// TableStatistics are a table's statistics.
type TableStatistics struct {
	Schema          string `json:"schema"`
	Name            string `json:"name"`
	EstimatedRows   int64  `json:"estimatedRows" doc:"Estimate of the planner; 0 until the table is first analyzed."`
	DeadRows        int64  `json:"deadRows" doc:"Rows that a vacuum will remove."`
	Size            int64  `json:"size" doc:"Bytes, including indexes and TOAST."`
	SequentialScans int64  `json:"sequentialScans"`
	IndexScans      int64  `json:"indexScans"`
}

// UnusedIndex is an index that slows each write and serves no query.
type UnusedIndex struct {
	Schema string `json:"schema"`
	Table  string `json:"table"`
	Name   string `json:"name"`
	Size   int64  `json:"size" doc:"Bytes."`
}

// busyRelations is the common table expression for statements that measure relations, for which
// PostgreSQL waits for access exclusive locks, held or requested. Relations with such a lock have
// their size from the last vacuum or analyze.
const (
	busyRelations = `
		with busy as materialized (
			select l.relation from pg_catalog.pg_locks l
			where l.mode = 'AccessExclusiveLock' and l.relation is not null and l.pid <> pg_catalog.pg_backend_pid()
		)`
	rowLimit = ` limit 20`
)

// GetStatistics reads the statistics for b's database from the catalog. It evaluates no user code.
// It fails with Conflict if a table stays locked.
func GetStatistics(ctx context.Context, b pg.Beginner) (Statistics, error) {
	var s Statistics
	err := pg.InTx(ctx, b, func(tx pgx.Tx) error {
		if _, err := pg.Exec(ctx, tx, `set transaction isolation level repeatable read, read only`); err != nil {
			return err
		}
		if _, err := pg.Exec(ctx, tx, `set local lock_timeout = '2s'`); err != nil {
			return err
		}

		return s.readCatalog(ctx, tx)
	})

	return s, err
}

func (s *Statistics) readCatalog(ctx context.Context, tx pgx.Tx) error {
	database, err := pg.One[struct {
		Size  int64
		Since *time.Time
		Ratio *float64
	}](ctx, tx, `
		select pg_catalog.pg_database_size(d.datid) as size, d.stats_reset as since,
			d.blks_hit::float8 / nullif(d.blks_hit + d.blks_read, 0) as ratio
		from pg_catalog.pg_stat_database d where d.datname = pg_catalog.current_database()`)
	if err != nil {
		return err
	}

	s.DatabaseSize, s.Since, s.CacheHitRatio = database.Size, database.Since, database.Ratio

	if s.Connections, err = pg.All[Connections](ctx, tx, `
		select case when r.rolsuper then 'platform'
				when pg_catalog.starts_with(a.usename, a.datname || '_') then pg_catalog.substr(a.usename, pg_catalog.length(a.datname) + 2)
				else 'other' end as login,
			pg_catalog.count(*) as total, pg_catalog.count(*) filter (where a.state = 'active') as active
		from pg_catalog.pg_stat_activity a join pg_catalog.pg_roles r on r.oid = a.usesysid
		where a.datname = pg_catalog.current_database() and a.backend_type = 'client backend' and a.pid <> pg_catalog.pg_backend_pid()
		group by 1 order by 1`); err != nil {
		return err
	}
	if s.Tables, err = pg.All[TableStatistics](ctx, tx, busyRelations+`
		select n.nspname as schema, c.relname as name, greatest(c.reltuples, 0)::bigint as estimated_rows, coalesce(t.n_dead_tup, 0) as dead_rows,
			case when exists (
				select from busy b where b.relation in (c.oid, c.reltoastrelid)
					or b.relation in (select i.indexrelid from pg_catalog.pg_index i where i.indrelid in (c.oid, c.reltoastrelid)))
			then (
				select pg_catalog.sum(p.relpages)::bigint * pg_catalog.current_setting('block_size')::bigint from pg_catalog.pg_class p
				where p.oid in (c.oid, c.reltoastrelid)
					or p.oid in (select i.indexrelid from pg_catalog.pg_index i where i.indrelid in (c.oid, c.reltoastrelid)))
			else coalesce(pg_catalog.pg_total_relation_size(c.oid), 0) end as size,
			coalesce(t.seq_scan, 0) as sequential_scans, coalesce(t.idx_scan, 0) as index_scans
		from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
		left join pg_catalog.pg_stat_all_tables t on t.relid = c.oid
		where c.relkind in ('r', 'p') and c.relpersistence <> 't' and `+userSchema+`
		order by size desc, schema, name`+rowLimit); err != nil {
		return err
	}
	if s.UnusedIndexes, err = pg.All[UnusedIndex](ctx, tx, busyRelations+`
		select n.nspname as schema, r.relname as "table", c.relname as name,
			case when c.oid in (select b.relation from busy b) then c.relpages::bigint * pg_catalog.current_setting('block_size')::bigint
			else coalesce(pg_catalog.pg_relation_size(c.oid), 0) end as size
		from pg_catalog.pg_index i
		join pg_catalog.pg_class c on c.oid = i.indexrelid
		join pg_catalog.pg_class r on r.oid = i.indrelid
		join pg_catalog.pg_namespace n on n.oid = c.relnamespace
		join pg_catalog.pg_stat_all_indexes u on u.indexrelid = c.oid
		where u.idx_scan = 0 and i.indisvalid and not i.indisunique and not i.indisexclusion and c.relkind = 'i' and c.relpersistence <> 't' and `+userSchema+`
		order by size desc, schema, name`+rowLimit); err != nil {
		return err
	}

	return nil
}
