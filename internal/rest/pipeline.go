package rest

import (
	"context"
	"errors"
	"net/http"
	"os"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"socle/internal/rest/query"
)

// pipeline sends the statements of one request in a single round trip: BEGIN, settings, the
// statement, COMMIT and the reset of the session.
//
// A transaction that writes is a block. It commits before the session is reset, so that session
// locks taken by user code are held until its changes are visible, and deferred constraints still
// see their settings. COMMIT and the reset are prepared statements. A simple query replaces them if
// user code may have deallocated those, and if the transaction is rolled back.
//
// A transaction that only reads needs no block: nothing is deferred, and other sessions do not wait
// for its effects. It is implicit and ends with the simple query that resets the session.
//
// A statement that runs no user code leaves nothing in the session. Sync ends its implicit
// transaction, even if it writes.
type pipeline struct {
	*execution
	wire
	prepared *statementCache
	scratch  *scratch
	pending  []pendingReply // expected replies, in order
	result   *result

	inBlock      bool // BEGIN was queued
	reused       bool // a prepared statement was reused
	deallocated  bool // user code may deallocate prepared statements
	settledAfter int  // statements of the simple query after which the outcome stands
	txStatus     byte // as in ReadyForQuery
	skipping     bool // the server discards messages until Sync
	dirty        bool // the session may have leftovers
}

// pendingReply is a reply that PostgreSQL owes.
type pendingReply struct {
	kind      replyKind
	statement *preparedStatement
}

// replyKind is the kind of the message that a reply answers.
type replyKind uint8

const (
	kindClose replyKind = iota
	kindParse
	kindBegin
	kindCommit
	kindVersionCheck // settings, preceded by the comparison of schema versions
	kindOther        // statement without a result, such as settings
	kindEstimate     // plan with the row estimate
	kindMain         // statement of the request
	kindSimpleQuery
	kindSelectPrepared // statements that user code left prepared
	kindSync
)

// Values of pipeline.txStatus, as in ReadyForQuery.
const (
	txIdle    = 'I'
	txInBlock = 'T'
)

// cleanupStatements are the statements of cleanAll, prepared one by one so that they are not parsed
// again for each request.
var cleanupStatements = []string{"close all", "reset all", "unlisten *", "discard temp", unlock}

const (
	unlock     = "select pg_catalog.pg_advisory_unlock_all()"
	cleanRead  = "close all; reset all; unlisten *" // reads create no temporary tables, unlock first
	cleanAll   = cleanRead + "; discard temp; " + unlock
	nCleanRead = 3 // statements of cleanRead
	nCleanAll  = 5 // statements of cleanAll
)

// finalQuery is a simple query that ends the transaction and resets the session. An error after
// settledAfter of its statements does not change the outcome of the request.
type finalQuery struct {
	sql          string
	settledAfter int
}

// The end* queries end a transaction: endWrite commits without prepared statements, endUndone rolls
// back after a failed check, endTried after a request whose changes are not wanted. The clean*
// queries reset the session after a failure, outside a transaction or within.
var (
	endRead     = finalQuery{cleanRead, nCleanRead}
	endUserCode = finalQuery{cleanAll, nCleanAll}
	endWrite    = finalQuery{"commit; " + cleanAll, 1}
	endUndone   = finalQuery{"rollback; " + cleanAll, 1}
	endTried    = finalQuery{"set constraints all immediate; rollback; " + cleanAll, 2}
	cleanIdle   = finalQuery{cleanAll, nCleanAll}
	cleanFailed = finalQuery{"rollback; " + cleanAll, 1 + nCleanAll}
)

const (
	commit         = "commit"
	selectPrepared = "select pg_catalog.string_agg('deallocate ' operator(pg_catalog.||) " +
		"pg_catalog.quote_ident(name), '; ') from pg_catalog.pg_prepared_statements where from_sql"
)

// try runs the execution on a connection. It fails with context.DeadlineExceeded beyond the
// deadline.
func (x *pipeline) try(ctx context.Context, conn *pgxpool.Conn) error {
	x.result = newResult()
	err := x.attach(ctx, conn, x.deadline, x.maxResponse)

	defer x.detach()

	if err == nil {
		err = x.attempt()
	}

	switch {
	case err == nil || isPgError(err) || isAborted(err):
		return err
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, os.ErrDeadlineExceeded) || x.watchdog.Err() != nil:
		return context.DeadlineExceeded
	}

	return err
}

// attempt runs the execution, and again if a prepared statement was invalid.
func (x *pipeline) attempt() error {
	if x.session.requests++; x.session.requests%preparedCheckInterval == 0 {
		x.mayPrepare = true // also remove statements that other user code prepared
	}

	err := x.run()
	pe, ok := errors.AsType[*pgconn.PgError](err)
	stalePlan := ok && stalePlanStates[pe.Code] && pe.Where == ""
	if stalePlan && x.reused && !x.broken {
		x.session.invalidate()
		x.result.release()
		x.result, x.deallocated = newResult(), true
		err = x.run()
	}

	return err
}

// run queues the messages, sends them and reads the replies.
func (x *pipeline) run() error {
	x.txStatus, x.skipping, x.dirty = txIdle, false, false

	x.scratch = newScratch()
	defer x.scratch.release()

	x.out, x.pending = x.scratch.out[:0], x.scratch.pending[:0]

	err := x.resetSession()
	if err == nil {
		err = x.queue()
	}
	if err == nil {
		err = x.complete()
	}

	if x.broken {
		_ = x.waitWritten()
	}

	x.scratch.out, x.scratch.pending = x.out, x.pending
	return err
}

// resetSession cleans a session that was last used with an older catalog. Relations that ran no
// user code by that catalog may have got some before it was replaced.
func (x *pipeline) resetSession() error {
	if old := x.session.statementCache.catalog; old == nil || old == x.catalog {
		return nil
	}

	x.settledAfter = cleanIdle.settledAfter
	x.pending = append(x.pending, pendingReply{kind: kindSimpleQuery})

	err := errors.Join(x.query(cleanIdle.sql), x.roundTrip())
	if err != nil {
		x.broken, x.wrote = true, false // the request itself was not sent
	}

	return err
}

// queue queues the messages of the request, up to the check if it has one.
func (x *pipeline) queue() error {
	s := x.scratch
	s.reserve(x.args, x.countArgs)

	args, err := s.encode(x.args)
	if err != nil {
		return err
	}

	countArgs, err := s.encode(x.countArgs)
	if err != nil {
		return err
	}

	if strings.IndexByte(x.sql, 0) >= 0 { // NUL ends a string of the protocol
		return &query.Error{Status: http.StatusBadRequest, Code: "22021", Message: "a name can't hold a NUL"}
	}

	err = x.queueAll(args, countArgs)
	x.broken = err != nil // the statement cache records statements that were not sent

	return err
}

// queueAll queues the messages of the request with its encoded arguments. The cases after the last
// statement choose how the transaction ends, see [pipeline].
func (x *pipeline) queueAll(args, countArgs [][]byte) (err error) {
	if x.prepared, err = x.statements(); err != nil {
		return err
	}

	inert := x.inert && !x.deallocated && !x.mayPrepare
	writes := !x.readOnly && !inert
	x.inBlock = writes || x.rollback || x.check != nil || x.isolation != ""

	if x.inBlock {
		if err := x.queueStatement(kindBegin, "", x.beginSQL(), nil); err != nil {
			return err
		}
	}

	kind := kindOther
	if x.version.value != "" {
		kind = kindVersionCheck
	}

	settings := x.scratch.settingsStatement(x.settings, x.readOnly && !x.inBlock, x.version)
	if err := x.queueStatement(kind, "", settings, x.scratch.values); err != nil {
		return err
	}

	if x.preRequest != "" {
		if err := x.queueStatement(kindOther, x.role, x.preRequest, nil); err != nil {
			return err
		}
	}

	if x.countSQL != "" {
		explain := "explain (format json) " + x.countSQL
		if err := x.queueStatement(kindEstimate, x.role, explain, countArgs); err != nil {
			return err
		}
	}

	if err := x.queueStatement(kindMain, x.role, x.sql, args); err != nil {
		return err
	}

	switch {
	case x.check != nil:
		return x.flush()
	case x.rollback:
		return x.queueEnd(endTried)
	case x.inBlock:
		return x.queueCommit()
	case inert:
		return x.queueSync()
	case x.mayPrepare || x.deallocated:
		return x.queueEnd(endUserCode)
	}

	if !x.releasesLocks {
		if err := x.queueStatement(kindOther, "", unlock, nil); err != nil {
			return err
		}
	}

	return x.queueEnd(endRead)
}

// queueCommit queues COMMIT and the session reset.
func (x *pipeline) queueCommit() error {
	if x.deallocated {
		return x.queueEnd(endWrite)
	}

	if err := x.queueStatement(kindCommit, "", commit, nil); err != nil {
		return err
	}

	for _, sql := range cleanupStatements {
		if err := x.queueStatement(kindOther, "", sql, nil); err != nil {
			return err
		}
	}

	return x.queueSync()
}

// queueEnd queues a simple query that ends the transaction.
func (x *pipeline) queueEnd(end finalQuery) error {
	x.settledAfter = end.settledAfter
	x.pending = append(x.pending, pendingReply{kind: kindSimpleQuery})

	if err := x.query(end.sql); err != nil || !x.mayPrepare {
		return err
	}

	return x.queueSync()
}

// queueSync queues Sync, and before it the query for statements that user code prepared.
func (x *pipeline) queueSync() error {
	if x.mayPrepare {
		if err := x.queueStatement(kindSelectPrepared, "", selectPrepared, nil); err != nil {
			return err
		}
	}

	x.pending = append(x.pending, pendingReply{kind: kindSync})
	return x.sync()
}

// complete sends the queued messages, reads the replies and runs the check.
func (x *pipeline) complete() error {
	err := x.roundTrip()
	if err == nil && x.check != nil {
		err = x.finishChecked()
	}

	if (x.dirty || x.result.deallocateSQL != nil) && !x.broken {
		x.cleanSession()
	}

	return err
}

// finishChecked commits, or rolls back if the check fails.
func (x *pipeline) finishChecked() error {
	if err := x.waitWritten(); err != nil {
		return err
	}

	checkErr := x.check(x.result)
	var err error
	switch {
	case checkErr != nil:
		err = x.queueEnd(endUndone)
	case x.rollback:
		err = x.queueEnd(endTried)
	default:
		err = x.queueCommit()
	}

	if err != nil {
		x.broken = true
		return err
	}

	if err := x.roundTrip(); err != nil {
		return err
	}

	return checkErr
}

// cleanSession resets the session after a failure, and removes statements that user code prepared.
// The connection is discarded if that fails.
func (x *pipeline) cleanSession() {
	err := x.waitWritten()
	x.pending = x.pending[:0]
	if err == nil && x.dirty {
		x.dirty = false

		if x.skipping {
			x.pending = append(x.pending, pendingReply{kind: kindSync})
			err = x.sync()
		}

		end := cleanIdle
		if x.txStatus != txIdle {
			end = cleanFailed
		}

		err = errors.Join(err, x.queueEnd(end), x.roundTrip())
	}

	if err == nil && x.result.deallocateSQL != nil {
		x.pending = append(x.pending, pendingReply{kind: kindSimpleQuery})
		err = errors.Join(x.query(string(x.result.deallocateSQL)), x.roundTrip())
	}

	x.broken = x.broken || err != nil || x.dirty || x.txStatus != txIdle
}

// roundTrip sends the queued messages and reads their replies.
func (x *pipeline) roundTrip() error {
	if err := x.send(); err != nil {
		return err
	}
	return x.readReplies()
}

// queueStatement queues the execution of a statement, prepared under a cached name or unnamed.
func (x *pipeline) queueStatement(kind replyKind, role, sql string, args [][]byte) error {
	if x.unnamed {
		if err := x.prepare("", sql); err != nil {
			return err
		}

		x.pending = append(x.pending, pendingReply{kind: kindParse}, pendingReply{kind: kind})
		return x.execute("", args)
	}

	st, evicted := x.prepared.get(role, sql)
	if evicted != nil {
		if err := x.queueClose(evicted); err != nil {
			return err
		}
	}

	if st.ready {
		x.reused = true
	} else {
		if err := x.prepare(st.name, sql); err != nil {
			return err
		}
		x.pending = append(x.pending, pendingReply{kindParse, st})
	}

	x.pending = append(x.pending, pendingReply{kind, st})
	return x.execute(st.name, args)
}

func (x *pipeline) queueClose(st *preparedStatement) error {
	x.pending = append(x.pending, pendingReply{kind: kindClose})
	return x.deallocate(st.name)
}

func (x *pipeline) beginSQL() string {
	sql := "begin"
	if x.isolation != "" {
		sql += " isolation level " + x.isolation
	}
	if x.readOnly {
		sql += " read only"
	}

	return sql
}
