package rest

import (
	"encoding/binary"
	"errors"
	"io"
	"net"

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
	readBufferSize = 8 << 10 // as much as PostgreSQL sends at once
	maxErrorSize   = 1 << 20 // bytes of an error: what a function raises has what text it likes
	// bytes of a body that is held, so that the connection need not wait for the client, where it could be passed on
	maxBufferedBody = 1 << 20
)

var errProtocol = errors.New("a message that is not as PostgreSQL's are")

// inbox is where the server's messages are read, without more of a row in memory than is wanted. (pgproto3 reads whole messages.)
type messageReader struct {
	conn       net.Conn
	buf        []byte
	start, end int  // of buf
	remaining  int  // bytes of the message that were not taken
	maxValue   int  // bytes of a value that is held
	txStatus   byte // of the transaction, by the last readyForQuery
}

// next goes on to the next message, and returns its kind.
func (in *messageReader) next() (byte, error) {
	if err := in.skip(); err != nil {
		return 0, err
	}

	in.remaining = 5

	head, err := in.take(5)
	if err != nil {
		return 0, err
	}

	kind, size := head[0], binary.BigEndian.Uint32(head[1:])
	if size < 4 || size > 1<<30 { // PostgreSQL makes none that are longer
		return 0, errProtocol
	}

	in.remaining = int(size) - 4

	if kind == readyForQuery {
		status, err := in.take(1)
		if err != nil {
			return 0, err
		}

		in.txStatus = status[0]
	}

	return kind, nil
}

// skip leaves what was not taken of the message.
func (in *messageReader) skip() error {
	for in.remaining > 0 {
		n := min(in.remaining, in.end-in.start)
		in.start, in.remaining = in.start+n, in.remaining-n
		if in.remaining == 0 {
			break
		}

		in.start = 0
		var err error
		if in.end, err = in.conn.Read(in.buf); err != nil {
			in.end = 0
			return err
		}
	}

	return nil
}

// take returns the next bytes of the message, good until more is read.
func (in *messageReader) take(n int) ([]byte, error) {
	if n < 0 || n > in.remaining {
		return nil, errProtocol
	}

	if have := in.end - in.start; have < n {
		if n > in.maxValue {
			return nil, &pgproto3.ExceededMaxBodyLenErr{MaxExpectedBodyLen: in.maxValue, ActualBodyLen: n}
		}

		buf := in.buf
		if len(buf) < n {
			buf = make([]byte, n)
		}

		copy(buf, in.buf[in.start:in.end])
		in.buf, in.start, in.end = buf, 0, have
		more, err := io.ReadAtLeast(in.conn, buf[have:], n-have)
		in.end += more
		if err != nil {
			return nil, err
		}
	}

	got := in.buf[in.start : in.start+n : in.start+n]
	in.start, in.remaining = in.start+n, in.remaining-n

	return got, nil
}

// Read reads on in the message, to whose end it reads as a reader does.
func (in *messageReader) Read(p []byte) (int, error) {
	if in.remaining == 0 {
		return 0, io.EOF
	}

	p = p[:min(len(p), in.remaining)]
	n := copy(p, in.buf[in.start:in.end])
	in.start += n

	var err error
	if n == 0 {
		n, err = in.conn.Read(p)
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
	}

	in.remaining -= n
	return n, err
}

// shrink gives back the room that a long message took.
func (in *messageReader) shrink() {
	if len(in.buf) > maxPooledBuffer && in.start == in.end {
		in.buf, in.start, in.end = make([]byte, readBufferSize), 0, 0
	}
}

// failure reads an errorResponse.
func (in *messageReader) readError() (*pgconn.PgError, error) {
	if in.remaining > maxErrorSize {
		return nil, &pgproto3.ExceededMaxBodyLenErr{MaxExpectedBodyLen: maxErrorSize, ActualBodyLen: in.remaining}
	}

	text, err := in.take(in.remaining)
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
func (in *messageReader) columns() (int, error) {
	n, err := in.take(2)
	if err != nil {
		return 0, err
	}

	return int(binary.BigEndian.Uint16(n)), nil
}

// length begins a value of a row, and returns its size; -1 of null.
func (in *messageReader) length() (int, error) {
	n, err := in.take(4)
	if err != nil {
		return 0, err
	}

	return int(int32(binary.BigEndian.Uint32(n))), nil
}

// value returns the next value of a row, good until more is read; nil of null.
func (in *messageReader) value() ([]byte, error) {
	n, err := in.length()
	if err != nil || n < 0 {
		return nil, err
	}

	return in.take(n)
}

// number reads a value that is a number, and leaves n as it is for null or nothing.
func (in *messageReader) count(n *int64) error {
	v, err := in.value()
	if err != nil {
		return err
	}

	*n, err = parseCount(v, *n)
	return err
}
