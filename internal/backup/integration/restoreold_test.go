package integration_test

import (
	"os"
	"strconv"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/api/apitest"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/pgtest"
	"github.com/socle-dev/socle/internal/projectdb"
)

// TestRestoreOfOldBackup backs up a project in the state of an older release, and restores it in
// place and into a new project. Both are migrated and complete.
func TestRestoreOfOldBackup(t *testing.T) {
	t.Parallel()

	const old = 3 // the migration that creates the forms
	a := apitest.New(t)
	a.DisableProofs()
	recreateProject(t, a, old)

	conn := a.ConnectProject()
	if _, err := conn.Exec(t.Context(), `
		create table public.orders as select n, repeat('note', 10) as note from generate_series(1, 100) n;
		insert into storage.containers (uuid, name, max_file_size, created_by, updated_by) values (gen_random_uuid(), 'of-old', 1000, gen_random_uuid(), gen_random_uuid())`); err != nil {
		t.Fatal(err)
	}

	conn.Close(t.Context())
	id := makeBackup(t, a)
	newest := migrateProject(t, a, old)

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

// TestRestoreOfOldPasswords restores a backup that has password hashes in auth.users, in place and
// into a new project. Neither these nor a migration leave a hash where the owner reads it.
func TestRestoreOfOldPasswords(t *testing.T) {
	t.Parallel()

	const old = 48 // before the migrations that create vault keys, and move the hashes
	a := apitest.New(t)
	a.DisableProofs()
	recreateProject(t, a, old)

	const hash = "$2a$06$abcdefghijklmnopqrstuuBnnhV2Bq5Zs3Wu6wgSY0q2Q4Wcx6zBO"
	conn := a.ConnectProject()
	if _, err := conn.Exec(t.Context(), `
		create function public.fail() returns trigger language plpgsql as $$ begin raise 'a trigger runs'; end $$;
		set session_replication_role = replica;
		insert into auth.users (id, email, encrypted_password) values (gen_random_uuid(), 'ann@example.com', '`+hash+`');
		create trigger fail before update on auth.users for each row execute function public.fail()`); err != nil {
		t.Fatal(err)
	}

	id := makeBackup(t, a)

	if _, err := conn.Exec(t.Context(), `reset session_replication_role; begin isolation level repeatable read; select`); err != nil {
		t.Fatal(err)
	}
	migrateProject(t, a, old)
	if got := pgtest.Value[int](t, conn, `select count(*) from auth.users where encrypted_password = '`+hash+`'`); got != 0 {
		t.Errorf("a snapshot from before the migration has %d hashes, want 0", got)
	}
	conn.Close(t.Context())

	has := func(a *apitest.API) {
		t.Helper()

		if got := query(t, a, `
			select p.hash from auth.passwords p join auth.users u on u.encrypted_password = p.reference
			where p.user_id = u.id and p.reference <> p.hash`); got != hash {
			t.Errorf("got the hash %s, want %s", got, hash)
		}
	}

	has(a)
	restoreInPlace(t, a, id)
	has(a)

	r := a.Post("/backups/"+id+"/restore", `{"target": "new", "name": "copied"}`).Want(201)
	waitForRestore(t, a, r.Get("uuid").(string), "completed", "failed").Content("status", "completed")
	has(a.WithProject(r.Get("projectUuid").(string)))

	restoreInPlace(t, a, makeBackup(t, a))
	has(a)
}

// recreateProject replaces the project's database by one in the state of an older release.
func recreateProject(t *testing.T, a *apitest.API, version int64) {
	t.Helper()

	conn := a.ConnectProject()
	config := conn.Config().Copy()
	conn.Close(t.Context())

	name := pgx.Identifier{config.Database}.Sanitize()
	a.Exec("drop database " + name + " with (force)")
	a.Exec("create database " + name + " template template0")

	if err := pg.MigrateTo(t.Context(), config, projectdb.Schema, os.DirFS("../../projectdb/migrations"),
		version); err != nil {
		t.Fatal(err)
	}
}

// migrateProject migrates the project from an older release's state, as the next start does, and
// returns the newest version.
func migrateProject(t *testing.T, a *apitest.API, old int64) string {
	t.Helper()

	a.Exec("update platform.projects set schema_version = $1", old)
	newest := strconv.FormatInt(projectdb.Version(), 10)
	waitUntil(t, "the project is migrated, as on the next start", func() bool {
		runCleanUp(t, a)
		return query(t, a, `select max(version_id)::text from socle.migrations where is_applied`) == newest
	})

	return newest
}

// firstUUID returns the UUID of the first item of a list.
func firstUUID(list *apitest.Reply) string {
	return list.Get("").([]any)[0].(map[string]any)["uuid"].(string)
}
