package server_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	api "github.com/socle-dev/socle/client"
	"github.com/socle-dev/socle/internal/pgwire"
)

// openSession opens a session of the client's project through a tunnel.
func openSession(t *testing.T, p *process, c client) *pgconn.PgConn {
	t.Helper()

	config, err := pgconn.ParseConfig("host=127.0.0.1 user=socle sslmode=disable")
	if err != nil {
		t.Fatal(err)
	}

	config.DialFunc = func(ctx context.Context, _, _ string) (net.Conn, error) {
		conn, err := (&api.Client{URL: p.url, Token: c.token}).Upgrade(ctx,
			"/projects/"+c.project+"/database/connect", pgwire.TunnelProtocol)
		if err != nil {
			return nil, err
		}

		return pgwire.NewTunnel(conn), nil
	}

	conn, err := pgconn.ConnectConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}

	return conn
}

// TestStopEndsTunnels stops a server with an idle and a busy session of clients. Both are told.
func TestStopEndsTunnels(t *testing.T) {
	t.Parallel()

	p, c := startInstalled(t)
	idle, busy := openSession(t, p, c), openSession(t, p, c)
	ended := make(chan error, 2)
	go func() {
		_, err := busy.Exec(t.Context(), "select pg_sleep(600)").ReadAll()
		ended <- err
	}()

	eventually(t, "the statement runs", func() bool {
		results, err := idle.Exec(t.Context(), `
			select 1 from pg_stat_activity where state = 'active' and query = 'select pg_sleep(600)'`).ReadAll()
		return err == nil && len(results[0].Rows) == 1
	})

	go func() { ended <- idle.WaitForNotification(t.Context()) }()

	p.signal(syscall.SIGTERM)
	p.wait()

	for range 2 {
		err := <-ended
		if e, ok := errors.AsType[*pgconn.PgError](err); !ok || e.Code != "57P01" ||
			!strings.Contains(e.Message, "server is stopping") {
			t.Errorf("got %v, want that the server is stopping", err)
		}
	}
}

// TestKilledServersTunnels checks that a session of a killed server has its end in the audit log.
func TestKilledServersTunnels(t *testing.T) {
	t.Parallel()

	p, c := startInstalled(t)
	openSession(t, p, c)

	ends := func() int {
		path := "/projects/" + c.project + "/audit?log=platform&action=disconnectDatabase"
		return strings.Count(string(c.send(t, "GET", path, "").body), `"disconnectDatabase"`)
	}
	if n := ends(); n != 0 {
		t.Fatalf("got %d ends of a session that is open", n)
	}

	p.signal(syscall.SIGKILL)
	p.wait()

	p = serve(t, p.dir)
	c = c.at(p)
	eventually(t, "the end of the session is in the audit log", func() bool { return ends() == 1 })
}
