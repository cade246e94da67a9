// Package projectdbtest provides tests with projects, each with a database of its own on the test
// binary's PostgreSQL.
package projectdbtest

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/lifecycle"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/pgcluster"
	"github.com/socle-dev/socle/internal/pgtest"
	"github.com/socle-dev/socle/internal/projectdb"
)

// connections is the maximum number of open connections to all projects in a test binary.
const connections = 60

// registry is shared by all tests in the binary.
var registry = sync.OnceValues(func() (*projectdb.Registry, error) {
	if err := Seed(); err != nil {
		return nil, err
	}

	c, err := config(pgtest.Server().URL("postgres"), connections)
	if err != nil {
		return nil, err
	}

	r := projectdb.NewRegistry(c)
	ctx := context.Background()

	return r, errors.Join(lifecycle.Prepare(ctx, r.Platform()), r.Platform().WithConn(ctx, func(conn *pgx.Conn) error {
		return pgcluster.CloseDatabases(ctx, conn, c.Log, pgcluster.InitdbDatabases...)
	}))
})

// Seed makes the template of projects once for all test binaries of a run, see [pgtest.Seed]: it
// takes all migrations.
func Seed() error {
	return pgtest.Seed("projects", func(url string) error {
		c, err := config(url, connections)
		if err != nil {
			return err
		}

		ctx, stop := context.WithCancel(context.Background())
		r := projectdb.NewRegistry(c)
		err = lifecycle.Prepare(ctx, r.Platform())
		stop()

		return errors.Join(err, r.Run(ctx))
	})
}

// config returns the configuration for a registry on the server at url.
func config(url string, connections int) (projectdb.Config, error) {
	names, err := pgcluster.NewNames([]byte("key of test names")[:16])
	if err != nil {
		return projectdb.Config{}, err
	}

	server, err := pg.PrimaryPoolConfig(url, 1)

	return projectdb.Config{Server: server, Secret: []byte("secret of the tests"), Names: names,
		Connections: connections, Log: slog.New(slog.DiscardHandler)}, err
}

// Config returns the configuration for a registry with a budget of connections.
func Config(t testing.TB, connections int) projectdb.Config {
	t.Helper()

	Registry(t) // prepares PostgreSQL

	c, err := config(pgtest.Server().URL("postgres"), connections)
	if err != nil {
		t.Fatal(err)
	}

	return c
}

// Open returns a registry whose pools are closed when the test ends.
func Open(t testing.TB, c projectdb.Config) *projectdb.Registry {
	t.Helper()

	r := projectdb.NewRegistry(c)
	t.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
		cancel()

		if err := r.Run(ctx); err != nil {
			t.Error(err)
		}
	})

	return r
}

// NewRegistry returns a registry with a budget of connections, see [Open].
func NewRegistry(t testing.TB, connections int) *projectdb.Registry {
	t.Helper()

	return Open(t, Config(t, connections))
}

// New returns a project whose database is dropped when the test ends.
func New(t testing.TB) *projectdb.Project {
	t.Helper()

	return NewIn(t, Registry(t))
}

// NewIn is [New] in a registry.
func NewIn(t testing.TB, r *projectdb.Registry) *projectdb.Project {
	t.Helper()

	id, databases := UUID(t), lifecycle.Databases{Registry: r}
	t.Cleanup(func() {
		if _, err := databases.Destroy(context.WithoutCancel(t.Context()), id); err != nil {
			t.Errorf("destroy: %v", err)
		}
	})

	if _, err := databases.Provision(t.Context(), id); err != nil {
		t.Fatal(err)
	}

	return r.Open(id)
}

// Connect connects to a project's database under a login, outside the pools.
func Connect(t testing.TB, p *projectdb.Project, l pgcluster.Login) *pgx.Conn {
	t.Helper()

	return pgtest.Connect(t, p.Cluster().Config(p.UUID, l))
}

// Registry returns the registry for the test binary's projects.
func Registry(t testing.TB) *projectdb.Registry {
	t.Helper()

	r, err := registry()
	if err != nil {
		t.Fatal(err)
	}

	return r
}

// UUID returns a new UUID.
func UUID(t testing.TB) uuid.UUID {
	t.Helper()

	id, err := uuid.NewV7()
	if err != nil {
		t.Fatal(err)
	}

	return id
}
