package server_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"
)

// TestDrain: a server that is asked to stop says so to balancers, and serves meanwhile. Another
// signal cuts the time short.
func TestDrain(t *testing.T) {
	t.Parallel()

	p := serve(t, t.TempDir(), "SOCLE_DRAIN=1m")
	get := func(path string) (status int, body string, closes bool) {
		t.Helper()

		res, err := http.Get(p.url + path)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()

		text, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}

		return res.StatusCode, strings.TrimSpace(string(text)), res.Close
	}

	if status, body, closes := get("/readyz"); status != 200 || body != `{"server":"ok"}` || closes {
		t.Errorf("got %d %s, closes: %v", status, body, closes)
	}

	p.signal(syscall.SIGTERM)
	eventually(t, "the server is draining", func() bool {
		status, body, _ := get("/readyz")
		return status == 503 && body == `{"server":"draining"}`
	})
	if status, _, closes := get("/projects"); status != 401 || !closes {
		t.Errorf("got %d, closes: %v", status, closes)
	}

	p.signal(syscall.SIGTERM)
	if status := p.wait(); status != 0 {
		t.Errorf("exit status %d", status)
	}
}

// TestReadyz checks that the endpoint reports failing requests although open connections persist.
func TestReadyz(t *testing.T) {
	t.Parallel()

	p, c := startInstalled(t)
	b := p.inspect(t)
	eventually(t, "the server is ready", func() bool { return c.probe(t, "/readyz?full=1") == 200 })

	if err := syscall.Kill(p.postmaster(), syscall.SIGSTOP); err != nil { // still accepts connections
		t.Fatal(err)
	}

	eventually(t, "no connection can be had", func() bool { return c.probe(t, "/readyz?full=1") == 503 })
	if err := syscall.Kill(p.postmaster(), syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}

	eventually(t, "the server is ready again", func() bool { return c.probe(t, "/readyz?full=1") == 200 })

	filler, err := pgx.ConnectConfig(t.Context(), b.database.Pool.Config().ConnConfig.Copy())
	if err != nil {
		t.Fatal(err)
	}

	n := 0
	eventually(t, "the lock table is full", func() bool {
		for { // until it fails, and again: others release locks
			if _, err := filler.Exec(t.Context(),
				`select pg_advisory_lock(n) from generate_series($1::int, $1::int + 19999) n`, n); err != nil {
				n += 20_000
				return c.probe(t, "/readyz?full=1") == 503
			}

			n += 20_000
		}
	})

	if err := filler.Close(context.Background()); err != nil {
		t.Error(err)
	}

	eventually(t, "the server is ready again", func() bool { return c.probe(t, "/readyz?full=1") == 200 })
	b.close()
}
