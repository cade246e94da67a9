package object

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/projectdb"
)

// actorQuerier executes statements to which the project's policies apply. Each is a transaction of
// its own and takes one round trip: settings, the statement, the end of the transaction, and the
// reset of the session, which user code may have changed.
type actorQuerier struct {
	project *projectdb.Project
	actor   Actor
}

// Query executes a statement in a read-only transaction. The errors of its rows are faults.
func (q actorQuerier) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	rows, err := q.start(ctx, true, sql, args)
	if err != nil {
		return nil, policyFault(err)
	}

	return rows, nil
}

// Exec executes a statement. Its errors are those of PostgreSQL.
func (q actorQuerier) Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	rows, err := q.start(ctx, false, sql, args)
	if err != nil {
		return pgconn.CommandTag{}, err
	}

	rows.Close()
	return rows.CommandTag(), rows.Rows.Err()
}

// start sends a statement. If the prepared one was deallocated by user code or is out of date, it
// sends it again on another connection.
func (q actorQuerier) start(ctx context.Context, readOnly bool, sql string, args []any) (*actorRows, error) {
	settings, err := q.actor.settings(readOnly)
	if err != nil {
		return nil, err
	}

	for {
		conn, err := pg.Acquire(ctx, q.project.Questions())
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

// settings returns the arguments of setLocal.
func (a Actor) settings(readOnly bool) ([][]byte, error) {
	claims := a.Claims
	if claims == nil {
		var err error
		if claims, err = json.Marshal(map[string]string{"role": a.Role}); err != nil {
			return nil, err
		}
	}

	return [][]byte{claims, []byte(a.statementTimeout()), strconv.AppendBool(nil, readOnly), []byte(a.Role)}, nil
}

const setLocal = `
	select pg_catalog.set_config('request.jwt.claims', $1, true),
	       pg_catalog.set_config('statement_timeout', $2, true),
	       pg_catalog.set_config('lock_timeout', '` + questionLockTimeout + `', true),
	       pg_catalog.set_config('transaction_read_only', $3, true),
	       pg_catalog.set_config('role', $4, true)`

// resetStatements undo the effects of user code on a session. The last one finds the prepared
// statements that it left.
var resetStatements = append(pg.ResetStatements(), pg.SelectUserStatements)

const closeTimeout = time.Second

// actorSession is a connection with its prepared statements.
type actorSession struct {
	conn       *pgx.Conn
	statements map[statementKey]*pgconn.StatementDescription
}

// statementKey identifies a statement. Each role has its own, since row security makes plans depend
// on the role.
type statementKey struct{ role, sql string } // role is "" for statements without policies

// sessionKey is the key of the session in the connection's custom data.
const sessionKey = "object/session"

func sessionOf(conn *pgx.Conn) *actorSession {
	data := conn.PgConn().CustomData()
	s, ok := data[sessionKey].(*actorSession)
	if !ok {
		s = &actorSession{conn: conn, statements: map[statementKey]*pgconn.StatementDescription{}}
		data[sessionKey] = s
	}

	return s
}

// start sends a statement and reads up to its first row.
func (s *actorSession) start(
	ctx context.Context, role string, settings [][]byte, sql string, args []any,
) (*actorRows, error) {
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
	rows := &actorRows{session: s, pipeline: s.conn.PgConn().StartPipeline(ctx), span: span}

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
func (s *actorSession) prepare(
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

	begin := "begin; set local lock_timeout = '" + questionLockTimeout + "'; set local role " + pg.Quote(role)
	tx, err := s.conn.BeginTx(ctx, pgx.TxOptions{BeginQuery: begin})
	if err != nil {
		return nil, err
	}
	defer tx.Rollback(context.WithoutCancel(ctx))

	err = s.add(ctx, statementKey{role, sql}, query)
	return s.statements[statementKey{role, sql}], err
}

func (s *actorSession) add(ctx context.Context, key statementKey, query string) error {
	st, err := s.conn.PgConn().Prepare(ctx, "object_"+strconv.Itoa(len(s.statements)), query, nil)
	if err == nil {
		s.statements[key] = st
	}

	return err
}

func (s *actorSession) close() {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()

	_ = s.conn.Close(ctx)
}

// actorRows are the rows of a statement. Closing them resets the session and releases its
// connection.
type actorRows struct {
	pgx.Rows
	session  *actorSession
	pipeline *pgconn.Pipeline
	pooled   *pgxpool.Conn // nil once it is released
	span     trace.Span
}

// first sends the queued messages and returns the result of the statement.
func (r *actorRows) first() (*pgconn.ResultReader, error) {
	if err := r.pipeline.Sync(); err != nil {
		return nil, err
	}
	if _, err := r.pipeline.GetResults(); err != nil { // of setLocal
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
func (r *actorRows) finish() {
	r.span.End()

	prepared, err := r.readReset()
	if err = errors.Join(err, r.pipeline.Close()); err != nil || prepared {
		r.session.close()
	}
}

// readReset reads the replies to resetStatements. It reports whether user code left prepared
// statements.
func (r *actorRows) readReset() (prepared bool, err error) {
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
func (r *actorRows) Next() bool {
	if r.Rows.Next() {
		return true
	}

	r.Close()
	return false
}

// Close reads the rest, and releases the connection.
func (r *actorRows) Close() {
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
func (r *actorRows) Err() error { return policyFault(r.Rows.Err()) }
