package enduser

import (
	"sync"
	"testing"

	"github.com/socle-dev/socle/internal/enduser/rules"
	"github.com/socle-dev/socle/internal/fault"
)

// TestCodes: a code is valid once, for its kinds, for its time and for few guesses. Its link
// outlives the guesses.
func TestCodes(t *testing.T) {
	t.Parallel()

	u := newUsers(t, func(c *rules.Config) { c.ConfirmEmail = true })
	ask := func(kind string) mailArgs {
		t.Helper()

		ok(t, u.SendCode(t.Context(), LinkRequest{Email: "ann@example.com", CreateUser: true}, home))
		return u.mail(kind)
	}
	fails := func(kind, code string) {
		t.Helper()

		_, err := u.verifyCode(kind, "ann@example.com", code)
		want(t, err, fault.Forbidden, "otp_expired")
	}

	code := u.code(ask(rules.MailConfirmation))
	fails("email", wrongCode(code))
	fails("recovery", code)
	done, err := u.verifyCode("email", "ann@example.com", code)
	ok(t, err)
	if done.Session == nil || done.Session.User.EmailConfirmedAt == nil {
		t.Errorf("got %+v, want a session and a confirmed address", done)
	}
	fails("email", code)

	mail := ask(rules.MailMagicLink)
	u.exec(`update auth.one_time_tokens set attempts = $1`, maxCodeAttempts-1)
	fails("magiclink", wrongCode(u.code(mail)))
	fails("magiclink", u.code(mail))
	_, err = u.verifyLink("magiclink", u.link(mail))
	ok(t, err)
	_, err = u.verifyLink("magiclink", u.link(mail))
	want(t, err, fault.Forbidden, "otp_expired")

	code = u.code(ask(rules.MailMagicLink))
	u.exec(`update auth.one_time_tokens set created_at = now() - interval '2 hours'`)
	fails("email", code)

	_, err = u.verifyCode("nothing", "ann@example.com", code)
	want(t, err, fault.Invalid, "validation_failed")
	_, err = u.verifyCode("reauthentication", "ann@example.com", code)
	want(t, err, fault.Invalid, "validation_failed")
}

// TestGuessesAtOnce sends wrong codes at once: each is counted before the next one is compared.
func TestGuessesAtOnce(t *testing.T) {
	t.Parallel()

	u := newUsers(t, nil)
	u.user("ann@example.com")
	ok(t, u.SendCode(t.Context(), LinkRequest{Email: "ann@example.com"}, home))
	u.exec(`update auth.one_time_tokens set attempts = $1`, maxCodeAttempts-10)

	var guesses sync.WaitGroup
	for range 40 {
		guesses.Go(func() { _, _ = u.verifyCode("email", "ann@example.com", "nonsense") })
	}
	guesses.Wait()

	if n := u.count(`select attempts from auth.one_time_tokens`); n != maxCodeAttempts {
		t.Errorf("got %d counted guesses, want %d", n, maxCodeAttempts)
	}
}

// TestTokenReplacesToken: a user has one token of a kind, and a new password ends all.
func TestTokenReplacesToken(t *testing.T) {
	t.Parallel()

	u := newUsers(t, nil)
	who := u.session(u.user("ann@example.com")).identity()
	ask := func() mailArgs {
		t.Helper()

		ok(t, u.Recover(t.Context(), LinkRequest{Email: "Ann@Example.com"}, home))
		return u.mail(rules.MailRecovery)
	}
	fails := func(m mailArgs) {
		t.Helper()

		_, err := u.verifyLink("recovery", u.link(m))
		want(t, err, fault.Forbidden, "otp_expired")
		_, err = u.verifyCode("recovery", "ann@example.com", u.code(m))
		want(t, err, fault.Forbidden, "otp_expired")
	}

	former, current := ask(), ask()
	fails(former)
	_, err := u.UpdateSelf(t.Context(), who, Update{Password: "another " + secret}, home)
	ok(t, err)
	fails(current)

	ok(t, u.Recover(t.Context(), LinkRequest{Email: "nobody@example.com"}, home))
	if _, _, err := u.mailToken(t.Context(), takeJobs[mailArgs](u)[0]); !fault.Is(err, fault.NotFound) {
		t.Errorf("an unknown address: got %v, want no token", describe(err))
	}
}
