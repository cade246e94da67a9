package api_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/socle-dev/socle/internal/account"
	"github.com/socle-dev/socle/internal/api/apitest"
	"github.com/socle-dev/socle/internal/config"
)

const newPassword = "another one entirely"

// requestReset requests a password reset and returns the token in the n-th mail to the user.
func requestReset(t *testing.T, a *apitest.API, n int) string {
	t.Helper()

	a.Anonymous().Post("/users/password/forgot", `{"email": `+quoted(a.Email)+`}`).Want(200)
	return waitForMail(t, a, a.Email, n).token(t, a, "/reset-password")
}

// resetBody returns the body of a password reset.
func resetBody(token, password string) string {
	return `{"token": ` + quoted(token) + `, "password": ` + quoted(password) + `}`
}

func TestForgetPassword(t *testing.T) {
	t.Parallel()

	a := apitest.SharedUser(t)
	anonymous, other := a.Anonymous().WithProject(""), newSession(t, a)
	known := anonymous.Post("/users/password/forgot", `{"email": `+quoted(" "+strings.ToUpper(a.Email))+`}`).Want(200)
	wantEqual(t, anonymous.Post("/users/password/forgot", `{"email": "nobody@example.com"}`).Want(200), known)

	if known.Get("") != nil {
		t.Errorf("got content %v, want null", known.Get(""))
	}

	m := waitForMail(t, a, a.Email, 1) // to the address as stored
	token := m.token(t, a, "/reset-password")
	if m.Subject != "Set a new password" || strings.Contains(string(known.Body), token) {
		t.Errorf("got %+v, %s", m, known.Body)
	}

	anonymous.Post("/users/password/reset", resetBody(token, "short")).Want(422).Field("password")
	anonymous.Post("/users/password/reset", resetBody(token, a.Email)).Want(422).Field("password")
	a.Get("/users/me").Want(200)

	done := anonymous.Post("/users/password/reset", resetBody(token, newPassword)).Want(200)
	if done.Get("") != nil {
		t.Errorf("got content %v, want null", done.Get(""))
	}

	a.Get("/users/me").Want(401).Code("invalid_token") // every session has ended
	other.Get("/users/me").Want(401)
	anonymous.Post("/users/login", loginBody(a.Email, apitest.Password)).Want(401)
	anonymous.Post("/users/login", loginBody(a.Email, newPassword)).Want(200)
	anonymous.Post("/users/password/reset", resetBody(token, newPassword)).Want(422).Code("invalid_token").
		Field("token")

	if m := waitForMail(t, a, a.Email, 2); m.Subject != "Your password was changed" {
		t.Errorf("got %+v", m)
	}
	if got := mails(t, a, "nobody@example.com"); len(got) != 0 {
		t.Errorf("got mails to another user: %+v", got)
	}
}

func TestResetPasswordRefuses(t *testing.T) {
	t.Parallel()

	a := apitest.User(t)
	anonymous := a.Anonymous().WithProject("")
	for _, body := range []string{`{}`, `{"email": ""}`, `{"email": "nobody"}`, `{"email": 1}`, `{"email": null}`,
		`{"email": ["a@example.com"]}`, `{"email": "a@example.com\r\nBcc: b@example.com"}`} {
		anonymous.Post("/users/password/forgot", body).Want(422).Field("email")
	}

	anonymous.Post("/users/password/forgot", `{`).Want(400)
	anonymous.Post("/users/password/reset", `{`).Want(400)
	anonymous.Post("/users/password/reset", `{}`).Want(422).Field("token", "password")

	token := requestReset(t, a, 1)
	for _, bad := range []string{
		"", "x", token[1:], token + "A", token[:len(token)-1] + "!",
		strings.Replace(token, "socle_link_", "socle_refresh_", 1),
	} {
		anonymous.Post("/users/password/reset", resetBody(bad, newPassword)).Want(422).Code("invalid_token").
			Field("token")
	}

	// The token has another purpose.
	anonymous.Post("/users/email/confirm", `{"token": `+quoted(token)+`}`).Want(422).Field("token")
	a.Exec(`update platform.links set expires_at = now() - interval '1 second'`)
	anonymous.Post("/users/password/reset", resetBody(token, newPassword)).Want(422).Field("token")

	// A later link, a new password and a new address invalidate earlier links.
	first := requestReset(t, a, 2)
	second := requestReset(t, a, 3)
	anonymous.Post("/users/password/reset", resetBody(first, newPassword)).Want(422).Field("token")
	a.Put("/users/"+a.User, `{"bio": "no reason"}`).Want(200)
	a.Put("/users/"+a.User, `{"password": "yet another one"}`).Want(200)
	waitForMail(t, a, a.Email, 4)
	anonymous.Post("/users/password/reset", resetBody(second, newPassword)).Want(422).Field("token")

	third := requestReset(t, a, 5)
	a.Put("/users/"+a.User, `{"email": "moved@example.com"}`).Want(200).Content("email", "moved@example.com")
	anonymous.Post("/users/password/reset", resetBody(third, newPassword)).Want(422).Field("token")

	if m := waitForMail(t, a, a.Email, 6); m.Subject != "Your address was changed" ||
		!strings.Contains(m.Text, "moved@example.com") {
		t.Errorf("got mail %+v to the old address", m)
	}

	anonymous.Post("/users/login", loginBody("moved@example.com", "yet another one")).Want(200)

	// A suspended user gets no mail.
	a.Email = "moved@example.com"
	requestReset(t, a, 1)
	a.Exec(`update platform.users set status = 'suspended' where uuid = $1`, a.User)
	anonymous.Post("/users/password/forgot", `{"email": "moved@example.com"}`).Want(200)
	until(t, "the queue is empty", func() bool {
		return apitest.Value[int](a, `select count(*)::int from river.river_job where finalized_at is null`) == 0
	})

	waitForMail(t, a, a.Email, 1)

	if strings.Contains(a.Log.String(), "yet another one") {
		t.Error("the log contains a password")
	}
}

// TestResetConcurrently checks that a link works once.
func TestResetConcurrently(t *testing.T) {
	t.Parallel()

	a := apitest.SharedUser(t)
	token := requestReset(t, a, 1)
	wantCounts(t, concurrently(3, func(i int) *apitest.Reply {
		return a.Anonymous().Post("/users/password/reset", resetBody(token, newPassword+strconv.Itoa(i)))
	}), map[int]int{200: 1, 422: 2})

	won := 0
	for i := range 3 {
		if a.Anonymous().Post("/users/login", loginBody(a.Email, newPassword+strconv.Itoa(i))).Status == 200 {
			won++
		}
	}

	if won != 1 {
		t.Errorf("got %d valid passwords, want 1", won)
	}
}

func TestMailsAreLimited(t *testing.T) {
	t.Parallel()

	a := apitest.User(t, limited, func(c *config.Config) { c.TrustedProxies = trusted })
	ask := func(client, email string) *apitest.Reply {
		return a.Anonymous().Send("POST", "/users/password/forgot", `{"email": `+quoted(email)+`}`,
			"X-Forwarded-For: "+client)
	}

	for _, email := range []string{a.Email, "nobody@example.com"} { // an unknown address has the same limit
		for i := range 5 {
			ask("203.0.113."+strconv.Itoa(i), email).Want(200)
		}
		ask("203.0.113.9", strings.ToUpper(email)).Want(429).Code("rate_limited")
	}

	for i := range 20 {
		ask("198.51.100.1", "user"+strconv.Itoa(i)+"@example.com").Want(200)
	}

	ask("198.51.100.1", "late@example.com").Want(429)
	ask("198.51.100.2", "late@example.com").Want(200)

	// Passwords are hashed for valid links only, and their number is limited.
	token := createLink(t, a.SignUp("other"), account.PasswordReset)
	for range 30 {
		a.Anonymous().Send("POST", "/users/password/reset", resetBody(token, "short"), "X-Forwarded-For: 198.51.100.3").
			Want(422)
	}

	a.Anonymous().Send("POST", "/users/password/reset", resetBody(token, newPassword), "X-Forwarded-For: 198.51.100.3").
		Want(429)

	change := func(password string) *apitest.Reply {
		return a.Post("/users/me/email", `{"email": "new@example.com", "password": `+quoted(password)+`}`)
	}

	for range 5 {
		change(apitest.Password).Want(200)
	}

	change(apitest.Password).Want(429)

	if n := countAttempts(t, func(int) *apitest.Reply {
		r := change("wrong")
		if r.Status == 422 {
			r.Status = 401
		}

		return r
	}); n != 10 {
		t.Errorf("got %d guesses at a password, want 10", n)
	}

	// These guesses count for the log-in limit too.
	a.Anonymous().Post("/users/login", loginBody(a.Email, apitest.Password)).Want(429)
}

func TestChangeEmail(t *testing.T) {
	t.Parallel()

	a := apitest.SharedUser(t)
	anonymous, next := a.Anonymous().WithProject(""), "New-"+a.Email
	body := func(email, password string) string {
		return `{"email": ` + quoted(email) + `, "password": ` + quoted(password) + `}`
	}
	if got := a.Post("/users/me/email", body(" "+next, apitest.Password)).Want(200).Get(""); got != nil {
		t.Errorf("got content %v, want null", got)
	}

	a.Get("/users/me").Want(200).Content("email", a.Email) // unchanged
	token := waitForMail(t, a, next, 1).token(t, a, "/confirm-email")

	if m := waitForMail(t, a, a.Email, 1); m.Subject != "Your address is being changed" ||
		strings.Contains(m.Text, "token=") || !strings.Contains(m.Text, next) {
		t.Errorf("got mail %+v to the old address", m)
	}

	anonymous.Post("/users/password/reset", resetBody(token, newPassword)).Want(422).Field("token")
	anonymous.Post("/users/email/confirm", `{"token": `+quoted(token)+`}`).Want(200).Content("email", next)
	anonymous.Post("/users/email/confirm", `{"token": `+quoted(token)+`}`).Want(422).Field("token")
	a.Get("/users/me").Want(200).Content("email", next)
	anonymous.Post("/users/login", loginBody(strings.ToLower(next), apitest.Password)).Want(200)
	anonymous.Post("/users/login", loginBody(a.Email, apitest.Password)).Want(401)
}

func TestChangeEmailRefuses(t *testing.T) {
	t.Parallel()

	a := apitest.User(t)
	anonymous := a.Anonymous().WithProject("")
	other := a.SignUp("other")

	for body, fields := range map[string]string{
		`{}`: "email password",
		`{"email": "nobody", "password": "` + apitest.Password + `"}`:                              "email",
		`{"email": "x@example.com\r\nBcc: y@example.com", "password": "` + apitest.Password + `"}`: "email",
		`{"email": "new@example.com", "password": "wrong"}`:                                        "password",
		`{"email": "new@example.com", "password": ""}`:                                             "password",
		`{"email": "new@example.com", "password": true}`:                                           "password",
	} {
		a.Post("/users/me/email", body).Want(422).Field(strings.Fields(fields)...)
	}

	a.Post("/users/me/email", `{`).Want(400)
	anonymous.Post("/users/me/email", `{}`).Want(401)
	anonymous.Post("/users/email/confirm", `{`).Want(400)
	anonymous.Post("/users/email/confirm", `{}`).Want(422).Field("token")
	anonymous.Post("/users/email/confirm", `{"token": "socle_link_x"}`).Want(422).Field("token")

	ask := func(email string) string {
		a.Post("/users/me/email", `{"email": "`+email+`", "password": "`+apitest.Password+`"}`).Want(200)
		return waitForMail(t, a, email, 1).token(t, a, "/confirm-email")
	}

	confirm := func(token string) *apitest.Reply {
		return anonymous.Post("/users/email/confirm", `{"token": `+quoted(token)+`}`)
	}
	confirm(ask(other.Email)).Want(409).Field("email") // the address of another user
	first := ask("first@example.com")
	second := ask("second@example.com")

	confirm(first).Want(422)
	// A new password invalidates pending changes of the address.
	a.Put("/users/"+a.User, `{"password": "`+apitest.Password+` 2"}`).Want(200)
	confirm(second).Want(422)
	a.Put("/users/"+a.User, `{"password": "`+apitest.Password+`"}`).Want(200)

	third := ask("third@example.com")
	a.Put("/users/"+a.User, `{"email": "at-once@example.com"}`).Want(200).Content("email", "at-once@example.com")
	confirm(third).Want(422)

	fourth := ask("fourth@example.com")
	a.Exec(`update platform.links set expires_at = now()`)
	confirm(fourth).Want(422)
	a.Get("/users/me").Want(200).Content("email", "at-once@example.com")

	// One of two users who confirm the same address succeeds, and one of several confirmations of a
	// link.
	fifth := ask("fifth@example.com")
	wantCounts(t, concurrently(8, func(int) *apitest.Reply { return confirm(fifth) }), map[int]int{200: 1, 422: 7})
	mine := ask("both@example.com")
	other.Post("/users/me/email", `{"email": "Both@example.com", "password": "`+apitest.Password+`"}`).Want(200)

	theirs := waitForMail(t, a, "Both@example.com", 1).token(t, a, "/confirm-email")
	wantCounts(t, concurrently(2, func(i int) *apitest.Reply { return confirm([]string{mine, theirs}[i]) }),
		map[int]int{200: 1, 409: 1})
}
