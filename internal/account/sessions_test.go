package account

import (
	"testing"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
)

// TestRefreshSession checks that a refresh token works once, that a repetition within the grace
// period gets the same token, and that reuse of an older one ends the session.
func TestRefreshSession(t *testing.T) {
	t.Parallel()

	i := newInstall(t)
	first := i.login(i.user("ada"))
	refresh := func(token string) (SignedIn, error) { return i.RefreshSession(t.Context(), at("home"), token) }

	second, err := refresh(first.Tokens.RefreshToken)
	if err != nil || second.Tokens.RefreshToken == first.Tokens.RefreshToken {
		t.Fatalf("got %q, %v, want a new refresh token", second.Tokens.RefreshToken, err)
	}

	repeated, err := refresh(first.Tokens.RefreshToken)
	if err != nil || repeated.Tokens.RefreshToken != second.Tokens.RefreshToken {
		t.Errorf("repetition: got %q, %v, want %q", repeated.Tokens.RefreshToken, err, second.Tokens.RefreshToken)
	}

	i.exec(`update platform.sessions set refreshed_at = now() - interval '1 minute'`)
	_, err = refresh(first.Tokens.RefreshToken)
	want(t, err, fault.Unauthenticated, "token_reused")
	_, err = refresh(second.Tokens.RefreshToken)
	want(t, err, fault.Unauthenticated, "invalid_token")
	_, err = refresh("forged")
	want(t, err, fault.Unauthenticated, "invalid_token")
	_, err = i.Authenticate(t.Context(), second.Tokens.Token, Scope{})
	want(t, err, fault.Unauthenticated, "invalid_token")
}

// TestRefreshSharedSession checks that a shared refresh token lasts for the grace period after each
// refresh, so that no order of refreshes ends the session, and that it is used up later.
func TestRefreshSharedSession(t *testing.T) {
	t.Parallel()

	i := newInstall(t)
	const age = `update platform.sessions set refreshed_at = now() - interval '1 minute'`
	refresh := func(token string) string {
		t.Helper()

		in, err := i.RefreshSharedSession(t.Context(), at("home"), token)
		if err != nil {
			t.Fatal(err)
		}

		return in.Tokens.RefreshToken
	}

	first := i.login(i.user("ada")).Tokens.RefreshToken
	if got := refresh(first); got != first {
		t.Error("a refresh just after the log-in has replaced the token")
	}

	i.exec(age)
	second := refresh(first)
	for _, token := range []string{first, second, second, first} {
		if got := refresh(token); got != second || second == first {
			t.Errorf("got %q within the grace period, want %q", got, second)
		}
	}

	i.exec(age)
	if third := refresh(second); third == second {
		t.Error("a refresh has not replaced the token")
	}

	_, err := i.RefreshSharedSession(t.Context(), at("home"), first)
	want(t, err, fault.Unauthenticated, "token_reused")
}

// TestEndedSessions checks that a session ends by log-out, by expiry and with its user's
// suspension.
func TestEndedSessions(t *testing.T) {
	t.Parallel()

	for name, end := range map[string]func(i *install, in SignedIn){
		"log-out": func(i *install, in SignedIn) {
			if _, err := i.Logout(t.Context(), i.caller(in)); err != nil {
				t.Error(err)
			}
		},
		"log-out by the refresh token": func(i *install, in SignedIn) {
			if _, err := i.EndSession(t.Context(), in.Tokens.RefreshToken); err != nil {
				t.Error(err)
			}
		},
		"expiry": func(i *install, _ SignedIn) { i.exec(`update platform.sessions set expires_at = now()`) },
		"suspension": func(i *install, in SignedIn) {
			status := "suspended"
			if _, err := i.UpdateStanding(t.Context(), in.User.UUID, Standing{Status: &status}); err != nil {
				t.Error(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			i := newInstall(t)
			in := i.login(i.user("ada"))
			c := i.caller(in)
			end(i, in)

			_, err := i.Authenticate(t.Context(), in.Tokens.Token, Scope{})
			want(t, err, fault.Unauthenticated, "invalid_token")
			_, err = i.RefreshSession(t.Context(), at("home"), in.Tokens.RefreshToken)
			want(t, err, fault.Unauthenticated, "invalid_token")
			_, err = i.Logout(t.Context(), c)
			want(t, err, fault.Unauthenticated, "invalid_token")
			_, err = i.EndSession(t.Context(), "forged")
			want(t, err, fault.Unauthenticated, "invalid_token")
			_, err = i.EndSession(t.Context(), in.Tokens.RefreshToken)
			want(t, err, fault.Unauthenticated, "invalid_token")
		})
	}
}

// TestListSessions checks that users see and end their own sessions only.
func TestListSessions(t *testing.T) {
	t.Parallel()

	i := newInstall(t)
	ada := i.user("ada")
	mine, other := i.caller(i.login(ada)), i.caller(i.login(ada))
	theirs := i.caller(i.login(i.user("bob")))

	all, total, err := i.ListSessions(t.Context(), mine, pg.Page{Number: 1, Limit: 10, Sort: "createdAt"})
	if err != nil || total != 2 || len(all) != 2 || !all[0].IsCurrent || all[1].IsCurrent {
		t.Errorf("got %d sessions %v, %v, want mine and the other one", total, all, err)
	}

	_, err = i.DeleteSession(t.Context(), mine, theirs.Session)
	want(t, err, fault.NotFound, "not_found")

	ended, err := i.DeleteOtherSessions(t.Context(), mine)
	if err != nil || len(ended) != 1 || ended[0].UUID != other.Session {
		t.Errorf("got ended sessions %v, %v, want %s", ended, err, other.Session)
	}
}
