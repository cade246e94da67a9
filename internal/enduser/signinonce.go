package enduser

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/socle-dev/socle/internal/fault"
)

// SignInOnce opens a session by a password and, for a user with a second factor, a code of an
// authenticator app or a recovery code. The caller ends it. It fails like [Directory.Login].
func (d *Directory) SignInOnce(ctx context.Context, address, secret, code string, c Client) (Identity, error) {
	s, err := d.Login(ctx, address, secret, c)
	if err != nil {
		return Identity{}, err
	}

	who := Identity{User: s.User.ID, Session: s.id}
	if !hasVerifiedFactor(s.User) {
		return who, nil
	}

	if err := d.useSecondFactor(ctx, who, s.User, code, c); err != nil {
		return Identity{}, errors.Join(err, d.Logout(context.WithoutCancel(ctx), who, ScopeLocal, c))
	}

	return who, nil
}

// useSecondFactor raises a session by a code.
func (d *Directory) useSecondFactor(ctx context.Context, who Identity, u User, code string, c Client) error {
	refuse := func(text string) error { return fault.OnField(fault.Unprocessable, "code", "required", "%s", text) }
	if code == "" {
		return refuse("is necessary: your account has a second factor")
	}
	if len(code) > totpDigits {
		_, err := d.UseRecoveryCode(ctx, who, code, c)
		return err
	}

	var factors []Factor
	if err := json.Unmarshal(u.Factors, &factors); err != nil {
		return err
	}

	err := refuse("must be a recovery code: your account has no authenticator app")
	for _, f := range factors {
		if f.FactorType != factorTOTP || f.Status != "verified" {
			continue
		}

		challenged, failed := d.ChallengeFactor(ctx, who, f.ID, "", c)
		if failed != nil {
			return failed
		}
		if _, err = d.VerifyFactor(ctx, who, f.ID, challenged.ID, code, c); err == nil {
			return nil
		}
	}

	return err
}

// totpDigits is the length of the codes of authenticator apps. Recovery codes are longer.
const totpDigits = 6
