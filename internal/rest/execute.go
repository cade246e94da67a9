package rest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"socle/internal/rest/catalog"
)

// execution is what a request does in the database, in one transaction and, but for a check, in one round trip:
// its settings, what runs before it, the statement itself. What code of the database's may have left in the session is taken
// from it in the same round trip.
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
	explain   bool          // sql is an EXPLAIN: its rows are the body's lines
	rollback  bool          // nothing is kept
	called    bool          // a function: it may prepare statements
	unlocks   bool          // sql gives up advisory locks at its end
	unnamed   bool          // nothing is kept prepared
	wait      time.Duration // for a connection
	// check looks at the result before anything is kept; an error undoes all. nil saves a round trip.
	check func(*result) error
	most  int       // bytes of the answer
	until time.Time // it is to be done
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
	var client guest
	stop := context.AfterFunc(ctx, client.leave)
	defer stop()
	for tries := 0; ; tries++ {
		conn, err := acquire(ctx, e.pool, &client, e.wait)
		if err != nil {
			return nil, err
		}
		x := exchange{execution: e}
		x.client = &client
		if err = x.try(ctx, conn); err == nil {
			return x.result, nil
		}
		x.result.release()
		// A server that was started again leaves as many dead connections as the pool had.
		if !x.untouched(e.readOnly, err) || ctx.Err() != nil || tries > int(e.pool.Stat().TotalConns()) {
			return nil, err
		}
	}
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
	if len(b) == 0 {
		return absent, nil
	}
	return strconv.ParseInt(string(b), 10, 64)
}

// acquireTimeout is how long a request waits for a connection unless the configuration says otherwise.
const acquireTimeout = 8 * time.Second

// errNoConnection is the cause when no connection became free in time.
var errNoConnection = errors.New("no connection became free in time")

func acquire(ctx context.Context, pool *pgxpool.Pool, client *guest, most time.Duration) (*pgxpool.Conn, error) {
	p := takePatience(most)
	client.await(p.end)
	conn, err := pool.Acquire(p)
	gone := client.await(nil)
	over := p.release()
	switch {
	case gone && err == nil:
		conn.Release()
		fallthrough
	case gone:
		return nil, ctx.Err()
	case err != nil && over:
		return nil, errNoConnection
	}
	return conn, err
}
