// Package pgtest provides tests with a PostgreSQL: one per test binary, started at first use, and
// one database per test.
//
// A test binary that uses it has
//
//	func TestMain(m *testing.M) { pgtest.Main(m) }
package pgtest

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/pgserver"
)

// stepTimeout is the timeout for a setup step.
const stepTimeout = time.Minute

var (
	start     = sync.OnceValues(startCluster)
	serial    atomic.Int64 // numbers the databases
	templates sync.Map     // func() error by name
)

// Main runs the tests, then stops PostgreSQL, if a test has used it, and removes the directory.
func Main(m *testing.M) {
	Run(m) // the exit code becomes the binary's when TestMain returns
}

// Run is [Main] for a TestMain with a separate cleanup, which runs before PostgreSQL stops. It
// returns the exit code.
func Run(m *testing.M, cleanup ...func() error) int {
	defer endCluster()

	code := m.Run()
	for _, f := range cleanup {
		if err := f(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = max(code, 1)
		}
	}

	return code
}

// Server returns this test binary's PostgreSQL, for tests about the server itself. It is shared: a
// test that stops or kills a server must start its own. It panics if there is no PostgreSQL.
func Server() *pgserver.Server {
	c, err := start()
	if err != nil {
		panic(err)
	}

	return c.server
}

// BinDir returns the directory with the PostgreSQL binaries in use, to save callers the search. It
// panics if there is no PostgreSQL.
func BinDir() string {
	c, err := start()
	if err != nil {
		panic(err)
	}

	return c.binDir
}

// URL returns the connection URI for a new empty database, which is dropped when the test ends.
func URL(t testing.TB) string {
	t.Helper()

	return create(t, "template1")
}

// Clone returns the connection URI for a new copy of a template database, which is dropped when the
// test ends. The first call with the template's name in a test binary creates the template by
// calling fill with an empty database.
func Clone(t testing.TB, template string, fill func(ctx context.Context, url string) error) string {
	t.Helper()

	name, err := prepare(template, fill)
	if err != nil {
		t.Fatal(err)
	}

	return create(t, name)
}

// Keep is [Clone] for a database that several tests share. It lasts until the test binary ends.
func Keep(ctx context.Context, template string, fill func(ctx context.Context, url string) error) (string, error) {
	name, err := prepare(template, fill)
	if err != nil {
		return "", err
	}

	c, err := start()
	if err != nil {
		return "", err
	}

	name, err = c.create(ctx, name)
	return c.server.URL(name), err
}

// prepare makes the template database unless it exists, and returns the name.
func prepare(template string, fill func(ctx context.Context, url string) error) (string, error) {
	name := "template_" + template
	once, _ := templates.LoadOrStore(name, sync.OnceValue(func() error { return makeTemplate(name, fill) }))
	if err := once.(func() error)(); err != nil {
		return "", fmt.Errorf("make the template database %q: %w", template, err)
	}

	return name, nil
}

func makeTemplate(name string, fill func(ctx context.Context, url string) error) error {
	c, err := start()
	if err != nil {
		return err
	}

	ctx, cancel := context.WithTimeout(context.Background(), stepTimeout)
	defer cancel()

	if err := c.exec(ctx, "create database "+pgx.Identifier{name}.Sanitize()); err != nil {
		return err
	}
	if err := fill(ctx, c.server.URL(name)); err != nil {
		return err
	}

	// A database can't be copied while a session is connected to it, and a closed connection's
	// session takes a moment to end.
	return c.exec(ctx, "select pg_terminate_backend(pid, 10000) from pg_stat_activity where datname = $1", name)
}

// create creates a database for a test.
func create(t testing.TB, template string) string {
	t.Helper()

	c, err := start()
	if err != nil {
		t.Fatal(err)
	}

	ctx, cancel := context.WithTimeout(t.Context(), stepTimeout)
	defer cancel()

	name, err := c.create(ctx, template)
	if err != nil {
		t.Fatalf("create a database: %v", err)
	}

	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), stepTimeout)
		defer cancel()

		if err := c.exec(ctx, "drop database if exists "+name+" with (force)"); err != nil {
			t.Errorf("drop the database of the test: %v", err)
		}
	})

	return c.server.URL(name)
}

// create copies a database and returns the copy's name.
func (c *cluster) create(ctx context.Context, template string) (string, error) {
	name := "test_" + strconv.FormatInt(serial.Add(1), 10)

	// Without fsync, copying files takes 10 ms, and PostgreSQL's copying by page 18 ms.
	return name, c.exec(ctx,
		"create database "+name+" template "+pgx.Identifier{template}.Sanitize()+" strategy file_copy")
}

// Drop drops databases if they exist, whether connections to them are open or not.
func Drop(ctx context.Context, names ...string) error {
	c, err := start()
	if err != nil {
		return err
	}

	for _, name := range names {
		if err := c.exec(ctx, "drop database if exists "+pgx.Identifier{name}.Sanitize()+" with (force)"); err != nil {
			return err
		}
	}

	return nil
}

// DropRoles drops the roles whose names begin with a prefix. It leaves those that still own objects
// or are being changed: a role that stays costs only time in queries that read all roles.
func DropRoles(ctx context.Context, prefix string) error {
	c, err := start()
	if err != nil {
		return err
	}

	roles, err := pg.Value[string](ctx, c.admin,
		`select coalesce(string_agg(quote_ident(rolname), ', '), '') from pg_roles where starts_with(rolname::text, $1)`,
		prefix)
	if err != nil || roles == "" {
		return err
	}

	if err := c.exec(ctx, "drop role "+roles); pg.State(err) == "" {
		return err
	}

	return nil
}

// exec executes a statement as the superuser.
func (c *cluster) exec(ctx context.Context, sql string, args ...any) error {
	_, err := c.admin.Exec(ctx, sql, args...)
	return err
}
