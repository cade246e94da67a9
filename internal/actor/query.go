package actor

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/socle-dev/socle/internal/pg"
)

// Querier executes the statements of an actor. Each is a transaction of its own and takes one round
// trip: settings, the statement, the end of the transaction, and the reset of the session.
type Querier struct {
	pool  *pgxpool.Pool
	actor Actor
}

// Query executes a statement in a read-only transaction. The errors of its rows are faults.
func (q Querier) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	rows, err := q.start(ctx, true, sql, args)
	if err != nil {
		return nil, Fault(err)
	}

	return rows, nil
}

// Exec executes a statement. Its errors are those of PostgreSQL.
func (q Querier) Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	rows, err := q.start(ctx, false, sql, args)
	if err != nil {
		return pgconn.CommandTag{}, err
	}

	rows.Close()
	return rows.CommandTag(), rows.Rows.Err()
}

// start sends a statement. If the prepared one was deallocated by user code or is out of date, it
// sends it again on another connection.
func (q Querier) start(ctx context.Context, readOnly bool, sql string, args []any) (*sessionRows, error) {
	var settings [][]byte
	for _, s := range q.actor.settings(readOnly) {
		settings = append(settings, s.Value)
	}

	for {
		conn, err := pg.Acquire(ctx, q.pool)
		if err != nil {
			return nil, err
		}

		s := sessionOf(conn.Conn())
		reused := s.statements[statementKey{q.actor.Role, sql}] != nil
		rows, err := s.start(ctx, q.actor.Role, settings, sql, args)
		if err == nil {
			rows.pooled = conn
			return rows, nil
		}

		stale := reused && stalePlanStates[pg.State(err)]
		if stale {
			s.close()
		}
		conn.Release()

		if !stale {
			return nil, err
		}
	}
}

// stalePlanStates are the SQLSTATEs of a prepared statement that does not exist, or whose result
// has other types.
var stalePlanStates = map[string]bool{"26000": true, "0A000": true}

// setLocal sets the parameters of a transaction. Their names are those of every actor.
var setLocal = "select " + SettingsSQL(Actor{}.settings(false))

// resetStatements undo the effects of user code on a session. The last one finds the prepared
// statements that it left.
var resetStatements = append(ResetStatements(), SelectUserStatements)

const closeTimeout = time.Second

// session is a connection with its prepared statements.
type session struct {
	conn       *pgx.Conn
	statements map[statementKey]*pgconn.StatementDescription
}

// statementKey identifies a statement. Each role has its own, since row security makes plans depend
// on the role.
type statementKey struct{ role, sql string } // role is "" for settings and resets

// sessionKey is the key of the session in the connection's custom data.
const sessionKey = "actor/session"

func sessionOf(conn *pgx.Conn) *session {
	data := conn.PgConn().CustomData()
	s, ok := data[sessionKey].(*session)
	if !ok {
		s = &session{conn: conn, statements: map[statementKey]*pgconn.StatementDescription{}}
		data[sessionKey] = s
	}

	return s
}

// start sends a statement and reads up to its first row.
func (s *session) start(
	ctx context.Context, role string, settings [][]byte, sql string, args []any,
) (*sessionRows, error) {
	query, values := sql, args
	if len(args) == 1 {
		if named, ok := args[0].(pgx.QueryRewriter); ok {
			var err error
			if query, values, err = named.RewriteQuery(ctx, s.conn, sql, nil); err != nil {
				return nil, err
			}
		}
	}

	statement, err := s.prepare(ctx, role, settings, sql, query)
	if err != nil {
		return nil, err
	}

	var encoded pgx.ExtendedQueryBuilder
	if err := encoded.Build(s.conn.TypeMap(), statement, values); err != nil {
		return nil, err
	}

	_, span := pg.StartSpan(ctx, sql)
	rows := &sessionRows{session: s, pipeline: s.conn.PgConn().StartPipeline(ctx), span: span}

	rows.pipeline.SendQueryStatement(s.statements[statementKey{sql: setLocal}], settings, nil, nil)
	rows.pipeline.SendQueryStatement(statement, encoded.ParamValues, encoded.ParamFormats, encoded.ResultFormats)
	rows.pipeline.SendPipelineSync()
	for _, reset := range resetStatements {
		rows.pipeline.SendQueryStatement(s.statements[statementKey{sql: reset}], nil, nil, nil)
	}

	result, err := rows.first()
	if err != nil {
		span.SetStatus(codes.Error, "")
		rows.finish()

		return nil, err
	}

	rows.Rows = pgx.RowsFromResultReader(s.conn.TypeMap(), result)
	return rows, nil
}

// prepare prepares the statements that the session lacks, in the role that executes them: the
// session's login has no rights of its own.
func (s *session) prepare(
	ctx context.Context, role string, settings [][]byte, sql, query string,
) (*pgconn.StatementDescription, error) {
	if st := s.statements[statementKey{role, sql}]; st != nil {
		return st, nil
	}

	if len(s.statements) == 0 {
		for _, text := range append([]string{setLocal}, resetStatements...) {
			if err := s.add(ctx, statementKey{sql: text}, text); err != nil {
				return nil, err
			}
		}
	}

	begin := "begin; set local lock_timeout = '" + lockTimeout + "'; set local role " + pg.Quote(role)
	tx, err := s.conn.BeginTx(ctx, pgx.TxOptions{BeginQuery: begin})
	if err != nil {
		return nil, err
	}
	defer tx.Rollback(context.WithoutCancel(ctx))

	err = s.add(ctx, statementKey{role, sql}, query)
	return s.statements[statementKey{role, sql}], err
}

func (s *session) add(ctx context.Context, key statementKey, query string) error {
	st, err := s.conn.PgConn().Prepare(ctx, "actor_"+strconv.Itoa(len(s.statements)), query, nil)
	if err == nil {
		s.statements[key] = st
	}

	return err
}

func (s *session) close() {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()

	_ = s.conn.Close(ctx)
}

// sessionRows are the rows of a statement. Closing them resets the session and releases its
// connection.
type sessionRows struct {
	pgx.Rows
	session  *session
	pipeline *pgconn.Pipeline
	pooled   *pgxpool.Conn // nil once it is released
	span     trace.Span
}

// first sends the queued messages and returns the result of the statement.
func (r *sessionRows) first() (*pgconn.ResultReader, error) {
	if err := r.pipeline.Sync(); err != nil {
		return nil, err
	}
	if _, err := r.pipeline.GetResults(); err != nil { // settings
		return nil, err
	}

	result, err := r.pipeline.GetResults()
	if err != nil {
		return nil, err
	}

	return result.(*pgconn.ResultReader), nil
}

// finish reads the remaining replies. The session is closed if it could not be reset, or if user
// code prepared statements, which may have names of ours.
func (r *sessionRows) finish() {
	r.span.End()

	prepared, err := r.readReset()
	if err = errors.Join(err, r.pipeline.Close()); err != nil || prepared {
		r.session.close()
	}
}

// readReset reads the replies to resetStatements. It reports whether user code left prepared
// statements.
func (r *sessionRows) readReset() (prepared bool, err error) {
	for {
		reply, err := r.pipeline.GetResults()
		if err != nil || reply == nil {
			return prepared, err
		}

		if result, ok := reply.(*pgconn.ResultReader); ok {
			read := result.Read()
			if read.Err != nil {
				return false, read.Err
			}

			// Only the last statement returns a text.
			prepared = len(read.Rows) == 1 && len(read.Rows[0][0]) > 0
		}
	}
}

// Next reads the next row. After the last one it closes the rows.
func (r *sessionRows) Next() bool {
	if r.Rows.Next() {
		return true
	}

	r.Close()
	return false
}

// Close reads the rest, and releases the connection.
func (r *sessionRows) Close() {
	r.Rows.Close()
	if r.pooled == nil {
		return
	}

	if r.Rows.Err() != nil {
		r.span.SetStatus(codes.Error, "")
	}
	r.finish()
	r.pooled.Release()
	r.pooled = nil
}

// Err returns the failure of the statement.
func (r *sessionRows) Err() error { return Fault(r.Rows.Err()) }
