package enduser

import (
	"context"
	"net/url"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/idp"
	"github.com/socle-dev/socle/internal/token"
)

// Departure is a browser's way to a provider. The browser keeps the binding as a cookie.
type Departure struct {
	URL       string
	Binding   string // value for [OAuthFlow.BindingName]
	Flow      OAuthFlow
	CrossSite bool // the provider's page posts a form, to which the cookie must go
}

// Depart sends a flow's browser to the provider. parameters are the application's for the provider.
// It fails with TooMany beyond the sign-in limit, and with Invalid if the provider is unreachable
// or the flow's link was opened before.
func (d *Directory) Depart(
	ctx context.Context, f OAuthFlow, parameters url.Values, c Client,
) (Departure, error) {
	if err := d.CountRequest(ctx, d.SignInLimit(), c); err != nil {
		return Departure{}, err
	}

	config, err := d.oauthProvider(f.Provider)
	if err != nil {
		return Departure{}, err
	}

	if f.Linking != nil {
		if err := d.openLink(ctx, &f); err != nil {
			return Departure{}, err
		}
	}

	f.Opened = true
	state, err := d.seal(f)
	if err != nil {
		return Departure{}, err
	}

	address, err := d.service.Providers.AuthCodeURL(ctx, d.Key(ctx), config, d.protocol(f, state), parameters)
	if err != nil {
		return Departure{}, d.providerFailure(f.Provider, err)
	}

	return Departure{URL: address, Binding: token.Link(d.keys.linkKey, bindingPurpose, f.ID), Flow: f,
		CrossSite: idp.PostsForm(f.Provider)}, nil
}

// Return is a browser that comes back from a provider.
type Return struct {
	Binding            string // flow cookie's value
	Code               string
	Person             string // see [idp.Answer]
	Error, Description string // failure that the provider reports instead of a code
}

// FinishFlow opens a session for the person who comes back from a provider, or returns a PKCE
// flow's authorization code. A flow succeeds once, in the browser that began it.
func (d *Directory) FinishFlow(ctx context.Context, f OAuthFlow, in Return, c Client) (Verified, error) {
	id, ok := token.ParseLink(d.keys.linkKey, bindingPurpose, in.Binding)
	switch {
	case !ok || id != f.ID:
		return Verified{}, errState("OAuth state belongs to another browser or was used")
	case time.Now().After(f.Ends):
		return Verified{}, errState("OAuth state has expired")
	case in.Error != "":
		return Verified{}, errAnswer(in.Error, in.Description)
	case in.Code == "":
		return Verified{}, fault.New(fault.Invalid, "OAuth callback with missing authorization code").
			WithCode("bad_oauth_callback")
	}

	config, err := d.oauthProvider(f.Provider)
	if err != nil {
		return Verified{}, err
	}
	if err := d.CountRequest(ctx, d.CheckLimit(), c); err != nil {
		return Verified{}, err
	}

	who, err := d.service.Providers.Exchange(ctx, d.Key(ctx), config, d.protocol(f, ""),
		idp.Answer{Code: in.Code, Person: in.Person})
	if err != nil {
		return Verified{}, d.providerFailure(f.Provider, err)
	}

	var result Verified
	err = d.txFinding(ctx, "saving new user", c, func(ctx context.Context, tx pgx.Tx, admit admission) error {
		if err := spendFlow(ctx, tx, f.ID); err != nil {
			return err
		}

		result, err = d.finish(ctx, tx, f, who, admit, c)
		return err
	})
	if err != nil || result.unsigned == nil {
		return result, err
	}

	s, err := d.signNew(ctx, *result.unsigned)
	result.Session = &s

	return result, err
}

// finish opens a person's session, or creates the authorization code.
func (d *Directory) finish(
	ctx context.Context, tx pgx.Tx, f OAuthFlow, who idp.Identity, admit admission, c Client,
) (Verified, error) {
	user, err := d.userOf(ctx, tx, f.Provider, who, f.Linking, admit, c)
	if err != nil {
		return Verified{}, err
	}

	if f.Challenge.Code != "" {
		code, err := d.createProviderCode(ctx, tx, f.Provider, f.Challenge, user, who)
		return Verified{AuthCode: code}, err
	}

	o, err := d.openSession(ctx, tx, user, "oauth", c)
	o.providerTokens = ProviderTokens{ProviderToken: who.AccessToken, ProviderRefreshToken: who.RefreshToken}

	return Verified{unsigned: &o}, err
}
