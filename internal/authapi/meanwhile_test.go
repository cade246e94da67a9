package authapi_test

import (
	"testing"

	"github.com/socle-dev/socle/internal/api/apitest"
	"github.com/socle-dev/socle/internal/enduser/rules"
)

// meanwhile begins a change of the users, sends a request that must wait for it, and commits it.
func (p *app) meanwhile(change string, request func() *reply) *reply {
	p.t.Helper()

	tx, err := p.project.EndUsers().Begin(p.t.Context())
	if err != nil {
		p.t.Fatal(err)
	}
	if _, err := tx.Exec(p.t.Context(), change); err != nil {
		p.t.Fatal(err)
	}

	replies := make(chan *reply, 1)
	go func() {
		defer close(replies)

		replies <- request()
	}()
	apitest.Until(p.t, "the request waits for the change", func() bool {
		var waits bool
		if err := p.project.EndUsers().QueryRow(p.t.Context(), `
			select exists (select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock')`).
			Scan(&waits); err != nil {
			p.t.Fatal(err)
		}
		return waits
	})

	if err := tx.Commit(p.t.Context()); err != nil {
		p.t.Fatal(err)
	}

	return <-replies
}

// TestCodesForNewUserAtOnce asks for a code while another request creates the user.
func TestCodesForNewUserAtOnce(t *testing.T) {
	t.Parallel()

	p := newApp(t, func(s *rules.Settings) { byPhone(s); s.ConfirmEmail, s.SMS.IntervalSeconds = true, 0 })
	p.meanwhile(`
		insert into auth.users (id, aud, role, email, created_at, updated_at)
		values (gen_random_uuid(), 'authenticated', 'authenticated', 'ann@example.com', now(), now())`,
		func() *reply { return p.post("/otp", `{"email":"ann@example.com"}`) }).want(200)
	p.mail("magic_link", "ann@example.com")

	p.meanwhile(`
		insert into auth.users (id, aud, role, phone, created_at, updated_at)
		values (gen_random_uuid(), 'authenticated', 'authenticated', '491701', now(), now())`,
		func() *reply { return p.post("/otp", `{"phone":"+491701"}`) }).want(200)
	p.sms("+491701")
}

// TestUserDeletedMeanwhile sends requests of a user during the deletion of the user.
func TestUserDeletedMeanwhile(t *testing.T) {
	t.Parallel()

	p := newApp(t, autoconfirm)
	for _, c := range []struct{ method, path, body string }{
		{"POST", "/factors", `{"factor_type":"totp"}`},
		{"PUT", "/user", `{"data":{"a":1}}`},
		{"PUT", "/user", `{"email":"new@example.com"}`},
		{"POST", "/token?grant_type=password", `{"email":"ann@example.com","password":"` + password + `"}`},
	} {
		bearer := p.signUp("ann@example.com").text("access_token")
		p.meanwhile(`delete from auth.users`, func() *reply { return p.send(c.method, c.path, bearer, c.body) }).
			fails(403, "user_not_found")
	}
}

// TestSignUpMeanwhile signs up while another request creates the user.
func TestSignUpMeanwhile(t *testing.T) {
	t.Parallel()

	p := newApp(t, autoconfirm)
	p.meanwhile(`
		insert into auth.users (id, aud, role, email, created_at, updated_at)
		values (gen_random_uuid(), 'authenticated', 'authenticated', 'ann@example.com', now(), now())`,
		func() *reply { return p.post("/signup", `{"email":"ann@example.com","password":"`+password+`"}`) }).
		fails(422, "user_already_exists")
}
