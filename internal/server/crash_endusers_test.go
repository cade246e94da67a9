package server_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/pg"
)

const userPassword = "correct horse battery"

// auth sends a request to the interface of end users.
func (c client) auth(t *testing.T, path, key, body string) (status int, content map[string]any) {
	t.Helper()

	status, _, text := c.do(t, "POST", "/projects/"+c.project+"/auth/v1"+path, []byte(body),
		"Authorization: Bearer "+key)
	if status != 0 && json.Unmarshal(text, &content) != nil {
		t.Errorf("%s: got %d %s, want JSON", path, status, text)
	}

	return status, content
}

// signUpEmail returns the address of the user that change n of a writer signs up.
func signUpEmail(writer, n int) string { return fmt.Sprintf("user-%d-%d@example.com", writer, n) }

// signUpWriter signs up users who confirm their address later.
func signUpWriter(t *testing.T, key string, i int) *writer {
	t.Helper()

	body := func(n int) string {
		return fmt.Sprintf(`{"email": %q, "password": %q}`, signUpEmail(i, n), userPassword)
	}

	return &writer{next: 1,
		write: func(c client, n int) bool {
			status, user := c.auth(t, "/signup", key, body(n))
			return status == 200 && user["id"] != nil
		},
		check: func(c client, w *writer) {
			n := w.lastAcked()
			if n == 0 {
				return
			}

			status, failure := c.auth(t, "/token?grant_type=password", key, body(n))
			if status != 400 || failure["error_code"] != "email_not_confirmed" {
				t.Errorf("%s was acknowledged: log-in got %d %v", signUpEmail(i, n), status, failure)
			}
		}}
}

// refreshWriter refreshes one session.
func refreshWriter(t *testing.T, c client, key string, i int) *writer {
	t.Helper()

	status, session := c.auth(t, "/signup", key, `{}`)
	token, _ := session["refresh_token"].(string)
	if status != 200 || token == "" {
		t.Fatalf("got %d %v, want a session", status, session)
	}

	refresh := func(c client) bool {
		status, renewed := c.auth(t, "/token?grant_type=refresh_token", key,
			fmt.Sprintf(`{"refresh_token": %q}`, token))
		if status == 200 {
			token, _ = renewed["refresh_token"].(string)
		}

		return status == 200
	}

	return &writer{next: 1,
		write: func(c client, _ int) bool { return refresh(c) },
		check: func(c client, w *writer) {
			if !refresh(c) {
				t.Errorf("session %d was lost after %d acknowledged refreshes", i, len(w.acknowledged))
			}
		}}
}

// userWriters sign up end users and refresh their sessions.
type userWriters struct{ signUps, refreshes []*writer }

func newUserWriters(t *testing.T, c client) (u userWriters) {
	t.Helper()

	c.want(t, 200, "PUT", "/projects/"+c.project+"/auth-settings", `{"anonymous_sign_in": true, "mails_per_hour": 100000,
		"sign_ins_per_five_minutes": 100000, "anonymous_per_hour": 100000, "mail_interval_seconds": 0}`)

	_, key := c.made(t, "/projects/"+c.project+"/keys", `{"name": "web", "kind": "publishable"}`)
	for i := range writersPerKind {
		u.signUps = append(u.signUps, signUpWriter(t, key["key"], i))
		u.refreshes = append(u.refreshes, refreshWriter(t, c, key["key"], i))
	}

	return u
}

// keepSpentTokens lets the sessions accept their spent tokens for longer: ten seconds are less than
// a restart takes on a slow machine.
func (u userWriters) keepSpentTokens(b *inspector, project string) {
	b.t.Helper()

	if _, err := pg.Exec(b.t.Context(), b.registry.Open(uuid.MustParse(project)).EndUserRows(),
		`update auth.sessions set refreshed_at = now()`); err != nil {
		b.t.Fatal(err)
	}
}

// check checks that each acknowledged sign-up has its user and its mail, and that no user is there
// in part.
func (u userWriters) check(b *inspector, project string) {
	b.t.Helper()

	ctx, db := b.t.Context(), b.registry.Open(uuid.MustParse(project)).EndUserRows()
	partial, err := pg.Value[int](ctx, db, `
		select count(*)::int from auth.users u where u.email is not null
			and (not exists (select from auth.identities i where i.user_id = u.id)
				or not exists (select from auth.sign_ups t where t.user_id = u.id)
				or not exists (select from auth.audit_log_entries e where e.payload ->> 'actor_id' = u.id::text))
			or u.is_anonymous and not exists (select from auth.sessions s join auth.mfa_amr_claims m on m.session_id = s.id
				where s.user_id = u.id)`)
	if err != nil || partial != 0 {
		b.t.Errorf("%d users are there in part (%v)", partial, err)
	}

	users, err := pg.Values[string](ctx, db, `select email from auth.users where email is not null`)
	if err != nil {
		b.t.Fatal(err)
	}

	var acknowledged []string
	for i, w := range u.signUps {
		for _, n := range w.acknowledged {
			acknowledged = append(acknowledged, signUpEmail(i, n))
		}
	}

	if lost := missing(acknowledged, users); len(lost) > 0 {
		b.t.Errorf("the sign-ups of %v were acknowledged and are lost", lost)
	}

	eventually(b.t, "the mails of all acknowledged sign-ups", func() bool {
		mailed, err := pg.Values[string](ctx, db, `select recipient from auth.mails`)
		if err != nil {
			b.t.Fatal(err)
		}

		return len(missing(acknowledged, mailed)) == 0
	})
}

// missing returns the texts of all that are not in some.
func missing(all, some []string) []string {
	return slices.DeleteFunc(slices.Clone(all), func(text string) bool { return slices.Contains(some, text) })
}
