package api_test

import (
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/socle-dev/socle/internal/api/apitest"
)

// consoleTab is a browser with the console: it keeps the cookie and sends what browsers send.
type consoleTab struct {
	*apitest.API
	t      *testing.T
	origin string
	cookie *http.Cookie // nil: none
}

func openConsole(t *testing.T, a *apitest.API) *consoleTab {
	return &consoleTab{API: a.Anonymous().WithProject(""), t: t, origin: a.URL}
}

// send sends a request about the session, and keeps the cookie of the response.
func (c *consoleTab) send(method, path, body string, headers ...string) *apitest.Reply {
	c.t.Helper()

	sent := []string{"Origin: " + c.origin, "Sec-Fetch-Site: same-origin"}
	if c.cookie != nil {
		sent = append(sent, "Cookie: "+c.cookie.Name+"="+c.cookie.Value)
	}

	r := c.Send(method, "/console/session"+path, body, append(sent, headers...)...)
	if strings.Contains(string(r.Body), "refreshToken") || r.Header.Get("Authorization") != "" {
		c.t.Errorf("the response has the refresh token, or a token as a header: %s", r.Body)
	}

	if lines := r.Header.Values("Set-Cookie"); len(lines) == 1 {
		cookie, err := http.ParseSetCookie(lines[0])
		if err != nil {
			c.t.Fatal(err)
		}

		c.cookie = cookie
		if cookie.MaxAge < 0 {
			c.cookie = nil
		}
	}

	return r
}

func (c *consoleTab) logIn(a *apitest.API) *apitest.Reply {
	c.t.Helper()

	return c.send("POST", "", loginBody(a.Email, apitest.Password)).Want(200)
}

// isSignedIn reports whether the access token of a response is valid.
func isSignedIn(c *consoleTab, r *apitest.Reply) bool {
	return c.Send("GET", "/users/me", "", "Authorization: Bearer "+r.Metadata("token").(string)).Status == 200
}

// agePrevious makes the last refresh of a user's sessions older than the grace period.
const agePrevious = `update platform.sessions set refreshed_at = now() - interval '11 seconds' where user_uuid = $1`

func TestConsoleSession(t *testing.T) {
	t.Parallel()

	a := apitest.SharedUser(t)
	c := openConsole(t, a)
	r := c.logIn(a).Content("uuid", a.User).Content("email", a.Email)
	if !isSignedIn(c, r) || r.Metadata("tokenType") != "Bearer" || r.Header.Get("Cache-Control") != "no-store" {
		t.Errorf("got %s with the headers %v", r.Body, r.Header)
	}
	if at, err := time.Parse(time.RFC3339, r.Metadata("expiresAt").(string)); err != nil || time.Until(at) <= 0 {
		t.Errorf("the access token expires at %v, %v", at, err)
	}

	first := *c.cookie
	if first.Name != "socle-console" || first.Path != "/console" || !first.HttpOnly || first.Secure ||
		first.SameSite != http.SameSiteStrictMode || time.Until(first.Expires) < 29*24*time.Hour {
		t.Errorf("got the cookie %v", first)
	}

	// A refresh replaces the token.
	a.Exec(agePrevious, a.User)
	if r = c.send("POST", "/refresh", "{}").Want(200).Content("uuid", a.User); !isSignedIn(c, r) {
		t.Error("the refreshed access token is invalid")
	}
	if c.cookie.Value == first.Value {
		t.Error("a refresh has kept the refresh token")
	}

	// A log-out ends the session, and another one finds none.
	ended := c.send("DELETE", "", "").Want(200)
	if c.cookie != nil || isSignedIn(c, r) || ended.Get("isCurrent") != true {
		t.Errorf("after a log-out: cookie %v, %s", c.cookie, ended.Body)
	}
	c.send("DELETE", "", "").Want(401).Code("invalid_token")
	c.send("POST", "/refresh", "{}").Want(401).Code("invalid_token")

	actions := apitest.Value[string](a, `
		select string_agg(entry::jsonb ->> 'action' || ' ' || (entry::jsonb ->> 'target'), ', ' order by entry::jsonb ->> 'at')
		from `+apitest.AuditLog+` where entry::jsonb ->> 'actor' = $1 and entry::jsonb ->> 'target' like '/console/%'`, a.User)
	const want = "login /console/session, refreshSession /console/session/refresh, logout /console/session"
	if actions != want {
		t.Errorf("the audit log has %s, want %s", actions, want)
	}
}

// TestConsoleTabs checks that tabs that refresh at once all go on, whatever token each has seen,
// and that a stolen token nevertheless ends the session.
func TestConsoleTabs(t *testing.T) {
	t.Parallel()

	a := apitest.SharedUser(t)
	c := openConsole(t, a)
	c.logIn(a)
	spent := *c.cookie
	a.Exec(agePrevious, a.User)

	var wg sync.WaitGroup
	tabs := make([]consoleTab, 8)
	for i := range tabs {
		tabs[i] = *c
		wg.Go(func() {
			for range 3 { // the second time with the token of the first
				tabs[i].send("POST", "/refresh", "{}").Want(200)
			}
		})
	}
	wg.Wait()

	for _, tab := range tabs {
		if tab.cookie.Value != tabs[0].cookie.Value || tab.cookie.Value == spent.Value {
			t.Errorf("the tabs have different tokens, or the one before")
		}
	}

	late := *c
	late.cookie = &spent
	late.send("POST", "/refresh", "{}").Want(200)

	a.Exec(agePrevious, a.User)
	thief := *c
	thief.cookie = &spent
	thief.send("POST", "/refresh", "{}").Want(401).Code("token_reused")
	if thief.cookie != nil {
		t.Error("the cookie of an ended session stays")
	}
	tabs[0].send("POST", "/refresh", "{}").Want(401).Code("invalid_token")
}

// TestConsoleSessionRefuses checks what opens and renews no session: wrong credentials, malformed
// bodies, and requests of other sites.
func TestConsoleSessionRefuses(t *testing.T) {
	t.Parallel()

	a := apitest.SharedUser(t)
	c := openConsole(t, a)
	right := loginBody(a.Email, apitest.Password)
	c.send("POST", "", loginBody(a.Email, "wrong password")).Want(401).Code("invalid_credentials")
	c.send("POST", "", loginBody("nobody@example.com", apitest.Password)).Want(401).Code("invalid_credentials")

	for body, field := range map[string]string{
		`{"password": "x"}`: "email", `{"email": "a@example.com"}`: "password", `{}`: "email",
		`{"email": null, "password": "x"}`: "email", `{"email": "a\u0000", "password": "x"}`: "email",
		`{"email": "a@example.com", "password": "x", "code": "` + strings.Repeat("1", 65) + `"}`: "code",
	} {
		c.send("POST", "", body).Want(400).Field(field)
	}

	for _, body := range []string{"", "{", "[]", `"x"`, right + right, `{"email": 1, "password": "x"}`,
		`{"email": "a", "email": "b", "password": "x"}`, "{\"email\": \"\xff\", \"password\": \"x\"}"} {
		c.send("POST", "", body).Want(400).Code("malformed_json")
	}

	c.send("POST", "", `{"email": "`+strings.Repeat("a", 17<<10)+`", "password": "x"}`).Want(413)

	c.logIn(a)
	for _, r := range []struct{ method, path, body string }{
		{"POST", "", right}, {"POST", "/refresh", "{}"}, {"DELETE", "", ""},
	} {
		for _, site := range []string{"cross-site", "same-site", ""} { // "": an old browser
			refused := c.send(r.method, r.path, r.body, "Sec-Fetch-Site: "+site, "Origin: https://evil.example").
				Want(403).Code("forbidden")
			if refused.Header.Get("Set-Cookie") != "" || refused.Header.Get("Access-Control-Allow-Origin") != "" {
				t.Errorf("%s %s: got headers %v", r.method, r.path, refused.Header)
			}
		}

		for _, kind := range []string{"text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "",
			"application/json, text/plain"} {
			c.send(r.method, r.path, r.body, "Content-Type: "+kind).Want(400).Field("Content-Type")
		}
	}

	c.cookie.Value += "x"
	c.send("POST", "/refresh", "{}").Want(401).Code("invalid_token")
	if c.cookie != nil {
		t.Error("a forged cookie stays")
	}
}

// TestConsoleSecondFactor logs in with a code and with a recovery code.
func TestConsoleSecondFactor(t *testing.T) {
	t.Parallel()

	a := apitest.SharedUser(t)
	factor := addFactor(t, a)
	c := openConsole(t, a)
	c.send("POST", "", loginBody(a.Email, apitest.Password)).Want(401).Code("second_factor_required")
	c.send("POST", "", loginBodyWithCode(a, "000000")).Want(401).Code("invalid_code")
	if c.cookie != nil {
		t.Error("a refused log-in sets the cookie")
	}

	c.send("POST", "", loginBodyWithCode(a, factor.code(0))).Want(200)
	c.send("POST", "", loginBodyWithCode(a, factor.codes[0])).Want(200)
}

// TestConsoleCookieOverHTTPS checks that a browser that came by HTTPS gets, and uses, a cookie for
// HTTPS only.
func TestConsoleCookieOverHTTPS(t *testing.T) {
	t.Parallel()

	a := apitest.SharedUser(t)
	c := openConsole(t, a)
	c.origin = "https://socle.example.com" // a proxy adds TLS
	c.logIn(a)
	if c.cookie.Name != "__Secure-socle-console" || !c.cookie.Secure || !c.cookie.HttpOnly ||
		c.cookie.Path != "/console" || c.cookie.SameSite != http.SameSiteStrictMode {
		t.Errorf("got the cookie %v", c.cookie)
	}
	c.send("POST", "/refresh", "{}").Want(200)

	c.cookie.Name = "socle-console" // set by somebody on the network
	c.send("POST", "/refresh", "{}").Want(401).Code("invalid_token")
}
