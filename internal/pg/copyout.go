package pg

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
)

// MaxMessage is the maximum size in bytes of a server message that is read whole: a row, a notice
// or an error. Larger messages fail. A project's statement can cause a message of 1 GB.
const MaxMessage = 16 << 20

const streamBuffer = 64 << 10

// pastDeadline is a deadline in the past.
var pastDeadline = time.Unix(1, 0)

// CopyOut executes a COPY … TO STDOUT, or a query with one text column, and streams the result. A
// value may have PostgreSQL's maximum size (1 GB) and is never buffered whole. sql must be one
// trusted statement.
//
// add receives each row as a reader that is valid until add returns. The connection is closed after
// any failure that PostgreSQL did not report itself.
func CopyOut(ctx context.Context, conn *pgx.Conn, sql string, add func(row io.Reader) error) error {
	c := conn.PgConn()
	if err := c.SyncConn(ctx); err != nil { // pgx may still be reading
		return err
	}

	s := stream{in: bufio.NewReaderSize(c.Conn(), streamBuffer), add: add}
	stop := context.AfterFunc(ctx, func() { _ = c.Conn().SetDeadline(pastDeadline) })

	err := s.runQuery(c.Conn(), sql)
	isCanceled := !stop()

	_, isReported := errors.AsType[*pgconn.PgError](err)
	if isBroken := err != nil && !isReported; isBroken || isCanceled || !s.ready {
		closeCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), unlockTimeout)
		defer cancel()

		_ = c.CancelRequest(closeCtx) // the server is still sending
		_ = c.Close(closeCtx)
	}

	if isCanceled {
		return context.Cause(ctx)
	}

	return err
}

// stream reads the response to a simple query.
type stream struct {
	in    *bufio.Reader
	add   func(row io.Reader) error
	ready bool // the server is ready for the next query
}

// runQuery sends a simple query and reads the response.
func (s *stream) runQuery(out io.Writer, sql string) error {
	query, err := (&pgproto3.Query{String: sql}).Encode(nil)
	if err != nil {
		return err
	}

	if _, err := out.Write(query); err != nil {
		return err
	}

	return s.readResponse()
}

// readResponse reads the response to the end.
func (s *stream) readResponse() error {
	var serverErr error
	for {
		var head [5]byte
		if _, err := io.ReadFull(s.in, head[:]); err != nil {
			return err
		}

		size := int64(int32(binary.BigEndian.Uint32(head[1:]))) - 4
		if size < 0 {
			return fmt.Errorf("invalid message length %d", size)
		}

		body := &messageBody{s.in, size}
		switch head[0] {
		case 'd': // CopyData
			if err := s.add(body); err != nil {
				return err
			}
		case 'D': // DataRow
			if err := s.readValue(body); err != nil {
				return err
			}
		case 'E': // ErrorResponse
			e, err := readError(body)
			if err != nil {
				return err
			}

			serverErr = e

			if e.Severity == "FATAL" || e.Severity == "PANIC" {
				return e
			}
		case 'Z': // ReadyForQuery
			if err := body.skip(); err != nil {
				return err
			}

			s.ready = s.in.Buffered() == 0
			return serverErr
		}

		if err := body.skip(); err != nil {
			return err
		}
	}
}

// messageBody reads a message's remaining bytes.
type messageBody struct {
	in        *bufio.Reader
	remaining int64
}

// Read implements [io.Reader].
func (b *messageBody) Read(to []byte) (int, error) {
	if b.remaining == 0 {
		return 0, io.EOF
	}

	n, err := b.in.Read(to[:min(int64(len(to)), b.remaining)])
	b.remaining -= int64(n)

	return n, err
}

// WriteTo writes the message's remaining bytes without another buffer.
func (b *messageBody) WriteTo(w io.Writer) (count int64, err error) {
	for b.remaining > 0 {
		if _, err := b.in.Peek(1); err != nil { // waits for more
			return count, err
		}

		part, _ := b.in.Peek(int(min(int64(b.in.Buffered()), b.remaining)))
		n, err := w.Write(part)
		count += int64(n)
		b.remaining -= int64(n)
		_, _ = b.in.Discard(n) // buffered, so it cannot fail

		if err != nil {
			return count, err
		}
	}

	return count, nil
}

func (b *messageBody) skip() error {
	for b.remaining > 0 {
		n, err := b.in.Discard(int(min(b.remaining, streamBuffer)))
		b.remaining -= int64(n)
		if err != nil {
			return err
		}
	}

	return nil
}

// readValue passes on the value in a one-column row.
func (s *stream) readValue(body *messageBody) error {
	var head [6]byte
	if _, err := io.ReadFull(body, head[:]); err != nil {
		return err
	}

	if columns := binary.BigEndian.Uint16(head[:2]); columns != 1 {
		return fmt.Errorf("row has %d columns, want 1", columns)
	}

	return s.add(body)
}

func readError(body *messageBody) (*pgconn.PgError, error) {
	if body.remaining > MaxMessage {
		return nil, &pgproto3.ExceededMaxBodyLenErr{MaxExpectedBodyLen: MaxMessage, ActualBodyLen: int(body.remaining)}
	}

	text, err := io.ReadAll(body)
	if err != nil {
		return nil, err
	}

	var m pgproto3.ErrorResponse
	if err := m.Decode(text); err != nil {
		return nil, err
	}

	return pgconn.ErrorResponseToPgError(&m), nil
}
