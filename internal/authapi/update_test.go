package authapi_test

import (
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/enduser/rules"
)

// TestUpdatesAtOnce changes different members of the metadata at once.
func TestUpdatesAtOnce(t *testing.T) {
	t.Parallel()

	p := newApp(t, autoconfirm)
	token := p.signUp("ann@example.com").text("access_token")

	var wait sync.WaitGroup
	for _, name := range strings.Split("abcdefgh", "") {
		wait.Go(func() { p.send("PUT", "/user", token, `{"data":{"`+name+`":"x"}}`).want(200) })
	}
	wait.Wait()

	u := p.send("GET", "/user", token, "").want(200)
	if metadata, _ := u.body["user_metadata"].(map[string]any); len(metadata) != 8 {
		t.Errorf("got the metadata %v, want 8 members", metadata)
	}
}

// TestNewPasswordVoidsLinks changes the password while a link to recover it is under way.
func TestNewPasswordVoidsLinks(t *testing.T) {
	t.Parallel()

	p := newApp(t, func(s *rules.Settings) { autoconfirm(s); confirming(s); s.ConfirmEmail = false })
	token := p.signUp("ann@example.com").text("access_token")

	p.post("/recover", `{"email":"ann@example.com"}`).want(200)
	mail := p.mail("recovery", "ann@example.com")
	p.send("PUT", "/user", token, `{"password":"another `+password+`"}`).want(200)

	if values := fragment(p.open(p.link(mail))); values.Get("error_code") != "otp_expired" {
		t.Errorf("a link sent before the change leads to %v, want otp_expired", values)
	}
	p.post("/verify", `{"type":"recovery","email":"ann@example.com","token":"`+p.code(mail)+`"}`).fails(403, "otp_expired")
}

// TestMalformedIDs checks that access comes first, and then the id of the path.
func TestMalformedIDs(t *testing.T) {
	t.Parallel()

	p := newApp(t, autoconfirm)
	token := p.signUp("ann@example.com").text("access_token")

	for request, key := range map[string]string{
		"POST /factors/x/challenge": token, "POST /factors/x/verify": token, "DELETE /factors/x": token,
		"GET /admin/users/x": p.secret, "DELETE /admin/users/x/factors/" + uuid.NewString(): p.secret,
	} {
		method, path, _ := strings.Cut(request, " ")
		p.send(method, path, "", "").fails(401, "no_authorization")
		p.send(method, path, key, "").fails(404, "validation_failed")
	}
	p.send("GET", "/factors/x/unknown", token, "").fails(404, "not_found")
}

// TestAnonymousPassword has an anonymous user set an address and a password at once.
func TestAnonymousPassword(t *testing.T) {
	t.Parallel()

	p := newApp(t, func(s *rules.Settings) { s.AnonymousSignIn, s.MailIntervalSeconds = true, 0 })
	token := p.post("/signup", "{}").want(200).text("access_token")
	login := func() *reply {
		t.Helper()
		return p.post("/token?grant_type=password", `{"email":"ann@example.com","password":"`+password+`"}`)
	}

	p.send("PUT", "/user", token, `{"password":"`+password+`"}`).fails(422, "validation_failed")
	p.send("PUT", "/user", token, `{"email":"ann@example.com","password":"`+password+`"}`).want(200).
		equal("new_email", "ann@example.com")
	login().fails(400, "invalid_credentials")

	p.send("GET", p.link(p.mail("email_change", "ann@example.com")), "", "").want(303)
	if user := login().want(200).body["user"].(map[string]any); user["is_anonymous"] != false {
		t.Errorf("got %v, want a permanent user", user)
	}
}
