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

// execution is the work of a request in the database: one transaction and, without a check, one
// round trip. It sets parameters, runs the pre-request function and the statement, and resets the
// session after user code.
type execution struct {
	pool           *pgxpool.Pool
	catalog        *catalog.Catalog
	version        schemaVersion // required version of the schema
	role           string
	settings       []setting
	isolation      string // "" means read committed
	readOnly       bool
	preRequest     string // statement without arguments that runs first, or ""
	countSQL       string // statement for the planner's row estimate, or ""
	sql            string
	args           []any
	countArgs      []any
	explain        bool // sql is an EXPLAIN; its rows are the lines of the body
	rollback       bool
	mayPrepare     bool // user code may leave prepared statements
	releasesLocks  bool // sql releases session advisory locks at its end
	inert          bool // no user code runs
	countOnly      bool // sql returns no row; its command tag has the changed rows
	unnamed        bool // use unnamed prepared statements
	acquireTimeout time.Duration
	// check inspects the result before COMMIT; an error rolls back. nil saves a round trip.
	check       func(*result) error
	maxResponse int // bytes of a buffered response
	// stream writes the response of a long body while it arrives. nil means that the body is
	// buffered, as short ones are.
	stream   *call
	deadline time.Time
	budget   *ResponseBudget
	// budgetTimeout limits how long a block waits for the response budget: it holds locks.
	budgetTimeout time.Duration
	// acquiring counts requests that wait for a connection.
	acquiring *atomic.Int32
}

// schemaVersion requires that query returns value. An empty value requires nothing.
type schemaVersion struct{ query, value string }

// staleCatalogMarker is part of PostgreSQL's error message for a wrong schema version.
const staleCatalogMarker = "the catalogue is out of date"

// staleCatalogError reports that the schema has another version than the catalog of the plan. No
// part of the request ran.
type staleCatalogError struct{ cause *pgconn.PgError }

func (e *staleCatalogError) Error() string { return e.cause.Error() }
func (e *staleCatalogError) Unwrap() error { return e.cause }

func isStaleCatalog(err error) bool {
	_, ok := errors.AsType[*staleCatalogError](err)
	return ok
}

// setting is a configuration parameter for the transaction.
type setting struct {
	name  string // constant, or from the configuration: becomes SQL text
	value []byte
}

// result is the row returned by a statement of package plan. Its slices are valid until release.
type result struct {
	total       int64 // -1 if not counted
	estimate    int64 // -1 if not requested
	rows        int64
	inserted    int64  // -1 without upsert
	prefix      []byte // before the body; only of a description
	body        []byte
	location    []byte
	headers     []byte          // response.headers; empty if not set
	status      []byte          // response.status; empty if not set
	source      *messageReader  // of a streamed body; nil if buffered
	sourceSize  int             // bytes of a streamed body
	responded   bool            // the response is written
	spool       *spool          // of a streamed body, or nil
	budget      *ResponseBudget // to which budgetBytes are returned
	budgetBytes int

	deallocateSQL []byte // removes statements that user code prepared; nil if there are none

	buffer []byte
}

// stalePlanStates are the SQLSTATEs of a prepared statement that a schema change made invalid. Such
// an error has no context; an error with context comes from a function.
var stalePlanStates = map[string]bool{
	"0A000": true, // cached plan must not change result type
	"26000": true, // no such prepared statement: user code has deallocated it
	"42703": true, "42883": true, "42804": true, "42P01": true, "42846": true, "42725": true,
}

// execute runs e in the memory of p. The caller releases the result. It returns errors of
// PostgreSQL, of the check or of a context.
func execute(ctx context.Context, e *execution, p *pipeline) (*result, error) {
	w := newWatchdog(ctx)
	defer w.release()

	for attempts := 0; ; attempts++ {
		e.acquiring.Add(1)
		conn, err := acquire(e.pool, w, e.acquireTimeout)
		e.acquiring.Add(-1)
		if err != nil {
			return nil, err
		}

		*p = pipeline{execution: e}
		p.watchdog = w
		if err = p.try(ctx, conn); err == nil {
			return p.result, nil
		}

		p.result.release()

		// A restarted server leaves as many dead connections as the pool had.
		if !p.notStarted(e.readOnly, err) || w.Err() != nil || attempts > int(e.pool.Stat().TotalConns()) {
			return nil, err
		}
	}
}

// commitPipelined reports whether COMMIT was sent with the statement, so that the change stands
// even if the response cannot be delivered.
func (e *execution) commitPipelined() bool { return !e.readOnly && !e.rollback && e.check == nil }

// isPgError reports whether PostgreSQL itself sent err, so that the connection is still usable.
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

// defaultAcquireTimeout limits the wait for a connection unless configured.
const defaultAcquireTimeout = 8 * time.Second

// errNoConnection is the cause of a timeout of the pool.
var errNoConnection = errors.New("no connection became available in time")

func acquire(pool *pgxpool.Pool, w *watchdog, timeout time.Duration) (*pgxpool.Conn, error) {
	w.arm(time.Now().Add(timeout), nil)
	conn, err := pool.Acquire(w)

	fired, clientErr := w.disarm(), w.ctx.Err()
	if !fired && clientErr == nil {
		return conn, err
	}

	if err == nil {
		conn.Release()
	}

	return nil, cmp.Or(clientErr, errNoConnection)
}
