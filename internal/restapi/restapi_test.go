package restapi_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/appkey"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/gateway"
	"github.com/socle-dev/socle/internal/httpx"
	"github.com/socle-dev/socle/internal/lifecycle"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/pgtest"
	"github.com/socle-dev/socle/internal/platform/platformtest"
	"github.com/socle-dev/socle/internal/projectdb"
	"github.com/socle-dev/socle/internal/rest"
	"github.com/socle-dev/socle/internal/rest/session"
	"github.com/socle-dev/socle/internal/restapi"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

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
	install := platformtest.New(t)
	g := gateway.New(gateway.Config{Platform: install.DB, Projects: registry,
		SigningKeys: func(uuid.UUID, int) ([]json.RawMessage, error) { return nil, nil },
		Interfaces: []gateway.Interface{restapi.New(restapi.Config{Bodies: httpx.NewBodyPool(rest.BodyPoolSize),
			Responses: session.NewBudget(session.BudgetSize), PoolContended: registry.PoolContended,
			Log: slog.New(slog.DiscardHandler)})}})
	t.Cleanup(g.Close)

	paths, keys, databases := make([]string, count), make([]string, count), make([]string, count)

	var first uuid.UUID
	for i := range paths {
		id := install.Project()
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
		if _, keys[i], err = appkey.CreateProjectKey(t.Context(), install.DB, id, install.User, "server",
			appkey.Secret); err != nil {
			t.Fatal(err)
		}

		paths[i] = "/projects/" + id.String() + restapi.Prefix + "/items"
		databases[i], first = registry.Database(id), id
	}

	var wg sync.WaitGroup
	for client := range clients {
		wg.Go(func() {
			for n := range requests {
				i := (client*7 + n*11) % count
				r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, paths[i], nil)
				r.Header.Set("apikey", keys[i])
				w := httptest.NewRecorder()

				if !g.Serve(w, r, paths[i]) || w.Code != http.StatusOK {
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

// TestFail checks the answers to requests without a project: nothing tells an unknown project from
// one that refuses the key.
func TestFail(t *testing.T) {
	t.Parallel()

	i := restapi.New(restapi.Config{})
	for name, test := range map[string]struct {
		err    error
		key    string
		status int
		want   string
	}{
		"unknown":         {gateway.ErrUnknownProject, "x", 401, `"code":"PGRST301"`},
		"unknown, no key": {gateway.ErrUnknownProject, "", 401, `"code":"PGRST302"`},
		"no connection":   {fault.New(fault.Unavailable, "secret"), "x", 503, `"code":"PGRST000"`},
		"bug":             {errors.New("secret"), "x", 500, `"code":"PGRSTX00"`},
	} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/projects/x/rest/v1/titles", nil)
		r.Header.Set("Origin", "https://app.example")
		if test.key != "" {
			r.Header.Set("apikey", test.key)
		}
		w := httptest.NewRecorder()
		i.Fail(w, r, test.err)

		if body := w.Body.String(); w.Code != test.status || !strings.Contains(body, test.want) ||
			strings.Contains(body, "secret") || w.Header().Get("Access-Control-Allow-Origin") != "*" ||
			(w.Code == 503) != (w.Header().Get("Retry-After") != "") {
			t.Errorf("%s: got %d %s %v, want %d, %s", name, w.Code, body, w.Header(), test.status, test.want)
		}
	}
}
