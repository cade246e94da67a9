package actor

import "github.com/socle-dev/socle/internal/pg"

// UnlockAdvisory is an expression that releases the session's advisory locks. Other sessions wait
// for no other reset step, so a statement may evaluate it before the rest.
const UnlockAdvisory = pg.UnlockAdvisory

// Reseed is an expression that seeds random() anew.
const Reseed = pg.Reseed

// SelectUserStatements selects the DEALLOCATE commands for the prepared statements that user code
// left in the session, or null.
const SelectUserStatements = "select pg_catalog.string_agg('deallocate ' operator(pg_catalog.||) " +
	"pg_catalog.quote_ident(name), '; ') from pg_catalog.pg_prepared_statements where from_sql"

// ResetStatements returns the statements that undo what user code can change in a session, but for
// prepared statements, see [SelectUserStatements]. The last one calls [UnlockAdvisory].
func ResetStatements() []string { return pg.ResetStatements() }
