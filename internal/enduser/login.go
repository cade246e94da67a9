package enduser

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/enduser/rules"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/password"
	"github.com/socle-dev/socle/internal/pg"
)

// Login opens a session by an address and a password. It fails with Invalid for an unknown address
// and a wrong password alike, with TooMany beyond the limits.
func (d *Directory) Login(ctx context.Context, address, secret string, c Client) (Session, error) {
	email, err := cleanEmail(address)
	if err != nil {
		return Session{}, errCredentials()
	}

	return d.login(ctx, email, secret, userByEmail, c)
}

// LoginByPhone is [Directory.Login] with a number.
func (d *Directory) LoginByPhone(ctx context.Context, number, secret string, c Client) (Session, error) {
	if !d.SMS.SignIn {
		return Session{}, errPhoneDisabled("Phone logins are disabled")
	}

	phone, err := cleanPhone(number)
	if err != nil {
		return Session{}, errCredentials()
	}

	return d.login(ctx, phone, secret, userByPhone, c)
}

// login opens a session for the user whom find returns for an address or a number.
func (d *Directory) login(
	ctx context.Context, address, secret string, find func(context.Context, pg.Querier, string) (User, error), c Client,
) (Session, error) {
	if err := d.CountRequest(ctx, d.SignInLimit(), c); err != nil {
		return Session{}, err
	}
	if err := d.attempts.CheckGuesses(ctx, rules.PasswordLimit, address, c.Network); err != nil {
		return Session{}, asRequestLimit(err)
	}

	u, err := find(ctx, d.Rows(), address)
	if err != nil && !fault.Is(err, fault.NotFound) {
		return Session{}, err
	}

	// An unknown address has no hash; both take the same time for it.
	hash, err := d.passwordHash(ctx, u.PasswordReference)
	if err != nil {
		return Session{}, err
	}
	ok, err := d.verifyPassword(ctx, hash, secret)
	if err != nil {
		return Session{}, err
	}

	if !ok {
		if err := d.attempts.CountGuess(ctx, rules.PasswordLimit, address, c.Network); err != nil {
			return Session{}, asRequestLimit(err)
		}
		if err := d.askAboutPassword(ctx, u, false, c); err != nil {
			return Session{}, err
		}
		return Session{}, errCredentials()
	}

	// Checked again, for guesses sent in parallel before the first was counted.
	if err := d.attempts.CheckGuesses(ctx, rules.PasswordLimit, address, c.Network); err != nil {
		return Session{}, asRequestLimit(err)
	}
	if err := d.askAboutPassword(ctx, u, true, c); err != nil {
		return Session{}, err
	}

	switch {
	case u.IsBanned():
		return Session{}, errBanned()
	case isPhone(address) && !d.SMS.AutoConfirm && u.PhoneConfirmedAt == nil:
		return Session{}, errPhoneNotConfirmed()
	case !isPhone(address) && d.ConfirmEmail && u.EmailConfirmedAt == nil:
		return Session{}, errNotConfirmed()
	}

	s, err := d.signIn(ctx, "granting user", func(ctx context.Context, tx pgx.Tx) (unsignedSession, error) {
		return d.openSession(ctx, tx, u.ID, "password", c)
	})
	if err != nil {
		return s, err
	}

	if !password.IsCurrent(hash) {
		if err := d.rehash(ctx, u.PasswordReference, hash, secret); err != nil {
			return Session{}, err
		}
	}

	return s, d.attempts.RecordNetwork(ctx, c.Network, address)
}

// askAboutPassword tells a hook that a user's password was checked. It fails if the hook refuses
// the log-in.
func (d *Directory) askAboutPassword(ctx context.Context, u User, valid bool, c Client) error {
	if d.Hooks[rules.HookPassword] == "" || u.ID == uuid.Nil {
		return nil
	}

	reply, err := d.ask(ctx, rules.HookPassword,
		attemptEvent{Metadata: newHookMetadata(rules.HookPassword, c), UserID: u.ID, Valid: valid})
	if err != nil {
		return err
	}

	message, rejected := reply.Rejects("Further password verification attempts will be rejected.")
	if !rejected {
		return nil
	}

	if reply.ShouldLogoutUser {
		if _, err := d.EndSessions(ctx, u.ID, c); err != nil {
			return err
		}
	}

	return fault.New(fault.Invalid, "%s", message).WithCode("invalid_credentials")
}
