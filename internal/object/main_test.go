package object

import (
	"log/slog"
	"sync"
	"testing"

	"github.com/google/uuid"

	"socle/internal/pgtest"
	"socle/internal/tenant"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

var registry = sync.OnceValues(func() (*tenant.Registry, error) {
	return tenant.NewRegistry(pgtest.Server().URL("postgres"), []byte("secret of the tests"), 60, slog.New(slog.DiscardHandler))
})

// newProject returns a project with a database of its own.
func newProject(t *testing.T) *tenant.Project {
	t.Helper()
	r, err := registry()
	if err == nil {
		err = r.Prepare(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	id := newUUID(t)
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
