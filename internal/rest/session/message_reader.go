package session

import (
	"encoding/binary"
	"errors"
	"io"
	"net"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
)

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
	// Maximum size of a body that is buffered although it could be streamed, in bytes. Buffering
	// frees the connection early.
	maxBufferedBody = 1 << 20
)

var errProtocol = errors.New("invalid PostgreSQL message")

// messageReader reads server messages with no more of a row in memory than requested. pgproto3
// reads whole messages.
type messageReader struct {
	conn       net.Conn
	buf        []byte
	start, end int  // unread part of buf
	remaining  int  // unread bytes in the message
	maxValue   int  // maximum size of a buffered value, in bytes
	txStatus   byte // as of the last ReadyForQuery
}

// next skips to the next message and returns its type.
func (r *messageReader) next() (byte, error) {
	if err := r.skip(); err != nil {
		return 0, err
	}

	r.remaining = 5

	head, err := r.take(5)
	if err != nil {
		return 0, err
	}

	kind, size := head[0], binary.BigEndian.Uint32(head[1:])
	if size < 4 || size > 1<<30 { // PostgreSQL's limit
		return 0, errProtocol
	}

	r.remaining = int(size) - 4

	if kind == readyForQuery {
		status, err := r.take(1)
		if err != nil {
			return 0, err
		}

		r.txStatus = status[0]
	}

	return kind, nil
}

// skip discards the rest of the message.
func (r *messageReader) skip() error {
	for r.remaining > 0 {
		n := min(r.remaining, r.end-r.start)
		r.start, r.remaining = r.start+n, r.remaining-n
		if r.remaining == 0 {
			break
		}

		r.start = 0
		var err error
		if r.end, err = r.conn.Read(r.buf); err != nil {
			r.end = 0
			return err
		}
	}

	return nil
}

// take returns the message's next n bytes, valid until the next read.
func (r *messageReader) take(n int) ([]byte, error) {
	if n < 0 || n > r.remaining {
		return nil, errProtocol
	}

	if have := r.end - r.start; have < n {
		if n > r.maxValue {
			return nil, &pgproto3.ExceededMaxBodyLenErr{MaxExpectedBodyLen: r.maxValue, ActualBodyLen: n}
		}

		buf := r.buf
		if len(buf) < n {
			buf = make([]byte, n)
		}

		copy(buf, r.buf[r.start:r.end])
		r.buf, r.start, r.end = buf, 0, have
		more, err := io.ReadAtLeast(r.conn, buf[have:], n-have)
		r.end += more
		if err != nil {
			return nil, err
		}
	}

	got := r.buf[r.start : r.start+n : r.start+n]
	r.start, r.remaining = r.start+n, r.remaining-n

	return got, nil
}

// Read implements io.Reader for the rest of the message.
func (r *messageReader) Read(p []byte) (int, error) {
	if r.remaining == 0 {
		return 0, io.EOF
	}

	p = p[:min(len(p), r.remaining)]
	n := copy(p, r.buf[r.start:r.end])
	r.start += n

	var err error
	if n == 0 {
		n, err = r.conn.Read(p)
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
	}

	r.remaining -= n
	return n, err
}

// shrink frees the buffer for a long message.
func (r *messageReader) shrink() {
	if len(r.buf) > maxPooledBuffer && r.start == r.end {
		r.buf, r.start, r.end = make([]byte, readBufferSize), 0, 0
	}
}

// readError reads an ErrorResponse.
func (r *messageReader) readError() (*pgconn.PgError, error) {
	if r.remaining > maxErrorSize {
		return nil, &pgproto3.ExceededMaxBodyLenErr{MaxExpectedBodyLen: maxErrorSize, ActualBodyLen: r.remaining}
	}

	text, err := r.take(r.remaining)
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
func (r *messageReader) columns() (int, error) {
	n, err := r.take(2)
	if err != nil {
		return 0, err
	}

	return int(binary.BigEndian.Uint16(n)), nil
}

// length starts a value in a row and returns its length, -1 for null.
func (r *messageReader) length() (int, error) {
	n, err := r.take(4)
	if err != nil {
		return 0, err
	}

	return int(int32(binary.BigEndian.Uint32(n))), nil
}

// value returns the row's next value, valid until the next read, or nil for null.
func (r *messageReader) value() ([]byte, error) {
	n, err := r.length()
	if err != nil || n < 0 {
		return nil, err
	}

	return r.take(n)
}

// count reads a number into n. It leaves n unchanged for null or an empty value.
func (r *messageReader) count(n *int64) error {
	v, err := r.value()
	if err != nil {
		return err
	}

	*n, err = parseCount(v, *n)
	return err
}
