package session

import (
	"errors"
	"slices"
	"strings"

	"github.com/socle-dev/socle/internal/actor"
)

// unlock releases the session's advisory locks after a read whose statement does not.
const unlock = "select " + actor.UnlockAdvisory

// cleanup resets the session. Its statements are prepared, so requests do not parse them again.
var cleanup = actor.ResetStatements()

const commit = "commit"

// finalQuery is a simple query that ends the transaction and resets the session. An error in the
// reset does not change the request's outcome.
type finalQuery struct {
	outcome []string // statements that must succeed
	sql     string
}

// newFinalQuery joins the statements that must succeed and the reset.
func newFinalQuery(outcome []string, reset ...string) finalQuery {
	return finalQuery{outcome, strings.Join(slices.Concat(outcome, reset), "; ")}
}

// The end* queries end a transaction: endRead after the locks were released, endWrite commits
// without prepared statements, endUndone rolls back after a failed check, endTried rolls back a dry
// run. The clean* queries reset the session after a failure, outside a transaction or within.
var (
	endRead     = newFinalQuery(append(cleanup[:len(cleanup)-1:len(cleanup)-1], "select "+actor.Reseed))
	endWrite    = newFinalQuery([]string{commit}, cleanup...)
	endUndone   = newFinalQuery([]string{"rollback"}, cleanup...)
	endTried    = newFinalQuery([]string{"set constraints all immediate", "rollback"}, cleanup...)
	cleanIdle   = newFinalQuery(cleanup)
	cleanFailed = newFinalQuery(append([]string{"rollback"}, cleanup...))
)

// resetSession cleans a session that was last used with an older catalog. Relations without user
// code in that catalog may have got some before it was replaced.
func (p *pipeline) resetSession() error {
	if old := p.session.statementCache.catalog; old == nil || old == p.Catalog {
		return nil
	}

	p.outcome = cleanIdle.outcome
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
	if p.mayDeallocate {
		return p.queueEnd(endWrite)
	}

	if err := p.queueStatement(kindCommit, "", commit, nil); err != nil {
		return err
	}

	for _, sql := range cleanup {
		if err := p.queueStatement(kindOther, "", sql, nil); err != nil {
			return err
		}
	}

	return p.queueSync()
}

// queueEnd queues a simple query that ends the transaction.
func (p *pipeline) queueEnd(end finalQuery) error {
	p.outcome = end.outcome
	p.pending = append(p.pending, pendingReply{kind: kindSimpleQuery})

	if err := p.query(end.sql); err != nil || !p.mayPrepare {
		return err
	}

	return p.queueSync()
}

// queueSync queues Sync, and before it the query for statements that user code prepared.
func (p *pipeline) queueSync() error {
	if p.mayPrepare {
		if err := p.queueStatement(kindSelectPrepared, "", actor.SelectUserStatements, nil); err != nil {
			return err
		}
	}

	p.pending = append(p.pending, pendingReply{kind: kindSync})
	return p.sync()
}

// cleanSession resets the session after a failure, and removes statements that user code prepared.
// On failure the connection is discarded.
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
