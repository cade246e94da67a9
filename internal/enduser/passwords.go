package enduser

import (
	"context"
	"fmt"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/password"
	"github.com/socle-dev/socle/internal/pg"
)

// hasher returns the hasher of passwords with the project's policy and share.
func (d *Directory) hasher() *password.Hasher {
	return d.service.Passwords.For(d.UUID.String(), d.PasswordMinLength)
}

// hashPassword returns the hash of a new password. It fails with Unprocessable, code weak_password.
func (d *Directory) hashPassword(ctx context.Context, secret, email string) (string, error) {
	if err := d.checkPassword(secret, email); err != nil {
		return "", err
	}
	return d.hasher().Hash(ctx, secret)
}

func (d *Directory) checkPassword(secret, email string) error {
	err := d.hasher().Check(secret, email, "")
	if err == nil {
		return nil
	}

	switch fault.Of(err).Code {
	case "too_short":
		return weakPassword(fmt.Sprintf("Password should be at least %d characters.", d.PasswordMinLength), "length")
	case "too_common":
		return weakPassword("Password is known to be weak and easy to guess, please choose a different one.", "pwned")
	case "too_obvious":
		return weakPassword("Password should not be the email address.", "characters")
	case "too_long":
		return errInvalid("Password is too long")
	}

	return err
}

// rehash replaces the hash of an imported user, after the password was verified.
func (d *Directory) rehash(ctx context.Context, tx pgx.Tx, id uuid.UUID, old, renewed string) error {
	_, err := pg.Exec(ctx, tx, `update auth.users set encrypted_password = @new where id = @id and encrypted_password = @old`,
		pgx.StrictNamedArgs{"id": id, "old": old, "new": renewed})
	return err
}

// samePassword fails with Unprocessable if a new password is the present one.
func (d *Directory) samePassword(ctx context.Context, u User, secret string) error {
	if u.PasswordHash == "" {
		return nil
	}

	same, err := d.hasher().Verify(ctx, u.PasswordHash, secret)
	if err == nil && same {
		err = fault.New(fault.Unprocessable, "New password should be different from the old password.").
			WithCode("same_password")
	}

	return err
}

// isEmpty reports whether a text of a request counts as absent.
func isEmpty(s string) bool { return strings.TrimSpace(s) == "" }
