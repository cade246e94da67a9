package account

import (
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/token"
)

// TestLogin checks that a log-in opens a session, and that an unknown address, a wrong password and
// a suspended user get one answer.
func TestLogin(t *testing.T) {
	t.Parallel()

	i := newInstall(t)
	ada, bob := i.user("ada"), i.user("bob")
	in := i.login(ada)
	if in.User.UUID != ada.UUID || i.caller(in).User != ada.UUID {
		t.Errorf("got user %s and caller %s, want %s", in.User.UUID, i.caller(in).User, ada.UUID)
	}

	_, err := i.Login(t.Context(), at("home"), Credentials{Email: " ADA@example.com", Password: secret})
	want(t, err, 0, "") // another spelling of the address

	i.exec(`update platform.users set status = 'suspended' where uuid = $1`, bob.UUID)
	var texts []string
	for _, c := range []Credentials{
		{Email: ada.Email, Password: "wrong"},
		{Email: "nobody@example.com", Password: secret},
		{Email: "not an address", Password: secret},
		{Email: bob.Email, Password: secret},
	} {
		_, err := i.Login(t.Context(), at("elsewhere"), c)
		want(t, err, fault.Unauthenticated, "invalid_credentials")
		texts = append(texts, err.Error())
	}

	if len(slices.Compact(texts)) != 1 {
		t.Errorf("the answers differ: %q", texts)
	}
}

// TestUnknownAddressCosts checks that a log-in to an unknown address does the same work as one with
// a wrong password: it runs the same statements and computes a hash, whose memory shows in the
// allocations. It is not parallel, since it measures the allocations of the process.
func TestUnknownAddressCosts(t *testing.T) {
	i := newInstall(t)
	ada := i.user("ada")
	hash, err := i.Passwords.Hash(t.Context(), secret)
	if err != nil {
		t.Fatal(err)
	}

	i.exec(`update platform.users set password_hash = $1 where uuid = $2`, hash, ada.UUID)

	const hashMemory = 19 << 20
	attempt := func(email string) []string {
		t.Helper()

		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		statements := i.statementsOf(func() {
			_, err := i.Login(t.Context(), at("elsewhere"), Credentials{Email: email, Password: "wrong"})
			want(t, err, fault.Unauthenticated, "invalid_credentials")
		})
		runtime.ReadMemStats(&after)

		if got := after.TotalAlloc - before.TotalAlloc; got < hashMemory {
			t.Errorf("%s: allocated %d bytes, want those of a hash, %d", email, got, hashMemory)
		}

		return statements
	}

	if known, unknown := attempt(ada.Email), attempt("nobody@example.com"); !slices.Equal(known, unknown) {
		t.Errorf("unknown address: got statements %q, want %q", unknown, known)
	}
}

// TestLoginLimit checks that failures lock a network out, but neither the correct password nor the
// known network of the user.
func TestLoginLimit(t *testing.T) {
	t.Parallel()

	i := newInstall(t)
	ada := i.user("ada")
	i.login(ada) // home is known
	guess := func(network, password string) error {
		_, err := i.Login(t.Context(), at(network), Credentials{Email: ada.Email, Password: password})
		return err
	}

	for range loginAccountLimit.Network.Most {
		want(t, guess("attacker", "wrong"), fault.Unauthenticated, "invalid_credentials")
	}

	want(t, guess("attacker", "wrong"), fault.TooMany, "rate_limited")
	want(t, guess("attacker", secret), fault.TooMany, "rate_limited")
	for range 2 * loginAccountLimit.Network.Most {
		want(t, guess("home", secret), 0, "")
	}

	// A confirmation of the password counts as a log-in.
	_, err := i.CreateSecondFactor(t.Context(), at("attacker"), ada.UUID, secret)
	want(t, err, fault.TooMany, "rate_limited")

	_, err = i.CreateSecondFactor(t.Context(), at("home"), ada.UUID, "wrong")
	want(t, err, fault.Unprocessable, "wrong_password")
}

// TestSecondFactor checks that a confirmed second factor is required, that its codes work once, and
// that a wrong code is counted after a right password only.
func TestSecondFactor(t *testing.T) {
	t.Parallel()

	i := newInstall(t)
	ada := i.user("ada")
	f, err := i.CreateSecondFactor(t.Context(), at("home"), ada.UUID, secret)
	if err != nil {
		t.Fatal(err)
	}

	sealed, err := i.getFactor(t.Context(), ada.UUID)
	if err != nil {
		t.Fatal(err)
	}

	key, err := token.Open(i.factorKeyOf(ada.UUID), sealed.Sealed)
	if err != nil || token.TOTPText(key) != f.Secret {
		t.Fatalf("got sealed secret %q, %v, want %q", token.TOTPText(key), err, f.Secret)
	}

	i.login(ada) // not confirmed, so not required

	code := func() string { return token.TOTPCode(key, token.TOTPStep(time.Now())) }
	_, err = i.ConfirmSecondFactor(t.Context(), at("home"), ada.UUID, "000")
	want(t, err, fault.Unprocessable, "invalid_code")
	recovery, err := i.ConfirmSecondFactor(t.Context(), at("home"), ada.UUID, code())
	if err != nil || len(recovery) != token.RecoveryCodeCount {
		t.Fatalf("got %d recovery codes, %v", len(recovery), err)
	}
	if m := i.takeMail(); m.Template != "second-factor" || m.Data["change"] != "switched on" {
		t.Errorf("got mail %v, want the notice of the change", m)
	}

	_, err = i.ConfirmSecondFactor(t.Context(), at("home"), ada.UUID, code())
	want(t, err, fault.Conflict, "already_exists")

	login := func(code string) error {
		_, err := i.Login(t.Context(), at("home"), Credentials{Email: ada.Email, Password: secret, Code: code})
		return err
	}
	want(t, login(""), fault.Unauthenticated, "second_factor_required")
	want(t, login("000"), fault.Unauthenticated, "invalid_code")
	want(t, login(recovery[0]), 0, "")
	want(t, login(recovery[0]), fault.Unauthenticated, "invalid_code")

	i.exec(`update platform.second_factors set last_step = 0`)
	used := code()
	want(t, login(used), 0, "")
	want(t, login(used), fault.Unauthenticated, "invalid_code")

	state, err := i.GetSecondFactor(t.Context(), ada.UUID)
	if got := (FactorState{IsConfirmed: true, RecoveryCodes: token.RecoveryCodeCount - 1}); err != nil || state != got {
		t.Errorf("got %v, %v, want %v", state, err, got)
	}

	err = i.DeleteSecondFactor(t.Context(), at("home"), ada.UUID, Proof{Password: secret})
	want(t, err, fault.Unprocessable, "second_factor_required")
	err = i.DeleteSecondFactor(t.Context(), at("home"), ada.UUID, Proof{Password: secret, Code: recovery[1]})
	want(t, err, 0, "")
	want(t, login(""), 0, "")
}

// TestCodeLimit checks that wrong codes lock the second factor for their network.
func TestCodeLimit(t *testing.T) {
	t.Parallel()

	i := newInstall(t)
	ada := i.user("ada")
	if _, err := i.CreateSecondFactor(t.Context(), at("home"), ada.UUID, secret); err != nil {
		t.Fatal(err)
	}

	for range codeLimit.Network.Most {
		_, err := i.ConfirmSecondFactor(t.Context(), at("home"), ada.UUID, "000")
		want(t, err, fault.Unprocessable, "invalid_code")
	}

	_, err := i.ConfirmSecondFactor(t.Context(), at("home"), ada.UUID, "000")
	want(t, err, fault.TooMany, "rate_limited")
}

// TestResetSecondFactor checks that an administrator removes the factor of another user only, which
// ends the user's sessions.
func TestResetSecondFactor(t *testing.T) {
	t.Parallel()

	i := newInstall(t)
	ada, root := i.user("ada"), i.user("root")
	in := i.login(ada)
	if _, err := i.CreateSecondFactor(t.Context(), at("home"), ada.UUID, secret); err != nil {
		t.Fatal(err)
	}

	_, err := i.ResetSecondFactor(t.Context(), actor(ada), ada.UUID)
	want(t, err, fault.Forbidden, "own_account")
	_, err = i.ResetSecondFactor(t.Context(), actor(root), ada.UUID)
	want(t, err, 0, "")
	_, err = i.ResetSecondFactor(t.Context(), actor(root), ada.UUID)
	want(t, err, fault.NotFound, "not_found")
	_, err = i.Authenticate(t.Context(), in.Tokens.Token, Scope{})
	want(t, err, fault.Unauthenticated, "invalid_token")
	if m := i.takeMail(); m.Template != "second-factor" || m.To != ada.Email {
		t.Errorf("got mail %v, want a notice to %s", m, ada.Email)
	}
}
