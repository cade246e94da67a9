package enduser

import (
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/enduser/rules"
	"github.com/socle-dev/socle/internal/fault"
)

// TestCheckRefresh: which refresh tokens of a session are valid, and when.
func TestCheckRefresh(t *testing.T) {
	t.Parallel()

	limits := rules.Settings{SessionSeconds: 7200, SessionInactivitySeconds: 3600}
	d := &Directory{Config: rules.Config{Settings: limits}}
	ago := func(seconds int) *time.Time { at := time.Now().Add(-time.Duration(seconds) * time.Second); return &at }
	later := time.Now().Add(time.Hour)
	for name, tt := range map[string]struct {
		created    int // seconds ago
		refreshed  *time.Time
		notAfter   *time.Time
		user       User
		client     bool // session of an OAuth client
		generation int64
		want       string
	}{
		"current":                {created: 60, generation: 7},
		"before it":              {created: 60, refreshed: ago(50), generation: 6},
		"older, at once":         {created: 60, refreshed: ago(5), generation: 3},
		"older":                  {created: 60, refreshed: ago(50), generation: 5, want: "refresh_token_already_used"},
		"older, never refreshed": {created: 60, generation: 5, want: "refresh_token_already_used"},
		"future":                 {created: 60, refreshed: ago(5), generation: 8, want: "refresh_token_already_used"},
		"client":                 {created: 60, client: true, generation: 7},
		"client, before it": {created: 60, refreshed: ago(5), client: true, generation: 6,
			want: "refresh_token_already_used"},
		"old":         {created: 7300, refreshed: ago(60), generation: 7, want: "session_expired"},
		"over":        {created: 60, notAfter: ago(1), generation: 7, want: "session_expired"},
		"idle":        {created: 3700, generation: 7, want: "session_expired"},
		"used lately": {created: 3700, refreshed: ago(60), generation: 7},
		"banned":      {created: 60, user: User{BannedUntil: &later}, generation: 7, want: "user_banned"},
		"ban is over": {created: 60, user: User{BannedUntil: ago(1)}, generation: 7},
		"deleted":     {created: 60, user: User{DeletedAt: ago(1)}, generation: 7, want: "refresh_token_not_found"},
	} {
		s := sessionRow{CreatedAt: *ago(tt.created), RefreshedAt: tt.refreshed, NotAfter: tt.notAfter,
			RefreshTokenCounter: 7, OAuthClientID: uuid.NullUUID{Valid: tt.client}}
		got := ""
		if err := d.checkRefresh(s, tt.user, tt.generation); err != nil {
			got = codeOf(err)
		}
		if got != tt.want {
			t.Errorf("%s: got %q, want %q", name, got, tt.want)
		}
	}

	idle := d.checkRefresh(sessionRow{CreatedAt: *ago(3700)}, User{}, 0)
	if got, want := fault.Of(idle).Detail, "Invalid Refresh Token: Session Expired (Inactivity)"; got != want {
		t.Errorf("got the text %q, want %q", got, want)
	}
}

// TestRefresh follows the refresh tokens of a session.
func TestRefresh(t *testing.T) {
	t.Parallel()

	u := newUsers(t, nil)
	refresh := func(token string) (Session, error) { return u.Refresh(t.Context(), token, home) }
	first := u.session(u.user("ann@example.com"))
	second, err := refresh(first.RefreshToken)
	ok(t, err)

	// A client that has lost the answer gets the same token.
	again, err := refresh(first.RefreshToken)
	ok(t, err)
	if again.RefreshToken != second.RefreshToken || second.RefreshToken == first.RefreshToken {
		t.Error("the token before the valid one does not return the valid one")
	}

	third, err := refresh(second.RefreshToken)
	ok(t, err)
	u.exec(`update auth.sessions set created_at = created_at - interval '1 day', refreshed_at = refreshed_at - interval '1 day'`)
	_, err = refresh(first.RefreshToken)
	want(t, err, fault.Invalid, "refresh_token_already_used")
	_, err = refresh(third.RefreshToken) // the session has ended
	want(t, err, fault.Invalid, "refresh_token_not_found")
	_, err = u.Authenticate(t.Context(), third.identity())
	want(t, err, fault.Forbidden, "session_not_found")
	_, err = refresh("nonsense")
	want(t, err, fault.Invalid, "refresh_token_not_found")
}

// TestRefreshAtOnce refreshes a session in many tabs at once: all get the same token.
func TestRefreshAtOnce(t *testing.T) {
	t.Parallel()

	u := newUsers(t, nil)
	token := u.session(u.user("ann@example.com")).RefreshToken
	for range 3 {
		tokens := make([]string, 20)
		var tabs sync.WaitGroup
		for i := range tokens {
			tabs.Go(func() {
				s, err := u.Refresh(t.Context(), token, home)
				if tokens[i] = s.RefreshToken; err != nil || tokens[i] == token {
					t.Errorf("tab %d: got %v and the same token: %v", i, err, tokens[i] == token)
				}
			})
		}
		tabs.Wait()

		for i := range tokens {
			if tokens[i] != tokens[0] {
				t.Errorf("tabs 0 and %d have different tokens", i)
			}
		}
		token = tokens[0]
	}

	if n := u.count(`select count(*)::int from auth.sessions`); n != 1 {
		t.Errorf("got %d sessions, want 1", n)
	}
}
