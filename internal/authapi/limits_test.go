package authapi_test

import (
	"encoding/json"
	"net/netip"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/socle-dev/socle/internal/api/apitest"
	"github.com/socle-dev/socle/internal/config"
	"github.com/socle-dev/socle/internal/enduser/rules"
)

// TestLimits exceeds each limit of requests, on a server of its own that counts them. Known and
// unknown addresses reach each at the same request.
func TestLimits(t *testing.T) {
	t.Parallel()

	server := apitest.New(t, func(c *config.Config) { c.RateLimit = true })
	newProject := func(change func(*rules.Settings)) *app {
		a := *server
		a.Project = server.CreateProject("limits")

		return appOf(t, &a, func(s *rules.Settings) {
			s.MailIntervalSeconds, s.MailsPerHour, s.SignInsPerFiveMinutes = 0, 1000, 1000
			s.AnonymousSignIn = true
			change(s)
		})
	}
	confirmed := func(p *app) {
		p.send("POST", "/admin/users", p.secret,
			`{"email":"ann@example.com","password":"`+password+`","email_confirm":true}`).want(200)
	}
	over := func(r *reply, code string) {
		t.Helper()

		if r.fails(429, code); r.header.Get("Retry-After") == "" {
			t.Errorf("%s: a 429 lacks Retry-After", r.request)
		}
	}
	wrong := func(p *app, email string) *reply {
		return p.post("/token?grant_type=password", `{"email":"`+email+`","password":"wrong"}`)
	}

	p := newProject(func(s *rules.Settings) { s.SignInsPerFiveMinutes = 3 })
	confirmed(p)
	for range 3 {
		wrong(p, "nobody@example.com").fails(400, "invalid_credentials")
	}
	for _, email := range []string{"ann@example.com", "nobody@example.com"} {
		over(wrong(p, email), "over_request_rate_limit")
		over(p.post("/signup", `{"email":"`+email+`","password":"`+password+`"}`), "over_request_rate_limit")
		over(p.post("/otp", `{"email":"`+email+`"}`), "over_request_rate_limit")
		over(p.post("/otp", `{"email":"`+email+`","create_user":false}`), "over_request_rate_limit")
	}
	p.post("/signup", `{}`).want(200) // has a limit of its own

	p = newProject(func(s *rules.Settings) { byPhone(s); s.SignInsPerFiveMinutes = 3 })
	for range 3 {
		p.post("/otp", `{"phone":"+491701","create_user":false}`).fails(422, "otp_disabled")
	}
	over(p.post("/otp", `{"phone":"+491701","create_user":false}`), "over_request_rate_limit")

	p = newProject(func(s *rules.Settings) { s.ChecksPerFiveMinutes = 2 })
	check := func() *reply {
		return p.post("/verify", `{"type":"email","email":"ann@example.com","token":"123456"}`)
	}
	check().fails(403, "otp_expired")
	check().fails(403, "otp_expired")
	over(check(), "over_request_rate_limit")
	over(p.post("/verify", `{"type":"email","token_hash":"x"}`), "over_request_rate_limit")

	p = newProject(func(s *rules.Settings) { s.AnonymousPerHour = 1 })
	p.post("/signup", `{}`).want(200)
	over(p.post("/signup", `{}`), "over_request_rate_limit")

	p = newProject(func(s *rules.Settings) { s.MailIntervalSeconds = 60 })
	for i, path := range []string{"/recover", "/otp", "/resend", "/signup"} {
		for _, kind := range []string{"known", "unknown"} {
			email := kind + string(rune('a'+i)) + "@example.com"
			if kind == "known" {
				p.send("POST", "/admin/users", p.secret, `{"email":"`+email+`","email_confirm":true}`).want(200)
			}

			body := `{"type":"signup","email":"` + email + `","password":"` + password + `"}`
			p.post(path, body).want(200)
			over(p.post(path, body), "over_email_send_rate_limit")
		}
	}

	p = newProject(func(s *rules.Settings) { s.MailsPerHour = 1 })
	p.post("/recover", `{"email":"ann@example.com"}`).want(200)
	over(p.post("/recover", `{"email":"ben@example.com"}`), "over_email_send_rate_limit")

	p = newProject(func(*rules.Settings) {})
	confirmed(p)
	for _, email := range []string{"ann@example.com", "nobody@example.com"} {
		for range 10 {
			wrong(p, email).fails(400, "invalid_credentials")
		}
		over(wrong(p, email), "over_request_rate_limit")
	}

	p = newProject(autoconfirm)
	session := p.signUp("ben@example.com").text("access_token")
	factor := "/factors/" + p.send("POST", "/factors", session, `{"factor_type":"totp"}`).want(200).text("id")
	challenge := p.send("POST", factor+"/challenge", session, "{}").want(200).text("id")
	verify := func() *reply {
		return p.send("POST", factor+"/verify", session, `{"challenge_id":"`+challenge+`","code":"x"}`)
	}
	for range 10 {
		verify().fails(422, "mfa_verification_failed")
	}
	over(verify(), "over_request_rate_limit")
}

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

// TestRefreshStorm refreshes a session in many tabs at once.
func TestRefreshStorm(t *testing.T) {
	t.Parallel()

	p := newApp(t, autoconfirm)
	token := p.signUp("ann@example.com").text("refresh_token")

	for range 3 {
		renewed := make([]string, 20)
		var tabs sync.WaitGroup
		for i := range renewed {
			tabs.Go(func() {
				got := p.refresh(token)
				if renewed[i] = got.text("refresh_token"); got.status != 200 || renewed[i] == token {
					t.Errorf("tab %d: got %d %s", i, got.status, got.raw)
				}
			})
		}
		tabs.Wait()

		for i := range renewed {
			if renewed[i] != renewed[0] {
				t.Errorf("tabs 0 and %d have different tokens", i)
			}
		}
		token = renewed[0]
	}

	if n := p.count(`select count(*)::int from auth.sessions`); n != 1 {
		t.Errorf("got %d sessions, want 1", n)
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

// TestStrangersSpendTheirOwn: what a stranger asks for, or guesses, is charged to their network.
// Other people of the project, and other projects, are served.
func TestStrangersSpendTheirOwn(t *testing.T) {
	t.Parallel()

	server := apitest.New(t, func(c *config.Config) {
		c.RateLimit, c.TrustedProxies = true, []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	})
	newProject := func(change func(*rules.Settings)) *app {
		a := *server
		a.Project = server.CreateProject("spent")

		return appOf(t, &a, func(s *rules.Settings) {
			s.MailIntervalSeconds, s.AnonymousSignIn = 0, true
			change(s)
		})
	}
	from := func(p *app, address, path, body string) *reply {
		p.t.Helper()
		return p.send("POST", path, p.publishable, body, "X-Forwarded-For", address)
	}
	const stranger, owner = "192.0.2.1", "198.51.100.1"

	// Unknown addresses spend nothing of the project, known ones at most half.
	p := newProject(func(s *rules.Settings) { s.MailsPerHour, s.SignInsPerFiveMinutes = 6, 1000 })
	refused := 0
	for i := range 12 {
		path := []string{"/recover", "/resend", "/otp", "/signup"}[i%4]
		body := `{"type":"signup","email":"nobody` + strconv.Itoa(i) + `@example.com","password":"` + password + `"}`
		if got := from(p, stranger, path, body); got.status == 429 {
			refused++
		}
	}
	if refused != 9 {
		t.Errorf("%d of 12 requests of a stranger were refused, want 9: half of the project's mails are 3", refused)
	}
	from(p, owner, "/signup", `{"email":"ann@example.com","password":"`+password+`"}`).want(200)
	p.mail("confirmation", "ann@example.com")
	from(p, owner, "/recover", `{"email":"ann@example.com"}`).want(200)
	p.mail("recovery", "ann@example.com")

	// Requests for an address count in no other project.
	other := newProject(func(s *rules.Settings) { s.MailsPerHour, s.SignInsPerFiveMinutes = 1000, 1000 })
	for range 40 {
		from(other, stranger, "/recover", `{"email":"ann@example.com"}`).want(200)
	}
	from(p, owner, "/recover", `{"email":"ann@example.com"}`).want(200)

	// Wrong codes are the guesser's.
	p = newProject(func(s *rules.Settings) { s.ChecksPerFiveMinutes = 1000 })
	from(p, owner, "/otp", `{"email":"ben@example.com"}`).want(200)
	code := p.code(p.mail("confirmation", "ben@example.com"))
	guess := func(address, code string) *reply {
		return from(p, address, "/verify", `{"type":"email","email":"ben@example.com","token":"`+code+`"}`)
	}
	for range 10 {
		guess(stranger, "nonsense").fails(403, "otp_expired")
	}
	guess(stranger, code).fails(429, "over_request_rate_limit")
	guess(owner, code).want(200)

	// A distributed attack has a bound as well, which a new code does not reset.
	from(p, owner, "/otp", `{"email":"ben@example.com"}`).want(200)
	code = p.code(p.mail("magic_link", "ben@example.com"))
	admitted := 0
	for i := range 60 {
		if guess("203.0.113."+strconv.Itoa(i+1), "nonsense").status == 403 {
			admitted++
		}
	}
	if admitted != 40 {
		t.Errorf("%d guesses of 60 networks were admitted, want 40: 10 were sent before", admitted)
	}

	guess(owner, code).want(200) // from a network that is known to the address

	// Known addresses are counted before they are told.
	user := from(p, stranger, "/signup", "{}").want(200).text("access_token")
	told := 0
	for range 20 {
		got := p.send("PUT", "/user", user, `{"email":"ben@example.com"}`, "X-Forwarded-For", stranger)
		if got.text("code") == "email_exists" {
			told++
		}
	}
	if told != 10 {
		t.Errorf("the user was told %d times that an address is known, want 10", told)
	}
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
	logIn(p.publishable, p.publishable, "203.0.113.3").fails(429, "over_request_rate_limit")
}
