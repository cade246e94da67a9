package authapi_test

import (
	"encoding/base64"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/enduser/rules"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/webauthn/webauthntest"
)

// byPasskey lets users of the site http://localhost:3000 have passkeys, and authenticators as
// second factors.
func byPasskey(s *rules.Settings) {
	autoconfirm(s)
	s.AnonymousSignIn = true
	s.WebAuthn = rules.WebAuthn{Passkeys: true, Factors: true}
}

func newAuthenticator(t *testing.T) *webauthntest.Authenticator {
	t.Helper()
	return webauthntest.New(t, -7, "http://localhost:3000", "localhost")
}

// bytes returns a member in base64url.
func (r *reply) bytes(path string) []byte {
	r.t.Helper()

	decoded, err := base64.RawURLEncoding.DecodeString(r.text(path))
	if err != nil || len(decoded) == 0 {
		r.t.Fatalf("%s: got %s %q (%v)", r.request, path, r.text(path), err)
	}

	return decoded
}

// answer is the body of the response to a challenge.
func answer(challenge, credential string) string {
	return `{"challenge_id":"` + challenge + `","credential":` + credential + `}`
}

// addPasskey registers an authenticator for the user of a token.
func (p *app) addPasskey(token string, a *webauthntest.Authenticator) *reply {
	p.t.Helper()

	options := p.send("POST", "/passkeys/registration/options", token, "{}").want(200)
	a.UserHandle = options.bytes("options.user.id")

	return p.send("POST", "/passkeys/registration/verify", token,
		answer(options.text("challenge_id"), a.Create(options.bytes("options.challenge"))))
}

// passkeySignIn signs in with an authenticator.
func (p *app) passkeySignIn(a *webauthntest.Authenticator) *reply {
	p.t.Helper()

	options := p.post("/passkeys/authentication/options", "{}").want(200)
	a.Counter++

	return p.post("/passkeys/authentication/verify",
		answer(options.text("challenge_id"), a.Get(options.bytes("options.challenge"))))
}

func TestPasskeys(t *testing.T) {
	t.Parallel()

	p := newApp(t, byPasskey)
	session := p.signUp("ann@example.com")
	token := session.text("access_token")
	send := func(method, path, body string) *reply { p.t.Helper(); return p.send(method, path, token, body) }

	options := send("POST", "/passkeys/registration/options", "{}").want(200).equal("options.rp.id", "localhost").
		equal("options.attestation", "none").equal("options.user.name", "ann@example.com").
		equal("options.authenticatorSelection.userVerification", "required").
		equal("options.authenticatorSelection.residentKey", "required")
	a := newAuthenticator(t)
	a.UserHandle = options.bytes("options.user.id")
	body := answer(options.text("challenge_id"), a.Create(options.bytes("options.challenge")))
	added := send("POST", "/passkeys/registration/verify", body).want(200)
	send("POST", "/passkeys/registration/verify", body).fails(400, "webauthn_challenge_not_found") // used
	send("POST", "/passkeys/registration/verify", `{"challenge_id":"x"}`).fails(400, "bad_json").
		equal("message", "Could not parse request body as JSON: challenge_id must be a UUID")
	p.addPasskey(token, a).fails(422, "webauthn_credential_exists")

	path := "/passkeys/" + added.text("id")
	send("PATCH", path, `{"friendly_name":"my phone"}`).want(200).equal("friendly_name", "my phone")
	send("PATCH", path, `{"friendly_name":"`+strings.Repeat("x", 101)+`"}`).fails(400, "validation_failed")
	send("PATCH", "/passkeys/"+uuid.NewString(), `{"friendly_name":"x"}`).fails(404, "webauthn_credential_not_found")

	signedIn := p.passkeySignIn(a).want(200).equal("user.email", "ann@example.com")
	if got := claim(t, signedIn.text("access_token"), "aal"); got != "aal1" {
		t.Errorf("got the level %v, want aal1", got)
	}
	p.send("GET", "/user", signedIn.text("access_token"), "").want(200)
	if got := send("GET", "/passkeys", "").want(200).raw; !strings.Contains(got, "my phone") ||
		!strings.Contains(got, "last_used_at") {
		t.Errorf("got the passkeys %s", got)
	}

	// Another user has no part in them.
	ben := p.signUp("ben@example.com").text("access_token")
	if got := p.send("GET", "/passkeys", ben, "").want(200).raw; got != "[]" {
		t.Errorf("passkeys of another user: got %s", got)
	}
	p.send("PATCH", path, ben, `{"friendly_name":"x"}`).fails(404, "webauthn_credential_not_found")
	p.send("DELETE", path, ben, "").fails(404, "webauthn_credential_not_found")

	admin := "/admin/users/" + session.text("user.id")
	p.send("PUT", admin, p.secret, `{"ban_duration":"1h"}`).want(200)
	p.passkeySignIn(a).fails(400, "user_banned")
	p.send("PUT", admin, p.secret, `{"ban_duration":"none"}`).want(200)

	if got := p.send("GET", admin+"/passkeys", p.secret, "").want(200).raw; !strings.Contains(got, added.text("id")) {
		t.Errorf("passkeys for an administrator: got %s", got)
	}
	p.send("DELETE", admin+"/passkeys/"+added.text("id"), p.secret, "").want(200)
	p.send("DELETE", admin+"/passkeys/"+added.text("id"), p.secret, "").fails(404, "webauthn_credential_not_found")
	p.passkeySignIn(a).fails(400, "webauthn_verification_failed")

	send("DELETE", "/passkeys/"+p.addPasskey(token, newAuthenticator(t)).want(200).text("id"), "").want(200)
	for range 10 {
		p.addPasskey(token, newAuthenticator(t)).want(200)
	}
	p.addPasskey(token, newAuthenticator(t)).fails(422, "too_many_passkeys")

	anonymous := p.post("/signup", "{}").want(200).text("access_token")
	p.send("POST", "/passkeys/registration/options", anonymous, "{}").fails(422, "validation_failed")
}

// TestPasskeyRefusals changes one thing at a time.
func TestPasskeyRefusals(t *testing.T) {
	t.Parallel()

	p := newApp(t, byPasskey)
	token := p.signUp("ann@example.com").text("access_token")
	for name, change := range map[string]func(*webauthntest.Authenticator){
		"origin":        func(a *webauthntest.Authenticator) { a.Origin = "http://localhost:3001" },
		"frame":         func(a *webauthntest.Authenticator) { a.CrossOrigin = true },
		"relying party": func(a *webauthntest.Authenticator) { a.RelyingParty = "example.com" },
		"verification":  func(a *webauthntest.Authenticator) { a.Flags = 1 },
		"presence":      func(a *webauthntest.Authenticator) { a.Flags = 4 },
	} {
		a := newAuthenticator(t)
		change(a)
		if got := p.addPasskey(token, a); got.status != 400 || got.text("code") != "webauthn_verification_failed" {
			t.Errorf("another %s of a new passkey: got %d %s", name, got.status, got.raw)
		}
	}

	a := newAuthenticator(t)
	p.addPasskey(token, a).want(200)
	fails := func(name string, change func(*webauthntest.Authenticator)) {
		t.Helper()

		changed := *a
		change(&changed)
		if got := p.passkeySignIn(&changed); got.status != 400 || got.text("code") != "webauthn_verification_failed" {
			t.Errorf("another %s: got %d %s", name, got.status, got.raw)
		}
	}
	fails("origin", func(a *webauthntest.Authenticator) { a.Origin = "https://localhost:3000" })
	fails("relying party", func(a *webauthntest.Authenticator) { a.RelyingParty = "example.com" })
	fails("verification", func(a *webauthntest.Authenticator) { a.Flags = 1 })
	fails("user", func(a *webauthntest.Authenticator) { a.UserHandle = make([]byte, 16) })
	fails("credential", func(a *webauthntest.Authenticator) { a.ID = []byte("unknown") })

	other := newAuthenticator(t)
	other.ID, other.UserHandle = a.ID, a.UserHandle
	if got := p.passkeySignIn(other); got.status != 400 {
		t.Errorf("another key: got %d %s", got.status, got.raw)
	}

	// The counter of a clone stays behind.
	clone := *a
	p.passkeySignIn(a).want(200)
	p.passkeySignIn(&clone).fails(400, "webauthn_verification_failed")
	p.passkeySignIn(a).want(200)

	// A challenge is for one response, of one kind, of one user, for a time.
	options := p.post("/passkeys/authentication/options", "{}").want(200)
	a.Counter++
	body := answer(options.text("challenge_id"), a.Get(options.bytes("options.challenge")))
	p.post("/passkeys/authentication/verify", body).want(200)
	p.post("/passkeys/authentication/verify", body).fails(400, "webauthn_challenge_not_found")

	first := p.post("/passkeys/authentication/options", "{}").want(200)
	second := p.post("/passkeys/authentication/options", "{}").want(200)
	a.Counter++
	p.post("/passkeys/authentication/verify", answer(first.text("challenge_id"),
		a.Get(second.bytes("options.challenge")))).fails(400, "webauthn_verification_failed")
	p.post("/passkeys/authentication/verify", answer(first.text("challenge_id"),
		a.Get(first.bytes("options.challenge")))).fails(400, "webauthn_challenge_not_found") // spent by the invalid one

	ben := p.signUp("ben@example.com").text("access_token")
	options = p.send("POST", "/passkeys/registration/options", token, "{}").want(200)
	created := answer(options.text("challenge_id"), newAuthenticator(t).Create(options.bytes("options.challenge")))
	p.send("POST", "/passkeys/registration/verify", ben, created).fails(400, "webauthn_challenge_not_found")
	p.post("/passkeys/authentication/verify", created).fails(400, "webauthn_challenge_not_found")

	if _, err := pg.Exec(t.Context(), p.project.EndUsers(), `
		update auth.webauthn_challenges set created_at = now() - interval '6 minutes'`); err != nil {
		t.Fatal(err)
	}
	p.send("POST", "/passkeys/registration/verify", token, created).fails(400, "webauthn_challenge_not_found")
	p.post("/passkeys/authentication/verify", `{"credential":{"rawId":"!"}}`).fails(400, "bad_json")
}

func TestPasskeysDisabled(t *testing.T) {
	t.Parallel()

	p := newApp(t, autoconfirm)
	token := p.signUp("ann@example.com").text("access_token")
	id := uuid.NewString()
	for path, method := range map[string]string{"/passkeys/registration/options": "POST",
		"/passkeys/registration/verify": "POST", "/passkeys/authentication/options": "POST",
		"/passkeys/authentication/verify": "POST", "/passkeys/" + id: "DELETE"} {
		p.send(method, path, token, `{"challenge_id":"`+id+`"}`).fails(422, "passkey_disabled")
	}
	p.send("POST", "/factors", token, `{"factor_type":"webauthn"}`).fails(422, "mfa_webauthn_enroll_not_enabled")
}

// TestAuthenticatorFactor has an authenticator as a second factor.
func TestAuthenticatorFactor(t *testing.T) {
	t.Parallel()

	p := newApp(t, byPasskey)
	token := p.signUp("ann@example.com").text("access_token")
	send := func(method, path, body string) *reply { p.t.Helper(); return p.send(method, path, token, body) }

	factor := send("POST", "/factors", `{"factor_type":"webauthn","friendly_name":"key"}`).want(200).
		equal("type", "webauthn").text("id")
	path := "/factors/" + factor
	const options = "webauthn.credential_options.publicKey."
	challenge := func() *reply {
		return send("POST", path+"/challenge", `{"webauthn":{"rpId":"localhost","rpOrigins":["http://localhost:3000"]}}`).
			want(200).equal("type", "webauthn")
	}
	verify := func(challenge *reply, response string) *reply {
		return send("POST", path+"/verify", `{"challenge_id":"`+challenge.text("id")+`","webauthn":{"type":"`+
			challenge.text("webauthn.type")+`","rpId":"localhost","credential_response":`+response+`}}`)
	}
	for _, rp := range []string{`{"rpId":"evil.example"}`, `{"rpOrigins":["https://evil.example"]}`} {
		send("POST", path+"/challenge", `{"webauthn":`+rp+`}`).fails(400, "validation_failed")
	}

	a := newAuthenticator(t)
	a.Flags = 1 // a second factor need not verify the user
	first := challenge().equal("webauthn.type", "create").equal(options+"rp.id", "localhost")
	send("POST", path+"/verify", `{"challenge_id":"`+first.text("id")+`","code":"123456"}`).
		fails(400, "validation_failed")
	verify(first, newAuthenticator(t).Create([]byte("another challenge"))).fails(422, "mfa_verification_failed")
	verified := verify(first, a.Create(first.bytes(options+"challenge"))).want(200)
	if claim(t, verified.text("access_token"), "aal") != "aal2" || !strings.Contains(verified.raw, `"webauthn"`) {
		t.Errorf("got %s, want the second level", verified.raw)
	}

	token = p.post("/token?grant_type=password", `{"email":"ann@example.com","password":"`+password+`"}`).
		want(200).text("access_token")
	second := challenge().equal("webauthn.type", "request").equal(options+"rpId", "localhost")
	if !strings.Contains(second.raw, base64.RawURLEncoding.EncodeToString(a.ID)) {
		t.Errorf("got %s, want the credential", second.raw)
	}
	a.Counter++
	other := newAuthenticator(t)
	other.ID = a.ID
	verify(second, other.Get(second.bytes(options+"challenge"))).fails(422, "mfa_verification_failed")

	raised := verify(second, a.Get(second.bytes(options+"challenge"))).want(200)
	methods, _ := claim(t, raised.text("access_token"), "amr").([]any)
	if method, _ := methods[0].(map[string]any); method["method"] != "mfa/webauthn" {
		t.Errorf("got the methods %v", methods)
	}
	verify(second, a.Get(second.bytes(options+"challenge"))).fails(422, "mfa_challenge_expired")

	// A factor is no passkey, and a user with a factor needs the second level to add one.
	a.UserHandle, a.Flags = first.bytes(options+"user.id"), 5
	p.passkeySignIn(a).fails(400, "webauthn_verification_failed")
	send("POST", "/passkeys/registration/options", "{}").want(200) // the session was raised
	token = p.post("/token?grant_type=password", `{"email":"ann@example.com","password":"`+password+`"}`).
		want(200).text("access_token")
	send("POST", "/passkeys/registration/options", "{}").fails(403, "insufficient_aal")
	send("POST", "/passkeys/registration/verify", "{}").fails(403, "insufficient_aal")

	token = raised.text("access_token")
	send("DELETE", path, "").want(200)
}
