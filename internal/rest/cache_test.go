package rest

import (
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/socle-dev/socle/internal/rest/catalog"
)

func TestFirstCatalogIsReadOnce(t *testing.T) {
	t.Parallel()

	a := newAPI(t, "")
	got := make([]*catalog.Catalog, 8)

	var all sync.WaitGroup
	for i := range got {
		all.Go(func() { got[i], _ = a.server.Catalog.Get(t.Context()) })
	}

	all.Wait()

	for _, c := range got {
		if c == nil {
			t.Fatal("got no catalog, want one for each request")
		}
	}

	a.server.Catalog.Close()
	a.server.Catalog.Close()

	if got := a.do("GET", "/clients", ""); got.status != http.StatusOK {
		t.Errorf("with a closed cache: got %+v, want 200", got)
	}
}

func TestNoCatalog(t *testing.T) {
	t.Parallel()

	a := newAPI(t, "")
	config := a.admin.Config()
	config.ConnConfig.User, config.ConnConfig.Password = "request", "wrong"

	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()

	a.server.Catalog = NewCache(Source{Pool: func() *pgxpool.Pool {
		return pool
	}, Options: catalog.Options{Schemas: []string{"public"}}}, slog.New(slog.DiscardHandler))
	defer a.server.Catalog.Close()

	if got := a.do("GET", "/clients", ""); got.status != 503 || !strings.Contains(got.body, "PGRST002") ||
		got.header.Get("Retry-After") == "" {
		t.Errorf("got %+v, want 503 PGRST002 with Retry-After", got)
	}
}

// TestCatalogReloadsAreCoalesced checks that any number of reloads during a read, and during the
// pause after it, cause one more read.
func TestCatalogReloadsAreCoalesced(t *testing.T) {
	t.Parallel()

	a := newAPI(t, "")
	cache := a.server.Catalog
	cache.Close()

	cache = NewCache(Source{Pool: func() *pgxpool.Pool {
		return a.admin
	}, Options: catalog.Options{Schemas: []string{"public"}}}, slog.New(slog.DiscardHandler))
	defer cache.Close()

	rests, onward := make(chan time.Duration), make(chan struct{})
	cache.readPause = func(took time.Duration) { rests <- took; <-onward }

	first, err := cache.Get(t.Context())
	if err != nil {
		t.Fatal(err)
	}

	cache.Reload()
	cache.Reload()

	if took := <-rests; took <= 0 {
		t.Errorf("got a pause after a read of %v, want a positive duration", took)
	}

	second := cache.current.Load()

	for range 1000 {
		cache.Reload()
	}

	a.exec("create table public.told ()")
	close(onward)

	third := cache.newer(t.Context(), second)
	if first == second.Catalog || third == nil || third.Relations[catalog.Name{Schema: "public", Name: "told"}] == nil {
		t.Errorf("got catalogs %p, %p, %p, want different ones and the table told in the last", first, second, third)
	}

	select {
	case <-rests:
		t.Error("got another read of the catalog, want none")
	default:
	}
}
