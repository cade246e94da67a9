package idp_test

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/socle-dev/socle/internal/fair"
	"github.com/socle-dev/socle/internal/idp"
	"github.com/socle-dev/socle/internal/idp/idptest"
	"github.com/socle-dev/socle/internal/outbound"
)

var loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}

var flow = idp.Flow{State: "state", Nonce: "nonce", Verifier: strings.Repeat("v", 43),
	RedirectURI: "https://socle.example.com/callback"}

func configOf(p *idptest.Provider, name string) idp.Config {
	return idp.Config{Name: name, ClientID: idptest.ClientID, Secret: idptest.Secret, URL: p.URL}
}

// authorize opens the address as a browser, and returns the parameters with which the provider
// sends it back.
func authorize(t *testing.T, address string) url.Values {
	t.Helper()

	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	if err != nil {
		t.Fatal(err)
	}

	res, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()

	to, err := res.Location()
	if err != nil {
		t.Fatal(err)
	}

	return to.Query()
}

// TestExchange signs in with OpenID Connect and with the interface of GitHub.
func TestExchange(t *testing.T) {
	t.Parallel()

	p := idptest.New(t)
	p.Person(map[string]any{"sub": "person-1", "id": 12345678901234567, "email": "ann@example.com",
		"email_verified": true, "name": "Ann", "login": "ann"})

	for name, subject := range map[string]string{"keycloak": "person-1", "custom:mine": "person-1",
		"linkedin_oidc": "person-1", "github": "12345678901234567"} {
		c := idp.New(outbound.New(loopback))
		address, err := c.AuthCodeURL(t.Context(), fair.Key{}, configOf(p, name), flow,
			url.Values{"scopes": {"more,openid"}, "prompt": {"consent"}, "client_id": {"other"}, "state": {"other"}})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}

		u, _ := url.Parse(address)
		if q := u.Query(); q.Get("prompt") != "consent" || q.Get("client_id") != idptest.ClientID ||
			q.Get("state") != "state" || !strings.Contains(q.Get("scope"), "more") {
			t.Errorf("%s: the browser is sent to %s", name, address)
		}

		code := authorize(t, address).Get("code")
		who, err := c.Exchange(t.Context(), fair.Key{}, configOf(p, name), flow, idp.Answer{Code: code})
		if err != nil || who.Subject != subject || who.Email != "ann@example.com" || !who.EmailVerified ||
			who.Data["full_name"] != "Ann" || who.AccessToken == "" || who.RefreshToken == "" {
			t.Errorf("%s: got %+v, %v", name, who, err)
		}

		who, err = c.Exchange(t.Context(), fair.Key{}, configOf(p, name), flow, idp.Answer{Code: code})
		if refused, ok := errors.AsType[*idp.RefusedError](err); !ok || refused.Code != "invalid_grant" ||
			!errors.Is(err, idp.ErrProvider) {
			t.Errorf("%s: a used code gives %+v, %v", name, who, err)
		}
	}
}

// TestExchangeRefuses changes what binds a code to its flow.
func TestExchangeRefuses(t *testing.T) {
	t.Parallel()

	p := idptest.New(t)
	p.Person(map[string]any{"sub": "1"})
	c := idp.New(outbound.New(loopback))

	for name, test := range map[string]struct {
		change func(*idp.Flow)
		want   error
	}{
		"verifier": {func(f *idp.Flow) { f.Verifier = strings.Repeat("w", 43) }, idp.ErrProvider},
		"nonce":    {func(f *idp.Flow) { f.Nonce = "other" }, idp.ErrNonce},
		"redirect": {func(f *idp.Flow) { f.RedirectURI += "2" }, idp.ErrProvider},
	} {
		address, err := c.AuthCodeURL(t.Context(), fair.Key{}, configOf(p, "keycloak"), flow, nil)
		if err != nil {
			t.Fatal(err)
		}

		other := flow
		test.change(&other)
		code := authorize(t, address).Get("code")
		if who, err := c.Exchange(t.Context(), fair.Key{}, configOf(p, "keycloak"), other,
			idp.Answer{Code: code}); !errors.Is(err, test.want) {
			t.Errorf("another %s: got %+v, %v, want %v", name, who, err, test.want)
		}
	}
}

func TestPrivateProvider(t *testing.T) {
	t.Parallel()

	p := idptest.New(t)
	_, err := idp.New(outbound.New(nil)).AuthCodeURL(t.Context(), fair.Key{}, configOf(p, "keycloak"), flow, nil)
	if !errors.Is(err, outbound.ErrNetwork) {
		t.Errorf("got %v, want %v", err, outbound.ErrNetwork)
	}
}

func TestVerify(t *testing.T) {
	t.Parallel()

	p := idptest.New(t)
	p.Person(map[string]any{"sub": "1", "email": "ann@example.com", "email_verified": "true"})
	c := idp.New(outbound.New(loopback))

	config := configOf(p, "custom:mine")
	config.OtherClientIDs = []string{"app"}

	hour := time.Hour
	with := func(name string, value any) string { return p.IDToken(map[string]any{name: value}) }
	sum, half := sha256.Sum256([]byte("n")), sha256.Sum256([]byte("access"))
	atHash := base64.RawURLEncoding.EncodeToString(half[:16])
	both := []string{"app", "x"}
	hashed := hex.EncodeToString(sum[:])
	forger := idptest.New(t)
	forger.Person(map[string]any{"sub": "1"})

	for name, test := range map[string]struct {
		token  string
		nonce  string
		access string
		want   error
	}{
		"valid":                {token: p.IDToken(nil)},
		"other client":         {token: with("aud", "app")},
		"nonce":                {token: with("nonce", hashed), nonce: "n"},
		"two audiences":        {token: p.IDToken(map[string]any{"aud": both, "azp": "app"})},
		"access token":         {token: with("at_hash", atHash), access: "access"},
		"wrong access token":   {token: with("at_hash", atHash), access: "x", want: idp.ErrIDToken},
		"wrong nonce":          {token: with("nonce", hashed), nonce: "m", want: idp.ErrNonce},
		"plain nonce":          {token: with("nonce", "n"), nonce: "n", want: idp.ErrNonce},
		"missing nonce":        {token: with("nonce", hashed), want: idp.ErrNonce},
		"unexpected nonce":     {token: p.IDToken(nil), nonce: "n", want: idp.ErrNonce},
		"audience":             {token: with("aud", "x"), want: idp.ErrIDToken},
		"no audience":          {token: with("aud", nil), want: idp.ErrIDToken},
		"empty audience":       {token: with("aud", ""), want: idp.ErrIDToken},
		"authorized party":     {token: p.IDToken(map[string]any{"aud": both, "azp": "x"}), want: idp.ErrIDToken},
		"expired":              {token: with("exp", time.Now().Add(-hour).Unix()), want: idp.ErrIDToken},
		"no expiry":            {token: with("exp", nil), want: idp.ErrIDToken},
		"issued in the future": {token: with("iat", time.Now().Add(hour).Unix()), want: idp.ErrIDToken},
		"issuer":               {token: with("iss", "https://accounts.google.com"), want: idp.ErrIDToken},
		"no subject":           {token: with("sub", nil), want: idp.ErrIDToken},
		"logout token":         {token: with("events", map[string]any{}), want: idp.ErrIDToken},
		"another key":          {token: forger.IDToken(map[string]any{"iss": p.URL}), want: idp.ErrIDToken},
		"no signature":         {token: "eyJhbGciOiJub25lIn0.e30.", want: idp.ErrIDToken},
		"no token":             {token: "", want: idp.ErrIDToken},
		"large token":          {token: strings.Repeat("x", 20<<10), want: idp.ErrIDToken},
	} {
		who, err := c.Verify(t.Context(), fair.Key{}, config, idp.Given{IDToken: test.token, Nonce: test.nonce,
			AccessToken: test.access})
		if !errors.Is(err, test.want) || (test.want == nil && (who.Subject != "1" || !who.EmailVerified)) {
			t.Errorf("%s: got %+v, %v, want %v", name, who, err, test.want)
		}
	}

	github := idp.Given{IDToken: p.IDToken(nil)}
	if _, err := c.Verify(t.Context(), fair.Key{}, configOf(p, "github"), github); !errors.Is(err, idp.ErrUnknown) {
		t.Errorf("an ID token of GitHub: got %v, want %v", err, idp.ErrUnknown)
	}
}

// TestMalformedIDTokens: a text that is no ID token costs the provider no request, not even that
// for its metadata.
func TestMalformedIDTokens(t *testing.T) {
	t.Parallel()

	c := idp.New(outbound.New(loopback))
	silent := idp.Config{Name: "keycloak", ClientID: idptest.ClientID, URL: "http://127.0.0.1:1"}

	part := base64.RawURLEncoding.EncodeToString
	header, claims := part([]byte(`{"alg":"RS256"}`)), part([]byte(`{"sub":"1"}`))
	for _, token := range []string{
		"", "mock-id-token", "a.b.c", "..", header + "." + claims, header + "." + claims + ".",
		header + "." + claims + ".x.y", part([]byte(`{"alg":"none"}`)) + "." + claims + ".x",
		part([]byte(`{"alg":"HS256"}`)) + "." + claims + ".x", header + "." + part([]byte(`[]`)) + ".x",
		part([]byte(`"x"`)) + "." + claims + ".x", header + "=." + claims + ".x",
	} {
		_, err := c.Verify(t.Context(), fair.Key{}, silent, idp.Given{IDToken: token})
		if !errors.Is(err, idp.ErrIDToken) || errors.Is(err, idp.ErrProvider) {
			t.Errorf("%q: got %v, want %v", token, err, idp.ErrIDToken)
		}
	}

	_, err := c.Verify(t.Context(), fair.Key{}, silent, idp.Given{IDToken: header + "." + claims + ".x"})
	if !errors.Is(err, idp.ErrProvider) {
		t.Errorf("a well-formed token: got %v, want %v", err, idp.ErrProvider)
	}
}

// TestForgedTokens: tokens of unknown keys, which any stranger can send, don't make the server read
// the provider's keys again and again.
func TestForgedTokens(t *testing.T) {
	t.Parallel()

	p, forger := idptest.New(t), idptest.New(t)
	c := idp.New(outbound.New(loopback))
	for range 100 {
		forger.Rotate()
		token := forger.IDToken(map[string]any{"iss": p.URL, "sub": "1"})
		_, err := c.Verify(t.Context(), fair.Key{}, configOf(p, "keycloak"), idp.Given{IDToken: token})
		if !errors.Is(err, idp.ErrIDToken) {
			t.Fatalf("got %v, want %v", err, idp.ErrIDToken)
		}
	}

	if got := p.KeyReads.Load(); got != 1 {
		t.Errorf("the keys were read %d times, want 1", got)
	}
}

// TestAppleName: Apple sends the name of a person once, beside the code.
func TestAppleName(t *testing.T) {
	t.Parallel()

	p := idptest.New(t)
	for name, test := range map[string]struct {
		claims map[string]any
		person string
		want   any
	}{
		"with the code": {map[string]any{},
			`{"name":{"firstName":"Ann","lastName":"Lee"},"email":"evil@example.com"}`, "Ann Lee"},
		"in the token": {map[string]any{"name": "Ann"}, `{"name":{"firstName":"Eve"}}`, "Ann"},
		"no JSON":      {map[string]any{}, `{"name":`, nil},
	} {
		test.claims["sub"], test.claims["email"] = "1", "ann@example.com"
		p.Person(test.claims)
		address, err := idp.New(outbound.New(loopback)).AuthCodeURL(t.Context(), fair.Key{}, configOf(p, "apple"),
			flow, nil)
		if err != nil {
			t.Fatal(err)
		}

		who, err := idp.New(outbound.New(loopback)).Exchange(t.Context(), fair.Key{}, configOf(p, "apple"), flow,
			idp.Answer{Code: authorize(t, address).Get("code"), Person: test.person})
		if err != nil || who.Data["full_name"] != test.want || who.Email != "ann@example.com" {
			t.Errorf("%s: got %+v, %v, want the name %v", name, who, err, test.want)
		}
	}
}

func TestKnown(t *testing.T) {
	t.Parallel()

	for name, want := range map[string]bool{"google": true, "custom:my-own": true, "custom:": false, "myspace": false,
		"custom:../x": false, "": false} {
		if got := idp.Known(name); got != want {
			t.Errorf("Known(%q) = %v, want %v", name, got, want)
		}
	}
}
