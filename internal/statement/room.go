package statement

import (
	"context"
	"strconv"

	"socle/internal/fault"
)

// In a project whose database is full, a query is kept only if what it leaves is not larger than what was there: so rows and tables go, and none come.
// What is counted is what the transaction sees: a table that it has dropped or truncated counts no more, though its file is there until the end. What was undone leaves
// empty pages in its tables for a while; package tenant bounds what comes of that.

// selectSizes reads the bytes and the file of each of the owner's tables and indexes and of the
// catalogue of the database. The relations of the catalogue have numbers below 16384. The platform's
// tables are left out, which grow with any request, and so is what ANALYZE finds. The catalogues that
// all databases of the PostgreSQL server share are left out, too: they grow with every project.
const selectSizes = `
	select c.oid, pg_catalog.pg_relation_filenode(c.oid), pg_catalog.pg_relation_size(c.oid)
	from pg_catalog.pg_class c
	where c.relkind in ('r', 'i', 'm', 'S', 't') and (c.relowner = (select r.oid from pg_catalog.pg_roles r where r.rolname = session_user)
	  or c.oid < 16384 and not c.relisshared and c.relname !~ '^pg_(statistic|toast_2619)')`

// relationSize is the size of a relation in a file of its own.
type relationSize struct {
	file  string
	bytes int64
}

// growth returns by how many bytes a transaction made relations larger, less what it has dropped,
// truncated or rewritten. In the same file a transaction makes no relation smaller: that is a vacuum
// beside it, which makes no room for the transaction.
func growth(before, after map[string]relationSize) int64 {
	var grown int64
	for oid, now := range after {
		was := before[oid]
		if now.file == was.file {
			grown += max(0, now.bytes-was.bytes)
		} else {
			grown += now.bytes - was.bytes
		}
	}

	for oid, was := range before {
		if _, there := after[oid]; !there {
			grown -= was.bytes
		}
	}

	return grown
}

var errGrows = fault.New(fault.TooLarge,
	"the project's database has all the bytes that it may have, and would be larger after the query, which was undone").
	WithCode("quota_exceeded")

// settled has all done that the transaction would do at its end, lets it write nothing after that, and takes the query's search path, by which other
// operators could be meant.
const settled = `set constraints all immediate; set transaction read only; set local search_path = pg_catalog, pg_temp;`

// sizes runs a query that ends with [selectSizes], and returns the sizes by the relations' numbers.
func (s *session) sizes(ctx context.Context, sql string) (map[string]relationSize, error) {
	results, err := s.conn.Exec(ctx, sql).ReadAll()
	if err != nil {
		return nil, err
	}

	sizes := map[string]relationSize{}
	for _, row := range results[len(results)-1].Rows {
		if len(row) != 3 {
			return nil, fault.New(fault.Internal, "%d columns tell a size", len(row))
		}

		bytes, err := strconv.ParseInt(string(row[2]), 10, 64)
		if err != nil && row[2] != nil { // null: it was dropped just now
			return nil, err
		}

		sizes[string(row[0])] = relationSize{file: string(row[1]), bytes: bytes}
	}

	return sizes, nil
}
