package pgcluster

import (
	"context"
	"log/slog"
	"sync"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/fair"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// names are the database names of a test install.
var names = func() Names {
	n, err := NewNames([]byte("a key for names!"))
	if err != nil {
		panic(err)
	}

	return n
}()

// createRoles creates the roles of which projects' logins are members, once per server.
var createRoles = sync.OnceValue(func() error {
	conn, err := pgx.Connect(context.Background(), pgtest.Server().URL("postgres"))
	if err != nil {
		return err
	}
	defer conn.Close(context.Background())

	return ExecBatch(context.Background(), conn, []string{"create role anon nologin",
		"create role authenticated nologin", "create role service_role nologin",
		"create role " + ReaderRole + " nologin"})
})

// newCluster returns the PostgreSQL of the test binary with a budget of connections.
func newCluster(t *testing.T, connections int) *Cluster {
	t.Helper()

	if err := createRoles(); err != nil {
		t.Fatal(err)
	}

	server, err := pg.PrimaryPoolConfig(pgtest.Server().URL("postgres"), 1)
	if err != nil {
		t.Fatal(err)
	}

	return New(Config{Server: server, Secret: []byte("the secret of an install for tests"), Names: names,
		Connections: connections, Evict: func(fair.Key) bool { return false }, Altered: func(uuid.UUID) {},
		Log: slog.New(slog.DiscardHandler)})
}

// newDatabase creates the logins and an empty database of a project, which are dropped when the
// test ends.
func newDatabase(t *testing.T, c *Cluster) uuid.UUID {
	t.Helper()

	project := uuid.New()
	database := c.Database(project)
	admin := pgtest.Connect(t, c.PlatformConfig())
	t.Cleanup(func() {
		if err := pgtest.Drop(context.WithoutCancel(t.Context()), database); err != nil {
			t.Error(err)
		}
		if err := pgtest.DropRoles(context.WithoutCancel(t.Context()), database+"_"); err != nil {
			t.Error(err)
		}
	})

	pgtest.Exec(t, admin, "create database "+database)
	if err := c.CreateLogins(t.Context(), admin, project); err != nil {
		t.Fatal(err)
	}
	if err := ExecBatch(t.Context(), admin, c.GrantConnect(project, database)); err != nil {
		t.Fatal(err)
	}

	return project
}
