package event

import (
	"context"
	"strconv"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/projectdb"
)

const (
	maxPage      = 500     // changes per read
	maxPageBytes = 1 << 20 // bytes of rows per read, but for the first one
)

// Kinds of changes as the log has them.
const (
	inserted  = "i"
	updated   = "u"
	deleted   = "d"
	truncated = "t"
	factual   = "f" // a fact of the platform, see [Types]
)

// entry is a change in the log.
type entry struct {
	XID       uint64
	Seq       int64
	At        time.Time
	Relation  uint32
	Operation string
	Record    []byte // JSON object; nil after deletion
	Old       []byte // the row before; nil for an insertion
	Oversized bool
	Type      string    // a fact's
	ID        uuid.UUID // zero: see [eventID]

	cursor string
}

// row returns the row that policies and filters are about.
func (e *entry) row() []byte {
	if e.Operation == deleted {
		return e.Old
	}
	return e.Record
}

// head is the state of a log when it was read.
type head struct {
	now     snapshot
	flushed bool   // what now sees is on disk
	place   string // timeline and database
	version string // the catalog's
}

// page is a part of the log.
type page struct {
	head    head
	entries []*entry
	more    bool
}

// selectHead begins both reads: it has one row, and more with entries.
const selectHead = `
	select pg_current_snapshot()::text, pg_current_wal_insert_lsn() <= pg_current_wal_flush_lsn(),
		substr(pg_walfile_name(pg_current_wal_insert_lsn()), 1, 8) || '-' || (select oid from pg_database where datname = current_database()),
		coalesce((` + projectdb.CatalogVersion + `), ''),
		e.xid::text, e.seq, e.at, e.relation::bigint, e.operation::text, e.record::text, e.old::text, e.oversized, coalesce(e.type, ''), e.id, e.found
	from (select) h left join lateral (
		select * from (
			select *, sum(size) over (order by xid, seq) - size as before, count(*) over () as found from (`

const selectEnd = `
				order by xid, seq limit @max::bigint
			) t
		) t where before < @bytes::bigint order by xid, seq
	) e on true`

// selectNew selects what a snapshot does not see. The conditions are exact for the snapshot of the
// statement itself, and each is a scan of an index.
const selectNew = selectHead + `
				select xid, seq, at, relation, operation, record, old, size, oversized, type, id from socle.events
				where xid >= pg_snapshot_xmax(@from::pg_snapshot) or xid = any(array(select pg_snapshot_xip(@from::pg_snapshot)))` +
	selectEnd

// selectBetween selects what one snapshot does not see and another one does, after a change.
const selectBetween = selectHead + `
				select xid, seq, at, relation, operation, record, old, size, oversized, type, id from socle.events
				where (xid, seq) > (@xid::xid8, @seq::bigint) and pg_visible_in_snapshot(xid, @to::pg_snapshot)
					and (xid >= pg_snapshot_xmax(@from::pg_snapshot) or xid = any(array(select pg_snapshot_xip(@from::pg_snapshot))))` +
	selectEnd

// selectRange selects what a snapshot sees, after a change, and was written in a range of time.
const selectRange = selectHead + `
				select xid, seq, at, relation, operation, record, old, size, oversized, type, id from socle.events
				where (xid, seq) > (@xid::xid8, @seq::bigint) and pg_visible_in_snapshot(xid, @to::pg_snapshot)
					and (xid >= pg_snapshot_xmax(@from::pg_snapshot) or xid = any(array(select pg_snapshot_xip(@from::pg_snapshot))))
					and at >= @since and at < @before` +
	selectEnd

// readNew reads the first changes that a snapshot does not see.
func readNew(ctx context.Context, q pg.Querier, from snapshot) (page, error) {
	return read(ctx, q, selectNew, pgx.StrictNamedArgs{"from": from.text, "max": maxPage, "bytes": maxPageBytes})
}

// readBetween reads the next changes at a position that has both snapshots.
func readBetween(ctx context.Context, q pg.Querier, p position) (page, error) {
	return read(ctx, q, selectBetween, p.arguments())
}

// readRange reads the next changes at a position that were written in a range of time.
func readRange(ctx context.Context, q pg.Querier, p position, since, before time.Time) (page, error) {
	args := p.arguments()
	args["since"], args["before"] = since, before

	return read(ctx, q, selectRange, args)
}

// arguments returns the position as arguments of a statement.
func (p position) arguments() pgx.StrictNamedArgs {
	xid := p.xid
	if xid == 0 && p.from.xmin > 0 {
		xid = p.from.xmin - 1
	}

	return pgx.StrictNamedArgs{"from": p.from.text, "to": p.to.text, "xid": strconv.FormatUint(xid, 10),
		"seq": int64(p.seq), "max": maxPage, "bytes": maxPageBytes}
}

func read(ctx context.Context, q pg.Querier, sql string, args pgx.StrictNamedArgs) (page, error) {
	rows, err := q.Query(ctx, sql, args)
	if err != nil {
		return page{}, pg.Fault(err)
	}
	defer rows.Close()

	var p page
	var found int64
	for rows.Next() {
		var now string
		var xid, operation *string
		var seq, relation, count *int64
		var at *time.Time
		var oversized *bool
		var id uuid.NullUUID
		var e entry
		if err := rows.Scan(&now, &p.head.flushed, &p.head.place, &p.head.version, &xid, &seq, &at, &relation,
			&operation, &e.Record, &e.Old, &oversized, &e.Type, &id, &count); err != nil {
			return page{}, pg.Fault(err)
		}

		p.head.now, _ = parseSnapshot(now)
		if xid == nil {
			continue
		}

		e.XID, _ = strconv.ParseUint(*xid, 10, 64)
		e.ID = id.UUID
		e.Seq, e.At, e.Relation, e.Operation, e.Oversized = *seq, *at, uint32(*relation), *operation, *oversized
		e.flatten()
		found = *count
		p.entries = append(p.entries, &e)
	}

	p.more = found == maxPage || int(found) > len(p.entries)
	return p, pg.Fault(rows.Err())
}

// flush waits until everything that a snapshot sees is on disk. Otherwise a crash could give its
// transactions' numbers to others, whose changes a reader would take for seen.
func flush(ctx context.Context, q pg.Querier) error {
	_, err := pg.Exec(ctx, q, `select pg_logical_emit_message(true, '', '')`)
	return err
}
