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

// Querier executes an actor's statements, each in its own transaction and in one round trip:
// settings, the statement, commit, and the session reset.
type Querier struct {
	pool  *pgxpool.Pool
	actor Actor
}

// Query executes a statement in a read-only transaction. Row errors are faults.
func (q Querier) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	rows, err := q.start(ctx, true, sql, args)
	if err != nil {
		return nil, Fault(err)
	}

	return rows, nil
}

// Exec executes a statement. It returns PostgreSQL errors unclassified.
func (q Querier) Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	rows, err := q.start(ctx, false, sql, args)
	if err != nil {
		return pgconn.CommandTag{}, err
	}

	rows.Close()
	return rows.CommandTag(), rows.Rows.Err()
}

// Texts executes a statement without preparing it, in a read-only transaction, and returns its rows
// as texts; null is nil. It is for statements whose text varies, since a session keeps prepared
// ones.
func (q Querier) Texts(ctx context.Context, sql string, args ...[]byte) ([][][]byte, error) {
	conn, err := pg.Acquire(ctx, q.pool)
	if err != nil {
		return nil, Fault(err)
	}
	defer conn.Release()

	s := sessionOf(conn.Conn())
	if err := s.prepareFrame(ctx); err != nil {
		return nil, Fault(err)
	}

	_, span := pg.StartSpan(ctx, sql)
	rows := &sessionRows{session: s, pipeline: s.conn.PgConn().StartPipeline(ctx), span: span}
	defer rows.finish()

	rows.pipeline.SendQueryStatement(s.statements[statementKey{sql: setLocal}], q.actor.settingValues(true), nil, nil)
	rows.pipeline.SendQueryParams(sql, args, nil, nil, nil)
	rows.sendReset()

	result, err := rows.first()
	if err != nil {
		return nil, Fault(err)
	}

	reply := result.Read()
	return reply.Rows, Fault(reply.Err)
}

// start sends a statement. If user code deallocated its prepared statement, or that is out of date,
// start retries on another connection.
func (q Querier) start(ctx context.Context, readOnly bool, sql string, args []any) (*sessionRows, error) {
	settings := q.actor.settingValues(readOnly)
	for {
		conn, err := pg.Acquire(ctx, q.pool)
		if err != nil {
			return nil, err
		}

		s := sessionOf(conn.Conn())
		isPrepared := s.statements[statementKey{q.actor.Role, sql}] != nil
		rows, err := s.start(ctx, q.actor.Role, settings, sql, args)
		if err == nil {
			rows.conn = conn
			return rows, nil
		}

		stale := isPrepared && stalePlanStates[pg.State(err)]
		if stale {
			s.close()
		}
		conn.Release()

		if !stale {
			return nil, err
		}
	}
}

// stalePlanStates are the SQLSTATEs for a prepared statement that does not exist, or whose result
// types have changed.
var stalePlanStates = map[string]bool{"26000": true, "0A000": true}

// setLocal sets the transaction parameters, which have the same names for every actor.
var setLocal = "select " + SettingsSQL(Actor{}.settings(false))

// resetStatements undo the effects of user code on a session. The last one lists the prepared
// statements it left.
var resetStatements = append(ResetStatements(), SelectUserStatements)

const closeTimeout = time.Second

// session is a connection and its prepared statements.
type session struct {
	conn       *pgx.Conn
	statements map[statementKey]*pgconn.StatementDescription
}

// statementKey identifies a statement. Statements are prepared per role, because row security makes
// plans role-dependent.
type statementKey struct{ role, sql string } // role is "" for settings and resets

// sessionKey is the session's key in the connection's custom data.
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
		if rewriter, ok := args[0].(pgx.QueryRewriter); ok {
			var err error
			if query, values, err = rewriter.RewriteQuery(ctx, s.conn, sql, nil); err != nil {
				return nil, err
			}
		}
	}

	statement, err := s.prepare(ctx, role, settings, sql, query)
	if err != nil {
		return nil, err
	}

	var params pgx.ExtendedQueryBuilder
	if err := params.Build(s.conn.TypeMap(), statement, values); err != nil {
		return nil, err
	}

	_, span := pg.StartSpan(ctx, sql)
	rows := &sessionRows{session: s, pipeline: s.conn.PgConn().StartPipeline(ctx), span: span}

	rows.pipeline.SendQueryStatement(s.statements[statementKey{sql: setLocal}], settings, nil, nil)
	rows.pipeline.SendQueryStatement(statement, params.ParamValues, params.ParamFormats, params.ResultFormats)
	rows.sendReset()

	result, err := rows.first()
	if err != nil {
		span.SetStatus(codes.Error, "")
		rows.finish()

		return nil, err
	}

	rows.Rows = pgx.RowsFromResultReader(s.conn.TypeMap(), result)
	return rows, nil
}

// prepare prepares the statements that the session lacks. It prepares sql in the caller's role,
// because the session's login role has no privileges.
func (s *session) prepare(
	ctx context.Context, role string, settings [][]byte, sql, query string,
) (*pgconn.StatementDescription, error) {
	if st := s.statements[statementKey{role, sql}]; st != nil {
		return st, nil
	}

	if err := s.prepareFrame(ctx); err != nil {
		return nil, err
	}

	begin := "begin; set local lock_timeout = '" + lockTimeout + "'; set local role " + pg.Quote(role)
	tx, err := s.conn.BeginTx(ctx, pgx.TxOptions{BeginQuery: begin})
	if err != nil {
		return nil, err
	}
	defer tx.Rollback(context.WithoutCancel(ctx))

	err = s.prepareAs(ctx, statementKey{role, sql}, query)
	return s.statements[statementKey{role, sql}], err
}

// prepareFrame prepares the statements around each statement.
func (s *session) prepareFrame(ctx context.Context) error {
	if len(s.statements) > 0 {
		return nil
	}

	for _, text := range append([]string{setLocal}, resetStatements...) {
		if err := s.prepareAs(ctx, statementKey{sql: text}, text); err != nil {
			return err
		}
	}

	return nil
}

func (s *session) prepareAs(ctx context.Context, key statementKey, query string) error {
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

// sessionRows are a statement's rows. Closing them resets the session and releases its connection.
type sessionRows struct {
	pgx.Rows
	session  *session
	pipeline *pgconn.Pipeline
	conn     *pgxpool.Conn // nil after release
	span     trace.Span
}

// sendReset ends the transaction, and resets the session.
func (r *sessionRows) sendReset() {
	r.pipeline.SendPipelineSync()
	for _, reset := range resetStatements {
		r.pipeline.SendQueryStatement(r.session.statements[statementKey{sql: reset}], nil, nil, nil)
	}
}

// first sends the queued messages and returns the statement's result.
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

// finish reads the remaining replies. It closes the session if the reset failed, or if user code
// prepared statements, whose names may collide with ours.
func (r *sessionRows) finish() {
	r.span.End()

	hasPrepared, err := r.readReset()
	if err = errors.Join(err, r.pipeline.Close()); err != nil || hasPrepared {
		r.session.close()
	}
}

// readReset reads the replies to resetStatements. It reports whether user code left prepared
// statements.
func (r *sessionRows) readReset() (hasPrepared bool, err error) {
	for {
		reply, err := r.pipeline.GetResults()
		if err != nil || reply == nil {
			return hasPrepared, err
		}

		if result, ok := reply.(*pgconn.ResultReader); ok {
			reply := result.Read()
			if reply.Err != nil {
				return false, reply.Err
			}

			// Only the last statement returns a text.
			hasPrepared = len(reply.Rows) == 1 && len(reply.Rows[0][0]) > 0
		}
	}
}

// Next reads the next row. It closes the rows after the last one.
func (r *sessionRows) Next() bool {
	if r.Rows.Next() {
		return true
	}

	r.Close()
	return false
}

// Close reads the remaining rows and releases the connection.
func (r *sessionRows) Close() {
	r.Rows.Close()
	if r.conn == nil {
		return
	}

	if r.Rows.Err() != nil {
		r.span.SetStatus(codes.Error, "")
	}
	r.finish()
	r.conn.Release()
	r.conn = nil
}

// Err returns the statement's failure.
func (r *sessionRows) Err() error { return Fault(r.Rows.Err()) }
