package authapi_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/socle-dev/socle/internal/enduser/rules"
	"github.com/socle-dev/socle/internal/token"
)

// visit sends a request to an address as a browser does, and returns the response.
func (p *app) visit(method, address string, form url.Values, headers ...string) *reply {
	p.t.Helper()

	if method == http.MethodPost {
		headers = append([]string{"Content-Type", "application/x-www-form-urlencoded"}, headers...)
	}

	return p.sendTo(method, address, "", form.Encode(), headers...)
}

// TestConsentPage: without a page of the application, the server's own one signs the user in for
// each decision.
func TestConsentPage(t *testing.T) {
	t.Parallel()

	p := newApp(t, func(s *rules.Settings) { withOAuth(s); s.OAuthServer.AuthorizationPath = "" })
	c := p.newOAuthClient("none")
	p.signUp("ann@example.com")
	begin := func() string { return p.send("GET", c.request(), "", "").location().String() }
	credentials := url.Values{"email": {"ann@example.com"}, "password": {password}}

	page := begin()
	shown := p.visit("GET", page, nil).want(200)
	policy := shown.header.Get("Content-Security-Policy")
	if !strings.Contains(shown.raw, "Allow Shop to use your account?") || strings.Contains(shown.raw, "<script") ||
		!strings.Contains(policy, "frame-ancestors 'none'") || !strings.Contains(policy, "default-src 'none'") ||
		!strings.Contains(policy, "form-action 'self' https://client.example.com") {
		t.Errorf("the page is %s under the policy %s", shown.raw, policy)
	}

	// Neither another site nor wrong credentials decide.
	for name, attempt := range map[string]*reply{
		"other site":     p.visit("POST", page, credentials, "Sec-Fetch-Site", "cross-site"),
		"other origin":   p.visit("POST", page, credentials, "Origin", "https://evil.example.com"),
		"denial of one":  p.visit("POST", page, url.Values{"decline": {"true"}}, "Sec-Fetch-Site", "cross-site"),
		"wrong password": p.visit("POST", page, url.Values{"email": {"ann@example.com"}, "password": {"wrong"}}),
		"no credentials": p.visit("POST", page, url.Values{}),
	} {
		if attempt.status < 400 || attempt.header.Get("Location") != "" {
			t.Errorf("%s: got %d, %v", name, attempt.status, attempt.header)
		}
	}

	to := p.visit("POST", page, credentials, "Sec-Fetch-Site", "same-origin").location()
	c.exchange(to.Query().Get("code")).want(200)
	if n := p.count(`select count(*)::int from auth.sessions where oauth_client_id is null`); n != 1 {
		t.Errorf("%d sessions of the application are left, want that of the sign-up", n)
	}
	p.visit("POST", page, credentials).want(400)

	page = begin()
	if q := p.visit("POST", page, url.Values{"decline": {"true"}}).location().
		Query(); q.Get("error") != "access_denied" ||
		q.Get("state") != "s&1" {
		t.Errorf("after a denial the client gets %v", q)
	}
	p.visit("GET", page, nil).want(400)
	p.visit("GET", strings.Replace(page, "authorization_id=", "authorization_id=x", 1), nil).want(404)
}

// TestConsentNeedsSecondFactor: a user with a second factor decides with it, in either page.
func TestConsentNeedsSecondFactor(t *testing.T) {
	t.Parallel()

	p := newApp(t, withOAuth)
	c := p.newOAuthClient("none")
	session := p.signUp("ann@example.com").text("access_token")
	verified := p.verifyFactor(session)

	again := p.post("/token?grant_type=password", `{"email":"ann@example.com","password":"`+password+`"}`).want(200)
	path := "/oauth/authorizations/" + c.authorize()
	p.send("GET", path, again.text("access_token"), "").fails(403, "insufficient_aal")
	p.send("POST", path+"/consent", again.text("access_token"), `{"action":"approve"}`).fails(403, "insufficient_aal")

	tokens := c.exchange(c.approve(verified)).want(200)
	if got := claim(t, tokens.text("access_token"), "aal"); got != "aal2" {
		t.Errorf("the client's session has the level %v, want aal2", got)
	}
	if got := claim(t, c.refresh(tokens.text("refresh_token")).want(200).text("access_token"), "aal"); got != "aal2" {
		t.Errorf("the refreshed session has the level %v, want aal2", got)
	}

	q := newApp(t, func(s *rules.Settings) { withOAuth(s); s.OAuthServer.AuthorizationPath = "" })
	d := q.newOAuthClient("none")
	q.verifyFactor(q.signUp("ann@example.com").text("access_token"))
	page := q.send("GET", d.request(), "", "").location().String()
	refused := q.visit("POST", page, url.Values{"email": {"ann@example.com"}, "password": {password}}).want(422)
	if !strings.Contains(refused.raw, "second factor") {
		t.Errorf("the page says %s", refused.raw)
	}
	q.visit("POST", page, url.Values{"email": {"ann@example.com"}, "password": {password}, "code": {"000000"}}).
		want(422)
	if n := q.count(`select count(*)::int from auth.sessions where aal = 'aal1'`); n != 0 {
		t.Errorf("%d sessions of refused attempts are left", n)
	}
}

// verifyFactor adds an authenticator app to a user, and returns the access token of the second
// level.
func (p *app) verifyFactor(session string) string {
	p.t.Helper()

	factor := p.send("POST", "/factors", session, `{"factor_type":"totp","friendly_name":"app"}`).want(200)
	secret, err := token.ParseTOTPText(factor.text("totp.secret"))
	if err != nil {
		p.t.Fatal(err)
	}

	path := "/factors/" + factor.text("id")
	challenge := p.send("POST", path+"/challenge", session, "{}").want(200).text("id")

	return p.send("POST", path+"/verify", session, `{"challenge_id":"`+challenge+`","code":"`+
		token.TOTPCode(secret, token.TOTPStep(time.Now()))+`"}`).want(200).text("access_token")
}
