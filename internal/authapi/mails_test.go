package authapi_test

import (
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/socle-dev/socle/internal/enduser/rules"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/token"
)

// confirming asks for confirmations, without a pause between mails.
func confirming(s *rules.Settings) {
	s.MailIntervalSeconds, s.RedirectURLs = 0, []string{"https://*.example.com/**", "myapp://callback"}
}

// open opens a link and returns where it leads.
func (p *app) open(link string, headers ...string) *url.URL {
	p.t.Helper()

	u, err := url.Parse(p.send("GET", link, "", "", headers...).want(http.StatusSeeOther).header.Get("Location"))
	if err != nil {
		p.t.Fatal(err)
	}

	return u
}

// fragment returns the parameters behind # of an address.
func fragment(u *url.URL) url.Values {
	values, _ := url.ParseQuery(u.EscapedFragment())
	return values
}

func TestConfirmation(t *testing.T) {
	t.Parallel()

	p := newApp(t, confirming)
	body := `{"email":"ann@example.com","password":"` + password + `"}`
	created := p.post("/signup?redirect_to=https://app.example.com/welcome", body).want(200)
	if created.text("access_token") != "" || created.text("confirmation_sent_at") == "" || created.text("id") == "" {
		t.Errorf("got %s, want a user without a session", created.raw)
	}
	p.post("/token?grant_type=password", body).fails(400, "email_not_confirmed")

	link := p.link(p.mail("confirmation", "ann@example.com"))

	// Neither a prefetch nor a scanner that asks for the head consumes the link.
	p.send("HEAD", link, "", "").want(http.StatusMethodNotAllowed)
	p.send("GET", link, "", "", "Sec-Purpose", "prefetch;prerender").want(http.StatusNoContent)

	to := p.open(link)
	if values := fragment(to); to.Host != "app.example.com" || to.Path != "/welcome" ||
		values.Get("access_token") == "" ||
		values.Get("refresh_token") == "" || values.Get("type") != "signup" ||
		values.Get("token_type") != "bearer" || !values.Has("sb") {
		t.Errorf("the link leads to %s", to)
	}
	p.refresh(fragment(to).Get("refresh_token")).want(200)

	if values := fragment(p.open(link)); values.Get("error_code") != "otp_expired" ||
		values.Get("error") != "access_denied" ||
		values.Get("error_description") == "" {
		t.Errorf("opened again, the link leads to %v", values)
	}

	p.post("/token?grant_type=password", body).want(200)

	// A taken address gets an answer of the same form.
	again := p.post("/signup", body).want(200)
	if again.text("id") == created.text("id") || len(again.body) != len(created.body) {
		t.Errorf("sign up again: got %s, want the form of %s", again.raw, created.raw)
	}
}

// TestOneTimeCodes has the responses to codes and links. Package enduser tests their rules.
func TestOneTimeCodes(t *testing.T) {
	t.Parallel()

	p := newApp(t, confirming)
	p.post("/otp", `{"email":"new@example.com","create_user":false}`).fails(422, "otp_disabled")
	p.post("/otp", `{"email":"ann@example.com","data":{"a":1}}`).want(200)
	m := p.mail("confirmation", "ann@example.com")

	verify := func(kind, code string) *reply {
		return p.post("/verify", `{"type":"`+kind+`","email":"ann@example.com","token":"`+code+`"}`)
	}
	verify("email", wrongCode(p.code(m))).fails(403, "otp_expired").equal("message", "Token has expired or is invalid")
	verify("email", p.code(m)).want(200).equal("user.email", "ann@example.com")

	p.post("/otp", `{"email":"ann@example.com"}`).want(200)
	link, _ := url.Parse(p.link(p.mail("magic_link", "ann@example.com")))
	p.post("/verify", `{"type":"magiclink","token_hash":"`+link.Query().Get("token")+`"}`).want(200)
	p.post("/verify", `{"type":"magiclink"}`).fails(400, "validation_failed")
	p.post("/verify", `{"type":"nothing","token_hash":"x"}`).fails(400, "validation_failed")
}

func TestRecovery(t *testing.T) {
	t.Parallel()

	p := newApp(t, confirming)
	p.send("POST", "/admin/users", p.secret,
		`{"email":"ann@example.com","password":"`+password+`","email_confirm":true}`).want(200)

	p.post("/recover", `{"email":"nobody@example.com"}`).want(200)
	p.post("/recover", `{"email":"nonsense"}`).fails(400, "validation_failed")
	if got := p.post("/recover?redirect_to=https://evil.example.org/", `{"email":"ann@example.com"}`).
		want(200); got.raw != "{}" {
		t.Errorf("got %s, want {}", got.raw)
	}

	to := p.open(p.link(p.mail("recovery", "ann@example.com")))
	if to.Host != "localhost:3000" {
		t.Errorf("the link leads to %s, want the site", to)
	}

	token := fragment(to).Get("access_token")
	p.send("PUT", "/user", token, `{"password":"another horse battery"}`).want(200)
	p.post("/token?grant_type=password", `{"email":"ann@example.com","password":"another horse battery"}`).want(200)
}

func TestPKCE(t *testing.T) {
	t.Parallel()

	p := newApp(t, confirming)
	verifier := strings.Repeat("verifier-", 6)
	sum := sha256.Sum256([]byte(verifier))
	challenge := `"code_challenge":"` + base64.RawURLEncoding.EncodeToString(sum[:]) +
		`","code_challenge_method":"s256"`

	start := func() string {
		p.post("/otp?redirect_to=myapp://callback", `{"email":"ann@example.com",`+challenge+`}`).want(200)
		kind := "magic_link"
		if n, _ := pg.Value[int](t.Context(), p.project.EndUsers(), `select count(*)::int from auth.users where email_confirmed_at is not null`); n == 0 {
			kind = "confirmation"
		}

		to := p.open(p.link(p.mail(kind, "ann@example.com")))
		if to.Scheme != "myapp" || to.Query().Get("code") == "" || to.Fragment != "" {
			t.Fatalf("the link leads to %s, want a code", to)
		}

		return to.Query().Get("code")
	}
	exchange := func(code, verifier string) *reply {
		return p.post("/token?grant_type=pkce", `{"auth_code":"`+code+`","code_verifier":"`+verifier+`"}`)
	}

	code := start()
	exchange(code, "").fails(400, "validation_failed")
	exchange("nonsense", verifier).fails(404, "flow_state_not_found")
	exchange(code, verifier).want(200).equal("user.email", "ann@example.com")
	exchange(code, verifier).fails(404, "flow_state_not_found")

	// A wrong verifier spends the code.
	code = start()
	exchange(code, verifier+"x").fails(400, "bad_code_verifier")
	exchange(code, verifier).fails(404, "flow_state_not_found")
}

func TestEmailChange(t *testing.T) {
	t.Parallel()

	p := newApp(t, confirming)
	p.send("POST", "/admin/users", p.secret,
		`{"email":"ann@example.com","password":"`+password+`","email_confirm":true}`).want(200)
	session := p.post("/token?grant_type=password", `{"email":"ann@example.com","password":"`+password+`"}`).
		want(200).text("access_token")

	p.send("PUT", "/user", session, `{"email":"anna@example.com"}`).want(200).equal("email", "ann@example.com").
		equal("new_email", "anna@example.com")
	current, renewed := p.mail("email_change", "ann@example.com"), p.mail("email_change", "anna@example.com")

	if to := p.open(p.link(current)); !strings.Contains(fragment(to).Get("message"), "other email") {
		t.Errorf("the first link leads to %s", to)
	}
	p.send("GET", "/user", session, "").want(200).equal("email", "ann@example.com")

	p.post("/verify", `{"type":"email_change","email":"anna@example.com","token":"`+p.code(renewed)+`"}`).want(200).
		equal("user.email", "anna@example.com").equal("user.new_email", "")
	p.post("/resend", `{"type":"email_change","email":"anna@example.com"}`).want(200)
	p.post("/resend", `{"type":"recovery","email":"anna@example.com"}`).fails(400, "validation_failed")
	p.post("/resend", `{"type":"signup","email":"nobody@example.com"}`).want(200)
}

func TestInvitationsAndLinks(t *testing.T) {
	t.Parallel()

	p := newApp(t, confirming)
	admin := func(path, body string) *reply { p.t.Helper(); return p.send("POST", path, p.secret, body) }

	if got := admin("/invite", `{"email":"ann@example.com","data":{"team":"a"}}`).
		want(200); got.text("invited_at") == "" {
		t.Errorf("got %s", got.raw)
	}
	if to := p.open(p.link(p.mail("invite", "ann@example.com"))); fragment(to).Get("type") != "invite" {
		t.Errorf("the invitation leads to %s", to)
	}
	admin("/invite", `{"email":"ann@example.com"}`).fails(422, "email_exists")

	for _, kind := range []string{"magiclink", "recovery"} {
		link := admin("/admin/generate_link?redirect_to=https://app.example.com/x", `{"type":"`+kind+`","email":"ann@example.com"}`).want(200).
			equal("verification_type", kind).equal("redirect_to", "https://app.example.com/x").equal("email",
			"ann@example.com")
		p.post("/verify", `{"type":"`+kind+`","token_hash":"`+link.text("hashed_token")+`"}`).want(200)
	}

	link := admin("/admin/generate_link", `{"type":"signup","email":"new@example.com","password":"`+password+`"}`).want(200)
	p.post("/verify", `{"type":"signup","email":"new@example.com","token":"`+link.text("email_otp")+`"}`).want(200)

	current := admin("/admin/generate_link", `{"type":"email_change_current","email":"new@example.com","new_email":"newer@example.com"}`).want(200)
	renewed := admin("/admin/generate_link", `{"type":"email_change_new","email":"new@example.com","new_email":"newer@example.com"}`).want(200)
	p.post("/verify", `{"type":"email_change","token_hash":"`+current.text("hashed_token")+`"}`).want(200).
		equal("code", "200")
	p.post("/verify", `{"type":"email_change","token_hash":"`+renewed.text("hashed_token")+`"}`).want(200).
		equal("user.email", "newer@example.com")

	admin("/admin/generate_link", `{"type":"recovery","email":"nobody@example.com"}`).fails(404, "user_not_found")
	admin("/admin/generate_link", `{"type":"nothing","email":"ann@example.com"}`).fails(400, "validation_failed")
}

// TestFactors has the responses to factors of time-based codes. Package enduser tests their rules.
func TestFactors(t *testing.T) {
	t.Parallel()

	p := newApp(t, autoconfirm)
	session := p.signUp("ann@example.com")
	bearer := session.text("access_token")
	send := func(method, path, body string) *reply { p.t.Helper(); return p.send(method, path, bearer, body) }

	send("POST", "/factors", `{"factor_type":"phone"}`).fails(422, "mfa_phone_enroll_not_enabled")
	send("POST", "/factors", `{"factor_type":"other"}`).fails(400, "validation_failed")
	factor := send("POST", "/factors", `{"factor_type":"totp","friendly_name":"phone","issuer":"Example"}`).want(200)
	path := "/factors/" + factor.text("id")
	send("POST", "/factors", `{"factor_type":"totp","friendly_name":"phone"}`).fails(422, "mfa_factor_name_conflict").
		equal("message", `A factor with the friendly name "phone" for this user already exists`)

	uri, err := url.Parse(factor.text("totp.uri"))
	if err != nil || uri.Scheme != "otpauth" || uri.Query().Get("secret") != factor.text("totp.secret") {
		t.Fatalf("got %s (%v)", factor.raw, err)
	}
	if !strings.HasPrefix(factor.text("totp.qr_code"), "<svg ") {
		t.Errorf("got the picture %q, want SVG", factor.text("totp.qr_code"))
	}

	secret, err := token.ParseTOTPText(factor.text("totp.secret"))
	if err != nil {
		t.Fatal(err)
	}

	id := send("POST", path+"/challenge", "{}").want(200).text("id")
	verify := func(code string) *reply {
		return send("POST", path+"/verify", `{"challenge_id":"`+id+`","code":"`+code+`"}`)
	}
	verify("000000x").fails(422, "mfa_verification_failed").equal("message", "Invalid TOTP code entered")
	code := token.TOTPCode(secret, token.TOTPStep(time.Now()))
	if got := claim(t, verify(code).want(200).text("access_token"), "aal"); got != "aal2" {
		t.Errorf("got the level %v, want aal2", got)
	}
	verify(code).fails(422, "mfa_challenge_expired")
	send("DELETE", path, "").want(200).equal("id", factor.text("id"))
	send("POST", path+"/challenge", "{}").fails(404, "mfa_factor_not_found")

	user := session.text("user.id")
	second := send("POST", "/factors", `{"factor_type":"totp"}`).want(200).text("id")
	if got := p.send("GET", "/admin/users/"+user+"/factors", p.secret, "").want(200).raw; !strings.Contains(got,
		second) {
		t.Errorf("got factors %s, want %s", got, second)
	}
	p.send("DELETE", "/admin/users/"+user+"/factors/"+second, p.secret, "").want(200).equal("id", second)
}
