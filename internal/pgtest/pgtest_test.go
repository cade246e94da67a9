package pgtest_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/pgtest"
)

// endVariable is an environment variable. It turns this binary into a child that starts a cluster
// and ends as the variable says, or does as seed says.
const endVariable = "PGTEST_END"

func TestMain(m *testing.M) {
	switch how := os.Getenv(endVariable); how {
	case "":
	case "seeded", "plain":
		seed(how == "seeded")
	default:
		child(how)
	}
	pgtest.Main(m)
}

// child starts a cluster, prints its directory and ends abnormally.
func child(how string) {
	fmt.Println(dirOf(pgtest.Server().URL("postgres")))

	if how == "panic" {
		panic("as asked for")
	}

	select {} // until killed
}

// seed starts a cluster, with content or without, prints whether it made and whether it has the
// content, and ends.
func seed(seeded bool) {
	ctx, made := context.Background(), false
	if seeded {
		if err := pgtest.Seed("things", func(url string) error {
			made = true
			conn, err := pgx.Connect(ctx, url)
			if err != nil {
				return err
			}

			_, err = conn.Exec(ctx, "create role seeded")
			return errors.Join(err, conn.Close(ctx))
		}); err != nil {
			panic(err)
		}
	}

	conn, err := pgx.Connect(ctx, pgtest.Server().URL("postgres"))
	if err != nil {
		panic(err)
	}

	var has bool
	if err := conn.QueryRow(ctx, "select exists (select from pg_roles where rolname = 'seeded')").Scan(&has); err != nil {
		panic(err)
	}

	fmt.Println("made", made, "has", has)
	os.Exit(0) // the guard of the cluster's directory stops it
}

// TestSeed starts clusters of three binaries of a run.
func TestSeed(t *testing.T) {
	t.Parallel()

	folder := t.TempDir()
	for _, step := range []struct{ how, want string }{
		{"seeded", "made true has true"}, {"plain", "made false has false"}, {"seeded", "made false has true"},
	} {
		cmd := exec.CommandContext(t.Context(), os.Args[0])
		cmd.Env = append(os.Environ(), endVariable+"="+step.how, "SOCLE_TEST_CLUSTER="+folder)
		if out, err := cmd.CombinedOutput(); err != nil || strings.TrimSpace(string(out)) != step.want {
			t.Errorf("%s: got %q, %v, want %q", step.how, out, err, step.want)
		}
	}
}

// dirOf returns the cluster's directory from a connection URI.
func dirOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		panic(err)
	}

	return u.Query().Get("host")
}

func TestClusterEndsWithItsBinary(t *testing.T) {
	t.Parallel()

	for _, how := range []string{"panic", "kill"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()

			cmd := exec.CommandContext(t.Context(), os.Args[0])
			cmd.Env = append(os.Environ(), endVariable+"="+how)

			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}

			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}

			line, err := bufio.NewReader(out).ReadString('\n')
			if err != nil {
				t.Fatalf("got output %q of the child: %v", line, err)
			}

			dir := strings.TrimSpace(line)

			if how == "kill" {
				if err := cmd.Process.Kill(); err != nil {
					t.Error(err)
				}
			}

			if err := cmd.Wait(); err == nil {
				t.Error("the child exited with success")
			}

			pgtest.Eventually(t, dir+" is removed", func() bool {
				_, err := os.Stat(filepath.Dir(dir))
				return errors.Is(err, os.ErrNotExist)
			})
		})
	}
}

func TestURLIsolated(t *testing.T) {
	t.Parallel()

	for range 2 {
		execute(t, pgtest.URL(t), "create table public.things ()")
	}
}

func TestURLIsDropped(t *testing.T) {
	t.Parallel()

	var address string
	var conn *pgx.Conn
	t.Run("a test that leaves a connection", func(t *testing.T) {
		address = pgtest.URL(t)
		conn = connect(t, address)
	})

	if err := conn.Ping(t.Context()); err == nil {
		t.Error("the connection is still open")
	}

	if other, err := pgx.Connect(t.Context(), address); err == nil {
		t.Error("the database still exists")
		other.Close(context.Background())
	}
}

// fills counts the creations of TestClone's template: one per test binary, however often the test
// runs.
var fills atomic.Int32

func TestClone(t *testing.T) {
	t.Parallel()

	fill := func(ctx context.Context, address string) error {
		fills.Add(1)

		conn, err := pgx.Connect(ctx, address) // left open
		if err != nil {
			return err
		}

		_, err = conn.Exec(ctx, "create table public.things as select 1 as n")
		return err
	}

	t.Run("clones", func(t *testing.T) {
		for range 3 {
			t.Run("", func(t *testing.T) {
				t.Parallel()

				execute(t, pgtest.Clone(t, `it's a "template"`, fill),
					"insert into public.things select n + 1 from public.things")

				address := pgtest.Clone(t, `it's a "template"`, fill)

				var n int
				if err := connect(t, address).QueryRow(t.Context(), "select sum(n) from public.things").
					Scan(&n); err != nil || n != 1 {
					t.Errorf("sum of a fresh clone: got %d, %v, want 1", n, err)
				}
			})
		}
	})

	if got := fills.Load(); got != 1 {
		t.Errorf("got %d template creations, want 1", got)
	}
}

func TestServerListensOnASocketOnly(t *testing.T) {
	t.Parallel()

	info, err := os.Stat(filepath.Join(dirOf(pgtest.Server().URL("postgres")), ".s.PGSQL.5432"))
	if err != nil || info.Mode().Type() != os.ModeSocket {
		t.Errorf("got %v, %v", info, err)
	}

	if owner := info.Sys().(*syscall.Stat_t).Uid; owner == 0 {
		t.Error("PostgreSQL runs as root")
	}
}

func connect(t *testing.T, address string) *pgx.Conn {
	t.Helper()

	conn, err := pgx.Connect(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() { conn.Close(context.Background()) })
	return conn
}

func execute(t *testing.T, address, sql string) {
	t.Helper()

	if _, err := connect(t, address).Exec(t.Context(), sql); err != nil {
		t.Fatal(err)
	}
}

func TestDropRoles(t *testing.T) {
	t.Parallel()

	execute(t, pgtest.URL(t), `create role "drop_a%"; create role drop_b; create role dropped_not`)

	address := pgtest.URL(t)
	execute(t, address, `create role drop_owner; create schema s authorization drop_owner`)

	for _, prefix := range []string{"drop_a", "drop_b", "drop_o", "drop_none"} {
		if err := pgtest.DropRoles(t.Context(), prefix); err != nil {
			t.Errorf("%s: %v", prefix, err)
		}
	}

	var got []string
	if err := connect(t, address).QueryRow(t.Context(),
		`select array_agg(rolname::text order by rolname) from pg_roles where rolname ~ '^drop'`).Scan(&got); err != nil {
		t.Fatal(err)
	}

	if want := []string{"drop_owner", "dropped_not"}; !slices.Equal(got, want) {
		t.Errorf("roles left: got %q, want %q", got, want)
	}
}
