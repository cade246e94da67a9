package authapi_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/socle-dev/socle/internal/enduser/rules"
)

// byPhone lets people sign in with numbers. 491700000000 is a test number.
func byPhone(s *rules.Settings) {
	autoconfirm(s)
	s.SMS = rules.SMS{SignIn: true, Factors: true, TestNumbers: map[string]string{"491700000000": "246810"}}
}

// sms waits for the newest text message to a number in the mailbox, and returns its code.
func (p *app) sms(phone string) string {
	p.t.Helper()

	text := p.mail("sms", phone).Text
	code, ok := strings.CutPrefix(text, "Your code is ")
	if !ok || len(code) != 6 {
		p.t.Fatalf("got the message %q, want a code", text)
	}

	return code
}

// wrongCode returns six digits that are not the code.
func wrongCode(code string) string {
	return map[bool]string{true: "000000", false: "111111"}[code != "000000"]
}

func (p *app) verifyPhone(kind, phone, code string) *reply {
	p.t.Helper()
	return p.post("/verify", `{"type":"`+kind+`","phone":"`+phone+`","token":"`+code+`"}`)
}

func TestPhoneDisabled(t *testing.T) {
	t.Parallel()

	p := newApp(t, autoconfirm)
	session := p.signUp("ann@example.com").text("access_token")
	for path, body := range map[string]string{
		"/signup": `{"phone":"+491701234567","password":"` + password + `"}`,
		"/otp":    `{"phone":"+491701234567"}`,
		"/resend": `{"type":"sms","phone":"+491701234567"}`,
		"/verify": `{"type":"sms","phone":"+491701234567","token":"123456"}`,

		"/token?grant_type=password": `{"phone":"+491701234567","password":"` + password + `"}`,
	} {
		p.post(path, body).fails(400, "phone_provider_disabled")
	}
	p.send("PUT", "/user", session, `{"phone":"+491701234567"}`).fails(400, "phone_provider_disabled")
	p.send("POST", "/factors", session, `{"factor_type":"phone","phone":"+491701234567"}`).
		fails(422, "mfa_phone_enroll_not_enabled")
}

func TestPhoneSignUp(t *testing.T) {
	t.Parallel()

	p := newApp(t, byPhone)
	body := `{"phone":"+49 170 1234567","password":"` + password + `"}`
	login := `{"phone":"491701234567","password":"` + password + `"}`

	created := p.post("/signup", body).want(200).equal("phone", "491701234567").equal("email", "").
		equal("app_metadata.provider", "phone").equal("access_token", "")
	p.post("/token?grant_type=password", login).fails(400, "phone_not_confirmed").
		equal("message", "Phone not confirmed")

	code := p.sms("+491701234567")
	p.verifyPhone("sms", "+491701234567", wrongCode(code)).fails(403, "otp_expired")
	p.verifyPhone("phone_change", "+491701234567", code).fails(403, "otp_expired")
	p.verifyPhone("signup", "+491701234567", code).fails(400, "validation_failed")
	p.verifyPhone("sms", "1234-invalid", code).fails(400, "validation_failed").
		equal("message", "Invalid phone number format (E.164 required)")

	session := p.verifyPhone("sms", "+491701234567", code).want(200).equal("user.phone", "491701234567")
	p.verifyPhone("sms", "+491701234567", code).fails(403, "otp_expired")
	if claim(t, session.text("access_token"), "phone") != "491701234567" ||
		session.text("user.phone_confirmed_at") == "" {
		t.Errorf("got %s, want a confirmed number", session.raw)
	}

	identities, _ := session.body["user"].(map[string]any)["identities"].([]any)
	if len(identities) != 1 || identities[0].(map[string]any)["provider"] != "phone" {
		t.Errorf("got identities %v, want phone", identities)
	}
	data := identities[0].(map[string]any)["identity_data"].(map[string]any)
	if data["phone"] != "491701234567" || data["phone_verified"] != true || data["sub"] != created.text("id") {
		t.Errorf("got the identity %v", data)
	}

	p.post("/token?grant_type=password", login).want(200)
	for _, phone := range []string{"+491701234567", "+491709999999", "x"} {
		p.post("/token?grant_type=password", `{"phone":"`+phone+`","password":"wrong"}`).
			fails(400, "invalid_credentials")
	}

	// A taken number gets an answer of the same form.
	again := p.post("/signup", body).want(200)
	if again.text("id") == created.text("id") || len(again.body) != len(created.body) {
		t.Errorf("sign up again: got %s, want the form of %s", again.raw, created.raw)
	}

	for body, code := range map[string]string{
		`{"phone":"+0170123","password":"` + password + `"}`:                     "validation_failed",
		`{"phone":"+491701","email":"a@b.c","password":"` + password + `"}`:      "validation_failed",
		`{"phone":"+491701","password":"` + password + `","channel":"whatsapp"}`: "validation_failed",
		`{"phone":"+491701"}`: "validation_failed",
	} {
		p.post("/signup", body).fails(400, code)
	}
	p.post("/signup", `{"phone":"+491701234","password":"short"}`).fails(422, "weak_password")

	settings := p.send("GET", "/settings", "", "").want(200)
	if external := settings.body["external"].(map[string]any); external["phone"] != true ||
		settings.body["phone_autoconfirm"] != false {
		t.Errorf("got the settings %s", settings.raw)
	}
}

// TestPhoneRequests reads the bodies of requests with a number. Package enduser tests their rules.
func TestPhoneRequests(t *testing.T) {
	t.Parallel()

	p := newApp(t, byPhone)
	p.post("/otp", `{"phone":"+491701","create_user":false}`).fails(422, "otp_disabled")
	p.post("/otp", `{"phone":"+491701","channel":"fax"}`).fails(400, "validation_failed")
	p.post("/otp", `{"phone":"+491701","email":"a@b.c"}`).fails(400, "validation_failed")
	p.post("/otp", `{"phone":"+491701","data":{"a":"b"}}`).want(200)
	p.sms("+491701")
	p.post("/resend", `{"type":"signup","phone":"+491701"}`).fails(400, "validation_failed")
	p.post("/resend", `{"type":"sms","phone":"+491701"}`).want(200)
	session := p.verifyPhone("sms", "491701", p.sms("+491701")).want(200).equal("user.user_metadata.a", "b").
		text("access_token")

	put := func(body string) *reply { return p.send("PUT", "/user", session, body) }
	put(`{"phone":"nonsense"}`).fails(400, "validation_failed")
	put(`{"phone":"+491702","channel":"whatsapp"}`).fails(400, "validation_failed")
	put(`{"phone":"+491702"}`).want(200).equal("phone", "491701").equal("new_phone", "491702")
	p.verifyPhone("phone_change", "491702", p.sms("+491702")).want(200).equal("user.phone", "491702")
}

func TestPhoneAdministration(t *testing.T) {
	t.Parallel()

	p := newApp(t, byPhone)
	admin := func(method, path, body string) *reply { p.t.Helper(); return p.send(method, path, p.secret, body) }

	ann := admin("POST", "/admin/users", `{"phone":"+491701","password":"`+password+`","phone_confirm":true}`).
		want(200).equal("phone", "491701").equal("app_metadata.provider", "phone")
	p.post("/token?grant_type=password", `{"phone":"+491701","password":"`+password+`"}`).want(200)
	admin("POST", "/admin/users", `{"phone":"491701"}`).fails(422, "phone_exists")
	admin("POST", "/admin/users", `{"phone":"x"}`).fails(400, "validation_failed")
	admin("POST", "/admin/users", `{}`).fails(400, "validation_failed")

	path := "/admin/users/" + ann.text("id")
	admin("PUT", path, `{"phone":"+491702","email":"ann@example.com"}`).want(200).equal("phone", "491702").
		equal("email", "ann@example.com")
	admin("PUT", path, `{"phone":"x"}`).fails(400, "validation_failed")

	ben := admin("POST", "/admin/users", `{"email":"ben@example.com"}`).want(200)
	admin("PUT", "/admin/users/"+ben.text("id"), `{"phone":"491702"}`).fails(422, "phone_exists")
	ben = admin("PUT", "/admin/users/"+ben.text("id"), `{"phone":"491703","phone_confirm":true}`).want(200)
	if ben.text("phone_confirmed_at") == "" {
		t.Errorf("got %s, want a confirmed number", ben.raw)
	}
	if got := admin("GET", "/admin/users?filter=91703", "").want(200).raw; !strings.Contains(got, "ben@") ||
		strings.Contains(got, "ann@") {
		t.Errorf("search by the number: got %s", got)
	}
	admin("DELETE", path, `{"should_soft_delete":true}`).want(200)
	admin("POST", "/admin/users", `{"phone":"491702"}`).want(200)
}

// request is a request to a sender.
type request struct {
	*http.Request
	body string
}

// webhookSecret is a secret of Standard Webhooks.
const webhookSecret = "v1,whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

// isSigned reports whether a request has the signature of Standard Webhooks by a secret.
func (r request) isSigned(t *testing.T, secret string) bool {
	t.Helper()

	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "v1,whsec_"))
	if err != nil {
		t.Fatal(err)
	}

	mac := hmac.New(sha256.New, key)
	fmt.Fprintf(mac, "%s.%s.%s", r.Header.Get("Webhook-Id"), r.Header.Get("Webhook-Timestamp"), r.body)

	return r.Header.Get("Webhook-Signature") == "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil))
}
