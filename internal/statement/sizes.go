package statement

import (
	"context"
	"strconv"

	"github.com/socle-dev/socle/internal/fault"
)

// A project over quota may run queries that do not grow the database: they may delete rows and drop
// tables. Sizes are those that the transaction sees: a table that it dropped or truncated no longer
// counts, although the file exists until the commit. Rolled back changes leave empty pages in
// tables for a while; package projectdb bounds these.

// selectSizes reads the bytes and file of each table and index that belongs to the owner or to the
// database's catalog. Catalog relations have OIDs below 16384. It excludes the platform's tables,
// which grow with any request, the statistics that ANALYZE writes, and the server's shared
// catalogs, which grow with each project.
const selectSizes = `
	select c.oid, pg_catalog.pg_relation_filenode(c.oid), pg_catalog.pg_relation_size(c.oid)
	from pg_catalog.pg_class c
	where c.relkind in ('r', 'i', 'm', 'S', 't') and (c.relowner = (select r.oid from pg_catalog.pg_roles r where r.rolname = session_user)
	  or c.oid < 16384 and not c.relisshared and c.relname !~ '^pg_(statistic|toast_2619)')`

// relationSize is a relation's size and file.
type relationSize struct {
	file  string
	bytes int64
}

// growth returns by how many bytes a transaction grew relations, minus those that it dropped,
// truncated or rewrote. A transaction can't shrink a relation within the same file: a concurrent
// vacuum did, which frees nothing for the transaction.
func growth(baseline, sizes map[string]relationSize) int64 {
	var grown int64
	for oid, now := range sizes {
		was := baseline[oid]
		if now.file == was.file {
			grown += max(0, now.bytes-was.bytes)
		} else {
			grown += now.bytes - was.bytes
		}
	}

	for oid, was := range baseline {
		if _, exists := sizes[oid]; !exists {
			grown -= was.bytes
		}
	}

	return grown
}

var errGrows = fault.New(fault.TooLarge,
	"the project's database is over its quota and the query would grow it, so the query was rolled back").
	WithCode("quota_exceeded")

// sealTransaction runs deferred constraints, makes the transaction read-only, and resets the
// query's search_path, which could resolve operators differently.
const sealTransaction = `set constraints all immediate; set transaction read only; set local search_path = pg_catalog, pg_temp;`

// sizes runs SQL that ends with [selectSizes] and returns the sizes by OID.
func (s *session) sizes(ctx context.Context, sql string) (map[string]relationSize, error) {
	results, err := s.conn.Exec(ctx, sql).ReadAll()
	if err != nil {
		return nil, err
	}

	sizes := map[string]relationSize{}
	for _, row := range results[len(results)-1].Rows {
		if len(row) != 3 {
			return nil, fault.New(fault.Internal, "read sizes: got %d columns, want 3", len(row))
		}

		bytes, err := strconv.ParseInt(string(row[2]), 10, 64)
		if err != nil && row[2] != nil { // null: dropped concurrently
			return nil, err
		}

		sizes[string(row[0])] = relationSize{file: string(row[1]), bytes: bytes}
	}

	return sizes, nil
}
