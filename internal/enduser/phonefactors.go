package enduser

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
)

// EnrollPhone adds a phone as a factor, which counts once a code of it was verified. It replaces an
// unverified one of the same number.
func (d *Directory) EnrollPhone(ctx context.Context, who Identity, name, number string) (Factor, error) {
	if !d.SMS.Factors {
		return Factor{}, fault.New(fault.Unprocessable, "MFA enroll is disabled for Phone").
			WithCode("mfa_phone_enroll_not_enabled")
	}

	phone, err := cleanPhone(number)
	if err != nil {
		return Factor{}, err
	}

	_, id, err := d.enroll(ctx, who, newFactor{Name: name, Type: factorPhone, Phone: phone})
	return Factor{ID: id, FriendlyName: name, FactorType: factorPhone, Phone: phone}, err
}

// prepareChallenge returns the number of a factor to which a challenge sends a message, which it
// counts, and "" for another factor.
func (d *Directory) prepareChallenge(
	ctx context.Context, who Identity, factor uuid.UUID, channel string, c Client,
) (string, error) {
	u, err := d.authenticate(ctx, d.q(), who)
	if err != nil {
		return "", err
	}

	f, err := pg.One[struct{ Phone, Status string }](ctx, d.q(), `
		select phone, status from auth.mfa_factors where id = @id and user_id = @user and factor_type = 'phone'`,
		pgx.StrictNamedArgs{"id": factor, "user": u.ID})
	switch {
	case fault.Is(err, fault.NotFound):
		return "", nil
	case err != nil:
		return "", err
	case !d.SMS.Factors:
		return "", fault.New(fault.Unprocessable, "MFA verification is disabled for Phone").
			WithCode("mfa_phone_verify_not_enabled")
	}

	if err := requireFactorLevel(u, f.Status); err != nil {
		return "", err
	}
	if err := d.checkChannel(channel); err != nil {
		return "", err
	}

	return f.Phone, d.countSMS(ctx, f.Phone, c)
}
