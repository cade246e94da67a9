package session

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

	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/tick"
)

// wire speaks PostgreSQL's protocol on a pooled connection. pgconn.Pipeline cannot end in a simple
// query, which resets the session in the same round trip, and allocates for each statement.
type wire struct {
	conn      *pgxpool.Conn
	netConn   net.Conn
	out       []byte     // queued messages
	writeDone chan error // result of a concurrent write; nil unless one runs

	session  *session
	watchdog *watchdog

	committing bool // COMMIT is queued, or the end of an implicit transaction that writes
	commitSent bool // at least a part of the messages with it was sent

	wrote    bool // at least a part of a message was sent
	hasReply bool // the server has replied
	broken   bool // the protocol state is unknown: the connection must be discarded
}

const (
	maxInlineWrite = 64 << 10 // bytes that a connection accepts even if the server is writing
	cancelInterval = 250 * time.Millisecond
	cancelGrace    = 2 * time.Second // for the outcome of a write after its deadline
	// Requests on a connection between searches for statements prepared by nested user code.
	preparedCheckRequests = 100
	discardTimeout        = 15 * time.Second // to cancel the statement and close the connection
)

var pastDeadline = time.Unix(1, 0)

// attach starts a request on a connection. The watchdog interrupts it when the client disconnects
// or the deadline passes, but leaves PostgreSQL cancelGrace to report the outcome of a late write.
func (w *wire) attach(ctx context.Context, conn *pgxpool.Conn, deadline time.Time, writes bool, maxValue int) error {
	pc := conn.Conn().PgConn()
	w.conn, w.netConn = conn, pc.Conn()
	w.session = sessionOf(pc)
	w.session.reader.maxValue = maxValue

	cancel := w.session.interrupt
	if writes {
		cancel = w.session.cancel
	}

	w.watchdog.arm(deadline, cancel)
	// pgx itself may still be reading, if the machine was slow during its last query.
	err := pc.SyncConn(ctx)
	w.broken = err != nil

	return err
}

// session is a connection's state across requests.
type session struct {
	statementCache
	reader    messageReader
	requests  uint64
	interrupt func(left bool) // makes reads and writes fail permanently
	// cancel cancels the statement and makes reads and writes fail after cancelGrace, or at once
	// if the client has disconnected.
	cancel     func(left bool)
	stopCancel func() // set by cancel
}

// sessionKey is the session's key in the connection's custom data.
const sessionKey = "rest/session"

func sessionOf(pc *pgconn.PgConn) *session {
	s, ok := pc.CustomData()[sessionKey].(*session)
	if !ok {
		conn := pc.Conn()
		s = &session{reader: messageReader{conn: conn, buf: make([]byte, readBufferSize)}}
		s.interrupt = func(bool) { _ = conn.SetDeadline(pastDeadline) }
		s.cancel = func(left bool) {
			if left {
				s.interrupt(left)
				return
			}

			var ctx context.Context
			ctx, s.stopCancel = context.WithTimeout(context.Background(), cancelGrace)
			_ = conn.SetDeadline(time.Now().Add(cancelGrace))
			go cancelStatement(ctx, pc)
		}

		pc.CustomData()[sessionKey] = s
	}

	return s
}

// detach returns the connection to its pool, or discards it if it is broken.
func (w *wire) detach() {
	if w.watchdog.disarm() { // it has interrupted the connection
		w.broken = true

		if w.session.stopCancel != nil {
			w.session.stopCancel()
		}
	}

	if w.broken {
		go discard(w.conn)
		return
	}

	w.session.reader.shrink()
	w.conn.Release()
}

// discard closes a connection in an unknown state. It cancels the running statement first; the pool
// counts the connection until then. A cancel request that arrives before the statement is lost, so
// discard resends it until the server hangs up. Functions can trap query_canceled; the pool's
// supervisor terminates such a session, see [pg.Supervise].
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

// cancelStatement cancels the running statement. Like [discard], it repeats the request until ctx
// ends.
func cancelStatement(ctx context.Context, pc *pgconn.PgConn) {
	for range tick.Poll(ctx, cancelInterval) {
		_ = pc.CancelRequest(ctx)
	}
}

// addMessage queues an encoded message. Its arguments are the results of Encode.
func (w *wire) addMessage(out []byte, err error) error {
	if err != nil {
		return fmt.Errorf("encode a protocol message: %w", err)
	}

	w.out = out
	return nil
}

func (w *wire) prepare(name, sql string) error {
	return w.addMessage((&pgproto3.Parse{Name: name, Query: sql}).Encode(w.out))
}

func (w *wire) deallocate(name string) error {
	return w.addMessage((&pgproto3.Close{ObjectType: 'S', Name: name}).Encode(w.out))
}

// execute queues the execution of a prepared statement with text arguments. It does not request a
// row description.
func (w *wire) execute(name string, args [][]byte) error {
	if err := w.addMessage((&pgproto3.Bind{PreparedStatement: name, Parameters: args}).Encode(w.out)); err != nil {
		return err
	}
	return w.addMessage((&pgproto3.Execute{}).Encode(w.out))
}

// query queues a simple query. Its statements run in the current transaction and end it.
func (w *wire) query(sql string) error {
	return w.addMessage((&pgproto3.Query{String: sql}).Encode(w.out))
}
func (w *wire) sync() error  { return w.addMessage((&pgproto3.Sync{}).Encode(w.out)) }
func (w *wire) flush() error { return w.addMessage((&pgproto3.Flush{}).Encode(w.out)) }

// send sends the queued messages. Long ones are written concurrently with reading: the server may
// not accept them until its replies are read.
func (w *wire) send() error {
	if len(w.out) > maxInlineWrite {
		w.wrote, w.commitSent = true, w.committing
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
	w.commitSent = w.commitSent || (w.committing && n > 0)

	if err != nil {
		w.broken = true
	}

	return err
}

// receive returns the next reply's type. Its content can be read or skipped.
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
				// It records the reason for the disconnect.
				w.conn.Conn().Config().OnPgError(w.conn.Conn().PgConn(), pgErr)
			} else {
				w.hasReply = true
			}

			return 0, pgErr
		case readyForQuery:
			w.hasReply = true
			return m, w.waitWritten()
		}

		w.hasReply = true
		return m, nil
	}
}

// waitWritten waits for the concurrent write, if there is one.
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

// notStarted reports whether the connection was lost before the server started any of the request's
// work, such as an idle connection after a server restart.
func (w *wire) notStarted(readOnly bool, err error) bool {
	if !w.broken || w.hasReply {
		return false
	}
	if !w.wrote {
		return true
	}
	if e, ok := errors.AsType[*pgconn.PgError](err); ok { // the server said why it disconnects
		return !pg.EndedByLimit(e)
	}

	hungUp := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || isReset(err)
	return readOnly && hungUp // reads may have started, without effect
}

func isReset(err error) bool {
	e, ok := errors.AsType[*net.OpError](err)
	return ok && !e.Timeout()
}
