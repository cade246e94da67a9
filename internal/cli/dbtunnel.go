package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/spf13/cobra"

	"github.com/socle-dev/socle/client"
	"github.com/socle-dev/socle/internal/pgwire"
)

// dialTimeout bounds the time until the server has upgraded a connection.
const dialTimeout = 30 * time.Second

// tunnel opens sessions of a project's owner through the server.
type tunnel struct {
	Project string // UUID
	Server  string // URL

	client func() (*client.Client, error) // with a fresh token
}

// newTunnel returns a tunnel to the project that a command's flags, the environment or socle use
// select.
func newTunnel(cmd *cobra.Command, e environment) (*tunnel, error) {
	d, err := describe()
	if err != nil {
		return nil, err
	}

	c, err := e.client(cmd)
	if err != nil {
		return nil, err
	}

	if err := (finder{d, c}).selectProject(cmd.Context()); err != nil {
		return nil, err
	}

	return &tunnel{
		Project: c.Project, Server: c.URL,
		client: func() (*client.Client, error) { return e.client(cmd) },
	}, nil
}

// dial returns a connection that carries PostgreSQL's protocol, from the startup packet on. The
// server asks for no password.
func (t *tunnel) dial(ctx context.Context) (*pgwire.Tunnel, error) {
	c, err := t.client()
	if err != nil {
		return nil, err
	}

	upgrading, cancel := context.WithTimeoutCause(ctx, dialTimeout, errors.New("the server does not answer"))
	defer cancel()

	conn, err := c.Upgrade(upgrading, "/projects/"+url.PathEscape(t.Project)+"/database/connect", pgwire.TunnelProtocol)
	if err != nil {
		if upgrading.Err() != nil {
			err = context.Cause(upgrading)
		}
		return nil, explain(err)
	}

	return pgwire.NewTunnel(conn), nil
}

// connect opens a session with parameters of the startup packet, such as application_name. The
// caller closes it.
func (t *tunnel) connect(ctx context.Context, parameters map[string]string) (*pgconn.PgConn, error) {
	config, err := pgconn.ParseConfig("host=tunnel port=5432 user=socle dbname=socle password=none sslmode=disable")
	if err != nil {
		return nil, err
	}

	config.RuntimeParams = parameters
	config.LookupFunc = func(_ context.Context, host string) ([]string, error) { return []string{host}, nil }

	var dialErr error
	config.DialFunc = func(ctx context.Context, _, _ string) (net.Conn, error) {
		conn, err := t.dial(ctx)
		if dialErr = err; err != nil {
			return nil, err
		}

		return conn, nil
	}

	conn, err := pgconn.ConnectConfig(ctx, config)
	if dialErr != nil {
		return nil, dialErr // without pgx's own words around it
	}

	return conn, plainError(err)
}

// plainError returns the message of PostgreSQL in an error of pgx, which also has the address.
func plainError(err error) error {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return fmt.Errorf("%s (SQLSTATE %s)", e.Message, e.Code)
	}
	return err
}
