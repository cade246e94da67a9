package enduser

import (
	"context"
	"errors"
	"slices"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/webauthn"
)

// EnrollAuthenticator adds a factor of an authenticator, which counts once it was verified.
func (d *Directory) EnrollAuthenticator(ctx context.Context, who Identity, name string) (Factor, error) {
	if !d.WebAuthn.Factors {
		return Factor{}, fault.New(fault.Unprocessable, "MFA enroll is disabled for WebAuthn").
			WithCode("mfa_webauthn_enroll_not_enabled")
	}

	_, id, err := d.enroll(ctx, who, newFactor{Name: name, Type: factorWebAuthn})
	return Factor{ID: id, FriendlyName: name, FactorType: factorWebAuthn}, err
}

// AuthenticatorChallenge is the request to a browser: for a new credential of an unverified factor,
// or an assertion.
type AuthenticatorChallenge struct {
	Type    string `json:"type"` // create or request
	Options struct {
		PublicKey any `json:"publicKey"`
	} `json:"credential_options"`
}

// CheckRelyingParty fails with Invalid for a relying party of a client that is not the project's.
// Empty ones stand for the project's.
func (d *Directory) CheckRelyingParty(id string, origins []string) error {
	rp := d.relyingParty()
	if id != "" && id != rp.ID {
		return errInvalid("rpId must be %s", rp.ID)
	}

	for _, origin := range origins {
		if !slices.Contains(rp.Origins, origin) {
			return errInvalid("rpOrigins must be origins of the project's settings")
		}
	}

	return nil
}

// authenticatorChallenge returns the request to a browser for a challenge of a factor.
func (d *Directory) authenticatorChallenge(
	ctx context.Context, tx pgx.Tx, u User, f factorRow, challenge uuid.UUID,
) (*AuthenticatorChallenge, error) {
	if !d.WebAuthn.Factors {
		return nil, fault.New(fault.Unprocessable, "MFA verification is disabled for WebAuthn").
			WithCode("mfa_webauthn_verify_not_enabled")
	}

	rows, err := pg.All[credentialRow](ctx, tx, `
		select`+credentialColumns+`from auth.webauthn_credentials c
		where c.user_id = @user and c.factor_id is not null and (@verified = false or c.factor_id = @factor)`,
		pgx.StrictNamedArgs{"user": u.ID, "factor": f.ID, "verified": f.Status == "verified"})
	if err != nil {
		return nil, err
	}

	a := &AuthenticatorChallenge{Type: "create"}
	a.Options.PublicKey = d.creationOptions(u, challenge, rows,
		webauthn.Selection{ResidentKey: "discouraged", UserVerification: "preferred"})
	if f.Status == "verified" {
		a.Type, a.Options.PublicKey = "request", d.requestOptions(challenge, rows, "preferred")
	}

	return a, nil
}

// VerifyAuthenticator is [Directory.VerifyFactor] with the response of an authenticator: a new
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
		created, err := webauthn.Register(r, want)
		if err == nil {
			_, err = insertCredential(ctx, tx, f.UserID, someUUID(f.ID), created, r.Response.Transports)
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
