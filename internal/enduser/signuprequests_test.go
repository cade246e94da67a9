package enduser

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/enduser/rules"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/idp/idptest"
	"github.com/socle-dev/socle/internal/pg"
)

// strangers is the password of a stranger, where the owner of an address has [secret].
const strangers = "correct horse battery of a stranger"

// withProvider adds the identity provider custom:test.
func withProvider(provider *idptest.Provider) func(*rules.Config) {
	return func(c *rules.Config) {
		c.Providers = map[string]rules.Provider{"custom:test": {Enabled: true, ClientID: idptest.ClientID,
			URL: provider.URL}}
		c.Secrets["providers.custom:test"] = idptest.Secret
	}
}

// signInAs signs in with the ID token of the provider's person.
func (u *users) signInAs(provider *idptest.Provider) (Session, error) {
	u.t.Helper()

	in := IDTokenSignIn{Provider: "custom:test", IDToken: provider.IDToken(nil)}
	return u.SignInWithIDToken(u.t.Context(), in, home)
}

// signUp signs up with an address and returns the mail.
func (u *users) signUp(email, password, data string) mailArgs {
	u.t.Helper()

	_, err := u.SignUp(u.t.Context(), SignUp{Email: email, Password: password, Data: json.RawMessage(data)}, home)
	ok(u.t, err)

	return u.mail(rules.MailConfirmation)
}

// TestFirstProof: a stranger signs up with the address of its owner. The first one to prove it gets
// an account that has what came with the confirmed request only, on each path.
func TestFirstProof(t *testing.T) {
	t.Parallel()

	provider := idptest.New(t)
	u := newUsers(t, func(c *rules.Config) { withProvider(provider)(c); c.ConfirmEmail = true })
	ctx := t.Context()
	byLink := func(kind string, m mailArgs) { _, err := u.verifyLink(kind, u.link(m)); ok(t, err) }
	byCode := func(kind string, m mailArgs) { _, err := u.verifyCode(kind, m.Email, u.code(m)); ok(t, err) }
	generate := func(in NewLink) {
		link, err := u.GenerateLink(ctx, in, home)
		ok(t, err)
		_, err = u.verifyLink(in.Type, link.HashedToken)
		ok(t, err)
	}

	for name, path := range map[string]struct {
		confirm  func(email string)
		password bool   // the confirmed request has one
		data     string // metadata of the confirmed request
	}{
		"link": {func(e string) {
			byLink("signup", u.signUp(e, secret, `{"name":"owner"}`))
		}, true, `{"name": "owner"}`},
		"pkce": {func(e string) {
			// from RFC 7636, appendix B
			challenge := Challenge{Method: "s256", Code: "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"}
			_, err := u.SignUp(ctx, SignUp{Email: e, Password: secret, Challenge: challenge}, home)
			ok(t, err)
			link := Verification{Type: "signup", Hash: u.link(u.mail(rules.MailConfirmation))}
			done, err := u.Verify(ctx, link, true, home)
			ok(t, err)
			_, err = u.ExchangeCode(ctx, done.AuthCode, "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk", home)
			ok(t, err)
		}, true, "{}"},
		"code": {func(e string) { byCode("signup", u.signUp(e, secret, "")) }, true, "{}"},
		"resend": {func(e string) {
			u.signUp(e, secret, "")
			ok(t, u.Resend(ctx, "signup", LinkRequest{Email: e}, home))
			byCode("email", u.mail(rules.MailConfirmation))
		}, true, "{}"},
		"stranger-again": {func(e string) {
			own := u.signUp(e, secret, "")
			u.signUp(e, strangers, `{"evil":1}`)
			byLink("signup", own)
		}, true, "{}"},
		"otp": {func(e string) {
			ok(t, u.SendCode(ctx, LinkRequest{Email: e, Data: json.RawMessage(`{"name":"owner"}`)}, home))
			byCode("email", u.mail(rules.MailMagicLink))
		}, false, `{"name": "owner"}`},
		"magic-link": {func(e string) {
			ok(t, u.SendCode(ctx, LinkRequest{Email: e}, home))
			byLink("magiclink", u.mail(rules.MailMagicLink))
		}, false, "{}"},
		"recovery": {func(e string) {
			ok(t, u.Recover(ctx, LinkRequest{Email: e}, home))
			byLink("recovery", u.mail(rules.MailRecovery))
		}, false, "{}"},
		"provider": {func(e string) {
			provider.Person(map[string]any{"sub": e, "email": e, "email_verified": true})
			_, err := u.signInAs(provider)
			ok(t, err)
		}, false, ""},
		"invite": {func(e string) {
			_, err := u.Invite(ctx, e, json.RawMessage(`{"name":"owner"}`), "", home)
			ok(t, err)
			byLink("invite", u.mail(rules.MailInvite))
		}, false, `{"name": "owner"}`},
		"generated":            {func(e string) { generate(NewLink{Type: "signup", Email: e, Password: secret}) }, true, "{}"},
		"generated-magic-link": {func(e string) { generate(NewLink{Type: "magiclink", Email: e}) }, false, "{}"},
	} {
		email := name + "@example.com"
		former := u.signUp(email, strangers, `{"evil":1}`)
		path.confirm(email)

		_, err := u.Login(ctx, email, strangers, home)
		if codeOf(err) != "invalid_credentials" {
			t.Errorf("%s: the stranger signs in: %v", name, describe(err))
		}
		if _, err := u.Login(ctx, email, secret, home); (err == nil) != path.password {
			t.Errorf("%s: the owner signs in: %v, want %v", name, err == nil, path.password)
		}

		user, err := userByEmail(ctx, u.Rows(), email)
		ok(t, err)
		if got := string(user.UserMetadata); strings.Contains(got, "evil") || (path.data != "" && got != path.data) {
			t.Errorf("%s: got the metadata %s, want %s", name, got, path.data)
		}
		if _, err := u.verifyLink("signup", u.link(former)); codeOf(err) != "otp_expired" {
			t.Errorf("%s: the link of the stranger's request: got %v", name, describe(err))
		}
	}
}

// TestFirstProofOfAdministratorsUser: what an administrator has set stays, but for the password,
// which a stranger may have typed into a form of the application.
func TestFirstProofOfAdministratorsUser(t *testing.T) {
	t.Parallel()

	u := newUsers(t, func(c *rules.Config) { c.ConfirmEmail = true })
	email, hash := "ann@example.com", secretHash()
	_, err := u.CreateUser(t.Context(), AdminUpdate{Email: &email, PasswordHash: &hash,
		UserMetadata: json.RawMessage(`{"plan":"pro"}`), AppMetadata: json.RawMessage(`{"team":"a"}`)}, home)
	ok(t, err)

	ok(t, u.SendCode(t.Context(), LinkRequest{Email: email, Data: json.RawMessage(`{"name":"Ann"}`)}, home))
	done, err := u.verifyLink("magiclink", u.link(u.mail(rules.MailMagicLink)))
	ok(t, err)
	user := done.Session.User
	if string(user.UserMetadata) != `{"name": "Ann", "plan": "pro"}` ||
		!strings.Contains(string(user.AppMetadata), `"team": "a"`) {
		t.Errorf("got the metadata %s and %s", user.UserMetadata, user.AppMetadata)
	}
	_, err = u.Login(t.Context(), email, secret, home)
	want(t, err, fault.Invalid, "invalid_credentials")
}

// TestRequestsAreBounded: many strangers may sign up with an address, and few of them wait.
func TestRequestsAreBounded(t *testing.T) {
	t.Parallel()

	u := newUsers(t, func(c *rules.Config) { c.ConfirmEmail = true })
	first := u.signUp("ann@example.com", secret, "")
	user, err := pg.Value[uuid.UUID](t.Context(), u.Rows(), `select id from auth.users`)
	ok(t, err)
	ok(t, u.Tx(t.Context(), "test", func(ctx context.Context, tx pgx.Tx) error {
		for range maxSignUps + 1 {
			if _, err := createSignUp(ctx, tx, signUpRequest{User: user, Address: "ann@example.com",
				VerificationType: "signup", UserMetadata: json.RawMessage("{}")}); err != nil {
				return err
			}
		}
		return nil
	}))

	if n := u.count(`select count(*)::int from auth.sign_ups`); n != maxSignUps+1 {
		t.Errorf("got %d requests, want the first one and %d others", n, maxSignUps)
	}
	_, err = u.verifyLink("signup", u.link(first))
	ok(t, err)
	if n := u.count(`select count(*)::int from auth.sign_ups`); n != 0 {
		t.Errorf("got %d requests after the confirmation, want none", n)
	}
}

// TestAddressesAreCanonical: the spellings of an address are one user, and no others.
func TestAddressesAreCanonical(t *testing.T) {
	t.Parallel()

	u := newUsers(t, nil)
	u.user("vic@example.com")
	u.user("ann@bücher.example")
	login := func(email string) error {
		u.exec(`update auth.users set encrypted_password = $1`, secretHash()) // quick to verify
		_, err := u.Login(t.Context(), email, secret, home)
		return err
	}

	for _, email := range []string{"ｖic@example.com", "VIC@ｅxample.com", "vic＠example.com", "ann@xn--bcher-kva.example",
		"Ann@BÜCHER.example"} {
		_, err := u.SignUp(t.Context(), SignUp{Email: email, Password: secret}, home)
		want(t, err, fault.Unprocessable, "user_already_exists")
		ok(t, login(email))
	}

	u.user("ivy@example.com")
	want(t, login("İvy@example.com"), fault.Invalid, "invalid_credentials")
	u.user("İvy@example.com")

	// Rows of former releases.
	for _, email := range []string{"ｏld@example.com", "old@xn--bcher-kva.example"} {
		u.exec(`
			insert into auth.users (id, aud, role, email, email_confirmed_at, created_at, updated_at)
			values (gen_random_uuid(), 'authenticated', 'authenticated', $1, now(), now(), now())`, email)
		ok(t, login(email))
	}
}
