package server_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
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

// signUpWriter signs up users who confirm their address later.
func signUpWriter(t *testing.T, key string, i int) *writer {
	t.Helper()

	email := func(n int) string { return fmt.Sprintf("user-%d-%d@example.com", i, n) }
	body := func(n int) string { return fmt.Sprintf(`{"email": %q, "password": %q}`, email(n), userPassword) }

	return &writer{next: 1,
		write: func(c client, n int) bool {
			status, user := c.auth(t, "/signup", key, body(n))
			return status == 200 && user["id"] != nil
		},
		check: func(c client, w *writer) {
			for _, n := range w.acknowledged {
				status, failure := c.auth(t, "/token?grant_type=password", key, body(n))
				if status != 400 || failure["error_code"] != "email_not_confirmed" {
					t.Errorf("%s was acknowledged: log-in got %d %v", email(n), status, failure)
				}
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

// TestKilledEndUsers kills the server, PostgreSQL or both during sign-ups and refreshes of end
// users. All acknowledged users and sessions must be present, each acknowledged sign-up has its
// mail, and none is there in part.
func TestKilledEndUsers(t *testing.T) {
	t.Parallel()

	p, c := startInstalled(t)
	c.want(t, 200, "PUT", "/projects/"+c.project+"/auth-settings", `{"anonymous_sign_in": true, "mails_per_hour": 100000,
		"sign_ins_per_five_minutes": 100000, "anonymous_per_hour": 100000, "mail_interval_seconds": 0}`)

	a := c.send(t, "POST", "/projects/"+c.project+"/keys", `{"name": "web", "kind": "publishable"}`)
	var created struct{ Metadata struct{ Key string } }
	if err := json.Unmarshal(a.body, &created); err != nil || created.Metadata.Key == "" {
		t.Fatalf("got %d %s, want a key", a.status, a.body)
	}

	var all, signUps []*writer
	for i := range 4 {
		signUps = append(signUps, signUpWriter(t, created.Metadata.Key, i))
		all = append(all, signUps[i], refreshWriter(t, c, created.Metadata.Key, i))
	}

	first := rand.IntN(3)
	for round := range crashes(t) {
		loadAndCrash(t, c.at(p), all, func() { p = p.crash(first + round) })
		c = c.at(p)
		c.waitUntilServing(t)

		b := p.inspect(t)
		db := b.registry.Open(uuid.MustParse(c.project))

		// A spent token is accepted for ten seconds, and a restart takes longer on a slow machine.
		if _, err := pg.Exec(t.Context(), db.EndUserRows(),
			`update auth.sessions set refreshed_at = now()`); err != nil {
			t.Fatal(err)
		}

		for _, w := range all {
			w.check(c, w)
		}

		partial, err := pg.Value[int](t.Context(), db.EndUserRows(), `
			select count(*)::int from auth.users u where u.email is not null
				and (not exists (select from auth.identities i where i.user_id = u.id)
					or not exists (select from auth.one_time_tokens t where t.user_id = u.id)
					or not exists (select from auth.audit_log_entries e where e.payload ->> 'actor_id' = u.id::text))
				or u.is_anonymous and not exists (select from auth.sessions s join auth.mfa_amr_claims m on m.session_id = s.id
					where s.user_id = u.id)`)
		if err != nil || partial != 0 {
			t.Errorf("%d users are there in part (%v)", partial, err)
		}

		var mailed string
		eventually(t, "the mails of all acknowledged sign-ups", func() bool {
			texts, err := pg.Values[string](t.Context(), db.EndUserRows(), `select recipient from auth.mails`)
			if err != nil {
				t.Fatal(err)
			}

			mailed = " " + strings.Join(texts, " ") + " "
			for i, w := range signUps {
				for _, n := range w.acknowledged {
					if !strings.Contains(mailed, fmt.Sprintf(" user-%d-%d@example.com ", i, n)) {
						return false
					}
				}
			}

			return true
		})
		b.close()
	}
}
