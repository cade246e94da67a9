package server_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/lestrrat-go/jwx/v3/jwa"
	"github.com/lestrrat-go/jwx/v3/jwk"
	"github.com/lestrrat-go/jwx/v3/jws"
)

// signer is an external issuer of tokens for a project.
type signer struct {
	t         *testing.T
	algorithm jwa.SignatureAlgorithm
	private   crypto.Signer
	kid       string
	uuid      string // UUID of the public key at the project
}

// signer generates a key pair and registers the public key at the project.
func (s titlesProject) signer(algorithm jwa.SignatureAlgorithm, kid string) signer {
	s.t.Helper()

	k := signer{t: s.t, algorithm: algorithm, kid: kid}
	var err error
	if algorithm == jwa.ES256() {
		k.private, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	} else {
		k.private, err = rsa.GenerateKey(rand.Reader, 2048)
	}

	if err != nil {
		s.t.Fatal(err)
	}

	k.uuid = s.Create("/projects/"+s.Project+"/jwt-keys", k.public())
	return k
}

// public returns the public key as a JSON Web Key.
func (k signer) public() string {
	k.t.Helper()

	key, err := jwk.Import(k.private.Public())
	if err != nil {
		k.t.Fatal(err)
	}

	if err := key.Set(jwk.KeyIDKey, k.kid); err != nil {
		k.t.Fatal(err)
	}

	text, err := json.Marshal(key)
	if err != nil {
		k.t.Fatal(err)
	}

	return string(text)
}

// sign signs a payload; headers are names and values for the token's header.
func (k signer) sign(payload string, headers ...any) string {
	k.t.Helper()

	return signed(k.t, k.algorithm, k.private, payload, append([]any{"kid", k.kid}, headers...)...)
}

func signed(t *testing.T, algorithm jwa.SignatureAlgorithm, key any, payload string, headers ...any) string {
	t.Helper()

	protected := jws.NewHeaders()
	for i := 0; i < len(headers); i += 2 {
		if err := protected.Set(headers[i].(string), headers[i+1]); err != nil {
			t.Fatal(err)
		}
	}

	text, err := jws.Sign([]byte(payload), jws.WithKey(algorithm, key, jws.WithProtectedHeaders(protected)))
	if err != nil {
		t.Fatal(err)
	}

	return string(text)
}

// compact serializes a token verbatim from header, payload and signature.
func compact(header, payload, signature string) string {
	encode := base64.RawURLEncoding.EncodeToString
	return encode([]byte(header)) + "." + encode([]byte(payload)) + "." + signature
}

// TestTokensOfOwnKeys checks that tokens of a project's own keys are accepted, beside those of its
// secret, until the key is deleted.
func TestTokensOfOwnKeys(t *testing.T) {
	t.Parallel()

	s := newTitlesProject(t)
	elliptical, factored := s.signer(jwa.ES256(), "elliptical"), s.signer(jwa.RS256(), "factored")

	taken := func(token string) func() bool {
		return func() bool {
			status, _ := s.rows(s.Project, "GET", "/titles", "", "Authorization: Bearer "+token)
			return status == 200
		}
	}

	platform := s.want(401, "", "GET", "/titles", "", "Authorization: Bearer "+s.OtherUser().Token)
	if !strings.Contains(platform, "not valid for this project") {
		t.Errorf("got %s for a token of a platform user without a role", platform)
	}

	service := `{"role":"service_role"}`
	eventually(t, "the new keys are known", taken(factored.sign(service)))

	for name, token := range map[string]string{
		"ES256": elliptical.sign(service),
		"RS256": factored.sign(service), "the secret": s.token(map[string]any{"role": "service_role"}),
		"no kid":        signed(t, jwa.ES256(), elliptical.private, service),
		"empty kid":     signed(t, jwa.RS256(), factored.private, service, "kid", ""),
		"later expiry":  elliptical.sign(`{"role":"service_role","exp":99999999999}`),
		"a short delay": elliptical.sign(`{"role":"service_role","nbf":1}`),
	} {
		if !taken(token)() {
			t.Errorf("%s: the token is rejected", name)
		}
	}

	// another project rejects them
	other := s.CreateProject("other")
	if status, text := s.rows(other, "GET", "/titles", "",
		"Authorization: Bearer "+elliptical.sign(service)); status != 401 {
		t.Errorf("at another project: got %d %s, want 401", status, text)
	}

	s.Delete("/projects/" + s.Project + "/jwt-keys/" + elliptical.uuid).Want(200)
	eventually(t, "tokens of the key that was removed are refused", func() bool {
		return !taken(elliptical.sign(service))()
	})

	if !taken(factored.sign(service))() || !taken(s.token(map[string]any{"role": "service_role"}))() {
		t.Error("with one key the other, or the secret, was removed")
	}
}

// TestForgedTokens checks that forged tokens are rejected, without any outgoing request.
func TestForgedTokens(t *testing.T) {
	t.Parallel()

	s := newTitlesProject(t)
	elliptical, factored := s.signer(jwa.ES256(), "elliptical"), s.signer(jwa.RS256(), "factored")
	mallory := signer{t: t, algorithm: jwa.ES256(), kid: "elliptical"}

	var err error
	if mallory.private, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		t.Fatal(err)
	}

	var asked atomic.Int32
	lair := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		_, _ = w.Write([]byte(`{"keys":[` + mallory.public() + `]}`))
	}))

	t.Cleanup(lair.Close)

	malloryKey, err := jwk.ParseKey([]byte(mallory.public()))
	if err != nil {
		t.Fatal(err)
	}

	const service = `{"role":"service_role"}`
	good := elliptical.sign(service)
	eventually(t, "the new keys are known", func() bool {
		status, _ := s.rows(s.Project, "GET", "/titles", "", "Authorization: Bearer "+good)
		return status == 200
	})

	parts := strings.Split(good, ".")
	flip := func(i int) string {
		raw, err := base64.RawURLEncoding.DecodeString(parts[2])
		if err != nil {
			t.Fatal(err)
		}

		raw[i] ^= 1
		return parts[0] + "." + parts[1] + "." + base64.RawURLEncoding.EncodeToString(raw)
	}

	edited := func(payload string) string {
		return parts[0] + "." + base64.RawURLEncoding.EncodeToString([]byte(payload)) + "." + parts[2]
	}

	der, err := x509.MarshalPKIXPublicKey(factored.private.Public())
	if err != nil {
		t.Fatal(err)
	}

	printed := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})

	ecDER, err := x509.MarshalPKIXPublicKey(elliptical.private.Public())
	if err != nil {
		t.Fatal(err)
	}

	forged := map[string]string{
		"alg none":          compact(`{"alg":"none"}`, service, ""),
		"alg None":          compact(`{"alg":"None"}`, service, ""),
		"alg nOnE, signed":  compact(`{"alg":"nOnE"}`, service, parts[2]),
		"alg empty":         compact(`{"alg":""}`, service, parts[2]),
		"alg absent":        compact(`{}`, service, parts[2]),
		"alg a list":        compact(`{"alg":["ES256"]}`, service, parts[2]),
		"no signature":      parts[0] + "." + parts[1] + ".",
		"two parts":         parts[0] + "." + parts[1],
		"payload edited":    edited(`{"role":"service_role","sub":"b"}`),
		"expiry edited":     edited(`{"role":"service_role","exp":99999999999}`),
		"first bit flipped": flip(0),
		"last bit flipped":  flip(63),
		"signature of zeros": parts[0] + "." + parts[1] + "." +
			base64.RawURLEncoding.EncodeToString(make([]byte, 64)),
		"HS256 by PEM": signed(t, jwa.HS256(), printed, service, "kid", "factored"),
		"HS256 by trimmed PEM": signed(t, jwa.HS256(), []byte(strings.TrimSpace(string(printed))), service,
			"kid", "factored"),
		"HS256 by DER":     signed(t, jwa.HS256(), der, service, "kid", "factored"),
		"HS256 by the JWK": signed(t, jwa.HS256(), []byte(factored.public()), service, "kid", "factored"),
		"HS256 by the modulus": signed(t, jwa.HS256(), factored.private.Public().(*rsa.PublicKey).N.Bytes(), service,
			"kid", "factored"),
		"HS256 by EC DER": signed(t, jwa.HS256(), ecDER, service, "kid", "elliptical"),
		"HS256 by a word": signed(t, jwa.HS256(), []byte("secret"), service),
		"HS384 by the secret": signed(t, jwa.HS384(),
			[]byte(s.Get("/projects/"+s.Project+"/jwt-secret").Want(200).Get("secret").(string)), service),
		"RS512":             signed(t, jwa.RS512(), factored.private, service, "kid", "factored"),
		"PS256":             signed(t, jwa.PS256(), factored.private, service, "kid", "factored"),
		"another's key":     mallory.sign(service),
		"another's kid":     signed(t, jwa.ES256(), elliptical.private, service, "kid", "factored"),
		"kid a list":        compact(`{"alg":"ES256","kid":["elliptical"]}`, service, parts[2]),
		"kid a number":      compact(`{"alg":"ES256","kid":7}`, service, parts[2]),
		"kid a path":        mallorySigned(t, mallory, "../../dev/null"),
		"kid of SQL":        mallorySigned(t, mallory, `' or true; --`),
		"kid of 10 kB":      mallorySigned(t, mallory, strings.Repeat("k", 10_000)),
		"jwk":               mallory.sign(service, "jwk", malloryKey),
		"jku":               mallory.sign(service, "jku", lair.URL),
		"x5u":               mallory.sign(service, "x5u", lair.URL),
		"crit":              compact(`{"alg":"ES256","crit":["b64"],"b64":false}`, service, parts[2]),
		"a platform token":  s.OtherUser().Token, // without a role in the project
		"a changed one":     s.Token[:len(s.Token)-4] + "AAAA",
		"role postgres":     elliptical.sign(`{"role":"postgres"}`),
		"role of the login": elliptical.sign(`{"role":"` + s.DatabaseName() + `_service"}`),
		"role service":      elliptical.sign(`{"role":"service"}`),
		"hostile role":      elliptical.sign(`{"role":"anon\"; --"}`),
		"role in a list":    elliptical.sign(`{"role":["service_role"]}`),
		"no role":           elliptical.sign(`{"sub":"ann"}`),
		"expired": elliptical.sign(
			`{"role":"service_role","exp":` + strconv.FormatInt(time.Now().Unix()-60, 10) + `}`,
		),
		"expired long ago":      elliptical.sign(`{"role":"service_role","exp":-1}`),
		"exp a text":            elliptical.sign(`{"role":"service_role","exp":"99999999999"}`),
		"exp beyond numbers":    elliptical.sign(`{"role":"service_role","exp":1e400}`),
		"nbf ahead":             elliptical.sign(`{"role":"service_role","nbf":99999999999}`),
		"iat ahead":             elliptical.sign(`{"role":"service_role","iat":99999999999}`),
		"aud a number":          elliptical.sign(`{"role":"service_role","aud":7}`),
		"claims that are none":  elliptical.sign(`7`),
		"claims without syntax": elliptical.sign(`{"role":`),
	}
	for name, token := range forged {
		status, text := s.rows(s.Project, "GET", "/titles", "", "Authorization: Bearer "+token)
		if status != 401 {
			t.Errorf("%s: got %d %s, want 401", name, status, text)
		}
	}

	if n := asked.Load(); n != 0 {
		t.Errorf("forged tokens cause %d outgoing requests", n)
	}

	// the platform API rejects a project's token
	s.Anonymous().Send("GET", "/projects", "", "Authorization: Bearer "+good).Want(401)
}

func mallorySigned(t *testing.T, mallory signer, kid string) string {
	t.Helper()

	return signed(t, jwa.ES256(), mallory.private, `{"role":"service_role"}`, "kid", kid)
}

// TestSchemasOfRows checks that a project selects the exposed schemas, and that their tables stay
// closed until a grant.
func TestSchemasOfRows(t *testing.T) {
	t.Parallel()

	s := newTitlesProject(t)
	owner := s.Server.Projects().Open(uuid.MustParse(s.Project)).Owner()
	run := func(sql string) {
		t.Helper()

		if _, err := owner.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}

	run(`create schema api;
		create table api.orders (id int primary key, made text);
		insert into api.orders values (1, 'x');
		create function api.two() returns int language sql as 'select 2'`)
	secret, anon := "apikey: "+s.secret, "apikey: "+s.publishable
	s.want(
		406,
		`{"code":"PGRST106","details":null,"hint":"Only the following schemas are exposed: public",`+
			`"message":"Invalid schema: api"}`,
		"GET", "/orders", "", secret, "Accept-Profile: api",
	)

	settings := "/projects/" + s.Project + "/rest-settings"
	s.Put(settings, `{"schemas": ["public", "api"]}`).Want(200)

	eventually(t, "the schema is shown, and closed", func() bool {
		status, _ := s.rows(s.Project, "GET", "/orders", "", anon, "Accept-Profile: api")
		return status == 401 // PGRST106 was 406
	})

	for _, key := range []string{secret, anon} {
		if status, text := s.rows(s.Project, "GET", "/orders", "", key, "Accept-Profile: api"); status != 401 &&
			status != 403 || !strings.Contains(text, `"42501"`) {
			t.Errorf("before any grant: got %d %s", status, text)
		}
	}

	run(`grant usage on schema api to anon, service_role; grant select on api.orders to service_role`)
	s.want(200, `[{"id":1,"made":"x"}]`, "GET", "/orders", "", secret, "Accept-Profile: api")

	if status, text := s.rows(s.Project, "GET", "/orders", "", anon, "Accept-Profile: api"); status != 401 ||
		!strings.Contains(text, "permission denied for table orders") {
		t.Errorf("anon without a grant: got %d %s", status, text)
	}

	s.want(404, "", "GET", "/orders", "", secret)
	s.want(200, "[]", "GET", "/titles", "", secret)
	run(`grant insert on api.orders to service_role; grant execute on function api.two() to service_role`)
	s.want(201, "", "POST", "/orders", `{"id": 2, "made": "y"}`, secret, "Content-Profile: api")
	s.want(200, "2", "POST", "/rpc/two", "{}", secret, "Content-Profile: api")

	for _, schema := range []string{
		"auth", "storage", "forms", "realtime", "socle", "pg_catalog", "information_schema", "none",
	} {
		if status, text := s.rows(s.Project, "GET", "/pg_class", "", secret, "Accept-Profile: "+schema); status !=
			406 || !strings.Contains(text, "PGRST106") {
			t.Errorf("schema %s: got %d %s, want 406", schema, status, text)
		}
	}

	// the first schema is the default; a missing one exposes nothing and breaks nothing
	s.Put(settings, `{"schemas": ["api", "later"]}`).Want(200)

	if text := string(s.Get("/projects/" + s.Project + "/openapi.json").Want(200).Body); !strings.Contains(text,
		`"/orders"`) {
		t.Errorf("the project's OpenAPI document does not describe the schema api: %s", text)
	}

	eventually(t, "api is the default", func() bool {
		status, _ := s.rows(s.Project, "GET", "/orders?select=id&id=eq.1", "", secret)
		return status == 200
	})

	s.want(406, "", "GET", "/titles", "", secret, "Accept-Profile: public")
	s.want(404, "", "GET", "/things", "", secret, "Accept-Profile: later")
	run(`create schema later;
		create table later.things (id int);
		grant usage on schema later to service_role; grant select on later.things to service_role`)

	eventually(t, "the later schema is there", func() bool {
		status, _ := s.rows(s.Project, "GET", "/things", "", secret, "Accept-Profile: later")
		return status == 200
	})

	other := titlesProject{API: s.WithProject(s.CreateProject("other")), t: t}
	other.want(406, "", "GET", "/orders", "", "apikey: "+other.key("server", "secret"), "Accept-Profile: api")
}
