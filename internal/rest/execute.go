package rest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"socle/internal/rest/catalog"
	"socle/internal/rest/query"
)

// execution is what a request does in the database, in one transaction and, but for a check, in one round trip:
// its settings, what runs before it, the statement itself.
type execution struct {
	pool      *pgxpool.Pool
	catalog   *catalog.Catalog
	role      string
	settings  []setting
	isolation string // "" is read committed
	readOnly  bool
	before    string // a statement without arguments that runs first, or ""
	count     string // the statement whose rows the planner is asked to guess, or ""
	sql       string
	args      []any
	countArgs []any
	explain   bool // sql is an EXPLAIN: its rows are the body's lines
	rollback  bool // nothing is kept
	called    bool // a function: it may prepare statements
	// check looks at the result before anything is kept; an error undoes all. nil saves a round trip.
	check func(*result) error
	most  int // bytes of the answer
}

// setting is a configuration parameter for the transaction.
type setting struct {
	name  string // a constant, or from the configuration: part of the statement's text
	value []byte
}

// result is the row that a statement of package plan returns. Its slices are good until release.
type result struct {
	total    int64 // -1: not counted
	planned  int64 // -1: not asked
	page     int64
	inserted int64 // -1: no upsert
	body     []byte
	location []byte
	headers  []byte // of response.headers; empty if it was not set
	status   []byte // of response.status, likewise

	prepared []byte // statements that take away what a function prepared; nil if it did not

	buffer []byte
}

// stale are the SQLSTATEs by which a prepared statement fails because what it was prepared for is no more. They
// come without a context: one with it comes from within a function.
var stale = map[string]bool{
	"0A000": true, // cached plan must not change result type
	"26000": true, // no such prepared statement: someone has deallocated it
	"42703": true, "42883": true, "42804": true, "42P01": true, "42846": true, "42725": true,
}

// execute runs e. The caller releases the result.
// It fails with what PostgreSQL says, with what check says, or with a context's error.
func execute(ctx context.Context, e *execution) (*result, error) {
	conn, err := acquire(ctx, e.pool)
	if err != nil {
		return nil, err
	}
	defer conn.Release()
	pc := conn.Conn().PgConn()
	pc.Frontend().SetMaxBodyLen(e.most)
	for again := false; ; again = true {
		x := exchange{execution: e, conn: pc, result: newResult()}
		err := x.run(ctx)
		if err == nil {
			return x.result, nil
		}
		x.result.release()
		var pe *pgconn.PgError
		if again || !x.reused || !errors.As(err, &pe) || !stale[pe.Code] || pe.Where != "" || pc.IsClosed() {
			return nil, err
		}
		forget(pc)
	}
}

// exchange is one try of an execution on a connection.
type exchange struct {
	*execution
	conn     *pgconn.PgConn
	pipeline *pgconn.Pipeline
	known    *statements
	awaited  []awaited // what answers come, in order
	reused   bool      // a statement was there already
	unclean  bool      // what a function may have left in the session may still be there
	scratch  *scratch
	result   *result
}

// awaited is an answer that PostgreSQL owes.
type awaited struct {
	kind      byte // p, prepared; s, settings and the like; c, the planner's guess; m, the statement itself; r, what is left behind; d, closed
	statement *statement
}

func (x *exchange) run(ctx context.Context) error {
	x.scratch = takeScratch()
	defer x.scratch.release()
	x.scratch.reserve(x.args, x.countArgs)
	args, err := x.scratch.encode(x.args)
	if err != nil {
		return err
	}
	countArgs, err := x.scratch.encode(x.countArgs)
	if err != nil {
		return err
	}
	if strings.IndexByte(x.sql, 0) >= 0 { // ends a statement on the wire
		return &query.Error{Status: http.StatusBadRequest, Code: "22021", Message: "a name can't hold a NUL"}
	}
	x.pipeline = x.conn.StartPipeline(ctx)
	closed := 0
	x.known, closed = statementsOf(x.conn, x.catalog, x.pipeline)
	x.awaited = x.scratch.awaited[:0]
	for range closed {
		x.awaited = append(x.awaited, awaited{kind: 'd'})
	}

	explicit := x.rollback || x.check != nil || x.isolation != ""
	if explicit {
		x.send('s', "", x.begin(), nil)
	}
	x.send('s', "", x.scratch.settings(x.settings, x.readOnly && !explicit), x.scratch.values)
	if x.before != "" {
		x.send('s', x.role, x.before, nil)
	}
	if x.count != "" {
		x.send('c', x.role, "explain (format json) "+x.count, countArgs)
	}
	x.send('m', x.role, x.sql, args)
	err = x.finish(explicit)
	x.scratch.awaited = x.awaited
	_ = x.pipeline.Close() // whatever matters has been read
	if (x.conn.TxStatus() != 'I' || x.unclean) && !x.conn.IsClosed() {
		clean := "rollback; " + strings.Join(cleaning, "; ")
		if x.result.prepared != nil {
			clean += "; " + string(x.result.prepared)
		}
		if _, failed := x.conn.Exec(ctx, clean).ReadAll(); failed != nil {
			_ = x.conn.Close(ctx) // nobody gets it again
		}
	}
	return err
}

// cleaning takes away what a function may have left in the session.
var cleaning = []string{"close all", "reset all", "unlisten *", "discard temp", "select pg_catalog.pg_advisory_unlock_all()"}

// finish sends the end of the transaction, and reads all answers.
func (x *exchange) finish(explicit bool) error {
	if x.check != nil {
		x.pipeline.SendFlushRequest()
		if err := x.pipeline.Flush(); err != nil {
			return err
		}
		if err := x.readAll(x.awaited); err != nil {
			x.awaited = x.awaited[:0]
			if isServers(err) {
				_ = x.sync()
			}
			return err
		}
		x.awaited = x.awaited[:0]
		if err := x.check(x.result); err != nil {
			x.send('s', "", "rollback", nil)
			if failed := x.sync(); failed != nil {
				return failed
			}
			return err
		}
	}
	switch {
	case x.rollback:
		x.send('s', "", "set constraints all immediate", nil)
		x.send('s', "", "rollback", nil)
	case explicit:
		x.send('s', "", "commit", nil)
	}
	return x.sync()
}

// sync ends the transaction, reads what is still owed, and cleans the session. Only now is the result good: a deferred
// constraint fails here.
func (x *exchange) sync() error {
	x.pipeline.SendPipelineSync()
	owed := len(x.awaited)
	for _, sql := range cleaning {
		x.send('s', "", sql, nil)
	}
	if x.called {
		x.send('r', "", "select pg_catalog.string_agg('deallocate ' || pg_catalog.quote_ident(name), '; ') from pg_catalog.pg_prepared_statements where from_sql", nil)
	}
	if err := x.pipeline.Sync(); err != nil {
		return err
	}
	err := x.read(x.awaited[:owed])
	x.unclean = x.read(x.awaited[owed:]) != nil || x.result.prepared != nil
	x.awaited = x.awaited[:0]
	return err
}

// read reads the answers to what was sent, up to the next synchronization if it is the end of a transaction. After an error PostgreSQL
// answers nothing more up to there: what was to be prepared by then is not.
func (x *exchange) read(owed []awaited) error {
	err := x.readAll(owed)
	for err == nil || isServers(err) {
		r, failed := x.pipeline.GetResults()
		if _, done := r.(*pgconn.PipelineSync); done || r == nil && failed == nil {
			break
		}
		if err == nil {
			err = failed
		}
		if failed != nil && !isServers(failed) {
			break
		}
	}
	return err
}

// readAll is read without the synchronization.
func (x *exchange) readAll(owed []awaited) error {
	for i, a := range owed {
		err := x.readOne(a)
		if err == nil {
			continue
		}
		for _, b := range owed[i:] {
			if b.kind == 'p' && b.statement.description == nil {
				x.known.drop(b.statement)
			}
		}
		return err
	}
	return nil
}

// send queues a statement, prepared under a name that the connection keeps.
func (x *exchange) send(kind byte, role, sql string, args [][]byte) {
	st, gone := x.known.get(role, sql)
	if gone != nil {
		x.pipeline.SendDeallocate(gone.name)
		x.awaited = append(x.awaited, awaited{kind: 'd'})
	}
	if st.description != nil {
		if kind == 'm' {
			x.reused = true
		}
		x.pipeline.SendQueryStatement(st.description, args, nil, nil)
	} else {
		x.pipeline.SendPrepare(st.name, sql, nil)
		x.awaited = append(x.awaited, awaited{'p', st})
		x.pipeline.SendQueryPrepared(st.name, args, nil, nil)
	}
	x.awaited = append(x.awaited, awaited{kind, st})
}

func (x *exchange) readOne(a awaited) error {
	r, err := x.pipeline.GetResults()
	if err != nil {
		return err
	}
	switch r := r.(type) {
	case *pgconn.StatementDescription:
		r.Name = a.statement.name
		a.statement.description = r
		return nil
	case *pgconn.ResultReader:
		for r.NextRow() {
			if err := x.result.take(a.kind, x.explain, r.Values()); err != nil {
				_, _ = r.Close()
				return err
			}
		}
		_, err := r.Close()
		return err
	case *pgconn.CloseComplete:
		return nil
	}
	return fmt.Errorf("pipeline: an answer of type %T to %c", r, a.kind)
}

func (x *exchange) begin() string {
	sql := "begin"
	if x.isolation != "" {
		sql += " isolation level " + x.isolation
	}
	if x.readOnly {
		sql += " read only"
	}
	return sql
}

// isServers reports whether PostgreSQL itself sent err: then the connection is still good.
func isServers(err error) bool {
	_, ok := errors.AsType[*pgconn.PgError](err)
	return ok
}

// take keeps a row.
func (r *result) take(kind byte, explain bool, v [][]byte) error {
	switch {
	case kind == 'r' && v[0] != nil:
		r.prepared = bytes.Clone(v[0])
	case kind == 'c':
		r.planned = plannedRows(v[0])
	case kind == 'm' && explain:
		if len(r.buffer) > 0 {
			r.buffer = append(r.buffer, '\n')
		}
		r.buffer = append(r.buffer, v[0]...)
		r.body = r.buffer
	case kind == 'm':
		if len(v) != 7 {
			return fmt.Errorf("the statement returns %d columns", len(v))
		}
		var err error
		if r.total, err = number(v[0], -1); err != nil {
			return err
		}
		if r.page, err = number(v[1], 0); err != nil {
			return err
		}
		if r.inserted, err = number(v[6], -1); err != nil {
			return err
		}
		// The values are the connection's and go with its next message.
		size := 0
		for _, b := range v[2:6] {
			size += len(b)
		}
		if cap(r.buffer) < size {
			r.buffer = make([]byte, 0, size)
		}
		for i, to := range [...]*[]byte{&r.body, &r.location, &r.headers, &r.status} {
			if v[2+i] != nil {
				start := len(r.buffer)
				r.buffer = append(r.buffer, v[2+i]...)
				*to = r.buffer[start:len(r.buffer):len(r.buffer)]
			}
		}
	}
	return nil
}

func number(b []byte, absent int64) (int64, error) {
	if b == nil {
		return absent, nil
	}
	return strconv.ParseInt(string(b), 10, 64)
}

// acquireTimeout is how long a request waits for a connection.
const acquireTimeout = 8 * time.Second

// errNoConnection is the cause when no connection became free in time.
var errNoConnection = errors.New("no connection became free in time")

func acquire(ctx context.Context, pool *pgxpool.Pool) (*pgxpool.Conn, error) {
	wait, cancel := context.WithTimeoutCause(ctx, acquireTimeout, errNoConnection)
	defer cancel()
	conn, err := pool.Acquire(wait)
	if err != nil && ctx.Err() == nil && context.Cause(wait) == errNoConnection {
		return nil, errNoConnection
	}
	return conn, err
}
