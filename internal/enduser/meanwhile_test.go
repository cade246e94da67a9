package enduser

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/enduser/rules"
	"github.com/socle-dev/socle/internal/fault"
)

// meanwhile begins a change of the users, runs a request that must wait for it, and commits it.
func (u *users) meanwhile(change string, request func() error) error {
	u.t.Helper()

	return u.around(request, func(tx pgx.Tx) error {
		_, err := tx.Exec(u.t.Context(), change)
		return err
	})
}

// around runs the first step of a transaction, then a request that must wait for it, and then the
// other steps.
func (u *users) around(request func() error, steps ...func(pgx.Tx) error) error {
	u.t.Helper()

	tx, err := u.db.EndUsers().Begin(u.t.Context())
	ok(u.t, err)
	defer func() { _ = tx.Rollback(context.WithoutCancel(u.t.Context())) }()

	ok(u.t, steps[0](tx))

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

	for _, step := range steps[1:] {
		ok(u.t, step(tx))
	}
	ok(u.t, tx.Commit(u.t.Context()))

	return <-failure
}

// TestConfirmationsAtOnce: two links of a user are opened at once. Neither waits for the other with
// a lock that the other needs.
func TestConfirmationsAtOnce(t *testing.T) {
	t.Parallel()

	u := newUsers(t, func(c *rules.Config) { c.ConfirmEmail = true })
	first, second := u.signUp("ann@example.com", secret, ""), u.signUp("ann@example.com", strangers, "")

	var found oneTime
	err := u.around(func() error {
		_, err := u.verifyLink("signup", u.link(second))
		return err
	}, func(tx pgx.Tx) (err error) {
		found, err = u.findLink(t.Context(), tx, []string{confirmationToken}, u.link(first))
		return err
	}, func(tx pgx.Tx) error {
		_, err := u.finishVerification(t.Context(), tx, found, false, home)
		return err
	})
	want(t, err, fault.Forbidden, "otp_expired")
}

// TestAddressChangeAtOnce: both links of a change are opened at once, and it is complete.
func TestAddressChangeAtOnce(t *testing.T) {
	t.Parallel()

	u := newUsers(t, func(c *rules.Config) { c.ConfirmEmail = true })
	who := u.session(u.user("ann@example.com")).identity()
	_, err := u.UpdateSelf(t.Context(), who, Update{Email: "anna@example.com"}, home)
	ok(t, err)

	var links []string
	for _, m := range takeJobs[mailArgs](u) {
		links = append(links, u.link(m))
	}

	var found oneTime
	ok(t, u.around(func() error {
		_, err := u.verifyLink("email_change", links[1])
		return err
	}, func(tx pgx.Tx) (err error) {
		found, err = u.findLink(t.Context(), tx, tokenKinds["email_change"], links[0])
		return err
	}, func(tx pgx.Tx) error {
		_, err := u.finishVerification(t.Context(), tx, found, false, home)
		return err
	}))
	if n := u.count(`select count(*)::int from auth.users where email = 'anna@example.com'`); n != 1 {
		t.Error("the address has not changed")
	}
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
