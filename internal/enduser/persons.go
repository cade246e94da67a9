package enduser

import (
	"context"
	"encoding/json"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/idp"
	"github.com/socle-dev/socle/internal/pg"
)

// IDTokenSignIn is a sign-in with an ID token that the application has from a provider.
type IDTokenSignIn struct {
	Provider    string
	IDToken     string
	AccessToken string // "": unknown
	Nonce       string
	Linking     *Identity // signed-in user who adds the identity; nil: sign-in
}

// SignInWithIDToken opens a session for the person in an ID token, see [Directory.userOf].
func (d *Directory) SignInWithIDToken(ctx context.Context, in IDTokenSignIn, c Client) (Session, error) {
	p := d.Providers[in.Provider]
	switch {
	case in.IDToken == "":
		return Session{}, errInvalid("id_token required")
	case in.Provider == "":
		return Session{}, errInvalid("provider or client_id and issuer required")
	case !p.Enabled:
		return Session{}, fault.New(fault.Invalid, "Provider (issuer %q) is not enabled", in.Provider).
			WithCode("provider_disabled")
	}

	if err := d.CountRequest(ctx, d.SignInLimit(), c); err != nil {
		return Session{}, err
	}

	who, err := d.service.Providers.Verify(ctx, d.Key(ctx),
		d.ProviderConfig(in.Provider), idp.Given{IDToken: in.IDToken, AccessToken: in.AccessToken, Nonce: in.Nonce})
	if err != nil {
		return Session{}, d.providerFailure(in.Provider, err)
	}

	var o unsignedSession
	err = d.txFinding(ctx, "saving new user", c, func(ctx context.Context, tx pgx.Tx, admit admission) error {
		id, err := d.userOf(ctx, tx, in.Provider, who, in.Linking, admit, c)
		if err == nil {
			o, err = d.openSession(ctx, tx, id, "oauth", c)
		}

		return err
	})
	if err != nil {
		return Session{}, err
	}

	return d.signNew(ctx, o)
}

// userOf returns the user for a person at a provider: the signed-in user who adds the identity, see
// [Directory.link], or the result of [Directory.userOfPerson]. It fails for a user who may not sign
// in.
func (d *Directory) userOf(
	ctx context.Context, tx pgx.Tx, provider string, who idp.Identity, linking *Identity, admit admission, c Client,
) (uuid.UUID, error) {
	var id uuid.UUID
	var err error
	if linking != nil {
		id, err = d.link(ctx, tx, *linking, provider, who, c)
	} else {
		id, err = d.userOfPerson(ctx, tx, provider, who, admit, c)
	}
	if err != nil {
		return id, err
	}

	return id, d.checkSignIn(ctx, tx, id)
}

// userOfPerson returns the user with a person's identity or verified address, or a new one. Their
// metadata get the profile.
func (d *Directory) userOfPerson(
	ctx context.Context, tx pgx.Tx, provider string, who idp.Identity, admit admission, c Client,
) (uuid.UUID, error) {
	data, err := json.Marshal(who.Data)
	if err != nil {
		return uuid.Nil, err
	}

	id, err := pg.Value[uuid.UUID](ctx, tx, `
		select user_id from auth.identities where provider = @provider and provider_id = @subject`,
		pgx.StrictNamedArgs{"provider": provider, "subject": who.Subject})
	if fault.Is(err, fault.NotFound) {
		id, err = d.userOfAddress(ctx, tx, provider, who, admit, c)
	}
	if err != nil {
		return id, err
	}

	if err := saveIdentity(ctx, tx, id, provider, who.Subject, string(data)); err != nil {
		return id, err
	}

	return id, mergeUserMetadata(ctx, tx, id, data)
}

// userOfAddress returns the user with a person's verified address, or a new one.
func (d *Directory) userOfAddress(
	ctx context.Context, tx pgx.Tx, provider string, who idp.Identity, admit admission, c Client,
) (uuid.UUID, error) {
	email, err := cleanEmail(who.Email)
	if err != nil {
		return uuid.Nil, fault.New(fault.Invalid, "Error getting user email from external provider").
			WithCode("validation_failed")
	}

	// An unverified address says nothing about who the person is: it leads to no other user, and
	// whether it is taken stays unknown.
	if !who.EmailVerified {
		return uuid.Nil, fault.New(fault.Unprocessable,
			"Unverified email with %s. Verify the email with %s in order to sign in", provider, provider).
			WithCode("provider_email_needs_verification")
	}

	u, err := userByEmail(ctx, tx, email)
	switch {
	case err == nil && u.EmailConfirmedAt == nil:
		return u.ID, d.takeOver(ctx, tx, u, proof{})
	case err == nil:
		return u.ID, nil
	case !fault.Is(err, fault.NotFound):
		return uuid.Nil, err
	case !d.Settings.SignUp:
		return uuid.Nil, errSignUpDisabled()
	}

	n := newUser{Email: email, AppMetadata: providers(provider), UserMetadata: providers(), Confirmed: true,
		Provider: provider}
	u, err = d.admitUser(ctx, tx, n, admit, c)
	return u.ID, err
}
