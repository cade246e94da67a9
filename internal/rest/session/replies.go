package session

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
)

// readReplies reads the pending replies, unless the pipeline suspends on the way. It returns the
// first failure before the outcome was settled.
func (p *pipeline) readReplies() error {
	err := p.readPending()
	if !p.isSuspended {
		p.pending, p.next = p.pending[:0], 0
	}

	return err
}

func (p *pipeline) readPending() error {
	var first error
	for isFinal := false; p.next < len(p.pending); p.next++ {
		a := p.pending[p.next]
		err := p.readReply(a)
		if p.isSuspended {
			return nil
		}

		if err == nil {
			isFinal = isFinal || a.kind == kindSimpleQuery || a.kind == kindCommit
			continue
		}

		p.broken = p.broken || !isPgError(err)
		p.dirty = true
		p.dropUnprepared()

		if first == nil && !isFinal {
			first = asKnown(a, err)
			p.unknown = p.isOutcomeUnknown(a, err)
		}

		if p.broken {
			return first
		}
		if a.kind == kindSimpleQuery { // messages after a simple query are still answered
			continue
		}

		last := p.pending[len(p.pending)-1]
		if last.kind != kindSync {
			p.skipping = true
			return first
		}

		if err := p.readReply(last); err != nil {
			p.broken = true
		}

		return first
	}

	return first
}

// isOutcomeUnknown reports whether a change may have been made although a reply is missing. Replies
// that PostgreSQL had not sent are lost with the connection, so COMMIT may have succeeded before
// any missing reply. But if PostgreSQL ends the session with an error, replies to all its earlier
// work precede it.
func (p *pipeline) isOutcomeUnknown(a pendingReply, err error) bool {
	if !p.broken || !p.commitSent {
		return false
	}
	return !isPgError(err) || a.kind == kindCommit || a.kind == kindSimpleQuery || a.kind == kindSync
}

// asKnown converts a version check's failure to a [StaleCatalogError], and a guard's to a
// [GuardError].
func asKnown(a pendingReply, err error) error {
	pe, ok := errors.AsType[*pgconn.PgError](err)
	if ok && a.kind == kindGuard {
		return &GuardError{pe}
	}
	if ok && a.kind == kindVersionCheck && pe.Code == "22P02" && strings.Contains(pe.Message, staleCatalogMarker) {
		return &StaleCatalogError{pe}
	}
	return err
}

// dropUnprepared removes statements from the cache whose Parse PostgreSQL has not confirmed, from
// the current reply on: after its failure the server ignores them.
func (p *pipeline) dropUnprepared() {
	for _, a := range p.pending[p.next:] {
		if a.statement != nil && a.kind == kindParse && !a.statement.ready {
			p.cache.drop(a.statement)
		}
	}
}

// readReply reads one reply.
func (p *pipeline) readReply(a pendingReply) error {
	if a.kind == kindSimpleQuery {
		return p.readEnd()
	}

	for {
		m, err := p.receive()
		if err != nil {
			return err
		}

		switch m {
		case bindComplete:
		case dataRow:
			if err := p.readRow(a.kind); err != nil || p.isSuspended {
				return err
			}
		case commandComplete, emptyQuery:
			switch a.kind {
			case kindBegin:
				p.txStatus = txInBlock
			case kindCommit:
				p.txStatus = txIdle
			case kindMain:
				if p.Statement.CountOnly {
					return p.readRowCount()
				}
			}

			return nil
		case parseComplete:
			if a.statement != nil {
				a.statement.ready = true
			}
			return nil
		case closeComplete:
			return nil
		case readyForQuery:
			p.txStatus = p.session.reader.txStatus
			return nil
		default:
			return fmt.Errorf("read the reply to a message of kind %d: unexpected message %q", a.kind, m)
		}
	}
}

// readEnd reads the replies to a finalQuery. It fails if a statement failed before the outcome was
// settled.
func (p *pipeline) readEnd() error {
	var failure error
	for done := 0; ; {
		m, err := p.receive()
		if err != nil && (p.broken || !isPgError(err)) {
			p.broken = true

			if done >= len(p.outcome) {
				return nil
			}

			return err
		}

		if err != nil {
			p.dirty = true

			if done < len(p.outcome) {
				failure = err
			}

			continue
		}

		switch m {
		case commandComplete:
			done++
		case readyForQuery:
			p.txStatus = p.session.reader.txStatus
			return failure
		}
	}
}

func (p *pipeline) readRow(kind replyKind) error {
	in, r := &p.session.reader, &p.result
	n, err := in.columns()
	if err != nil {
		return err
	}

	if kind == kindMain && !p.Statement.Explain {
		if n != 7 {
			return errProtocol
		}
		return p.readResultRow()
	}

	if kind != kindSelectPrepared && kind != kindEstimate && kind != kindMain {
		return nil
	}

	v, err := in.value()
	switch {
	case err != nil:
		return err
	case kind == kindSelectPrepared:
		p.deallocateSQL = bytes.Clone(v)
	case kind == kindEstimate:
		r.Estimate = plannedRows(v)
	default:
		if len(r.buffer) > 0 {
			r.buffer = append(r.buffer, '\n')
		}

		r.buffer = append(r.buffer, v...)
		r.Body, r.Size = r.buffer, len(r.buffer)
	}

	return nil
}

// readResultRow reads the row that a statement from package plan returns.
func (p *pipeline) readResultRow() error {
	in, r := &p.session.reader, &p.result
	for _, n := range [...]*int64{&r.Total, &r.Rows} {
		if err := in.count(n); err != nil {
			return err
		}
	}

	r.buffer = r.buffer[:0]
	for _, dst := range [...]*[]byte{&r.Location, &r.Headers, &r.Status} {
		v, err := in.value()
		if err != nil {
			return err
		}

		if len(v) > 0 {
			start := len(r.buffer)
			r.buffer = append(r.buffer, v...)
			*dst = r.buffer[start:len(r.buffer):len(r.buffer)]
		}
	}

	if err := in.count(&r.Inserted); err != nil {
		return err
	}

	size, err := in.length()
	if err != nil || size < 0 {
		return err
	}
	if size != in.remaining {
		return errProtocol
	}

	r.Size = size
	return p.readBody()
}

// readBody buffers a body, or suspends the pipeline for a long one that can be streamed.
func (p *pipeline) readBody() error {
	in, r := &p.session.reader, &p.result
	usesBudget := r.Size > uncountedResponse
	switch {
	case p.Streams && !p.inBlock: // a block's COMMIT can still fail
		if usesBudget && r.Size <= min(maxBufferedBody, in.maxValue) {
			r.lease = p.executor.Budget.tryShare(p.owner(), r.Size, 0)
		}

		if r.Size > min(maxBufferedBody, in.maxValue) || (usesBudget && r.lease == nil) {
			p.isSuspended = true
			return nil
		}
	case r.Size > in.maxValue && !p.commitPipelined():
		// A committed change is answered in any case: its statement has checked the length, to
		// which only the encoding can have added.
		return &pgproto3.ExceededMaxBodyLenErr{MaxExpectedBodyLen: in.maxValue, ActualBodyLen: r.Size}
	case usesBudget:
		if err := p.reserve(r.Size); err != nil {
			return err
		}
	}

	start := len(r.buffer)
	r.buffer = slices.Grow(r.buffer, r.Size)[:start+r.Size] // keeps the slices into the buffer valid
	r.Body = r.buffer[start:]
	_, err := io.ReadFull(in, r.Body)
	return err
}

// commitPipelined reports whether COMMIT was sent with the statement, so that the change stands
// even if the response cannot be delivered.
func (p *pipeline) commitPipelined() bool { return !p.ReadOnly && !p.Rollback && p.check == nil }

// readRowCount reads the number of changed rows from the command tag, as in INSERT 0 1.
func (p *pipeline) readRowCount() error {
	in := &p.session.reader
	tag, err := in.take(in.remaining)
	if err != nil {
		return err
	}

	tag = bytes.TrimRight(tag, "\x00")
	p.result.Rows, err = parseCount(tag[bytes.LastIndexByte(tag, ' ')+1:], 0)
	return err
}

// plannedRows returns a JSON plan's row estimate, or -1. The outermost node has the first "Plan
// Rows".
func plannedRows(plan []byte) int64 {
	const member = `"Plan Rows":`
	i := bytes.Index(plan, []byte(member))
	if i < 0 {
		return -1
	}

	text := bytes.TrimLeft(plan[i+len(member):], " ")
	end := bytes.IndexFunc(text, func(r rune) bool { return r < '0' || r > '9' })
	if end < 0 {
		return -1
	}

	n, err := strconv.ParseInt(string(text[:end]), 10, 64)
	if err != nil {
		return -1
	}

	return n
}
