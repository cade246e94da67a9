package pgtest

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/pg"
)

// Connect returns a connection, which is closed when the test ends.
func Connect(t testing.TB, c *pgx.ConnConfig) *pgx.Conn {
	t.Helper()

	conn, err := pgx.ConnectConfig(t.Context(), c)
	if err != nil {
		t.Fatalf("connect as %q: %v", c.User, err)
	}

	t.Cleanup(func() { conn.Close(context.Background()) })
	return conn
}

// Exec executes statements, as one text, and fails the test unless they succeed.
func Exec(t testing.TB, conn *pgx.Conn, sql string) {
	t.Helper()

	if _, err := conn.PgConn().Exec(t.Context(), sql).ReadAll(); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

// State executes statements, as one text, and returns the error's SQLSTATE, or "" on success.
func State(t testing.TB, conn *pgx.Conn, sql string) string {
	t.Helper()

	_, err := conn.PgConn().Exec(t.Context(), sql).ReadAll()
	if err != nil && pg.State(err) == "" {
		t.Fatalf("%s: %v", sql, err)
	}

	return pg.State(err)
}

// Value executes a statement that returns one value.
func Value[T any](t testing.TB, q pg.Querier, sql string, args ...any) T {
	t.Helper()

	v, err := pg.Value[T](t.Context(), q, sql, args...)
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}

	return v
}
