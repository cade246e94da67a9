package api_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/lestrrat-go/jwx/v3/jwk"

	"github.com/socle-dev/socle/internal/api/apitest"
)

// jwkOf returns the JSON Web Key of a public key with additional members.
func jwkOf(t *testing.T, public any, members ...string) string {
	t.Helper()

	key, err := jwk.Import(public)
	if err != nil {
		t.Fatal(err)
	}

	text, err := json.Marshal(key)
	if err != nil {
		t.Fatal(err)
	}

	for _, m := range members {
		text = append(text[:len(text)-1], ","+m+"}"...)
	}

	return string(text)
}

func newECKey(t *testing.T, curve elliptic.Curve) *ecdsa.PrivateKey {
	t.Helper()

	key, err := ecdsa.GenerateKey(curve, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}

	return key
}

func newRSAKey(t *testing.T, bits int) *rsa.PrivateKey {
	t.Helper()

	key, err := rsa.GenerateKey(rand.Reader, bits)
	if err != nil {
		t.Fatal(err)
	}

	return key
}

func TestJWTKeys(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	path := "/projects/" + a.Project + "/jwt-keys"
	created := a.Post(path, jwkOf(t, newECKey(t, elliptic.P256()).Public(), `"kid":"first"`, `"key_ops":["verify"]`)).
		Want(201).
		Content("kid", "first").Content("algorithm", "ES256").Content("projectUuid", a.Project).
		Content("createdBy", a.User).
		Content("jwk.kty", "EC").Content("jwk.kid", "first").Content("jwk.alg", "ES256").Content("jwk.use", "sig")

	public := newRSAKey(t, 2048).Public()
	second := a.Post(path, jwkOf(t, public, `"alg":"RS256"`, `"use":"sig"`)).Want(201).Content("algorithm", "RS256")

	key, err := jwk.Import(public)
	if err != nil {
		t.Fatal(err)
	}

	if err := jwk.AssignKeyID(key); err != nil {
		t.Fatal(err)
	}

	if want, _ := key.KeyID(); second.Get("kid") != want {
		t.Errorf("got the id %v, want the thumbprint %s", second.Get("kid"), want)
	}

	a.Post(path, jwkOf(t, public)).Want(409).Field("kid") // the same thumbprint
	a.Post(path, jwkOf(t, public, `"kid":"first"`)).Want(409).Field("kid")
	a.Get(path+"?sort=createdAt&order=asc").Want(200).Content("0.kid", "first")

	tag := a.Get(path + "?sort=kid").Want(200).Header.Get("ETag")
	a.Send("GET", path+"?sort=kid", "", "If-None-Match: "+tag).Want(304)

	if total := a.Get(path).Want(200).Metadata("total"); fmt.Sprint(total) != "2" {
		t.Errorf("got %v keys, want 2", total)
	}

	other := a.CreateProject("other")
	a.Post("/projects/"+other+"/jwt-keys", jwkOf(t, public, `"kid":"first"`)).Want(201) // kid is unique per project
	a.Delete("/projects/" + other + "/jwt-keys/" + created.Get("uuid").(string)).Want(404)
	a.Delete(path+"/"+created.Get("uuid").(string)).Want(200).Content("kid", "first")
	a.Delete(path + "/" + created.Get("uuid").(string)).Want(404)
	a.Delete(path + "/x").Want(400).Field("jwtKeyUUID")
	a.Get(path + "?sort=jwk").Want(400).Field("sort")

	got := concurrently(10, func(n int) *apitest.Reply {
		return a.Post(path, jwkOf(t, public, fmt.Sprintf(`"kid":"key %d"`, n)))
	})
	if got[201] != 9 || got[422] != 1 {
		t.Errorf("ten more keys: got %v, want nine", got)
	}

	a.Post(path, jwkOf(t, public, `"kid":"one more"`)).Want(422).Code("quota_exceeded")
}

func TestBadJWTKeys(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	path := "/projects/" + a.Project + "/jwt-keys"
	private := newECKey(t, elliptic.P256())
	good := jwkOf(t, private.Public())
	x := "f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU"
	for body, field := range map[string]string{
		jwkOf(t, private):                                                     "d",
		jwkOf(t, newRSAKey(t, 2048)):                                          "d",
		`{"kty":"oct","k":"c2VjcmV0"}`:                                        "kty",
		`{"crv":"P-256"}`:                                                     "kty",
		strings.Replace(good, `"EC"`, `"RSA"`, 1):                             "n",
		strings.Replace(good, "P-256", "P-384", 1):                            "crv",
		jwkOf(t, newECKey(t, elliptic.P384()).Public()):                       "crv",
		`{"kty":"EC","crv":"P-256","x":"` + x + `"}`:                          "y",
		`{"kty":"EC","crv":"P-256","x":"AA","y":"` + x + `"}`:                 "x",
		`{"kty":"EC","crv":"P-256","x":"` + x + `=","y":"AA"}`:                "x",
		`{"kty":"EC","crv":"P-256","x":"` + x + `","y":"` + x + `"}`:          "y", // not on the curve
		`{"kty":"EC","x":"` + x + `","y":"` + x + `"}`:                        "crv",
		jwkOf(t, private.Public(), `"alg":"RS256"`):                           "alg",
		jwkOf(t, private.Public(), `"alg":"HS256"`):                           "alg",
		jwkOf(t, private.Public(), `"alg":"none"`):                            "alg",
		jwkOf(t, private.Public(), `"use":"enc"`):                             "use",
		jwkOf(t, private.Public(), `"kid":7`):                                 "kid",
		jwkOf(t, private.Public(), `"kid":"`+strings.Repeat("k", 201)+`"`):    "kid",
		jwkOf(t, newRSAKey(t, 2048).Public(), `"alg":"ES256"`):                "alg",
		`{"kty":"RSA","n":"` + strings.Repeat("_", 172) + `","e":"AQAB"}`:     "n",
		`{"kty":"RSA","n":"` + strings.Repeat("_", 1000) + `","e":"AQAB"}`:    "n",
		`{"kty":"RSA","n":"` + strings.Repeat("_", 400) + `","e":"AA"}`:       "e",
		`{"kty":"RSA","n":"` + strings.Repeat("_", 400) + `","e":"AQABAQAB"}`: "e",
		`{"kty":"RSA","n":"!","e":"AQAB"}`:                                    "n",
	} {
		a.Post(path, body).Want(422).Field(field)
	}

	a.Post(path, `{`).Want(400)

	if strings.Contains(a.Log.String(), jwkMember(t, jwkOf(t, private), "d")) {
		t.Error("the log contains the private key")
	}

	a.Get(path).Want(200).Metadata("total")
}

func jwkMember(t *testing.T, text, name string) string {
	t.Helper()

	var members map[string]string
	if err := json.Unmarshal([]byte(text), &members); err != nil || members[name] == "" {
		t.Fatalf("%s of %s: %v", name, text, err)
	}

	return members[name]
}

func TestRestSettings(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	path := "/projects/" + a.Project + "/rest-settings"
	tag := a.Get(path).Want(200).Content("schemas.0", "public").Header.Get("ETag")
	a.Send("GET", path, "", "If-None-Match: "+tag).Want(304)
	a.Put(path, `{"schemas": ["api", "public", "Odd \"one"]}`).Want(200).Content("schemas.2", `Odd "one`)
	a.Get(path).Want(200).Content("schemas.0", "api")
	a.Send("PUT", path, `{"schemas": ["public"]}`, "If-Match: "+tag).Want(412).Code("changed")
	a.Get("/projects/"+a.CreateProject("other")+"/rest-settings").Want(200).Content("schemas.0", "public")

	for _, names := range []string{`"auth"`, `"storage"`, `"forms"`, `"realtime"`, `"socle"`, `"information_schema"`,
		`"pg_catalog"`, `"pg_temp_1"`, `"public", "auth"`, `"public", "public"`, `""`, `"a,b"`, `"a\u0001"`,
		`"` + strings.Repeat("ä", 32) + `"`} {
		a.Put(path, `{"schemas": [`+names+`]}`).Want(422).Field("schemas")
	}

	a.Put(path, `{"schemas": []}`).Want(422)
	a.Put(path, `{"schemas": [1]}`).Want(422)
	a.Put(path, `{}`).Want(422).Code("nothing_to_change")
	a.Put(path, `{`).Want(400)
	a.Get("/projects/x/rest-settings").Want(400).Field("projectUUID")
	a.Get(path).Want(200).Content("schemas.0", "api").Content("maxRows", 0).Content("aggregates", false).
		Content("plan", false).Content("txEnd", "commit").Content("anonTimeoutMs", 0)

	a.Put(path, `{"max_rows": 1000000, "aggregates": true, "tx_end": "commit-allow-override", "anon_timeout_ms": 30000}`).
		Want(200).Content("schemas.0", "api")
	a.Put(path, `{"plan": true, "authenticated_timeout_ms": 1, "service_role_timeout_ms": 2}`).Want(200).
		Content("maxRows", 1000000).Content("aggregates", true).Content("plan", true).
		Content("txEnd", "commit-allow-override").Content("anonTimeoutMs", 30000).Content("authenticatedTimeoutMs", 1).
		Content("serviceRoleTimeoutMs", 2)
	a.Put(path, `{"max_rows": 0, "aggregates": false}`).Want(200).Content("maxRows", 0).Content("aggregates", false)

	for field, values := range map[string][]string{
		"max_rows": {"-1", "1000001", `"7"`}, "tx_end": {`"never"`}, "plan": {"1"},
		"anon_timeout_ms":          {"-1", "30001", "0.5"},
		"authenticated_timeout_ms": {"30001"}, "service_role_timeout_ms": {"30001"},
	} {
		for _, value := range values {
			a.Put(path, `{"`+field+`": `+value+`}`).Want(422).Field(field)
		}
	}
}
