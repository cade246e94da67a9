// Package projectdbtest provides tests with projects, each with a database of its own on the
// PostgreSQL of the test binary.
package projectdbtest

import (
	"context"
	"log/slog"
	"sync"
	"testing"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/pgtest"
	"github.com/socle-dev/socle/internal/projectdb"
)

// connections is the maximum number of open connections to all projects of a test binary.
const connections = 60

// registry is shared by all tests of the binary.
var registry = sync.OnceValues(func() (*projectdb.Registry, error) {
	names, err := projectdb.NewNames([]byte("key of test names")[:16])
	if err != nil {
		return nil, err
	}

	r, err := projectdb.NewRegistry(pgtest.Server().URL("postgres"), []byte("secret of the tests"), names, connections,
		slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, err
	}

	return r, r.Prepare(context.Background())
})

// New returns a project whose database is dropped when the test ends.
func New(t testing.TB) *projectdb.Project {
	t.Helper()

	r, id := Registry(t), UUID(t)
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

// Registry returns the registry of the projects of the test binary.
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
