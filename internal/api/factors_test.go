package api_test

import (
	"encoding/base32"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/socle-dev/socle/internal/api/apitest"
	"github.com/socle-dev/socle/internal/token"
)

// authenticator is an authenticator app.
type authenticator struct {
	secret []byte
	codes  []string // recovery codes
}

// code returns the code of the given number of time steps from now.
func (p authenticator) code(steps int64) string {
	return token.TOTPCode(p.secret, token.TOTPStep(time.Now())+steps)
}

// createFactor creates a second factor without confirming it.
func createFactor(t *testing.T, a *apitest.API) authenticator {
	t.Helper()

	r := a.Post("/users/me/totp", passwordBody).Want(201)
	secret, err := base32.StdEncoding.DecodeString(r.Get("secret").(string))

	u, parsed := url.Parse(r.Get("url").(string))
	if err != nil || parsed != nil || u.Query().Get("secret") != r.Get("secret") ||
		!strings.HasSuffix(u.Path, a.Email) || r.Header.Get("Cache-Control") != "no-store" {
		t.Fatalf("got %s, %v, %v", r.Body, err, parsed)
	}

	return authenticator{secret: secret}
}

// addFactor creates and confirms a second factor, and resets its used codes.
func addFactor(t *testing.T, a *apitest.API) authenticator {
	t.Helper()

	p := createFactor(t, a)
	r := a.Post("/users/me/totp/confirm", `{"code": "`+p.code(0)+`"}`).Want(200)
	if r.Header.Get("Cache-Control") != "no-store" {
		t.Error("the recovery codes can be stored by caches")
	}

	for _, c := range r.Get("recoveryCodes").([]any) {
		p.codes = append(p.codes, c.(string))
	}

	forgetCodes(a)
	return p
}

// forgetCodes allows the use of codes again.
func forgetCodes(a *apitest.API) { a.Exec(`update platform.second_factors set last_step = 0`) }

// loginBodyWithCode returns the body of a log-in with a code.
func loginBodyWithCode(a *apitest.API, code string) string {
	return strings.TrimSuffix(loginBody(a.Email, apitest.Password), "}") + `, "code": ` + quoted(code) + `}`
}

func TestSecondFactor(t *testing.T) {
	t.Parallel()

	a := apitest.User(t)
	anonymous := a.Anonymous().WithProject("")
	a.Get("/users/me/totp").Want(404)
	createFactor(t, a)
	a.Get("/users/me/totp").Want(200).Content("isConfirmed", false)
	anonymous.Post("/users/login", loginBody(a.Email, apitest.Password)).Want(200) // not confirmed yet

	p := createFactor(t, a) // again, as after the loss of the first one
	a.Post("/users/me/totp/confirm", `{"code": "000000x"}`).Want(422).Code("invalid_code").Field("code")
	code := p.code(0)
	confirmed := a.Post("/users/me/totp/confirm", `{"code": "`+code+`"}`).Want(200)
	if codes := confirmed.Get("recoveryCodes").([]any); len(codes) != 10 {
		t.Errorf("got %v", codes)
	}

	a.Get("/users/me/totp").Want(200).Content("isConfirmed", true).Content("recoveryCodes", 10)
	a.Post("/users/me/totp/confirm", `{"code": "`+p.code(1)+`"}`).Want(409)
	a.Post("/users/me/totp", passwordBody).Want(409)

	if m := waitForMail(t, a, a.Email, 1); m.Subject != "Your second factor was switched on" {
		t.Errorf("got %+v", m)
	}

	anonymous.Post("/users/login", loginBody(a.Email, apitest.Password)).Want(401).
		Code("second_factor_required").Field("code")
	anonymous.Post("/users/login", loginBody(a.Email, "wrong")).Want(401).Code("invalid_credentials")
	// used for the confirmation
	anonymous.Post("/users/login", loginBodyWithCode(a, code)).Want(401).Code("invalid_code")
	forgetCodes(a)

	next := p.code(1)
	r := anonymous.Post("/users/login", loginBodyWithCode(a, next)).Want(200).Content("uuid", a.User)
	anonymous.Send("GET", "/users/me", "", "Authorization: "+r.Header.Get("Authorization")).Want(200)

	for _, spent := range []string{next, p.code(0), p.code(-1)} { // neither the same nor an earlier code
		anonymous.Post("/users/login", loginBodyWithCode(a, spent)).Want(401).Code("invalid_code")
	}

	forgetCodes(a)

	for _, wrong := range []string{p.code(3), p.code(-3), "12345", "abcdef", "１２３４５６"} {
		anonymous.Post("/users/login", loginBodyWithCode(a, wrong)).Want(401).Code("invalid_code").Field("code")
	}

	anonymous.Post("/users/login", `{"email": "`+a.Email+`", "password": "`+apitest.Password+`", "code": 123456}`).
		Want(400).Field("code")

	a.Get("/users/me").Want(200) // existing sessions continue

	// Each recovery code works once, in any spelling.
	codes := confirmed.Get("recoveryCodes").([]any)
	first := codes[0].(string)
	anonymous.Post("/users/login", loginBodyWithCode(a, first)).Want(200)
	anonymous.Post("/users/login", loginBodyWithCode(a, first)).Want(401).Code("invalid_code")
	anonymous.Post("/users/login",
		loginBodyWithCode(a, strings.ToUpper(strings.ReplaceAll(codes[1].(string), "-", " ")))).
		Want(200)

	a.Get("/users/me/totp").Want(200).Content("recoveryCodes", 8)

	// A password reset does not remove the second factor.
	a.Anonymous().Post("/users/password/reset", resetBody(createLink(t, a, "password reset"), apitest.Password)).
		Want(200)
	anonymous.Post("/users/login", loginBody(a.Email, apitest.Password)).Want(401).Code("second_factor_required")
	kept := apitest.Value[string](a,
		`select string_agg(c::text, ' ') || (select string_agg(f::text, ' ') from platform.second_factors f) from platform.recovery_codes c`)

	for _, secret := range append([]any{token.TOTPText(p.secret), next}, codes...) {
		if strings.Contains(a.Log.String(), secret.(string)) || strings.Contains(kept, secret.(string)) {
			t.Errorf("the log or the database contains %s", secret)
		}
	}
}

func TestDeleteSecondFactor(t *testing.T) {
	t.Parallel()

	a := apitest.SharedUser(t)
	anonymous := a.Anonymous().WithProject("")

	for _, call := range []string{"POST /users/me/totp", "DELETE /users/me/totp"} {
		method, path, _ := strings.Cut(call, " ")
		a.Send(method, path, `{`).Want(400)
		a.Send(method, path, `{}`).Want(422).Field("password")
		a.Send(method, path, `{"password": "wrong"}`).Want(422).Code("wrong_password").Field("password")
	}

	a.Post("/users/me/totp/confirm", `{`).Want(400)
	a.Post("/users/me/totp/confirm", `{}`).Want(422).Field("code")
	a.Post("/users/me/totp/confirm", `{"code": "123456"}`).Want(404)
	a.Send("DELETE", "/users/me/totp", passwordBody).Want(404)
	createFactor(t, a)
	a.Send("DELETE", "/users/me/totp", passwordBody).Want(200) // an unconfirmed factor needs no code
	a.Get("/users/me/totp").Want(404)

	p := addFactor(t, a)
	with := func(code string) string {
		return `{"password": "` + apitest.Password + `", "code": "` + code + `"}`
	}

	a.Send("DELETE", "/users/me/totp", passwordBody).Want(422).Code("second_factor_required").Field("code")
	a.Send("DELETE", "/users/me/totp", with("000000x")).Want(422).Code("invalid_code").Field("code")
	a.Send("DELETE", "/users/me/totp", with(p.code(0))).Want(200)
	anonymous.Post("/users/login", loginBody(a.Email, apitest.Password)).Want(200)

	u := a.SignUp("leaver")
	p = addFactor(t, u)
	deleteAccount(u, passwordBody).Want(422).Code("second_factor_required")
	deleteAccount(u, with("000000x")).Want(422).Code("invalid_code")
	deleteAccount(u, with(p.codes[0])).Want(200)

	// A sealed secret copied from another user is useless.
	one, two := a.SignUp("one"), a.SignUp("two")
	p = addFactor(t, one)
	addFactor(t, two)
	a.Exec(
		`update platform.second_factors set sealed = (select sealed from platform.second_factors where user_uuid = $1) where user_uuid = $2`, one.User, two.User,
	)

	anonymous.Post("/users/login", loginBodyWithCode(two, p.code(0))).Want(500)
}

// TestResetSecondFactor checks that an administrator can remove a lost second factor. The log-in
// still requires the password.
func TestResetSecondFactor(t *testing.T) {
	t.Parallel()

	a := apitest.Users(t)
	administrator, user := a.SignUp("first"), a.SignUp("user")
	path := "/admin/users/" + user.User + "/totp"
	administrator.Delete(path).Want(404)
	addFactor(t, user)
	user.Delete(path).Want(403)
	user.Delete("/admin/users/" + administrator.User + "/totp").Want(403)
	administrator.Delete(path).Want(200).Content("uuid", user.User)
	user.Get("/users/me").Want(401)
	a.Post("/users/login", loginBody(user.Email, "wrong")).Want(401)
	user.Token = a.Post("/users/login", loginBody(user.Email, apitest.Password)).Want(200).Metadata("token").(string)
	user.Get("/users/me/totp").Want(404)

	if n := apitest.Value[int](a, `select count(*)::int from platform.recovery_codes`); n != 0 {
		t.Errorf("got %d recovery codes, want none", n)
	}

	waitForMail(t, a, user.Email, 2) // in any order

	if all := mails(t, a, user.Email); !slices.ContainsFunc(all, func(m mail) bool {
		return m.Subject == "Your second factor was removed by an administrator"
	}) {
		t.Errorf("got %+v", all)
	}

	administrator.Get("/admin/audit?order=desc").Want(200).Content("1.action", "resetSecondFactor").
		Content("1.target", path)

	addFactor(t, administrator)
	administrator.Delete("/admin/users/" + administrator.User + "/totp").Want(403).Code("own_account")
	administrator.Delete("/admin/users/x/totp").Want(400)
}

// TestSecondFactorConcurrently checks that one code allows one log-in, and that attempts are
// limited.
func TestSecondFactorConcurrently(t *testing.T) {
	t.Parallel()

	a := apitest.User(t, limited)
	anonymous := a.Anonymous().WithProject("")
	p := createFactor(t, a)
	confirmation := p.code(0)
	got := concurrently(5, func(int) *apitest.Reply {
		return a.Post("/users/me/totp/confirm", `{"code": "`+confirmation+`"}`)
	})

	wantCounts(t, got, map[int]int{200: 1, 409: 4})

	if n := apitest.Value[int](a, `select count(*)::int from platform.recovery_codes`); n != 10 {
		t.Errorf("got %d recovery codes, want 10", n)
	}

	forgetCodes(a)
	code := p.code(0)
	got = concurrently(4, func(int) *apitest.Reply {
		return anonymous.Post("/users/login", loginBodyWithCode(a, code))
	})
	wantCounts(t, got, map[int]int{200: 1, 401: 3})
	a.Exec(`delete from platform.attempts`)

	if n := countAttempts(t, func(int) *apitest.Reply {
		return anonymous.Post("/users/login", loginBodyWithCode(a, "000000x"))
	}); n != 10 {
		t.Errorf("got %d guesses at a code, want 10", n)
	}

	forgetCodes(a)
	anonymous.Post("/users/login", loginBodyWithCode(a, p.code(0))).Want(429) // even with the right code
	a.Send("DELETE", "/users/me/totp", `{"password": "`+apitest.Password+`", "code": "`+p.code(0)+`"}`).Want(429)
	a.Get("/users/me").Want(200)
	a.Exec(`update platform.attempts set resets_at = now() - interval '1 second'`)
	anonymous.Post("/users/login", loginBodyWithCode(a, p.code(0))).Want(200)
}

// TestGuessingWithSession checks that a stolen session cannot guess the password in account
// operations.
func TestGuessingWithSession(t *testing.T) {
	t.Parallel()

	a := apitest.User(t, limited)
	for _, c := range []call{
		{id: "createSecondFactor", method: "POST", path: "/users/me/totp", body: `{"password": "wrong"}`},
		{id: "deleteAccount", method: "DELETE", path: "/users/me", body: `{"password": "wrong"}`},
	} {
		if r := repeatUntilLimited(t, func() *apitest.Reply { return c.send(a) }); r.Header.Get("Retry-After") == "" {
			t.Errorf("%s: the response has no Retry-After", c.id)
		}
	}
}

// repeatUntilLimited repeats a request until it gets 429, and returns that response.
func repeatUntilLimited(t *testing.T, send func() *apitest.Reply) *apitest.Reply {
	t.Helper()

	for range 100 {
		if r := send(); r.Status == 429 {
			return r
		}
	}

	t.Fatal("got no 429 after a hundred requests")
	return nil
}

func TestGuessingCodesToConfirm(t *testing.T) {
	t.Parallel()

	a := apitest.User(t, limited)
	createFactor(t, a)
	repeatUntilLimited(t, func() *apitest.Reply { return a.Post("/users/me/totp/confirm", `{"code": "000000"}`) })
}
