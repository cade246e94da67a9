package api_test

import (
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/api/apitest"
)

// TestRestoreOnSeveralServers restores a backup and undoes the restore while requests reach two
// servers. No request fails, every acknowledged row is in the database that was live at that time
// and in no other, and the first request afterwards sees the new state.
func TestRestoreOnSeveralServers(t *testing.T) {
	t.Parallel()

	a := apitest.New(t)
	a.DisableProofs()
	servers := []*apitest.API{a, a.StartServer()}

	until(t, "both servers see each other", func() bool {
		return apitest.Value[int](a,
			`select count(*) from pg_locks where locktype = 'advisory' and classid = $1 and objid = 0 and objsubid = 2 and granted
			and database = (select oid from pg_database where datname = current_database())`, 0x50c1e) == 2
	})

	asOwner(t, a, `create table public.written (id int primary key, at timestamptz not null default clock_timestamp())`)
	form := a.Create("/forms", `{"name": "Survey"}`)
	a.Put("/forms/"+form, `{"state": "open"}`).Want(200)
	key := a.Post("/projects/"+a.Project+"/keys", `{"name": "rows", "kind": "secret"}`).Want(201).
		Metadata("key").(string)

	rows := func(s *apitest.API, method, path, body string) *apitest.Reply {
		return s.Anonymous().Send(method, "/projects/"+a.Project+"/rest/v1/"+path, body, "apikey: "+key)
	}

	id := createBackup(t, a)
	asOwner(t, a, `alter table public.written add column more text; create table public.later (id int primary key)`)

	for _, s := range servers {
		until(t, "the new table is listed", func() bool { return rows(s, "GET", "later", "").Status == 200 })
	}

	done := make(chan struct{})
	var wg sync.WaitGroup
	var mu sync.Mutex
	var next atomic.Int64
	var sent [2]atomic.Int64
	acknowledged := []int64{}
	for i, s := range servers {
		write := func() *apitest.Reply {
			n := next.Add(1)
			r := rows(s, "POST", "written", fmt.Sprintf(`{"id": %d}`, n))
			if r.Status == http.StatusCreated {
				mu.Lock()
				defer mu.Unlock()

				acknowledged = append(acknowledged, n)
			}

			return r
		}

		others := []func() *apitest.Reply{
			func() *apitest.Reply { return s.Get("/tables") },
			func() *apitest.Reply { return rows(s, "GET", "written?select=id&limit=1", "") },
			func() *apitest.Reply { return s.Post("/forms/"+form+"/responses", `{"answers": {}}`) },
			func() *apitest.Reply { return rows(s, "GET", "written?select=id&order=id.desc&limit=1", "") },
			func() *apitest.Reply { return s.Post("/sql", `{"query": "select 1"}`) },
		}
		for _, sends := range [][]func() *apitest.Reply{{write}, others} {
			wg.Go(func() {
				pace := time.NewTicker(20 * time.Millisecond)
				defer pace.Stop()

				for n := 0; ; n++ {
					select {
					case <-done:
						return
					case <-pace.C:
					}

					r := sends[n%len(sends)]()
					sent[i].Add(1)

					if r.Status >= 300 {
						t.Errorf("server %d: got %d %s", i, r.Status, r.Body)
					}
				}
			})
		}
	}

	restored := restoreInPlace(t, a, id)

	for i, s := range servers {
		if r := rows(s, "GET", "later", ""); r.Status != 404 {
			t.Errorf("server %d, after the restore: got %d %s, want 404", i, r.Status, r.Body)
		}
		if r := rows(s, "GET", "written?select=more&limit=1", ""); r.Status != 400 {
			t.Errorf("server %d, after the restore: got %d %s, want 400", i, r.Status, r.Body)
		}
	}

	// Undo through the other server.
	servers[1].Post("/restores/"+restored+"/undo", "").Want(200)

	for i, s := range servers {
		if r := rows(s, "GET", "later", ""); r.Status != 200 {
			t.Errorf("server %d, when the restore was undone: got %d %s, want 200", i, r.Status, r.Body)
		}
	}

	close(done)
	wg.Wait()
	t.Logf("%d and %d requests, %d rows acknowledged", sent[0].Load(), sent[1].Load(), len(acknowledged))

	// The restored database is now the kept one.
	kept := query[string](t, a,
		`select datname::text from pg_database where datname like current_database() || '\_old\_%'`)

	found, swaps := map[int64]bool{}, [2]string{}
	for i, column := range []string{"completed_at", "undone_at"} {
		swaps[i] = apitest.Value[string](a, `select `+column+`::text from platform.restores where uuid = $1`, restored)
	}

	for database, condition := range map[string]string{
		"":   fmt.Sprintf(`at < '%s' or at > '%s'`, swaps[0], swaps[1]),
		kept: fmt.Sprintf(`at > '%s' and at < '%s'`, swaps[0], swaps[1]),
	} {
		conn := a.ConnectProject()
		if database != "" {
			config := conn.Config().Copy()
			config.Database = database

			var err error
			if conn, err = pgx.ConnectConfig(t.Context(), config); err != nil {
				t.Fatal(err)
			}

			defer conn.Close(t.Context())
		}

		written, err := conn.Query(t.Context(), `select id, (`+condition+`) from public.written`)
		if err != nil {
			t.Fatal(err)
		}

		var n int64
		var here bool
		if _, err := pgx.ForEachRow(written, []any{&n, &here}, func() error {
			found[n] = true

			if !here {
				t.Errorf("row %d is in the database that was not live at that time", n)
			}

			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}

	for _, n := range acknowledged {
		if !found[n] {
			t.Errorf("acknowledged row %d is in neither database", n)
		}
	}
}
