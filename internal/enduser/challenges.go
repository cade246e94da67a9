package enduser

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
)

// Challenged is a factor's challenge.
type Challenged struct {
	ID            uuid.UUID
	Type          string // factor type
	ExpiresAt     time.Time
	Authenticator *AuthenticatorChallenge // nil for another type
}

// ChallengeFactor prepares to check a factor's code. A phone gets a message by a channel: sms, the
// default, or whatsapp.
func (d *Directory) ChallengeFactor(
	ctx context.Context, who Identity, factor uuid.UUID, channel string, c Client,
) (Challenged, error) {
	phone, err := d.prepareChallenge(ctx, who, factor, channel, c)
	if err != nil {
		return Challenged{}, err
	}

	id := newID()
	var f factorRow
	var authenticator *AuthenticatorChallenge
	err = d.Tx(ctx, "creating challenge", func(ctx context.Context, tx pgx.Tx) error {
		u, err := d.authenticate(ctx, tx, who)
		if err != nil {
			return err
		}
		if f, err = findFactor(ctx, tx, u.ID, factor); err != nil {
			return err
		}
		if err := requireFactorLevel(u, f.Status); err != nil {
			return err
		}

		address := "::"
		if c.Address.IsValid() {
			address = c.Address.String()
		}

		// Expired ones make room.
		if _, err := pg.Exec(ctx, tx, `delete from auth.mfa_challenges where factor_id = @factor and created_at < now() - @age::interval`,
			pgx.StrictNamedArgs{"factor": factor, "age": challengeTTL}); err != nil {
			return err
		}

		n, err := pg.Exec(ctx, tx, `
			insert into auth.mfa_challenges (id, factor_id, ip_address)
			select @id, @factor, @address::text::inet where (select count(*) from auth.mfa_challenges where factor_id = @factor) < @most::bigint`,
			pgx.StrictNamedArgs{"id": id, "factor": factor, "address": address, "most": maxChallenges})
		if err == nil && n == 0 {
			err = &fault.Error{Kind: fault.TooMany, Code: "over_request_rate_limit",
				Detail:     "Request rate limit reached",
				RetryAfter: challengeTTL}
		}
		if err == nil && f.FactorType == factorWebAuthn {
			authenticator, err = d.authenticatorChallenge(ctx, tx, u.User, f, id)
		}

		return err
	})
	if err == nil && phone != "" {
		err = d.enqueueSMS(ctx, smsArgs{Project: d.UUID, Phone: phone, Challenge: someUUID(id), Channel: channel})
	}

	return Challenged{ID: id, Type: f.FactorType, ExpiresAt: now().Add(challengeTTL),
		Authenticator: authenticator}, err
}

// prepareChallenge returns the factor's number to which a challenge sends a message, which it
// counts, and "" for another factor.
func (d *Directory) prepareChallenge(
	ctx context.Context, who Identity, factor uuid.UUID, channel string, c Client,
) (string, error) {
	u, err := d.authenticate(ctx, d.Rows(), who)
	if err != nil {
		return "", err
	}

	f, err := pg.One[struct{ Phone, Status string }](ctx, d.Rows(), `
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
