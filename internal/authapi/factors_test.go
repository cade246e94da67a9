package authapi_test

import (
	"strings"
	"testing"

	"github.com/socle-dev/socle/internal/enduser/rules"
)

// TestPhoneFactor enrolls a phone as a second factor and signs in with it.
func TestPhoneFactor(t *testing.T) {
	t.Parallel()

	p := newApp(t, byPhone)
	session := p.signUp("ann@example.com")
	other := p.post("/token?grant_type=password", `{"email":"ann@example.com","password":"`+password+`"}`).want(200)
	bearer := session.text("access_token")
	send := func(method, path, body string) *reply { p.t.Helper(); return p.send(method, path, bearer, body) }

	send("POST", "/factors", `{"factor_type":"phone","phone":"nonsense"}`).fails(400, "validation_failed")
	send("POST", "/factors", `{"factor_type":"phone","phone":"+491701"}`).want(200)
	factor := send("POST", "/factors", `{"factor_type":"phone","phone":"+491701","friendly_name":"mine"}`).want(200).
		equal("type", "phone").equal("phone", "491701").equal("friendly_name", "mine")
	path := "/factors/" + factor.text("id")

	send("POST", path+"/challenge", `{"channel":"whatsapp"}`).fails(400, "validation_failed")
	challenge := send("POST", path+"/challenge", `{"channel":"sms"}`).want(200).equal("type", "phone").text("id")
	code := p.sms("+491701")
	verify := func(challenge, code string) *reply {
		return send("POST", path+"/verify", `{"challenge_id":"`+challenge+`","code":"`+code+`"}`)
	}
	verify("x", code).fails(400, "bad_json").
		equal("message", "Could not parse request body as JSON: challenge_id must be a UUID")
	verify(challenge, wrongCode(code)).fails(422, "mfa_verification_failed").
		equal("message", "Invalid MFA Phone code entered")
	p.verifyPhone("sms", "491701", code).fails(403, "otp_expired") // it signs no one in

	verified := verify(challenge, code).want(200)
	token := verified.text("access_token")
	if claim(t, token, "aal") != "aal2" || !strings.Contains(verified.raw, `"phone":"491701"`) {
		t.Errorf("got %s, want the second level", verified.raw)
	}
	methods, _ := claim(t, token, "amr").([]any)
	if method, _ := methods[0].(map[string]any); len(methods) != 2 || method["method"] != "mfa/phone" {
		t.Errorf("got the methods %v", methods)
	}
	verify(challenge, code).fails(422, "mfa_challenge_expired")
	p.send("GET", "/user", other.text("access_token"), "").fails(403, "session_not_found")
	send("POST", "/factors", `{"factor_type":"phone","phone":"+491701","friendly_name":"again"}`).
		fails(422, "mfa_verified_factor_exists")

	low := p.post("/token?grant_type=password", `{"email":"ann@example.com","password":"`+password+`"}`).
		want(200).text("access_token")
	p.send("PUT", "/user", low, `{"phone":"+491702"}`).fails(401, "insufficient_aal")

	// The code of one factor is none of another.
	second := send("POST", "/factors", `{"factor_type":"phone","phone":"+491702","friendly_name":"other"}`).want(200)
	challenge = send("POST", "/factors/"+second.text("id")+"/challenge", "{}").want(200).text("id")
	verify(challenge, p.sms("+491702")).fails(422, "mfa_challenge_expired")

	// A test number has its code.
	test := send("POST", "/factors", `{"factor_type":"phone","phone":"491700000000","friendly_name":"test"}`).want(200)
	path = "/factors/" + test.text("id")
	verify(send("POST", path+"/challenge", "{}").want(200).text("id"), "246810").want(200)

	p.configure(func(s *rules.Settings) { s.SMS.Factors = false })
	send("DELETE", path, "").want(200)
}

// TestRecoveryCodes has the responses to recovery codes. Package enduser tests their rules.
func TestRecoveryCodes(t *testing.T) {
	t.Parallel()

	p := newApp(t, byPhone)
	bearer := p.signUp("ann@example.com").text("access_token")
	send := func(method, path, body string) *reply { p.t.Helper(); return p.send(method, path, bearer, body) }

	send("POST", "/factors/recovery_codes", "").fails(422, "mfa_factor_not_found")
	factor := send("POST", "/factors", `{"factor_type":"phone","phone":"+491700000000"}`).want(200).text("id")
	challenge := send("POST", "/factors/"+factor+"/challenge", "").want(200).text("id")
	send("POST", "/factors/"+factor+"/verify", `{"challenge_id":"`+challenge+`","code":"246810"}`).want(200)
	codes, _ := send("POST", "/factors/recovery_codes", "").want(200).body["codes"].([]any)
	if len(codes) != 10 {
		t.Fatalf("got %d codes, want 10", len(codes))
	}

	low := p.post("/token?grant_type=password", `{"email":"ann@example.com","password":"`+password+`"}`).want(200)
	p.send("POST", "/factors/recovery_codes", low.text("access_token"), "").fails(403, "insufficient_aal")
	use := func(code any) *reply {
		return p.send("POST", "/factors/recovery_codes/verify", low.text("access_token"),
			`{"code":"`+code.(string)+`"}`)
	}
	use("").fails(422, "mfa_verification_failed")
	if got := claim(t, use(codes[0]).want(200).text("access_token"), "aal"); got != "aal2" {
		t.Errorf("got the level %v, want aal2", got)
	}
	if got := send("GET", "/factors/recovery_codes", "").want(200).body["unused"]; got != 9.0 {
		t.Errorf("got %v unused codes, want 9", got)
	}
}

// TestFactorOfThief: a thief with the password enrolls factors before the owner does. They end with
// the owner's first verified factor, and others can't be verified below the second level.
func TestFactorOfThief(t *testing.T) {
	t.Parallel()

	p := newApp(t, func(s *rules.Settings) { byPasskey(s); byPhone(s) })
	login := func() string {
		return p.post("/token?grant_type=password", `{"email":"ann@example.com","password":"`+password+`"}`).
			want(200).text("access_token")
	}
	owner := p.signUp("ann@example.com").text("access_token")
	thief := login()

	var paths []string
	for _, body := range []string{`{"factor_type":"totp","friendly_name":"t"}`,
		`{"factor_type":"phone","phone":"491700000000","friendly_name":"p"}`,
		`{"factor_type":"webauthn","friendly_name":"w"}`} {
		path := "/factors/" + p.send("POST", "/factors", thief, body).want(200).text("id")
		p.send("POST", path+"/challenge", thief, "{}").want(200)
		paths = append(paths, path)
	}

	key := newAuthenticator(t)
	path := "/factors/" + p.send("POST", "/factors", owner, `{"factor_type":"webauthn","friendly_name":"key"}`).
		want(200).text("id")
	challenge := p.send("POST", path+"/challenge", owner, "{}").want(200)
	response := key.Create(challenge.bytes("webauthn.credential_options.publicKey.challenge"))
	p.send("POST", path+"/verify", owner, `{"challenge_id":"`+challenge.text("id")+`","webauthn":{"type":"create",
		"rpId":"localhost","credential_response":`+response+`}}`).want(200)

	thief = login()
	for _, path := range paths {
		p.send("POST", path+"/challenge", thief, "{}").fails(404, "mfa_factor_not_found")
	}

	// A factor that is left over nevertheless.
	if _, err := p.project.EndUsers().Exec(t.Context(), `
		with factor as (
			insert into auth.mfa_factors (id, user_id, friendly_name, factor_type, status, phone)
			select '00000000-0000-4000-8000-000000000001', id, 'old', 'phone', 'unverified', '491700000000' from auth.users
			returning id)
		insert into auth.mfa_challenges (id, factor_id, ip_address)
		select '00000000-0000-4000-8000-000000000002', id, '::' from factor`); err != nil {
		t.Fatal(err)
	}
	path = "/factors/00000000-0000-4000-8000-000000000001"
	p.send("POST", path+"/challenge", thief, "{}").fails(403, "insufficient_aal")
	p.send("POST", path+"/verify", thief, `{"challenge_id":"00000000-0000-4000-8000-000000000002","code":"246810"}`).
		fails(403, "insufficient_aal")
}
