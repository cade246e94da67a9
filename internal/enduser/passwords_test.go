package enduser

import (
	"strings"
	"testing"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/password"
)

// TestLoginWithMalformedHash: a hash that log-ins can't verify, or whose cost has no bound, matches
// no password and fails no request.
func TestLoginWithMalformedHash(t *testing.T) {
	t.Parallel()

	u := newUsers(t, nil)
	user := u.user("ann@example.com")
	for _, hash := range []string{
		"plain",
		"$argon2id$v=19$m=4194304,t=1000,p=1$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4",
		"$argon2id$v=19$m=256,t=2,p=1$c29tZXNhbHRzb$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4", // salt
		"$argon2id$v=19$m=256,t=2,p=1$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/5",   // unused bits
		"$2a$31$" + strings.Repeat("a", 53),
		"$fbscrypt$v=1,n=30,r=8,p=1,ss=Bw==,sk=AAAA$AAAA$AAAA",
	} {
		u.exec(`update auth.users set encrypted_password = $1`, hash)
		_, err := u.Login(t.Context(), user.Email, secret, home)
		want(t, err, fault.Invalid, "invalid_credentials")
	}
}

// TestRehash: a log-in replaces an imported hash by one of the present parameters, under the same
// reference.
func TestRehash(t *testing.T) {
	t.Parallel()

	u := newUsers(t, nil)
	user := u.user("ann@example.com") // with a hash of bcrypt
	for range 2 {
		_, err := u.Login(t.Context(), user.Email, secret, home)
		ok(t, err)
		if got, err := u.passwordHash(t.Context(), user.PasswordReference); !password.IsCurrent(got) || err != nil {
			t.Errorf("got the hash %q (%v) after a log-in, want one of the present parameters", got, err)
		}
	}
}
