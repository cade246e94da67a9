// Package pgproxy connects PostgreSQL protocol clients to project sessions: it admits them in
// bounded numbers, answers their startup packet, carries the protocol in both directions, and ends
// the session with the client's rights. Each session has two entries in the platform's audit log.
//
// The caller knows the client's identity, and whether the rights still exist. The session itself
// belongs to package projectdb, the startup packets to package pgwire.
package pgproxy

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/audit"
	"github.com/socle-dev/socle/internal/dialect"
	"github.com/socle-dev/socle/internal/fair"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/httpx"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/pgwire"
	"github.com/socle-dev/socle/internal/platform"
	"github.com/socle-dev/socle/internal/projectdb"
)

const (
	startupTimeout = 10 * time.Second // from the connection to a complete startup packet
	auditTimeout   = 10 * time.Second

	// A server's connections without a session yet. Authenticated clients never wait for others.
	maxStrangers    = 256
	maxStarting     = 256
	maxStartingPart = 32              // connections to one project
	admitTimeout    = 2 * time.Second // for another connection to give way

	cancelChannel = "socle_cancel" // requests to cancel another server's session
	maxCancels    = 16             // at a time
)

// Config has the dependencies of a [Proxy].
type Config struct {
	Projects      *projectdb.Registry
	Platform      *platform.DB
	Notifications *pg.Listener
	AuditKey      []byte
	Log           *slog.Logger
}

// Proxy serves clients for all projects. It is safe for concurrent use.
type Proxy struct {
	Config
	server    uuid.UUID  // this run's ID, in session rows
	strangers *fair.Pool // connections before authentication
	starting  *fair.Pool // connections after it, without a session yet
	cancels   *fair.Pool // requests to cancel
	missing   missingSessions

	mu       sync.Mutex
	sessions map[pgwire.Key]*projectdb.Session
	conns    map[net.Conn]bool
	closing  chan struct{} // closed by Close
	serving  sync.WaitGroup
}

// Client is an authenticated client.
type Client struct {
	Project  uuid.UUID
	ReadOnly bool        // session for the reader, not for the owner
	Entry    audit.Entry // actor, client and request in the audit entries

	// Check fails with a fault other than Unavailable and Internal if the client has lost the right
	// to the session.
	Check func(context.Context) error
}

// New returns a proxy. Notifications must not run yet.
func New(c Config) *Proxy {
	p := &Proxy{Config: c, server: uuid.New(),
		strangers: fair.New(fair.Config{Name: "postgres_strangers", Capacity: maxStrangers,
			PerAccount: maxStrangers / 4, Reserve: maxStrangers / 8, Waiting: maxStrangers, Timeout: admitTimeout,
			Revocable: true}),
		starting: fair.New(fair.Config{Name: "postgres_starting", Capacity: maxStarting,
			PerAccount: maxStarting / 2, PerPart: maxStartingPart, Reserve: maxStarting / 4, Waiting: maxStarting,
			Timeout: admitTimeout, Revocable: true}),
		cancels: fair.New(fair.Config{Name: "postgres_cancels", Capacity: maxCancels, PerAccount: maxCancels / 2,
			Reserve: maxCancels / 4}),
		sessions: map[pgwire.Key]*projectdb.Session{}, conns: map[net.Conn]bool{}, closing: make(chan struct{})}

	c.Notifications.Handle(cancelChannel, func(payload string) {
		var key pgwire.Key
		if _, err := fmt.Sscan(payload, &key.PID, &key.Secret); err == nil {
			go p.cancelHere(key, fair.Key{Account: "servers"})
		}
	})
	c.Notifications.OnConnect(p.holdServerLock)

	return p
}

// Pools returns the pools that accounts share, for metrics.
func (p *Proxy) Pools() []*fair.Pool { return []*fair.Pool{p.strangers, p.starting, p.cancels} }

// Admit admits an authenticated client's connection to a project, until the session begins or the
// lease is released. It fails with TooMany beyond the limits.
func (p *Proxy) Admit(ctx context.Context, project uuid.UUID) (*fair.Lease, error) {
	lease, err := p.starting.Acquire(ctx, p.Projects.Open(project).Key(ctx), 1)
	if errors.Is(err, fair.ErrBusy) {
		return nil, &fault.Error{Kind: fault.TooMany, Code: "too_many_connections", RetryAfter: time.Second,
			Detail: "too many connections are waiting for a database session; try again later"}
	}

	return lease, err
}

// shared returns a context whose work counts to a project's account.
func (p *Proxy) shared(project uuid.UUID) context.Context {
	ctx := context.Background()
	return httpx.WithShare(ctx, p.Projects.Open(project).Key(ctx))
}

// closeRevoked closes a connection when the lease is revoked, until stop is called.
func closeRevoked(conn net.Conn, lease *fair.Lease) (stop func()) {
	done := make(chan struct{})
	go func() {
		select {
		case <-lease.Revoked():
			_ = conn.Close()
		case <-done:
		}
	}()

	return sync.OnceFunc(func() { close(done) })
}

// addConn registers a connection. It reports false if the proxy is closing.
func (p *Proxy) addConn(conn net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()

	select {
	case <-p.closing:
		return false
	default:
	}

	p.conns[conn] = true
	p.serving.Add(1)

	return true
}

func (p *Proxy) removeConn(conn net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()

	delete(p.conns, conn)
	p.serving.Done()
}

// Close ends all sessions and returns when their ends are in the audit log.
func (p *Proxy) Close() {
	p.mu.Lock()

	select {
	case <-p.closing:
	default:
		close(p.closing)
	}

	for conn := range p.conns { // connections that wait for a startup packet
		_ = conn.SetReadDeadline(time.Now())
	}

	p.mu.Unlock()
	p.serving.Wait()
}

// ServeTunnel serves an authenticated client at the other end of a [pgwire.Tunnel] over raw, see
// [Proxy.ServeAuthenticated].
func (p *Proxy) ServeTunnel(raw net.Conn, c Client, lease *fair.Lease) {
	p.ServeAuthenticated(pgwire.NewTunnel(raw), c, lease)
}

// ServeAuthenticated serves a client that needs no password, since its connection says who it is:
// from the startup packet, whose user and database do not matter, to the end of the session. It
// closes the connection. lease comes from [Proxy.Admit].
func (p *Proxy) ServeAuthenticated(conn net.Conn, c Client, lease *fair.Lease) {
	defer lease.Release()
	defer conn.Close()

	if err := conn.SetDeadline(time.Now().Add(startupTimeout)); err != nil {
		return
	}
	if !p.addConn(conn) {
		return
	}
	defer p.removeConn(conn)

	stop := closeRevoked(conn, lease)
	defer stop()

	_, startup, err := pgwire.Accept(conn, nil)
	if err != nil {
		return
	}

	if startup.Cancel != nil {
		p.cancel(*startup.Cancel, p.Projects.Open(c.Project).Key(context.Background()))
		return
	}

	stop()
	p.serve(conn, c, startup, lease)
}

// serve opens an authenticated client's session and carries it to the end. lease comes from
// [Proxy.Admit].
func (p *Proxy) serve(conn net.Conn, c Client, startup pgwire.Startup, lease *fair.Lease) {
	if err := conn.SetDeadline(time.Time{}); err != nil {
		return
	}

	session, id, err := p.openSession(c, startup)
	if err != nil {
		p.logFailure("open a database session", c, err)
		p.refuse(conn, err)

		return
	}
	defer session.Close()

	lease.Release()

	key := p.register(session)
	defer p.unregister(key)

	r := &relay{client: conn, session: session, check: c.Check, closing: p.closing}
	if !c.ReadOnly {
		r.install = func(e dialect.Extension) { p.installExtension(c, e) }
	}
	if err := r.begin(key); err == nil {
		r.carry()
	}

	e := c.entry(audit.DisconnectDatabase)
	e.Sent, e.Received = r.bytesOut.Load(), r.bytesIn.Load()
	if err := p.recordEnd(p.shared(c.Project), id, e); err != nil {
		p.logFailure("record the end of a database session", c, err)
	}
}

// openSession opens a client's session and records it. It also returns the record's UUID.
func (p *Proxy) openSession(c Client, startup pgwire.Startup) (*projectdb.Session, uuid.UUID, error) {
	if mode := strings.ToLower(startup.Parameters["replication"]); mode != "" && mode != "false" && mode != "off" &&
		mode != "no" && mode != "0" {
		return nil, uuid.Nil, fault.New(fault.Unprocessable, "replication is not available").WithCode("0A000")
	}

	ctx, cancel := p.untilClosing(context.Background())
	defer cancel()

	session, err := p.Projects.Open(c.Project).OpenSession(ctx, c.ReadOnly, startup.Parameters)
	if err != nil {
		return nil, uuid.Nil, err
	}

	id, err := p.recordBegin(c)
	if err != nil {
		_ = session.Close()
		return nil, uuid.Nil, err
	}

	return session, id, nil
}

// untilClosing returns a context that ends when the proxy closes.
func (p *Proxy) untilClosing(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		select {
		case <-p.closing:
			cancel()
		case <-ctx.Done():
		}
	}()

	return ctx, cancel
}

func (p *Proxy) logFailure(doing string, c Client, err error) {
	level := slog.LevelInfo
	if fault.Is(err, fault.Internal) || fault.Is(err, fault.Unavailable) {
		level = slog.LevelError
	}

	p.Log.Log(context.Background(), level, "could not "+doing, "project", c.Project, "requestId", c.Entry.Request,
		"error", err)
}

// register gives a session a random key for requests to cancel the statement.
func (p *Proxy) register(s *projectdb.Session) pgwire.Key {
	p.mu.Lock()
	defer p.mu.Unlock()

	for {
		var random [8]byte
		rand.Read(random[:]) // never fails

		key := pgwire.Key{
			PID:    binary.BigEndian.Uint32(random[:4]) >> 1, // clients take it for a positive number
			Secret: binary.BigEndian.Uint32(random[4:]),
		}
		if p.sessions[key] == nil {
			p.sessions[key] = s
			return key
		}
	}
}

func (p *Proxy) unregister(key pgwire.Key) {
	p.mu.Lock()
	defer p.mu.Unlock()

	delete(p.sessions, key)
}

// cancel cancels the running statement in the session with a key, on this server or another one.
// Like PostgreSQL it reports nothing to the client.
func (p *Proxy) cancel(key pgwire.Key, caller fair.Key) {
	if p.cancelHere(key, caller) {
		return
	}

	lease := p.cancels.TryAcquire(caller, 1)
	if lease == nil {
		return
	}
	defer lease.Release()

	ctx, cancel := context.WithTimeout(context.Background(), startupTimeout)
	defer cancel()

	if _, err := pg.Exec(ctx, p.Platform.Querier(), `select pg_notify(@channel, @payload)`, pgx.StrictNamedArgs{
		"channel": cancelChannel, "payload": fmt.Sprint(key.PID, " ", key.Secret),
	}); err != nil {
		p.Log.Warn("could not pass on a request to cancel", "error", err)
	}
}

// cancelHere is cancel for a session on this server. It reports whether there is one.
func (p *Proxy) cancelHere(key pgwire.Key, caller fair.Key) bool {
	p.mu.Lock()
	session := p.sessions[key]
	p.mu.Unlock()

	if session == nil {
		return false
	}

	lease := p.cancels.TryAcquire(caller, 1)
	if lease == nil {
		return true
	}
	defer lease.Release()

	ctx, cancel := context.WithTimeout(context.Background(), startupTimeout)
	defer cancel()

	if err := session.Cancel(ctx); err != nil {
		p.Log.Warn("could not cancel a statement", "session", session, "error", err)
	}

	return true
}

// refuse tells a client why it gets no session.
func (p *Proxy) refuse(conn net.Conn, err error) {
	_ = conn.SetDeadline(time.Now().Add(farewellTimeout))
	_ = pgwire.Send(conn, farewell(err)) // the client may be gone
}
