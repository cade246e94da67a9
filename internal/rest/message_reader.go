package rest

import (
	"encoding/binary"
	"errors"
	"io"
	"net"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
)

// Types of server messages.
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
	readBufferSize = 8 << 10 // PostgreSQL's send buffer has the same size
	maxErrorSize   = 1 << 20 // bytes; functions can raise messages of any length
	// Bytes of a body that is buffered, which frees the connection early, although it could be
	// streamed.
	maxBufferedBody = 1 << 20
)

var errProtocol = errors.New("invalid PostgreSQL message")

// messageReader reads server messages with no more of a row in memory than requested. pgproto3
// reads whole messages.
type messageReader struct {
	conn       net.Conn
	buf        []byte
	start, end int  // unread part of buf
	remaining  int  // unread bytes of the message
	maxValue   int  // bytes of a buffered value
	txStatus   byte // as of the last ReadyForQuery
}

// next skips to the next message and returns its type.
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
	if size < 4 || size > 1<<30 { // PostgreSQL's limit
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

// skip discards the rest of the message.
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

// take returns the next n bytes of the message, valid until the next read.
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

// Read implements io.Reader for the rest of the message.
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

// shrink frees the buffer of a long message.
func (in *messageReader) shrink() {
	if len(in.buf) > maxPooledBuffer && in.start == in.end {
		in.buf, in.start, in.end = make([]byte, readBufferSize), 0, 0
	}
}

// readError reads an ErrorResponse.
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

// columns starts a row and returns its number of values.
func (in *messageReader) columns() (int, error) {
	n, err := in.take(2)
	if err != nil {
		return 0, err
	}

	return int(binary.BigEndian.Uint16(n)), nil
}

// length starts a value of a row and returns its length, -1 for null.
func (in *messageReader) length() (int, error) {
	n, err := in.take(4)
	if err != nil {
		return 0, err
	}

	return int(int32(binary.BigEndian.Uint32(n))), nil
}

// value returns the next value of a row, valid until the next read, or nil for null.
func (in *messageReader) value() ([]byte, error) {
	n, err := in.length()
	if err != nil || n < 0 {
		return nil, err
	}

	return in.take(n)
}

// count reads a number into n. It leaves n unchanged for null or an empty value.
func (in *messageReader) count(n *int64) error {
	v, err := in.value()
	if err != nil {
		return err
	}

	*n, err = parseCount(v, *n)
	return err
}
