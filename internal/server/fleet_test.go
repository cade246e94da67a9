package server_test

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/pgserver"
	"github.com/socle-dev/socle/internal/pgtest"
)

// smallPostgres starts a PostgreSQL with few connections, and returns the address of a database in
// it.
func smallPostgres(t *testing.T, connections int) string {
	t.Helper()

	binaries, err := pgserver.Find(pgtest.BinDir())
	if err != nil {
		t.Fatal(err)
	}

	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()

	s, err := pgserver.Start(ctx, pgserver.Config{Dir: filepath.Join(t.TempDir(), "postgres"), Binaries: binaries,
		Password: "secret", Log: slog.New(slog.DiscardHandler),
		Settings: map[string]string{"max_connections": fmt.Sprint(connections), "fsync": "off"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})

	conn, err := pgx.Connect(ctx, s.URL("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)

	if _, err := conn.Exec(ctx, `create database socle`); err != nil {
		t.Fatal(err)
	}

	return s.URL("socle")
}

// TestConnectionsOfServers has clients use more projects than there are connections, on three
// servers that share a small PostgreSQL, while one of them is killed and another one starts.
func TestConnectionsOfServers(t *testing.T) {
	t.Parallel()

	const projects, clients = 12, 30

	settings := []string{"SOCLE_DATABASE_URL=" + smallPostgres(t, 90), "SOCLE_STORAGE_URL=file://" + t.TempDir(),
		"SOCLE_SECRET_KEY=kOrtX3Zs9mH1q8vYw2nB7cD5eF4gJ6lP0aSuRiTxVyE="}
	start := func() *process { return serve(t, t.TempDir(), settings...) }
	first := start()
	c := first.newClient()
	all := []string{c.project}
	for i := 1; i < projects; i++ {
		id, _ := c.want(t, 201, "POST", "/projects", fmt.Sprintf(`{"name": "shop %d"}`, i))["uuid"].(string)
		all = append(all, id)
	}

	servers := []*process{first, start(), start()}
	divided := func(p *process, among int) func() bool {
		return func() bool {
			lines := strings.Split(p.log.String(), "connections divided among servers")
			return strings.Contains(lines[len(lines)-1], fmt.Sprintf("servers=%d", among))
		}
	}

	// load sends requests to the projects in turn until it is stopped.
	load := func(p *process) (stop func() (answered int)) {
		ctx, cancel := context.WithCancel(t.Context())
		counts := make([]int, clients)
		var wg sync.WaitGroup
		for i := range clients {
			wg.Go(func() {
				for n := i; ctx.Err() == nil; n++ {
					c := c.at(p)
					c.project = all[n%projects]
					if a := c.send(t, "GET", "/tables", ""); a.status != 200 {
						t.Errorf("got %d %s", a.status, a.body)
					}
					counts[i]++
				}
			})
		}

		return func() (answered int) {
			cancel()
			wg.Wait()
			for _, n := range counts {
				answered += n
			}

			return answered
		}
	}

	stops := []func() int{load(servers[0]), load(servers[1])}
	for _, p := range servers {
		eventually(t, "the servers have divided the connections", divided(p, 3))
	}

	servers[2].signal(syscall.SIGKILL)
	servers[2].wait()
	eventually(t, "the others have its connections", divided(servers[0], 2))

	servers[2] = start()
	stops = append(stops, load(servers[2]))
	for _, p := range servers {
		eventually(t, "the servers have divided the connections again", divided(p, 3))
	}

	for i, stop := range stops {
		if n := stop(); n < projects {
			t.Errorf("server %d answered %d requests", i, n)
		}
	}

	for i, p := range servers {
		if strings.Contains(p.log.String(), "53300") || strings.Contains(p.log.String(), "too many clients") {
			t.Errorf("server %d found too many clients", i)
		}
	}
}
