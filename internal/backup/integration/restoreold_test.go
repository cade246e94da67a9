package integration_test

import (
	"os"
	"strconv"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/api/apitest"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/projectdb"
)

// TestRestoreOfOldBackup backs up a project in the state of an older release, and restores it in
// place and into a new project. Both are migrated and complete.
func TestRestoreOfOldBackup(t *testing.T) {
	t.Parallel()

	const old = 3 // the migration that creates the forms
	a := apitest.New(t)
	a.DisableProofs()
	conn := a.ConnectProject()
	config := conn.Config().Copy()

	conn.Close(t.Context())
	name := pgx.Identifier{config.Database}.Sanitize()
	a.Exec("drop database " + name + " with (force)")
	a.Exec("create database " + name + " template template0")

	if err := pg.MigrateTo(t.Context(), config, projectdb.Schema, os.DirFS("../../projectdb/migrations"),
		old); err != nil {
		t.Fatal(err)
	}

	conn = a.ConnectProject()
	if _, err := conn.Exec(t.Context(), `
		create table public.orders as select n, repeat('note', 10) as note from generate_series(1, 100) n;
		insert into storage.containers (uuid, name, max_file_size, created_by, updated_by) values (gen_random_uuid(), 'of-old', 1000, gen_random_uuid(), gen_random_uuid())`); err != nil {
		t.Fatal(err)
	}

	conn.Close(t.Context())
	id := makeBackup(t, a)
	a.Exec("update platform.projects set schema_version = $1", old)
	newest := strconv.FormatInt(projectdb.Version(), 10)

	waitUntil(t, "the project is migrated, as on the next start", func() bool {
		runCleanUp(t, a)
		return query(t, a, `select max(version_id)::text from socle.migrations where is_applied`) == newest
	})

	has := func(a *apitest.API) {
		t.Helper()

		if got := query(t, a, `select max(version_id)::text from socle.migrations where is_applied`); got != newest {
			t.Errorf("got database version %s, want %s", got, newest)
		}
		if got := query(t, a, `select count(*)::text || ' ' || sum(n) from public.orders`); got != "100 5050" {
			t.Errorf("got %s in the table", got)
		}

		list := a.Get("/containers").Want(200)
		if got := list.Get("").([]any); len(got) != 1 || got[0].(map[string]any)["name"] != "of-old" {
			t.Errorf("got containers %s", list.Body)
		}

		upload(t, a, firstUUID(list), "a.txt", "bytes")
	}

	restoreInPlace(t, a, id)
	has(a)

	r := a.Post("/backups/"+id+"/restore", `{"target": "new", "name": "copied"}`).Want(201)
	waitForRestore(t, a, r.Get("uuid").(string), "completed", "failed").Content("status", "completed")
	has(a.WithProject(r.Get("projectUuid").(string)))
}

// firstUUID returns the UUID of the first item of a list.
func firstUUID(list *apitest.Reply) string {
	return list.Get("").([]any)[0].(map[string]any)["uuid"].(string)
}
