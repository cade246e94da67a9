package api_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/socle-dev/socle/internal/api/apitest"
	"github.com/socle-dev/socle/internal/token"
)

func TestKeys(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	path := "/projects/" + a.Project + "/keys"

	created := a.Post(path, `{"name": " browser ", "kind": "publishable"}`).Want(201).
		Content("name", "browser").Content("kind", "publishable").Content("projectUuid", a.Project).
		Content("createdBy", a.User)
	key := created.Metadata("key").(string)
	if !token.IsAPIKey(key) || !strings.HasPrefix(key, created.Get("hint").(string)) ||
		!strings.HasPrefix(key, token.PublishablePrefix) {
		t.Errorf("got key %q with hint %q", key, created.Get("hint"))
	}
	if created.Header.Get("Cache-Control") != "no-store" {
		t.Error("the response with the key can be stored by caches")
	}

	secret := a.Post(path, `{"name": "server", "kind": "secret"}`).Want(201)
	if !strings.HasPrefix(secret.Metadata("key").(string), token.SecretPrefix) {
		t.Errorf("got secret key %q", secret.Metadata("key"))
	}

	list := a.Get(path+"?sort=name&order=desc").Want(200).Content("0.name", "server").Content("1.name", "browser")
	if fmt.Sprint(list.Metadata("total")) != "2" || strings.Contains(string(list.Body), key) ||
		strings.Contains(a.Log.String(), key) {
		t.Errorf("got list %s, or the key is in the log", list.Body)
	}

	a.Delete(path+"/"+created.Get("uuid").(string)).Want(200).Content("name", "browser")
	a.Delete(path + "/" + created.Get("uuid").(string)).Want(404)

	if total := a.Get(path).Want(200).Metadata("total"); fmt.Sprint(total) != "1" {
		t.Errorf("got %v keys after one was revoked, want 1", total)
	}

	a.Post(path, `{"name": "browser", "kind": "secret"}`).Want(201) // the name is free again
}

func TestBadKeys(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	path := "/projects/" + a.Project + "/keys"
	a.Post(path, `{"name": "taken", "kind": "secret"}`).Want(201)

	for body, field := range map[string]string{
		`{"kind": "secret"}`:                                             "name",
		`{"name": "", "kind": "secret"}`:                                 "name",
		`{"name": "  ", "kind": "secret"}`:                               "name",
		`{"name": 1, "kind": "secret"}`:                                  "name",
		`{"name": "x", "kind": "master"}`:                                "kind",
		`{"name": "x"}`:                                                  "kind",
		`{"name": "x", "kind": null}`:                                    "kind",
		`{"name": "` + strings.Repeat("x", 101) + `", "kind": "secret"}`: "name",
	} {
		a.Post(path, body).Want(422).Field(field)
	}

	a.Post(path, `{"name": "Taken", "kind": "secret"}`).Want(409).Field("name")
	a.Post(path, `{`).Want(400)
	a.Get(path + "?sort=hash").Want(400).Field("sort")
	a.Delete(path + "/x").Want(400)

	// Fill the quota but for one.
	a.Exec(`insert into platform.project_keys (uuid, project_uuid, name, kind, hint, hash, created_by)
		select gen_random_uuid(), $1, 'key ' || n, 'secret', '', n::text::bytea, $1 from generate_series(1, 98) n`,
		a.Project)

	wantCounts(t, concurrently(5, func(i int) *apitest.Reply {
		return a.Post(path, fmt.Sprintf(`{"name": "late %d", "kind": "secret"}`, i))
	}), map[int]int{201: 1, 422: 4})

	a.Post(path, `{"name": "one more", "kind": "secret"}`).Want(422).Code("quota_exceeded")
}

// TestKeysConcurrently checks that one of many concurrent equal requests creates the key, and one
// revokes it.
func TestKeysConcurrently(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	path := "/projects/" + a.Project + "/keys"
	got := concurrently(10, func(int) *apitest.Reply { return a.Post(path, `{"name": "one", "kind": "secret"}`) })
	if got[201] != 1 || got[409] != 9 {
		t.Errorf("create: got %v", got)
	}

	id := a.Get(path).Want(200).Get("0.uuid").(string)
	got = concurrently(10, func(int) *apitest.Reply { return a.Delete(path + "/" + id) })
	if got[200] != 1 || got[404] != 9 {
		t.Errorf("revoke: got %v", got)
	}
}

func TestGetJWTSecret(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	r := a.Get("/projects/"+a.Project+"/jwt-secret").Want(200).Content("algorithm", "HS256")
	if r.Header.Get("Cache-Control") != "no-store" || len(r.Get("secret").(string)) != 64 {
		t.Errorf("got %s, with Cache-Control %q", r.Body, r.Header.Get("Cache-Control"))
	}

	other := a.Get("/projects/" + a.CreateProject("other") + "/jwt-secret").Want(200)
	if other.Get("secret") == r.Get("secret") {
		t.Error("two projects share a secret")
	}

	a.Get("/projects/x/jwt-secret").Want(400).Field("projectUUID")
}
