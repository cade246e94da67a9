package session

import (
	"context"
	"errors"
	"os"
	"slices"
	"sync"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/socle-dev/socle/internal/fair"
	"github.com/socle-dev/socle/internal/pg"
)

// pipeline sends an execution's statements in a single round trip: BEGIN, settings, the statement,
// COMMIT and the session reset.
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
//
// At a body to be streamed, the pipeline suspends: resume reads the remaining replies, and abandon
// discards the connection instead. Pipelines are pooled.
type pipeline struct {
	*Execution            // with the current step
	first      *Execution // with the first step
	wire
	executor *Executor
	check    func(*Result) error
	cache    *statementCache
	scratch  scratch
	result   Result

	pending     []pendingReply // expected replies, in order
	next        int            // pending reply to be read next
	isSuspended bool           // at the body

	deallocateSQL []byte // removes statements that user code prepared; nil if there are none

	inBlock       bool     // BEGIN was queued
	reusesPlan    bool     // a prepared statement was reused
	mayPrepare    bool     // user code may leave prepared statements
	mayDeallocate bool     // user code may deallocate prepared statements
	outcome       []string // statements in the simple query that must succeed
	txStatus      byte     // as in ReadyForQuery
	skipping      bool     // the server discards messages until Sync
	dirty         bool     // the session may have leftovers
	unknown       bool     // the change may have been made despite the failure
}

var pipelinePool = sync.Pool{New: func() any { return new(pipeline) }}

// newPipeline returns a pipeline for an execution.
func newPipeline(ctx context.Context, x *Executor, e *Execution) *pipeline {
	p := pipelinePool.Get().(*pipeline)
	p.executor, p.first = x, e
	p.watchdog = newWatchdog(ctx)
	p.reset()

	return p
}

// reset prepares the pipeline for an attempt on another connection.
func (p *pipeline) reset() {
	p.Execution = p.first
	p.result.reset(p)
	p.wire = wire{out: p.out[:0], watchdog: p.watchdog}
	p.cache, p.deallocateSQL = nil, nil
	p.inBlock, p.reusesPlan, p.mayDeallocate, p.outcome = false, false, false, nil
	p.mayPrepare, p.check = p.Statement.MayPrepare, p.Check

	if p.check == nil && (p.Next != nil || p.waitsForBudget()) {
		p.check = func(*Result) error { return nil }
	}
}

// waitsForBudget reports whether a change commits only once its response is there, which may have
// to wait for the budget.
func (p *pipeline) waitsForBudget() bool {
	s := &p.Statement
	return !p.ReadOnly && !s.CountOnly && !s.Explain && p.executor.Budget.isLow(p.owner)
}

// owner returns the key that the response is charged to.
func (p *pipeline) owner() fair.Key {
	if p.Owner == nil {
		return fair.Key{}
	}

	return p.Owner(p.watchdog.ctx)
}

// release returns the pipeline to the pool, and its result's bytes to the budget. It discards the
// connection if the body was not read.
func (p *pipeline) release() {
	if p.isSuspended {
		p.abandon()
	}

	p.watchdog.release()
	p.result.reset(nil)
	p.scratch.reset()

	if p.writeDone == nil { // the writer has ended
		clear(p.pending)
		*p = pipeline{scratch: p.scratch, result: p.result, pending: p.pending[:0], wire: wire{out: pooled(p.out)}}
		pipelinePool.Put(p)
	}
}

// pendingReply is a reply that PostgreSQL owes.
type pendingReply struct {
	kind      replyKind
	statement *preparedStatement
}

// replyKind classifies replies by the message that they answer.
type replyKind uint8

const (
	kindClose replyKind = iota
	kindParse
	kindBegin
	kindGuard
	kindCommit
	kindVersionCheck // settings, after the schema version check
	kindOther        // statement without a result, such as settings
	kindEstimate     // plan with the row estimate
	kindMain         // the request's statement
	kindSimpleQuery
	kindSelectPrepared // statements that user code left prepared
	kindSync
)

// pipeline.txStatus values, as in ReadyForQuery.
const (
	txIdle    = 'I'
	txInBlock = 'T'
)

// canceledStates are the SQLSTATEs of a statement that was canceled, and of a session that the
// pool's supervisor terminated because its statement resisted.
var canceledStates = []string{"57014", "57P01"}

// try runs the execution on a connection, which it returns to the pool unless the pipeline
// suspends. It fails with context.DeadlineExceeded beyond the deadline.
func (p *pipeline) try(ctx context.Context, conn *pgxpool.Conn) error {
	err := p.attach(ctx, conn, p.Deadline, !p.ReadOnly, p.executor.MaxResponse)
	if err == nil {
		err = p.attempt()
	}

	if !p.isSuspended {
		p.detach()
	}

	switch {
	case p.unknown && ctx.Err() == nil:
		return &OutcomeUnknownError{err}
	case p.watchdog.Err() != nil && slices.Contains(canceledStates, pg.State(err)):
		return context.DeadlineExceeded
	case err == nil || isPgError(err):
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

	err := p.runOnce()
	pe, ok := errors.AsType[*pgconn.PgError](err)
	stalePlan := ok && stalePlanStates[pe.Code] && pe.Where == ""
	if stalePlan && p.reusesPlan && !p.broken {
		p.session.invalidate()
		p.result.reset(p)
		p.mayDeallocate = true
		err = p.runOnce()
	}

	return err
}

// runOnce queues the messages, sends them and reads the replies.
func (p *pipeline) runOnce() error {
	p.Execution = p.first
	p.txStatus, p.skipping, p.dirty = txIdle, false, false
	p.unknown, p.committing, p.commitSent = false, false, false
	p.out, p.pending = p.out[:0], p.pending[:0]

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

	return err
}

// queue queues the request's messages, up to the check if it has one.
func (p *pipeline) queue() error {
	args, err := p.encodeStep()
	if err != nil {
		return err
	}

	err = p.queueAll(args)
	p.broken = err != nil // the statement cache records statements that were not sent

	return err
}

// queueAll queues the request's messages with their encoded arguments. The cases after the last
// statement choose how the transaction ends, see [pipeline].
func (p *pipeline) queueAll(args stepArgs) (err error) {
	if p.cache, err = p.statements(); err != nil {
		return err
	}

	inert := p.Statement.Inert && !p.mayDeallocate && !p.mayPrepare
	writes := !p.ReadOnly && !inert
	p.inBlock = writes || p.Rollback || p.check != nil || p.Isolation != ""

	if p.inBlock {
		if err := p.queueStatement(kindBegin, "", p.beginSQL(), nil); err != nil {
			return err
		}
	}

	if p.Guard.SQL != "" {
		if err := p.queueStatement(kindGuard, "", p.Guard.SQL, args.guard); err != nil {
			return err
		}
	}

	kind := kindOther
	if p.Version.Value != "" {
		kind = kindVersionCheck
	}

	settings := p.scratch.settingsStatement(p.Settings, p.ReadOnly && !p.inBlock, p.Version)
	if err := p.queueStatement(kind, "", settings, p.scratch.values); err != nil {
		return err
	}

	if err := p.queueStep(args); err != nil {
		return err
	}

	switch {
	case p.check != nil:
		return p.flush()
	case p.Rollback:
		return p.queueEnd(endTried)
	case p.inBlock:
		return p.queueCommit()
	case inert:
		p.committing = !p.ReadOnly
		return p.queueSync()
	case p.mayPrepare || p.mayDeallocate:
		return p.queueEnd(cleanIdle)
	}

	if !p.Statement.ReleasesLocks {
		if err := p.queueStatement(kindOther, "", unlock, nil); err != nil {
			return err
		}
	}

	return p.queueEnd(endRead)
}

// complete sends the queued messages, reads the replies and runs the check.
func (p *pipeline) complete() error {
	err := p.roundTrip()
	if p.isSuspended {
		return nil
	}

	if err == nil && p.check != nil {
		err = p.finishChecked()
	}

	p.cleanSession()
	return err
}

// resume reads the replies after the body and returns the connection to its pool. Failures do not
// matter any more: the response is under way.
func (p *pipeline) resume() {
	p.isSuspended = false
	_ = p.readReplies()
	p.cleanSession()
	p.detach()
}

// abandon discards the connection instead.
func (p *pipeline) abandon() {
	p.isSuspended, p.broken = false, true
	_ = p.waitWritten()
	p.detach()
}

// finishChecked commits, or rolls back if the check fails.
func (p *pipeline) finishChecked() error {
	checkErr, err := p.runSteps()
	if err != nil {
		return err
	}

	switch {
	case checkErr != nil:
		err = p.queueEnd(endUndone)
	case p.Rollback:
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

// roundTrip sends the queued messages and reads their replies.
func (p *pipeline) roundTrip() error {
	if err := p.send(); err != nil {
		p.unknown = p.commitSent
		return err
	}

	return p.readReplies()
}

// queueStatement queues the execution of a statement, prepared under a cached name or unnamed.
func (p *pipeline) queueStatement(kind replyKind, role, sql string, args [][]byte) error {
	if p.executor.NoPreparedStatements {
		if err := p.prepare("", sql); err != nil {
			return err
		}

		p.pending = append(p.pending, pendingReply{kind: kindParse}, pendingReply{kind: kind})
		return p.execute("", args)
	}

	st, victim := p.cache.get(role, sql)
	if victim != nil {
		if err := p.queueClose(victim); err != nil {
			return err
		}
	}

	switch {
	case st.ready:
		p.reusesPlan = true
	case p.isQueued(st): // a step sets the same parameters twice
	default:
		if err := p.prepare(st.name, sql); err != nil {
			return err
		}
		p.pending = append(p.pending, pendingReply{kindParse, st})
	}

	p.pending = append(p.pending, pendingReply{kind, st})
	return p.execute(st.name, args)
}

// isQueued reports whether a statement's Parse is queued.
func (p *pipeline) isQueued(st *preparedStatement) bool {
	return slices.Contains(p.pending, pendingReply{kindParse, st})
}

func (p *pipeline) queueClose(st *preparedStatement) error {
	p.pending = append(p.pending, pendingReply{kind: kindClose})
	return p.deallocate(st.name)
}

func (p *pipeline) beginSQL() string {
	sql := "begin"
	if p.Isolation != "" {
		sql += " isolation level " + p.Isolation
	}
	if p.ReadOnly {
		sql += " read only"
	}

	return sql
}
