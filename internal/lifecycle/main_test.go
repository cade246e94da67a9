package projectdb

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

var secret = []byte("the secret of an instance for tests")

// names are the database names of a test install.
var names = func() Names {
	n, err := NewNames([]byte("a key for names!"))
	if err != nil {
		panic(err)
	}

	return n
}()

// prepared is the server with the projects of all tests, prepared once.
var prepared = sync.OnceValue(func() error {
	r, err := NewRegistry(pgtest.Server().URL("postgres"), secret, names, 4, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}

	ctx := context.Background()
	return errors.Join(r.Prepare(ctx), r.admin(ctx, func(conn *pgx.Conn) error {
		return CloseDatabases(ctx, conn, r.log, InitdbDatabases...)
	}))
})

// newRegistry returns a registry with a budget of connections.
func newRegistry(t *testing.T, connections int) *Registry {
	t.Helper()

	if err := prepared(); err != nil {
		t.Fatal(err)
	}

	r, err := NewRegistry(pgtest.Server().URL("postgres"), secret, names, connections, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() { r.closeAll() })
	return r
}

// newProject returns a project whose database is dropped when the test ends.
func newProject(t *testing.T, r *Registry) *Project {
	t.Helper()

	id := newUUID(t)
	t.Cleanup(func() {
		if _, err := r.Destroy(context.WithoutCancel(t.Context()), id); err != nil {
			t.Errorf("destroy: %v", err)
		}
	})

	if _, err := r.Provision(t.Context(), id); err != nil {
		t.Fatal(err)
	}

	return r.Open(id)
}

func newUUID(t *testing.T) uuid.UUID {
	t.Helper()

	id, err := uuid.NewV7()
	if err != nil {
		t.Fatal(err)
	}

	return id
}

// connect connects to a project's database under a login, outside the pools.
func connect(t *testing.T, p *Project, l login) *pgx.Conn {
	t.Helper()

	return connectTo(t, p.registry.config(p.UUID, l))
}

func connectTo(t *testing.T, c *pgx.ConnConfig) *pgx.Conn {
	t.Helper()

	conn, err := pgx.ConnectConfig(t.Context(), c)
	if err != nil {
		t.Fatalf("connect as %q: %v", c.User, err)
	}

	t.Cleanup(func() { conn.Close(context.Background()) })
	return conn
}

// exec executes statements, as one text, and fails the test unless they succeed.
func exec(t *testing.T, conn *pgx.Conn, sql string) {
	t.Helper()

	if _, err := conn.PgConn().Exec(t.Context(), sql).ReadAll(); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

// state executes statements, as one text, and returns the SQLSTATE of the error, or "" on success.
func state(t *testing.T, conn *pgx.Conn, sql string) string {
	t.Helper()

	_, err := conn.PgConn().Exec(t.Context(), sql).ReadAll()
	if err != nil && pg.State(err) == "" {
		t.Fatalf("%s: %v", sql, err)
	}

	return pg.State(err)
}

// value executes a statement that returns one value.
func value[T any](t *testing.T, q pg.Querier, sql string, args ...any) T {
	t.Helper()

	v, err := pg.Value[T](t.Context(), q, sql, args...)
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}

	return v
}
