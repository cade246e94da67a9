package enduser

import (
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/enduser/rules"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/idp/idptest"
)

// TestPersons: only an address that the provider has verified leads to a user who exists.
func TestPersons(t *testing.T) {
	t.Parallel()

	provider := idptest.New(t)
	u := newUsers(t, withProvider(provider))
	ann := u.user("ann@example.com")

	provider.Person(map[string]any{"sub": "1", "email": "ann@example.com"})
	_, err := u.signInAs(provider)
	want(t, err, fault.Unprocessable, "provider_email_needs_verification")
	provider.Person(map[string]any{"sub": "1"})
	_, err = u.signInAs(provider)
	want(t, err, fault.Invalid, "validation_failed")

	provider.Person(map[string]any{"sub": "1", "email": "ann@example.com", "email_verified": true, "name": "Ann"})
	s, err := u.signInAs(provider)
	ok(t, err)
	if s.User.ID != ann.ID || !strings.Contains(string(s.User.AppMetadata), `"providers": ["email", "custom:test"]`) ||
		!strings.Contains(string(s.User.UserMetadata), `"full_name": "Ann"`) {
		t.Errorf("got %+v", s.User)
	}

	// The identity stays that of the user, whatever address it gets.
	provider.Person(map[string]any{"sub": "1", "email": "moved@example.com"})
	s, err = u.signInAs(provider)
	ok(t, err)
	if s.User.ID != ann.ID || s.User.Email != "ann@example.com" {
		t.Errorf("got the user %s with the address %s", s.User.ID, s.User.Email)
	}

	u.exec(`update auth.users set banned_until = now() + interval '1 hour'`)
	if _, err := u.signInAs(provider); codeOf(err) != "user_banned" {
		t.Errorf("a banned user: got %v", describe(err))
	}
}

// TestIDTokens: a token for another application, request or time opens no session.
func TestIDTokens(t *testing.T) {
	t.Parallel()

	provider := idptest.New(t)
	u := newUsers(t, func(c *rules.Config) {
		withProvider(provider)(c)
		c.Providers["google"] = rules.Provider{ClientID: "x"}
	})
	provider.Person(map[string]any{"sub": "1", "email": "ann@example.com", "email_verified": true})
	signIn := func(in IDTokenSignIn) error {
		_, err := u.SignInWithIDToken(t.Context(), in, home)
		return err
	}

	for name, claims := range map[string]map[string]any{"audience": {"aud": "x"}, "nonce": {"nonce": "x"},
		"expiry": {"exp": time.Now().Add(-time.Hour).Unix()}} {
		err := signIn(IDTokenSignIn{Provider: "custom:test", IDToken: provider.IDToken(claims)})
		if codeOf(err) != "bad_jwt" {
			t.Errorf("another %s: got %v", name, describe(err))
		}
	}
	want(t, signIn(IDTokenSignIn{Provider: "google", IDToken: "x"}), fault.Invalid, "provider_disabled")
	want(t, signIn(IDTokenSignIn{Provider: "custom:test"}), fault.Invalid, "validation_failed")
	want(t, signIn(IDTokenSignIn{IDToken: "x"}), fault.Invalid, "validation_failed")
	if n := u.count(`select count(*)::int from auth.users`); n != 0 {
		t.Errorf("got %d users, want none", n)
	}
}

// link adds the identity of the provider's person to a signed-in user.
func (u *users) linkPerson(provider *idptest.Provider, who Identity) error {
	u.t.Helper()

	_, err := u.SignInWithIDToken(u.t.Context(), IDTokenSignIn{Provider: "custom:test", IDToken: provider.IDToken(nil),
		Linking: &who}, home)
	return err
}

// identityOf returns the id of the only identity of a provider.
func (u *users) identityOf(provider string) uuid.UUID {
	u.t.Helper()

	var id uuid.UUID
	if err := u.db.EndUsers().QueryRow(u.t.Context(), `select id from auth.identities where provider = $1`,
		provider).Scan(&id); err != nil {
		u.t.Fatal(err)
	}

	return id
}

// TestLink adds an identity to a user, once, and needs the second level of a user who has one.
func TestLink(t *testing.T) {
	t.Parallel()

	provider := idptest.New(t)
	u := newUsers(t, func(c *rules.Config) { withProvider(provider)(c); c.AnonymousSignIn = true })
	provider.Person(map[string]any{"sub": "1", "email": "elsewhere@example.com", "email_verified": true})
	ann, ben := u.session(u.user("ann@example.com")), u.session(u.user("ben@example.com"))

	ok(t, u.linkPerson(provider, ann.identity()))
	want(t, u.linkPerson(provider, ann.identity()), fault.Unprocessable, "identity_already_exists")
	want(t, u.linkPerson(provider, ben.identity()), fault.Unprocessable, "identity_already_exists")
	s, err := u.signInAs(provider)
	ok(t, err)
	if s.User.ID != ann.User.ID || s.User.Email != "ann@example.com" {
		t.Errorf("got the user %s with the address %s", s.User.ID, s.User.Email)
	}

	// An anonymous user becomes a permanent one, with an address that is free.
	anonymous, err := u.SignInAnonymously(t.Context(), nil, home)
	ok(t, err)
	provider.Person(map[string]any{"sub": "2", "email": "ben@example.com", "email_verified": true})
	want(t, u.linkPerson(provider, anonymous.identity()), fault.Unprocessable, "email_exists")
	provider.Person(map[string]any{"sub": "2", "email": "cleo@example.com", "email_verified": true})
	ok(t, u.linkPerson(provider, anonymous.identity()))
	if got, err := u.GetUser(t.Context(), anonymous.User.ID); err != nil || got.IsAnonymous ||
		got.Email != "cleo@example.com" || got.EmailConfirmedAt == nil {
		t.Errorf("got %+v (%v), want a permanent user", got, err)
	}

	u.exec(`insert into auth.mfa_factors (id, user_id, factor_type, status) values (gen_random_uuid(), $1, 'totp', 'verified')`,
		ben.User.ID)
	provider.Person(map[string]any{"sub": "3"})
	want(t, u.linkPerson(provider, ben.identity()), fault.Forbidden, "insufficient_aal")
	want(t, u.UnlinkIdentity(t.Context(), ben.identity(), uuid.New(), home), fault.Forbidden, "insufficient_aal")
}

// TestUnlink: with the identity of an address go its password and the address itself, which one
// that another identity has verified replaces.
func TestUnlink(t *testing.T) {
	t.Parallel()

	provider := idptest.New(t)
	u := newUsers(t, withProvider(provider))
	who := u.session(u.user("ann@example.com")).identity()
	unlink := func(id uuid.UUID) error { return u.UnlinkIdentity(t.Context(), who, id, home) }
	mail := u.identityOf("email")

	want(t, unlink(mail), fault.Unprocessable, "single_identity_not_deletable")
	provider.Person(map[string]any{"sub": "1", "email": "lee@example.com", "email_verified": true})
	ok(t, u.linkPerson(provider, who))
	want(t, unlink(uuid.New()), fault.Unprocessable, "identity_not_found")

	// The address that would replace the present one belongs to another user.
	lee := u.user("lee@example.com")
	want(t, unlink(mail), fault.Unprocessable, "email_conflict_identity_not_deletable")
	_, err := u.DeleteUser(t.Context(), lee.ID, false, home)
	ok(t, err)

	ok(t, u.Recover(t.Context(), LinkRequest{Email: "ann@example.com"}, home))
	link := u.link(u.mail(rules.MailRecovery))
	ok(t, unlink(mail))
	got, err := u.Authenticate(t.Context(), who)
	ok(t, err)
	if got.Email != "lee@example.com" || got.PasswordReference != "" ||
		!strings.Contains(string(got.AppMetadata), `"provider": "custom:test"`) {
		t.Errorf("got %+v, want the address of the provider and no password", got)
	}
	_, err = u.verifyLink("recovery", link)
	want(t, err, fault.Forbidden, "otp_expired")
	u.user("ann@example.com") // is free
}

// TestUnlinkAtOnce removes both identities of a user at the same time. One stays.
func TestUnlinkAtOnce(t *testing.T) {
	t.Parallel()

	provider := idptest.New(t)
	u := newUsers(t, withProvider(provider))
	who := u.session(u.user("ann@example.com")).identity()
	provider.Person(map[string]any{"sub": "1", "email": "lee@example.com", "email_verified": true})
	ok(t, u.linkPerson(provider, who))

	failures := make(chan error, 2)
	for _, id := range []uuid.UUID{u.identityOf("email"), u.identityOf("custom:test")} {
		go func() { failures <- u.UnlinkIdentity(t.Context(), who, id, home) }()
	}

	first, second := <-failures, <-failures
	if (first == nil) == (second == nil) {
		t.Errorf("got %v and %v, want one failure", describe(first), describe(second))
	}
	if n := u.count(`select count(*)::int from auth.identities`); n != 1 {
		t.Errorf("got %d identities, want 1", n)
	}
}
