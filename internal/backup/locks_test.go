package backup

import (
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/pgtest"
)

// TestBeginLocked locks the tables of a database. The snapshot shows everything committed before
// the lock, not only before the transaction began, and no table can be replaced.
func TestBeginLocked(t *testing.T) {
	t.Parallel()

	url := pgtest.URL(t)
	conn, other := connect(t, url), connect(t, url)
	execute(t, other,
		`create table stock as select generate_series(1, 3); create table parts (id int) partition by list (id);
		create table "of" partition of parts default; create view seen as select 1; create sequence numbers`)

	tx, err := beginLocked(t.Context(), conn)
	if err != nil {
		t.Fatal(err)
	}

	for _, change := range []string{
		"truncate stock", "drop table stock", "alter table stock rename to sold", "drop table parts",
		`vacuum full "of"`,
	} {
		execute(t, other, "set lock_timeout = '20ms'")

		// lock_not_available
		if _, err := other.PgConn().Exec(t.Context(), change).ReadAll(); pg.State(err) != "55P03" {
			t.Errorf("%s: %v", change, err)
		}
	}

	before, err := locklessObjects(t.Context(), tx)
	if err != nil {
		t.Fatal(err)
	}

	if err := checkLockless(t.Context(), other, before); err != nil {
		t.Errorf("unchanged: %v", err)
	}

	execute(t, other,
		`create schema more; drop schema more; create sequence brief; drop sequence brief; select nextval('numbers')`)

	if err := checkLockless(t.Context(), other, before); err != nil {
		t.Errorf("changes outside the snapshot: %v", err)
	}

	execute(t, other, `alter schema public rename to gone; alter schema gone rename to public`)

	if err := checkLockless(t.Context(), other, before); !isCollision(err, "the schema public") {
		t.Errorf("a schema renamed twice: got %v", err)
	}
}

// TestCheckLocked takes a snapshot before the locks and replaces a table in between, in every way.
func TestCheckLocked(t *testing.T) {
	t.Parallel()

	for name, change := range map[string]string{
		"nothing":   ``,
		"truncated": `truncate stock; insert into stock select generate_series(1, 3)`,
		"recreated": `drop table stock; create table stock as select generate_series(1, 3)`,
		"swapped":   `alter table stock rename to was; alter table other rename to stock; alter table was rename to other; drop table other`,
		"rewritten": `alter table stock alter generate_series type bigint`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			url := pgtest.URL(t)
			conn, other := connect(t, url), connect(t, url)
			execute(t, other,
				`create table stock as select generate_series(1, 3); create table other as select generate_series(1, 3)`)

			tx, err := conn.BeginTx(t.Context(), pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
			if err != nil {
				t.Fatal(err)
			}

			if _, err := tx.Exec(t.Context(), "select"); err != nil { // takes the snapshot
				t.Fatal(err)
			}

			execute(t, other, change)

			tables, err := pg.Values[string](t.Context(), other, `select n.nspname || '.' || c.relname`+dumpable)
			if err != nil {
				t.Fatal(err)
			}

			execute(t, conn, "lock table "+strings.Join(tables, ", ")+" in access share mode")

			if err := checkLocked(t.Context(), tx); (change == "" && err != nil) ||
				(change != "" && !isCollision(err, "the table public.")) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// TestAsDumpCollision recognizes collisions with other transactions in error messages of pg_dump.
func TestAsDumpCollision(t *testing.T) {
	t.Parallel()

	exited := exec.CommandContext(t.Context(), "false").Run()
	for said, want := range map[string]string{
		"pg_dump: error: query failed: ERROR:  canceling statement due to statement timeout\n" +
			"pg_dump: detail: Query was: LOCK TABLE public.orders IN ACCESS SHARE MODE": "the table public.orders",
		"pg_dump: error: query failed: ERROR:  canceling statement due to statement timeout\n" +
			"pg_dump: detail: Query was: LOCK TABLE public.a, public.b IN ACCESS SHARE MODE": "a table",
		"pg_dump: error: query failed: ERROR:  canceling statement due to lock timeout": "a table",
		`pg_dump: error: query failed: ERROR:  relation "public.a" does not exist` +
			"\nLINE 1: ": `an object of the database (relation "public.a" does not exist)`,
		"pg_dump: error: query failed: ERROR:  cache lookup failed for function 12": "an object of the database (cache lookup failed for function 12)",
		"FATAL:  terminating connection due to administrator command":               "the project's database",
		"pg_dump: error: something else":                                            "",
	} {
		err := asDumpCollision(fmt.Errorf("pg_dump: %w: %s", exited, said))
		if (want == "" && isCollision(err, "")) || (want != "" && !isCollision(err, want)) {
			t.Errorf("%s: got %v, want %q", said, err, want)
		}
	}
}

func connect(t *testing.T, url string) *pgx.Conn {
	t.Helper()

	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}

	return conn
}

func execute(t *testing.T, conn *pgx.Conn, sql string) {
	t.Helper()

	if _, err := conn.PgConn().Exec(t.Context(), sql).ReadAll(); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

// isCollision reports whether err is a collision on an object with the prefix.
func isCollision(err error, object string) bool {
	c, ok := errors.AsType[*collisionError](err)
	return ok && strings.HasPrefix(c.object, object)
}
