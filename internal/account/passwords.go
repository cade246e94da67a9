package account

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/audit"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/httpx"
	"github.com/socle-dev/socle/internal/ratelimit"
)

// Limits of mails and of password resets. Requests for mails count whether the account exists or
// not.
var (
	mailNetworkLimit  = ratelimit.Limit{Name: "mail address", Most: 20, Window: time.Hour}
	mailAccountLimit  = ratelimit.Limit{Name: "mail account", Most: 5, Window: time.Hour}
	resetNetworkLimit = ratelimit.Limit{Name: "reset address", Most: 30, Window: time.Hour}
)

const passwordResetTTL = time.Hour // link lifetime

// ForgetPassword enqueues a mail with a link to set a new password. It takes the same steps and
// time for known and unknown addresses, since the job looks up the user. It fails with
// Unprocessable for a malformed address and with TooMany beyond the limits.
func (s *Service) ForgetPassword(ctx context.Context, client Client, address string) error {
	email, err := cleanEmail(address)
	if err != nil {
		return err
	}

	if err := s.Attempts.CountFrom(ctx, mailNetworkLimit, client.Network, mailAccountLimit,
		foldEmail(email)); err != nil {
		return err
	}

	return s.inTx(ctx, func(tx *Service) error {
		_, err := s.Queue.InsertTx(ctx, tx.db.PgxTx(), passwordResetArgs{Email: email, Share: mailShare(ctx, email)})
		return err
	})
}

// mailPasswordReset creates a link to set a new password and enqueues its mail, addressed as the
// user's account has it. It does nothing if the address is unknown or its user suspended.
func (s *Service) mailPasswordReset(ctx context.Context, email string) error {
	return s.inTx(ctx, func(tx *Service) error {
		user, _, err := tx.credentials(ctx, email)
		if fault.Is(err, fault.NotFound) || (err == nil && user.Status != "active") {
			return nil
		}
		if err != nil {
			return err
		}

		link, err := tx.CreateLink(ctx, NewLink{
			Purpose: PasswordReset, User: someUUID(user.UUID), Email: user.Email, TTL: passwordResetTTL,
		})
		if err != nil {
			return err
		}

		return tx.mail(ctx, Mail{Template: "password-reset", To: user.Email,
			Data: map[string]string{"username": user.Username}, Link: someUUID(link.UUID)})
	})
}

// ResetPassword sets a new password by the token of a mailed link, ends all sessions of the user
// and notifies them by mail. It fails with Unprocessable on token or password if that is invalid,
// and with TooMany beyond the limit.
func (s *Service) ResetPassword(ctx context.Context, client Client, linkToken, password string) error {
	if err := s.Attempts.Count(ctx, resetNetworkLimit, client.Network); err != nil {
		return err
	}

	// Before the new password is hashed, which is expensive.
	link, user, err := s.linkedUser(ctx, PasswordReset, linkToken)
	if err != nil {
		return err
	}

	if err := s.Passwords.Check(password, user.Email, user.Username); err != nil {
		return err
	}

	hash, err := s.Passwords.For(httpx.Stranger(ctx)).Hash(ctx, password)
	if err != nil {
		return err
	}

	audit.SetActor(ctx, user.UUID)
	return s.inTx(ctx, func(tx *Service) error {
		if _, err := tx.UseLink(ctx, PasswordReset, link.UUID); err != nil {
			return err
		}
		if _, err := tx.changeUser(ctx, user.UUID, uuid.Nil, userChange{passwordHash: &hash}); err != nil {
			return err
		}
		if err := tx.rememberNetwork(ctx, client, user); err != nil {
			return err
		}

		return tx.mail(ctx, Mail{
			Template: "password-changed",
			To:       user.Email,
			Data:     map[string]string{"username": user.Username},
		})
	})
}
