package api_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/api/apitest"
	"github.com/socle-dev/socle/internal/config"
	"github.com/socle-dev/socle/internal/token"
)

// refreshBody returns the body of a session refresh.
func refreshBody(token any) string { return `{"refresh_token": ` + quoted(token.(string)) + `}` }

func TestGetAccount(t *testing.T) {
	t.Parallel()

	a := apitest.SharedUser(t)
	a.Get("/users/me").Want(200).Content("uuid", a.User).Content("email", a.Email).Content("roleId", 2)
	a.Anonymous().Get("/users/me").Want(401)
}

func TestRefreshSession(t *testing.T) {
	t.Parallel()

	a := apitest.SharedUser(t)
	before := a.Anonymous().Post("/users/login", loginBody(a.Email, apitest.Password)).Want(200)
	user := a.Anonymous()
	spent := before.Metadata("refreshToken")
	for range 3 {
		r := user.Send("POST", "/users/refresh", refreshBody(spent), "User-Agent: of the renewal").Want(200)
		if diff := cmp.Diff(before.Get(""), r.Get("")); diff != "" {
			t.Errorf("content (-login +refresh):\n%s", diff)
		}
		if r.Header.Get("Authorization") != "Bearer "+r.Metadata("token").(string) ||
			r.Header.Get("Cache-Control") != "no-store" {
			t.Errorf("got headers %v of a refresh", r.Header)
		}
		if r.Metadata("refreshToken") == spent ||
			r.Metadata("refreshExpiresAt").(string) <= before.Metadata("refreshExpiresAt").(string) {
			t.Errorf("got the same refresh token, or an earlier expiry: %s", r.Body)
		}

		user.Send("GET", "/users/me", "", "Authorization: "+r.Header.Get("Authorization")).Want(200)
		spent, before = r.Metadata("refreshToken"), r
	}

	user.Send("GET", "/sessions?order=desc", "", "Authorization: "+before.Header.Get("Authorization")).Want(200).
		Content("0.userAgent", "of the renewal").Content("0.address", "127.0.0.1").Content("0.isCurrent", true)
}

func TestRefreshSessionRefuses(t *testing.T) {
	t.Parallel()

	a := apitest.SharedUser(t)
	anonymous := a.Anonymous().WithProject("")
	login := anonymous.Post("/users/login", loginBody(a.Email, apitest.Password)).Want(200)
	refreshToken := login.Metadata("refreshToken").(string)
	forged := token.Refresh(make([]byte, 32), uuid.MustParse(a.User), 1)
	for _, bad := range []string{
		"", "x", login.Metadata("token").(string)[:200], refreshToken + "A", refreshToken[:len(refreshToken)-1], forged,
		"\n" + refreshToken,
	} {
		anonymous.Post("/users/refresh", refreshBody(bad)).Want(401).Code("invalid_token")
	}

	for _, body := range []string{`{}`, `{"refresh_token": 1}`, `{"refresh_token": null}`, `{"refresh_token": ["x"]}`} {
		anonymous.Post("/users/refresh", body).Want(422).Field("refresh_token")
	}

	anonymous.Post("/users/refresh", `{`).Want(400)

	a.Exec(`update platform.users set status = 'suspended' where uuid = $1`, a.User)
	anonymous.Post("/users/refresh", refreshBody(refreshToken)).Want(401).Code("invalid_token")
	a.Exec(`update platform.users set status = 'active' where uuid = $1`, a.User)
	a.Exec(`update platform.sessions set expires_at = now() - interval '1 second' where user_uuid = $1`, a.User)
	anonymous.Post("/users/refresh", refreshBody(refreshToken)).Want(401).Code("invalid_token")
	a.Exec(`update platform.sessions set expires_at = now() + interval '1 day' where user_uuid = $1`, a.User)

	next := anonymous.Post("/users/refresh", refreshBody(refreshToken)).Want(200)
	a.Put("/users/"+a.User, `{"password": "another one entirely"}`).Want(200)
	anonymous.Post("/users/refresh", refreshBody(next.Metadata("refreshToken"))).Want(401).Code("invalid_token")
}

// TestReusedRefreshTokens checks that the reuse of a refresh token ends the session, except shortly
// after the first use.
func TestReusedRefreshTokens(t *testing.T) {
	t.Parallel()

	a := apitest.SharedUser(t)
	anonymous := a.Anonymous().WithProject("")

	const before = `update platform.sessions set refreshed_at = now() - interval '11 seconds' where user_uuid = $1`
	for name, spend := range map[string]func(first, second, third string) (stolen string){
		"long ago":         func(first, _, _ string) string { a.Exec(before, a.User); return first },
		"the one before":   func(_, second, _ string) string { a.Exec(before, a.User); return second },
		"two before, just": func(first, _, _ string) string { return first },
	} {
		login := anonymous.Post("/users/login", loginBody(a.Email, apitest.Password)).Want(200)
		first := login.Metadata("refreshToken").(string)
		second := anonymous.Post("/users/refresh", refreshBody(first)).Want(200).Metadata("refreshToken").(string)
		third := anonymous.Post("/users/refresh", refreshBody(second)).Want(200)
		bearer := "Authorization: " + third.Header.Get("Authorization")
		anonymous.Send("GET", "/users/me", "", bearer).Want(200)

		stolen := spend(first, second, third.Metadata("refreshToken").(string))
		if r := anonymous.Post("/users/refresh", refreshBody(stolen)); r.Status != 401 ||
			r.Metadata("code") != "token_reused" {
			t.Errorf("%s: got %d %s", name, r.Status, r.Body)
		}

		anonymous.Send("GET", "/users/me", "", bearer).Want(401).Code("invalid_token")
		anonymous.Post("/users/refresh", refreshBody(third.Metadata("refreshToken"))).Want(401).Code("invalid_token")
		a.Get("/users/me").Want(200) // the user's other session
	}

	login := anonymous.Post("/users/login", loginBody(a.Email, apitest.Password)).Want(200)
	once := anonymous.Post("/users/refresh", refreshBody(login.Metadata("refreshToken"))).Want(200)
	twice := anonymous.Post("/users/refresh", refreshBody(login.Metadata("refreshToken"))).Want(200)
	if once.Metadata("refreshToken") != twice.Metadata("refreshToken") {
		t.Error("a reused token has two successors")
	}

	anonymous.Post("/users/refresh", refreshBody(twice.Metadata("refreshToken"))).Want(200)
}

// TestRefreshConcurrently checks that concurrent uses of a refresh token result in one successor.
func TestRefreshConcurrently(t *testing.T) {
	t.Parallel()

	a := apitest.SharedUser(t)
	anonymous := a.Anonymous().WithProject("")
	login := anonymous.Post("/users/login", loginBody(a.Email, apitest.Password)).Want(200)

	var mu sync.Mutex
	successors := map[string]bool{}
	got := concurrently(20, func(int) *apitest.Reply {
		r := anonymous.Post("/users/refresh", refreshBody(login.Metadata("refreshToken")))
		if r.Status == 200 {
			mu.Lock()
			defer mu.Unlock()

			successors[r.Metadata("refreshToken").(string)] = true
		}

		return r
	})
	if got[200] != 20 || len(successors) != 1 {
		t.Errorf("got statuses %v and %d successors, want twenty 200 and one successor", got, len(successors))
	}

	// After a concurrent refresh with a stolen token and a logout, in any order, the session is
	// over.
	a.Exec(`update platform.sessions set refreshed_at = now() - interval '1 minute' where user_uuid = $1`, a.User)
	user := a.Anonymous()
	user.Token = login.Metadata("token").(string)

	wantStatuses(t, concurrently(10, func(i int) *apitest.Reply {
		if i%2 == 0 {
			return user.Post("/users/logout", "")
		}
		return anonymous.Post("/users/refresh", refreshBody(login.Metadata("refreshToken")))
	}), 200, 401)

	user.Get("/users/me").Want(401)
}

func TestSessions(t *testing.T) {
	t.Parallel()

	a := apitest.User(t, func(c *config.Config) { c.TrustedProxies = trusted })
	other := *a
	other.Token = a.Anonymous().Send("POST", "/users/login", loginBody(a.Email, apitest.Password),
		"X-Forwarded-For: 203.0.113.9",
		"User-Agent: Mozilla/5.0 <b>\xff\u202e"+strings.Repeat("0", 300)).Want(200).Metadata("token").(string)

	list := a.Get("/sessions?order=desc").Want(200)
	list.Content("0.address", "203.0.113.9").Content("0.isCurrent", false).Content("1.isCurrent", true).
		Content("1.address", "127.0.0.1")

	if agent := list.Get("0.userAgent").(string); len(agent) != 200 || agent[:15] != "Mozilla/5.0 <b>" {
		t.Errorf("got user agent %q", agent)
	}

	for _, member := range []string{"createdAt", "lastUsedAt", "expiresAt"} {
		if _, err := time.Parse("2006-01-02T15:04:05.000000Z", list.Get("0."+member).(string)); err != nil {
			t.Errorf("%s: %v", member, err)
		}
	}

	if list.Metadata("total") != json.Number("2") {
		t.Errorf("got %v sessions, want 2", list.Metadata("total"))
	}

	a.Get("/sessions?sort=lastUsedAt&limit=1").Want(200).Content("0.isCurrent", true)
	a.Get("/sessions?sort=refresh_hash").Want(400).Field("sort")

	outsider := a.SignUp("outsider")
	theirs := outsider.Get("/sessions").Want(200).Get("0.uuid").(string)
	wantEqual(t, a.Delete("/sessions/"+theirs).Want(404), a.Delete("/sessions/"+apitest.MissingUUID))
	a.Delete("/sessions/x").Want(400).Field("sessionUUID")
	outsider.Get("/users/me").Want(200)

	a.Delete("/sessions/"+list.Get("0.uuid").(string)).Want(200).Content("uuid", list.Get("0.uuid"))
	other.Get("/users/me").Want(401).Code("invalid_token")
	a.Delete("/sessions/" + list.Get("0.uuid").(string)).Want(404)

	one, two := newSession(t, a), newSession(t, a)

	if ended := a.Delete("/sessions").Want(200).Get("").([]any); len(ended) != 2 {
		t.Errorf("got %d sessions ended, want 2", len(ended))
	}

	one.Get("/users/me").Want(401)
	two.Get("/users/me").Want(401)
	a.Get("/sessions").Want(200).Content("0.isCurrent", true)
	outsider.Get("/users/me").Want(200)
}

func TestLogout(t *testing.T) {
	t.Parallel()

	a := apitest.SharedUser(t)
	login := a.Anonymous().Post("/users/login", loginBody(a.Email, apitest.Password)).Want(200)
	user := a.Anonymous()
	user.Token = login.Metadata("token").(string)

	user.Post("/users/logout", "").Want(200).Content("isCurrent", true)
	user.Post("/users/logout", "").Want(401).Code("invalid_token")
	user.Get("/users/me").Want(401)
	user.Anonymous().Post("/users/refresh", refreshBody(login.Metadata("refreshToken"))).Want(401).Code("invalid_token")
	a.Get("/users/me").Want(200)

	many := newSession(t, a)
	got := concurrently(10, func(int) *apitest.Reply { return many.Post("/users/logout", "") })
	if got[200] != 1 || got[401] != 9 {
		t.Errorf("got statuses %v, want one 200 and nine 401", got)
	}

	if r := a.Anonymous().Send("POST", "/users/logout", ""); r.Status != http.StatusUnauthorized {
		t.Errorf("got %d", r.Status)
	}
}
