package pg

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Single is a transaction that is sent in one round trip: a statement that returns at most one row.
type Single struct {
	SQL  string
	Args pgx.StrictNamedArgs

	// Lock is a statement before SQL that locks a row. If SQL itself waited for a row, PostgreSQL
	// would then start its whole plan anew. "" is none.
	Lock     string
	LockArgs pgx.StrictNamedArgs

	// EarlyRelease releases the locks before the commit is durable, so that changes to a common row
	// share a flush to the disk instead of waiting for each other's. SQL turns off
	// synchronous_commit. The change is durable when [OneInSingle] returns. Others see it a moment
	// before: a machine crash can still undo it, so they must not act on it in a way that a
	// rollback does not undo.
	EarlyRelease bool
}

// flush commits a record of its own, for PostgreSQL flushes nothing at the end of a transaction
// without one.
const flush = `select pg_logical_emit_message(true, '', '')`

// Flush makes all earlier commits durable, on a synchronous standby too.
func Flush(ctx context.Context, q Querier) error {
	_, err := Exec(ctx, q, flush)
	return err
}

// rollbackTimeout bounds the end of a failed transaction.
const rollbackTimeout = 5 * time.Second

// OneInSingle executes a transaction and reads the row. It fails with NotFound without a row; SQL
// then must have changed nothing. After a deadlock or a serialization failure it tries again, up to
// three times in all. If it can't tell whether the change was made, as after a lost connection, it
// fails with Unavailable, code [OutcomeUnknown].
func OneInSingle[T any](ctx context.Context, pool *pgxpool.Pool, s Single, scan pgx.RowToFunc[T]) (T, error) {
	var v T
	var certain bool
	var err error
	for range 3 {
		if v, certain, err = oneInSingle(ctx, pool, s, scan); !certain || !retryable(err) {
			break
		}
	}

	if !certain {
		return v, unknownOutcome(err)
	}

	return v, Fault(err)
}

// oneInSingle is one [OneInSingle] attempt. certain is false if the transaction may have succeeded
// despite err.
func oneInSingle[T any](
	ctx context.Context, pool *pgxpool.Pool, s Single, scan pgx.RowToFunc[T],
) (v T, certain bool, err error) {
	conn, err := Acquire(ctx, pool)
	if err != nil {
		return v, true, err
	}
	defer conn.Release()

	if s.Lock == "" && !s.EarlyRelease {
		rows, err := conn.Query(ctx, s.SQL, cachedArgs(s.Args))
		if err == nil {
			v, err = pgx.CollectExactlyOneRow(rows, scan)
		}

		return v, hasOutcome(err), err
	}

	v, certain, err = sendSingle(ctx, conn.Conn(), s, scan)
	if conn.Conn().PgConn().TxStatus() != 'I' && !conn.Conn().IsClosed() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), rollbackTimeout)
		defer cancel()

		_, rollback := conn.Exec(ctx, "rollback")
		err = errors.Join(err, rollback)
	}

	return v, certain, err
}

// hasOutcome reports whether err tells if the transaction succeeded.
func hasOutcome(err error) bool {
	return errors.Is(err, pgx.ErrNoRows) || pgconn.SafeToRetry(err) || !outcomeUnknown(err)
}

// sendSingle sends a transaction's statements together. An error skips those after it.
func sendSingle[T any](
	ctx context.Context, conn *pgx.Conn, s Single, scan pgx.RowToFunc[T],
) (v T, certain bool, err error) {
	var batch pgx.Batch
	batch.Queue("begin")
	if s.Lock != "" {
		batch.Queue(s.Lock, cachedArgs(s.LockArgs))
	}

	beforeSQL := batch.Len()
	batch.Queue(s.SQL, cachedArgs(s.Args))
	batch.Queue("commit")
	untilCommit := batch.Len()

	if s.EarlyRelease {
		batch.Queue(flush)
	}

	results := conn.SendBatch(ctx, &batch)
	defer func() { err = errors.Join(err, results.Close()) }()

	for range beforeSQL {
		if _, err := results.Exec(); err != nil {
			return v, hasOutcome(err), err
		}
	}

	rows, err := results.Query()
	if err != nil {
		return v, hasOutcome(err), err
	}

	v, rowErr := pgx.CollectExactlyOneRow(rows, scan)
	if rowErr != nil && !errors.Is(rowErr, pgx.ErrNoRows) {
		return v, hasOutcome(rowErr), rowErr
	}

	for done := beforeSQL + 1; done < batch.Len(); done++ {
		if _, err := results.Exec(); err != nil {
			return v, done < untilCommit && hasOutcome(err), err
		}
	}

	return v, true, rowErr
}
