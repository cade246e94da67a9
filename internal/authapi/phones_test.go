package authapi_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/api/apitest"
	"github.com/socle-dev/socle/internal/config"
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

// TestPhoneOfAnother signs up with the number of someone else, who then asks for a code.
func TestPhoneOfAnother(t *testing.T) {
	t.Parallel()

	p := newApp(t, byPhone)
	signUp := func(phone, password string) {
		p.post("/signup", `{"phone":"`+phone+`","password":"`+password+`"}`).want(200)
	}
	login := func(phone string) *reply {
		return p.post("/token?grant_type=password", `{"phone":"`+phone+`","password":"`+password+`"}`)
	}

	signUp("+491701", password)
	p.sms("+491701")
	p.post("/otp", `{"phone":"+491701"}`).want(200)
	code := p.sms("+491701")
	signUp("+491701", password) // repeated, it changes nothing about the code before
	p.verifyPhone("sms", "491701", code).want(200)
	login("+491701").fails(400, "invalid_credentials")
	p.verifyPhone("sms", "491701", p.sms("+491701")).fails(403, "otp_expired")

	signUp("+491702", password)
	p.sms("+491702")
	signUp("+491702", "another horse battery")
	p.verifyPhone("sms", "491702", p.sms("+491702")).want(200)
	login("+491702").fails(400, "invalid_credentials")
	p.post("/token?grant_type=password", `{"phone":"+491702","password":"another horse battery"}`).want(200)

	signUp("+491703", password)
	p.sms("+491703")
	signUp("+491703", password) // the same person
	p.verifyPhone("sms", "491703", p.sms("+491703")).want(200)
	login("+491703").want(200)
}

func TestPhoneCodes(t *testing.T) {
	t.Parallel()

	p := newApp(t, byPhone)
	p.post("/otp", `{"phone":"+491701","create_user":false}`).fails(422, "otp_disabled")
	p.post("/otp", `{"phone":"nonsense"}`).fails(400, "validation_failed")
	p.post("/otp", `{"phone":"+491701","channel":"fax"}`).fails(400, "validation_failed")
	p.post("/otp", `{"phone":"+491701","email":"a@b.c"}`).fails(400, "validation_failed")

	p.post("/otp", `{"phone":"+491701","data":{"a":"b"}}`).want(200)
	first := p.sms("+491701")
	p.post("/resend", `{"type":"sms","phone":"+491701"}`).want(200)
	p.post("/resend", `{"type":"signup","phone":"+491701"}`).fails(400, "validation_failed")
	p.post("/resend", `{"type":"sms","phone":"+4999"}`).want(200)

	code := p.sms("+491701")
	if first != code {
		p.verifyPhone("sms", "491701", first).fails(403, "otp_expired")
	}
	p.verifyPhone("sms", "491701", code).want(200).equal("user.user_metadata.a", "b")

	p.post("/otp", `{"phone":"+491701"}`).want(200)
	code = p.sms("+491701")
	if _, err := p.project.EndUsers().Exec(t.Context(), `update auth.one_time_tokens set attempts = 99`); err != nil {
		t.Fatal(err)
	}
	p.verifyPhone("sms", "491701", wrongCode(code)).fails(403, "otp_expired")
	p.verifyPhone("sms", "491701", code).fails(403, "otp_expired")

	// A test number has its code and no message.
	p.post("/otp", `{"phone":"+491700000000"}`).want(200)
	p.verifyPhone("sms", "491700000000", "135791").fails(403, "otp_expired")
	p.verifyPhone("sms", "491700000000", "246810").want(200)
	p.verifyPhone("sms", "491700000000", "246810").fails(403, "otp_expired")
}

func TestPhoneChange(t *testing.T) {
	t.Parallel()

	p := newApp(t, func(s *rules.Settings) { byPhone(s); s.AnonymousSignIn = true })
	session := p.signUp("ann@example.com").text("access_token")
	put := func(body string) *reply { return p.send("PUT", "/user", session, body) }

	put(`{"phone":"nonsense"}`).fails(400, "validation_failed")
	put(`{"phone":"+491701","channel":"whatsapp"}`).fails(400, "validation_failed")
	put(`{"phone":"+491701"}`).want(200).equal("phone", "").equal("new_phone", "491701")
	p.sms("+491701")
	put(`{"phone":"+491702"}`).want(200).equal("new_phone", "491702")
	code := p.sms("+491702")
	p.verifyPhone("sms", "491702", code).fails(403, "otp_expired")

	changed := p.verifyPhone("phone_change", "491702", code).want(200).equal("user.phone", "491702").
		equal("user.new_phone", "").equal("user.email", "ann@example.com")
	if !strings.Contains(changed.raw, `"providers":["email","phone"]`) {
		t.Errorf("got %s, want the providers email and phone", changed.raw)
	}

	put(`{"phone":"+491703"}`).want(200)
	p.sms("+491703")
	p.post("/resend", `{"type":"phone_change","phone":"+491702"}`).want(200)
	p.verifyPhone("phone_change", "491703", p.sms("+491703")).want(200).equal("user.phone", "491703")

	ben := p.signUp("ben@example.com").text("access_token")
	p.send("PUT", "/user", ben, `{"phone":"+491703"}`).fails(422, "phone_exists")

	// Of two users who ask for a number, the first one with the code gets it.
	cleo := p.signUp("cleo@example.com").text("access_token")
	p.send("PUT", "/user", ben, `{"phone":"+491704"}`).want(200)
	former := p.sms("+491704")
	p.send("PUT", "/user", cleo, `{"phone":"+491704"}`).want(200)
	p.verifyPhone("phone_change", "491704", p.sms("+491704")).want(200).equal("user.email", "cleo@example.com")
	p.verifyPhone("phone_change", "491704", former).fails(422, "phone_exists")

	// A number makes an anonymous user a permanent one.
	anonymous := p.post("/signup", "{}").want(200).text("access_token")
	p.send("PUT", "/user", anonymous, `{"phone":"+491705"}`).want(200)
	upgraded := p.verifyPhone("phone_change", "491705", p.sms("+491705")).want(200).
		equal("user.app_metadata.provider", "phone")
	if upgraded.body["user"].(map[string]any)["is_anonymous"] != false {
		t.Errorf("got %s, want a permanent user", upgraded.raw)
	}
}

// TestPhoneReauthentication changes the password of a user without an address in an old session.
func TestPhoneReauthentication(t *testing.T) {
	t.Parallel()

	p := newApp(t, byPhone)
	p.post("/otp", `{"phone":"+491701"}`).want(200)
	session := p.verifyPhone("sms", "491701", p.sms("+491701")).want(200).text("access_token")
	p.move("-25 hours")

	change := func(nonce string) *reply {
		return p.send("PUT", "/user", session, `{"password":"`+password+`","nonce":"`+nonce+`"}`)
	}
	change("").fails(400, "reauthentication_needed")
	p.send("GET", "/reauthenticate", session, "").want(200)

	code := p.sms("+491701")
	change(wrongCode(code)).fails(422, "reauthentication_not_valid")
	change(code).want(200)
	p.post("/token?grant_type=password", `{"phone":"+491701","password":"`+password+`"}`).want(200)
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

// TestPhoneAutoConfirm needs no code.
func TestPhoneAutoConfirm(t *testing.T) {
	t.Parallel()

	p := newApp(t, func(s *rules.Settings) { byPhone(s); s.SMS.AutoConfirm = true })
	session := p.post("/signup", `{"phone":"+491701","password":"`+password+`"}`).want(200).
		equal("user.phone", "491701").text("access_token")
	p.post("/signup", `{"phone":"+491701","password":"`+password+`"}`).fails(422, "user_already_exists")
	p.send("PUT", "/user", session, `{"phone":"+491702"}`).want(200).equal("phone", "491702").equal("new_phone", "")
	p.post("/token?grant_type=password", `{"phone":"+491702","password":"`+password+`"}`).want(200)
}

// withSecrets changes the settings and the secrets of the project's end users.
func (p *app) withSecrets(secrets map[string]string, sms rules.SMS) {
	p.t.Helper()

	if _, err := p.Server.Services().EndUsers.UpdateConfig(p.t.Context(), p.project.UUID, uuid.MustParse(p.User),
		func(c *rules.Config) { c.Secrets.Set(secrets); c.SMS = sms }); err != nil {
		p.t.Fatal(err)
	}
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

// sender starts a server that keeps its requests and answers with the given statuses, then with
// 200.
func sender(t *testing.T, statuses ...int) (url string, requests chan request) {
	t.Helper()

	requests = make(chan request, 10)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		requests <- request{r, string(body)}

		if len(statuses) > 0 {
			w.WriteHeader(statuses[0])
			statuses = statuses[1:]
		}
	}))
	t.Cleanup(server.Close)

	return server.URL, requests
}

// TestSMSHook receives a code by the project's hook, which fails at first.
func TestSMSHook(t *testing.T) {
	t.Parallel()

	url, requests := sender(t, http.StatusServiceUnavailable)
	p := newApp(t, byPhone)
	p.withSecrets(map[string]string{"sms.hook": webhookSecret}, rules.SMS{SignIn: true, Sender: "hook",
		HookURL: url})

	p.post("/otp", `{"phone":"+491701"}`).want(200)
	first, second := <-requests, <-requests
	if first.Header.Get("Webhook-Id") != second.Header.Get("Webhook-Id") || first.body != second.body {
		t.Errorf("got two messages %s and %s, want one repeated", first.body, second.body)
	}

	if !second.isSigned(t, webhookSecret) {
		t.Errorf("got a wrong signature %s", second.Header.Get("Webhook-Signature"))
	}

	var payload struct {
		User struct{ Phone string }
		SMS  struct{ OTP, Phone string }
	}
	if err := json.Unmarshal([]byte(second.body), &payload); err != nil || payload.User.Phone != "491701" ||
		payload.SMS.Phone != "491701" {
		t.Errorf("got %s (%v)", second.body, err)
	}
	p.verifyPhone("sms", "491701", payload.SMS.OTP).want(200)
}

// TestTwilio receives a code by Twilio's interface.
func TestTwilio(t *testing.T) {
	t.Parallel()

	root, requests := sender(t, http.StatusCreated, http.StatusCreated)
	p := newApp(t, byPhone)
	p.withSecrets(map[string]string{"sms.twilio": "token"}, rules.SMS{SignIn: true, Sender: "twilio", TwilioURL: root,
		TwilioAccountSID: "AC1", TwilioFrom: "+15005550006", Text: "{{ .Token }} for {{ .SiteURL }}"})

	for channel, to := range map[string]string{"sms": "+491701", "whatsapp": "whatsapp:+491702"} {
		number := to[strings.Index(to, "+"):]
		p.post("/otp", `{"phone":"`+number+`","channel":"`+channel+`"}`).want(200)

		r := <-requests
		user, token, _ := r.BasicAuth()
		form, err := url.ParseQuery(r.body)
		if err != nil || r.URL.Path != "/2010-04-01/Accounts/AC1/Messages.json" || user != "AC1" || token != "token" ||
			form.Get("To") != to || form.Get("From") != strings.Replace(to, number, "+15005550006", 1) {
			t.Errorf("got %s %s %s", r.URL, r.Header, r.body)
		}

		code, site, _ := strings.Cut(form.Get("Body"), " for ")
		if site != "http://localhost:3000" {
			t.Errorf("got the text %q", form.Get("Body"))
		}
		p.verifyPhone("sms", number, code).want(200)
	}

	if got := p.send("GET", "/settings", "", "").text("sms_provider"); got != "twilio" {
		t.Errorf("got the sender %q, want twilio", got)
	}
}

// TestSMSLimits requests many messages, as SMS pumping fraud does.
func TestSMSLimits(t *testing.T) {
	t.Parallel()

	a := apitest.New(t, func(c *config.Config) {
		c.RateLimit, c.TrustedProxies = true, []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	})
	p := appOf(t, a, func(s *rules.Settings) {
		byPhone(s)
		s.SMS.CallingCodes, s.SMS.PerNetworkAndHour, s.SMS.PerHour = []string{"49"}, 2, 3
	})
	otp := func(phone, address string) *reply {
		return p.send("POST", "/otp", p.publishable, `{"phone":"`+phone+`"}`, "X-Forwarded-For", address)
	}

	otp("+88312345", "192.0.2.1").fails(422, "sms_send_failed")
	otp("+491701", "192.0.2.1").want(200)
	got := otp("+491701", "192.0.2.2").fails(429, "over_sms_send_rate_limit")
	if !strings.HasPrefix(got.text("message"), "For security purposes, you can only request this after ") ||
		got.header.Get("Retry-After") == "" {
		t.Errorf("got %s", got.raw)
	}
	otp("+491702", "192.0.2.1").want(200)
	otp("+491703", "192.0.2.1").fails(429, "over_sms_send_rate_limit").equal("message", "SMS rate limit exceeded")
	otp("+491704", "192.0.2.2").want(200)
	otp("+491705", "192.0.2.3").fails(429, "over_sms_send_rate_limit")

	for range 3 { // no message, and so no limit of messages
		otp("+491700000000", "192.0.2.1").want(200)
	}
}
