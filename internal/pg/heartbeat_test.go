package pg_test

import (
	"context"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/pgtest"
)

// TestWaitForNotification waits beyond several heartbeats for a notification, and gives up a server
// that is frozen: its kernel takes all, and nothing comes back.
func TestWaitForNotification(t *testing.T) {
	t.Parallel()

	config, err := pgx.ParseConfig(pgtest.URL(t))
	if err != nil {
		t.Fatal(err)
	}

	var frozen atomic.Bool
	dial := config.DialFunc
	config.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}

		near, far := net.Pipe()
		go func() { _, _ = io.Copy(conn, far) }()
		go func() {
			buffer := make([]byte, 4096)
			for {
				n, err := conn.Read(buffer)
				if err != nil {
					far.Close()
					return
				}
				if !frozen.Load() {
					_, _ = far.Write(buffer[:n])
				}
			}
		}()
		t.Cleanup(func() { conn.Close() })

		return near, nil
	}

	conn, err := pgx.ConnectConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())

	other, err := pgx.Connect(t.Context(), config.ConnString())
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close(context.Background())

	if _, err := conn.Exec(t.Context(), "listen news"); err != nil {
		t.Fatal(err)
	}

	const interval, timeout = 10 * time.Millisecond, 2 * time.Second
	sent := make(chan struct{})
	go func() {
		defer close(sent)

		for range 5 { // the connection waits meanwhile
			if _, err := other.Exec(t.Context(), "select pg_sleep(0.02)"); err != nil {
				t.Error(err)
			}
		}
		if _, err := other.Exec(t.Context(), "notify news, 'late'"); err != nil {
			t.Error(err)
		}
	}()
	if n, err := pg.WaitForNotificationEvery(t.Context(), conn, interval, timeout); err != nil || n.Payload != "late" {
		t.Fatalf("got %v, %v", n, err)
	}

	frozen.Store(true)
	if n, err := pg.WaitForNotificationEvery(t.Context(), conn, interval, 20*time.Millisecond); err == nil {
		t.Errorf("got %v from a frozen server", n)
	}
	if !conn.IsClosed() {
		t.Error("the connection is still open")
	}

	<-sent
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := pg.WaitForNotificationEvery(ended, other, interval, timeout); ended.Err() == nil || err == nil {
		t.Errorf("got %v after the end of the context", err)
	}
}
