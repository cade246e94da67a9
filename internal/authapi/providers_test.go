package authapi_test

import (
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/socle-dev/socle/internal/enduser/rules"
	"github.com/socle-dev/socle/internal/idp/idptest"
)

// idToken signs in with an ID token of the provider.
func (p *app) idToken(token string) *reply {
	p.t.Helper()
	return p.post("/token?grant_type=id_token", `{"provider":"custom:test","id_token":"`+token+`"}`)
}

func withProvider(url string) func(*rules.Settings) {
	return func(s *rules.Settings) {
		s.MailIntervalSeconds = 0
		s.Providers = map[string]rules.Provider{"custom:test": {Enabled: true, ClientID: idptest.ClientID, URL: url},
			"google": {ClientID: "x"}}
	}
}

func TestSignInWithIDToken(t *testing.T) {
	t.Parallel()

	provider := idptest.New(t)
	p := newApp(t, withProvider(provider.URL))
	provider.Person(map[string]any{"sub": "person", "email": "Ann@example.com", "email_verified": true, "name": "Ann"})

	first := p.idToken(provider.IDToken(nil)).want(200).equal("user.email", "ann@example.com").
		equal("user.app_metadata.provider", "custom:test").equal("user.user_metadata.full_name", "Ann")
	if first.text("refresh_token") == "" || first.text("user.email_confirmed_at") == "" {
		t.Errorf("got %s", first.raw)
	}

	provider.Person(map[string]any{"sub": "person", "email": "moved@example.com", "name": "Anne"})
	p.idToken(provider.IDToken(nil)).want(200).equal("user.id", first.text("user.id")).
		equal("user.email", "ann@example.com").equal("user.user_metadata.name", "Anne")

	for name, claims := range map[string]map[string]any{"audience": {"aud": "x"}, "nonce": {"nonce": "x"},
		"expiry": {"exp": time.Now().Add(-time.Hour).Unix()}} {
		if got := p.idToken(provider.IDToken(claims)); got.status != 400 || got.text("code") != "bad_jwt" {
			t.Errorf("another %s: got %d %s", name, got.status, got.raw)
		}
	}

	p.post("/token?grant_type=id_token", `{"provider":"google","id_token":"x"}`).fails(400, "provider_disabled")
	p.post("/token?grant_type=id_token", `{"provider":"custom:test"}`).fails(400, "validation_failed")
	p.post("/token?grant_type=id_token", `{"id_token":"x"}`).fails(400, "validation_failed")

	external, _ := p.post("/settings", "").body["external"].(map[string]any)
	if external == nil {
		external, _ = p.send("GET", "/settings", "", "").want(200).body["external"].(map[string]any)
	}
	if external["custom:test"] != true || external["google"] != false {
		t.Errorf("settings: got %v", external)
	}
}

// TestFirstSignInsAtOnce: a person signs in for the first time in several tabs at once. A hook
// holds the requests until all of them have found no user.
func TestFirstSignInsAtOnce(t *testing.T) {
	t.Parallel()

	const each = 4
	var waiting, created atomic.Int32
	all := make(chan struct{})
	url := endpoint(t, func(w http.ResponseWriter, r request, _ map[string]any) {
		if r.URL.Path == "/after_user_created" {
			created.Add(1)
		} else if waiting.Add(1) == 2*each {
			close(all)
		}

		select {
		case <-all:
		case <-r.Context().Done():
		}
		_, _ = w.Write([]byte("{}"))
	})

	provider := idptest.New(t)
	p := newApp(t, withProvider(provider.URL))
	p.endpoints(url, "before_user_created", "after_user_created")
	provider.Person(map[string]any{"sub": "1", "email": "ann@example.com", "email_verified": true})
	token := provider.IDToken(nil)

	var wait sync.WaitGroup
	for range each {
		wait.Go(func() {
			if got := p.idToken(token); got.status != 200 {
				t.Errorf("ID token: got %d %s", got.status, got.raw)
			}
		})
		wait.Go(func() {
			if to := newBrowser(p).open("/authorize?provider=custom:test"); fragment(to).Get("access_token") == "" {
				t.Errorf("browser: got %s", to)
			}
		})
	}
	wait.Wait()

	for sql, want := range map[string]int{
		`select count(*)::int from auth.users where email = 'ann@example.com'`:                  1,
		`select count(*)::int from auth.identities where provider = 'custom:test'`:              1,
		`select count(*)::int from auth.sessions s join auth.users u on s.user_id = u.id`:       2 * each,
		`select count(*)::int from auth.audit_log_entries where payload ->> 'action' = 'login'`: 2 * each,
	} {
		if n := p.count(sql); n != want {
			t.Errorf("%s: got %d, want %d", sql, n, want)
		}
	}
	if n := created.Load(); n != 1 {
		t.Errorf("the hook was told %d times of the user, want once", n)
	}
}
