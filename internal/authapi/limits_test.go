package authapi_test

import (
	"encoding/json"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/socle-dev/socle/internal/api/apitest"
	"github.com/socle-dev/socle/internal/config"
	"github.com/socle-dev/socle/internal/enduser/rules"
)

var (
	uuids = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f-]{27}`)
	times = regexp.MustCompile(`\d{4}-\d\d-\d\dT[0-9:.]+(Z|[+-]\d\d:\d\d)`)
)

// form returns a response without the values of one user: ids, times and the address.
func (r *reply) form(email string) string {
	text := uuids.ReplaceAllString(times.ReplaceAllString(r.raw, "time"), "id")
	text = strings.ReplaceAll(text, email, "address")

	var members map[string]any
	if json.Unmarshal([]byte(text), &members) == nil {
		sorted, _ := json.Marshal(members) // was JSON
		text = string(sorted)
	}

	return r.header.Get("Content-Type") + " " + r.header.Get("X-Sb-Error-Code") + " " + text
}

// TestKnownAddresses compares the responses about addresses of a confirmed and an unconfirmed user
// and unknown ones.
func TestKnownAddresses(t *testing.T) {
	t.Parallel()

	p := newApp(t, confirming)
	for i, test := range []struct{ path, body string }{
		{"/signup", `{"email":"EMAIL","password":"` + password + `","data":{"name":"x"}}`},
		{"/signup", `{"email":"EMAIL","password":"short"}`},
		{"/otp", `{"email":"EMAIL"}`},
		{"/recover", `{"email":"EMAIL"}`},
		{"/resend", `{"type":"signup","email":"EMAIL"}`},
		{"/resend", `{"type":"email_change","email":"EMAIL"}`},
		{"/token?grant_type=password", `{"email":"EMAIL","password":"wrong"}`},
		{"/verify", `{"type":"email","email":"EMAIL","token":"nonsense"}`},
	} {
		secret := ""
		if strings.Contains(test.body, `"password"`) {
			secret = `"password":"` + password + `",` // costly, and of no effect elsewhere
		}

		forms := map[string]string{}
		for _, kind := range []string{"confirmed", "unconfirmed", "unknown"} {
			email := kind + string(rune('a'+i)) + "@example.com"
			if kind != "unknown" {
				p.send("POST", "/admin/users", p.secret, `{"email":"`+email+`",`+secret+`
					"email_confirm":`+strconv.FormatBool(kind == "confirmed")+`}`).want(200)
			}

			forms[kind] = p.post(test.path, strings.Replace(test.body, "EMAIL", email, 1)).form(email)
		}

		for _, kind := range []string{"confirmed", "unconfirmed"} {
			if forms[kind] != forms["unknown"] {
				t.Errorf("%s %s: a %s address gets\n%s\nan unknown one\n%s", test.path, test.body, kind, forms[kind],
					forms["unknown"])
			}
		}
	}

	// The mails go to the addresses of the change.
	p.mail("confirmation", "unconfirmeda@example.com")
	p.mail("confirmation", "unconfirmede@example.com")
	if n := p.count(`
		select count(*)::int from auth.mails where kind = 'confirmation' and recipient like 'confirmed%'`); n != 0 {
		t.Errorf("%d confirmations were mailed to confirmed addresses", n)
	}
}

// TestTextsThatCannotBeStored: requests have null characters, lone surrogates and bytes that are
// not UTF-8 in many places.
func TestTextsThatCannotBeStored(t *testing.T) {
	t.Parallel()

	p := newApp(t, autoconfirm)
	session := p.signUp("ann@example.com").text("access_token")
	for _, path := range []string{"/recover", "/otp", "/magiclink", "/resend", "/signup", "/invite"} {
		p.send("POST", path+"?redirect_to=%00http://localhost:3000", p.secret, `{"email":"ann@example.com"}`).
			fails(400, "validation_failed")
	}
	p.send("GET", "/admin/users?filter=%00", p.secret, "").fails(400, "validation_failed")
	p.send("GET", "/admin/users?filter=%ff", p.secret, "").fails(400, "validation_failed")
	p.send("PUT", "/user?redirect_to=%00", session, `{"email":"new@example.com"}`).fails(400, "validation_failed")

	for _, value := range []string{`"\u0000"`, `"\ud800"`, "\"\xff\"", "1e999999"} {
		p.post("/signup", `{"email":"ben@example.com","password":"`+password+`","data":{"x":`+value+`}}`).
			fails(400, "bad_json")
		p.send("PUT", "/user", session, `{"data":{"x":`+value+`}}`).fails(400, "bad_json")
	}
	p.send("POST", "/factors", session, `{"factor_type":"totp","friendly_name":"\u0000"}`).fails(400, "bad_json")
	p.send("POST", "/admin/users", p.secret, `{"email":"eve@example.com","role":"\u0000"}`).fails(400, "bad_json")

	p.send("PUT", "/user", session, `{"data":{"x":"\\u0000 \ud83d\ude00","y":1e300}}`).want(200).
		equal("user_metadata.x", `\u0000 😀`)
}

// TestForwardedFor: a server of the application sends the requests of many people. Its secret key
// charges each to their network, and nobody else chooses one.
func TestForwardedFor(t *testing.T) {
	t.Parallel()

	p := appOf(t, apitest.New(t, func(c *config.Config) { c.RateLimit = true }), func(s *rules.Settings) {
		s.SignInsPerFiveMinutes = 2
	})
	logIn := func(key, bearer, address string) *reply {
		return p.send("POST", "/token?grant_type=password", bearer,
			`{"email":"ann@example.com","password":"wrong"}`, "Apikey", key, "Sb-Forwarded-For", address)
	}

	for i := range 4 {
		logIn(p.secret, p.secret, "198.51.100."+strconv.Itoa(i+1)).fails(400, "invalid_credentials")
	}
	logIn(p.secret, p.secret, "::ffff:198.51.100.1").fails(400, "invalid_credentials")
	logIn(p.secret, p.secret, "198.51.100.1").fails(429, "over_request_rate_limit")
	logIn(p.secret, p.secret, "198.51.100.1, 10.0.0.1").fails(400, "validation_failed")

	for i := range 2 {
		logIn(p.publishable, p.publishable, "203.0.113."+strconv.Itoa(i+1)).fails(400, "invalid_credentials")
	}
	over := logIn(p.publishable, p.publishable, "203.0.113.3").fails(429, "over_request_rate_limit")
	if over.header.Get("Retry-After") == "" {
		t.Error("a 429 lacks Retry-After")
	}
}
