package api_test

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/socle-dev/socle/internal/api/apitest"
)

// restoreInPlace restores a backup in place, waits for the end and returns the restore's UUID.
func restoreInPlace(t *testing.T, a *apitest.API, backup string) string {
	t.Helper()

	id := a.Post("/backups/"+backup+"/restore", `{"target": "in_place"}`).Want(201).Get("uuid").(string)
	waitForRestore(t, a, id, "completed")

	return id
}

// TestUndoRestore goes back to the state before a restore: rows, files, forms. The restored
// database is discarded.
func TestUndoRestore(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	a.DisableProofs()
	a.CreateTable("orders", "note text")
	asOwner(t, a, `insert into public.orders values (1, 'first')`)

	container := a.Create("/containers", `{"name": "reports"}`)
	first := upload(a, container, "a.txt", "first").Want(201).Get("uuid").(string)
	id := createBackup(t, a)
	asOwner(t, a, `update public.orders set note = 'second'`)

	second := upload(a, container, "b.txt", "second").Want(201).Get("uuid").(string)
	form := a.Create("/forms", `{"name": "later"}`)
	execute(t, a, `update storage.usage set max_files = 7`)

	restored := restoreInPlace(t, a, id)
	a.Get("/forms/" + form).Want(404)

	if quota := query[int](t, a, `select max_files from storage.usage`); quota != 7 {
		t.Errorf("got quota %d files, want 7: a backup must not change it", quota)
	}

	upload(a, container, "c.txt", "third").Want(201)
	list := a.Get("/restores?order=desc").Want(200)
	if got := values(list, "uuid"); len(got) != 1 || got[0] != restored {
		t.Errorf("got the restores %v, want %s", got, restored)
	}

	a.Get("/restores?sort=status").Want(400).Field("sort")
	a.Anonymous().Get("/restores").Want(401)
	a.Post("/restores/"+apitest.MissingUUID+"/undo", "").Want(404)
	a.Post("/restores/garbage/undo", "").Want(400)
	a.Member(3).Post("/restores/"+restored+"/undo", "").Want(403)
	a.Anonymous().Post("/restores/"+restored+"/undo", "").Want(401)
	a.Post("/restores/"+oldRestore(t, a, id)+"/undo", "").Want(409).Code("nothing_kept") // the database is gone

	counts := concurrently(4, func(int) *apitest.Reply { return a.Post("/restores/"+restored+"/undo", "") })
	wantCounts(t, counts, map[int]int{200: 1, 409: 3})
	a.Post("/restores/"+restored+"/undo", "").Want(409).Code("already_undone")

	if r := a.Get("/restores/" + restored).Want(200); r.Get("undoneAt") == nil || r.Get("keptUntil") == nil {
		t.Errorf("got restore status %s", r.Body)
	}
	if note := query[string](t, a, `select note from public.orders`); note != "second" {
		t.Errorf("the row has %q", note)
	}

	a.Get("/forms/" + form).Want(200)

	for file, want := range map[string]string{first: "first", second: "second"} {
		if got := a.Get("/containers/" + container + "/files/" + file + "/download").
			Want(200).Body; string(got) != want {
			t.Errorf("got content %q, want %q", got, want)
		}
	}

	if n := query[int](t, a,
		`select count(*) from `+apitest.AuditLog+` where entry::jsonb ->> 'action' = 'createFile'`); n != 3 {
		t.Errorf("got %d uploads in the audit log, want 3: a restore must not remove entries", n)
	}

	a.CreateTable("after")

	// A server that died during a swap has left the database closed.
	execute(t, a, `do $$ begin execute format('alter database %I connection limit 0', current_database()); end $$`)
	a.RunMaintenance()
	until(t, "the database is open again", func() bool {
		return query[int](t, a, `select datconnlimit from pg_database where datname = current_database()`) == -1
	})

	before := len(blobs(t, a))
	a.Delete("/restores/" + restored).Want(200)
	a.RunMaintenance()
	until(t, "the restored data is missing", func() bool {
		return a.Get("/restores/"+restored).Want(200).Get("keptUntil") == nil
	})

	if n := len(blobs(t, a)); n != before-2 {
		t.Errorf("got %d blobs, want %d: the two files of the discarded database must be deleted", n,
			before-2)
	}

	a.Post("/restores/"+restored+"/undo", "").Want(409).Code("nothing_kept")
	a.Get("/containers/" + container + "/files/" + second + "/download").Want(200)
}

// TestRequestsDuringRestore sends requests of all kinds during a restore and its undo: none fails.
func TestRequestsDuringRestore(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	a.DisableProofs()
	a.CreateTable("orders", "note text")

	container := a.Create("/containers", `{"name": "reports"}`)
	file := upload(a, container, "a.txt", "first").Want(201).Get("uuid").(string)
	form := a.Create("/forms", `{"name": "Survey"}`)
	a.Put("/forms/"+form, `{"state": "open"}`).Want(200)

	key := a.Post("/projects/"+a.Project+"/keys", `{"name": "rows", "kind": "secret"}`).Want(201).
		Metadata("key").(string)

	id := createBackup(t, a)

	done := make(chan struct{})
	var wg sync.WaitGroup
	var mu sync.Mutex
	sent := 0
	for _, send := range []func() *apitest.Reply{
		func() *apitest.Reply { return a.Get("/tables") },
		func() *apitest.Reply { return a.Get("/tables/orders/columns") },
		func() *apitest.Reply { return a.Get("/containers/" + container + "/files/" + file + "/download") },
		func() *apitest.Reply { return a.Put("/containers/"+container, `{"description": "changed"}`) },
		func() *apitest.Reply { return a.Post("/forms/"+form+"/responses", `{"answers": {}}`) },
		func() *apitest.Reply { return a.Post("/sql", `{"query": "select 1"}`) },
		func() *apitest.Reply { return a.Put("/tables/orders", `{"comment": "changed"}`) },
		func() *apitest.Reply {
			return a.Anonymous().Send("GET", "/projects/"+a.Project+"/rest/v1/orders?select=id", "", "apikey: "+key)
		},
		func() *apitest.Reply {
			return a.Anonymous().Send("POST", "/projects/"+a.Project+"/rest/v1/orders", `{"note": "x"}`, "apikey: "+key)
		},
	} {
		wg.Go(func() {
			pace := time.NewTicker(50 * time.Millisecond) // higher rates only slow the restores down
			defer pace.Stop()

			for {
				select {
				case <-done:
					return
				case <-pace.C:
				}

				r := send()
				mu.Lock()
				sent++
				mu.Unlock()

				if r.Status >= 300 && !strings.Contains(string(r.Body), "23502") { // an insert without the not-null key
					t.Errorf("got %d %s", r.Status, r.Body)
				}
			}
		})
	}

	restored := restoreInPlace(t, a, id)
	a.Post("/restores/"+restored+"/undo", "").Want(200)

	close(done)
	wg.Wait()
	t.Logf("%d requests", sent)
}
