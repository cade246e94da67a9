package pg

import (
	"context"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
)

// UnlockAdvisory is an expression that releases the advisory locks of the session. It is the only
// step of a reset that others wait for, so a statement may take it before the rest.
const UnlockAdvisory = "pg_catalog.pg_advisory_unlock_all()"

// unlock is UnlockAdvisory as a statement.
const unlock = "select " + UnlockAdvisory

// resetStatements are DISCARD ALL without plans and prepared statements, in statements that a
// transaction block allows. PostgreSQL itself invalidates outdated plans, and planning the
// functions of event triggers takes most of the time of a DDL statement. Prepared statements are
// the pool's own, see [SelectUserStatements].
var resetStatements = []string{
	"close all", "set session authorization default", "reset role", "reset all", "unlisten *", "discard temp",
	"discard sequences", unlock,
}

// SelectUserStatements selects the DEALLOCATE of the prepared statements that user code left in the
// session, null if there are none.
const SelectUserStatements = "select pg_catalog.string_agg('deallocate ' operator(pg_catalog.||) " +
	"pg_catalog.quote_ident(name), '; ') from pg_catalog.pg_prepared_statements where from_sql"

// ResetStatements returns the statements that undo what user code can change in a session, but for
// prepared statements. No other list of them exists: a pool either runs these in the round trip of
// its statement, or calls [Reset].
func ResetStatements() []string { return slices.Clone(resetStatements) }

// ResetQuery returns [ResetStatements] as one simple query with its number of statements. unlocked
// leaves out [UnlockAdvisory], which another statement has called.
func ResetQuery(unlocked bool) (sql string, statements int) {
	all := resetStatements
	if unlocked {
		all = all[:len(all)-1]
	}

	return strings.Join(all, "; "), len(all)
}

// Reset returns a connection to the state of a new one, since user code may have changed it. After
// statements of [Prepared] it has nothing to do.
func Reset(ctx context.Context, conn *pgx.Conn) error {
	data := conn.PgConn().CustomData()
	if data[isUnchanged] != nil {
		delete(data, isUnchanged)
		return nil
	}

	if data[hasPrepared] != nil {
		delete(data, hasPrepared)

		if err := conn.DeallocateAll(ctx); err != nil { // pgx forgets them, too
			return err
		}
	}

	sql, _ := ResetQuery(false)
	_, err := conn.PgConn().Exec(ctx, sql+"; deallocate all").ReadAll()

	return err
}
