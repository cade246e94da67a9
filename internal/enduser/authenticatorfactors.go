package enduser

import (
	"context"
	"errors"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/webauthn"
)

// EnrollAuthenticator adds an authenticator as a factor, which counts once it was verified.
func (d *Directory) EnrollAuthenticator(ctx context.Context, who Identity, name string) (Factor, error) {
	if !d.WebAuthn.Factors {
		return Factor{}, fault.New(fault.Unprocessable, "MFA enroll is disabled for WebAuthn").
			WithCode("mfa_webauthn_enroll_not_enabled")
	}

	_, id, err := d.enroll(ctx, who, newFactor{Name: name, Type: factorWebAuthn})
	return Factor{ID: id, FriendlyName: name, FactorType: factorWebAuthn}, err
}

// VerifyAuthenticator is [Directory.VerifyFactor] with an authenticator's response: a new
// credential for an unverified factor, or an assertion.
func (d *Directory) VerifyAuthenticator(
	ctx context.Context, who Identity, factor, challenge uuid.UUID, r webauthn.Response, c Client,
) (Session, error) {
	s, err := d.verifyFactor(ctx, who, factor, challenge, c,
		func(ctx context.Context, tx pgx.Tx, f factorRow) (int64, error) {
			if f.FactorType != factorWebAuthn {
				return 0, errInvalid("the factor takes a code")
			}

			err := d.checkAuthenticator(ctx, tx, f, r, d.expected(challenge, false))
			if errors.Is(err, webauthn.ErrInvalid) {
				err = fault.New(fault.Unprocessable, "Invalid WebAuthn response").WithCode("mfa_verification_failed").
					WithCause(err)
			}

			return f.LastStep, err
		})

	return s, asKnownAuthenticator(err)
}

func (d *Directory) checkAuthenticator(
	ctx context.Context, tx pgx.Tx, f factorRow, r webauthn.Response, want webauthn.Expected,
) error {
	if f.Status != "verified" {
		credential, err := webauthn.Register(r, want)
		if err == nil {
			_, err = insertCredential(ctx, tx, f.UserID, someUUID(f.ID), credential, r.Response.Transports)
		}

		return err
	}

	row, err := pg.One[credentialRow](ctx, tx, `
		select`+credentialColumns+`from auth.webauthn_credentials c where c.factor_id = @factor for update`,
		pgx.StrictNamedArgs{"factor": f.ID})
	if err != nil {
		return err
	}

	return d.assert(ctx, tx, row, r, want)
}
