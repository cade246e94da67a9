package jwt

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lestrrat-go/jwx/v3/jwa"
	"github.com/lestrrat-go/jwx/v3/jwk"
	"github.com/lestrrat-go/jwx/v3/jws"

	"github.com/socle-dev/socle/internal/fault"
)

var secret = []byte("a secret of more than thirty-two bytes")

func hs256(t *testing.T, payload string) string {
	t.Helper()

	token, err := jws.Sign([]byte(payload), jws.WithKey(jwa.HS256(), secret))
	if err != nil {
		t.Fatal(err)
	}

	return string(token)
}

func TestVerify(t *testing.T) {
	t.Parallel()

	v, err := New(Config{Secret: secret, Audience: "us"})
	if err != nil {
		t.Fatal(err)
	}

	now := time.Now().Unix()
	good := hs256(t, `{"role":"authenticated","sub":"ann"}`)
	none := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"none"}`)) + "." +
		base64.RawURLEncoding.EncodeToString([]byte(`{"role":"service_role"}`)) + "."

	odd := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"HS1"}`)) + ".e30.e30"
	other, _ := jws.Sign([]byte(`{"role":"authenticated"}`),
		jws.WithKey(jwa.HS256(), []byte("another secret of more than thirty-two bytes")))

	strong, _ := jws.Sign([]byte(`{"role":"authenticated"}`), jws.WithKey(jwa.HS512(), secret))
	for _, test := range []struct{ token, role, code, message string }{
		{good, "authenticated", "", ""},
		{good, "authenticated", "", ""}, // cached
		{hs256(t, `{"sub":"ann"}`), "", "", ""},
		{hs256(t, fmt.Sprintf(`{"role":"a","exp":%d,"nbf":%d,"iat":%d,"aud":["them","us"]}`, now-20, now+20, now+20)),
			"a", "", ""},
		{hs256(t, fmt.Sprintf(`{"exp":%d}`, now-31)), "", InvalidClaims, "JWT expired"},
		{hs256(t, fmt.Sprintf(`{"exp":%d}`, now-31)), "", InvalidClaims, "JWT expired"},
		{hs256(t, fmt.Sprintf(`{"exp":%d.5,"aud":"them"}`, now-60)), "", InvalidClaims, "JWT expired"},
		{hs256(t, fmt.Sprintf(`{"nbf":%d}`, now+60)), "", InvalidClaims, "JWT not yet valid"},
		{hs256(t, fmt.Sprintf(`{"iat":%d}`, now+60)), "", InvalidClaims, "JWT issued at future"},
		{hs256(t, `{"aud":"them"}`), "", InvalidClaims, "JWT not in audience"},
		{hs256(t, `{"aud":[],"exp":null}`), "", "", ""},
		{hs256(t, `{"aud":7}`), "", InvalidClaims, "The JWT 'aud' claim must be a string or an array of strings"},
		{hs256(t, `{"exp":"soon"}`), "", InvalidClaims, "The JWT 'exp' claim must be a number"},
		{hs256(t, `[]`), "", InvalidClaims, "Parsing claims failed"},
		{"a.b", "", InvalidToken, "Expected 3 parts in JWT; got 2"},
		{strings.Repeat(".", 100_000), "", InvalidToken, "Expected 3 parts in JWT; got 100001"},
		{"a.b.c", "", InvalidToken, "JWT cryptographic operation failed"},
		{none, "", InvalidToken,
			"Wrong or unsupported encoding algorithm: JWT is unsecured but expected 'alg' was not 'none'"},
		{string(other), "", InvalidToken,
			"No suitable key or wrong key type: None of the keys was able to decode the JWT"},
		{string(strong), "", InvalidToken,
			"No suitable key or wrong key type: No suitable key was found to decode the JWT"},
		{odd, "", InvalidToken, "JWT cryptographic operation failed"},
		{good[:len(good)-2], "", InvalidToken,
			"No suitable key or wrong key type: None of the keys was able to decode the JWT"},
	} {
		got, err := v.Verify(test.token)
		e := &fault.Error{}
		errors.As(err, &e)
		message := e.Detail
		if details := e.Extra["details"]; details != nil {
			message += fmt.Sprint(": ", details)
		}

		if got.Role != test.role || e.Code != test.code || message != test.message ||
			(test.code != "" && e.Kind != fault.Unauthenticated) {
			t.Errorf("%.60s: role %q, error %v; want %q, %s %s", test.token, got.Role, err, test.role,
				test.code, test.message)
		}
	}
}

func TestVerifyAnonymous(t *testing.T) {
	t.Parallel()

	v, err := New(Config{Secret: secret, Anonymous: "anon"})
	if err != nil {
		t.Fatal(err)
	}

	for payload, want := range map[string]string{
		`{"sub":"ann"}`:                      `anon {"role":"anon","sub":"ann"}`,
		`{"role":"authenticated","sub":"a"}`: `authenticated {"role":"authenticated","sub":"a"}`,
		`{"role":null}`:                      `null {"role":"null"}`,
		`{"role":["anon"]}`:                  `["anon"] {"role":"[\"anon\"]"}`,
	} {
		verified, err := v.Verify(hs256(t, payload))
		if got := verified.Role + " " + string(verified.Claims); err != nil || got != want {
			t.Errorf("%s: got %s, %v, want %s", payload, got, err, want)
		}
	}
}

// TestForeignAudience checks that a verifier refuses the tokens of another one, whatever key signed
// them.
func TestForeignAudience(t *testing.T) {
	t.Parallel()

	v, err := New(Config{Secret: secret, ForeignAudience: "platform"})
	if err != nil {
		t.Fatal(err)
	}

	for payload, code := range map[string]string{
		`{"role":"anon"}`:                           "",
		`{"role":"anon","aud":"authenticated"}`:     "",
		`{"role":"anon","aud":"platform"}`:          InvalidClaims,
		`{"role":"anon","aud":["a","platform"]}`:    InvalidClaims,
		`{"role":"anon","aud":["a","platform2"]}`:   "",
		`{"role":"anon","exp":1,"aud":"platform"}`:  InvalidClaims,
		`{"role":"anon","aud":"platform","sub":""}`: InvalidClaims,
	} {
		for range 2 { // verified, and cached
			_, err := v.Verify(hs256(t, payload))
			if got := codeOf(err); got != code {
				t.Errorf("%s: got %q, %v, want %q", payload, got, err, code)
			}
		}
	}
}

// TestClaimed compares the token of claims with the verified token that has them.
func TestClaimed(t *testing.T) {
	t.Parallel()

	v, err := New(Config{Secret: secret})
	if err != nil {
		t.Fatal(err)
	}

	for _, payload := range []string{
		`{"role":"authenticated","sub":"ann","session_id":"s","plan":"pro"}`, `{"sub":1}`, `{"role":["anon"]}`,
	} {
		want, err := v.Verify(hs256(t, payload))
		if err != nil {
			t.Fatal(err)
		}

		if got, err := v.Claimed([]byte(payload)); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %+v, %v, want %+v", payload, got, err, want)
		}
	}

	if _, err := v.Claimed([]byte("[]")); codeOf(err) != InvalidClaims {
		t.Errorf("no object: got %v", err)
	}
}

// codeOf returns the code of a failure, "" for none.
func codeOf(err error) string {
	if err == nil {
		return ""
	}
	return fault.Of(err).Code
}

func TestVerifySubject(t *testing.T) {
	t.Parallel()

	v, err := New(Config{Secret: secret})
	if err != nil {
		t.Fatal(err)
	}

	for payload, want := range map[string]string{
		`{"role":"anon","sub":"ann","session_id":"s"}`: "ann s", `{"role":"anon"}`: " ",
		`{"role":"anon","sub":1,"session_id":"s"}`: " s", `{"role":"anon","Sub":"ann","session_id":null}`: " ",
	} {
		for range 2 { // verified, and cached
			got, err := v.Verify(hs256(t, payload))
			if text := got.Subject + " " + got.Session; err != nil || text != want {
				t.Errorf("%s: got %q, %v, want %q", payload, text, err, want)
			}
		}
	}
}

func TestVerifyByKeySet(t *testing.T) {
	t.Parallel()

	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}

	key, err := jwk.Import(&private.PublicKey)
	if err != nil {
		t.Fatal(err)
	}

	if err := errors.Join(key.Set(jwk.KeyIDKey, "one"), key.Set(jwk.AlgorithmKey, jwa.ES256())); err != nil {
		t.Fatal(err)
	}

	set := jwk.NewSet()
	if err := set.AddKey(key); err != nil {
		t.Fatal(err)
	}

	keys, err := json.Marshal(set)
	if err != nil {
		t.Fatal(err)
	}

	v, err := New(Config{Keys: keys, RoleClaim: `."https://a.b".roles[1]`})
	if err != nil {
		t.Fatal(err)
	}

	for id, want := range map[string]string{"one": "", "two": InvalidToken, "": ""} {
		header := jws.NewHeaders()
		if id != "" {
			if err := header.Set(jws.KeyIDKey, id); err != nil {
				t.Fatal(err)
			}
		}

		token, err := jws.Sign([]byte(`{"https://a.b":{"roles":["x","authenticated"]},"role":"postgres"}`),
			jws.WithKey(jwa.ES256(), private, jws.WithProtectedHeaders(header)))
		if err != nil {
			t.Fatal(err)
		}

		got, err := v.Verify(string(token))
		e := &fault.Error{}
		errors.As(err, &e)

		if e.Code != want {
			t.Errorf("key %q: %v, want %q", id, err, want)
		}
		if want == "" && (got.Role != "authenticated" ||
			!strings.Contains(string(got.Claims), `"role":"authenticated"`)) {
			t.Errorf("key %q: %s %s", id, got.Role, got.Claims)
		}
	}

	// A public key is no secret of HS256.
	forged, _ := jws.Sign([]byte(`{"role":"service_role"}`), jws.WithKey(jwa.HS256(), keys))
	if _, err := v.Verify(string(forged)); err == nil {
		t.Error("got no error for a token signed with the public key as a secret")
	}
}

// TestCachedTokens checks that a token is verified again after CacheTTL.
func TestCachedTokens(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		v, err := New(Config{Secret: []byte(strings.Repeat("s", 32)), CacheTTL: time.Minute})
		if err != nil {
			t.Fatal(err)
		}

		token, err := jws.Sign([]byte(`{"role":"authenticated"}`),
			jws.WithKey(jwa.HS256(), []byte(strings.Repeat("s", 32))))
		if err != nil {
			t.Fatal(err)
		}

		if _, err := v.Verify(string(token)); err != nil {
			t.Fatal(err)
		}

		v.keys = nil

		time.Sleep(time.Minute - 1)
		if _, err := v.Verify(string(token)); err != nil {
			t.Errorf("cached token: got %v, want no error", err)
		}

		time.Sleep(time.Nanosecond)
		if _, err := v.Verify(string(token)); err == nil {
			t.Error("got no error for a token beyond its cache TTL, without a key")
		}
	})
}

func TestConfig(t *testing.T) {
	t.Parallel()

	for _, bad := range []Config{
		{Keys: []byte(`{"kty":"oct","k":"c2hvcnQ"}`)}, {Secret: []byte("short")}, {Keys: []byte("{")},
		{RoleClaim: "role"}, {RoleClaim: ".a[x]"}, {RoleClaim: `."a`}, {RoleClaim: ".a[1"}, {RoleClaim: "."},
		{RoleClaim: ".a..b"}, {RoleClaim: `.a[?(@ = "x")]`}, {RoleClaim: `.a[?(@ == "x")].b`},
		{RoleClaim: `$.a[?search(@, "(")]`}, {RoleClaim: `["a`},
	} {
		if _, err := New(bad); err == nil {
			t.Errorf("New(%s %s): got no error", bad.Secret, bad.RoleClaim)
		}
	}
}

func TestRolePath(t *testing.T) {
	t.Parallel()

	var claims any
	if err := json.Unmarshal(
		[]byte(`{"role":"r","app":{"roles":["a1","b2",3],"it's":"i"},"https://x":{"role":"x"},"roles":[7,"author","editor","reader"],"n":5}`), &claims,
	); err != nil {
		t.Fatal(err)
	}

	for path, want := range map[string]string{
		"": "r", ".role": "r", "$.role": "r", ".app.roles[1]": "b2", `$["https://x"].role`: "x",
		`$['https://x']['role']`: "x", `."https://x".role`: "x", ".app.roles[2]": "3", ".app.roles[3]": "",
		".nothing.at": "", ".n": "5", ".n[0]": "", ".role[0]": "", `.roles[?(@ == "editor")]`: "editor",
		`.roles[?(@ != "author")]`: "editor", `.roles[?(@ ^== "ed")]`: "editor", `.roles[?(@ ==^ "der")]`: "reader",
		`.roles[?(@ *== "tho")]`: "author", `.roles[?(@ == "none")]`: "", `$.roles[?@ == 'reader']`: "reader",
		`$.roles[?search(@, "^(read|edit)")]`: "editor", `$.roles[?(search(@, 'x'))]`: "", `.role[?(@ == "r")]`: "",
		`.app[?(@ == "i")]`: "",
	} {
		steps, err := rolePath(path)
		if got := roleAt(claims, steps); err != nil || got != want {
			t.Errorf("%s: got %q, %v, want %q", path, got, err, want)
		}
	}
}
