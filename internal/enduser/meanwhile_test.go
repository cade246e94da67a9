package enduser

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/socle-dev/socle/internal/enduser/rules"
	"github.com/socle-dev/socle/internal/fault"
)

// meanwhile begins a change of the users, runs a request that must wait for it, and commits it.
func (u *users) meanwhile(change string, request func() error) error {
	u.t.Helper()

	tx, err := u.db.EndUsers().Begin(u.t.Context())
	ok(u.t, err)
	defer func() { _ = tx.Rollback(context.WithoutCancel(u.t.Context())) }()

	_, err = tx.Exec(u.t.Context(), change)
	ok(u.t, err)

	failure := make(chan error, 1)
	go func() { failure <- request() }()
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()

	for u.count(`
		select count(*)::int from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`) == 0 {
		select {
		case <-ticker.C:
		case err := <-failure:
			u.t.Fatalf("the request did not wait for the change: %v", err)
		}
	}
	ok(u.t, tx.Commit(u.t.Context()))

	return <-failure
}

// TestUserCreatedMeanwhile sends requests while another one creates the user.
func TestUserCreatedMeanwhile(t *testing.T) {
	t.Parallel()

	u := newUsers(t, withPhones)
	create := func(column, value string) string {
		return `insert into auth.users (id, aud, role, created_at, updated_at, ` + column + `)
			values (gen_random_uuid(), 'authenticated', 'authenticated', now(), now(), '` + value + `')`
	}

	ok(t, u.meanwhile(create("email", "ann@example.com"), func() error {
		return u.SendCode(t.Context(), LinkRequest{Email: "ann@example.com", CreateUser: true}, home)
	}))
	u.mail(rules.MailMagicLink)
	ok(t, u.meanwhile(create("phone", "491701"), func() error {
		return u.SendPhoneCode(t.Context(), PhoneCodeRequest{Phone: "491701", CreateUser: true}, home)
	}))
	u.sms("491701")
	want(t, u.meanwhile(create("email", "ben@example.com"), func() error {
		_, err := u.SignUp(t.Context(), SignUp{Email: "ben@example.com", Password: secret}, home)
		return err
	}), fault.Unprocessable, "user_already_exists")
}

// TestUserDeletedMeanwhile sends requests of a user during the deletion of the user.
func TestUserDeletedMeanwhile(t *testing.T) {
	t.Parallel()

	u := newUsers(t, nil)
	for name, request := range map[string]func(who Identity) error{
		"factor": func(who Identity) error { _, err := u.EnrollFactor(t.Context(), who, "", ""); return err },
		"metadata": func(who Identity) error {
			_, err := u.UpdateSelf(t.Context(), who, Update{Data: json.RawMessage(`{"a":1}`)}, home)
			return err
		},
		"address": func(who Identity) error {
			_, err := u.UpdateSelf(t.Context(), who, Update{Email: "new@example.com"}, home)
			return err
		},
		"log-in": func(Identity) error { _, err := u.Login(t.Context(), "ann@example.com", secret, home); return err },
	} {
		who := u.session(u.user("ann@example.com")).identity()
		err := u.meanwhile(`delete from auth.users`, func() error { return request(who) })
		if !fault.Is(err, fault.Forbidden) || codeOf(err) != "user_not_found" {
			t.Errorf("%s: got %v", name, describe(err))
		}
	}
}
