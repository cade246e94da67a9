package statement

import (
	"context"
	"strconv"

	"socle/internal/fault"
)

// In a project whose database is full, a query is kept only if what it leaves is not larger than what was there: so rows and tables go, and none come.
// What is counted is what the transaction sees: a table that it has dropped or truncated counts no more, though its file is there until the end. What was undone leaves
// empty pages in its tables for a while; package tenant bounds what comes of that.

// taken asks how many bytes the owner's tables and indexes and the catalogue of the database have.
// The relations of the catalogue have numbers below 16384. The platform's tables are left out,
// which grow with any request, and so is what ANALYZE finds. The catalogues that all databases of
// the PostgreSQL server share are left out, too: they grow with every project.
const taken = `
	select pg_catalog.sum(pg_catalog.pg_relation_size(c.oid))
	from pg_catalog.pg_class c
	where c.relkind in ('r', 'i', 'm', 'S', 't') and (c.relowner = (select r.oid from pg_catalog.pg_roles r where r.rolname = session_user)
	  or c.oid < 16384 and not c.relisshared and c.relname !~ '^pg_(statistic|toast_2619)')`

var errGrows = fault.New(fault.TooLarge, "the project's database has all the bytes that it may have, and would be larger after the query, which was undone").WithCode("quota_exceeded")

// settled has all done that the transaction would do at its end, lets it write nothing after that, and takes the query's search path, by which other
// operators could be meant.
const settled = `set constraints all immediate; set transaction read only; set local search_path = pg_catalog, pg_temp;`

// taken runs such a query, whose last result is a number.
func (s *session) taken(ctx context.Context, sql string) (int64, error) {
	results, err := s.conn.Exec(ctx, sql).ReadAll()
	if err != nil {
		return 0, err
	}
	rows := results[len(results)-1].Rows
	if len(rows) != 1 || len(rows[0]) != 1 {
		return 0, fault.New(fault.Internal, "%d rows tell the size", len(rows))
	}
	return strconv.ParseInt(string(rows[0][0]), 10, 64)
}
