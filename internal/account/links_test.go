package account

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
)

// TestLinks checks that a link is valid once, for its purpose, until it expires or another one
// replaces it.
func TestLinks(t *testing.T) {
	t.Parallel()

	i := newInstall(t)
	ada := i.user("ada")
	create := func(purpose string, ttl time.Duration) uuid.UUID {
		t.Helper()

		l, err := i.CreateLink(t.Context(), NewLink{Purpose: purpose, User: someUUID(ada.UUID), TTL: ttl})
		if err != nil {
			t.Fatal(err)
		}

		return l.UUID
	}
	use := func(purpose string, id uuid.UUID) error {
		_, err := i.UseLink(t.Context(), purpose, id)
		return err
	}

	replaced := create(PasswordReset, time.Hour)
	other := create(EmailChange, time.Hour)
	reset := create(PasswordReset, time.Hour)
	want(t, use(PasswordReset, replaced), fault.Unprocessable, "invalid_token")
	want(t, use(PasswordReset, other), fault.Unprocessable, "invalid_token")
	want(t, use(PasswordReset, uuid.New()), fault.Unprocessable, "invalid_token")

	if url, err := i.LinkURL(t.Context(), reset); err != nil ||
		!strings.HasPrefix(url, "https://socle.test/reset-password?token=") {
		t.Errorf("got URL %q, %v, want one of the page to reset the password", url, err)
	}

	want(t, use(PasswordReset, reset), 0, "")
	want(t, use(PasswordReset, reset), fault.Unprocessable, "invalid_token")
	expired := create(PasswordReset, -time.Second)
	want(t, use(PasswordReset, expired), fault.Unprocessable, "invalid_token")

	for name, id := range map[string]uuid.UUID{"replaced": replaced, "used": reset, "expired": expired} {
		if url, err := i.LinkURL(t.Context(), id); err != nil || url != "" {
			t.Errorf("%s link: got URL %q, %v, want none", name, url, err)
		}
	}

	subject, err := i.CreateLink(t.Context(), NewLink{Purpose: Invitation, Subject: someUUID(ada.UUID), TTL: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	if err := i.deleteLinks(t.Context(), ada.UUID); err != nil {
		t.Fatal(err)
	}

	want(t, use(Invitation, subject.UUID), fault.Unprocessable, "invalid_token")
	want(t, use(EmailChange, other), 0, "")
}

// TestSweep checks that expired rows are kept for their retention and deleted after it.
func TestSweep(t *testing.T) {
	t.Parallel()

	i := newInstall(t)
	ada := i.user("ada")
	i.exec(`insert into platform.links (uuid, purpose, user_uuid, email, expires_at)
		select gen_random_uuid(), 'email change', $1, '', now() - age from unnest($2::interval[]) age`,
		ada.UUID, []string{"6 days", "8 days"})
	i.exec(`insert into platform.tokens (uuid, user_uuid, name, hint, hash, role, expires_at)
		select gen_random_uuid(), $1, age::text, '', age::text::bytea, 5, now() - age from unnest($2::interval[]) age`,
		ada.UUID, []string{"29 days", "31 days"})
	i.exec(`insert into platform.invitations (uuid, organization_uuid, email, email_folded, role, created_by, expires_at)
		select gen_random_uuid(), $1, '', age::text, 5, $2, now() - age from unnest($3::interval[]) age`,
		ada.OrganizationUUID, ada.UUID, []string{"29 days", "31 days"})
	i.exec(`insert into platform.attempts (key, count, resets_at)
		select age::text::bytea, 1, now() - age from unnest($1::interval[]) age`, []string{"-1 minute", "1 minute"})

	if err := i.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}

	for _, table := range []string{"links", "tokens", "invitations", "attempts"} {
		if n := i.exec(`select from platform.` + table); n != 1 {
			t.Errorf("%s: got %d rows, want 1", table, n)
		}
	}
}

// TestResetPassword checks that a mailed link sets a password once and ends all sessions.
func TestResetPassword(t *testing.T) {
	t.Parallel()

	i := newInstall(t)
	ada := i.user("ada")
	in := i.login(ada)
	if err := i.mailPasswordReset(t.Context(), "ADA@example.com"); err != nil {
		t.Fatal(err)
	}

	m := i.takeMail()
	if m.Template != "password-reset" || m.To != ada.Email {
		t.Errorf("got mail %v, want password-reset to %s", m, ada.Email)
	}

	const changed = "another horse battery"
	reset := func(token, password string) error {
		return i.ResetPassword(t.Context(), at("new"), token, password)
	}
	token := i.linkToken(m, PasswordReset)
	want(t, reset("forged", changed), fault.Unprocessable, "invalid_token")
	want(t, reset(i.linkToken(m, EmailChange), changed), fault.Unprocessable, "invalid_token")
	want(t, reset(token, "short"), fault.Unprocessable, "too_short") // and the link stays valid
	want(t, reset(token, changed), 0, "")
	want(t, reset(token, changed), fault.Unprocessable, "invalid_token")
	if m := i.takeMail(); m.Template != "password-changed" {
		t.Errorf("got mail %v, want password-changed", m)
	}

	_, err := i.Authenticate(t.Context(), in.Tokens.Token, Scope{})
	want(t, err, fault.Unauthenticated, "invalid_token")
	_, err = i.Login(t.Context(), at("new"), Credentials{Email: ada.Email, Password: secret})
	want(t, err, fault.Unauthenticated, "invalid_credentials")
	_, err = i.Login(t.Context(), at("new"), Credentials{Email: ada.Email, Password: changed})
	want(t, err, 0, "")
}

// TestForgetPassword checks that a request for an unknown address takes the same steps as for a
// known one, and that no mail goes to an unknown or a suspended user.
func TestForgetPassword(t *testing.T) {
	t.Parallel()

	i := newInstall(t)
	ada := i.user("ada")
	forget := func(email string) []string {
		statements := i.statementsOf(func() { want(t, i.ForgetPassword(t.Context(), at("home"), email), 0, "") })

		// River reads the server's version once, and notifies workers at intervals.
		return slices.DeleteFunc(statements, func(sql string) bool { return strings.HasPrefix(sql, "-- name: PG") })
	}
	if known, unknown := forget(ada.Email), forget("nobody@example.com"); !slices.Equal(known, unknown) {
		t.Errorf("unknown address: got statements %q, want %q", unknown, known)
	}
	resets := takeJobs[passwordResetArgs](i)
	wanted := []passwordResetArgs{{ada.Email, "to " + ada.Email}, {"nobody@example.com", "to nobody@example.com"}}
	if !slices.Equal(resets, wanted) {
		t.Errorf("got jobs %v, want %v", resets, wanted)
	}

	i.exec(`update platform.users set status = 'suspended'`)
	for _, r := range resets {
		want(t, i.mailPasswordReset(t.Context(), r.Email), 0, "")
	}
	if mails := takeJobs[Mail](i); len(mails) != 0 {
		t.Errorf("got mails %v, want none", mails)
	}

	want(t, i.ForgetPassword(t.Context(), at("home"), "nobody"), fault.Unprocessable, "invalid_format")
	for range mailAccountLimit.Most - 1 {
		forget(ada.Email)
	}
	want(t, i.ForgetPassword(t.Context(), at("home"), ada.Email), fault.TooMany, "rate_limited")
}

// TestChangeEmail checks that an address changes when its link is opened, unless it was taken
// meanwhile.
func TestChangeEmail(t *testing.T) {
	t.Parallel()

	i := newInstall(t)
	ada, bob := i.user("ada"), i.user("bob")
	const email = "countess@example.com"
	want(t, i.ChangeEmail(t.Context(), at("home"), ada.UUID, email, "wrong"), fault.Unprocessable, "wrong_password")
	want(t, i.ChangeEmail(t.Context(), at("home"), ada.UUID, email, secret), 0, "")

	mails := takeJobs[Mail](i)
	if len(mails) != 2 || mails[0].To != email || mails[1].To != ada.Email || mails[1].Link.Valid {
		t.Fatalf("got mails %v, want a link to %s and a notice to %s", mails, email, ada.Email)
	}

	token := i.linkToken(mails[0], EmailChange)
	i.exec(`update platform.users set email = $1, email_folded = $1 where uuid = $2`, email, bob.UUID)
	_, err := i.ConfirmEmail(t.Context(), at("home"), token)
	want(t, err, fault.Conflict, "already_exists")
	i.exec(`update platform.users set email = $1, email_folded = $1 where uuid = $2`, bob.Email, bob.UUID)
	got, err := i.ConfirmEmail(t.Context(), at("home"), token)
	if err != nil || got != email {
		t.Errorf("got %q, %v, want %s", got, err, email)
	}

	_, err = i.ConfirmEmail(t.Context(), at("home"), token)
	want(t, err, fault.Unprocessable, "invalid_token")

	stored, err := pg.Value[string](t.Context(), i.q, `select email from platform.users where uuid = $1`, ada.UUID)
	if err != nil || stored != email {
		t.Errorf("got stored address %q, %v, want %s", stored, err, email)
	}
}
