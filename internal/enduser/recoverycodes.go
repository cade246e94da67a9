package enduser

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/enduser/rules"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/token"
)

// methodRecoveryCode is the authentication method for a recovery code in access tokens.
const methodRecoveryCode = "recovery_code"

// recoveryKey returns the key for a user's recovery codes.
func (k keys) recoveryKey(user uuid.UUID) []byte { return token.Derive(k.factorKey, user.String()) }

// CreateRecoveryCodes replaces the signed-in user's recovery codes, and returns them. They are
// shown once. It fails with Unprocessable without a verified factor, and with Forbidden below the
// second level.
func (d *Directory) CreateRecoveryCodes(ctx context.Context, who Identity, c Client) ([]string, error) {
	var codes []string
	err := d.Tx(ctx, "creating recovery codes", func(ctx context.Context, tx pgx.Tx) error {
		u, err := d.authenticate(ctx, tx, who)
		switch {
		case err != nil:
			return err
		case !hasVerifiedFactor(u.User):
			return fault.New(fault.Unprocessable, "Recovery codes need a verified factor").
				WithCode("mfa_factor_not_found")
		case u.AAL != "aal2":
			return fault.New(fault.Forbidden, "AAL2 required to create recovery codes").WithCode("insufficient_aal")
		}

		var hashes [][]byte
		codes, hashes = token.NewRecoveryCodes(d.keys.recoveryKey(u.ID))

		// One replacement per user at a time, so that one set is left.
		if err := lockUser(ctx, tx, u.ID); err != nil {
			return err
		}
		if err := dropRecoveryCodes(ctx, tx, u.ID); err != nil {
			return err
		}
		if _, err := pg.Exec(ctx, tx, `
			insert into auth.mfa_recovery_codes (user_id, hash) select @user, unnest(@hashes::bytea[])`,
			pgx.StrictNamedArgs{"user": u.ID, "hashes": hashes}); err != nil {
			return err
		}

		return d.log(ctx, tx, "generate_recovery_codes", u.User, c)
	})

	return codes, err
}

// CountRecoveryCodes counts the signed-in user's unused recovery codes.
func (d *Directory) CountRecoveryCodes(ctx context.Context, who Identity) (int, error) {
	u, err := d.Authenticate(ctx, who)
	if err != nil {
		return 0, err
	}

	return pg.Value[int](ctx, d.Rows(), `select count(*)::int from auth.mfa_recovery_codes where user_id = @user`,
		pgx.StrictNamedArgs{"user": u.ID})
}

// UseRecoveryCode spends a recovery code and raises the session to the second level.
func (d *Directory) UseRecoveryCode(ctx context.Context, who Identity, code string, c Client) (Session, error) {
	if err := d.attempts.Count(ctx, rules.FactorLimit, who.User.String()); err != nil { // see VerifyFactor
		return Session{}, asRequestLimit(err)
	}

	var o unsignedSession
	err := d.Tx(ctx, "verifying recovery code", func(ctx context.Context, tx pgx.Tx) error {
		u, err := d.authenticate(ctx, tx, who)
		if err != nil {
			return err
		}

		n, err := pg.Exec(ctx, tx, `delete from auth.mfa_recovery_codes where user_id = @user and hash = @hash`,
			pgx.StrictNamedArgs{"user": u.ID, "hash": token.RecoveryHash(d.keys.recoveryKey(u.ID), code)})
		if err != nil {
			return err
		}
		if n == 0 {
			return fault.New(fault.Unprocessable, "Invalid recovery code entered").WithCode("mfa_verification_failed")
		}

		if err := d.log(ctx, tx, "recovery_code_used", u.User, c); err != nil {
			return err
		}

		o, err = d.raiseLevel(ctx, tx, u.ID, who, uuid.NullUUID{}, methodRecoveryCode, c)
		return err
	})
	if err != nil {
		return Session{}, err
	}

	return d.signRaised(ctx, o)
}

// dropRecoveryCodes deletes a user's recovery codes.
func dropRecoveryCodes(ctx context.Context, tx pgx.Tx, user uuid.UUID) error {
	_, err := pg.Exec(ctx, tx, `delete from auth.mfa_recovery_codes where user_id = @user`,
		pgx.StrictNamedArgs{"user": user})
	return err
}
