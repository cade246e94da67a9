package server

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/enduser"
	"github.com/socle-dev/socle/internal/lifecycle"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/pgtest"
	"github.com/socle-dev/socle/internal/platform"
	"github.com/socle-dev/socle/internal/projectdb"
	"github.com/socle-dev/socle/internal/rest"
)

// TestManyProjectsFewConnections uses the rows of many more projects than there are connections.
// All requests must succeed, no connection may LISTEN, and an idle server must give all connections
// to one project.
func TestManyProjectsFewConnections(t *testing.T) {
	t.Parallel()

	const connections, clients, count, requests = 3, 8, 12, 10
	server, err := pg.PrimaryPoolConfig(pgtest.Server().URL("postgres"), 1)
	if err != nil {
		t.Fatal(err)
	}

	registry := projectdb.NewRegistry(projectdb.Config{Server: server,
		Secret: []byte("secret of a test with many projects"), Connections: connections,
		Log: slog.New(slog.DiscardHandler)})
	if err := lifecycle.Prepare(t.Context(), registry.Platform()); err != nil {
		t.Fatal(err)
	}

	manager := lifecycle.Databases{Registry: registry}

	s := newRows(nil, registry, &enduser.Service{Config: enduser.Config{Projects: registry}}, nil, "",
		slog.New(slog.DiscardHandler))
	verify := func(context.Context, string) (rest.Caller, error) { return rest.Caller{Role: "service_role"}, nil }
	projects := make([]*rest.Server, count)
	databases := make([]string, count)

	var first uuid.UUID
	for i := range projects {
		id := uuid.New()
		t.Cleanup(func() {
			if _, err := manager.Destroy(context.WithoutCancel(t.Context()), id); err != nil {
				t.Error(err)
			}
		})

		if _, err := manager.Provision(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		if _, err := registry.Open(id).Owner().Exec(t.Context(), "create table public.items (id int)"); err != nil {
			t.Fatal(err)
		}

		p := &projectRows{id: id, schemas: []string{"public"}, catalog: s.newCatalogCache(id, []string{"public"})}
		t.Cleanup(p.catalog.Close)
		projects[i] = s.activeHandler(id, p, &platform.RestSettings{}, verify)
		databases[i], first = registry.Database(id), id
	}

	var wg sync.WaitGroup
	for client := range clients {
		wg.Go(func() {
			for n := range requests {
				r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/items", nil)
				r.Header.Set("apikey", "any")
				w := httptest.NewRecorder()
				projects[(client*7+n*11)%count].ServeHTTP(w, r)

				if w.Code != http.StatusOK {
					t.Errorf("client %d, request %d: got %d %s", client, n, w.Code, w.Body)
				}
			}
		})
	}

	wg.Wait()

	platform, err := pgx.Connect(t.Context(), pgtest.Server().URL("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	defer platform.Close(context.WithoutCancel(t.Context()))

	listening, err := pg.Value[int](t.Context(), platform,
		`select count(*)::int from pg_stat_activity where datname = any($1) and query ilike 'listen%'`, databases)
	if err != nil || listening != 0 {
		t.Errorf("%d connections listen, %v", listening, err)
	}

	for range connections {
		conn, err := registry.Open(first).Request().Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Release()
	}
}
