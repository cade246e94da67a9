// Package pg connects Socle to PostgreSQL: pools, transactions, row reading, quoting, migrations,
// notifications, and the mapping from SQLSTATEs to faults. It contains no SQL on particular tables.
package pg

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/socle-dev/socle/internal/fault"
)

// Querier executes statements: a pool, a connection or a transaction.
type Querier interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// Beginner starts transactions: a pool, a connection, or a transaction (a savepoint).
type Beginner interface {
	Begin(ctx context.Context) (pgx.Tx, error)
}

// Settings for all Socle pools.
const (
	acquireTimeout  = 8 * time.Second // a request without a connection by then fails as Unavailable
	connectTimeout  = 5 * time.Second // for each host, unless the address has connect_timeout
	maxConnIdleTime = 30 * time.Second
)

// PoolConfig parses a connection string and adds the settings for all Socle connections: times in
// UTC, a search path without user schemas, and timeouts. max is the pool's maximum number of
// connections.
func PoolConfig(url string, max int32) (*pgxpool.Config, error) {
	c, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, errors.New("parse the database address: " + redactURL(err))
	}

	c.MaxConns, c.MinConns = max, 0
	c.MaxConnIdleTime = maxConnIdleTime
	c.HealthCheckPeriod = 10 * time.Second
	if c.ConnConfig.ConnectTimeout == 0 {
		c.ConnConfig.ConnectTimeout = connectTimeout
	}
	c.ConnConfig.MaxProtocolMessageBodyLen = MaxMessage
	c.ConnConfig.Tracer = statementTracer{}
	c.ConnConfig.RuntimeParams["application_name"] = "socle"
	c.ConnConfig.RuntimeParams["search_path"] = "pg_catalog, pg_temp"
	c.ConnConfig.RuntimeParams["timezone"] = "UTC"
	c.ConnConfig.RuntimeParams["client_encoding"] = "UTF8" // overrides the database's and the login's

	for _, keyword := range libpqKeywords {
		delete(c.ConnConfig.RuntimeParams, keyword)
	}

	c.AfterConnect = func(_ context.Context, conn *pgx.Conn) error {
		conn.TypeMap().RegisterType(&pgtype.Type{Name: "timestamptz", OID: pgtype.TimestamptzOID,
			Codec: &pgtype.TimestamptzCodec{ScanLocation: time.UTC}})
		conn.TypeMap().RegisterType(&pgtype.Type{Name: "uuid", OID: pgtype.UUIDOID, Codec: uuidCodec{}})
		conn.TypeMap().RegisterType(&pgtype.Type{Name: "json", OID: pgtype.JSONOID,
			Codec: &pgtype.JSONCodec{Marshal: json.Marshal, Unmarshal: scanJSON}})
		conn.TypeMap().RegisterType(&pgtype.Type{Name: "jsonb", OID: pgtype.JSONBOID,
			Codec: &pgtype.JSONBCodec{Marshal: json.Marshal, Unmarshal: scanJSON}})

		return nil
	}

	return c, nil
}

// redactURL returns the reason for a parse error without the address, which may contain a password.
func redactURL(err error) string {
	text := err.Error()
	if i := strings.LastIndex(text, "`: "); i >= 0 {
		return text[i+3:]
	}

	return "not a PostgreSQL URL"
}

// One executes a statement that returns one row and reads it into a T by column name. It fails with
// NotFound if there is no row.
func One[T any](ctx context.Context, q Querier, sql string, args ...any) (T, error) {
	rows, err := query(ctx, q, sql, args)
	if err != nil {
		var zero T
		return zero, err
	}

	v, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[T])
	return v, Fault(err)
}

// All executes a statement and reads its rows into Ts by column name. The slice is never nil.
func All[T any](ctx context.Context, q Querier, sql string, args ...any) ([]T, error) {
	rows, err := query(ctx, q, sql, args)
	if err != nil {
		return nil, err
	}

	v, err := pgx.CollectRows(rows, pgx.RowToStructByName[T])
	return v, Fault(err)
}

// Value executes a statement that returns one row with one column. It fails with NotFound if there
// is no row.
func Value[T any](ctx context.Context, q Querier, sql string, args ...any) (T, error) {
	rows, err := query(ctx, q, sql, args)
	if err != nil {
		var zero T
		return zero, err
	}

	v, err := pgx.CollectExactlyOneRow(rows, pgx.RowTo[T])
	return v, Fault(err)
}

// Values executes a statement that returns rows with one column. The slice is never nil.
func Values[T any](ctx context.Context, q Querier, sql string, args ...any) ([]T, error) {
	rows, err := query(ctx, q, sql, args)
	if err != nil {
		return nil, err
	}

	v, err := pgx.CollectRows(rows, pgx.RowTo[T])
	return v, Fault(err)
}

// Exec executes a statement and returns the number of affected rows.
func Exec(ctx context.Context, q Querier, sql string, args ...any) (int64, error) {
	ctx, cancel := withQueryTimeout(ctx, q)
	defer cancel()

	tag, err := q.Exec(ctx, sql, withCache(args)...)
	return tag.RowsAffected(), Fault(err)
}

// query executes a statement. On a pool it waits for a connection, at most acquireTimeout.
func query(ctx context.Context, q Querier, sql string, args []any) (pgx.Rows, error) {
	args = withCache(args)

	pool, ok := q.(*pgxpool.Pool)
	if !ok {
		rows, err := q.Query(ctx, sql, args...)
		return rows, Fault(err)
	}

	conn, err := Acquire(ctx, pool)
	if err != nil {
		return nil, err
	}

	rows, err := conn.Query(ctx, sql, args...)
	if err != nil {
		conn.Release()
		return nil, Fault(err)
	}

	return &pooledRows{Rows: rows, conn: conn}, nil
}

// pooledRows releases the connection when the rows are closed.
type pooledRows struct {
	pgx.Rows
	conn *pgxpool.Conn
}

func (r *pooledRows) Close() {
	r.Rows.Close()

	if r.conn != nil {
		r.conn.Release()
		r.conn = nil
	}
}

func (r *pooledRows) Next() bool {
	if r.Rows.Next() {
		return true
	}

	r.Close()
	return false
}

// withQueryTimeout limits a statement's time on a pool, from acquiring a connection to the result.
func withQueryTimeout(ctx context.Context, q Querier) (context.Context, context.CancelFunc) {
	switch q.(type) {
	case *pgxpool.Pool, Prepared:
		return context.WithTimeout(ctx, acquireTimeout+connectTimeout)
	}

	return ctx, func() {}
}

// Acquire takes a connection from a pool. It fails with Unavailable if none is free within
// acquireTimeout.
func Acquire(ctx context.Context, pool *pgxpool.Pool) (*pgxpool.Conn, error) {
	wait, cancel := context.WithTimeout(ctx, acquireTimeout)
	defer cancel()

	conn, err := pool.Acquire(wait)
	if err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, fault.New(fault.Unavailable, "the database is unavailable").WithCause(lost{err})
	}

	return conn, nil
}

// InTx runs f in a transaction, which commits if f returns nil and is rolled back otherwise. After
// a deadlock or a serialization failure it runs f again, up to three times in all, so f must do
// nothing that a rollback does not undo.
func InTx(ctx context.Context, b Beginner, f func(tx pgx.Tx) error) error {
	var err error
	for range 3 {
		if err = inTx(ctx, b, f); !retryable(err) {
			return err
		}
	}

	return err
}

// InTxValue runs f in a transaction that inTx begins, such as a project's InTx, and returns f's
// value.
func InTxValue[Tx, T any](
	ctx context.Context, inTx func(context.Context, func(tx Tx) error) error, f func(tx Tx) (T, error),
) (T, error) {
	var value T
	err := inTx(ctx, func(tx Tx) error {
		var err error
		value, err = f(tx)
		return err
	})

	return value, err
}

func inTx(ctx context.Context, b Beginner, f func(tx pgx.Tx) error) error {
	if pool, ok := b.(*pgxpool.Pool); ok {
		conn, err := Acquire(ctx, pool)
		if err != nil {
			return err
		}
		defer conn.Release()

		b = conn
	}

	tx, err := b.Begin(ctx)
	if err != nil {
		return Fault(err)
	}
	defer func() { _ = tx.Rollback(ctx) }() // no-op after a commit; a failure closes the connection

	if err := f(tx); err != nil {
		return Fault(err)
	}

	// pgx reports an error as safe to retry even after sending COMMIT, so check before whether
	// COMMIT will be sent at all.
	_, isNested := b.(pgx.Tx)
	sendsCommit := !isNested && ctx.Err() == nil && !tx.Conn().IsClosed()

	err = tx.Commit(ctx)
	if sendsCommit && outcomeUnknown(err) {
		return unknownOutcome(err)
	}

	return Fault(err)
}

func unknownOutcome(err error) error {
	return &fault.Error{Kind: fault.Unavailable, Code: OutcomeUnknown, Err: lost{err},
		Detail: "the connection to the database was lost during the commit; " +
			"check whether the change was made before repeating the request"}
}

// OutcomeUnknown is the error code for a transaction whose COMMIT was sent but not answered.
const OutcomeUnknown = "outcome_unknown"

// outcomeUnknown reports whether a commit that was sent may have succeeded despite err: PostgreSQL
// reported neither an error nor a rollback. A FATAL error ends the session, possibly after the
// commit.
func outcomeUnknown(err error) bool {
	if err == nil || errors.Is(err, pgx.ErrTxCommitRollback) || errors.Is(err, pgx.ErrTxClosed) {
		return false
	}

	e, ok := errors.AsType[*pgconn.PgError](err)
	return !ok || e.SeverityUnlocalized != "ERROR"
}

func retryable(err error) bool {
	e, ok := errors.AsType[*pgconn.PgError](err)
	return ok && (e.Code == "40001" || e.Code == "40P01")
}
