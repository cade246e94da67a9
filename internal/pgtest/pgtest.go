// Package pgtest gives tests a PostgreSQL: one cluster for each test binary, started when the first
// test asks for it, and one database for each test.
//
// A test binary that uses it has
//
//	func TestMain(m *testing.M) { pgtest.Main(m) }
package pgtest

import (
	"context"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"socle/internal/pgserver"
)

// patience is how long a step may take before the test fails.
const patience = time.Minute

var (
	start     = sync.OnceValues(startCluster)
	serial    atomic.Int64 // of databases
	templates sync.Map     // of func() error by name
)

// Main runs the tests, then stops the cluster, if a test has used it, and removes its folder.
func Main(m *testing.M) {
	Run(m) // its code becomes the binary's when TestMain returns
}

// Run is [Main] for a TestMain that has something to do after the tests. It returns the code to exit with.
func Run(m *testing.M) int {
	defer endCluster()

	return m.Run()
}

// Server returns the cluster of this test binary, for tests that look at the server itself. Other
// tests share it: one that stops or kills a server starts its own. It panics if there is no PostgreSQL.
func Server() *pgserver.Server {
	c, err := start()
	if err != nil {
		panic(err)
	}

	return c.server
}

// Programs returns the folder of the PostgreSQL that the cluster is of, so that others need not look for one. It panics if there is none.
func Programs() string {
	c, err := start()
	if err != nil {
		panic(err)
	}

	return c.programs
}

// URL returns the address of a new empty database, which is dropped when the test ends.
func URL(t testing.TB) string {
	t.Helper()

	return create(t, "template1")
}

// Clone returns the address of a new copy of a template database, which is dropped when the test ends. The first
// call with the template's name in a test binary makes the template: fill fills an empty database.
func Clone(t testing.TB, template string, fill func(ctx context.Context, url string) error) string {
	t.Helper()

	name := "template_" + template
	once, _ := templates.LoadOrStore(name, sync.OnceValue(func() error { return makeTemplate(name, fill) }))
	if err := once.(func() error)(); err != nil {
		t.Fatalf("make the template database %q: %v", template, err)
	}

	return create(t, name)
}

func makeTemplate(name string, fill func(ctx context.Context, url string) error) error {
	c, err := start()
	if err != nil {
		return err
	}

	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()

	if err := c.exec(ctx, "create database "+pgx.Identifier{name}.Sanitize()); err != nil {
		return err
	}
	if err := fill(ctx, c.server.URL(name)); err != nil {
		return err
	}

	// A database can't be copied while anyone is connected to it, and the session of a closed connection takes a moment to end.
	return c.exec(ctx, "select pg_terminate_backend(pid, 10000) from pg_stat_activity where datname = $1", name)
}

// create makes a database for a test.
func create(t testing.TB, template string) string {
	t.Helper()

	c, err := start()
	if err != nil {
		t.Fatal(err)
	}

	name := "test_" + strconv.FormatInt(serial.Add(1), 10)

	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()

	// Without fsync the file system copies faster than PostgreSQL does page by page: 10 ms instead of 18.
	err = c.exec(ctx, "create database "+name+" template "+pgx.Identifier{template}.Sanitize()+" strategy file_copy")
	if err != nil {
		t.Fatalf("create a database: %v", err)
	}

	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()

		if err := c.exec(ctx, "drop database if exists "+name+" with (force)"); err != nil {
			t.Errorf("drop the database of the test: %v", err)
		}
	})

	return c.server.URL(name)
}

// Drop drops databases of the cluster, those that are there, whoever is connected to them.
func Drop(ctx context.Context, names ...string) error {
	c, err := start()
	for _, name := range names {
		if err == nil {
			err = c.exec(ctx, "drop database if exists "+pgx.Identifier{name}.Sanitize()+" with (force)")
		}
	}

	return err
}

// exec runs a statement as the superuser.
func (c *cluster) exec(ctx context.Context, sql string, args ...any) error {
	_, err := c.admin.Exec(ctx, sql, args...)
	return err
}
