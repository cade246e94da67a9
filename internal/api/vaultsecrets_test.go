package api_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/socle-dev/socle/internal/api/apitest"
)

// TestVaultSecrets creates, changes and deletes secrets, which SQL reads and no answer has.
func TestVaultSecrets(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	path := "/projects/" + a.Project + "/vault-secrets"
	decrypted := func(name string) string {
		return query[string](t, a, `select coalesce(string_agg(decrypted_secret, ','), '') from vault.decrypted_secrets
			where name = '`+name+`'`)
	}

	created := a.Post(path, `{"name": "stripe key", "secret": "s3cret\nof two lines", "description": "payments"}`).Want(201)
	id := created.Get("uuid").(string)
	if got := decrypted("stripe key"); got != "s3cret\nof two lines" {
		t.Errorf("SQL reads %q", got)
	}

	a.Post(path, `{"name": "stripe key", "secret": "other"}`).Want(409).Field("name")
	a.Post(path, `{"name": "long", "secret": "`+strings.Repeat("é", 40_000)+`"}`).Want(422).Field("secret")
	a.Post(path, `{"name": "", "secret": "x"}`).Want(422).Field("name")
	a.Post(path, `{"name": "none"}`).Want(422).Field("secret")
	a.Post(path, `{"name": "nul", "secret": "a\u0000b"}`).Want(422).Field("secret")

	other := a.Create(path, `{"name": "mailer", "secret": "x"}`)
	a.Put(path+"/"+other, `{"name": "stripe key"}`).Want(409).Field("name")
	a.Put(path+"/"+other, `{"secret": "`+strings.Repeat("é", 40_000)+`"}`).Want(422).Field("secret")
	a.Put(path+"/"+apitest.MissingUUID, `{"secret": "y"}`).Want(404)
	a.Put(path+"/x", `{"secret": "y"}`).Want(400)

	changed := a.Put(path+"/"+other, `{"secret": "y", "description": "for mails"}`).Want(200)
	changed.Content("name", "mailer").Content("description", "for mails")
	if got := decrypted("mailer"); got != "y" {
		t.Errorf("after the change SQL reads %q", got)
	}

	list := a.Get(path + "?sort=name&order=desc").Want(200)
	if got := fmt.Sprint(values(list, "name")); got != "[stripe key mailer]" {
		t.Errorf("got the secrets %s", got)
	}
	for _, r := range []*apitest.Reply{created, changed, list, a.Get("/projects/" + a.Project + "/audit").Want(200)} {
		if strings.Contains(string(r.Body), "s3cret") {
			t.Errorf("an answer has the secret: %s", r.Body)
		}
	}

	a.Delete(path + "/" + id).Want(200)
	a.Delete(path + "/" + id).Want(404)
	a.Delete(path + "/x").Want(400)
	a.Get(path + "?sort=secret").Want(400)
	if got := decrypted("stripe key"); got != "" {
		t.Errorf("after its deletion SQL reads %q", got)
	}
}

// TestVaultOfItsOwn: a project's own schema vault is none of the platform's.
func TestVaultOfItsOwn(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	db := a.ProjectPool()
	if _, err := db.Exec(t.Context(), `drop schema vault cascade`); err != nil {
		t.Fatal(err)
	}
	a.Post("/sql", sqlBody(`create schema vault; create table vault.secrets (id uuid, name text)`, writing)).Want(200)

	path := "/projects/" + a.Project + "/vault-secrets"
	for _, r := range []*apitest.Reply{a.Get(path), a.Post(path, `{"name": "a", "secret": "b"}`),
		a.Put(path+"/"+apitest.MissingUUID, `{"secret": "b"}`), a.Delete(path + "/" + apitest.MissingUUID)} {
		r.Want(409).Code("schema_taken")
	}
}
