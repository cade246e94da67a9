package enduser

import (
	"testing"

	"github.com/socle-dev/socle/internal/fault"
)

// TestLogout ends the sessions of each scope.
func TestLogout(t *testing.T) {
	t.Parallel()

	u := newUsers(t, nil)
	ann, ben := u.user("ann@example.com"), u.user("ben@example.com")
	for scope, left := range map[string][]bool{ // the session itself, another one
		ScopeLocal: {false, true}, ScopeOthers: {true, false}, ScopeGlobal: {false, false},
	} {
		own, other, foreign := u.session(ann), u.session(ann), u.session(ben)
		ok(t, u.Logout(t.Context(), own.identity(), scope, home))
		for i, s := range []Session{own, other, foreign} {
			_, err := u.Authenticate(t.Context(), s.identity())
			if exists := i == 2 || left[i]; (err == nil) != exists {
				t.Errorf("%s: session %d is left: %v, want %v", scope, i, err == nil, exists)
			}
		}
		want(t, u.Logout(t.Context(), Identity{User: ann.ID, Session: foreign.id}, scope, home), fault.Forbidden,
			"session_not_found")
	}
}

// TestSessionsAreBounded opens more sessions than a user may have: the oldest ones end.
func TestSessionsAreBounded(t *testing.T) {
	t.Parallel()

	u := newUsers(t, nil)
	ann := u.user("ann@example.com")
	first := u.session(ann)
	u.exec(`insert into auth.sessions (id, user_id, created_at)
		select gen_random_uuid(), $1, now() from generate_series(2, $2)`, ann.ID, maxSessions)

	u.session(ann)
	if n := u.count(`select count(*)::int from auth.sessions`); n != maxSessions {
		t.Errorf("got %d sessions, want %d", n, maxSessions)
	}
	_, err := u.Authenticate(t.Context(), first.identity())
	want(t, err, fault.Forbidden, "session_not_found")
}
