package token

import (
	"crypto/ecdsa"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/lestrrat-go/jwx/v3/jwa"
	"github.com/lestrrat-go/jwx/v3/jws"

	"github.com/socle-dev/socle/internal/fault"
)

var (
	user    = uuid.MustParse("01920000-0000-7000-8000-000000000001")
	session = uuid.MustParse("01920000-0000-7000-8000-000000000002")
	now     = time.Date(2026, 11, 21, 5, 20, 0, 0, time.UTC)
)

func mint(t testing.TB, r *Keyring) string {
	t.Helper()

	token, _, err := r.Sign(user, session, now)
	if err != nil {
		t.Fatal(err)
	}

	return token
}

// requireInvalid fails the test unless Verify returns invalid_token.
func requireInvalid(t *testing.T, r *Keyring, name, token string) {
	t.Helper()

	claims, err := r.Verify(token, now)
	if f := fault.Of(err); f == nil || f.Kind != fault.Unauthenticated || f.Code != "invalid_token" ||
		claims != (Claims{}) {
		t.Errorf("Verify of %s = %v, %v, want invalid_token (%.200s)", name, claims, err, token)
	}
}

func encode(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }

func TestVerify(t *testing.T) {
	t.Parallel()

	r := NewKeyring(newKey(t))
	token, want, err := r.Sign(user, session, now.Add(999*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}

	if diff := cmp.Diff(Claims{user, session, now, now.Add(time.Hour)}, want); diff != "" {
		t.Errorf("Sign (-want +got):\n%s", diff)
	}

	for _, after := range []time.Duration{-leeway, 0, time.Hour - 1} {
		got, err := r.Verify(token, now.Add(after))
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("Verify after %v: %v (-want +got):\n%s", after, err, diff)
		}
	}

	for after, want := range map[time.Duration]string{
		-leeway - 1: "invalid_token", time.Hour: "token_expired", 100 * 365 * 24 * time.Hour: "token_expired",
	} {
		_, err := r.Verify(token, now.Add(after))
		if f := fault.Of(err); f == nil || f.Kind != fault.Unauthenticated || f.Code != want {
			t.Errorf("Verify after %v = %v, want %s", after, err, want)
		}
	}

	if again := mint(t, r); again == mint(t, r) {
		t.Error("two tokens of one session at one moment are equal, want each with an id of its own")
	}
}

func TestOlderKeys(t *testing.T) {
	t.Parallel()

	one, two, three := newKey(t), newKey(t), newKey(t)
	token := mint(t, NewKeyring(one))

	r := NewKeyring(two, three, one)
	if _, err := r.Verify(token, now); err != nil {
		t.Errorf("Verify of an older key's token = %v", err)
	}

	if _, err := NewKeyring(two).Verify(mint(t, r), now); err != nil {
		t.Errorf("Verify = %v, want a keyring to sign with its active key", err)
	}

	requireInvalid(t, NewKeyring(two), "a token whose key is gone", token)
}

func TestJWKS(t *testing.T) {
	t.Parallel()

	one, two := newKey(t), newKey(t)
	var set struct{ Keys []map[string]string }
	if err := json.Unmarshal(NewKeyring(one, two).JWKS(), &set); err != nil {
		t.Fatal(err)
	}

	if len(set.Keys) != 2 {
		t.Fatalf("JWKS has %d keys, want 2", len(set.Keys))
	}

	for i, key := range []Key{one, two} {
		got := set.Keys[i]
		if got["kid"] != key.ID || got["alg"] != "ES256" || got["use"] != "sig" {
			t.Errorf("key %d of JWKS = %v, want id %s for ES256 signatures", i, got, key.ID)
		}

		want := []string{"alg", "crv", "kid", "kty", "use", "x", "y"}
		if diff := cmp.Diff(want, slices.Sorted(maps.Keys(got))); diff != "" {
			t.Errorf("members of key %d, none of them private (-want +got):\n%s", i, diff)
		}
	}
}

// forge signs any header and body, even ones that no library would write.
func forge(t *testing.T, key Key, header, body string) string {
	t.Helper()

	signed := encode(header) + "." + encode(body)
	sum := sha256.Sum256([]byte(signed))
	r, s, err := ecdsa.Sign(rand.Reader, key.private, sum[:])
	if err != nil {
		t.Fatal(err)
	}

	var signature [64]byte
	r.FillBytes(signature[:32])
	s.FillBytes(signature[32:])

	return signed + "." + encode(string(signature[:]))
}

// header returns a valid token header with another type.
func header(key Key, typ string) string {
	return `{"alg":"ES256","kid":"` + key.ID + `","typ":"` + typ + `"}`
}

// valid returns the claims of a valid token.
func valid() map[string]any {
	return map[string]any{
		"iss": issuer, "aud": Audience, "sub": user.String(), "sid": session.String(), "jti": "1",
		"iat": now.Unix(), "nbf": now.Unix(), "exp": now.Add(time.Hour).Unix(),
	}
}

// body returns valid claims with one replaced or, for the value "", removed.
func body(t *testing.T, name, value string) string {
	t.Helper()

	claims := valid()
	delete(claims, name)

	rest, err := json.Marshal(claims)
	if err != nil {
		t.Fatal(err)
	}

	if value == "" {
		return string(rest)
	}

	return `{"` + name + `":` + value + `,` + string(rest[1:])
}

// B1.2: malformed tokens.
func TestVerifyMalformed(t *testing.T) {
	t.Parallel()

	r := NewKeyring(newKey(t))
	good := mint(t, r)
	s := strings.Split(good, ".")
	last := good[len(good)-1]
	spare := "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	for name, token := range map[string]string{
		"nothing":             "",
		"a word":              "token",
		"two dots":            "..",
		"two segments":        s[0] + "." + s[1],
		"four segments":       good + ".",
		"five segments":       good + ".a.b",
		"100 000 dots":        strings.Repeat(".", 100_000),
		"16 kB":               strings.Repeat("a", 16<<10),
		"16 kB of payload":    s[0] + "." + strings.Repeat("a", 16<<10) + "." + s[2],
		"no base64":           "!.!.!",
		"standard base64":     s[0] + "." + s[1] + ".+/" + s[2][2:],
		"padding":             good + "==",
		"a line break":        good + "\n",
		"a line break inside": s[0] + "\r\n." + s[1] + "." + s[2],
		"a space before":      " " + good,
		"NUL":                 good + "\x00",
		"spare bits":          good[:len(good)-1] + string(spare[strings.IndexByte(spare, last)^1]),
		"no JSON":             encode("hello") + "." + s[1] + "." + s[2],
		"header null":         encode("null") + "." + s[1] + "." + s[2],
		"header list":         encode("[]") + "." + s[1] + "." + s[2],
		"JSON serialization":  `{"payload":"` + s[1] + `","protected":"` + s[0] + `","signature":"` + s[2] + `"}`,
	} {
		requireInvalid(t, r, name, token)
	}
}

// B1.4: tokens edited after signing.
func TestVerifyEdited(t *testing.T) {
	t.Parallel()

	r := NewKeyring(newKey(t))
	s := strings.Split(mint(t, r), ".")
	other := strings.Split(mint(t, r), ".")

	body, err := base64.RawURLEncoding.DecodeString(s[1])
	if err != nil {
		t.Fatal(err)
	}

	for name, edit := range map[string][2]string{
		"subject":      {user.String(), session.String()},
		"session":      {session.String(), user.String()},
		"later expiry": {`"exp":1`, `"exp":2`},
		"a role":       {`{`, `{"role":1,`},
	} {
		edited := strings.Replace(string(body), edit[0], edit[1], 1)
		if edited == string(body) {
			t.Fatalf("%s: nothing to edit in %s", name, body)
		}

		requireInvalid(t, r, name, s[0]+"."+encode(edited)+"."+s[2])
	}

	requireInvalid(t, r, "another token's signature", s[0]+"."+s[1]+"."+other[2])
	requireInvalid(t, r, "no signature", s[0]+"."+s[1]+".")
	requireInvalid(t, r, "a short signature", s[0]+"."+s[1]+"."+s[2][:40])
	requireInvalid(t, r, "a zero signature", s[0]+"."+s[1]+"."+encode(strings.Repeat("\x00", 64)))

	signature, err := base64.RawURLEncoding.DecodeString(s[2])
	if err != nil {
		t.Fatal(err)
	}

	for i := range signature {
		flipped := slices.Clone(signature)
		flipped[i] ^= 1 << (i % 8)
		requireInvalid(t, r, "a flipped bit", s[0]+"."+s[1]+"."+encode(string(flipped)))
	}
}

// B1.3 and B1.5: other algorithms.
func TestVerifyAlgorithm(t *testing.T) {
	t.Parallel()

	key := newKey(t)
	r := NewKeyring(key)
	s := strings.Split(mint(t, r), ".")
	for _, alg := range []string{"none", "None", "nOnE", "", "HS256", "es256", "ES384", "RS256", "EdDSA"} {
		header := encode(`{"alg":"` + alg + `","kid":"` + key.ID + `","typ":"at+jwt"}`)
		requireInvalid(t, r, "alg "+alg+", no signature", header+"."+s[1]+".")
		requireInvalid(t, r, "alg "+alg+", kept signature", header+"."+s[1]+"."+s[2])
	}

	der, err := x509.MarshalPKIXPublicKey(&key.private.PublicKey)
	if err != nil {
		t.Fatal(err)
	}

	point, err := key.private.PublicKey.Bytes()
	if err != nil {
		t.Fatal(err)
	}

	printed := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
	for _, alg := range []string{"HS256", "ES256"} {
		for name, known := range map[string][]byte{
			"PEM": printed, "PEM without its line break": printed[:len(printed)-1], "DER": der, "point": point,
			"JWKS": r.JWKS(), "base64 DER": []byte(base64.StdEncoding.EncodeToString(der)), "empty": {},
			"secret": []byte("secret"),
		} {
			signed := encode(`{"alg":"`+alg+`","kid":"`+key.ID+`","typ":"at+jwt"}`) + "." + s[1]
			mac := hmac.New(sha256.New, known)
			mac.Write([]byte(signed))
			requireInvalid(t, r, alg+" keyed with "+name, signed+"."+encode(string(mac.Sum(nil))))
		}
	}
}

// B1.6: headers with an unknown key id or unsupported extensions.
func TestVerifyHeader(t *testing.T) {
	t.Parallel()

	key := newKey(t)
	r := NewKeyring(key)
	good := body(t, "jti", `"2"`)
	for _, kid := range []string{
		``, `"kid":"",`, `"kid":null,`, `"kid":1,`, `"kid":["` + key.ID + `"],`, `"kid":{},`, `"kid":"../../dev/null",`,
		`"kid":"' or 1=1 --",`, `"kid":"` + strings.Repeat("k", 10_000) + `",`,
		`"kid":"` + strings.Repeat("k", 4_000) + `",`, `"kid":"` + key.ID + `","crit":["exp"],"exp":1,`,
		`"kid":"` + key.ID + `","crit":[],`, `"kid":"` + key.ID + `","b64":false,"crit":["b64"],`,
	} {
		requireInvalid(t, r, "header with "+kid, forge(t, key, `{`+kid+`"alg":"ES256","typ":"at+jwt"}`, good))
	}

	// The good header passes, so the cases above fail because of their headers.
	if _, err := r.Verify(forge(t, key, header(key, tokenType), good), now); err != nil {
		t.Errorf("Verify of the good header = %v", err)
	}
}

// B1.7: tokens that contain or reference their own key.
func TestVerifyForeignKey(t *testing.T) {
	t.Parallel()

	key, theirs := newKey(t), newKey(t)
	r := NewKeyring(key)
	fetched := false

	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fetched = true
		w.Write(NewKeyring(theirs).JWKS())
	}))
	defer server.Close()

	public, err := theirs.public()
	if err != nil {
		t.Fatal(err)
	}

	good := []byte(body(t, "jti", `"2"`))
	for name, value := range map[string]any{
		jws.JWKKey: public, jws.JWKSetURLKey: server.URL, jws.X509URLKey: server.URL,
	} {
		for _, kid := range []string{key.ID, theirs.ID} {
			header := jws.NewHeaders()
			for k, v := range map[string]any{name: value, jws.KeyIDKey: kid, jws.TypeKey: tokenType} {
				if err := header.Set(k, v); err != nil {
					t.Fatal(err)
				}
			}

			token, err := jws.Sign(good, jws.WithKey(jwa.ES256(), theirs.private, jws.WithProtectedHeaders(header)))
			if err != nil {
				t.Fatal(err)
			}

			requireInvalid(t, r, "a token with "+name, string(token))
		}
	}

	server.Close()

	if fetched {
		t.Error("Verify fetched the key that the token names")
	}
}

// B1.8 and B1.9: signed by the right key, but for another purpose or with wrong claims.
func TestVerifyClaims(t *testing.T) {
	t.Parallel()

	key := newKey(t)
	r := NewKeyring(key)

	good := body(t, "jti", `"2"`)
	if _, err := r.Verify(forge(t, key, header(key, tokenType), good), now); err != nil {
		t.Fatalf("Verify of the good claims = %v", err)
	}

	for _, typ := range []string{"JWT", "rt+jwt", "AT+JWT", "application/at+jwt"} {
		requireInvalid(t, r, "type "+typ, forge(t, key, header(key, typ), good))
	}

	requireInvalid(t, r, "a refresh token", NewSecret())

	for name, values := range map[string][]string{
		"iss": {"", `null`, `"other"`, `1`, `["socle"]`},
		"aud": {"", `null`, `"socle-project"`, `["socle-platform"]`, `1`, `{}`},
		"sub": {"", `null`, `1`, `""`, `"root"`, `"` + strings.ToUpper(uuid.Max.String()) + `"`,
			`"urn:uuid:` + user.String() + `"`, `"` + uuid.Nil.String() + `"`},
		"sid": {"", `null`, `1`, `""`, `"x"`, `"{` + session.String() + `}"`},
		"jti": {"", `null`, `1`, `""`},
		"iat": {"", `null`, `"1"`, `99999999999`, `1e400`},
		"nbf": {"", `null`, `"1"`, `99999999999`, `1e400`, `true`},
		"exp": {"", `null`, `"99999999999"`, `1e400`, `-1e400`, `99999999999.5`, `true`, `[99999999999]`, `99999999999`,
			`9223372036854775807`, `99999999999999999999`},
	} {
		for _, value := range values {
			requireInvalid(t, r, name+" "+value, forge(t, key, header(key, tokenType), body(t, name, value)))
		}
	}

	for _, text := range []string{"", "null", "[]", "1", `"x"`, "{", "{}", good + good, "\xff"} {
		requireInvalid(t, r, "body "+text, forge(t, key, header(key, tokenType), text))
	}

	for _, exp := range []string{"-1", "0", "1", "-9223372036854775808"} {
		_, err := r.Verify(forge(t, key, header(key, tokenType), body(t, "exp", exp)), now)
		if f := fault.Of(err); f == nil || f.Code != "token_expired" {
			t.Errorf("Verify with exp %s = %v, want token_expired", exp, err)
		}
	}
}

func FuzzVerify(f *testing.F) {
	r := NewKeyring(newKey(f))
	good := mint(f, r)
	s := strings.Split(good, ".")
	for _, seed := range []string{
		"", "..", "a.b.c", good, s[0] + ".." + s[2], encode(`{"alg":"none"}`) + "." + s[1] + ".",
		encode(`{"kid":{}}`) + "." + s[1] + "." + s[2], "eyJ.eyJ.eyJ", strings.Repeat(".", 9000),
	} {
		f.Add(seed)
	}

	f.Fuzz(func(t *testing.T, token string) {
		if _, err := r.Verify(token, now); token != good && !fault.Is(err, fault.Unauthenticated) {
			t.Errorf("Verify(%q) = %v, want Unauthenticated", token, err)
		}
	})
}
