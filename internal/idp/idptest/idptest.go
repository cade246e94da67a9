// Package idptest is an identity provider for tests: OpenID Connect, and GitHub's interface.
package idptest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lestrrat-go/jwx/v3/jwa"
	"github.com/lestrrat-go/jwx/v3/jwk"
	"github.com/lestrrat-go/jwx/v3/jws"
)

// The provider's only client.
const (
	ClientID = "socle-test"
	Secret   = "secret of the client"
)

// Provider signs everyone in as the person in Claims, without asking.
type Provider struct {
	URL      string
	KeyReads atomic.Int64 // requests for the keys
	t        testing.TB
	key      jwk.Key

	mu     sync.Mutex
	claims map[string]any
	codes  map[string]url.Values // authorization requests by code
}

// New starts a provider.
func New(t testing.TB) *Provider {
	t.Helper()

	p := &Provider{t: t, codes: map[string]url.Values{}}
	p.Rotate()

	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/openid-configuration", p.metadata)
	mux.HandleFunc("GET /keys", p.keys)
	mux.HandleFunc("GET /login/oauth/authorize", p.authorize)
	mux.HandleFunc("POST /login/oauth/access_token", p.token)
	mux.HandleFunc("GET /userinfo", p.person)
	mux.HandleFunc("GET /api/v3/user", p.person)
	mux.HandleFunc("GET /api/v3/user/emails", p.addresses)

	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	p.URL = server.URL

	return p
}

// Rotate replaces the provider's key.
func (p *Provider) Rotate() {
	p.t.Helper()

	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		p.t.Fatal(err)
	}

	key, err := jwk.Import(private)
	if err == nil {
		err = jwk.AssignKeyID(key)
	}
	if err != nil {
		p.t.Fatal(err)
	}

	p.mu.Lock()
	defer p.mu.Unlock()

	p.key = key
}

// Person sets the claims about the person who signs in.
func (p *Provider) Person(claims map[string]any) {
	p.mu.Lock()
	defer p.mu.Unlock()

	p.claims = claims
}

// IDToken returns a token with these claims beside the person's. nil removes a claim.
func (p *Provider) IDToken(changes map[string]any) string {
	p.t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()

	all := map[string]any{"iss": p.URL, "aud": ClientID, "exp": time.Now().Add(time.Hour).Unix(),
		"iat": time.Now().Unix()}
	maps.Copy(all, p.claims)
	maps.Copy(all, changes)
	maps.DeleteFunc(all, func(_ string, value any) bool { return value == nil })

	text, err := json.Marshal(all)
	if err != nil {
		p.t.Fatal(err)
	}

	idToken, err := jws.Sign(text, jws.WithKey(jwa.ES256(), p.key))
	if err != nil {
		p.t.Fatal(err)
	}

	return string(idToken)
}

func (p *Provider) metadata(w http.ResponseWriter, _ *http.Request) {
	p.respond(w, map[string]any{"issuer": p.URL, "authorization_endpoint": p.URL + "/login/oauth/authorize",
		"token_endpoint": p.URL + "/login/oauth/access_token", "userinfo_endpoint": p.URL + "/userinfo",
		"jwks_uri": p.URL + "/keys", "code_challenge_methods_supported": []string{"S256"}})
}

func (p *Provider) keys(w http.ResponseWriter, _ *http.Request) {
	p.KeyReads.Add(1)
	p.mu.Lock()
	defer p.mu.Unlock()

	public, err := p.key.PublicKey()
	if err != nil {
		p.t.Error(err)
	}

	p.respond(w, map[string]any{"keys": []any{public, map[string]string{"kty": "unknown"}}})
}

// authorize sends the browser back with a code.
func (p *Provider) authorize(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()

	q := r.URL.Query()
	if q.Get("client_id") != ClientID || q.Get("code_challenge_method") != "S256" {
		p.t.Errorf("authorization request %s", r.URL.RawQuery)
	}

	code := rand.Text()
	p.codes[code] = q
	http.Redirect(w, r, q.Get("redirect_uri")+"?"+url.Values{"code": {code}, "state": {q.Get("state")}}.Encode(),
		http.StatusFound)
}

// token exchanges a code once, for the client that has its verifier.
func (p *Provider) token(w http.ResponseWriter, r *http.Request) {
	id, secret, ok := r.BasicAuth()
	if ok {
		id, _ = url.QueryUnescape(id)
		secret, _ = url.QueryUnescape(secret)
	} else {
		id, secret = r.FormValue("client_id"), r.FormValue("client_secret")
	}

	p.mu.Lock()
	request, ok := p.codes[r.FormValue("code")]
	delete(p.codes, r.FormValue("code"))
	p.mu.Unlock()

	sum := sha256.Sum256([]byte(r.FormValue("code_verifier")))
	if id != ClientID || secret != Secret || !ok || r.FormValue("redirect_uri") != request.Get("redirect_uri") ||
		base64.RawURLEncoding.EncodeToString(sum[:]) != request.Get("code_challenge") {
		w.WriteHeader(http.StatusBadRequest)
		p.respond(w, map[string]string{"error": "invalid_grant"})

		return
	}

	access := rand.Text()
	half := sha256.Sum256([]byte(access))
	p.respond(w, map[string]string{"access_token": access, "refresh_token": "refresh of the provider",
		"id_token": p.IDToken(map[string]any{"nonce": request.Get("nonce"),
			"at_hash": base64.RawURLEncoding.EncodeToString(half[:16])})})
}

func (p *Provider) person(w http.ResponseWriter, _ *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()

	p.respond(w, p.claims)
}

func (p *Provider) addresses(w http.ResponseWriter, _ *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()

	p.respond(w, []map[string]any{{"email": "other@example.com", "verified": true},
		{"email": p.claims["email"], "verified": p.claims["email_verified"] == true, "primary": true}})
}

func (p *Provider) respond(w http.ResponseWriter, v any) {
	if err := json.NewEncoder(w).Encode(v); err != nil {
		p.t.Log(err) // the client has left
	}
}
