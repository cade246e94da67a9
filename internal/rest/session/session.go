package session

import (
	"cmp"
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"go.opentelemetry.io/otel/codes"

	"github.com/socle-dev/socle/internal/actor"
	"github.com/socle-dev/socle/internal/fair"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/rest/catalog"
)

// DefaultAcquireTimeout is Config.AcquireTimeout's default.
const DefaultAcquireTimeout = 8 * time.Second

// Config configures an Executor.
type Config struct {
	AcquireTimeout time.Duration // for a connection from the pool; 0 means 8 s
	// SlowClientTimeout bounds the idle time of a slow client's connection while other requests
	// wait for it. 0 means 2 s.
	SlowClientTimeout time.Duration
	// MaxResponse limits a buffered response (from a write or a volatile function), in bytes. 0
	// means 32 MiB.
	MaxResponse int
	Budget      *Budget // for buffered responses; nil means 128 MiB for this executor alone
	// PoolContended reports whether requests wait for connections in other pools that could be
	// freed in this executor's pools. nil means never.
	PoolContended func() bool
	// NoPreparedStatements turns named prepared statements off, for poolers that assign a
	// connection per transaction.
	NoPreparedStatements bool
}

// Executor runs executions. It is safe for concurrent use.
type Executor struct {
	Config
	acquiring atomic.Int32 // executions waiting for a connection
}

// New returns an executor with the given configuration.
func New(c Config) *Executor {
	if c.AcquireTimeout == 0 {
		c.AcquireTimeout = DefaultAcquireTimeout
	}
	if c.SlowClientTimeout == 0 {
		c.SlowClientTimeout = defaultSlowClientTimeout
	}
	if c.MaxResponse == 0 {
		c.MaxResponse = 32 << 20
	}
	if c.Budget == nil {
		c.Budget = NewBudget(BudgetSize)
	}
	if c.PoolContended == nil {
		c.PoolContended = func() bool { return false }
	}

	return &Executor{Config: c}
}

// Execution is a request's work in the database: a transaction of one step, and of those that Next
// returns.
type Execution struct {
	Pool     *pgxpool.Pool
	Deadline time.Time
	// Catalog is the one that the statement was planned with. The first execution with another
	// catalog resets the session and its prepared statements.
	Catalog *catalog.Catalog
	Version Version // required schema version
	// Owner returns the key that a long response is charged to. nil means the zero key.
	Owner func(context.Context) fair.Key

	Isolation string // "" means read committed
	ReadOnly  bool
	Rollback  bool
	// Guard is a statement without a result that runs first, as the login, if it has SQL. Its
	// failure is a [GuardError].
	Guard Statement

	Step
	// Next returns the step after the n-th one, counted from 0, whose result is res. nil ends the
	// transaction; an error rolls it back. The steps can run again from the start. Each one costs a
	// round trip.
	Next func(n int, res *Result) (*Step, error)
	// Streams allows a long body to be streamed. Otherwise it is buffered, as short ones are.
	Streams bool
}

// Step is a part of a transaction: it sets parameters, and runs the pre-request function and the
// statement.
type Step struct {
	Role       string // that the settings assume; part of the prepared statements' key
	Settings   []actor.Setting
	PreRequest string // statement without arguments that runs first, or ""

	Statement Statement
	// Estimate is a statement for the planner's row estimate, if it has SQL.
	Estimate Statement
	// Check inspects the result before the next step or COMMIT; an error rolls back. nil saves a
	// round trip.
	Check func(*Result) error
	// Restore is set after a statement without a result.
	Restore []actor.Setting
}

// Statement is a statement with its arguments, each a string, []byte or nil.
type Statement struct {
	SQL           string
	Args          []any
	Explain       bool // an EXPLAIN; its rows are the body's lines
	CountOnly     bool // no row is returned; the command tag has the changed rows
	Inert         bool // no user code runs
	MayPrepare    bool // user code may leave prepared statements
	ReleasesLocks bool // session advisory locks are released at the end
	NoResult      bool // its rows are ignored, and the result of the step before stays
}

// Version requires that Query returns Value. An empty value requires nothing.
type Version struct{ Query, Value string }

// Execute runs e. It returns errors from PostgreSQL, the check or a context, and this package's
// errors. The caller releases the result, and does not change e until then.
func (x *Executor) Execute(ctx context.Context, e *Execution) (*Result, error) {
	_, span := pg.StartSpan(ctx, e.Statement.SQL)
	defer span.End()

	result, err := x.execute(ctx, e)
	if err != nil {
		span.SetStatus(codes.Error, "")
	}

	return result, err
}

func (x *Executor) execute(ctx context.Context, e *Execution) (*Result, error) {
	p := newPipeline(ctx, x, e)
	for attempts := 0; ; attempts++ {
		conn, err := x.acquire(e.Pool, p.watchdog)
		if err != nil {
			p.release()
			return nil, err
		}

		if err = p.try(ctx, conn); err == nil {
			return &p.result, nil
		}

		// A restarted server leaves as many dead connections as the pool had.
		dead := attempts <= int(e.Pool.Stat().TotalConns()) && !IsOutcomeUnknown(err) && p.notStarted(e.ReadOnly, err)
		if !dead || p.watchdog.Err() != nil {
			p.release()
			return nil, err
		}

		p.reset()
	}
}

func (x *Executor) acquire(pool *pgxpool.Pool, w *watchdog) (*pgxpool.Conn, error) {
	x.acquiring.Add(1)
	defer x.acquiring.Add(-1)

	w.arm(time.Now().Add(x.AcquireTimeout), nil)
	conn, err := pool.Acquire(w)

	fired, clientErr := w.disarm(), w.ctx.Err()
	if !fired && clientErr == nil {
		return conn, err
	}

	if err == nil {
		conn.Release()
	}

	return nil, cmp.Or(clientErr, ErrNoConnection)
}

// contended reports whether requests wait for a connection from pool.
func (x *Executor) contended(pool *pgxpool.Pool) bool {
	if x.PoolContended() {
		return true
	}

	stat := pool.Stat()
	return x.acquiring.Load() > 0 && stat.AcquiredConns() == stat.MaxConns()
}

// Errors from an execution that changed nothing.
var (
	// ErrNoConnection reports that no connection became available within Config.AcquireTimeout.
	ErrNoConnection = errors.New("no connection became available in time")
	// ErrNoBudget reports that the budget had no room for the response.
	ErrNoBudget = errors.New("the budget of responses is exhausted")
	// ErrNUL reports a statement with a NUL, which ends a protocol string.
	ErrNUL = errors.New("the statement has a NUL")
)

// OutcomeUnknownError reports that the connection ended, or the deadline passed, after COMMIT was
// sent and before it was answered: the change may have been made.
type OutcomeUnknownError struct{ Cause error }

func (e *OutcomeUnknownError) Error() string { return "outcome unknown: " + e.Cause.Error() }
func (e *OutcomeUnknownError) Unwrap() error { return e.Cause }

// IsOutcomeUnknown reports whether err is an [OutcomeUnknownError].
func IsOutcomeUnknown(err error) bool {
	_, ok := errors.AsType[*OutcomeUnknownError](err)
	return ok
}

// staleCatalogMarker is part of PostgreSQL's error message for a wrong schema version.
const staleCatalogMarker = "the catalogue is out of date"

// StaleCatalogError reports that the schema version is not the required one. No part of the
// execution ran.
type StaleCatalogError struct{ Cause *pgconn.PgError }

func (e *StaleCatalogError) Error() string { return e.Cause.Error() }
func (e *StaleCatalogError) Unwrap() error { return e.Cause }

// IsStaleCatalog reports whether err is a [StaleCatalogError].
func IsStaleCatalog(err error) bool {
	_, ok := errors.AsType[*StaleCatalogError](err)
	return ok
}

// GuardError reports that an execution's guard failed. Nothing else ran.
type GuardError struct{ Cause *pgconn.PgError }

func (e *GuardError) Error() string { return e.Cause.Error() }
func (e *GuardError) Unwrap() error { return e.Cause }

// stalePlanStates are the SQLSTATEs for a prepared statement that a schema change made invalid.
// Such an error has no context; an error with context comes from a function.
var stalePlanStates = map[string]bool{
	"0A000": true, // cached plan must not change result type
	"26000": true, // no such prepared statement: user code has deallocated it
	"42703": true, "42883": true, "42804": true, "42P01": true, "42846": true, "42725": true,
}

// IsMissingObject reports whether PostgreSQL lacks an object that a statement names, or knows it by
// another type.
func IsMissingObject(err error) bool {
	e, ok := errors.AsType[*pgconn.PgError](err)
	return ok && stalePlanStates[e.Code]
}

// isPgError reports whether PostgreSQL itself sent err, so that the connection is still usable.
func isPgError(err error) bool {
	_, ok := errors.AsType[*pgconn.PgError](err)
	return ok
}
