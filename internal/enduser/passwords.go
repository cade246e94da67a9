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

// hasher returns the hasher of passwords for a request to the project.
func (d *Directory) hasher(ctx context.Context) *password.Hasher {
	return d.service.Passwords.For(d.Key(ctx))
}

// hashPassword returns the hash of a new password. It fails with Unprocessable, code weak_password.
func (d *Directory) hashPassword(ctx context.Context, secret string) (string, error) {
	if err := d.checkPassword(secret); err != nil {
		return "", err
	}
	if d.LeakedPasswordCheck && d.isLeaked(ctx, secret) {
		return "", weakPassword("Password is known to be weak and easy to guess, please choose a different one.", "pwned")
	}

	return d.hasher(ctx).Hash(ctx, secret)
}

// isLeaked reports whether a password is known from a leak. Without an answer it is not.
func (d *Directory) isLeaked(ctx context.Context, secret string) bool {
	leaked, err := d.service.Leaked.Contains(ctx, d.Key(ctx), secret)
	if err != nil {
		d.service.Log.Warn("leaked passwords could not be checked", "project", d.UUID, "error", err)
	}

	return leaked
}

// checkPassword checks a new password by the rules of the project's settings. Rules of platform
// accounts do not apply.
func (d *Directory) checkPassword(secret string) error {
	var texts, reasons []string
	if err := d.service.Passwords.WithMin(d.PasswordMinLength).CheckLength(secret); err != nil {
		if fault.Of(err).Code != "too_short" {
			return errInvalid("Password is too long")
		}

		texts = append(texts, fmt.Sprintf("Password should be at least %d characters.", d.PasswordMinLength))
		reasons = append(reasons, "length")
	}
	if missing := d.missingCharacters(secret); missing != "" {
		texts, reasons = append(texts, missing), append(reasons, "characters")
	}

	if len(reasons) > 0 {
		return weakPassword(strings.Join(texts, " "), reasons...)
	}

	return nil
}

// characterSets are the sets of characters that a project can require.
var characterSets = map[string]string{
	"lower":  "abcdefghijklmnopqrstuvwxyz",
	"upper":  "ABCDEFGHIJKLMNOPQRSTUVWXYZ",
	"letter": "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ",
	"digit":  "0123456789",
	"symbol": "!@#$%^&*()_+-=[]{};'\\:\"|<>?,./`~",
}

// missingCharacters returns a sentence about the required sets if a password lacks one, or "".
func (s *Settings) missingCharacters(password string) string {
	var sets []string
	missing := false
	for _, name := range s.PasswordRequiredCharacters {
		sets = append(sets, characterSets[name])
		missing = missing || !strings.ContainsAny(password, characterSets[name])
	}
	if !missing {
		return ""
	}

	return "Password should contain at least one character of each: " + strings.Join(sets, ", ") + "."
}

// validatePasswords checks the settings about characters of passwords.
func (s *Settings) validatePasswords() error {
	if s.PasswordRequiredCharacters == nil {
		s.PasswordRequiredCharacters = []string{}
	}
	for _, name := range s.PasswordRequiredCharacters {
		if characterSets[name] == "" || len(s.PasswordRequiredCharacters) > len(characterSets) {
			return fault.OnField(fault.Unprocessable, "password_required_characters", "unknown",
				"must be some of lower, upper, letter, digit, symbol")
		}
	}

	return nil
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

	same, err := d.hasher(ctx).Verify(ctx, u.PasswordHash, secret)
	if err == nil && same {
		err = fault.New(fault.Unprocessable, "New password should be different from the old password.").
			WithCode("same_password")
	}

	return err
}

// isEmpty reports whether a text of a request counts as absent.
func isEmpty(s string) bool { return strings.TrimSpace(s) == "" }
