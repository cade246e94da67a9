package authapi_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/enduser"
	"github.com/socle-dev/socle/internal/enduser/rules"
	"github.com/socle-dev/socle/internal/idp/idptest"
	"github.com/socle-dev/socle/internal/pg"
)

// browser follows redirects until they lead to an application.
type browser struct {
	p    *app
	http http.Client
	last *url.URL // address before that of the application
}

func newBrowser(p *app) *browser {
	jar, _ := cookiejar.New(nil) // fails never
	return &browser{p: p, http: http.Client{Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse
	}}}
}

// open opens an address, and returns that of the application where it leads.
func (b *browser) open(address string) *url.URL {
	b.p.t.Helper()

	if strings.HasPrefix(address, "/") {
		address = b.p.URL + "/projects/" + b.p.Project + "/auth/v1" + address
	}

	for {
		r, err := http.NewRequestWithContext(b.p.t.Context(), http.MethodGet, address, nil)
		if err != nil {
			b.p.t.Fatal(err)
		}

		res, err := b.http.Do(r)
		if err != nil {
			b.p.t.Fatal(err)
		}
		res.Body.Close()

		to, err := res.Location()
		if err != nil {
			b.p.t.Fatalf("%s: status %d: %v", address, res.StatusCode, err)
		}

		b.last = r.URL
		if !strings.HasPrefix(to.Host, "127.0.0.1") {
			return to
		}

		address = to.String()
	}
}

// signIn signs in with a provider and returns the session in the fragment.
func (b *browser) signIn(provider string) url.Values {
	b.p.t.Helper()

	to := b.open("/authorize?provider=" + provider)
	if to.Host != "localhost:3000" || fragment(to).Get("access_token") == "" {
		b.p.t.Fatalf("the sign-in leads to %s, want a session", to)
	}

	return fragment(to)
}

// failure returns the error of an address, which is in its query and its fragment.
func failure(to *url.URL) string {
	q, f := to.Query(), fragment(to)
	text := q.Get("error") + " " + q.Get("error_code") + " " + q.Get("error_description")
	if f.Get("error")+" "+f.Get("error_code")+" "+f.Get("error_description") != text || f.Has("access_token") ||
		q.Has("code") {
		return "other in the fragment: " + to.String()
	}

	return text
}

func person(subject, email string) map[string]any {
	return map[string]any{"sub": subject, "id": subject, "email": email, "email_verified": true, "name": "Ann",
		"login": "ann"}
}

func TestSignInWithOAuth(t *testing.T) {
	t.Parallel()

	provider := idptest.New(t)
	p := newApp(t, func(s *rules.Settings) {
		withProvider(provider.URL)(s)
		s.Providers["github"] = rules.Provider{Enabled: true, ClientID: idptest.ClientID, URL: provider.URL}
		s.RedirectURLs = []string{"myapp://*"}
	})
	provider.Person(person("1", "Ann@example.com"))

	b := newBrowser(p)
	got := b.signIn("custom:test")
	user := p.send("GET", "/user", got.Get("access_token"), "").want(200).equal("email", "ann@example.com").
		equal("user_metadata.full_name", "Ann").text("id")
	if got.Get("provider_token") == "" || got.Get("provider_refresh_token") == "" || got.Get("expires_in") != "3600" ||
		got.Get("token_type") != "bearer" {
		t.Errorf("got the fragment %v", got)
	}
	p.post("/token?grant_type=refresh_token", `{"refresh_token":"`+got.Get("refresh_token")+`"}`).want(200).
		equal("provider_token", "")

	// Another provider with the same verified address leads to the same user.
	again := newBrowser(p).signIn("github")
	u := p.send("GET", "/user", again.Get("access_token"), "").want(200).equal("id", user)
	if identities, _ := u.body["identities"].([]any); len(identities) != 2 {
		t.Errorf("got the identities %v, want 2", identities)
	}

	to := newBrowser(p).open("/authorize?provider=github&redirect_to=myapp://in%3Fa%3Db")
	if to.Scheme != "myapp" || to.Query().Get("a") != "b" || fragment(to).Get("access_token") == "" {
		t.Errorf("the sign-in leads to %s", to)
	}
	to = newBrowser(p).open("/authorize?provider=github&redirect_to=https://evil.example.com/")
	if to.Host != "localhost:3000" {
		t.Errorf("a foreign address leads to %s, want the site", to)
	}

	skipped := p.send("GET", "/authorize?provider=github&skip_http_redirect=true&scopes=repo", "", "").want(200)
	if at := newBrowser(p).open(skipped.text("url")); fragment(at).Get("access_token") == "" ||
		!strings.Contains(skipped.text("url"), "scopes=repo") {
		t.Errorf("%s leads to %s", skipped.text("url"), at)
	}
}

// challengeOf returns the parameters that begin a PKCE flow.
func challengeOf(verifier string) string {
	sum := sha256.Sum256([]byte(verifier))
	return "&code_challenge_method=s256&code_challenge=" + base64.RawURLEncoding.EncodeToString(sum[:])
}

var verifier = strings.Repeat("verifier-", 6)

func TestOAuthWithPKCE(t *testing.T) {
	t.Parallel()

	provider := idptest.New(t)
	p := newApp(t, withProvider(provider.URL))
	provider.Person(person("1", "ann@example.com"))

	to := newBrowser(p).open("/authorize?provider=custom:test" + challengeOf(verifier))
	code := to.Query().Get("code")
	if code == "" || to.Fragment != "" {
		t.Fatalf("the sign-in leads to %s, want a code", to)
	}

	sealed, err := pg.Value[[]byte](t.Context(), p.project.EndUsers(),
		`select provider_refresh_token from auth.flow_state`)
	if err != nil || len(sealed) == 0 || bytes.Contains(sealed, []byte("refresh of the provider")) {
		t.Errorf("the stored token of the provider is %q, %v, want sealed bytes", sealed, err)
	}

	exchange := `{"auth_code":"` + code + `","code_verifier":"` + verifier + `"}`
	p.post("/token?grant_type=pkce", exchange).want(200).equal("user.email", "ann@example.com").
		equal("provider_refresh_token", "refresh of the provider").equal("user.app_metadata.provider", "custom:test")
	p.post("/token?grant_type=pkce", exchange).fails(404, "flow_state_not_found")
}

// TestOAuthIsBound takes a sign-in to other browsers, other times and other places.
func TestOAuthIsBound(t *testing.T) {
	t.Parallel()

	provider := idptest.New(t)
	p, other := newApp(t, withProvider(provider.URL)), newApp(t, withProvider(provider.URL))
	provider.Person(person("1", "ann@example.com"))

	b := newBrowser(p)
	b.signIn("custom:test")
	used := b.last.String()
	server, _ := url.Parse(p.URL)
	if cookies := b.http.Jar.Cookies(server); len(cookies) != 0 {
		t.Errorf("the browser keeps the cookies %v", cookies)
	}
	if got, want := failure(b.open(used)), "invalid_request bad_oauth_state OAuth state belongs to another browser or was used"; got != want {
		t.Errorf("a replayed return: got %s, want %s", got, want)
	}

	victim := newBrowser(p)
	victim.open("/authorize?provider=custom:test")
	if got, want := failure(newBrowser(p).open(victim.last.String())), "invalid_request bad_oauth_state OAuth state belongs to another browser or was used"; got != want {
		t.Errorf("another browser: got %s, want %s", got, want)
	}

	state := victim.last.Query().Get("state")
	elsewhere, _ := url.Parse(p.send("GET", "/authorize?provider=custom:test", "", "").header.Get("Location"))
	for name, test := range map[string]struct{ path, want string }{
		"no state":                {"/callback?code=x", "invalid_request bad_oauth_callback OAuth state parameter missing"},
		"wrong state":             {"/callback?code=x&state=x", "invalid_request bad_oauth_state OAuth callback with invalid state"},
		"changed state":           {"/callback?code=x&state=" + state[:len(state)-4] + "AAAA", "invalid_request bad_oauth_state OAuth callback with invalid state"},
		"state as link":           {"/authorize?link=" + state, "invalid_request bad_oauth_state OAuth callback with invalid state"},
		"state of another flow":   {"/callback?code=x&state=" + elsewhere.Query().Get("state"), "invalid_request bad_oauth_state OAuth state belongs to another browser or was used"},
		"long state":              {"/callback?code=x&state=" + strings.Repeat("a", 5000), "invalid_request bad_oauth_state OAuth callback with invalid state"},
		"an error of the flow":    {"/callback?error=access_denied&error_description=evil&state=x", "invalid_request bad_oauth_state OAuth callback with invalid state"},
		"an error without a flow": {"/callback?error=access_denied&error_description=evil", "invalid_request bad_oauth_callback OAuth state parameter missing"},
	} {
		if got := failure(b.open(test.path)); got != test.want {
			t.Errorf("%s: got %s, want %s", name, got, test.want)
		}
	}

	foreign := newBrowser(other)
	if got := failure(foreign.open("/callback?code=x&state=" + state)); !strings.Contains(got, "invalid state") {
		t.Errorf("another project: got %s", got)
	}
}

// directory returns the end users of the project.
func (p *app) directory() *enduser.Directory {
	p.t.Helper()

	d, err := p.Server.Services().EndUsers.Open(p.t.Context(), uuid.MustParse(p.Project))
	if err != nil {
		p.t.Fatal(err)
	}

	return d
}

// returned begins a flow and returns the way back from the provider, with its cookie.
func (b *browser) returned(f enduser.OAuthFlow) string {
	b.p.t.Helper()

	departure, err := b.p.directory().Depart(b.p.t.Context(), f, nil, enduser.Client{})
	if err != nil {
		b.p.t.Fatal(err)
	}

	b.setCookie(departure)
	r, err := http.NewRequestWithContext(b.p.t.Context(), http.MethodGet, departure.URL, nil)
	if err != nil {
		b.p.t.Fatal(err)
	}

	res, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		b.p.t.Fatal(err)
	}
	res.Body.Close()

	return res.Header.Get("Location")
}

func (b *browser) setCookie(d enduser.Departure) {
	server, _ := url.Parse(b.p.URL)
	b.http.Jar.SetCookies(server, []*http.Cookie{{Name: d.Flow.BindingName(), Value: d.Binding, Path: "/"}})
}

// TestOAuthOnce: a flow ends by its time, and succeeds once, also if the provider takes a code
// twice and the browser has kept its cookie.
func TestOAuthOnce(t *testing.T) {
	t.Parallel()

	provider := idptest.New(t)
	p := newApp(t, withProvider(provider.URL))
	provider.Person(person("1", "ann@example.com"))

	f, err := p.directory().NewFlow("custom:test", "", enduser.Challenge{})
	if err != nil {
		t.Fatal(err)
	}

	late := f
	late.Ends = time.Now().Add(-time.Second)
	b := newBrowser(p)
	if got, want := failure(b.open(b.returned(late))), "invalid_request bad_oauth_state OAuth state has expired"; got != want {
		t.Errorf("an expired flow: got %s, want %s", got, want)
	}

	for _, want := range []string{"  ", "invalid_request bad_oauth_state OAuth state was used"} {
		to := b.open(b.returned(f)) // the same flow with another code
		if got := to.Query().Get("error") + " " + to.Query().Get("error_code") + " " +
			to.Query().Get("error_description"); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}

	for _, test := range []struct {
		age  string
		want int
	}{{"1 hour", 1}, {"2 days", 0}} { // sweeping keeps what could come back
		if _, err := p.project.EndUsers().Exec(t.Context(), `update auth.spent_flows set created_at = now() - $1::interval`,
			test.age); err != nil {
			t.Fatal(err)
		}
		if err := p.directory().Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}

		got, err := pg.Value[int](t.Context(), p.project.EndUsers(), `select count(*)::int from auth.spent_flows`)
		if err != nil || got != test.want {
			t.Errorf("%s later there are %d spent flows (%v), want %d", test.age, got, err, test.want)
		}
	}
}

// TestOAuthRefusals: who may not sign in returns to the application with the reason.
func TestOAuthRefusals(t *testing.T) {
	t.Parallel()

	provider := idptest.New(t)
	p := newApp(t, func(s *rules.Settings) {
		withProvider(provider.URL)(s)
		s.Providers["gitlab"] = rules.Provider{Enabled: true, ClientID: "wrong", URL: provider.URL}
		s.Providers["custom:secretless"] = rules.Provider{Enabled: true, ClientID: "x", URL: provider.URL}
		s.Providers["google"] = rules.Provider{Enabled: true, ClientID: "x"}
		s.Providers["discord"] = rules.Provider{ClientID: "x"}
	})

	provider.Person(person("1", "ann@example.com"))
	b := newBrowser(p)
	ann := p.send("GET", "/user", b.signIn("custom:test").Get("access_token"), "").want(200).text("id")

	provider.Person(map[string]any{"sub": "2", "email": "ann@example.com"})
	signIn := func() string { return failure(b.open("/authorize?provider=custom:test")) }
	if got, want := signIn(), "access_denied provider_email_needs_verification Unverified email with custom:test. "+
		"Verify the email with custom:test in order to sign in"; got != want {
		t.Errorf("an unverified address: got %s, want %s", got, want)
	}

	p.exec(`create function public.fail() returns trigger language plpgsql as $$ begin raise 'no'; end $$;
		create trigger fail before insert on auth.users for each row execute function public.fail()`)
	provider.Person(person("2", "ben@example.com"))
	if got, want := signIn(), "server_error unexpected_failure Database error saving new user"; got != want {
		t.Errorf("a failing trigger: got %s, want %s", got, want)
	}

	provider.Person(map[string]any{"sub": "2"})
	if got := signIn(); got != "invalid_request validation_failed Error getting user email from external provider" {
		t.Errorf("no address: got %s", got)
	}

	p.send("PUT", "/admin/users/"+ann, p.secret, `{"ban_duration":"1h"}`).want(200)
	provider.Person(person("1", "ann@example.com"))
	if got, want := signIn(), "access_denied user_banned User is banned"; got != want {
		t.Errorf("a banned user: got %s, want %s", got, want)
	}

	for path, want := range map[string]string{
		"/authorize":                                       "validation_failed Unsupported provider: Provider  could not be found",
		"/authorize?provider=nothing":                      "validation_failed Unsupported provider: Provider nothing could not be found",
		"/authorize?provider=discord":                      "provider_disabled Unsupported provider: provider is not enabled",
		"/authorize?provider=github":                       "provider_disabled Unsupported provider: provider is not enabled",
		"/authorize?provider=google":                       "validation_failed Unsupported provider: missing OAuth secret",
		"/authorize?provider=custom:test&code_challenge=x": "validation_failed PKCE flow requires code_challenge_method and code_challenge",
	} {
		got := p.send("GET", path, "", "").want(400)
		if got.text("code")+" "+got.text("message") != want {
			t.Errorf("%s: got %s, want %s", path, got.raw, want)
		}
	}
}

// TestOAuthDenied: the person does not agree, or the provider fails.
func TestOAuthDenied(t *testing.T) {
	t.Parallel()

	provider := idptest.New(t)
	p := newApp(t, func(s *rules.Settings) { withProvider(provider.URL)(s); s.SignUp = false })
	provider.Person(person("1", "ann@example.com"))

	for query, want := range map[string]string{
		"error=access_denied&error_description=The+resource+owner+denied": "access_denied access_denied The resource owner denied",
		"error=user_cancelled_authorize":                                  "access_denied user_cancelled_authorize The provider answers user_cancelled_authorize",
		"error=server_error&error_description=a%0Ab":                      "server_error server_error a b",
		"error=%C3%A4%20%3Cb%3E":                                          "invalid_request b The provider answers b",
		"code=":                                                           "invalid_request bad_oauth_callback OAuth callback with missing authorization code",
		"code=wrong":                                                      "server_error unexpected_failure Unable to exchange external code: invalid_grant",
		"":                                                                "access_denied signup_disabled Signups not allowed for this instance",
	} {
		f, err := p.directory().NewFlow("custom:test", "", enduser.Challenge{})
		if err != nil {
			t.Fatal(err)
		}

		b := newBrowser(p)
		back, _ := url.Parse(b.returned(f))
		if query != "" {
			back.RawQuery = query + "&state=" + back.Query().Get("state")
		}
		if got := failure(b.open(back.String())); got != want {
			t.Errorf("%s: got %s, want %s", query, got, want)
		}
	}
}

// TestAppleReturns: Apple's page posts a form, to which only a cookie for other sites goes.
func TestAppleReturns(t *testing.T) {
	t.Parallel()

	provider := idptest.New(t)
	p := newApp(t, func(s *rules.Settings) {
		s.Providers = map[string]rules.Provider{
			"apple": {Enabled: true, ClientID: idptest.ClientID, URL: provider.URL}}
	})
	provider.Person(map[string]any{"sub": "1", "email": "ann@example.com", "email_verified": "true"})

	f, err := p.directory().NewFlow("apple", "", enduser.Challenge{})
	if err != nil {
		t.Fatal(err)
	}

	b := newBrowser(p)
	back, _ := url.Parse(b.returned(f))
	form := back.Query()
	form.Set("user", `{"name":{"firstName":"Ann","lastName":"Lee"},"email":"evil@example.com"}`)
	back.RawQuery = ""

	res, err := b.http.PostForm(back.String(), form)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()

	to, err := res.Location()
	if err != nil {
		t.Fatal(err)
	}
	p.send("GET", "/user", fragment(to).Get("access_token"), "").want(200).equal("email", "ann@example.com").
		equal("user_metadata.full_name", "Ann Lee")

	large := p.send("POST", "/callback", "", strings.Repeat("x", 65<<10))
	large.fails(413, "request_too_large")
	p.send("POST", "/callback", "", "%zz").fails(400, "validation_failed")
}
