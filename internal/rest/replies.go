package rest

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

// readReplies reads the pending replies. It returns the first failure before the outcome was
// settled.
func (p *pipeline) readReplies() error {
	replies := p.pending
	p.pending = p.pending[:0]
	settled, last := false, len(replies)-1

	var first error
	for i, a := range replies {
		err := p.readReply(a)
		if err == nil {
			settled = settled || a.kind == kindSimpleQuery || a.kind == kindCommit
			continue
		}

		if pe, ok := errors.AsType[*pgconn.PgError](err); ok && a.kind == kindVersionCheck {
			if pe.Code == "22P02" && strings.Contains(pe.Message, staleCatalogMarker) {
				err = &staleCatalogError{pe}
			}
		}

		for _, b := range replies[i:] {
			if b.statement != nil && b.kind == kindParse && !b.statement.ready {
				p.prepared.drop(b.statement)
			}
		}

		p.broken = p.broken || !isPgError(err)
		p.dirty = true

		if first == nil && !settled && !p.result.responded {
			first = err
		}

		if p.broken {
			return first
		}
		if a.kind == kindSimpleQuery { // messages after a simple query are still answered
			continue
		}

		if replies[last].kind != kindSync {
			p.skipping = true
			return first
		}

		if err := p.readReply(replies[last]); err != nil {
			p.broken = true
		}

		return first
	}

	return first
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
			if err := p.readRow(a.kind); err != nil {
				return err
			}
		case commandComplete, emptyQuery:
			switch a.kind {
			case kindBegin:
				p.txStatus = txInBlock
			case kindCommit:
				p.txStatus = txIdle
			case kindMain:
				if p.countOnly {
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
	var failed error
	for done := 0; ; {
		m, err := p.receive()
		if err != nil && (p.broken || !isPgError(err)) {
			p.broken = true

			if done >= p.settledAfter {
				return nil
			}

			return err
		}

		if err != nil {
			p.dirty = true

			if done < p.settledAfter {
				failed = err
			}

			continue
		}

		switch m {
		case commandComplete:
			done++
		case readyForQuery:
			p.txStatus = p.session.reader.txStatus
			return failed
		}
	}
}

// readRow reads a row. It streams the body if possible.
func (p *pipeline) readRow(kind replyKind) error {
	in, r := &p.session.reader, p.result
	n, err := in.columns()
	if err != nil {
		return err
	}

	if kind == kindMain && !p.explain {
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
		r.deallocateSQL = bytes.Clone(v)
	case kind == kindEstimate:
		r.estimate = plannedRows(v)
	default:
		if len(r.buffer) > 0 {
			r.buffer = append(r.buffer, '\n')
		}

		r.buffer = append(r.buffer, v...)
		r.body = r.buffer
	}

	return nil
}

// readResultRow reads the row of a statement of package plan.
func (p *pipeline) readResultRow() error {
	in, r := &p.session.reader, p.result
	for _, n := range [...]*int64{&r.total, &r.rows} {
		if err := in.count(n); err != nil {
			return err
		}
	}

	r.buffer = r.buffer[:0]
	for _, dst := range [...]*[]byte{&r.location, &r.headers, &r.status} {
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

	if err := in.count(&r.inserted); err != nil {
		return err
	}

	size, err := in.length()
	streams := p.stream != nil && !p.inBlock // the COMMIT of a block can still fail

	switch {
	case err != nil || size < 0:
		return err
	case size != in.remaining:
		return errProtocol
	case streams && (size > min(maxBufferedBody, in.maxValue) ||
		(size > uncountedResponse && !p.budget.tryShare(size, 0))):
		r.source, r.sourceSize = in, size
		if err = p.stream.respond(r); err == nil {
			r.responded = true
		}

		return err
	case size > in.maxValue && !p.commitPipelined():
		// A committed change is answered in any case: its statement has checked the length, to
		// which only the encoding can have added.
		return &pgproto3.ExceededMaxBodyLenErr{MaxExpectedBodyLen: in.maxValue, ActualBodyLen: size}
	case size <= uncountedResponse:
	case streams:
		r.setBudget(p.budget, size)
	default:
		if err := p.reserveBody(size); err != nil {
			return err
		}
	}

	start := len(r.buffer)
	r.buffer = slices.Grow(r.buffer, size)[:start+size] // keeps the slices into the buffer valid
	r.body = r.buffer[start:]
	_, err = io.ReadFull(in, r.body)
	return err
}

// readRowCount reads the number of changed rows from the command tag, as in INSERT 0 1.
func (p *pipeline) readRowCount() error {
	in := &p.session.reader
	tag, err := in.take(in.remaining)
	if err != nil {
		return err
	}

	tag = bytes.TrimRight(tag, "\x00")
	p.result.rows, err = parseCount(tag[bytes.LastIndexByte(tag, ' ')+1:], 0)
	return err
}

// plannedRows returns the row estimate of a JSON plan, or -1. The first "Plan Rows" is that of the
// outermost node.
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
