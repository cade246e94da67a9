package enduser

import (
	"encoding/json"
	"strings"
	"sync"
	"testing"

	"github.com/socle-dev/socle/internal/enduser/rules"
	"github.com/socle-dev/socle/internal/fault"
)

// TestUpdateSelf changes the metadata, the address and the password of the signed-in user.
func TestUpdateSelf(t *testing.T) {
	t.Parallel()

	u := newUsers(t, nil)
	ann := u.user("ann@example.com")
	own, other := u.session(ann), u.session(ann)
	u.user("ben@example.com")
	update := func(in Update) (User, error) { return u.UpdateSelf(t.Context(), own.identity(), in, home) }

	got, err := update(Update{Data: json.RawMessage(`{"name":"Ann","city":null}`)})
	ok(t, err)
	if string(got.UserMetadata) != `{"name": "Ann"}` {
		t.Errorf("got the metadata %s", got.UserMetadata)
	}

	for code, in := range map[string]Update{
		"same_password":       {Password: secret},
		"weak_password":       {Password: "short"},
		"email_exists":        {Email: "ben@example.com"},
		"validation_failed":   {Email: "nonsense"},
		"invalid_credentials": {Password: "another " + secret, CurrentPassword: "wrong"},
	} {
		if _, err := update(in); codeOf(err) != code {
			t.Errorf("%+v: got %v, want %s", in, describe(err), code)
		}
	}

	got, err = update(Update{Email: "Anna@Example.com", Password: "another " + secret, CurrentPassword: secret})
	ok(t, err)
	if got.Email != "anna@example.com" {
		t.Errorf("got the address %s", got.Email)
	}
	_, err = u.Authenticate(t.Context(), own.identity())
	ok(t, err)
	_, err = u.Authenticate(t.Context(), other.identity())
	want(t, err, fault.Forbidden, "session_not_found")
	_, err = u.Login(t.Context(), "anna@example.com", "another "+secret, home)
	ok(t, err)
}

// TestUpdatesAtOnce changes different members of the metadata at once.
func TestUpdatesAtOnce(t *testing.T) {
	t.Parallel()

	u := newUsers(t, nil)
	who := u.session(u.user("ann@example.com")).identity()

	var wait sync.WaitGroup
	for _, name := range strings.Split("abcdefgh", "") {
		wait.Go(func() {
			in := Update{Data: json.RawMessage(`{"` + name + `":1}`)}
			if _, err := u.UpdateSelf(t.Context(), who, in, home); err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()

	ann, err := u.Authenticate(t.Context(), who)
	ok(t, err)
	var members map[string]int
	if err := json.Unmarshal(ann.UserMetadata, &members); err != nil || len(members) != 8 {
		t.Errorf("got the metadata %s, want 8 members", ann.UserMetadata)
	}
}

// TestEmailChange: a new address counts once it is confirmed by mails to both addresses.
func TestEmailChange(t *testing.T) {
	t.Parallel()

	u := newUsers(t, func(c *rules.Config) { c.ConfirmEmail = true })
	who := u.session(u.user("ann@example.com")).identity()
	change := func() (current, renewed mailArgs) {
		t.Helper()

		got, err := u.UpdateSelf(t.Context(), who, Update{Email: "anna@example.com"}, home)
		ok(t, err)
		if got.Email != "ann@example.com" || got.NewEmail != "anna@example.com" {
			t.Errorf("got the address %s and the new one %s", got.Email, got.NewEmail)
		}

		for _, m := range takeJobs[mailArgs](u) {
			switch m.Email {
			case "ann@example.com":
				current = m
			case "anna@example.com":
				renewed = m
			}
		}
		return current, renewed
	}

	former, _ := change()
	current, renewed := change()
	_, err := u.verifyLink("email_change", u.link(former))
	want(t, err, fault.Forbidden, "otp_expired")
	half, err := u.verifyLink("email_change", u.link(current))
	ok(t, err)
	if half.Session != nil {
		t.Error("the first half of a change opens a session")
	}

	done, err := u.verifyCode("email_change", "anna@example.com", u.code(renewed))
	ok(t, err)
	if got := done.Session.User; got.Email != "anna@example.com" || got.NewEmail != "" {
		t.Errorf("got the address %s and the new one %q", got.Email, got.NewEmail)
	}
}

// TestAnonymousUpgrade has an anonymous user set an address and a password at once.
func TestAnonymousUpgrade(t *testing.T) {
	t.Parallel()

	u := newUsers(t, func(c *rules.Config) { c.AnonymousSignIn, c.ConfirmEmail = true, true })
	s, err := u.SignInAnonymously(t.Context(), nil, home)
	ok(t, err)
	login := func() error {
		_, err := u.Login(t.Context(), "ann@example.com", secret, home)
		return err
	}

	_, err = u.UpdateSelf(t.Context(), s.identity(), Update{Password: secret}, home)
	want(t, err, fault.Unprocessable, "validation_failed")
	want(t, u.Reauthenticate(t.Context(), s.identity(), home), fault.Invalid, "validation_failed")
	_, err = u.UpdateSelf(t.Context(), s.identity(), Update{Email: "ann@example.com", Password: secret}, home)
	ok(t, err)
	want(t, login(), fault.Invalid, "invalid_credentials")

	done, err := u.verifyLink("email_change", u.link(u.mail(rules.MailEmailChange)))
	ok(t, err)
	if got := done.Session.User; got.IsAnonymous || got.ID != s.User.ID ||
		!strings.Contains(string(got.AppMetadata), `"provider": "email"`) {
		t.Errorf("got %+v, want a permanent user", got)
	}
	ok(t, login())
}

// TestReauthentication: a password is changed in an old session with a code only.
func TestReauthentication(t *testing.T) {
	t.Parallel()

	u := newUsers(t, func(c *rules.Config) { c.SMS.SignIn = true })
	who := u.session(u.user("ann@example.com")).identity()
	u.exec(`update auth.sessions set created_at = now() - interval '25 hours'`)
	change := func(nonce string) error {
		_, err := u.UpdateSelf(t.Context(), who, Update{Password: "another " + secret, Nonce: nonce}, home)
		return err
	}

	want(t, change(""), fault.Invalid, "reauthentication_needed")
	ok(t, u.Reauthenticate(t.Context(), who, home))
	code := u.code(u.mail(rules.MailReauthentication))
	want(t, change(wrongCode(code)), fault.Unprocessable, "reauthentication_not_valid")

	// A user without an address gets a text message.
	u.exec(`update auth.users set email = null, phone = '491701'`)
	want(t, u.Reauthenticate(t.Context(), who, home), fault.Unprocessable, "phone_not_confirmed")
	u.exec(`update auth.users set phone_confirmed_at = now()`)
	ok(t, u.Reauthenticate(t.Context(), who, home))
	want(t, change(code), fault.Unprocessable, "reauthentication_not_valid") // replaced
	code = u.sms("491701")
	ok(t, change(code))
	want(t, change(code), fault.Unprocessable, "same_password")
}
