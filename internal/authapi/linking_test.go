package authapi_test

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/socle-dev/socle/internal/enduser"
	"github.com/socle-dev/socle/internal/enduser/rules"
	"github.com/socle-dev/socle/internal/idp/idptest"
)

// linkURL returns the address where a user begins to add an identity.
func (p *app) linkURL(token, more string) string {
	p.t.Helper()

	return p.send("GET", "/user/identities/authorize?provider=custom:test&skip_http_redirect=true"+more, token, "").
		want(200).text("url")
}

// identities returns the ids of a user's identities by their providers.
func (p *app) identities(token string) map[string]string {
	p.t.Helper()

	all := map[string]string{}
	list, _ := p.send("GET", "/user", token, "").want(200).body["identities"].([]any)
	for _, one := range list {
		members := one.(map[string]any)
		all[fmt.Sprint(members["provider"])] = fmt.Sprint(members["identity_id"])
	}

	return all
}

func linking(url string) func(*rules.Settings) {
	return func(s *rules.Settings) { withProvider(url)(s); autoconfirm(s); s.AnonymousSignIn = true }
}

func TestLinkIdentity(t *testing.T) {
	t.Parallel()

	provider := idptest.New(t)
	p := newApp(t, linking(provider.URL))
	provider.Person(map[string]any{"sub": "1", "email": "ann@elsewhere.example.com"})
	ann, ben := p.signUp("ann@example.com").text("access_token"), p.signUp("ben@example.com").text("access_token")

	address := p.linkURL(ann, "")
	b := newBrowser(p)
	got := fragment(b.open(address))
	p.send("GET", "/user", got.Get("access_token"), "").want(200).equal("email", "ann@example.com").
		equal("app_metadata.provider", "email")
	if all := p.identities(ann); len(all) != 2 || all["custom:test"] == "" || got.Get("provider_token") == "" {
		t.Errorf("got the identities %v and the fragment %v", all, got)
	}

	if got, want := failure(b.open(address)), "invalid_request bad_oauth_state OAuth state was used"; got != want {
		t.Errorf("the link again: got %s, want %s", got, want)
	}
	if got, want := failure(newBrowser(p).open(p.linkURL(ann, ""))), "server_error identity_already_exists Identity is already linked"; got != want {
		t.Errorf("the identity again: got %s, want %s", got, want)
	}
	if got, want := failure(newBrowser(p).open(p.linkURL(ben, ""))), "server_error identity_already_exists Identity is already linked to another user"; got != want {
		t.Errorf("the identity by another user: got %s, want %s", got, want)
	}

	// The identity signs in although its address is not verified: its owner has added it.
	p.send("GET", "/user", newBrowser(p).signIn("custom:test").Get("access_token"), "").want(200).
		equal("email", "ann@example.com")

	p.send("GET", "/user/identities/authorize?provider=custom:test", "", "").fails(401, "no_authorization")
	p.send("GET", "/user/identities/authorize?provider=google", ann, "").fails(400, "provider_disabled")
	to := p.send("GET", "/user/identities/authorize?provider=custom:test", ann, "").want(303).header.Get("Location")
	if !strings.Contains(to, "/authorize?") {
		t.Errorf("without skip_http_redirect: got %s", to)
	}
}

// TestLinkWithPKCE: the code of a link needs the verifier like any other.
func TestLinkWithPKCE(t *testing.T) {
	t.Parallel()

	provider := idptest.New(t)
	p := newApp(t, linking(provider.URL))
	provider.Person(map[string]any{"sub": "1"})
	ann := p.signUp("ann@example.com").text("access_token")

	code := newBrowser(p).open(p.linkURL(ann, challengeOf(verifier))).Query().Get("code")
	p.post("/token?grant_type=pkce", `{"auth_code":"`+code+`","code_verifier":"`+verifier+`"}`).want(200).
		equal("user.email", "ann@example.com")
}

// TestLinkEnds: who logs out meanwhile, or takes too long, adds nothing.
func TestLinkEnds(t *testing.T) {
	t.Parallel()

	provider := idptest.New(t)
	p := newApp(t, linking(provider.URL))
	provider.Person(map[string]any{"sub": "1"})

	ann := p.signUp("ann@example.com").text("access_token")
	address := p.linkURL(ann, "")
	p.send("POST", "/logout", ann, "").want(204)
	if got := failure(newBrowser(p).open(address)); !strings.HasPrefix(got, "access_denied session_not_found ") {
		t.Errorf("after a log-out: got %s", got)
	}
	p.send("GET", "/user/identities/authorize?provider=custom:test", ann, "").fails(403, "session_not_found")

	u, _ := url.Parse(address)
	f, err := p.directory().OpenFlow(u.Query().Get("link"), false)
	if err != nil || f.Ends.After(time.Now().Add(2*time.Minute)) {
		t.Errorf("the link ends at %v (%v), want two minutes", f.Ends, err)
	}

	f.Ends = time.Now().Add(-time.Second)
	if _, err := p.directory().Depart(t.Context(), f, nil, enduser.Client{}); err == nil ||
		!strings.Contains(err.Error(), "has expired") {
		t.Errorf("an expired link: got %v", err)
	}
	if got := failure(newBrowser(p).open("/authorize?link=x")); !strings.Contains(got, "bad_oauth_state") {
		t.Errorf("a wrong link: got %s", got)
	}
}

func TestUnlinkIdentity(t *testing.T) {
	t.Parallel()

	provider := idptest.New(t)
	p := newApp(t, linking(provider.URL))
	ann := p.signUp("ann@example.com")
	token := ann.text("access_token")
	unlink := func(id string) *reply { t.Helper(); return p.send("DELETE", "/user/identities/"+id, token, "") }

	mail := p.identities(token)["email"]
	unlink(mail).fails(422, "single_identity_not_deletable")
	provider.Person(person("1", "lee@example.com"))
	newBrowser(p).open(p.linkURL(token, ""))
	unlink(ann.text("user.id")).fails(422, "identity_not_found")
	unlink("x").fails(404, "validation_failed")

	other := p.signUp("ben@example.com").text("access_token")
	p.send("DELETE", "/user/identities/"+mail, other, "").fails(422, "identity_not_found")

	// With the address go its password and the address itself.
	p.post("/recover", `{"email":"ann@example.com"}`).want(200)
	m := p.mail("recovery", "ann@example.com")
	if got := unlink(mail).want(200).raw; got != "{}" {
		t.Errorf("got %s, want {}", got)
	}

	p.send("GET", "/user", token, "").want(200).equal("email", "lee@example.com").
		equal("app_metadata.provider", "custom:test")
	p.post("/token?grant_type=password", `{"email":"ann@example.com","password":"`+password+`"}`).
		fails(400, "invalid_credentials")
	p.post("/token?grant_type=password", `{"email":"lee@example.com","password":"`+password+`"}`).
		fails(400, "invalid_credentials")
	p.post("/verify", `{"type":"recovery","email":"ann@example.com","token":"`+p.code(m)+`"}`).fails(403, "otp_expired")
	p.signUp("ann@example.com") // is free
}

// TestLinkingNeedsLevel: a user with a second factor links and unlinks after using it.
func TestLinkingNeedsLevel(t *testing.T) {
	t.Parallel()

	provider := idptest.New(t)
	p := newApp(t, linking(provider.URL))
	ann := p.signUp("ann@example.com")
	token := ann.text("access_token")
	provider.Person(map[string]any{"sub": "1"})
	begun := p.linkURL(token, "")

	if _, err := p.project.EndUsers().Exec(t.Context(), `
		insert into auth.mfa_factors (id, user_id, factor_type, status) values (gen_random_uuid(), $1, 'totp', 'verified')`,
		ann.text("user.id")); err != nil {
		t.Fatal(err)
	}

	p.send("GET", "/user/identities/authorize?provider=custom:test", token, "").fails(403, "insufficient_aal")
	p.send("DELETE", "/user/identities/"+p.identities(token)["email"], token, "").fails(403, "insufficient_aal")
	if got := failure(newBrowser(p).open(begun)); !strings.HasPrefix(got, "access_denied insufficient_aal ") {
		t.Errorf("a link from before: got %s", got)
	}
}

// TestLinkByIDToken adds an identity by an ID token that the application has.
func TestLinkByIDToken(t *testing.T) {
	t.Parallel()

	provider := idptest.New(t)
	p := newApp(t, linking(provider.URL))
	token := p.signUp("ann@example.com").text("access_token")
	provider.Person(map[string]any{"sub": "1"})
	body := `{"provider":"custom:test","link_identity":true,"id_token":"` + provider.IDToken(nil) + `"}`

	p.send("POST", "/token?grant_type=id_token", token, body).want(200).equal("user.email", "ann@example.com")
	if all := p.identities(token); len(all) != 2 {
		t.Errorf("got the identities %v, want 2", all)
	}
	p.send("POST", "/token?grant_type=id_token", token, body).fails(422, "identity_already_exists")
	p.post("/token?grant_type=id_token", body).fails(403, "bad_jwt")
}
