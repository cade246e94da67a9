package api_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"net"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/socle-dev/socle/internal/api/apitest"
)

// eagerConn is the connection of a client that sends its first statement in one piece with the last
// message of the session's start, or everything in pieces of a byte.
type eagerConn struct {
	net.Conn
	last   int    // number of the start's messages
	first  []byte // statement to send with the last one
	pieces bool
	writes int
}

func (c *eagerConn) Write(b []byte) (int, error) {
	text := b
	if c.writes++; c.writes == c.last {
		text = append(bytes.Clone(b), c.first...)
	}

	for len(text) > 0 {
		n := len(text)
		if c.pieces {
			n = 1
		}

		if _, err := c.Conn.Write(text[:n]); err != nil {
			return 0, err
		}
		text = text[n:]
	}

	return len(b), nil
}

func (c *eagerConn) Read(b []byte) (int, error) {
	if c.pieces && len(b) > 0 {
		b = b[:1]
	}
	return c.Conn.Read(b)
}

// wantEager fails the test unless a client that does not wait for the start of its session gets the
// response to its first statement. messages is the number of those that the client sends before.
func wantEager(t *testing.T, c *pgconn.Config, messages int, dial func(context.Context) (net.Conn, error)) {
	t.Helper()

	first, err := (&pgproto3.Query{String: "select 'the first'"}).Encode(nil)
	if err != nil {
		t.Fatal(err)
	}

	for _, pieces := range []bool{false, true} {
		c.DialFunc = func(ctx context.Context, _, _ string) (net.Conn, error) {
			conn, err := dial(ctx)
			return &eagerConn{Conn: conn, last: messages, first: first, pieces: pieces}, err
		}

		session, err := pgconn.ConnectConfig(t.Context(), c)
		if err != nil {
			t.Fatalf("in pieces %t: %v", pieces, err)
		}

		if err := session.Conn().SetDeadline(time.Now().Add(time.Minute)); err != nil {
			t.Fatal(err)
		}

		var got string
		for ready := false; !ready; {
			m, err := session.Frontend().Receive()
			if err != nil {
				t.Fatalf("in pieces %t: got no response: %v", pieces, err)
			}

			if row, ok := m.(*pgproto3.DataRow); ok {
				got = string(row.Values[0])
			}
			_, ready = m.(*pgproto3.ReadyForQuery)
		}

		if got != "the first" {
			t.Errorf("in pieces %t: got %q", pieces, got)
		}
		if got := result(t, session, "select 'the second'"); got != "the second" {
			t.Errorf("in pieces %t: got %q", pieces, got)
		}

		session.Close(t.Context())
	}
}

func TestEagerTunnelClient(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	c, err := pgconn.ParseConfig("host=127.0.0.1 user=anyone sslmode=disable")
	if err != nil {
		t.Fatal(err)
	}

	wantEager(t, c, 1, func(ctx context.Context) (net.Conn, error) { return openTunnel(ctx, a) })
}

func TestEagerPostgresClient(t *testing.T) {
	t.Parallel()

	a, server, _ := startPostgres(t)
	client, _ := server.credential(a, `{"name": "eager", "access": "owner"}`)

	c, err := pgconn.ParseConfig("host=127.0.0.1 sslmode=disable")
	if err != nil {
		t.Fatal(err)
	}

	c.User, c.Password, c.Database = client.user, client.password, client.database

	encrypted := &tls.Dialer{Config: &tls.Config{
		RootCAs: client.roots, ServerName: "127.0.0.1", NextProtos: []string{"postgresql"},
	}}
	wantEager(t, c, 3, func(ctx context.Context) (net.Conn, error) { // startup and two messages of SCRAM
		return encrypted.DialContext(ctx, "tcp", client.address)
	})
}
