package rest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/jackc/pgx/v5/pgxpool"

	"socle/internal/pg"
)

// wire is a connection of a pool, spoken to in PostgreSQL's own messages. A pipeline of pgconn's can't end in a simple query, which
// is how a session is cleaned without another round trip, and takes memory for each statement.
type wire struct {
	conn      *pgxpool.Conn
	netConn   net.Conn
	out       []byte     // what is to be sent
	writeDone chan error // nil unless something is being sent beside the reading

	session  *session
	watchdog *watchdog

	wrote   bool // at least a part of a message was sent
	replied bool // the server has answered something
	broken  bool // nobody knows where the connection is: it can only be closed
}

const (
	maxInlineWrite = 64 << 10 // bytes that a connection takes in even if the server is busy with writing itself
	cancelInterval = 250 * time.Millisecond
	// requests of a connection after which statements are looked for that nobody was expected to prepare
	preparedCheckInterval = 100
	discardTimeout        = 15 * time.Second // for ending a statement and a connection that nobody waits for any more
)

var pastDeadline = time.Unix(1, 0)

// begin takes a connection for a request. What is under way ends when its client goes, or at a time.
func (w *wire) attach(ctx context.Context, conn *pgxpool.Conn, deadline time.Time, maxValue int) error {
	pc := conn.Conn().PgConn()
	w.conn, w.netConn = conn, pc.Conn()
	w.session = sessionOf(pc)
	w.session.reader.maxValue = maxValue

	w.watchdog.arm(deadline, w.session.interrupt)
	err := pc.SyncConn(ctx) // pgx itself may still be reading, if the machine was slow when it last asked for something
	w.broken = err != nil

	return err
}

// session is what is kept of a connection from one request to the next.
type session struct {
	statementCache
	reader    messageReader
	requests  uint64
	interrupt func() // has what is being read or written fail, for good
}

// customData is the key of a connection's session among what it carries along.
const sessionKey = "socle/internal/rest"

func sessionOf(pc *pgconn.PgConn) *session {
	s, ok := pc.CustomData()[sessionKey].(*session)
	if !ok {
		conn := pc.Conn()
		s = &session{reader: messageReader{conn: conn, buf: make([]byte, readBufferSize)}, interrupt: func() {
			_ = conn.SetDeadline(pastDeadline)
		}}

		pc.CustomData()[sessionKey] = s
	}

	return s
}

// end gives the connection back to its pool, or closes it if it is no good any more.
func (w *wire) detach() {
	if w.watchdog.disarm() { // it was interrupted
		w.broken = true
	}

	if w.broken {
		go discard(w.conn)
		return
	}

	w.session.reader.shrink()
	w.conn.Release()
}

// bury closes a connection; what may still run on it is ended first. The pool counts it until then. A cancellation applies to what runs
// when it arrives, and is lost on a statement that only comes after it: so it is sent again until the server hangs up. A session that
// catches its cancellation is terminated by whoever supervises the pool, see [pg.Supervise].
func discard(conn *pgxpool.Conn) {
	defer conn.Release()

	ctx, cancel := context.WithTimeout(context.Background(), discardTimeout)
	defer cancel()

	pc := conn.Conn().PgConn()
	terminate, _ := (&pgproto3.Terminate{}).Encode(nil)
	_ = pc.Conn().SetDeadline(time.Now().Add(time.Second))
	_, _ = pc.Conn().Write(terminate)

	for ctx.Err() == nil {
		_ = pc.CancelRequest(ctx)
		_ = pc.Conn().SetReadDeadline(time.Now().Add(cancelInterval))

		if _, err := io.Copy(io.Discard, pc.Conn()); !errors.Is(err, os.ErrDeadlineExceeded) {
			break
		}
	}

	_ = pc.Close(ctx)
}

// add queues a message; the argument of add is what its Encode returns.
func (w *wire) add(out []byte, err error) error {
	if err != nil {
		return fmt.Errorf("encode a message: %w", err)
	}

	w.out = out
	return nil
}

func (w *wire) prepare(name, sql string) error {
	return w.add((&pgproto3.Parse{Name: name, Query: sql}).Encode(w.out))
}

func (w *wire) deallocate(name string) error {
	return w.add((&pgproto3.Close{ObjectType: 'S', Name: name}).Encode(w.out))
}

// execute queues the execution of a prepared statement, with arguments as text. Nothing is asked of its columns.
func (w *wire) execute(name string, args [][]byte) error {
	if err := w.add((&pgproto3.Bind{PreparedStatement: name, Parameters: args}).Encode(w.out)); err != nil {
		return err
	}
	return w.add((&pgproto3.Execute{}).Encode(w.out))
}

// query queues a simple query, whose statements run in the transaction that is under way, and end it.
func (w *wire) query(sql string) error { return w.add((&pgproto3.Query{String: sql}).Encode(w.out)) }
func (w *wire) sync() error            { return w.add((&pgproto3.Sync{}).Encode(w.out)) }
func (w *wire) flush() error           { return w.add((&pgproto3.Flush{}).Encode(w.out)) }

// send sends what is queued. What is long is sent while answers are read: the server might not take it until those are.
func (w *wire) send() error {
	if len(w.out) > maxInlineWrite {
		w.wrote = true
		w.writeDone = make(chan error, 1)
		go func() {
			_, err := w.netConn.Write(w.out)
			w.writeDone <- err
		}()

		return nil
	}

	n, err := w.netConn.Write(w.out)
	w.out = w.out[:0]
	w.wrote = w.wrote || n > 0

	if err != nil {
		w.broken = true
	}

	return err
}

// receive returns what the next message is that answers something; what it holds is read from the inbox, or left.
func (w *wire) receive() (byte, error) {
	in := &w.session.reader
	for {
		m, err := in.next()
		if err != nil {
			w.broken = true
			return 0, errors.Join(err, w.waitWritten())
		}

		switch m {
		case noticeResponse, notificationResponse, parameterStatus:
			continue
		case errorResponse:
			pgErr, err := in.readError()
			if err != nil {
				w.broken = true
				return 0, err
			}

			if pgErr.Severity == "FATAL" || pgErr.Severity == "PANIC" || pgErr.SeverityUnlocalized == "FATAL" ||
				pgErr.SeverityUnlocalized == "PANIC" {
				w.broken = true
				w.conn.Conn().Config().OnPgError(w.conn.Conn().PgConn(), pgErr) // it may know why
			} else {
				w.replied = true
			}

			return 0, pgErr
		case readyForQuery:
			w.replied = true
			return m, w.waitWritten()
		}

		w.replied = true
		return m, nil
	}
}

// written waits until what is being sent beside the reading is sent.
func (w *wire) waitWritten() error {
	if w.writeDone == nil {
		return nil
	}

	if w.broken {
		_ = w.netConn.SetDeadline(pastDeadline)
	}

	err := <-w.writeDone
	w.writeDone, w.out = nil, w.out[:0]
	if err != nil {
		w.broken = true
	}

	return err
}

// untouched reports whether the connection was lost before the server began anything of what it was to do, as one is that idled
// while the server was started again.
func (w *wire) notStarted(readOnly bool, err error) bool {
	if !w.broken || w.replied {
		return false
	}
	if !w.wrote {
		return true
	}
	if e, ok := errors.AsType[*pgconn.PgError](err); ok { // it says goodbye in place of the first answer
		return !pg.EndedByLimit(e)
	}

	hungUp := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || isReset(err)
	return readOnly && hungUp // it may have begun, but nothing comes of that
}

func isReset(err error) bool {
	e, ok := errors.AsType[*net.OpError](err)
	return ok && !e.Timeout()
}
