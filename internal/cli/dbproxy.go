package cli

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"sync"
	"time"

	"github.com/socle-dev/socle/internal/pgwire"
)

const (
	localUser      = "socle"
	startupTimeout = 10 * time.Second // limit for the start of a local client's session
	maxLocal       = 64               // local connections; the server allows fewer sessions
)

// databaseProxy serves PostgreSQL clients of this machine through a tunnel. They authenticate with
// a password of this run.
type databaseProxy struct {
	*tunnel
	database string // name in PostgreSQL
	password string
	verifier pgwire.Verifier
	listener net.Listener
	slots    chan struct{}
}

// listen returns a proxy that listens on address and has opened a session to check the caller's
// rights. Its serve method serves the clients.
func (t *tunnel) listen(ctx context.Context, address string) (*databaseProxy, error) {
	conn, err := t.connect(ctx, nil)
	if err != nil {
		return nil, err
	}

	// Some tools look for the database of this name, and create it if there is none.
	name, err := conn.Exec(ctx, "select current_database()").ReadAll()
	if err := errors.Join(err, conn.Close(ctx)); err != nil {
		return nil, err
	}

	p := &databaseProxy{tunnel: t, database: string(name[0].Rows[0][0]), password: rand.Text(),
		slots: make(chan struct{}, maxLocal)}
	p.verifier = pgwire.NewVerifier(p.password, pgwire.Iterations)

	if p.listener, err = (&net.ListenConfig{}).Listen(ctx, "tcp", address); err != nil {
		return nil, fmt.Errorf("%w: choose another address with --listen", err)
	}

	return p, nil
}

// URL returns the address for clients, with the password.
func (p *databaseProxy) URL() string {
	u := url.URL{Scheme: "postgres", User: url.UserPassword(localUser, p.password), Host: p.listener.Addr().String(),
		Path: "/" + p.database, RawQuery: "sslmode=disable"}
	return u.String()
}

// environ returns the variables by which PostgreSQL's programs connect to the proxy.
func (p *databaseProxy) environ() []string {
	host, port, err := net.SplitHostPort(p.listener.Addr().String())
	if err != nil {
		panic("cli: address of a listener: " + err.Error())
	}

	return []string{
		"PGHOST=" + host, "PGPORT=" + port, "PGUSER=" + localUser, "PGPASSWORD=" + p.password,
		"PGDATABASE=" + p.database, "PGSSLMODE=disable", "PGGSSENCMODE=disable",
	}
}

// serve serves clients until ctx ends, and then ends their sessions.
func (p *databaseProxy) serve(ctx context.Context) error {
	var serving sync.WaitGroup
	defer serving.Wait()

	ctx, cancel := context.WithCancel(ctx)
	defer cancel()

	stop := context.AfterFunc(ctx, func() { _ = p.listener.Close() })
	defer stop()

	for {
		conn, err := p.listener.Accept()
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}

		select {
		case p.slots <- struct{}{}:
		default:
			_ = conn.Close()
			continue
		}

		serving.Go(func() {
			defer func() { <-p.slots }()

			p.serveClient(ctx, conn)
		})
	}
}

// serveClient authenticates a local client and carries its session. It tells the client of a
// failure, as PostgreSQL would.
func (p *databaseProxy) serveClient(ctx context.Context, local net.Conn) {
	defer local.Close()

	stop := context.AfterFunc(ctx, func() { _ = local.SetDeadline(time.Now()) })
	defer stop()

	_ = local.SetDeadline(time.Now().Add(startupTimeout)) // a failure shows at the next read

	_, startup, err := pgwire.Accept(local, nil)
	if err != nil {
		return
	}

	if startup.Cancel == nil {
		err := pgwire.Authenticate(local, p.verifier)
		if errors.Is(err, pgwire.ErrPassword) {
			_ = pgwire.Send(local, pgwire.Fatal("28P01", "the password is wrong",
				"Each run of socle db proxy has a password of its own, see socle db url."))
		}
		if err != nil {
			return
		}
	}

	remote, err := p.dial(ctx)
	if err != nil {
		_ = pgwire.Send(local, pgwire.Fatal("08006", err.Error(), ""))
		return
	}
	defer remote.Close()

	stopRemote := context.AfterFunc(ctx, func() { _ = remote.SetDeadline(time.Now()) })
	defer stopRemote()

	packet, err := startup.Encode()
	if err != nil {
		return
	}
	if _, err := remote.Write(packet); err != nil {
		return
	}

	if ctx.Err() == nil {
		_ = local.SetDeadline(time.Time{})
		join(local, remote)
	}
}

// sessionEndTimeout bounds the time in which the server ends a session whose client has left.
const sessionEndTimeout = 10 * time.Second

// join carries bytes in both directions until one side leaves, and closes both.
func join(local net.Conn, remote *pgwire.Tunnel) {
	var up sync.WaitGroup
	up.Go(func() {
		_, _ = io.Copy(remote, local)
		_ = remote.CloseWrite()                                       // the server ends the session
		_ = remote.SetReadDeadline(time.Now().Add(sessionEndTimeout)) // a proxy may keep the end to itself
	})

	_, _ = io.Copy(local, remote)
	_ = remote.Close()
	_ = local.SetReadDeadline(time.Now())
	up.Wait()

	pgwire.Linger(local)
	_ = local.Close()
}
