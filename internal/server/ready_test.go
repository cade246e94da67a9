package server_test

import (
	"context"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"
)

// TestReadyz checks that the endpoint reports failing requests although open connections persist.
func TestReadyz(t *testing.T) {
	t.Parallel()

	p, c := startInstalled(t)
	b := p.inspect(t)
	eventually(t, "the server is ready", func() bool { return c.probe(t, "/readyz") == 200 })

	if err := syscall.Kill(p.postmaster(), syscall.SIGSTOP); err != nil { // still accepts connections
		t.Fatal(err)
	}

	eventually(t, "no connection can be had", func() bool { return c.probe(t, "/readyz") == 503 })
	if err := syscall.Kill(p.postmaster(), syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}

	eventually(t, "the server is ready again", func() bool { return c.probe(t, "/readyz") == 200 })

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
				return c.probe(t, "/readyz") == 503
			}

			n += 20_000
		}
	})

	if err := filler.Close(context.Background()); err != nil {
		t.Error(err)
	}

	eventually(t, "the server is ready again", func() bool { return c.probe(t, "/readyz") == 200 })
	b.close()
}
