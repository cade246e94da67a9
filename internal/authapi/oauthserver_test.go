package authapi_test

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/socle-dev/socle/internal/enduser/rules"
)

// withOAuth switches the OAuth server on, with a consent page of the application.
func withOAuth(s *rules.Settings) {
	autoconfirm(s)
	s.OAuthServer = rules.OAuthServer{Enabled: true, AuthorizationPath: "/oauth/consent"}
}

const callback = "https://client.example.com/callback?tenant=7"

// s256 returns the code challenge of a verifier.
func s256(verifier string) string {
	sum := sha256.Sum256([]byte(verifier))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// oauthClient is a client of a project's OAuth server.
type oauthClient struct {
	*app
	id, secret string
}

// newOAuthClient creates a client. A public one authenticates by none.
func (p *app) newOAuthClient(method string) *oauthClient {
	p.t.Helper()

	got := p.send("POST", "/admin/oauth/clients", p.secret, `{"client_name":"Shop","client_uri":"https://shop.example.com",
		"redirect_uris":["`+callback+`"],"token_endpoint_auth_method":"`+method+`"}`).want(201)
	return &oauthClient{p, got.text("client_id"), got.text("client_secret")}
}

// request returns the parameters of an authorization request, with changes. "" removes one.
func (c *oauthClient) request(changes ...string) string {
	q := url.Values{"client_id": {c.id}, "redirect_uri": {callback}, "response_type": {"code"}, "state": {"s&1"},
		"scope": {"openid email profile"}, "nonce": {"n-1"}, "code_challenge": {s256(verifier)},
		"code_challenge_method": {"S256"}}
	for i := 0; i+1 < len(changes); i += 2 {
		if q.Set(changes[i], changes[i+1]); changes[i+1] == "" {
			q.Del(changes[i])
		}
	}

	return "/oauth/authorize?" + q.Encode()
}

// location returns the address where a response sends the browser.
func (r *reply) location() *url.URL {
	r.t.Helper()

	u, err := url.Parse(r.want(303).header.Get("Location"))
	if err != nil {
		r.t.Fatal(err)
	}

	return u
}

// authorize begins an authorization and returns its id.
func (c *oauthClient) authorize(changes ...string) string {
	c.t.Helper()

	to := c.send("GET", c.request(changes...), "", "").location()
	if to.Host != "localhost:3000" || to.Path != "/oauth/consent" || to.Query().Get("authorization_id") == "" {
		c.t.Fatalf("the browser is sent to %s, want the consent page", to)
	}

	return to.Query().Get("authorization_id")
}

// approve lets a user approve a request of the client, and returns the code.
func (c *oauthClient) approve(session string, changes ...string) string {
	c.t.Helper()

	id := c.authorize(changes...)
	got := c.send("POST", "/oauth/authorizations/"+id+"/consent", session, `{"action":"approve"}`).want(200)

	return answerOf(got).Get("code")
}

// answerOf returns the parameters of the address of the client in a response.
func answerOf(r *reply) url.Values {
	r.t.Helper()

	u, err := url.Parse(r.text("redirect_url"))
	if err != nil || !strings.HasPrefix(r.text("redirect_url"), callback+"&") {
		r.t.Fatalf("the browser is sent to %q (%v), want the client", r.text("redirect_url"), err)
	}

	return u.Query()
}

// token asks for tokens by a form, as libraries do.
func (c *oauthClient) token(form url.Values) *reply {
	c.t.Helper()

	headers := []string{"Content-Type", "application/x-www-form-urlencoded"}
	if c.secret != "" {
		headers = append(headers, "Authorization",
			"Basic "+base64.StdEncoding.EncodeToString([]byte(c.id+":"+url.QueryEscape(c.secret))))
	} else {
		form.Set("client_id", c.id)
	}

	return c.send("POST", "/oauth/token", "", form.Encode(), headers...)
}

func (c *oauthClient) exchange(code string, changes ...string) *reply {
	c.t.Helper()

	form := url.Values{"grant_type": {"authorization_code"}, "code": {code}, "redirect_uri": {callback},
		"code_verifier": {verifier}}
	for i := 0; i+1 < len(changes); i += 2 {
		form.Set(changes[i], changes[i+1])
	}

	return c.token(form)
}

func (c *oauthClient) refresh(text string) *reply {
	c.t.Helper()
	return c.token(url.Values{"grant_type": {"refresh_token"}, "refresh_token": {text}})
}

// refused checks the failure of the token endpoint.
func (r *reply) refused(status int, code string) {
	r.t.Helper()

	if r.want(status).text("error") != code || r.text("error_description") == "" {
		r.t.Errorf("%s: got %s, want the error %s", r.request, r.raw, code)
	}
}

func TestOAuthServerOff(t *testing.T) {
	t.Parallel()

	p := newApp(t, autoconfirm)
	ann := p.signUp("ann@example.com").text("access_token")
	for path, key := range map[string]string{"GET /oauth/authorize": "", "POST /oauth/token": "",
		"POST /oauth/clients/register": "", "GET /admin/oauth/clients": p.secret, "GET /user/oauth/grants": ann,
		"GET /.well-known/oauth-authorization-server": "", "GET /oauth/userinfo": ann} {
		method, path, _ := strings.Cut(path, " ")
		p.send(method, path, key, "").fails(404, "feature_disabled")
	}

	// Programs find the keys of tokens by their issuer without the server, too.
	issuer := claim(t, ann, "iss").(string)
	metadata := p.send("GET", "/.well-known/openid-configuration", "", "").want(200).equal("issuer", issuer).
		equal("jwks_uri", issuer+"/.well-known/jwks.json").equal("registration_endpoint", "")
	if _, path, ok := strings.Cut(metadata.text("jwks_uri"), "/auth/v1"); !ok {
		t.Errorf("jwks_uri is %s", metadata.text("jwks_uri"))
	} else if keys := p.send("GET", path, "", "").want(200).body["keys"].([]any); len(keys) != 1 {
		t.Errorf("got %d keys, want one", len(keys))
	}
}

func TestOAuthClients(t *testing.T) {
	t.Parallel()

	p := newApp(t, withOAuth)
	admin := func(method, path, body string) *reply {
		return p.send(method, "/admin/oauth/clients"+path, p.secret, body)
	}

	first := admin("POST", "",
		`{"client_name":"One","redirect_uris":["https://a.example.com/cb","http://localhost:3000/cb"]}`).
		want(201).equal("client_type", "confidential").equal("registration_type", "manual").
		equal("token_endpoint_auth_method", "client_secret_basic")
	id := first.text("client_id")
	if first.text("client_secret") == "" || len(first.body["redirect_uris"].([]any)) != 2 ||
		len(first.body["grant_types"].([]any)) != 2 || len(first.body["response_types"].([]any)) != 1 {
		t.Errorf("got the client %s", first.raw)
	}

	admin("GET", "/"+id, "").want(200).equal("client_secret", "").equal("client_name", "One")
	for _, method := range []string{"PUT", "PATCH"} {
		admin(method, "/"+id, `{"logo_uri":"https://a.example.com/`+method+`.png"}`).want(200).equal("client_name",
			"One").
			equal("logo_uri", "https://a.example.com/"+method+".png")
	}
	admin("PUT", "/"+id, `{}`).fails(400, "validation_failed")
	admin("PUT", "/"+id, `{"token_endpoint_auth_method":"none"}`).fails(400, "validation_failed")

	renewed := admin("POST", "/"+id+"/regenerate_secret", "").want(200).text("client_secret")
	if renewed == "" || renewed == first.text("client_secret") {
		t.Errorf("the new secret is %q", renewed)
	}

	native := admin("POST", "", `{"client_type":"public","redirect_uris":["com.example.app:/cb"]}`).want(201).
		equal("token_endpoint_auth_method", "none").equal("client_secret", "").text("client_id")
	admin("POST", "/"+native+"/regenerate_secret", "").fails(400, "validation_failed")

	page := admin("GET", "?page=1&per_page=1", "").want(200)
	if page.header.Get("X-Total-Count") != "2" || len(page.body["clients"].([]any)) != 1 ||
		!strings.Contains(page.header.Get("Link"), `page=2&per_page=1>; rel="next"`) {
		t.Errorf("got the page %s, %v", page.raw, page.header)
	}

	admin("DELETE", "/"+id, "").want(204)
	admin("DELETE", "/"+id, "").fails(404, "oauth_client_not_found")
	admin("GET", "/"+id, "").fails(404, "oauth_client_not_found")
	p.send("GET", "/admin/oauth/clients", p.publishable, "").fails(403, "not_admin")
}

func TestOAuthClientRules(t *testing.T) {
	t.Parallel()

	p := newApp(t, func(s *rules.Settings) { withOAuth(s); s.OAuthServer.AllowDynamicRegistration = true })
	for _, uris := range []string{`[]`, `null`, `["/cb"]`, `["javascript:alert(1)"]`, `["data:text/html,x"]`,
		`["https://a.example.com/#f"]`, `["https://a.example.com/#"]`, `["https://user@a.example.com/"]`,
		`["http://a.example.com/"]`, `["https:///cb"]`, `["https:cb"]`, `["https://*.example.com/"]`,
		`["https://a.example.com\\@evil.com/"]`, `["https://evil。com/"]`, `["https://a.example.com/ x"]`,
		`["https://a.example.com/\r\nx"]`, `["myapp:cb"]`, `["FILE:///x"]`} {
		p.send("POST", "/admin/oauth/clients", p.secret, `{"redirect_uris":`+uris+`}`).fails(400, "validation_failed")
	}
	for _, member := range []string{`"client_type":"x"`, `"token_endpoint_auth_method":"private_key_jwt"`,
		`"client_type":"public","token_endpoint_auth_method":"client_secret_post"`, `"grant_types":["password"]`,
		`"grant_types":["refresh_token"]`, `"response_types":["token"]`, `"logo_uri":"javascript:x"`,
		`"client_name":"` + strings.Repeat("x", 201) + `"`} {
		p.send("POST", "/admin/oauth/clients", p.secret, `{"redirect_uris":["`+callback+`"],`+member+`}`).
			fails(400, "validation_failed")
	}

	dynamic := p.send("POST", "/oauth/clients/register", "", `{"redirect_uris":["http://127.0.0.1:8080/cb"],
		"token_endpoint_auth_method":"none","software_id":"x"}`).want(201)
	dynamic.equal("registration_type", "dynamic")

	// Libraries of OAuth ask at the address of RFC 8414, those of OpenID Connect below the issuer.
	issuer := "/projects/" + p.Project + "/auth/v1"
	for _, path := range []string{issuer + "/.well-known/openid-configuration",
		issuer + "/.well-known/oauth-authorization-server", "/.well-known/openid-configuration" + issuer,
		"/.well-known/oauth-authorization-server" + issuer} {
		p.visit("GET", p.URL+path, nil).want(200).equal("issuer", p.URL+issuer).equal("registration_endpoint",
			p.URL+issuer+"/oauth/clients/register")
	}

	q := newApp(t, withOAuth)
	q.send("POST", "/oauth/clients/register", "", `{"redirect_uris":["`+callback+`"]}`).
		fails(403, "oauth_dynamic_client_registration_disabled")
}

func TestOAuthFlow(t *testing.T) {
	t.Parallel()

	p := newApp(t, withOAuth)
	p.exec(`create table public.notes (id int generated always as identity primary key, owner uuid default auth.uid(), body text);
		create policy own on public.notes to authenticated using (owner = auth.uid() and auth.jwt() ->> 'client_id' is not null);
		insert into public.notes (body) values ('not hers'); grant select on public.notes to authenticated`)
	ann, ben := p.signUp("ann@example.com"), p.signUp("ben@example.com")
	session := ann.text("access_token")
	c := p.newOAuthClient("client_secret_basic")

	id := c.authorize()
	shown := p.send("GET", "/oauth/authorizations/"+id, session, "").want(200).equal("authorization_id", id).
		equal("client.name", "Shop").equal("client.id", c.id).equal("user.email", "ann@example.com")
	shown.equal("scope", "openid email profile").equal("redirect_uri", callback)
	p.send("GET", "/oauth/authorizations/"+id, ben.text("access_token"), "").fails(404, "oauth_authorization_not_found")

	answer := answerOf(p.send("POST", "/oauth/authorizations/"+id+"/consent", session, `{"action":"approve"}`).
		want(200))
	if answer.Get("state") != "s&1" || answer.Get("tenant") != "7" || answer.Get("iss") != claim(t, session, "iss") {
		t.Errorf("the client gets %v", answer)
	}

	got := c.exchange(answer.Get("code")).want(200).equal("token_type", "bearer").equal("scope", "openid email profile")
	access := got.text("access_token")
	for name, want := range map[string]any{"client_id": c.id, "role": "authenticated", "aal": "aal1",
		"sub": ann.text("user.id"), "aud": "authenticated"} {
		if claim(t, access, name) != want {
			t.Errorf("claim %s: got %v, want %v", name, claim(t, access, name), want)
		}
	}
	sum := sha256.Sum256([]byte(access))
	for name, want := range map[string]any{"aud": c.id, "nonce": "n-1", "sub": ann.text("user.id"),
		"at_hash": base64.RawURLEncoding.EncodeToString(sum[:16]), "email": "ann@example.com", "email_verified": true} {
		if claim(t, got.text("id_token"), name) != want {
			t.Errorf("claim %s of the ID token: got %v, want %v", name, claim(t, got.text("id_token"), name), want)
		}
	}
	if got := p.rows("GET", access, ""); got != "200 []" {
		t.Errorf("rows for the client: got %s", got)
	}

	p.send("GET", "/oauth/userinfo", access, "").want(200).equal("sub", ann.text("user.id")).equal("email",
		"ann@example.com")
	p.send("GET", "/user", access, "").want(200)
	refreshed := c.refresh(got.text("refresh_token")).want(200)
	if refreshed.text("refresh_token") == got.text("refresh_token") || claim(t, refreshed.text("access_token"),
		"client_id") != c.id {
		t.Errorf("refreshed to %s", refreshed.raw)
	}

	// A user who has granted the client these scopes is not asked again, but for more scopes and on
	// demand.
	again := p.send("GET", "/oauth/authorizations/"+c.authorize("scope", "openid email"), session, "").want(200)
	c.exchange(answerOf(again).Get("code")).want(200)
	p.send("GET", "/oauth/authorizations/"+c.authorize("scope", "openid phone"), session, "").want(200).equal("scope",
		"openid phone")
	p.send("GET", "/oauth/authorizations/"+c.authorize("prompt", "consent"), session, "").want(200).
		equal("redirect_url", "")

	var grants []struct {
		Client struct{ ID, Name string }
		Scopes []string
	}
	raw := p.send("GET", "/user/oauth/grants", session, "").want(200).raw
	if err := json.Unmarshal([]byte(raw), &grants); err != nil || len(grants) != 1 || grants[0].Client.ID != c.id ||
		len(grants[0].Scopes) != 3 {
		t.Errorf("got the grants %s (%v)", raw, err)
	}

	p.send("DELETE", "/user/oauth/grants?client_id="+c.id, session, "").want(204)
	p.send("DELETE", "/user/oauth/grants?client_id="+c.id, session, "").fails(404, "oauth_consent_not_found")
	c.refresh(refreshed.text("refresh_token")).refused(400, "invalid_grant")
	p.send("GET", "/oauth/userinfo", access, "").fails(403, "session_not_found")
	p.send("GET", "/user", session, "").want(200)
}

// TestOAuthAttacks: what a stranger, another client and the client itself try with a code or a
// token.
func TestOAuthAttacks(t *testing.T) {
	t.Parallel()

	p := newApp(t, withOAuth)
	ann := p.signUp("ann@example.com")
	session := ann.text("access_token")
	c, other := p.newOAuthClient("client_secret_basic"), p.newOAuthClient("client_secret_post")
	public := p.newOAuthClient("none")

	// A code is bound to client, address and verifier, and spent by any attempt.
	for name, attempt := range map[string]func(code string) *reply{
		"other client": func(code string) *reply { return public.exchange(code) },
		"other address": func(code string) *reply {
			return c.exchange(code, "redirect_uri", "https://client.example.com/callback")
		},
		"wrong verifier": func(code string) *reply { return c.exchange(code, "code_verifier", verifier+"x") },
		"challenge":      func(code string) *reply { return c.exchange(code, "code_verifier", s256(verifier)) },
	} {
		code := c.approve(session)
		t.Log(name)
		attempt(code).refused(400, "invalid_grant")
		c.exchange(code).refused(400, "invalid_grant")
	}

	code := c.approve(session)
	c.exchange(code, "code_verifier", "").refused(400, "invalid_request")
	c.exchange(code+"x").refused(400, "invalid_grant")
	first := c.exchange(code).want(200)
	c.exchange(code).refused(400, "invalid_grant")
	c.refresh(first.text("refresh_token")).refused(400, "invalid_grant")
	p.send("GET", "/user", first.text("access_token"), "").fails(403, "session_not_found")

	// Refresh tokens are valid once, for their client and at its endpoint.
	second := public.exchange(public.approve(session)).want(200)
	c.refresh(second.text("refresh_token")).refused(400, "invalid_grant")
	p.post("/token?grant_type=refresh_token", `{"refresh_token":"`+second.text("refresh_token")+`"}`).
		fails(400, "refresh_token_not_found")
	c.refresh(ann.text("refresh_token")).refused(400, "invalid_grant")
	third := public.refresh(second.text("refresh_token")).want(200)
	public.refresh(second.text("refresh_token")).refused(400, "invalid_grant")
	public.refresh(third.text("refresh_token")).refused(400, "invalid_grant")

	// A client changes nothing about its user, and approves no other client. An ID token is no
	// access token.
	tokens := c.exchange(c.approve(session)).want(200)
	access := tokens.text("access_token")
	p.send("PUT", "/user", access, `{"password":"correct horse 2"}`).fails(403, "insufficient_scope")
	p.send("POST", "/factors", access, `{"factor_type":"totp"}`).fails(403, "insufficient_scope")
	p.send("GET", "/user/oauth/grants", access, "").fails(403, "insufficient_scope")
	p.send("POST", "/logout", access, "").fails(403, "insufficient_scope")
	p.send("POST", "/oauth/authorizations/"+other.authorize()+"/consent", access, `{"action":"approve"}`).
		fails(403, "insufficient_scope")
	p.send("GET", "/user", tokens.text("id_token"), "").fails(403, "bad_jwt")
	p.send("POST", "/logout?scope=local", access, "").want(204)
	p.send("GET", "/user", session, "").want(200)

	// Clients authenticate as they are registered.
	wrong := *c
	for name, secret := range map[string]string{"secret of another": other.secret, "none": ""} {
		t.Log(name)
		wrong.secret = secret
		wrong.exchange(c.approve(session)).refused(401, "invalid_client")
	}
	impostor := *public
	impostor.secret = c.secret
	impostor.exchange("x").refused(401, "invalid_client")
	body := `{"grant_type":"refresh_token","refresh_token":"x","client_id":"` + other.id + `","client_secret":"` + other.secret + `"}`
	p.send("POST", "/oauth/token", "", body, "Content-Type", "application/json").refused(400, "invalid_grant")
	p.send("POST", "/oauth/token", "", "client_id="+other.id+"&client_secret="+other.secret+"&grant_type=password").
		refused(400, "unsupported_grant_type")
	p.send("POST", "/oauth/token", "", "client_id="+public.id+"&client_id="+c.id).refused(400, "invalid_request")

	// The end of the client ends its sessions.
	last := c.exchange(c.approve(session)).want(200)
	p.send("DELETE", "/admin/oauth/clients/"+c.id, p.secret, "").want(204)
	p.send("GET", "/user", last.text("access_token"), "").fails(403, "session_not_found")
	c.refresh(last.text("refresh_token")).refused(401, "invalid_client")
}

func TestOAuthRequests(t *testing.T) {
	t.Parallel()

	p := newApp(t, withOAuth)
	session := p.signUp("ann@example.com").text("access_token")
	c := p.newOAuthClient("none")

	// Nobody is sent to an address that the client has not registered.
	for _, to := range []string{"", "https://client.example.com/callback",
		"https://client.example.com/callback?tenant=8",
		callback + "&x=1", callback + "#x", "https://client.example.com.evil.com/callback?tenant=7",
		"https://client.example.com@evil.com/callback?tenant=7", "HTTPS://client.example.com/callback?tenant=7",
		"https://client.example.com:443/callback?tenant=7", "https://client.example.com//callback?tenant=7",
		"https://client.example.com/x/../callback?tenant=7", "//evil.com", "javascript:alert(1)", callback + " "} {
		p.send("GET", c.request("redirect_uri", to), "", "").fails(400, "validation_failed")
	}
	p.send("GET", c.request("client_id", "x"), "", "").fails(400, "oauth_client_not_found")
	p.send("GET", c.request("client_id", p.Project), "", "").fails(400, "oauth_client_not_found")
	p.send("GET", c.request()+"&redirect_uri=https%3A%2F%2Fevil.com", "", "").fails(400, "validation_failed")

	for name, tt := range map[string]struct{ parameter, value, want string }{
		"no PKCE":            {"code_challenge", "", "invalid_request"},
		"PKCE without hash":  {"code_challenge_method", "plain", "invalid_request"},
		"PKCE by default":    {"code_challenge_method", "", "invalid_request"},
		"short challenge":    {"code_challenge", "short", "invalid_request"},
		"implicit":           {"response_type", "token", "unsupported_response_type"},
		"no type":            {"response_type", "", "invalid_request"},
		"fragment":           {"response_mode", "fragment", "invalid_request"},
		"unknown scope":      {"scope", "openid admin", "invalid_scope"},
		"silent":             {"prompt", "none", "login_required"},
		"request object":     {"request", "x", "request_not_supported"},
		"request by address": {"request_uri", "https://evil.com", "request_uri_not_supported"},
		"large state":        {"state", strings.Repeat("x", 5000), "invalid_request"},
		"relative resource":  {"resource", "/x", "invalid_target"},
	} {
		to := p.send("GET", c.request(tt.parameter, tt.value), "", "").location()
		if q := to.Query(); to.Host != "client.example.com" || q.Get("error") != tt.want || q.Has("code") ||
			(q.Get("state") != "s&1" && tt.parameter != "state") {
			t.Errorf("%s: the browser is sent to %s, want the error %s", name, to, tt.want)
		}
	}

	// A decision is final, and one of the user.
	id := c.authorize()
	p.send("POST", "/oauth/authorizations/"+id+"/consent", session, `{"action":"maybe"}`).fails(400,
		"validation_failed")
	p.send("POST", "/oauth/authorizations/"+id+"/consent", p.publishable, `{"action":"approve"}`).fails(403, "bad_jwt")
	denied := answerOf(p.send("POST", "/oauth/authorizations/"+id+"/consent", session, `{"action":"deny"}`).want(200))
	if denied.Get("error") != "access_denied" || denied.Get("state") != "s&1" || denied.Has("code") {
		t.Errorf("after a denial the client gets %v", denied)
	}
	p.send("POST", "/oauth/authorizations/"+id+"/consent", session, `{"action":"approve"}`).fails(400,
		"validation_failed")
	p.send("GET", "/oauth/authorizations/"+p.Project, session, "").fails(404, "oauth_authorization_not_found")
	p.send("GET", "/oauth/authorizations/x", session, "").fails(404, "validation_failed")

	// Both have an end.
	id = c.authorize()
	p.auth(`update auth.oauth_authorizations set created_at = now() - interval '11 minutes'`)
	p.send("GET", "/oauth/authorizations/"+id, session, "").fails(404, "oauth_authorization_not_found")
	code := c.approve(session)
	p.auth(`update auth.oauth_authorizations set approved_at = now() - interval '6 minutes'`)
	c.exchange(code).refused(400, "invalid_grant")
}

// TestOAuthKeys: ID tokens have keys of their own, so that none opens the rows API.
func TestOAuthKeys(t *testing.T) {
	t.Parallel()

	p := newApp(t, withOAuth)
	c := p.newOAuthClient("none")
	tokens := c.exchange(c.approve(p.signUp("ann@example.com").text("access_token"))).want(200)

	var ids []any
	for _, k := range p.send("GET", "/.well-known/jwks.json", "", "").want(200).body["keys"].([]any) {
		ids = append(ids, k.(map[string]any)["kid"])
	}
	for _, name := range []string{"access_token", "id_token"} {
		var header struct{ Kid string }
		text, err := base64.RawURLEncoding.DecodeString(strings.Split(tokens.text(name), ".")[0])
		if err != nil || json.Unmarshal(text, &header) != nil || !slices.Contains(ids, any(header.Kid)) {
			t.Errorf("%s has the header %s (%v), want one of the keys %v", name, text, err, ids)
		}
	}

	r, err := http.NewRequestWithContext(t.Context(), "GET", p.URL+"/projects/"+p.Project+"/rest/v1/", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+tokens.text("id_token"))
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if res.StatusCode != 401 {
		t.Errorf("the rows API answers an ID token with %d, want 401", res.StatusCode)
	}
}

// auth runs SQL as the auth login.
func (p *app) auth(sql string) {
	p.t.Helper()

	if _, err := p.project.EndUsers().Exec(p.t.Context(), sql); err != nil {
		p.t.Fatalf("%s: %v", sql, err)
	}
}
