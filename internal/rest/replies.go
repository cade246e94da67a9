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
func (x *pipeline) readReplies() error {
	replies := x.pending
	x.pending = x.pending[:0]
	settled, last := false, len(replies)-1

	var first error
	for i, a := range replies {
		err := x.readReply(a)
		if err == nil {
			settled = settled || a.kind == kindSimpleQuery || a.kind == kindCommit
			continue
		}

		if pe, ok := errors.AsType[*pgconn.PgError](err); ok && a.kind == kindVersionCheck && pe.Code == "22P02" &&
			strings.Contains(pe.Message, staleCatalogMarker) {
			err = &staleCatalogError{pe}
		}

		for _, b := range replies[i:] {
			if b.statement != nil && b.kind == kindParse && !b.statement.ready {
				x.prepared.drop(b.statement)
			}
		}

		x.broken = x.broken || !isPgError(err)
		x.dirty = true

		if first == nil && !settled && !x.result.responded {
			first = err
		}

		if x.broken {
			return first
		}
		if a.kind == kindSimpleQuery { // messages after a simple query are still answered
			continue
		}

		if replies[last].kind != kindSync {
			x.skipping = true
			return first
		}

		if err := x.readReply(replies[last]); err != nil {
			x.broken = true
		}

		return first
	}

	return first
}

// readReply reads one reply.
func (x *pipeline) readReply(a pendingReply) error {
	if a.kind == kindSimpleQuery {
		return x.readEnd()
	}

	for {
		m, err := x.receive()
		if err != nil {
			return err
		}

		switch m {
		case bindComplete:
		case dataRow:
			if err := x.readRow(a.kind); err != nil {
				return err
			}
		case commandComplete, emptyQuery:
			switch a.kind {
			case kindBegin:
				x.txStatus = txInBlock
			case kindCommit:
				x.txStatus = txIdle
			case kindMain:
				if x.countOnly {
					return x.readRowCount()
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
			x.txStatus = x.session.reader.txStatus
			return nil
		default:
			return fmt.Errorf("read the reply to a message of kind %d: unexpected message %q", a.kind, m)
		}
	}
}

// readEnd reads the replies to a finalQuery. It fails if a statement failed before the outcome was
// settled.
func (x *pipeline) readEnd() error {
	var failed error
	for done := 0; ; {
		m, err := x.receive()
		if err != nil && (x.broken || !isPgError(err)) {
			x.broken = true

			if done >= x.settledAfter {
				return nil
			}

			return err
		}

		if err != nil {
			x.dirty = true

			if done < x.settledAfter {
				failed = err
			}

			continue
		}

		switch m {
		case commandComplete:
			done++
		case readyForQuery:
			x.txStatus = x.session.reader.txStatus
			return failed
		}
	}
}

// readRow reads a row. It streams the body if possible.
func (x *pipeline) readRow(kind replyKind) error {
	in, r := &x.session.reader, x.result
	n, err := in.columns()
	if err != nil {
		return err
	}

	if kind == kindMain && !x.explain {
		if n != 7 {
			return errProtocol
		}
		return x.readResultRow()
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
func (x *pipeline) readResultRow() error {
	in, r := &x.session.reader, x.result
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
	switch {
	case err != nil || size < 0:
		return err
	case size != in.remaining:
		return errProtocol
		// inside a block COMMIT may still fail
	case x.stream != nil && !x.inBlock && (size > min(maxBufferedBody, in.maxValue) ||
		(size > uncountedResponse && !x.budget.tryShare(size, 0))):
		r.source, r.sourceSize = in, size
		if err = x.stream.respond(r); err == nil {
			r.responded = true
		}

		return err
		// A committed change is answered in any case: its statement has checked the length, to
		// which only the encoding can have added.
	case size > in.maxValue && !x.commitPipelined():
		return &pgproto3.ExceededMaxBodyLenErr{MaxExpectedBodyLen: in.maxValue, ActualBodyLen: size}
	case size <= uncountedResponse:
	case x.stream != nil && !x.inBlock:
		r.setBudget(x.budget, size)
	default:
		if err := x.reserveBody(size); err != nil {
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
func (x *pipeline) readRowCount() error {
	in := &x.session.reader
	tag, err := in.take(in.remaining)
	if err != nil {
		return err
	}

	tag = bytes.TrimRight(tag, "\x00")
	x.result.rows, err = parseCount(tag[bytes.LastIndexByte(tag, ' ')+1:], 0)
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
