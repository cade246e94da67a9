package api_test

import (
	"encoding/hex"
	"os/exec"
	"strings"
	"testing"

	"github.com/socle-dev/socle/internal/api/apitest"
	"github.com/socle-dev/socle/internal/pgserver"
)

// TestVault creates secrets by SQL, reads them through the rows API by a function of the owner, and
// restores them everywhere that they may be decrypted.
func TestVault(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	a.DisableProofs()
	a.Post("/sql", sqlBody(`create extension if not exists supabase_vault with schema vault`, writing)).Want(200)
	a.Post("/sql", sqlBody(`select vault.create_secret('s3cret of the mailer', 'mailer')`, writing)).Want(200)
	a.Post("/sql", sqlBody(`select vault.create_secret('unreadable s3cret', 'mailer')`, writing)).Want(422)
	a.Post("/sql", sqlBody(`create function public.read_mailer() returns text language sql security definer set search_path = '' as
		'select decrypted_secret from vault.decrypted_secrets where name = ''mailer'''; grant execute on function public.read_mailer() to anon;
		create materialized view public.derived as select length(public.read_mailer()) as n`, writing)).Want(200)

	key := a.Post("/projects/"+a.Project+"/keys", `{"name": "rows", "kind": "secret"}`).Want(201).
		Metadata("key").(string)
	get := func(path string, headers ...string) *apitest.Reply {
		return a.Anonymous().Send("GET", "/projects/"+a.Project+"/rest/v1/"+path, "",
			append(headers, "apikey: "+key)...)
	}
	if got := string(get("rpc/read_mailer").Body); got != `"s3cret of the mailer"` {
		t.Errorf("got %s from the function", got)
	}
	if r := get("decrypted_secrets", "Accept-Profile: vault"); r.Status != 406 {
		t.Errorf("the rows API has schema vault: %d %s", r.Status, r.Body)
	}
	a.Put("/projects/"+a.Project+"/rest-settings", `{"schemas": ["public", "vault"]}`).Want(422).Field("schemas")

	id := createBackup(t, a)
	binaries, err := pgserver.Find(a.Config.PostgresBin)
	if err != nil {
		t.Fatal(err)
	}
	dump, err := exec.CommandContext(t.Context(), binaries.Path("pg_restore"), "--file=-", dumpOf(t, a, id)).Output()
	if err != nil {
		t.Fatal(err)
	}
	dataKey := query[[]byte](t, a, `select key from socle.opened_vault_keys`)
	for _, secret := range []string{"s3cret", hex.EncodeToString(dataKey)} {
		if strings.Contains(string(dump), secret) {
			t.Errorf("the dump has %s", secret)
		}
	}
	if !strings.Contains(string(dump), "COPY vault.secrets") {
		t.Error("the dump has no secrets")
	}

	const read = `select string_agg(decrypted_secret, ',') from vault.decrypted_secrets`
	n := a.Post("/backups/"+id+"/restore", `{"target": "new", "name": "copied"}`).Want(201)
	waitForRestore(t, a, n.Get("uuid").(string), "completed")
	copied := a.WithProject(n.Get("projectUuid").(string))
	if got := query[string](t, copied, read); got != "s3cret of the mailer" {
		t.Errorf("as a new project: got %q", got)
	}
	if got := query[[]byte](t, copied, `select key from socle.opened_vault_keys`); string(got) == string(dataKey) {
		t.Error("a new project has the key of the former one")
	}

	a.Post("/sql", sqlBody(`delete from vault.secrets`, writing)).Want(200)
	restoreInPlace(t, a, id)
	if got := query[string](t, a, read); got != "s3cret of the mailer" {
		t.Errorf("in place: got %q", got)
	}

	// An archive proves no right to the project that it comes from.
	archive := downloadBackup(a, id, `{"encryption": "none"}`)
	foreign := a.WithProject(a.CreateProject("foreign"))
	imported := importArchive(foreign, archive).Want(201).Get("uuid").(string)
	r := foreign.Post("/backups/"+imported+"/restore", `{"target": "in_place", "allow_missing": true}`).Want(201)
	waitForRestore(t, foreign, r.Get("uuid").(string), "completed")
	foreign.Post("/sql", sqlBody(read)).Want(422)
	foreign.Post("/sql", sqlBody(`select vault.update_secret(id, 'own') from vault.secrets`, writing)).Want(200)
	if got := query[string](t, foreign, read); got != "own" {
		t.Errorf("in the other project: got %q", got)
	}

	restoreInPlace(t, a, importArchive(a, archive).Want(201).Get("uuid").(string))
	if got := query[string](t, a, read); got != "s3cret of the mailer" {
		t.Errorf("imported where it comes from: got %q", got)
	}
}
