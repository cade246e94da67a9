package rest

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"slices"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
)

// The messages of the server that are told apart.
const (
	parseComplete        = '1'
	bindComplete         = '2'
	closeComplete        = '3'
	notificationResponse = 'A'
	commandComplete      = 'C'
	dataRow              = 'D'
	errorResponse        = 'E'
	emptyQuery           = 'I'
	noticeResponse       = 'N'
	parameterStatus      = 'S'
	readyForQuery        = 'Z'
)

const (
	inboxSize = 8 << 10 // as much as PostgreSQL sends at once
	errorMost = 1 << 20 // bytes of an error: what a function raises has what text it likes
	// bytes of a body that is held, so that the connection need not wait for the client, where it could be passed on
	heldMost = 1 << 20
)

var errMessage = errors.New("a message that is not as PostgreSQL's are")

// inbox is where the server's messages are read, without more of a row in memory than is wanted. (pgproto3 reads whole messages.)
type inbox struct {
	net           net.Conn
	buf           []byte
	taken, filled int  // of buf
	rest          int  // bytes of the message that were not taken
	most          int  // bytes of a value that is held
	status        byte // of the transaction, by the last readyForQuery
}

// next goes on to the next message, and returns its kind.
func (in *inbox) next() (byte, error) {
	if err := in.skip(); err != nil {
		return 0, err
	}

	in.rest = 5

	head, err := in.take(5)
	if err != nil {
		return 0, err
	}

	kind, size := head[0], binary.BigEndian.Uint32(head[1:])
	if size < 4 || size > 1<<30 { // PostgreSQL makes none that are longer
		return 0, errMessage
	}

	in.rest = int(size) - 4

	if kind == readyForQuery {
		status, err := in.take(1)
		if err != nil {
			return 0, err
		}

		in.status = status[0]
	}

	return kind, nil
}

// skip leaves what was not taken of the message.
func (in *inbox) skip() error {
	for in.rest > 0 {
		n := min(in.rest, in.filled-in.taken)
		in.taken, in.rest = in.taken+n, in.rest-n
		if in.rest == 0 {
			break
		}

		in.taken = 0
		var err error
		if in.filled, err = in.net.Read(in.buf); err != nil {
			in.filled = 0
			return err
		}
	}

	return nil
}

// take returns the next bytes of the message, good until more is read.
func (in *inbox) take(n int) ([]byte, error) {
	if n < 0 || n > in.rest {
		return nil, errMessage
	}

	if have := in.filled - in.taken; have < n {
		if n > in.most {
			return nil, &pgproto3.ExceededMaxBodyLenErr{MaxExpectedBodyLen: in.most, ActualBodyLen: n}
		}

		room := in.buf
		if len(room) < n {
			room = make([]byte, n)
		}

		copy(room, in.buf[in.taken:in.filled])
		in.buf, in.taken, in.filled = room, 0, have
		more, err := io.ReadAtLeast(in.net, room[have:], n-have)
		in.filled += more
		if err != nil {
			return nil, err
		}
	}

	got := in.buf[in.taken : in.taken+n : in.taken+n]
	in.taken, in.rest = in.taken+n, in.rest-n

	return got, nil
}

// Read reads on in the message, to whose end it reads as a reader does.
func (in *inbox) Read(p []byte) (int, error) {
	if in.rest == 0 {
		return 0, io.EOF
	}

	p = p[:min(len(p), in.rest)]
	n := copy(p, in.buf[in.taken:in.filled])
	in.taken += n

	var err error
	if n == 0 {
		n, err = in.net.Read(p)
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
	}

	in.rest -= n
	return n, err
}

// shrink gives back the room that a long message took.
func (in *inbox) shrink() {
	if len(in.buf) > keptMost && in.taken == in.filled {
		in.buf, in.taken, in.filled = make([]byte, inboxSize), 0, 0
	}
}

// failure reads an errorResponse.
func (in *inbox) failure() (*pgconn.PgError, error) {
	if in.rest > errorMost {
		return nil, &pgproto3.ExceededMaxBodyLenErr{MaxExpectedBodyLen: errorMost, ActualBodyLen: in.rest}
	}

	text, err := in.take(in.rest)
	if err != nil {
		return nil, err
	}

	var m pgproto3.ErrorResponse
	if err := m.Decode(text); err != nil {
		return nil, err
	}

	return pgconn.ErrorResponseToPgError(&m), nil
}

// columns begins a row, and returns how many values it has.
func (in *inbox) columns() (int, error) {
	n, err := in.take(2)
	if err != nil {
		return 0, err
	}

	return int(binary.BigEndian.Uint16(n)), nil
}

// length begins a value of a row, and returns its size; -1 of null.
func (in *inbox) length() (int, error) {
	n, err := in.take(4)
	if err != nil {
		return 0, err
	}

	return int(int32(binary.BigEndian.Uint32(n))), nil
}

// value returns the next value of a row, good until more is read; nil of null.
func (in *inbox) value() ([]byte, error) {
	n, err := in.length()
	if err != nil || n < 0 {
		return nil, err
	}

	return in.take(n)
}

// row keeps what a row says, and answers with its body if that is to be passed on.
func (x *exchange) row(kind byte) error {
	in, r := &x.session.in, x.result
	n, err := in.columns()
	if err != nil {
		return err
	}

	if kind == 'm' && !x.explain {
		if n != 7 {
			return errMessage
		}
		return x.answerRow()
	}

	if kind != 'r' && kind != 'c' && kind != 'm' {
		return nil
	}

	v, err := in.value()
	switch {
	case err != nil:
		return err
	case kind == 'r':
		r.prepared = bytes.Clone(v)
	case kind == 'c':
		r.planned = plannedRows(v)
	default:
		if len(r.buffer) > 0 {
			r.buffer = append(r.buffer, '\n')
		}

		r.buffer = append(r.buffer, v...)
		r.body = r.buffer
	}

	return nil
}

// answerRow reads the row of a statement of package plan.
func (x *exchange) answerRow() error {
	in, r := &x.session.in, x.result
	for _, n := range [...]*int64{&r.total, &r.page} {
		if err := in.number(n); err != nil {
			return err
		}
	}

	r.buffer = r.buffer[:0]
	for _, to := range [...]*[]byte{&r.location, &r.headers, &r.status} {
		v, err := in.value()
		if err != nil {
			return err
		}

		if len(v) > 0 {
			start := len(r.buffer)
			r.buffer = append(r.buffer, v...)
			*to = r.buffer[start:len(r.buffer):len(r.buffer)]
		}
	}

	if err := in.number(&r.inserted); err != nil {
		return err
	}

	size, err := in.length()
	switch {
	case err != nil || size < 0:
		return err
	case size != in.rest:
		return errMessage
		// the end of a block may fail
	case x.pass != nil && !x.block && (size > min(heldMost, in.most) || size > uncounted && !x.held.share(size, 0)):
		r.coming, r.size = in, size
		if err = x.pass.answer(r); err == nil {
			r.passed = true
		}

		return err
		// a change that is kept is told, too: its statement has looked at the length, to which only an encoding can have added
	case size > in.most && !x.keeps():
		return &pgproto3.ExceededMaxBodyLenErr{MaxExpectedBodyLen: in.most, ActualBodyLen: size}
	case size <= uncounted:
	case x.pass != nil && !x.block:
		r.took(x.held, size)
	default:
		if err := x.hold(size); err != nil {
			return err
		}
	}

	start := len(r.buffer)
	r.buffer = slices.Grow(r.buffer, size)[:start+size] // what was kept before stays where it is
	r.body = r.buffer[start:]
	_, err = io.ReadFull(in, r.body)
	return err
}

// changedRows reads how many rows a bare statement changed: the last word of what PostgreSQL says at its end, as in INSERT 0 1.
func (x *exchange) changedRows() error {
	in := &x.session.in
	tag, err := in.take(in.rest)
	if err != nil {
		return err
	}

	tag = bytes.TrimRight(tag, "\x00")
	x.result.page, err = number(tag[bytes.LastIndexByte(tag, ' ')+1:], 0)
	return err
}

// number reads a value that is a number, and leaves n as it is for null or nothing.
func (in *inbox) number(n *int64) error {
	v, err := in.value()
	if err != nil {
		return err
	}

	*n, err = number(v, *n)
	return err
}
