package projectdb

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/socle-dev/socle/internal/fair"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/pgcluster"
)

// sessionTimeout bounds the wait for the gate, a slot in the budget and the new session.
const sessionTimeout = 15 * time.Second

// ErrClosed reports that the project's database was closed, since it was paused or deleted.
var ErrClosed = fault.New(fault.Unavailable, "the project's database was closed")

var (
	errReplaced = fault.New(fault.Unavailable, "the project's database is being replaced")
	errRevoked  = fault.New(fault.TooMany, "the session gave way to another account's, which had none")
)

// Session is a project login's session that one client holds, with all state: it belongs to no pool
// and ends with the client. It counts in the budget and is supervised like a pooled one. The
// connection carries PostgreSQL's protocol after the session start.
type Session struct {
	net.Conn
	Parameters map[string]string // as PostgreSQL reported them

	project  *Project
	place    *fair.Lease
	readOnly bool
	user     string
	pid      uint32
	ctx      context.Context // canceled when the session must end
	end      context.CancelCauseFunc
	once     sync.Once
}

// OpenSession opens a session for the project's owner or reader with parameters from a client's
// startup packet, by lower-case name. The login's rights limit their values. In a full database,
// the session begins read-only, which the client can change to free space.
//
// It fails with TooMany if the project has as many sessions as it may, with TooLarge if the
// database is far over quota, and with Unprocessable if PostgreSQL rejects a parameter.
func (p *Project) OpenSession(ctx context.Context, readOnly bool, parameters map[string]string) (*Session, error) {
	if p.FarOverQuota() {
		return nil, ErrOverQuota
	}

	s := &Session{project: p, readOnly: readOnly}
	s.ctx, s.end = context.WithCancelCause(context.Background())

	if err := p.addSession(ctx, s); err != nil {
		return nil, err
	}

	connectCtx, cancel := context.WithTimeout(ctx, sessionTimeout)
	defer cancel()

	err := s.connect(connectCtx, parameters)
	if err != nil && p.loginsAltered.Load() && connectCtx.Err() == nil {
		err = s.connect(connectCtx, parameters) // with the logins reset
	}

	if err != nil {
		p.removeSession(s)
		return nil, err
	}

	return s, nil
}

// addSession registers a session. It fails if the project, its account or the server has too many.
func (p *Project) addSession(ctx context.Context, s *Session) error {
	pool, key := p.cluster.Sessions(), p.Key(ctx)

	switch account, project := pool.Held(key); {
	case project >= pgcluster.MaxSessions:
		return errTooManySessions("the project has %d database sessions on this server, and may have no more",
			pgcluster.MaxSessions)
	case account >= pool.PerAccount():
		return errTooManySessions("the projects of the account have %d database sessions on this server, "+
			"and may have no more", account)
	}

	place, err := pool.Acquire(ctx, key, 1)
	switch {
	case errors.Is(err, fair.ErrBusy):
		return errTooManySessions("the server has too many database sessions; try again later")
	case err != nil:
		return err
	}

	s.place = place
	go func() {
		select {
		case <-place.Revoked():
			s.end(errRevoked)
		case <-s.ctx.Done():
		}
	}()

	p.mu.Lock()
	defer p.mu.Unlock()

	if p.sessions == nil {
		p.sessions = map[*Session]bool{}
	}

	p.sessions[s] = true
	p.lastUsed = time.Now()

	return nil
}

func errTooManySessions(format string, args ...any) error {
	return fault.New(fault.TooMany, format, args...).WithCode("too_many_sessions")
}

func (p *Project) removeSession(s *Session) {
	p.mu.Lock()
	delete(p.sessions, s)
	p.mu.Unlock()

	s.end(nil)
	s.place.Release()
}

// endSessions ends all the project's client sessions.
func (p *Project) endSessions(reason error) {
	p.mu.Lock()
	defer p.mu.Unlock()

	p.endSessionsLocked(reason)
}

func (p *Project) endSessionsLocked(reason error) {
	for s := range p.sessions {
		s.end(reason)
	}
}

// connect opens the session in PostgreSQL.
func (s *Session) connect(ctx context.Context, parameters map[string]string) error {
	p := s.project
	if err := p.gate.wait(ctx); err != nil {
		return fault.New(fault.Unavailable, "the database is unavailable").WithCause(err)
	}
	if err := p.resetAltered(ctx); err != nil {
		return pg.Fault(err)
	}

	login := pgcluster.Owner
	if s.readOnly {
		login = pgcluster.Reader
		if err := p.ensureReader(ctx); err != nil {
			return err
		}
	}

	config := p.cluster.Config(p.UUID, login)
	config.RuntimeParams = sessionParameters(config.RuntimeParams["options"], parameters,
		s.readOnly || p.OverQuota())
	s.user = config.User

	p.cluster.Attach(config, &p.open, p.Key)

	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return p.explainRefusal(ctx, err)
	}

	// pgx may still be reading, if the machine was slow during the last write. That read would take
	// the response to the client's first statement.
	if err := conn.PgConn().SyncConn(ctx); err != nil {
		return errors.Join(p.explainRefusal(ctx, err), conn.Close(ctx))
	}

	raw, err := conn.PgConn().Hijack()
	if err != nil {
		return errors.Join(err, conn.Close(ctx))
	}

	s.Conn, s.pid, s.Parameters = raw.Conn, raw.PID, raw.ParameterStatuses
	return nil
}

// sessionParameters returns a session's parameters: the client's over the defaults. Defaults in
// options also yield to the client's options, and the server address's options to both.
func sessionParameters(address string, client map[string]string, readOnly bool) map[string]string {
	all := map[string]string{"application_name": "socle db", "client_encoding": "UTF8", "timezone": "UTC"}
	maps.Copy(all, client)

	options := "-c search_path=public,extensions"
	if readOnly {
		options += " -c default_transaction_read_only=on"
	}

	all["options"] = address + " " + options + " " + client["options"]
	for _, name := range []string{"user", "database", "password", "replication"} { // chosen by Socle
		delete(all, name)
	}

	return all
}

// isRejectedParameter reports whether an SQLSTATE means that PostgreSQL rejects a parameter: for
// its value, name, syntax or privilege, because it can't be changed, or for a missing library.
func isRejectedParameter(code string) bool {
	return slices.Contains([]string{"0A", "22", "42", "55"}, code[:2]) || code == "58P01"
}

// explainRefusal returns the failure for a session that did not begin.
func (p *Project) explainRefusal(ctx context.Context, err error) error {
	e, ok := errors.AsType[*pgconn.PgError](err)
	switch {
	case !ok && ctx.Err() != nil:
		return fault.New(fault.Unavailable, "the server has no connection to the database left; try again later").
			WithCause(err)
	case !ok:
		return pg.Fault(err)
	case len(e.Code) == 5 && isRejectedParameter(e.Code):
		return fault.New(fault.Unprocessable, "%s", e.Message).WithCode(e.Code).WithCause(err)
	case e.Code == "53300": // the login's limit, or a database that was closed meanwhile
		return errTooManySessions("the project has too many database sessions, or its database is closed")
	case !isServerState(e.Code):
		p.loginsAltered.Store(true)
	}

	return fault.New(fault.Unavailable, "the database is unavailable").WithCause(err)
}

// Cancel cancels the session's running statement.
func (s *Session) Cancel(ctx context.Context) error {
	return s.project.cluster.Cancel(ctx, s.user, s.pid)
}

// Ended is closed when the session must end, for the reason that [Session.Reason] returns.
func (s *Session) Ended() <-chan struct{} { return s.ctx.Done() }

// Reason returns why Socle ends or has terminated the session; nil: none.
func (s *Session) Reason() error {
	if s.ctx.Err() != nil {
		return context.Cause(s.ctx)
	}
	if e := s.project.cluster.EndReason(s.pid); e != nil {
		return pg.Fault(e)
	}

	return nil
}

// Close ends the session. A statement that still runs is terminated.
func (s *Session) Close() error {
	var err error
	s.once.Do(func() {
		s.project.removeSession(s)
		s.end(nil)
		err = s.Conn.Close()
		s.project.written() // a commit whose end was not read
	})

	return err
}

// String describes the session for logs.
func (s *Session) String() string { return fmt.Sprintf("%s, PID %d", s.user, s.pid) }
