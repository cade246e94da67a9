package authapi_test

import (
	"strings"
	"testing"

	"github.com/socle-dev/socle/internal/enduser"
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

	p.configure(func(s *enduser.Settings) { s.SMS.Factors = false })
	send("DELETE", path, "").want(200)
}

func TestRecoveryCodes(t *testing.T) {
	t.Parallel()

	p := newApp(t, byPhone)
	bearer := p.signUp("ann@example.com").text("access_token")
	send := func(method, path, body string) *reply { p.t.Helper(); return p.send(method, path, bearer, body) }

	send("POST", "/factors/recovery_codes", "").fails(422, "mfa_factor_not_found")
	factor := send("POST", "/factors", `{"factor_type":"phone","phone":"+491700000000"}`).want(200).text("id")
	challenge := send("POST", "/factors/"+factor+"/challenge", "").want(200).text("id")
	send("POST", "/factors/"+factor+"/verify", `{"challenge_id":"`+challenge+`","code":"246810"}`).want(200)

	create := func() []any {
		codes, _ := send("POST", "/factors/recovery_codes", "").want(200).body["codes"].([]any)
		if len(codes) != 10 {
			t.Fatalf("got %d codes, want 10", len(codes))
		}
		return codes
	}
	unused := func(want float64) {
		t.Helper()
		if got := send("GET", "/factors/recovery_codes", "").want(200).body["unused"]; got != want {
			t.Errorf("got %v unused codes, want %v", got, want)
		}
	}
	former, codes := create(), create()
	unused(10)

	low := p.post("/token?grant_type=password", `{"email":"ann@example.com","password":"`+password+`"}`).want(200)
	p.send("POST", "/factors/recovery_codes", low.text("access_token"), "").fails(403, "insufficient_aal")
	use := func(code any) *reply {
		return p.send("POST", "/factors/recovery_codes/verify", low.text("access_token"),
			`{"code":"`+code.(string)+`"}`)
	}
	use("nonsense").fails(422, "mfa_verification_failed")
	use("").fails(422, "mfa_verification_failed")
	use(former[0]).fails(422, "mfa_verification_failed")

	raised := use(codes[0]).want(200)
	if got := claim(t, raised.text("access_token"), "aal"); got != "aal2" {
		t.Errorf("got the level %v, want aal2", got)
	}
	use(codes[0]).fails(422, "mfa_verification_failed")
	unused(9)

	// Those of another user are of no use, and none is left without a factor.
	ben := p.signUp("ben@example.com").text("access_token")
	p.send("POST", "/factors/recovery_codes/verify", ben, `{"code":"`+codes[1].(string)+`"}`).
		fails(422, "mfa_verification_failed")
	bearer = raised.text("access_token")
	send("DELETE", "/factors/"+factor, "").want(200)
	unused(0)
}
