package pgproxy

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/tls"
	"errors"
	"net"
	"net/netip"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/audit"
	"github.com/socle-dev/socle/internal/certificate"
	"github.com/socle-dev/socle/internal/fair"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/httpx"
	"github.com/socle-dev/socle/internal/pgwire"
	"github.com/socle-dev/socle/internal/tick"
)

// acceptDelay is the pause after a failed accept, such as for a lack of file descriptors.
const acceptDelay = 50 * time.Millisecond

// keepAlive finds clients that have vanished within a minute. PostgreSQL's protocol has no
// heartbeat; a client that lives and does nothing keeps the session until maxSessionIdle.
var keepAlive = net.KeepAliveConfig{Enable: true, Idle: 15 * time.Second, Interval: 15 * time.Second, Count: 3}

// Listener serves PostgreSQL clients with project credentials, over TLS.
type Listener struct {
	proxy    *Proxy
	listener net.Listener
	tls      *tls.Config
}

// Listen returns a listener on address with the certificate in PEM files.
func (p *Proxy) Listen(address, chainFile, keyFile string) (*Listener, error) {
	files, err := certificate.OpenFiles(chainFile, keyFile, p.Log)
	if err != nil {
		return nil, err
	}

	config := net.ListenConfig{KeepAliveConfig: keepAlive}
	l, err := config.Listen(context.Background(), "tcp", address)
	if err != nil {
		return nil, err
	}

	return &Listener{proxy: p, listener: l, tls: &tls.Config{
		GetCertificate: files.GetCertificate, NextProtos: []string{pgwire.ALPN}, MinVersion: tls.VersionTLS12,
	}}, nil
}

// Addr returns the address that the listener listens on.
func (l *Listener) Addr() net.Addr { return l.listener.Addr() }

// Run serves clients until ctx ends. [Proxy.Close] ends their sessions.
func (l *Listener) Run(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() { _ = l.listener.Close() })
	defer stop()

	for {
		conn, err := l.listener.Accept()
		switch {
		case err == nil:
			go l.serve(conn)
		case ctx.Err() != nil || errors.Is(err, net.ErrClosed):
			return nil
		default:
			l.proxy.Log.Warn("could not accept a PostgreSQL client", "error", err)

			if tick.Pause(ctx, acceptDelay) != nil {
				return nil
			}
		}
	}
}

// Close stops accepting clients.
func (l *Listener) Close() error { return l.listener.Close() }

// serve serves a client from the first byte to the end of the session.
func (l *Listener) serve(conn net.Conn) {
	defer conn.Close()

	p, addr := l.proxy, clientAddr(conn)
	stranger, err := p.strangers.Acquire(context.Background(), fair.Stranger(addr), 1)
	if err != nil {
		return // no message: the client has not sent anything yet
	}
	defer stranger.Release()

	stop := closeRevoked(conn, stranger)
	defer stop()

	if err := conn.SetDeadline(time.Now().Add(startupTimeout)); err != nil {
		return
	}
	if !p.addConn(conn) {
		return
	}
	defer p.removeConn(conn)

	secure, startup, err := pgwire.Accept(conn, l.tls)
	if err != nil {
		return
	}

	if startup.Cancel != nil {
		p.cancel(*startup.Cancel, fair.Stranger(addr))
		return
	}

	client, err := l.authenticate(secure, startup, addr)
	if err != nil {
		if fault.Is(err, fault.Internal) || fault.Is(err, fault.Unavailable) {
			p.Log.Error("could not authenticate a PostgreSQL client", "error", err)
		}
		p.refuse(secure, err)

		return
	}

	stop()

	lease, err := p.Admit(context.Background(), client.Project)
	stranger.Release()
	if err != nil {
		p.refuse(secure, err)
		return
	}
	defer lease.Release()

	client.Entry.Client = addr.String()
	p.serve(secure, client, startup, lease)
}

func clientAddr(conn net.Conn) netip.Addr {
	addr, err := netip.ParseAddrPort(conn.RemoteAddr().String())
	if err != nil {
		return netip.Addr{}
	}

	return addr.Addr().Unmap().WithZone("")
}

// errCredentials is the failure for an unknown user, a wrong password and a wrong database alike.
var errCredentials = fault.New(fault.Unauthenticated, "the user name, the password or the database is wrong").
	WithCode("28P01")

// authenticate verifies a client's credential and project. Clients with an unknown user go through
// the same exchange.
func (l *Listener) authenticate(conn net.Conn, s pgwire.Startup, addr netip.Addr) (Client, error) {
	stranger := httpx.WithShare(context.Background(), fair.Stranger(addr))
	ctx, cancel := context.WithTimeout(stranger, startupTimeout)
	defer cancel()

	p := l.proxy
	c, err := findCredential(ctx, p.Platform, s.User)
	unknown := fault.Is(err, fault.NotFound)
	if err != nil && !unknown {
		return Client{}, err
	}

	verifier := p.decoy(s.User)
	if !unknown {
		if verifier, err = pgwire.ParseVerifier(c.Verifier); err != nil {
			return Client{}, err
		}
	}

	err = pgwire.Authenticate(conn, verifier)
	switch {
	case unknown, errors.Is(err, pgwire.ErrPassword):
		return Client{}, errCredentials
	case err != nil:
		return Client{}, fault.New(fault.Unauthenticated, "authentication failed").WithCause(err)
	}

	// A client without a database names the user's.
	if s.Database != s.User && !strings.EqualFold(s.Database, c.ProjectName) &&
		!strings.EqualFold(s.Database, c.Project.String()) {
		return Client{}, errCredentials
	}

	if err := c.checkAccess(); err != nil {
		return Client{}, err
	}

	if c.Stale {
		if err := touch(ctx, p.Platform, c.UUID); err != nil {
			return Client{}, err
		}
	}

	id, err := uuid.NewV7()
	if err != nil {
		return Client{}, err
	}

	return Client{
		Project:  c.Project,
		ReadOnly: c.Access == ReadOnly,
		Entry:    audit.Entry{Via: c.UUID.String(), Request: id.String()},
		Check: func(ctx context.Context) error {
			now, err := findCredential(ctx, p.Platform, s.User)
			if fault.Is(err, fault.NotFound) {
				return fault.New(fault.Forbidden, "the credential was revoked")
			}
			if err != nil {
				return err
			}

			return now.checkAccess()
		},
	}, nil
}

// decoy returns a verifier for an unknown user that no password fulfills. Like a real user's
// verifier, it is the same each time.
func (p *Proxy) decoy(username string) pgwire.Verifier {
	derive := func(purpose string) []byte {
		h := hmac.New(sha256.New, p.AuditKey)
		h.Write([]byte("decoy " + purpose + " " + username))

		return h.Sum(nil)
	}

	return pgwire.Verifier{
		Iterations: pgwire.Iterations, Salt: derive("salt")[:16],
		StoredKey: derive("stored"), ServerKey: derive("server"),
	}
}
