package server_test

import (
	"context"
	"fmt"
	"net"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/api/apitest"
)

// TestClientsGone sends a hundred requests and disconnects in the middle of each.
func TestClientsGone(t *testing.T) {
	a := apitest.New(t) // not parallel: it counts goroutines
	a.CreateTable("orders")
	conn := a.ConnectProject()
	before := runtime.NumGoroutine()

	address := strings.TrimPrefix(a.URL, "http://")
	var wg sync.WaitGroup
	for i := range 100 {
		wg.Go(func() {
			body := fmt.Sprintf(`{"name": "c%d", "type": "text"}`, i)

			c, err := net.Dial("tcp", address)
			if err != nil {
				t.Error(err)
				return
			}

			fmt.Fprintf(c,
				"POST /tables/orders/columns HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nX-Project: %s\r\n"+
					"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
				a.Token, a.Project, len(body), body[:len(body)-i%2]) // every second body lacks one byte

			c.Close()
		})
	}

	wg.Wait()

	eventually(t, "no statement of theirs runs", func() bool {
		var busy int
		if err := conn.QueryRow(context.WithoutCancel(t.Context()), `
			select count(*) from pg_stat_activity
			where datname = current_database() and pid <> pg_backend_pid()
				and backend_type = 'client backend' and state <> 'idle'`).Scan(&busy); err != nil {
			t.Fatal(err)
		}

		return busy == 0
	})

	// 30: idle connections of pools
	eventually(t, "their goroutines have ended", func() bool { return runtime.NumGoroutine() < before+30 })

	for range 30 { // more than any pool has connections
		a.Put("/tables/orders/rename", `{"name": "sales"}`).Want(200)
		a.Put("/tables/sales/rename", `{"name": "orders"}`).Want(200)
	}
}

// TestMoreRequestsThanConnections sends far more concurrent requests than any pool has connections.
// A handler that takes a second connection while holding one would deadlock here.
func TestMoreRequestsThanConnections(t *testing.T) {
	t.Parallel()

	a := apitest.New(t)
	form := a.Create("/forms", `{"name": "contact"}`)
	container := a.Create("/containers", `{"name": "files"}`)

	var wg sync.WaitGroup
	for i := range 12 {
		for _, request := range []struct{ method, path, body string }{
			{"POST", "/tables", fmt.Sprintf(`{"name": "t%d", "columns": [{"name": "id", "type": "integer"}]}`, i)},
			{"POST", "/functions/public",
				fmt.Sprintf(`{"name": "f%d", "definition": "select 1", "language": "sql", "return_type": "integer"}`,
					i)},
			{"POST", "/forms/" + form + "/fields", fmt.Sprintf(`{"label": "l%d", "type": "text"}`, i)},
			{"POST", "/containers", fmt.Sprintf(`{"name": "c-%d"}`, i)},
			{"PUT", "/containers/" + container, fmt.Sprintf(`{"description": "%d"}`, i)},
			{"GET", "/tables", ""},
			{"GET", "/projects", ""},
			{"GET", "/containers/" + container + "/files", ""},
		} {
			wg.Go(func() {
				// the client itself rejects undeclared statuses
				if r := a.Send(request.method, request.path, request.body); r.Status >= 300 {
					t.Errorf("%s %s: got status %d: %s", request.method, request.path, r.Status, r.Body)
				}
			})
		}
	}

	for i := range 6 {
		wg.Go(func() { a.Post("/projects", fmt.Sprintf(`{"name": "another %d"}`, i)) })
	}

	wg.Wait()
}

// TestSessionsEnd terminates all sessions, as a restart of PostgreSQL does.
func TestSessionsEnd(t *testing.T) {
	t.Parallel()

	a := apitest.New(t)
	a.CreateTable("orders")

	if _, err := a.ConnectProject().Exec(t.Context(), `
		select pg_terminate_backend(pid) from pg_stat_activity
		where datname in (current_database(), $1) and pid <> pg_backend_pid() and backend_type = 'client backend'`,
		platformDatabase(t, a)); err != nil {
		t.Fatal(err)
	}

	inARow := 0 // pools can still hold dead connections
	eventually(t, "requests succeed again", func() bool {
		inARow++
		for _, r := range []*apitest.Reply{a.Get("/tables/orders"), a.Delete("/functions/public/none")} {
			if r.Status >= 500 {
				inARow = 0
			}
		}

		return inARow == 20
	})

	a.Put("/tables/orders/rename", `{"name": "sales"}`).Want(200)
}

func platformDatabase(t *testing.T, a *apitest.API) string {
	t.Helper()

	c, err := pgx.ParseConfig(string(a.Config.DatabaseURL))
	if err != nil {
		t.Fatal(err)
	}

	return c.Database
}

// TestDatabasesAreClosed lists what every login can access.
func TestDatabasesAreClosed(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	conn := a.ConnectProject()
	for _, name := range []string{"postgres", "template1", platformDatabase(t, a), conn.Config().Database} {
		var open bool
		if err := conn.QueryRow(t.Context(), `select has_database_privilege('public', $1, 'connect')`, name).
			Scan(&open); err != nil {
			t.Fatal(err)
		}

		if open {
			t.Errorf("every login may connect to %s", name)
		}
	}
}
