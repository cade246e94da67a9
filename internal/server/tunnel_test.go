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
)

// TestStopEndsTunnels stops a server with an idle and a busy session of clients. Both are told.
func TestStopEndsTunnels(t *testing.T) {
	t.Parallel()

	p, c := startInstalled(t)
	open := func() *pgconn.PgConn {
		config, err := pgconn.ParseConfig("host=127.0.0.1 user=socle sslmode=disable")
		if err != nil {
			t.Fatal(err)
		}

		config.DialFunc = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&api.Client{URL: p.url, Token: c.token}).Upgrade(ctx,
				"/projects/"+c.project+"/database/connect", "socle-postgres/1")
		}

		conn, err := pgconn.ConnectConfig(t.Context(), config)
		if err != nil {
			t.Fatal(err)
		}

		return conn
	}

	idle, busy := open(), open()
	ended := make(chan error, 2)
	go func() { ended <- idle.WaitForNotification(t.Context()) }()
	go func() {
		_, err := busy.Exec(t.Context(), "select pg_sleep(600)").ReadAll()
		ended <- err
	}()

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
