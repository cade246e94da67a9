package rest

import (
	"cmp"
	"context"
	"errors"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"socle/internal/rest/catalog"
)

// execution is what a request does in the database, in one transaction and, but for a check, in one round trip:
// its settings, what runs before it, the statement itself. What code of the database's may have left in the session is taken
// from it in the same round trip.
type execution struct {
	pool           *pgxpool.Pool
	catalog        *catalog.Catalog
	version        schemaVersion // that the schema must have
	role           string
	settings       []setting
	isolation      string // "" is read committed
	readOnly       bool
	preRequest     string // a statement without arguments that runs first, or ""
	countSQL       string // the statement whose rows the planner is asked to guess, or ""
	sql            string
	args           []any
	countArgs      []any
	explain        bool          // sql is an EXPLAIN: its rows are the body's lines
	rollback       bool          // nothing is kept
	mayPrepare     bool          // code of the database's that may prepare statements
	releasesLocks  bool          // sql gives up advisory locks at its end
	inert          bool          // no code of the database's runs
	countOnly      bool          // sql returns no row, but how many it changed
	unnamed        bool          // nothing is kept prepared
	acquireTimeout time.Duration // for a connection
	// check looks at the result before anything is kept; an error undoes all. nil saves a round trip.
	check       func(*result) error
	maxResponse int // bytes of the answer, if it is held
	// pass answers with a result whose body is long, while that comes. nil: it is held, as any short one is.
	stream   *call
	deadline time.Time // it is to be done
	budget   *ResponseBudget
	// patience is how long a transaction that holds locks waits for room for its answer.
	budgetTimeout time.Duration
	// waiting counts those who wait for a connection.
	acquiring *atomic.Int32
}

// version is what the schema must be at: what the query returns. Without a version anything will do.
type schemaVersion struct{ query, value string }

// staleMark is in what PostgreSQL says when the schema has another version.
const staleCatalogMarker = "the catalogue is out of date"

// staleError says that the schema has another version than the catalogue that a request was planned by. Nothing of the request ran.
type staleCatalogError struct{ cause *pgconn.PgError }

func (e *staleCatalogError) Error() string { return e.cause.Error() }
func (e *staleCatalogError) Unwrap() error { return e.cause }

func isStaleCatalog(err error) bool {
	_, ok := errors.AsType[*staleCatalogError](err)
	return ok
}

// setting is a configuration parameter for the transaction.
type setting struct {
	name  string // a constant, or from the configuration: part of the statement's text
	value []byte
}

// result is the row that a statement of package plan returns. Its slices are good until release.
type result struct {
	total       int64 // -1: not counted
	estimate    int64 // -1: not asked
	rows        int64
	inserted    int64  // -1: no upsert
	prefix      []byte // before the body; nil but of a description
	body        []byte
	location    []byte
	headers     []byte          // of response.headers; empty if it was not set
	status      []byte          // of response.status, likewise
	source      *messageReader  // where the body comes from, if it is not held; nil if it is
	sourceSize  int             // of the body in bytes, if it is not held
	responded   bool            // the request is answered
	spool       *spool          // on which the body is on its way to the client, or nil
	budget      *ResponseBudget // that taken bytes go back to
	budgetBytes int

	deallocateSQL []byte // statements that take away what a function prepared; nil if it did not

	buffer []byte
}

// stale are the SQLSTATEs by which a prepared statement fails because what it was prepared for is no more. They
// come without a context: one with it comes from within a function.
var stalePlanStates = map[string]bool{
	"0A000": true, // cached plan must not change result type
	"26000": true, // no such prepared statement: someone has deallocated it
	"42703": true, "42883": true, "42804": true, "42P01": true, "42846": true, "42725": true,
}

// execute runs e, in the memory of x. The caller releases the result.
// It fails with what PostgreSQL says, with what check says, or with a context's error.
func execute(ctx context.Context, e *execution, x *pipeline) (*result, error) {
	dog := newWatchdog(ctx)
	defer dog.release()

	for attempts := 0; ; attempts++ {
		e.acquiring.Add(1)
		conn, err := acquire(e.pool, dog, e.acquireTimeout)
		e.acquiring.Add(-1)
		if err != nil {
			return nil, err
		}

		*x = pipeline{execution: e}
		x.watchdog = dog
		if err = x.try(ctx, conn); err == nil {
			return x.result, nil
		}

		x.result.release()

		// A server that was started again leaves as many dead connections as the pool had.
		if !x.notStarted(e.readOnly, err) || dog.Err() != nil || attempts > int(e.pool.Stat().TotalConns()) {
			return nil, err
		}
	}
}

// keeps reports whether the end of the transaction went along with its statement: what is done is kept whatever becomes of the answer.
func (e *execution) commitPipelined() bool { return !e.readOnly && !e.rollback && e.check == nil }

// isServers reports whether PostgreSQL itself sent err: then the connection is still good.
func isPgError(err error) bool {
	_, ok := errors.AsType[*pgconn.PgError](err)
	return ok
}

func parseCount(b []byte, absent int64) (int64, error) {
	if len(b) == 0 {
		return absent, nil
	}
	return strconv.ParseInt(string(b), 10, 64)
}

// acquireTimeout is how long a request waits for a connection unless the configuration says otherwise.
const defaultAcquireTimeout = 8 * time.Second

// errNoConnection is the cause when no connection became free in time.
var errNoConnection = errors.New("no connection became free in time")

func acquire(pool *pgxpool.Pool, dog *watchdog, timeout time.Duration) (*pgxpool.Conn, error) {
	dog.arm(time.Now().Add(timeout), nil)
	conn, err := pool.Acquire(dog)

	fired, clientErr := dog.disarm(), dog.ctx.Err()
	if !fired && clientErr == nil {
		return conn, err
	}

	if err == nil {
		conn.Release()
	}

	return nil, cmp.Or(clientErr, errNoConnection)
}
