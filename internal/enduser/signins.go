package enduser

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/pg"
)

// AccountSession is an end user's session, as the platform's API shows it.
type AccountSession struct {
	UUID        uuid.UUID  `json:"uuid"`
	Level       string     `json:"level" enum:"aal1,aal2,aal3" doc:"aal2: with a second factor."`
	Methods     []string   `json:"methods" doc:"How the user signed in: password, otp, oauth, totp and others; the latest first."`
	UserAgent   *string    `json:"userAgent" nullable:"true"`
	Address     *string    `json:"address" nullable:"true" doc:"Address of the client that signed in."`
	ClientUUID  *uuid.UUID `json:"clientUuid" nullable:"true" doc:"OAuth client that has the session's tokens; null: your application."`
	RefreshedAt *time.Time `json:"refreshedAt" doc:"Last renewal of its tokens."`
	ExpiresAt   *time.Time `json:"expiresAt" doc:"End by the setting session_seconds."`
	CreatedAt   time.Time  `json:"createdAt"`
}

const accountSessionColumns = `
	s.id as uuid, s.aal as level, s.user_agent, host(s.ip) as address, s.oauth_client_id as client_uuid, s.refreshed_at,
	s.not_after as expires_at, s.created_at,
	array(select c.authentication_method from auth.mfa_amr_claims c where c.session_id = s.id
		order by c.updated_at desc, c.authentication_method) as methods `

// ListSessions returns a page of a user's sessions and their number. It fails with NotFound for an
// unknown user.
func (d *Directory) ListSessions(ctx context.Context, user uuid.UUID, page pg.Page) ([]AccountSession, int64, error) {
	if _, err := userByID(ctx, d.Rows(), user); err != nil {
		return nil, 0, err
	}

	return pg.List[AccountSession](ctx, d.Rows(), pg.Listing{
		Columns: accountSessionColumns,
		From:    `auth.sessions s where s.user_id = @user`,
		Sorts:   map[string]string{"createdAt": "s.created_at", "refreshedAt": "s.refreshed_at"},
		Tie:     "s.id",
	}, page, pgx.StrictNamedArgs{"user": user})
}

// EndSession ends one session of a user. Its access token stays valid to its end. It fails with
// NotFound for an unknown one.
func (d *Directory) EndSession(ctx context.Context, user, session uuid.UUID, c Client) (AccountSession, error) {
	var ended AccountSession
	err := d.Tx(ctx, "logging out user", func(ctx context.Context, tx pgx.Tx) error {
		u, err := userByID(ctx, tx, user)
		if err != nil {
			return err
		}

		ended, err = pg.One[AccountSession](ctx, tx, `
			select`+accountSessionColumns+`from auth.sessions s where s.id = @id and s.user_id = @user for update of s`,
			pgx.StrictNamedArgs{"id": session, "user": user})
		if err != nil {
			return err
		}
		if _, err := pg.Exec(ctx, tx, `delete from auth.sessions where id = @id`,
			pgx.StrictNamedArgs{"id": session}); err != nil {
			return err
		}

		return d.log(ctx, tx, "logout", u, c)
	})

	return ended, err
}

// AccountFactor is an end user's second factor, as the platform's API shows it.
type AccountFactor struct {
	UUID      uuid.UUID `json:"uuid"`
	Type      string    `json:"type" enum:"totp,phone,webauthn"`
	Status    string    `json:"status" enum:"verified,unverified" doc:"unverified: it does not count yet."`
	Name      string    `json:"name" doc:"Name that the user has given it."`
	Phone     string    `json:"phone" doc:"Digits of the number by E.164, without plus."`
	CreatedAt time.Time `json:"createdAt"`
	UpdatedAt time.Time `json:"updatedAt"`
}

// Account returns the factor as the platform's API shows it.
func (f Factor) Account() AccountFactor {
	return AccountFactor{UUID: f.ID, Type: f.FactorType, Status: f.Status, Name: f.FriendlyName, Phone: f.Phone,
		CreatedAt: f.CreatedAt, UpdatedAt: f.UpdatedAt}
}

// AccountPasskey is an end user's passkey, as the platform's API shows it.
type AccountPasskey struct {
	UUID       uuid.UUID  `json:"uuid"`
	Name       string     `json:"name" doc:"Name that the user or the authenticator has given it."`
	CreatedAt  time.Time  `json:"createdAt"`
	LastUsedAt *time.Time `json:"lastUsedAt" nullable:"true"`
}

// Account returns the passkey as the platform's API shows it.
func (p Passkey) Account() AccountPasskey {
	return AccountPasskey{UUID: p.ID, Name: p.FriendlyName, CreatedAt: p.CreatedAt, LastUsedAt: p.LastUsedAt}
}

// AccountIdentity is an account by which an end user signs in, as the platform's API shows it.
type AccountIdentity struct {
	UUID         uuid.UUID  `json:"uuid"`
	Provider     string     `json:"provider" doc:"email, phone, or the name of an identity provider."`
	ProviderID   string     `json:"providerId" doc:"Id of the user with the provider."`
	Email        *string    `json:"email" nullable:"true"`
	LastSignInAt *time.Time `json:"lastSignInAt"`
	CreatedAt    *time.Time `json:"createdAt"`
}

// ListIdentities returns a page of a user's identities and their number. It fails with NotFound for
// an unknown user.
func (d *Directory) ListIdentities(
	ctx context.Context, user uuid.UUID, page pg.Page,
) ([]AccountIdentity, int64, error) {
	if _, err := userByID(ctx, d.Rows(), user); err != nil {
		return nil, 0, err
	}

	return pg.List[AccountIdentity](ctx, d.Rows(), pg.Listing{
		Columns: `i.id as uuid, i.provider, i.provider_id, i.email, i.last_sign_in_at, i.created_at`,
		From:    `auth.identities i where i.user_id = @user`,
		Sorts:   map[string]string{"createdAt": "i.created_at", "provider": "i.provider"},
		Tie:     "i.id",
	}, page, pgx.StrictNamedArgs{"user": user})
}
