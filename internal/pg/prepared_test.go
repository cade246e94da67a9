package pg_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/pgtest"
)

// TestPrepared alternates statements that leave the session alone with others that change it.
func TestPrepared(t *testing.T) {
	t.Parallel()

	c, err := pg.PoolConfig(pgtest.URL(t), 1)
	if err != nil {
		t.Fatal(err)
	}

	c.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeExec
	c.AfterRelease = func(conn *pgx.Conn) bool { return pg.Reset(context.Background(), conn) == nil }
	pool, err := pgxpool.NewWithConfig(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)

	rows := pg.Prepared{Pool: pool}
	type session struct {
		Path     string
		Prepared int
		PID      int
	}
	state := func() session {
		t.Helper()

		s, err := pg.One[session](t.Context(), rows, `
			select current_setting('search_path') as path, (select count(*) from pg_prepared_statements)::int as prepared,
				pg_backend_pid() as pid`)
		if err != nil {
			t.Fatal(err)
		}

		return s
	}

	first := state()
	if _, err := pg.Exec(t.Context(), rows, `select @n::int`, pgx.StrictNamedArgs{"n": 1}); err != nil {
		t.Fatal(err)
	}
	if got := state(); got.Prepared != 2 || got.PID != first.PID {
		t.Errorf("got %+v after %+v, want two prepared statements on one connection", got, first)
	}

	if _, err := pg.Exec(t.Context(), pool, `set search_path = elsewhere`); err != nil {
		t.Fatal(err)
	}
	if got := state(); got.Prepared != 1 || got.PID != first.PID || got.Path != first.Path {
		t.Errorf("got %+v after a change, want a reset session with one statement", got)
	}

	_, err = pg.Exec(t.Context(), rows, `select 1 / @n::int`, pgx.StrictNamedArgs{"n": 0})
	if pg.State(err) != "22012" {
		t.Errorf("got %v, want a division by zero", err)
	}
	if got := state(); got.PID != first.PID {
		t.Errorf("got %+v after an error, want the connection of %+v", got, first)
	}
}

// TestReset changes each part of a session's state that outlives a transaction.
func TestReset(t *testing.T) {
	t.Parallel()

	conn, err := pgx.Connect(t.Context(), pgtest.URL(t))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())

	exec := func(sql string) {
		t.Helper()

		if _, err := conn.PgConn().Exec(t.Context(), sql).ReadAll(); err != nil {
			t.Fatal(err)
		}
	}
	leftovers := func() string {
		t.Helper()

		// Without a prepared statement of its own.
		got, err := pg.Value[string](t.Context(), conn, "select public.leftovers()", pgx.QueryExecModeExec)
		if err != nil {
			t.Fatal(err)
		}

		return got
	}

	exec(pgtest.LitterSQL + "; grant usage on schema public to public")
	if got := leftovers(); got != pgtest.NoLeftovers {
		t.Errorf("got the leftovers %q in a new session, want none", got)
	}

	exec(`set session authorization pg_monitor`)
	exec(`select public.litter('pg_read_all_settings')`)

	const want = "role pg_read_all_settings, settings default_transaction_read_only work_mem, setting behind, " +
		"locks 4711 4712, channels residue, prepared 1, cursors residue, table residue_table, last value 1"
	if got := leftovers(); got != want {
		t.Errorf("got the leftovers %q, want %q", got, want)
	}

	if err := pg.Reset(t.Context(), conn); err != nil {
		t.Fatal(err)
	}
	if got := leftovers(); got != pgtest.NoLeftovers {
		t.Errorf("got the leftovers %q, want none", got)
	}
	if got, err := pg.Value[string](t.Context(), conn, "select session_user", pgx.QueryExecModeExec); err != nil ||
		got == "pg_monitor" {
		t.Errorf("got the session of %s, %v, want that of the login", got, err)
	}
}
