package enduser

import (
	"bytes"
	"context"
	"errors"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/webauthn"
)

const (
	maxPasskeys   = 10 // per user
	methodPasskey = "passkey"
)

// Passkey challenge types.
const (
	registration   = "registration"
	authentication = "authentication"
)

// Passkey is a user's passkey.
type Passkey struct {
	ID           uuid.UUID  `json:"id"`
	FriendlyName string     `json:"friendly_name,omitempty"`
	CreatedAt    time.Time  `json:"created_at"`
	LastUsedAt   *time.Time `json:"last_used_at,omitempty"`
}

const passkeyColumns = ` c.id, c.friendly_name, c.created_at, c.last_used_at `

// PasskeyOptions are the request to a browser.
type PasskeyOptions struct {
	ChallengeID uuid.UUID `json:"challenge_id"`
	Options     any       `json:"options"`
	ExpiresAt   int64     `json:"expires_at"` // seconds since 1970
}

func errPasskeysDisabled() error {
	return fault.New(fault.Unprocessable, "Passkeys are disabled").WithCode("passkey_disabled")
}

func errPasskeyNotFound() error {
	return fault.New(fault.NotFound, "Passkey not found").WithCode("webauthn_credential_not_found")
}

// errPasskey is the failure for a response to a passkey challenge. An unknown credential fails like
// a wrong signature.
func errPasskey(err error) error {
	if !errors.Is(err, webauthn.ErrInvalid) {
		return err
	}

	return fault.New(fault.Invalid, "The passkey could not be verified").WithCode("webauthn_verification_failed").
		WithCause(err)
}

// StartPasskeyRegistration begins to register a passkey for the signed-in user.
func (d *Directory) StartPasskeyRegistration(ctx context.Context, who Identity, c Client) (PasskeyOptions, error) {
	u, err := d.passkeyOwner(ctx, d.Rows(), who)
	if err != nil {
		return PasskeyOptions{}, err
	}
	if err := d.CountRequest(ctx, d.CheckLimit(), c); err != nil {
		return PasskeyOptions{}, err
	}

	rows, err := pg.All[credentialRow](ctx, d.Rows(), `
		select`+credentialColumns+`from auth.webauthn_credentials c where c.user_id = @user and c.factor_id is null`,
		pgx.StrictNamedArgs{"user": u.ID})
	if err != nil {
		return PasskeyOptions{}, err
	}

	id, err := d.passkeyChallenge(ctx, registration, someUUID(u.ID))
	return PasskeyOptions{ChallengeID: id, ExpiresAt: now().Add(challengeTTL).Unix(),
		Options: d.creationOptions(u, id, rows, webauthn.Selection{ResidentKey: "required", RequireResidentKey: true,
			UserVerification: "required"})}, err
}

// passkeyOwner returns the signed-in user. It fails unless they may change their passkeys.
func (d *Directory) passkeyOwner(ctx context.Context, q pg.Querier, who Identity) (User, error) {
	if !d.WebAuthn.Passkeys {
		return User{}, errPasskeysDisabled()
	}

	u, err := d.authenticate(ctx, q, who)
	switch {
	case err != nil:
		return User{}, err
	case u.IsAnonymous:
		return User{}, fault.New(fault.Unprocessable, "A passkey needs a user with an email or a phone number").
			WithCode("validation_failed")
	case hasVerifiedFactor(u.User) && u.AAL != "aal2":
		return User{}, fault.New(fault.Forbidden, "AAL2 required to change passkeys").WithCode("insufficient_aal")
	}

	return u.User, nil
}

// passkeyChallenge inserts a challenge.
func (d *Directory) passkeyChallenge(ctx context.Context, kind string, user uuid.NullUUID) (uuid.UUID, error) {
	id := newID()
	_, err := pg.Exec(ctx, d.Rows(), `
		insert into auth.webauthn_challenges (id, user_id, challenge_type) values (@id, @user, @type)`,
		pgx.StrictNamedArgs{"id": id, "user": user, "type": kind})
	return id, err
}

// spendPasskeyChallenge deletes a challenge, also one whose response turns out to be invalid. It
// fails with Invalid for an unknown, used or expired one, and for another user's.
func (d *Directory) spendPasskeyChallenge(ctx context.Context, id uuid.UUID, kind string, user uuid.NullUUID) error {
	n, err := pg.Exec(ctx, d.Rows(), `
		delete from auth.webauthn_challenges where id = @id and challenge_type = @type
			and user_id is not distinct from @user::uuid and created_at > now() - @age::interval`,
		pgx.StrictNamedArgs{"id": id, "type": kind, "user": user, "age": challengeTTL})
	if err == nil && n == 0 {
		err = fault.New(fault.Invalid, "WebAuthn challenge not found or expired").
			WithCode("webauthn_challenge_not_found")
	}

	return err
}

// FinishPasskeyRegistration adds a passkey for the signed-in user.
func (d *Directory) FinishPasskeyRegistration(
	ctx context.Context, who Identity, challenge uuid.UUID, r webauthn.Response, c Client,
) (Passkey, error) {
	u, err := d.passkeyOwner(ctx, d.Rows(), who)
	if err != nil {
		return Passkey{}, err
	}
	if err := d.spendPasskeyChallenge(ctx, challenge, registration, someUUID(u.ID)); err != nil {
		return Passkey{}, err
	}

	credential, err := webauthn.Register(r, d.expected(challenge, true))
	if err != nil {
		return Passkey{}, errPasskey(err)
	}

	var result Passkey
	err = d.Tx(ctx, "adding passkey", func(ctx context.Context, tx pgx.Tx) error {
		if _, err := d.passkeyOwner(ctx, tx, who); err != nil {
			return err
		}

		// One registration per user at a time, so that the count holds.
		if err := lockUser(ctx, tx, u.ID); err != nil {
			return err
		}
		n, err := pg.Value[int](ctx, tx, `
			select count(*)::int from auth.webauthn_credentials where user_id = @user and factor_id is null`,
			pgx.StrictNamedArgs{"user": u.ID})
		if err != nil {
			return err
		}
		if n >= maxPasskeys {
			return fault.New(fault.Unprocessable, "Maximum number of passkeys reached").WithCode("too_many_passkeys")
		}

		id, err := insertCredential(ctx, tx, u.ID, uuid.NullUUID{}, credential, r.Response.Transports)
		if err != nil {
			return err
		}
		if err := d.log(ctx, tx, "passkey_created", u, c); err != nil {
			return err
		}

		result, err = pg.One[Passkey](ctx, tx, `select`+passkeyColumns+`from auth.webauthn_credentials c where c.id = @id`,
			pgx.StrictNamedArgs{"id": id})
		return err
	})

	return result, asKnownAuthenticator(err)
}

// StartPasskeySignIn begins a sign-in. The passkey says who the user is.
func (d *Directory) StartPasskeySignIn(ctx context.Context, c Client) (PasskeyOptions, error) {
	if !d.WebAuthn.Passkeys {
		return PasskeyOptions{}, errPasskeysDisabled()
	}
	if err := d.CountRequest(ctx, d.CheckLimit(), c); err != nil {
		return PasskeyOptions{}, err
	}

	id, err := d.passkeyChallenge(ctx, authentication, uuid.NullUUID{})
	return PasskeyOptions{ChallengeID: id, ExpiresAt: now().Add(challengeTTL).Unix(),
		Options: d.requestOptions(id, nil, "required")}, err
}

// FinishPasskeySignIn opens a session for a passkey's user.
func (d *Directory) FinishPasskeySignIn(
	ctx context.Context, challenge uuid.UUID, r webauthn.Response, c Client,
) (Session, error) {
	if !d.WebAuthn.Passkeys {
		return Session{}, errPasskeysDisabled()
	}
	if err := d.CountRequest(ctx, d.SignInLimit(), c); err != nil {
		return Session{}, err
	}
	if err := d.spendPasskeyChallenge(ctx, challenge, authentication, uuid.NullUUID{}); err != nil {
		return Session{}, err
	}

	s, err := d.signIn(ctx, "granting user", func(ctx context.Context, tx pgx.Tx) (unsignedSession, error) {
		row, err := pg.One[credentialRow](ctx, tx, `
			select`+credentialColumns+`from auth.webauthn_credentials c
			where c.credential_id = @id and c.factor_id is null for update`,
			pgx.StrictNamedArgs{"id": []byte(r.RawID)})
		if fault.Is(err, fault.NotFound) {
			return unsignedSession{}, webauthn.ErrCredential
		}
		if err != nil {
			return unsignedSession{}, err
		}

		if !bytes.Equal(r.Response.UserHandle, row.UserID[:]) {
			return unsignedSession{}, webauthn.ErrCredential
		}
		if err := d.assert(ctx, tx, row, r, d.expected(challenge, true)); err != nil {
			return unsignedSession{}, err
		}
		if err := d.checkSignIn(ctx, tx, row.UserID); err != nil {
			return unsignedSession{}, err
		}

		return d.openSession(ctx, tx, row.UserID, methodPasskey, c)
	})

	return s, errPasskey(err)
}

// ListPasskeys returns a user's passkeys.
func (d *Directory) ListPasskeys(ctx context.Context, user uuid.UUID) ([]Passkey, error) {
	if _, err := userByID(ctx, d.Rows(), user); err != nil {
		return nil, err
	}

	return pg.All[Passkey](ctx, d.Rows(), `
		select`+passkeyColumns+`from auth.webauthn_credentials c where c.user_id = @user and c.factor_id is null order by c.created_at`,
		pgx.StrictNamedArgs{"user": user})
}

// OwnPasskeys returns the signed-in user's passkeys.
func (d *Directory) OwnPasskeys(ctx context.Context, who Identity) ([]Passkey, error) {
	u, err := d.Authenticate(ctx, who)
	if err != nil {
		return nil, err
	}

	return d.ListPasskeys(ctx, u.ID)
}

// RenamePasskey renames the signed-in user's passkey.
func (d *Directory) RenamePasskey(ctx context.Context, who Identity, id uuid.UUID, name string) (Passkey, error) {
	if len(name) > maxFriendlyName {
		return Passkey{}, errInvalid("friendly_name must have at most %d bytes", maxFriendlyName)
	}

	u, err := d.passkeyOwner(ctx, d.Rows(), who)
	if err != nil {
		return Passkey{}, err
	}

	result, err := pg.One[Passkey](ctx, d.Rows(), `
		update auth.webauthn_credentials c set friendly_name = @name, updated_at = now()
		where c.id = @id and c.user_id = @user and c.factor_id is null
		returning`+passkeyColumns, pgx.StrictNamedArgs{"id": id, "user": u.ID, "name": name})
	if fault.Is(err, fault.NotFound) {
		err = errPasskeyNotFound()
	}

	return result, err
}

// RemovePasskey removes the signed-in user's passkey.
func (d *Directory) RemovePasskey(ctx context.Context, who Identity, id uuid.UUID, c Client) error {
	u, err := d.passkeyOwner(ctx, d.Rows(), who)
	if err != nil {
		return err
	}

	_, err = d.DeletePasskey(ctx, u.ID, id, c)
	return err
}

// DeletePasskey removes a user's passkey for a project administrator, and returns it.
func (d *Directory) DeletePasskey(ctx context.Context, user, id uuid.UUID, c Client) (Passkey, error) {
	var deleted Passkey
	err := d.Tx(ctx, "deleting passkey", func(ctx context.Context, tx pgx.Tx) error {
		u, err := userByID(ctx, tx, user)
		if err != nil {
			return err
		}

		deleted, err = pg.One[Passkey](ctx, tx, `
			delete from auth.webauthn_credentials c where c.id = @id and c.user_id = @user and c.factor_id is null
			returning`+passkeyColumns, pgx.StrictNamedArgs{"id": id, "user": user})
		if fault.Is(err, fault.NotFound) {
			return errPasskeyNotFound()
		}
		if err != nil {
			return err
		}

		return d.log(ctx, tx, "passkey_deleted", u, c)
	})

	return deleted, err
}
