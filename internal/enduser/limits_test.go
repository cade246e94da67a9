package enduser

import (
	"fmt"
	"strings"
	"testing"

	"github.com/socle-dev/socle/internal/enduser/rules"
	"github.com/socle-dev/socle/internal/fault"
)

// TestLimits exceeds each limit of requests. Known and unknown addresses reach each at the same
// request.
func TestLimits(t *testing.T) {
	t.Parallel()

	u := newLimitedUsers(t, func(c *rules.Config) {
		c.ConfirmEmail, c.MailsPerHour, c.SignInsPerFiveMinutes, c.ChecksPerFiveMinutes = true, 1000, 30, 4
		c.AnonymousSignIn, c.AnonymousPerHour = true, 2
		c.SMS.SignIn = true
	})
	ctx, known, unknown := t.Context(), u.user("ann@example.com").Email, "nobody@example.com"
	network := 0
	elsewhere := func() Client { network++; return from(fmt.Sprintf("198.51.100.%d", network)) }

	signUp := func(email string, c Client) error {
		_, err := u.SignUp(ctx, SignUp{Email: email, Password: "short"}, c)
		return err
	}
	for name, request := range map[string]func(email string, c Client) error{
		"log-in":  func(email string, c Client) error { _, err := u.Login(ctx, email, "", c); return err },
		"sign-up": signUp,
		"code":    func(email string, c Client) error { return u.SendCode(ctx, LinkRequest{Email: email}, c) },
		"phone":   func(_ string, c Client) error { return u.SendPhoneCode(ctx, PhoneCodeRequest{Phone: "+491701"}, c) },
		"recovery": func(email string, c Client) error {
			return u.Recover(ctx, LinkRequest{Email: email}, c)
		},
	} {
		c := elsewhere()
		for range 30 {
			ok(t, u.CountRequest(ctx, u.SignInLimit(), c))
		}
		for _, email := range []string{known, unknown} {
			if err := request(email, c); !fault.Is(err, fault.TooMany) || codeOf(err) != requestLimitCode ||
				fault.Of(err).RetryAfter == 0 {
				t.Errorf("%s of %s: got %v, want the limit of requests", name, email, describe(err))
			}
		}
	}

	c := elsewhere()
	for i := range 5 {
		_, err := u.Verify(ctx, Verification{Type: "email", Hash: "x"}, false, c)
		if over := fault.Is(err, fault.TooMany); over != (i >= 4) {
			t.Errorf("check %d: got %v", i, describe(err))
		}
	}
	for i := range 3 {
		_, err := u.SignInAnonymously(ctx, nil, c)
		if over := fault.Is(err, fault.TooMany); over != (i >= 2) {
			t.Errorf("anonymous sign-in %d: got %v", i, describe(err))
		}
	}
}

// TestGuesses sends wrong passwords: known and unknown addresses are closed to a network alike, and
// the owner's network stays open.
func TestGuesses(t *testing.T) {
	t.Parallel()

	u := newLimitedUsers(t, func(c *rules.Config) { c.SignInsPerFiveMinutes = 1000 })
	u.user("ann@example.com")
	login := func(email, password string, c Client) error {
		_, err := u.Login(t.Context(), email, password, c)
		return err
	}
	owner, stranger := from("198.51.100.1"), from("192.0.2.1")

	ok(t, login("ann@example.com", secret, owner))
	u.exec(`update auth.users set encrypted_password = $1`, secretHash()) // quick to verify
	for _, email := range []string{"ann@example.com", "nobody@example.com"} {
		for range 10 {
			want(t, login(email, "wrong", stranger), fault.Invalid, "invalid_credentials")
		}
		want(t, login(email, "wrong", stranger), fault.TooMany, requestLimitCode)
	}
	want(t, login("ann@example.com", secret, stranger), fault.TooMany, requestLimitCode)
	ok(t, login("ann@example.com", secret, owner))
}

// TestMailLimits asks for mails: one network gets at most half of the project's, and one address
// one in the interval, known or not.
func TestMailLimits(t *testing.T) {
	t.Parallel()

	u := newLimitedUsers(t, func(c *rules.Config) {
		c.ConfirmEmail, c.MailsPerHour, c.MailIntervalSeconds, c.SignInsPerFiveMinutes = true, 6, 60, 1000
	})
	stranger, owner := from("192.0.2.1"), from("198.51.100.1")
	known := u.user("known@example.com").Email
	for _, email := range []string{known, "nobody@example.com"} {
		ok(t, u.countMail(t.Context(), email, owner))
		err := u.countMail(t.Context(), email, from("198.51.100.2"))
		want(t, err, fault.TooMany, mailLimitCode)
		if text := fault.Of(err).Detail; !strings.HasPrefix(text, "For security purposes, you can only request this after ") {
			t.Errorf("%s: got the text %q", email, text)
		}
	}

	admitted := 0
	for i := range 12 {
		if u.countMail(t.Context(), fmt.Sprintf("nobody%d@example.com", i), stranger) == nil {
			admitted++
		}
	}
	if admitted != 3 {
		t.Errorf("a stranger was admitted %d times, want 3: half of the project's mails", admitted)
	}
	ok(t, u.countMail(t.Context(), "ben@example.com", owner))

	// The project's own count is that of mails that are sent.
	for range 6 {
		ok(t, u.countSent(t.Context(), rules.MailRecovery, "x@example.com", false))
	}
	want(t, u.countSent(t.Context(), rules.MailRecovery, "x@example.com", false), fault.TooMany, mailLimitCode)
	ok(t, u.countSent(t.Context(), rules.MailInvite, "x@example.com", false))
	want(t, u.countMail(t.Context(), "other@example.com", from("198.51.100.3")), fault.TooMany, mailLimitCode)
}

// TestMailRequests: each request for a mail counts, for known and unknown addresses alike.
func TestMailRequests(t *testing.T) {
	t.Parallel()

	u := newLimitedUsers(t, func(c *rules.Config) {
		c.ConfirmEmail, c.MailIntervalSeconds, c.SignInsPerFiveMinutes = true, 60, 1000
	})
	ctx := t.Context()
	for name, request := range map[string]func(email string) error{
		"recovery": func(email string) error { return u.Recover(ctx, LinkRequest{Email: email}, home) },
		"code":     func(email string) error { return u.SendCode(ctx, LinkRequest{Email: email, CreateUser: true}, home) },
		"resend":   func(email string) error { return u.Resend(ctx, "signup", LinkRequest{Email: email}, home) },
		"sign-up": func(email string) error {
			_, err := u.SignUp(ctx, SignUp{Email: email, Password: secret}, home)
			return err
		},
	} {
		for _, email := range []string{u.user(name + "@example.com").Email, "nobody-" + name + "@example.com"} {
			ok(t, request(email))
			if err := request(email); !fault.Is(err, fault.TooMany) || codeOf(err) != mailLimitCode {
				t.Errorf("%s of %s: got %v, want the limit of mails", name, email, describe(err))
			}
		}
	}
}

// TestFactorGuesses sends wrong codes of a factor.
func TestFactorGuesses(t *testing.T) {
	t.Parallel()

	u := newLimitedUsers(t, nil)
	who := u.session(u.user("ann@example.com")).identity()
	f, err := u.EnrollFactor(t.Context(), who, "mine", "")
	ok(t, err)
	for range rules.FactorLimit.Most {
		_, err := u.verifyTOTP(who, f, "x")
		want(t, err, fault.Unprocessable, "mfa_verification_failed")
	}
	_, err = u.verifyTOTP(who, f, u.totp(f))
	want(t, err, fault.TooMany, requestLimitCode)
}

// TestOwnerMailLimit: the server of the install sends few mails to one address for all projects of
// an account together.
func TestOwnerMailLimit(t *testing.T) {
	t.Parallel()

	u := newLimitedUsers(t, nil)
	for range rules.OwnerMailLimit.Most {
		ok(t, u.countSent(t.Context(), rules.MailInvite, "ann@example.com", true))
	}
	want(t, u.countSent(t.Context(), rules.MailInvite, "ann@example.com", true), fault.TooMany, mailLimitCode)
	ok(t, u.countSent(t.Context(), rules.MailInvite, "ann@example.com", false)) // by a server of the project
	ok(t, u.countSent(t.Context(), rules.MailInvite, "ben@example.com", true))
}

// TestCodeGuesses sends wrong codes: they are charged to the network of the guesser, and those of
// many networks have a bound, which a new code does not reset.
func TestCodeGuesses(t *testing.T) {
	t.Parallel()

	u := newLimitedUsers(t, func(c *rules.Config) { c.ConfirmEmail, c.ChecksPerFiveMinutes = true, 1000 })
	owner := from("198.51.100.1")
	ask := func(kind string) string {
		t.Helper()

		ok(t, u.SendCode(t.Context(), LinkRequest{Email: "ben@example.com", CreateUser: true}, owner))
		return u.code(u.mail(kind))
	}
	guess := func(c Client, code string) error {
		_, err := u.Verify(t.Context(), Verification{Type: "email", Email: "ben@example.com", Code: code}, false, c)
		return err
	}

	code, stranger := ask(rules.MailConfirmation), from("192.0.2.1")
	for range 10 {
		want(t, guess(stranger, "nonsense"), fault.Forbidden, "otp_expired")
	}
	want(t, guess(stranger, code), fault.TooMany, requestLimitCode)
	ok(t, guess(owner, code))

	code = ask(rules.MailMagicLink)
	admitted := 0
	for i := range 60 {
		if fault.Is(guess(from(fmt.Sprintf("203.0.113.%d", i+1)), "nonsense"), fault.Forbidden) {
			admitted++
		}
	}
	if admitted != 40 {
		t.Errorf("%d guesses of 60 networks were admitted, want 40: 10 were sent before", admitted)
	}
	ok(t, guess(owner, code)) // from a network that is known to the address
}

// TestChangesAreCounted: a user learns of few addresses whether they are taken.
func TestChangesAreCounted(t *testing.T) {
	t.Parallel()

	u := newLimitedUsers(t, func(c *rules.Config) { c.SignInsPerFiveMinutes = 1000 })
	u.user("ben@example.com")
	who := u.session(u.user("ann@example.com")).identity()
	for i := range 12 {
		_, err := u.UpdateSelf(t.Context(), who, Update{Email: "ben@example.com"}, home)
		if i < rules.ChangeLimit.Most {
			want(t, err, fault.Unprocessable, "email_exists")
		} else {
			want(t, err, fault.TooMany, requestLimitCode)
		}
	}
}

// TestSMSLimits requests many messages, as SMS pumping fraud does.
func TestSMSLimits(t *testing.T) {
	t.Parallel()

	u := newLimitedUsers(t, func(c *rules.Config) {
		c.SMS = rules.SMS{SignIn: true, CallingCodes: []string{"49"}, PerNetworkAndHour: 2, PerHour: 3,
			TestNumbers: map[string]string{"491700000000": "246810"}}
	})
	ask := func(phone, network string) error {
		return u.SendPhoneCode(t.Context(), PhoneCodeRequest{Phone: phone, CreateUser: true}, from(network))
	}

	want(t, ask("+88312345", "192.0.2.1"), fault.Unprocessable, "sms_send_failed")
	ok(t, ask("+491701", "192.0.2.1"))
	again := ask("+491701", "192.0.2.2")
	want(t, again, fault.TooMany, smsLimitCode)
	if text := fault.Of(again).Detail; !strings.HasPrefix(text, "For security purposes, you can only request this after ") {
		t.Errorf("got the text %q", text)
	}
	ok(t, ask("+491702", "192.0.2.1"))
	want(t, ask("+491703", "192.0.2.1"), fault.TooMany, smsLimitCode)
	ok(t, ask("+491704", "192.0.2.2"))
	want(t, ask("+491705", "192.0.2.3"), fault.TooMany, smsLimitCode)
	if jobs := takeJobs[smsArgs](u); len(jobs) != 3 {
		t.Errorf("got %d messages, want 3", len(jobs))
	}

	for range 3 { // no message, and so no limit of messages
		ok(t, ask("+491700000000", "192.0.2.1"))
	}
}
