package pg

import (
	"context"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
)

// UnlockAdvisory is an expression that releases the session's advisory locks.
const UnlockAdvisory = "pg_catalog.pg_advisory_unlock_all()"

// Reseed is an expression that seeds random() anew: the caller whose code has called setseed would
// foresee what others get. No function or operator in it can be one of the user's.
const Reseed = "pg_catalog.setseed(pg_catalog.float8div(" +
	"pg_catalog.uuid_hash_extended(pg_catalog.gen_random_uuid(), 0), 9223372036854775808))" // -1 to 1

// resetStatements are DISCARD ALL without plans and prepared statements, and with a new seed, in
// statements that a transaction block allows. PostgreSQL itself invalidates outdated plans, and
// planning the event trigger functions takes most of a DDL statement's time. Prepared statements
// are the pool's own.
var resetStatements = []string{
	"close all", "set session authorization default", "reset role", "reset all", "unlisten *", "discard temp",
	"discard sequences", "select " + Reseed + ", " + UnlockAdvisory,
}

// ResetStatements returns the statements that undo what user code can change in a session, except
// prepared statements. The last one calls [UnlockAdvisory]. It is their only list: a pool calls
// [Reset], or package actor sends these in its statement's round trip.
func ResetStatements() []string { return slices.Clone(resetStatements) }

// Reset returns a connection to its initial state, since user code may have changed it. After
// [Prepared] statements it has nothing to do.
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

	_, err := conn.PgConn().Exec(ctx, strings.Join(resetStatements, "; ")+"; deallocate all").ReadAll()

	return err
}
