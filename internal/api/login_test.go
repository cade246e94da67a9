package api_test

import (
	"net/netip"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/socle-dev/socle/internal/api/apitest"
	"github.com/socle-dev/socle/internal/config"
)

// trusted declares the address of the tests as a proxy, so that X-Forwarded-For selects the client
// address.
var trusted = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}

func limited(c *config.Config) { c.RateLimit = true }

// loginBody returns the body of a log-in.
func loginBody(email, password string) string {
	return `{"email": ` + quoted(email) + `, "password": ` + quoted(password) + `}`
}

func TestLogin(t *testing.T) {
	t.Parallel()

	a := apitest.User(t).Anonymous().WithProject("")
	created := a.Post("/users", userBody("ada", map[string]any{"bio": "first", "email": "Ada.Straße@example.com"})).
		Want(201)

	for _, email := range []string{
		"Ada.Straße@example.com", "ada.straße@EXAMPLE.com", "ADA.STRASSE@example.com", " ada.straße@example.com\n",
		"ａda.straße@example.com",
	} {
		r := a.Post("/users/login", loginBody(email, apitest.Password)).Want(200)
		if diff := cmp.Diff(created.Get(""), r.Get("")); diff != "" {
			t.Errorf("logged in as %q (-want +got):\n%s", email, diff)
		}
		if r.Header.Get("Authorization") != "Bearer "+r.Metadata("token").(string) ||
			r.Header.Get("Cache-Control") != "no-store" {
			t.Errorf("got headers %v of a log-in", r.Header)
		}
		if r.Metadata("token") == created.Metadata("token") ||
			r.Metadata("refreshToken") == created.Metadata("refreshToken") {
			t.Error("two sessions share a token")
		}

		a.Send("GET", "/projects", "", "Authorization: "+r.Header.Get("Authorization")).Want(200)
	}
}

// TestLoginRefuses checks that failures do not reveal whether an account exists.
func TestLoginRefuses(t *testing.T) {
	t.Parallel()

	a := apitest.User(t)
	before := accounts(t, a)
	anonymous := a.Anonymous().WithProject("")
	wrong := anonymous.Post("/users/login", loginBody(a.Email, "not the password")).Want(401).
		Code("invalid_credentials")
	for name, body := range map[string]string{
		"unknown":        loginBody("nobody@example.com", apitest.Password),
		"no address":     loginBody("nobody", apitest.Password),
		"empty address":  loginBody("", apitest.Password),
		"empty password": loginBody(a.Email, ""),
		"other case":     loginBody(a.Email, strings.ToUpper(apitest.Password)),
		"space behind":   loginBody(a.Email, apitest.Password+" "),
		"shorter":        loginBody(a.Email, apitest.Password[1:]),
		"long password":  loginBody(a.Email, strings.Repeat("x", 16_000)),
		"long address":   loginBody(strings.Repeat("x", 16_000), apitest.Password),
		"SQL":            loginBody("' or 1=1 --", "' or 1=1 --"),
		"pattern":        loginBody("%", apitest.Password),
	} {
		r := anonymous.Post("/users/login", body)
		if got, want := withoutRequestID(r), withoutRequestID(wrong); got != want {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}

		for _, header := range []string{"X-Request-Id", "Date"} {
			r.Header.Del(header)
			wrong.Header.Del(header)
		}

		if diff := cmp.Diff(wrong.Header, r.Header); diff != "" {
			t.Errorf("%s: headers (-want +got):\n%s", name, diff)
		}
	}

	for _, field := range []string{"email", "password"} {
		for _, value := range []string{
			`{"$ne": null}`, `["` + a.Email + `"]`, "1", "1e400", "true", "null", "{}", `"a\u0000b"`,
		} {
			other := map[string]string{"email": `"password": "x"`, "password": `"email": "x"`}[field]
			anonymous.Post("/users/login", `{"`+field+`": `+value+`, `+other+`}`).Want(400).Field(field)
		}
	}

	anonymous.Post("/users/login", `{}`).Want(400).Field("email", "password")
	unchanged(t, a, before)
}

// TestSecretsNotRevealed checks that passwords and tokens appear neither in the log nor in
// responses.
func TestSecretsNotRevealed(t *testing.T) {
	t.Parallel()

	const canary, wrong = "canary in the mine", "wrong canary bird"
	a := apitest.User(t)
	anonymous := a.Anonymous().WithProject("")
	r := anonymous.Post("/users", userBody("canary", map[string]any{"password": canary})).Want(201)

	replies := []*apitest.Reply{r,
		anonymous.Post("/users", userBody("canary", map[string]any{"password": canary})).Want(400),
		anonymous.Post("/users", userBody("bird", map[string]any{"email": canary, "password": canary})).Want(400),
		anonymous.Post("/users/login", loginBody("canary@example.com", wrong)).Want(401),
		anonymous.Post("/users/login", loginBody("canary@example.com", canary)).Want(200),
		anonymous.Send("PUT", "/users/"+r.Get("uuid").(string), `{"password": "`+wrong+`"}`,
			"Authorization: "+r.Header.Get("Authorization")).Want(200),
		anonymous.Send("GET", "/projects?"+wrong[:5]+"="+wrong[6:12], "",
			"Authorization: "+r.Header.Get("Authorization")).
			Want(400),
		anonymous.Send("GET", "/projects", "", "Authorization: Bearer "+wrong).Want(401),
	}
	for _, reply := range replies {
		until(t, "the request is logged", func() bool {
			return strings.Contains(a.Log.String(), reply.Header.Get("X-Request-Id"))
		})

		for _, secret := range []string{
			canary, "wrong canary", "$argon2id$", "password_hash", "platform.", "SQLSTATE",
		} {
			if strings.Contains(string(reply.Body), secret) {
				t.Errorf("a response contains %q:\n%s", secret, reply.Body)
			}
		}
	}

	log := a.Log.String()
	for _, secret := range []string{canary, wrong, "$argon2id$", r.Metadata("token").(string),
		r.Metadata("refreshToken").(string), strings.Split(r.Metadata("token").(string), ".")[2]} {
		if strings.Contains(log, secret) {
			t.Errorf("the log contains %q", secret)
		}
	}
}

// countAttempts sends wrong passwords until the attempt limit applies, and returns the number of
// attempts before it.
func countAttempts(t *testing.T, try func(i int) *apitest.Reply) int {
	t.Helper()

	for i := range 31 {
		r := try(i)
		if r.Status == 401 {
			continue
		}

		seconds, err := strconv.Atoi(r.Want(429).Code("rate_limited").Header.Get("Retry-After"))
		if err != nil || seconds < 1 || seconds > 3600 {
			t.Errorf("Retry-After is %q", r.Header.Get("Retry-After"))
		}

		return i
	}

	t.Fatal("no limit after 31 guesses")
	return 0
}

// TestGuessingAnAccount checks that the failures of an account from unknown networks count
// together, in any spelling of its address.
func TestGuessingAnAccount(t *testing.T) {
	t.Parallel()

	a := apitest.User(t, limited, func(c *config.Config) {
		c.TrustedProxies = trusted
	})
	login := func(a *apitest.API, client, email, password string) *apitest.Reply {
		return a.Anonymous().Send("POST", "/users/login", loginBody(email, password), "X-Forwarded-For: "+client)
	}

	other := a.SignUp("other")

	for range 21 { // successful log-ins do not count
		login(a, "203.0.113.1", a.Email, apitest.Password).Want(200)
	}

	spellings := []string{a.Email, strings.ToUpper(a.Email), " " + a.Email, "ａ" + a.Email[1:]}
	if n := countAttempts(t, func(i int) *apitest.Reply {
		return login(a, "203.0.113."+strconv.Itoa(i+2), spellings[i%len(spellings)], "wrong")
	}); n != 20 {
		t.Errorf("got %d guesses at an account, want 20", n)
	}

	login(a, "203.0.113.99", a.Email, apitest.Password).Want(429) // even with the right password
	login(a, "203.0.113.99", other.Email, apitest.Password).Want(200)
	login(a, "203.0.113.1", other.Email, "wrong").Want(401)

	c := a.Config // a second server on the same database
	c.DataDir = t.TempDir()
	replica := apitest.Start(t, c)
	login(replica, "203.0.113.99", a.Email, apitest.Password).Want(429)
	login(replica, "203.0.113.99", other.Email, apitest.Password).Want(200)

	a.Exec(`update platform.attempts set resets_at = now() - interval '1 second'`)
	login(replica, "203.0.113.99", a.Email, apitest.Password).Want(200)
	login(a, "203.0.113.99", a.Email, "wrong").Want(401)
	login(a, "203.0.113.99", a.Email, apitest.Password).Want(200)
}

// TestOwnerNotLockedOut checks that guesses from anywhere do not block the owner's log-in from
// a known network, nor from a new one after a password reset by mail. Guesses from all unknown
// networks share one limit, and each known network has its own.
func TestOwnerNotLockedOut(t *testing.T) {
	t.Parallel()

	a := apitest.User(t, limited, func(c *config.Config) { c.TrustedProxies = trusted })
	const home, hotel, office = "198.51.100.7", "198.51.100.8", "2001:db8:1:2::3"
	login := func(client, password string) *apitest.Reply {
		return a.Anonymous().Send("POST", "/users/login", loginBody(a.Email, password), "X-Forwarded-For: "+client)
	}

	login(home, apitest.Password).Want(200)
	login(office, apitest.Password).Want(200)

	if n := countAttempts(t, func(int) *apitest.Reply { return login("203.0.113.1", "wrong") }); n != 10 {
		t.Errorf("one network got %d guesses, want 10", n)
	}

	login("203.0.113.2", apitest.Password).Want(200) // one network alone blocks no other
	a.Exec(`update platform.attempts set resets_at = now() - interval '1 second' where resets_at < now() + interval '1 day'`)

	for window := range 3 {
		if n := countAttempts(t, func(i int) *apitest.Reply {
			return login("203.0.113."+strconv.Itoa(100+i), "wrong")
		}); n != 20 {
			t.Errorf("window %d: all networks together got %d guesses, want 20", window, n)
		}

		login(home, apitest.Password).Want(200)
		login("2001:db8:1:2:ffff::1", apitest.Password).Want(200) // in the same /64 as office
		login(hotel, apitest.Password).Want(429)

		if window < 2 {
			a.Exec(`update platform.attempts set resets_at = now() - interval '1 second' where resets_at < now() + interval '1 day'`)
		}
	}

	a.Anonymous().Send("POST", "/users/password/reset", resetBody(createLink(t, a, "password reset"), newPassword),
		"X-Forwarded-For: "+hotel).Want(200)
	login(hotel, newPassword).Want(200)
	login("198.51.100.9", newPassword).Want(429)

	if n := countAttempts(t, func(int) *apitest.Reply { return login(home, "wrong") }); n != 10 {
		t.Errorf("a known network got %d guesses, want 10", n)
	}

	login(office, newPassword).Want(200)
}

// TestGuessingFromAnAddress checks that the failures of a client address count together, and that
// only a trusted proxy can name another address.
func TestGuessingFromAnAddress(t *testing.T) {
	t.Parallel()

	a := apitest.User(t, limited)
	if n := countAttempts(t, func(i int) *apitest.Reply {
		return a.Anonymous().Send("POST", "/users/login", loginBody("user"+strconv.Itoa(i)+"@example.com", "wrong"),
			"X-Forwarded-For: 203.0.113."+strconv.Itoa(i),
			"X-Real-Ip: 203.0.113."+strconv.Itoa(i), "Forwarded: for=203.0.113."+strconv.Itoa(i))
	}); n != 20 {
		t.Errorf("got %d guesses from an address, want 20", n)
	}

	a.Exec(`update platform.attempts set resets_at = now() - interval '1 second'`)
	a.Anonymous().Post("/users/login", loginBody(a.Email, apitest.Password)).Want(200)
}

// TestGuessingConcurrently checks that concurrent guesses do not exceed the limit.
func TestGuessingConcurrently(t *testing.T) {
	t.Parallel()

	a := apitest.User(t, limited)
	got := concurrently(30, func(int) *apitest.Reply {
		return a.Anonymous().Post("/users/login", loginBody(a.Email, "wrong"))
	})
	if got[401] != 10 || got[429] != 20 {
		t.Errorf("got statuses %v, want ten 401 and twenty 429", got)
	}
}

// TestSignUpsAreLimited checks the limits of sign-ups per client address and per account.
func TestSignUpsAreLimited(t *testing.T) {
	t.Parallel()

	a := apitest.User(t, limited, func(c *config.Config) { c.TrustedProxies = trusted }).Anonymous().WithProject("")
	refused := userBody("", map[string]any{"email": "one@example.com"}) // the username is empty
	for i := range 30 {
		a.Send("POST", "/users", refused, "X-Forwarded-For: 203.0.113."+strconv.Itoa(i)).Want(400)
	}

	a.Send("POST", "/users", refused, "X-Forwarded-For: 203.0.113.77").Want(429)

	for i := range 60 {
		a.Send("POST", "/users", userBody("", map[string]any{"email": strconv.Itoa(i) + "@example.com"}),
			"X-Forwarded-For: 198.51.100.7").Want(400)
	}

	if r := a.Send("POST", "/users", userBody("late", nil), "X-Forwarded-For: 198.51.100.7").
		Want(429); r.Header.Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}

	a.Send("POST", "/users", userBody("late", nil), "X-Forwarded-For: 198.51.100.8").Want(201)
}
