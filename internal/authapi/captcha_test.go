package authapi_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/socle-dev/socle/internal/enduser/rules"
)

// withCaptcha has the tokens of a captcha verified at an address.
func withCaptcha(t *testing.T, address string) *app {
	t.Helper()

	p := newApp(t, autoconfirm)
	p.Put("/projects/"+p.Project+"/auth-settings", `{"secrets": {"captcha": "the secret"},
		"captcha": {"enabled": true, "provider": "turnstile", "url": "`+address+`"},
		"webauthn": {"passkeys": true}}`).Want(200).
		Content("captcha.provider", "turnstile").Content("secretNames.0", "captcha")

	return p
}

func TestCaptcha(t *testing.T) {
	t.Parallel()

	var asked atomic.Int64
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)

		switch {
		case r.FormValue("secret") != "the secret" || r.FormValue("remoteip") != "127.0.0.1":
			fmt.Fprint(w, `{"success": false, "error-codes": ["invalid-input-secret"]}`)
		case r.FormValue("response") == "down":
			w.WriteHeader(http.StatusBadGateway)
		case r.FormValue("response") == "human":
			fmt.Fprint(w, `{"success": true}`)
		default:
			fmt.Fprint(w, `{"success": false, "error-codes": ["timeout-or-duplicate", "bad"]}`)
		}
	}))
	t.Cleanup(service.Close)

	p := withCaptcha(t, service.URL)
	credentials := `"email":"ann@example.com","password":"` + password + `"`
	for _, request := range []string{
		`/signup {` + credentials + `,`, `/token?grant_type=password {` + credentials + `,`,
		`/recover {"email":"ann@example.com",`, `/otp {"email":"ann@example.com",`,
		`/magiclink {"email":"ann@example.com",`, `/resend {"type":"signup","email":"ann@example.com",`,
		`/passkeys/authentication/options {`,
	} {
		path, body, _ := strings.Cut(request, " ")
		send := func(key, token string) *reply {
			return p.send("POST", path, key, body+`"gotrue_meta_security":{"captcha_token":"`+token+`"}}`)
		}

		before := asked.Load()
		send(p.publishable, "").fails(400, "captcha_failed").
			equal("message", "captcha protection: request disallowed (no captcha_token found)")
		send(p.publishable, strings.Repeat("x", 17<<10)).fails(400, "captcha_failed")
		if asked.Load() != before {
			t.Errorf("%s: the service was asked about no token", path)
		}

		send(p.publishable, "robot").fails(400, "captcha_failed").
			equal("message", "captcha protection: request disallowed (timeout-or-duplicate, bad)")
		send(p.publishable, "down").fails(500, "unexpected_failure").
			equal("message", "captcha verification process failed")
		send(p.publishable, "human").want(200)
	}

	before := asked.Load()
	session := p.send("POST", "/token?grant_type=password", p.secret, "{"+credentials+"}").want(200)
	p.refresh(session.text("refresh_token")).want(200)
	p.post("/token?grant_type=pkce", `{"auth_code":"x","code_verifier":"x"}`).fails(404, "flow_state_not_found")
	p.post("/token?grant_type=id_token", `{"provider":"google","id_token":"x"}`).fails(400, "provider_disabled")
	if asked.Load() != before {
		t.Error("the service was asked about a request without a person, or of an administrator")
	}
}

// TestCaptchaInPrivateNetwork: a project has no request sent into networks of the server.
func TestCaptchaInPrivateNetwork(t *testing.T) {
	t.Parallel()

	p := withCaptcha(t, "http://169.254.169.254/latest/meta-data")
	p.post("/recover", `{"email":"ann@example.com","gotrue_meta_security":{"captcha_token":"x"}}`).
		fails(500, "unexpected_failure")

	q := newApp(t, func(s *rules.Settings) { s.Captcha = rules.Captcha{Provider: "hcaptcha"} })
	q.post("/recover", `{"email":"ann@example.com"}`).want(200) // disabled
}
