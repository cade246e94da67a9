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

// exchange is what is said on a connection for an execution: messages that prepare and execute statements, the last of which
// end the transaction and take away what code of the database's may have left in the session.
//
// A transaction that may write is a block, and ended before anything is taken away: a lock that its code took for the session
// is held until all can see what was written, and what is deferred still finds its settings. The statements for that are prepared like
// all others; where they may be gone, and where nothing is kept, a simple query says the same. One that only reads needs no block: nothing
// is deferred in it, and nobody waits for what it did. It is ended by the end of a simple query, with all that was done. Of a statement
// that runs no code of the database's nothing is left: the end of the messages ends its transaction, whatever it is.
type pipeline struct {
	*execution
	wire
	prepared *statementCache
	scratch  *scratch
	pending  []pendingReply // what answers come, in order
	result   *result

	inBlock      bool // the transaction is one
	reused       bool // a statement was there already
	deallocated  bool // no prepared statement may be there any more when the main one has run
	settledAfter int  // after so many statements of the simple query the outcome stands
	txStatus     byte // of the transaction: I, idle; T, in a block; E, in one that has failed
	skipping     bool // the server waits for a synchronization
	dirty        bool // something may be left in the session
}

// awaited is an answer that PostgreSQL owes.
type pendingReply struct {
	kind      replyKind
	statement *preparedStatement
}

type replyKind uint8

const (
	kindClose replyKind = iota
	kindParse
	kindBegin
	kindCommit
	kindVersionCheck
	kindOther
	kindEstimate
	kindMain
	kindSimpleQuery
	kindSelectPrepared
	kindSync
)

// Values of pipeline.txStatus, as in ReadyForQuery.
const (
	txIdle    = 'I'
	txInBlock = 'T'
)

// cleaning is endCarefully in statements of their own, which need not be read anew each time.
var cleanupStatements = []string{"close all", "reset all", "unlisten *", "discard temp", unlock}

const (
	unlock     = "select pg_catalog.pg_advisory_unlock_all()"
	cleanRead  = "close all; reset all; unlisten *"
	cleanAll   = cleanRead + "; discard temp; " + unlock
	nCleanRead = 3
	nCleanAll  = 5
)

// finalQuery is a simple query.
type finalQuery struct {
	sql          string
	settledAfter int
}

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
	selectPrepared = "select pg_catalog.string_agg('deallocate ' operator(pg_catalog.||) pg_catalog.quote_ident(name), '; ') from pg_catalog.pg_prepared_statements where from_sql"
)

// try runs the execution on a connection, and says so if its time was over before it was done.
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

// attempt runs it, and once more if a statement was prepared for what is no more.
func (x *pipeline) attempt() error {
	if x.session.requests++; x.session.requests%preparedCheckInterval == 0 {
		x.mayPrepare = true // what other code than that of functions has left prepared goes too
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

// renew takes away what is left in a session that an older catalogue was used in: what by that ran no code of the database's may have
// come to do so before the newer one was there.
func (x *pipeline) resetSession() error {
	if old := x.session.statementCache.catalog; old == nil || old == x.catalog {
		return nil
	}

	x.settledAfter = cleanIdle.settledAfter
	x.pending = append(x.pending, pendingReply{kind: kindSimpleQuery})

	err := errors.Join(x.query(cleanIdle.sql), x.roundTrip())
	if err != nil {
		x.broken, x.wrote = true, false // of the request itself
	}

	return err
}

// ask queues what the request has to say, up to the point where its outcome is judged.
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

	if strings.IndexByte(x.sql, 0) >= 0 { // ends a statement on the wire
		return &query.Error{Status: http.StatusBadRequest, Code: "22021", Message: "a name can't hold a NUL"}
	}

	err = x.queueAll(args, countArgs)
	x.broken = err != nil // what the connection is believed to know was not sent

	return err
}

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

// sayCommit queues the end of a transaction that is kept.
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

// sayEnd queues the simple query. After so many of its statements the outcome stands.
func (x *pipeline) queueEnd(end finalQuery) error {
	x.settledAfter = end.settledAfter
	x.pending = append(x.pending, pendingReply{kind: kindSimpleQuery})

	if err := x.query(end.sql); err != nil || !x.mayPrepare {
		return err
	}

	return x.queueSync()
}

// saySync queues the last of all, and before it what a function may have prepared.
func (x *pipeline) queueSync() error {
	if x.mayPrepare {
		if err := x.queueStatement(kindSelectPrepared, "", selectPrepared, nil); err != nil {
			return err
		}
	}

	x.pending = append(x.pending, pendingReply{kind: kindSync})
	return x.sync()
}

// answer sends what is queued, and reads and judges the answers.
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

// judge ends the transaction by what the check says.
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

// clean takes away what is left in the session after a failure, or by a function. If that fails nobody gets the connection again.
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

// hear sends what is queued, and reads the answers.
func (x *pipeline) roundTrip() error {
	if err := x.send(); err != nil {
		return err
	}
	return x.readReplies()
}

// say queues a statement, prepared under a name that the connection keeps, or under none.
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
