package pg

import (
	"context"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

const (
	cancelGrace      = time.Second      // for a session to end after its client requested it
	terminateTimeout = 10 * time.Second // for a session to end after termination

	maxTerminations = 2 // maximum number at a time; each takes a connection
)

// Supervisor makes sessions end with their connections. When a client gives up, pgx cancels the
// statement and closes the connection 15 seconds later. User code can trap the cancellation and
// keep the session and locks. The supervisor terminates a session that still runs a second after
// the cancellation. Closing a supervised connection returns after the session has ended, so
// connections that are counted until their close are sessions.
type Supervisor struct {
	config *pgx.ConnConfig
	slots  chan struct{}
	pids   sync.Map // supervised sessions' PIDs
}

// Supervises reports whether the session with a backend PID is supervised.
func (s *Supervisor) Supervises(pid uint32) bool {
	_, ok := s.pids.Load(pid)
	return ok
}

// NewSupervisor returns a supervisor that terminates sessions through connections of its own. The
// login in config must have the privilege: it is the sessions' login or a superuser.
func NewSupervisor(config *pgx.ConnConfig) *Supervisor {
	return &Supervisor{config: config.Copy(), slots: make(chan struct{}, maxTerminations)}
}

// Terminate terminates a login's session. User code cannot trap that.
func (s *Supervisor) Terminate(ctx context.Context, user string, pid uint32) error {
	return s.signal(ctx, `
		select pg_catalog.pg_terminate_backend(pid) from pg_catalog.pg_stat_activity where pid = @pid and usename = @user`,
		user, pid)
}

// Cancel cancels the running statement in a login's session.
func (s *Supervisor) Cancel(ctx context.Context, user string, pid uint32) error {
	return s.signal(ctx, `
		select pg_catalog.pg_cancel_backend(pid) from pg_catalog.pg_stat_activity where pid = @pid and usename = @user`,
		user, pid)
}

// signal executes a statement on a login's session.
func (s *Supervisor) signal(ctx context.Context, sql, user string, pid uint32) error {
	select {
	case s.slots <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}

	defer func() { <-s.slots }()

	conn, err := pgx.ConnectConfig(ctx, s.config)
	if err != nil {
		return Fault(err)
	}
	defer conn.Close(context.WithoutCancel(ctx))

	_, err = Values[bool](ctx, conn, sql, pgx.StrictNamedArgs{"pid": int32(pid), "user": user})
	return err
}

// Supervise makes a connection's session supervised. c must serve one connection, like the fresh
// copy that [pgxpool.Config.BeforeConnect] receives.
func (s *Supervisor) Supervise(c *pgx.ConnConfig) {
	user := c.User
	terminate := func(ctx context.Context, pid uint32) error { return s.Terminate(ctx, user, pid) }
	dial := c.DialFunc

	var current atomic.Pointer[supervisedConn]
	c.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		// pgx dials again to cancel, and only when it gives up the connection.
		if session := current.Load(); session != nil {
			session.expire()
			return dial(ctx, network, address)
		}

		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}

		session := &supervisedConn{Conn: conn, terminate: terminate}
		session.onClose = func() {
			current.Store(nil)
			s.pids.Delete(session.pid.Load())
		}

		current.Store(session)
		return session, nil
	}

	afterConnect := c.AfterConnect
	c.AfterConnect = func(ctx context.Context, conn *pgconn.PgConn) error {
		if session := current.Load(); session != nil {
			session.pid.Store(conn.PID())
			s.pids.Store(conn.PID(), true)
		}

		if afterConnect != nil {
			return afterConnect(ctx, conn)
		}

		return nil
	}
}

// supervisedConn is a supervised session's network connection.
type supervisedConn struct {
	net.Conn
	pid       atomic.Uint32 // 0 before the session is established
	terminate func(ctx context.Context, pid uint32) error
	onClose   func()

	mu       sync.Mutex
	isClosed bool        // Close was called
	expiry   *time.Timer // nil unless the client gave up the session
}

// expire terminates the session unless it ends within cancelGrace.
func (s *supervisedConn) expire() {
	s.mu.Lock()
	defer s.mu.Unlock()

	if s.expiry == nil && !s.isClosed {
		s.expiry = time.AfterFunc(cancelGrace, s.terminateSession)
	}
}

// terminateSession terminates the session. It drops the error, since Close tries again.
func (s *supervisedConn) terminateSession() {
	ctx, cancel := context.WithTimeout(context.Background(), terminateTimeout)
	defer cancel()

	_ = s.terminate(ctx, s.pid.Load())
}

// Close closes the connection after the session has ended. It terminates a session that does not
// end by itself.
func (s *supervisedConn) Close() error {
	s.mu.Lock()

	if s.isClosed {
		s.mu.Unlock()
		return net.ErrClosed
	}

	s.isClosed = true

	if s.expiry != nil {
		s.expiry.Stop()
	}

	s.mu.Unlock()

	if half, ok := s.Conn.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite() // ends an idle session
	}

	if s.pid.Load() != 0 && !s.drain(cancelGrace) {
		s.terminateSession()
		s.drain(terminateTimeout)
	}

	defer s.onClose()

	return s.Conn.Close()
}

// drain discards data from the server until the connection ends, and reports whether it ended in
// time.
func (s *supervisedConn) drain(wait time.Duration) bool {
	if s.Conn.SetReadDeadline(time.Now().Add(wait)) != nil {
		return true
	}

	_, err := io.Copy(io.Discard, s.Conn)
	timeout, ok := err.(net.Error)

	return !ok || !timeout.Timeout()
}
