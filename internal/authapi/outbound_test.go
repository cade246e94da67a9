package authapi_test

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/socle-dev/socle/internal/api/apitest"
	"github.com/socle-dev/socle/internal/config"
	"github.com/socle-dev/socle/internal/enduser"
	"github.com/socle-dev/socle/internal/enduser/rules"
	"github.com/socle-dev/socle/internal/idp/idptest"
)

const unreachable = "server_error unexpected_failure The provider could not be reached or answers otherwise than agreed"

// unsigned has the form of an ID token: {"alg":"RS256"} and {}. It makes the server ask for keys.
const unsigned = "eyJhbGciOiJSUzI1NiJ9.e30.x"

// TestPrivateNetworks: no address that a project chooses leads into the server's networks. All
// fail alike, so nobody learns what is there.
func TestPrivateNetworks(t *testing.T) {
	t.Parallel()

	var requests atomic.Int64
	inside := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { requests.Add(1) }))
	t.Cleanup(inside.Close)
	_, port, _ := strings.Cut(strings.TrimPrefix(inside.URL, "http://"), ":")

	a := apitest.New(t, func(c *config.Config) { c.OutboundNetworks = nil })
	providers, hosts := map[string]rules.Provider{}, map[string]string{}
	for name, address := range map[string]string{
		"loopback": inside.URL, "secure": "https://127.0.0.1:" + port, "name": "http://localhost:" + port,
		"secure-name": "https://localhost:" + port, "number": "https://2130706433:" + port,
		"octal": "https://0177.0.0.1:" + port, "mapped": "https://[::ffff:127.0.0.1]:" + port,
		"six": "https://[::1]:" + port, "any": "https://0.0.0.0:" + port,
		"metadata": "http://169.254.169.254", "secure-metadata": "https://169.254.169.254",
		"private": "https://10.0.0.1", "local": "https://[fd00::1]", "closed": "https://127.0.0.1:1",
	} {
		providers["custom:"+name], hosts[name] = rules.Provider{Enabled: true, ClientID: "x", URL: address}, address
	}

	p := appOf(t, a, func(s *rules.Settings) { s.Providers = providers })
	for name := range hosts {
		if got := failure(newBrowser(p).open("/authorize?provider=custom:" + name)); got != unreachable {
			t.Errorf("%s: got %s, want %s", hosts[name], got, unreachable)
		}

		got := p.post("/token?grant_type=id_token", `{"provider":"custom:`+name+`","id_token":"`+unsigned+`"}`)
		got.fails(400, "unexpected_failure")
		if text := "server_error unexpected_failure " + got.text("message"); text != unreachable {
			t.Errorf("%s: got %s", hosts[name], got.raw)
		}
	}

	if n := requests.Load(); n != 0 {
		t.Errorf("%d requests reached the server's network", n)
	}
}

// TestProviderLeadsElsewhere: an allowed provider redirects and refers to addresses that are not.
func TestProviderLeadsElsewhere(t *testing.T) {
	t.Parallel()

	var requests atomic.Int64
	inside := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { requests.Add(1) }))
	t.Cleanup(inside.Close)

	provider := idptest.New(t)
	documents := map[string]string{
		"keys":  `"token_endpoint":"` + provider.URL + `/x","jwks_uri":"http://169.254.169.254/keys"`,
		"token": `"token_endpoint":"http://10.0.0.1/token","jwks_uri":"` + provider.URL + `/keys"`,
		"file":  `"token_endpoint":"file:///etc/passwd","jwks_uri":"` + provider.URL + `/keys"`,
	}

	var own *httptest.Server
	own = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := strings.Split(r.URL.Path, "/")[1]
		if name == "redirect" {
			http.Redirect(w, r, inside.URL, http.StatusFound)
			return
		}

		issuer := own.URL + "/" + name
		_, _ = w.Write([]byte(`{"issuer":"` + issuer + `","authorization_endpoint":"` + issuer + `/go",` +
			documents[name] + `}`))
	}))
	t.Cleanup(own.Close)

	p := newApp(t, func(s *rules.Settings) {
		s.Providers = map[string]rules.Provider{}
		for _, name := range []string{"redirect", "keys", "token", "file"} {
			s.Providers["custom:"+name] = rules.Provider{Enabled: true, ClientID: idptest.ClientID,
				URL: own.URL + "/" + name}
		}
	})

	for _, name := range []string{"redirect", "file"} {
		if got := failure(newBrowser(p).open("/authorize?provider=custom:" + name)); got != unreachable {
			t.Errorf("%s: got %s, want %s", name, got, unreachable)
		}
	}

	p.post("/token?grant_type=id_token", `{"provider":"custom:keys","id_token":"`+unsigned+`"}`).
		fails(400, "unexpected_failure")

	f, err := p.directory().NewFlow("custom:token", "", enduser.Challenge{})
	if err != nil {
		t.Fatal(err)
	}

	departure, err := p.directory().Depart(t.Context(), f, nil, enduser.Client{})
	if err != nil {
		t.Fatal(err)
	}

	b := newBrowser(p)
	b.setCookie(departure)
	at, _ := url.Parse(departure.URL)
	if got := failure(b.open("/callback?code=x&state=" + at.Query().Get("state"))); got != unreachable {
		t.Errorf("token endpoint: got %s, want %s", got, unreachable)
	}
	if n := requests.Load(); n != 0 {
		t.Errorf("%d requests followed a redirect", n)
	}
}

// TestOAuthBehindHTTPS checks the cookies of a server with an address by HTTPS, and the limits.
func TestOAuthBehindHTTPS(t *testing.T) {
	t.Parallel()

	provider := idptest.New(t)
	a := apitest.New(t, func(c *config.Config) {
		c.RateLimit, c.TrustedProxies = true, []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}
	})
	a.Server.Services().EndUsers.PublicURL = "https://socle.example.com"
	p := appOf(t, a, func(s *rules.Settings) {
		s.SignInsPerFiveMinutes = 5
		s.Providers = map[string]rules.Provider{
			"apple":    {Enabled: true, ClientID: idptest.ClientID, URL: provider.URL},
			"keycloak": {Enabled: true, ClientID: idptest.ClientID, URL: provider.URL}}
	})

	for name, want := range map[string]http.SameSite{"apple": http.SameSiteNoneMode, "keycloak": http.SameSiteLaxMode} {
		got := p.send("GET", "/authorize?provider="+name, "", "").want(303)
		cookies := (&http.Response{Header: got.header}).Cookies()
		if len(cookies) != 1 || !strings.HasPrefix(cookies[0].Name, "__Host-socle-oauth-") || cookies[0].Path != "/" ||
			!cookies[0].HttpOnly || !cookies[0].Secure || cookies[0].SameSite != want || cookies[0].MaxAge != 600 ||
			cookies[0].Domain != "" {
			t.Errorf("%s: got %v", name, cookies)
		}

		callback := url.QueryEscape("https://socle.example.com/projects/" + p.Project + "/auth/v1/callback")
		if at := got.header.Get("Location"); !strings.Contains(at, callback) ||
			got.header.Get("Referrer-Policy") != "no-referrer" {
			t.Errorf("%s: the browser is sent to %s", name, at)
		}
	}

	var crowded []string
	for _, letter := range strings.Split("abcdefghijkl", "") {
		crowded = append(crowded, "__Host-socle-oauth-"+letter+"=x")
	}
	got := p.send("GET", "/authorize?provider=keycloak", "", "", "Cookie", strings.Join(crowded, "; ")).want(303)
	if cookies := (&http.Response{Header: got.header}).Cookies(); len(cookies) != 4 || cookies[0].MaxAge != -1 {
		t.Errorf("a browser with 12 cookies gets %v, want 3 expired and a new one", cookies)
	}

	for range 2 {
		p.send("GET", "/authorize?provider=keycloak", "", "").want(303)
	}
	to, _ := url.Parse(p.send("GET", "/authorize?provider=keycloak", "", "").want(303).header.Get("Location"))
	if got, want := failure(to), "temporarily_unavailable over_request_rate_limit Request rate limit reached"; got != want {
		t.Errorf("beyond the limit: got %s, want %s", got, want)
	}
	p.send("GET", "/authorize?provider=keycloak", "", "", "X-Forwarded-For", "203.0.113.9").want(303)
}
