package pgproxy

import (
	"context"
	"encoding/binary"
	"errors"
	"maps"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/socle-dev/socle/internal/dialect"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pgwire"
	"github.com/socle-dev/socle/internal/projectdb"
)

const (
	maxSessionAge = 24 * time.Hour
	// maxSessionIdle is the time without a byte in either direction. It exceeds the longest time
	// that the watchdog lets a statement run.
	maxSessionIdle = 2 * time.Hour

	checkInterval   = 5 * time.Second // between checks of the client's rights
	checkTimeout    = 5 * time.Second
	farewellTimeout = 5 * time.Second // for a client to receive the reason for the end

	bufferSize = 64 << 10 // bytes per direction
)

var (
	errStopping = fault.New(fault.Unavailable, "the server is stopping")
	errTooOld   = fault.New(fault.Unavailable, "the session is older than %v", maxSessionAge)
	errIdle     = fault.New(fault.Unavailable, "the session was idle for longer than %v", maxSessionIdle)
)

// relay carries a session's messages between client and PostgreSQL.
type relay struct {
	client  net.Conn
	session *projectdb.Session
	check   func(context.Context) error
	install func(dialect.Extension) // nil: the session can't have one installed
	closing <-chan struct{}         // the server stops

	bytesOut, bytesIn atomic.Int64  // to and from the client
	lastByte          atomic.Int64  // time in nanoseconds
	reason            atomic.Value  // endReason; unset: one side left
	over              chan struct{} // closed when one side left
	overOnce          sync.Once
}

type endReason struct{ error }

// begin tells the client that the session has begun.
func (r *relay) begin(key pgwire.Key) error {
	messages := []pgproto3.BackendMessage{&pgproto3.AuthenticationOk{}}
	for _, name := range slices.Sorted(maps.Keys(r.session.Parameters)) {
		messages = append(messages, &pgproto3.ParameterStatus{Name: name, Value: r.session.Parameters[name]})
	}

	messages = append(messages,
		&pgproto3.BackendKeyData{ProcessID: key.PID, SecretKey: binary.BigEndian.AppendUint32(nil, key.Secret)},
		&pgproto3.ReadyForQuery{TxStatus: 'I'})

	if err := r.client.SetWriteDeadline(time.Now().Add(farewellTimeout)); err != nil {
		return err
	}
	if err := pgwire.Send(r.client, messages...); err != nil {
		return err
	}

	return r.client.SetWriteDeadline(time.Time{})
}

// carry carries messages until one side leaves or the session must end. It ends the session.
func (r *relay) carry() {
	r.over = make(chan struct{})
	r.lastByte.Store(time.Now().UnixNano())

	var directions sync.WaitGroup
	directions.Go(func() { r.safely(r.up) })
	directions.Go(func() { r.safely(r.down) })

	if reason := r.watch(); reason != nil {
		r.reason.Store(endReason{reason})
	}

	// Both directions stop reading. The one to the client sends the reason before it ends.
	_ = r.client.SetReadDeadline(time.Now())
	_ = r.client.SetWriteDeadline(time.Now().Add(farewellTimeout))
	_ = r.session.SetReadDeadline(time.Now())
	_ = r.session.SetWriteDeadline(time.Now())

	directions.Wait()

	_ = r.session.Close()
	pgwire.Linger(r.client)
}

// watch returns the reason why the session must end, or nil when one side has left.
func (r *relay) watch() error {
	age := time.NewTimer(maxSessionAge)
	defer age.Stop()

	tick := time.NewTicker(checkInterval)
	defer tick.Stop()

	for {
		select {
		case <-r.over:
			return r.left()
		case <-r.session.Ended():
			return r.session.Reason()
		case <-r.closing:
			return errStopping
		case <-age.C:
			return errTooOld
		case now := <-tick.C:
			if now.UnixNano()-r.lastByte.Load() > int64(maxSessionIdle) {
				return errIdle
			}
			if err := r.checkRights(); err != nil {
				return err
			}
		}
	}
}

// left returns the reason for the end after one side has left: nil, unless the server stops.
// [Proxy.Close] interrupts the read from the client, which looks as if the client had left.
func (r *relay) left() error {
	select {
	case <-r.closing:
		return errStopping
	default:
		return nil
	}
}

// checkRights fails if the client has lost the right to the session. An outage takes no rights.
func (r *relay) checkRights() error {
	ctx, cancel := context.WithTimeout(context.Background(), checkTimeout)
	defer cancel()

	err := r.check(ctx)
	if fault.Is(err, fault.Internal) || fault.Is(err, fault.Unavailable) {
		return nil
	}

	return err
}

// safely ends the session, with the reason for the log, if a direction panics.
func (r *relay) safely(direction func()) {
	var err error
	defer func() {
		if err != nil {
			r.reason.Store(endReason{err})
			r.leave()
		}
	}()
	defer fault.Recover(&err)

	direction()
}

func (r *relay) leave() { r.overOnce.Do(func() { close(r.over) }) }

// up carries messages from the client to PostgreSQL, after it has installed their extensions. If
// PostgreSQL has left, down still reads the last message.
func (r *relay) up() {
	var q requests
	q.blind = r.install == nil
	buffer := make([]byte, bufferSize)
	pending := 0 // unsent bytes at the buffer's start
	for {
		n, err := r.client.Read(buffer[pending:])
		if n > 0 {
			r.bytesIn.Add(int64(n))
			r.lastByte.Store(time.Now().UnixNano())
		}

		pending += n
		count, extensions := q.scan(buffer[:pending])
		for _, name := range extensions {
			r.install(name)
		}

		if count > 0 {
			if _, err := r.session.Write(buffer[:count]); err != nil {
				return
			}
		}

		pending = copy(buffer, buffer[count:pending])
		if err != nil {
			r.leave()
			return
		}
	}
}

// down carries messages from PostgreSQL to the client. It puts the reason into the message with
// which PostgreSQL ends the session, or sends one itself.
func (r *relay) down() {
	defer r.leave()

	var f framing
	buffer := make([]byte, bufferSize)
	pending := 0 // unsent bytes at the buffer's start
	for {
		n, err := r.session.Read(buffer[pending:])
		if n > 0 {
			r.lastByte.Store(time.Now().UnixNano())
		}

		pending += n
		count, final := f.scan(buffer[:pending])
		if sendErr := r.send(buffer[:count]); sendErr != nil {
			return
		}

		pending = copy(buffer, buffer[count:pending])

		switch {
		case final != nil:
			if reason := r.endReason(); reason != nil {
				final = farewell(reason)
			}
			_ = pgwire.Send(counted{r}, final) // the client may be gone

			return
		case err != nil:
			if reason := r.endReason(); reason != nil && f.remaining == 0 {
				_ = pgwire.Send(counted{r}, farewell(reason))
			}

			return
		}
	}
}

func (r *relay) send(b []byte) error {
	if len(b) == 0 {
		return nil
	}

	n, err := r.client.Write(b)
	r.bytesOut.Add(int64(n))

	return err
}

// counted writes to a relay's client.
type counted struct{ *relay }

func (c counted) Write(b []byte) (int, error) { return len(b), c.send(b) }

// endReason returns the reason why Socle ends or has terminated the session; nil: none.
func (r *relay) endReason() error {
	if reason, ok := r.reason.Load().(endReason); ok {
		return reason.error
	}
	return r.session.Reason()
}

// farewell returns the message that tells a client why the session ends or does not begin. An
// internal error's cause stays in the log.
func farewell(err error) *pgproto3.ErrorResponse {
	f := fault.Of(err)

	code, ok := sqlStates[f.Kind]
	switch {
	case isSQLState(f.Code):
		code = f.Code
	case errors.Is(err, projectdb.ErrOverQuota):
		code = "53100" // disk_full
	case !ok:
		return pgwire.Fatal("XX000", "the server has failed; its log has the cause", "")
	}

	return pgwire.Fatal(code, f.Detail, "")
}

// isSQLState reports whether a code is an SQLSTATE, not a word.
func isSQLState(code string) bool { return len(code) == 5 && code[0] <= '9' }

// sqlStates maps kinds to SQLSTATEs.
var sqlStates = map[fault.Kind]string{
	fault.Unprocessable:   "57P01", // admin_shutdown: a session beyond a limit
	fault.Unauthenticated: "28000", // invalid_authorization_specification
	fault.Forbidden:       "28000",
	fault.NotFound:        "3D000", // invalid_catalog_name
	fault.Conflict:        "57P03", // cannot_connect_now: the project is paused
	fault.TooLarge:        "54000", // program_limit_exceeded
	fault.TooMany:         "53300", // too_many_connections
	fault.Unavailable:     "57P01",
}

// framing follows the boundaries between messages in a stream from PostgreSQL.
type framing struct {
	remaining int // unscanned bytes in the current message
}

const (
	headSize      = 5 // message type and length
	errorResponse = 'E'
)

// scan scans the next bytes and returns how many to pass on. The rest is the beginning of a
// message, to be scanned again with more bytes. It stops at an error that ends the session and
// returns it.
func (f *framing) scan(b []byte) (count int, final *pgproto3.ErrorResponse) {
	for pos := 0; ; {
		n := min(f.remaining, len(b)-pos)
		f.remaining -= n
		pos += n

		if len(b)-pos < headSize {
			return pos, nil
		}

		size := 1 + int(binary.BigEndian.Uint32(b[pos+1:]))
		if b[pos] != errorResponse || size > bufferSize {
			f.remaining = size
			continue
		}

		if len(b)-pos < size {
			return pos, nil
		}

		var e pgproto3.ErrorResponse
		if err := e.Decode(b[pos+headSize : pos+size]); err == nil && e.SeverityUnlocalized == "FATAL" {
			return pos, &e
		}

		f.remaining = size
	}
}
