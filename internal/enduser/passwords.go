package enduser

import (
	"context"
	"errors"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/enduser/rules"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/password"
	"github.com/socle-dev/socle/internal/pg"
)

// hasher returns the password hasher for a request to the project.
func (d *Directory) hasher(ctx context.Context) *password.Hasher {
	return d.service.Passwords.For(d.Key(ctx))
}

// passwordHash returns the hash for a reference, "" for an unknown one. The auth login runs user
// code and can't read hashes, so the platform's login reads and replaces them, by statements of its
// own.
func (d *Directory) passwordHash(ctx context.Context, reference string) (string, error) {
	return pg.Value[string](ctx, d.db.Trusted(), `
		select coalesce((select p.hash from auth.passwords p where p.reference = @reference), '')`,
		pgx.StrictNamedArgs{"reference": reference})
}

// verifyPassword reports whether a stored hash is the password's. A hash that is malformed or too
// costly, which a project's owner may have written by SQL, matches nothing and takes the time of an
// unknown account.
func (d *Directory) verifyPassword(ctx context.Context, hash, secret string) (bool, error) {
	ok, err := d.hasher(ctx).Verify(ctx, hash, secret)
	if errors.Is(err, password.ErrMalformed) {
		return d.hasher(ctx).Verify(ctx, "", secret)
	}

	return ok, err
}

// hashPassword hashes a new password. It fails with Unprocessable, code weak_password.
func (d *Directory) hashPassword(ctx context.Context, secret string) (string, error) {
	if err := d.CheckPassword(secret); err != nil {
		return "", err
	}
	if d.LeakedPasswordCheck && d.isLeaked(ctx, secret) {
		return "", rules.WeakPassword("Password is known to be weak and easy to guess, please choose a different one.", "pwned")
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

// samePassword fails with Unprocessable if a new password is the present one.
func (d *Directory) samePassword(ctx context.Context, u User, secret string) error {
	if u.PasswordReference == "" {
		return nil
	}

	hash, err := d.passwordHash(ctx, u.PasswordReference)
	if err != nil {
		return err
	}

	same, err := d.verifyPassword(ctx, hash, secret)
	if err == nil && same {
		err = fault.New(fault.Unprocessable, "New password should be different from the old password.").
			WithCode("same_password")
	}

	return err
}

// setPassword changes a password hash.
func setPassword(ctx context.Context, tx pgx.Tx, id uuid.UUID, hash string) error {
	_, err := pg.Exec(ctx, tx, `
		update auth.users set encrypted_password = auth.store_password(@hash), updated_at = now() where id = @id`,
		pgx.StrictNamedArgs{"id": id, "hash": hash})
	return err
}

// rehash replaces an imported user's hash, after the password was verified. The password is the
// same: the reference stays, and with it all that depends on the password.
func (d *Directory) rehash(ctx context.Context, reference, old, secret string) error {
	newHash, err := d.hasher(ctx).Hash(ctx, secret)
	if err != nil {
		return err
	}

	_, err = pg.Exec(ctx, d.db.Trusted(), `
		update auth.passwords set hash = @new where reference = @reference and hash = @old`,
		pgx.StrictNamedArgs{"reference": reference, "old": old, "new": newHash})
	return err
}

// isEmpty reports whether a request's text counts as absent.
func isEmpty(s string) bool { return strings.TrimSpace(s) == "" }
