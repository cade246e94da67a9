package session

import "errors"

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

// resetSession cleans a session that was last used with an older catalog. Relations that ran no
// user code by that catalog may have got some before it was replaced.
func (p *pipeline) resetSession() error {
	if old := p.session.statementCache.catalog; old == nil || old == p.Catalog {
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

// queueCommit queues COMMIT and the session reset.
func (p *pipeline) queueCommit() error {
	p.committing = true
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

// cleanSession resets the session after a failure, and removes statements that user code prepared.
// The connection is discarded if that fails.
func (p *pipeline) cleanSession() {
	if p.broken || (!p.dirty && p.deallocateSQL == nil) {
		return
	}

	p.commitSent = false // the outcome is known
	err := p.waitWritten()
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

	if err == nil && p.deallocateSQL != nil {
		p.pending = append(p.pending, pendingReply{kind: kindSimpleQuery})
		err = errors.Join(p.query(string(p.deallocateSQL)), p.roundTrip())
	}

	p.broken = p.broken || err != nil || p.dirty || p.txStatus != txIdle
}
