package server_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/socle-dev/socle/internal/api/apitest"
	"github.com/socle-dev/socle/internal/platform"
)

// TestRequestsOfRows checks that logged requests to the rows API name the key or token, and contain
// nothing of the query.
func TestRequestsOfRows(t *testing.T) {
	t.Parallel()

	s := newTitlesProject(t)
	kept := func() []any { return s.Get("/projects/" + s.Project + "/requests?limit=100").Want(200).Get("").([]any) }
	s.want(200, "[]", "GET", "/titles?title=eq.canary", "", "apikey: "+s.secret)
	s.want(401, "", "POST", "/titles", `{"id": "canary"}`, "apikey: garbage")
	s.want(403, "", "GET", "/titles", "",
		"Authorization: Bearer "+s.token(map[string]any{"role": "authenticated", "sub": "canary"}))

	var rows []map[string]any
	eventually(t, "the requests are kept", func() bool {
		rows = nil
		for _, r := range kept() {
			if one := r.(map[string]any); one["route"] == "/projects/{projectUUID}/rest/v1" {
				rows = append(rows, one)
			}
		}

		return len(rows) == 3
	})

	var got []string
	for _, r := range rows {
		got = append(got,
			fmt.Sprint(r["method"], " ", r["status"], " ", r["caller"], " ", r["keyUuid"] != nil, " ",
				r["userUuid"] != nil))
	}

	if text := strings.Join(got,
		"; "); text != "GET 403 token false false; POST 401 anonymous false false; GET 200 key true false" {
		t.Errorf("got %s", text)
	}
	if text := fmt.Sprint(kept()); strings.Contains(text, "canary") || strings.Contains(text, s.secret) {
		t.Errorf("logged requests contain values: %s", text)
	}
}

// TestRequestsAtShutdown checks that a stopping server writes its queue.
func TestRequestsAtShutdown(t *testing.T) {
	t.Parallel()

	a := apitest.New(t)
	count := func() (n int) {
		conn, err := pgx.Connect(t.Context(), string(a.Config.DatabaseURL))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close(t.Context())

		if err := conn.QueryRow(t.Context(), `select count(*) from platform.requests where project_uuid = $1`,
			a.Project).Scan(&n); err != nil {
			t.Fatal(err)
		}

		return n
	}

	t.Run("served", func(t *testing.T) {
		c := a.Config
		c.DataDir = t.TempDir()
		second := apitest.Start(t, c)
		second.Token, second.Project = a.Token, a.Project

		for range 20 {
			second.Get("/tables").Want(200)
		}
	})

	if got := count(); got < 20 {
		t.Errorf("got %d logged requests after the stop, want 20", got)
	}
}

// TestDaysOfRequests checks that several servers can create daily partitions at once, and that
// partitions older than a week are dropped.
func TestDaysOfRequests(t *testing.T) {
	t.Parallel()

	a := apitest.New(t)
	pool, err := pgxpool.New(t.Context(), string(a.Config.DatabaseURL))
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()

	store, project := platform.New(pool), uuid.MustParse(a.Project)
	now := time.Now()
	done := make(chan error)
	for range 4 {
		go func() {
			var batch []platform.Request
			for day := range 12 {
				batch = append(batch, platform.Request{
					UUID:    uuid.Must(uuid.NewV7()),
					Project: project,
					At:      now.AddDate(0, 0, -day),
					Method:  strings.Repeat("M", 99),
					Caller:  "anonymous",
				})
			}

			done <- store.AddRequests(t.Context(), batch)
		}()
	}

	for range 4 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}

	count := func() (n int) {
		t.Helper()

		if err := pool.QueryRow(t.Context(), `select count(*) from platform.requests where caller = 'anonymous'`).
			Scan(&n); err != nil {
			t.Fatal(err)
		}

		return n
	}
	if got := count(); got != 48 {
		t.Errorf("got %d logged requests, want 48", got)
	}

	if err := store.DropRequestPartitions(t.Context(), 7*24*time.Hour); err != nil {
		t.Fatal(err)
	}

	if got := count(); got != 32 { // today and the seven days before
		t.Errorf("got %d logged requests, want 32", got)
	}
}
