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
func (p *pipeline) try(ctx context.Context, conn *pgxpool.Conn) error {
	p.result = newResult()
	err := p.attach(ctx, conn, p.deadline, p.maxResponse)

	defer p.detach()

	if err == nil {
		err = p.attempt()
	}

	switch {
	case err == nil || isPgError(err) || isAborted(err):
		return err
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, os.ErrDeadlineExceeded) || p.watchdog.Err() != nil:
		return context.DeadlineExceeded
	}

	return err
}

// attempt runs the execution, and again if a prepared statement was invalid.
func (p *pipeline) attempt() error {
	if p.session.requests++; p.session.requests%preparedCheckRequests == 0 {
		p.mayPrepare = true // also remove statements that other user code prepared
	}

	err := p.run()
	pe, ok := errors.AsType[*pgconn.PgError](err)
	stalePlan := ok && stalePlanStates[pe.Code] && pe.Where == ""
	if stalePlan && p.reused && !p.broken {
		p.session.invalidate()
		p.result.release()
		p.result, p.deallocated = newResult(), true
		err = p.run()
	}

	return err
}

// run queues the messages, sends them and reads the replies.
func (p *pipeline) run() error {
	p.txStatus, p.skipping, p.dirty = txIdle, false, false

	p.scratch = newScratch()
	defer p.scratch.release()

	p.out, p.pending = p.scratch.out[:0], p.scratch.pending[:0]

	err := p.resetSession()
	if err == nil {
		err = p.queue()
	}
	if err == nil {
		err = p.complete()
	}

	if p.broken {
		_ = p.waitWritten()
	}

	p.scratch.out, p.scratch.pending = p.out, p.pending
	return err
}

// resetSession cleans a session that was last used with an older catalog. Relations that ran no
// user code by that catalog may have got some before it was replaced.
func (p *pipeline) resetSession() error {
	if old := p.session.statementCache.catalog; old == nil || old == p.catalog {
		return nil
	}

	p.settledAfter = cleanIdle.settledAfter
	p.pending = append(p.pending, pendingReply{kind: kindSimpleQuery})

	err := errors.Join(p.query(cleanIdle.sql), p.roundTrip())
	if err != nil {
		p.broken, p.wrote = true, false // the request itself was not sent
	}

	return err
}

// queue queues the messages of the request, up to the check if it has one.
func (p *pipeline) queue() error {
	s := p.scratch
	s.reserve(p.args, p.countArgs)

	args, err := s.encode(p.args)
	if err != nil {
		return err
	}

	countArgs, err := s.encode(p.countArgs)
	if err != nil {
		return err
	}

	if strings.IndexByte(p.sql, 0) >= 0 { // NUL ends a string of the protocol
		return &query.Error{Status: http.StatusBadRequest, Code: "22021", Message: "a name can't hold a NUL"}
	}

	err = p.queueAll(args, countArgs)
	p.broken = err != nil // the statement cache records statements that were not sent

	return err
}

// queueAll queues the messages of the request with its encoded arguments. The cases after the last
// statement choose how the transaction ends, see [pipeline].
func (p *pipeline) queueAll(args, countArgs [][]byte) (err error) {
	if p.prepared, err = p.statements(); err != nil {
		return err
	}

	inert := p.inert && !p.deallocated && !p.mayPrepare
	writes := !p.readOnly && !inert
	p.inBlock = writes || p.rollback || p.check != nil || p.isolation != ""

	if p.inBlock {
		if err := p.queueStatement(kindBegin, "", p.beginSQL(), nil); err != nil {
			return err
		}
	}

	kind := kindOther
	if p.version.value != "" {
		kind = kindVersionCheck
	}

	settings := p.scratch.settingsStatement(p.settings, p.readOnly && !p.inBlock, p.version)
	if err := p.queueStatement(kind, "", settings, p.scratch.values); err != nil {
		return err
	}

	if p.preRequest != "" {
		if err := p.queueStatement(kindOther, p.role, p.preRequest, nil); err != nil {
			return err
		}
	}

	if p.countSQL != "" {
		explain := "explain (format json) " + p.countSQL
		if err := p.queueStatement(kindEstimate, p.role, explain, countArgs); err != nil {
			return err
		}
	}

	if err := p.queueStatement(kindMain, p.role, p.sql, args); err != nil {
		return err
	}

	switch {
	case p.check != nil:
		return p.flush()
	case p.rollback:
		return p.queueEnd(endTried)
	case p.inBlock:
		return p.queueCommit()
	case inert:
		return p.queueSync()
	case p.mayPrepare || p.deallocated:
		return p.queueEnd(endUserCode)
	}

	if !p.releasesLocks {
		if err := p.queueStatement(kindOther, "", unlock, nil); err != nil {
			return err
		}
	}

	return p.queueEnd(endRead)
}

// queueCommit queues COMMIT and the session reset.
func (p *pipeline) queueCommit() error {
	if p.deallocated {
		return p.queueEnd(endWrite)
	}

	if err := p.queueStatement(kindCommit, "", commit, nil); err != nil {
		return err
	}

	for _, sql := range cleanupStatements {
		if err := p.queueStatement(kindOther, "", sql, nil); err != nil {
			return err
		}
	}

	return p.queueSync()
}

// queueEnd queues a simple query that ends the transaction.
func (p *pipeline) queueEnd(end finalQuery) error {
	p.settledAfter = end.settledAfter
	p.pending = append(p.pending, pendingReply{kind: kindSimpleQuery})

	if err := p.query(end.sql); err != nil || !p.mayPrepare {
		return err
	}

	return p.queueSync()
}

// queueSync queues Sync, and before it the query for statements that user code prepared.
func (p *pipeline) queueSync() error {
	if p.mayPrepare {
		if err := p.queueStatement(kindSelectPrepared, "", selectPrepared, nil); err != nil {
			return err
		}
	}

	p.pending = append(p.pending, pendingReply{kind: kindSync})
	return p.sync()
}

// complete sends the queued messages, reads the replies and runs the check.
func (p *pipeline) complete() error {
	err := p.roundTrip()
	if err == nil && p.check != nil {
		err = p.finishChecked()
	}

	if (p.dirty || p.result.deallocateSQL != nil) && !p.broken {
		p.cleanSession()
	}

	return err
}

// finishChecked commits, or rolls back if the check fails.
func (p *pipeline) finishChecked() error {
	if err := p.waitWritten(); err != nil {
		return err
	}

	checkErr := p.check(p.result)
	var err error
	switch {
	case checkErr != nil:
		err = p.queueEnd(endUndone)
	case p.rollback:
		err = p.queueEnd(endTried)
	default:
		err = p.queueCommit()
	}

	if err != nil {
		p.broken = true
		return err
	}

	if err := p.roundTrip(); err != nil {
		return err
	}

	return checkErr
}

// cleanSession resets the session after a failure, and removes statements that user code prepared.
// The connection is discarded if that fails.
func (p *pipeline) cleanSession() {
	err := p.waitWritten()
	p.pending = p.pending[:0]
	if err == nil && p.dirty {
		p.dirty = false

		if p.skipping {
			p.pending = append(p.pending, pendingReply{kind: kindSync})
			err = p.sync()
		}

		end := cleanIdle
		if p.txStatus != txIdle {
			end = cleanFailed
		}

		err = errors.Join(err, p.queueEnd(end), p.roundTrip())
	}

	if err == nil && p.result.deallocateSQL != nil {
		p.pending = append(p.pending, pendingReply{kind: kindSimpleQuery})
		err = errors.Join(p.query(string(p.result.deallocateSQL)), p.roundTrip())
	}

	p.broken = p.broken || err != nil || p.dirty || p.txStatus != txIdle
}

// roundTrip sends the queued messages and reads their replies.
func (p *pipeline) roundTrip() error {
	if err := p.send(); err != nil {
		return err
	}
	return p.readReplies()
}

// queueStatement queues the execution of a statement, prepared under a cached name or unnamed.
func (p *pipeline) queueStatement(kind replyKind, role, sql string, args [][]byte) error {
	if p.unnamed {
		if err := p.prepare("", sql); err != nil {
			return err
		}

		p.pending = append(p.pending, pendingReply{kind: kindParse}, pendingReply{kind: kind})
		return p.execute("", args)
	}

	st, evicted := p.prepared.get(role, sql)
	if evicted != nil {
		if err := p.queueClose(evicted); err != nil {
			return err
		}
	}

	if st.ready {
		p.reused = true
	} else {
		if err := p.prepare(st.name, sql); err != nil {
			return err
		}
		p.pending = append(p.pending, pendingReply{kindParse, st})
	}

	p.pending = append(p.pending, pendingReply{kind, st})
	return p.execute(st.name, args)
}

func (p *pipeline) queueClose(st *preparedStatement) error {
	p.pending = append(p.pending, pendingReply{kind: kindClose})
	return p.deallocate(st.name)
}

func (p *pipeline) beginSQL() string {
	sql := "begin"
	if p.isolation != "" {
		sql += " isolation level " + p.isolation
	}
	if p.readOnly {
		sql += " read only"
	}

	return sql
}
