package requestlog

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/platform"
)

const (
	partitionSchema      = "platform_requests" // schema that holds the partitions
	partitionLayout      = "day_20060102"
	partitionLockTimeout = "5s" // lock timeout for creating or dropping a partition
)

// columns lists a row's columns in [rowSource.Values] order.
var columns = []string{
	"uuid", "project_uuid", "at", "method", "route", "status", "duration", "caller", "user_uuid", "key_uuid", "client",
	"schema_name", "query", "error_code", "error_message", "end_user_uuid", "role", "row_count", "bytes", "user_agent",
}

// appendRecords appends to the request log. It commits asynchronously, so a database crash may lose
// the most recent records.
func appendRecords(ctx context.Context, db *platform.DB, records []record) error {
	err := insert(ctx, db, records)
	if pg.State(err) != "23514" { // check_violation: no partition takes a row
		return err
	}

	days := map[string]time.Time{}
	for _, r := range records {
		days[r.at.UTC().Format(partitionLayout)] = r.at
	}

	for _, at := range days {
		if err := createPartition(ctx, db, at); err != nil {
			return err
		}
	}

	return insert(ctx, db, records)
}

func insert(ctx context.Context, db *platform.DB, records []record) error {
	return pg.InTx(ctx, db.Beginner(), func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "set local synchronous_commit = off"); err != nil {
			return err
		}

		_, err := tx.CopyFrom(ctx, pgx.Identifier{platform.Schema, "requests"}, columns,
			&rowSource{records: records, values: make([]any, len(columns))})
		return err
	})
}

// rowSource is a pgx.CopyFromSource for records. It cuts their texts, and yields values that need
// no conversion.
type rowSource struct {
	records []record
	values  []any
}

func (s *rowSource) Next() bool { return len(s.records) > 0 }
func (s *rowSource) Err() error { return nil }

func (s *rowSource) Values() ([]any, error) {
	r := &s.records[0]
	s.records = s.records[1:]

	v := s.values
	v[0] = pgtype.UUID{Bytes: r.uuid, Valid: true}
	v[1] = pgtype.UUID{Bytes: r.project, Valid: true}
	v[2] = pgtype.Timestamptz{Time: r.at, Valid: true}
	v[3] = r.method
	v[4] = routeOf(r)
	v[5] = pgtype.Int2{Int16: r.status, Valid: true}
	v[6] = pgtype.Int8{Int64: r.took.Microseconds(), Valid: true}
	v[7] = r.caller()
	v[8], v[9], v[10] = nullUUID(r.user), nullUUID(r.key), nil
	if r.client.IsValid() {
		v[10] = netip.PrefixFrom(r.client, r.client.BitLen())
	}

	v[11] = nullText(clip(r.schema, maxTarget))
	v[12] = nullText(cutQuery(r.query, r.prefix == rowsPrefix))
	v[13] = nullText(clip(r.code, maxTarget))
	v[14] = nullText(cutMessage(r.code, r.message))
	v[15] = nullUUID(r.endUser)
	v[16] = nullText(clip(r.role, maxTarget))
	v[17] = pgtype.Int8{Int64: r.rows, Valid: r.hasRows}
	v[18] = pgtype.Int8{Int64: r.bytes, Valid: true}
	v[19] = nullText(r.agent)

	return v, nil
}

// caller returns the kind of caller.
func (r *record) caller() string {
	switch {
	case r.user != uuid.Nil:
		return "user"
	case r.key != uuid.Nil:
		return "key"
	case r.token:
		return "token"
	}

	return "anonymous"
}

func nullText(text string) pgtype.Text { return pgtype.Text{String: text, Valid: text != ""} }

func nullUUID(id uuid.UUID) pgtype.UUID { return pgtype.UUID{Bytes: id, Valid: id != uuid.Nil} }

// createPartition creates the partition for the day that contains at. It accepts a partition that
// another server has created.
func createPartition(ctx context.Context, db *platform.DB, at time.Time) error {
	day := at.UTC().Truncate(24 * time.Hour)
	const layout = "2006-01-02 15:04:05-07"
	err := alterPartitions(ctx, db,
		fmt.Sprintf("create table if not exists %s partition of platform.requests for values from (%s) to (%s)",
			pg.Quote(partitionSchema, day.Format(partitionLayout)), pg.Literal(day.Format(layout)),
			pg.Literal(day.Add(24*time.Hour).Format(layout))))
	switch pg.State(err) {
	case "42P07", "42P17", "23505": // exists, overlaps, or created concurrently
		return nil
	}

	return err
}

// Sweep deletes requests older than the retention setting.
func Sweep(ctx context.Context, store *platform.Store) error {
	settings, err := store.Settings(ctx)
	if err != nil {
		return err
	}

	return dropPartitions(ctx, store.DB(), settings.RequestsKept())
}

// dropPartitions drops the partitions for days older than keep.
func dropPartitions(ctx context.Context, db *platform.DB, keep time.Duration) error {
	days, err := pg.Values[string](ctx, db.Querier(), `
		select c.relname from pg_inherits i join pg_class c on c.oid = i.inhrelid
		where i.inhparent = 'platform.requests'::regclass order by c.relname`)
	if err != nil {
		return err
	}

	for _, name := range days {
		day, err := time.Parse(partitionLayout, name)
		if err != nil || time.Since(day) < keep+24*time.Hour {
			continue
		}

		if err := alterPartitions(ctx, db, "drop table if exists "+pg.Quote(partitionSchema, name)); err != nil {
			return err
		}
	}

	return nil
}

// alterPartitions runs DDL on the request log with a lock timeout, so that requests do not queue
// behind it for long.
func alterPartitions(ctx context.Context, db *platform.DB, sql string) error {
	return pg.InTx(ctx, db.Beginner(), func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "set local lock_timeout = "+pg.Literal(partitionLockTimeout)); err != nil {
			return err
		}

		_, err := tx.Exec(ctx, sql)
		return err
	})
}
