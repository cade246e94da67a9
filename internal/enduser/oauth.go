package enduser

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"
	"unicode"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/idp"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/token"
)

const (
	maxState       = 4096 // bytes of the parameter state
	maxDescription = 300  // runes of a provider's text
)

// FlowTTL is the time between the redirect to a provider and the browser's return.
const FlowTTL = 10 * time.Minute

// OAuthFlow is a sign-in with an identity provider that is under way. It has no row: anyone can
// begin flows without end. Sealed, it is the parameter state of the provider's protocol.
type OAuthFlow struct {
	ID         uuid.UUID `json:"i"`
	Provider   string    `json:"p"`
	RedirectTo string    `json:"r"`
	Challenge  Challenge `json:"c"`
	Linking    *Identity `json:"l,omitempty"` // signed-in user who adds an identity
	Opened     bool      `json:"o"`           // a browser was sent to the provider
	Ends       time.Time `json:"e"`
}

// NewFlow returns a sign-in with a provider that ends at an address of the application. It fails
// with Invalid unless the provider is ready.
func (d *Directory) NewFlow(provider, redirect string, challenge Challenge) (OAuthFlow, error) {
	if err := challenge.check(); err != nil {
		return OAuthFlow{}, err
	}
	if _, err := d.oauthProvider(provider); err != nil {
		return OAuthFlow{}, err
	}

	return OAuthFlow{ID: newID(), Provider: provider, RedirectTo: d.Redirect(redirect), Challenge: challenge,
		Ends: now().Add(FlowTTL)}, nil
}

// AuthorizeURL returns the address where a browser begins a sign-in with these parameters.
func (d *Directory) AuthorizeURL(parameters url.Values) string {
	return d.issuer() + "/authorize?" + parameters.Encode()
}

// IsSecure reports whether browsers reach the server by HTTPS.
func (d *Directory) IsSecure() bool { return strings.HasPrefix(d.issuer(), "https://") }

// oauthProvider returns an enabled provider with its secret. It fails with Invalid.
func (d *Directory) oauthProvider(name string) (idp.Config, error) {
	config := d.idProvider(name)
	switch {
	case !idp.Known(name):
		return config, errInvalid("Unsupported provider: Provider %.50s could not be found", name)
	case !d.Providers[name].Enabled:
		return config, fault.New(fault.Invalid, "Unsupported provider: provider is not enabled").
			WithCode("provider_disabled")
	case config.Secret == "":
		return config, errInvalid("Unsupported provider: missing OAuth secret")
	}

	return config, nil
}

// idProvider returns the configuration of a provider.
func (d *Directory) idProvider(name string) idp.Config {
	p := d.Providers[name]
	return idp.Config{Name: name, ClientID: p.ClientID, OtherClientIDs: p.OtherClientIDs,
		Secret: d.Secrets["providers."+name], URL: p.URL, SkipNonce: p.SkipNonce}
}

// Departure is the way of a browser to a provider. The browser keeps the binding as a cookie.
type Departure struct {
	URL       string
	Binding   string // value for [OAuthFlow.BindingName]
	Flow      OAuthFlow
	CrossSite bool // the provider's page posts a form, to which the cookie must go
}

// Depart sends the browser of a flow to the provider. parameters are those of the application for
// the provider. It fails with TooMany beyond the limit of sign-ins, and with Invalid if the
// provider is unreachable or the link of the flow was opened before.
func (d *Directory) Depart(
	ctx context.Context, f OAuthFlow, parameters url.Values, c Client,
) (Departure, error) {
	if err := d.countRequest(ctx, d.signInLimit(), c); err != nil {
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

	return Departure{URL: address, Binding: token.Link(d.keys.links, bindingPurpose, f.ID), Flow: f,
		CrossSite: idp.PostsForm(f.Provider)}, nil
}

// BindingName returns the name of the cookie that binds an opened flow to its browser.
func (f OAuthFlow) BindingName() string { return BindingPrefix + f.ID.String()[28:] }

// BindingPrefix begins the names of the cookies of flows.
const BindingPrefix = "socle-oauth-"

// protocol returns what the provider's protocol needs of a flow. Nonce and verifier are stored
// nowhere.
func (d *Directory) protocol(f OAuthFlow, state string) idp.Flow {
	secret := func(purpose string) string {
		return base64.RawURLEncoding.EncodeToString(token.MAC(d.keys.flows, []byte(purpose), f.ID[:]))
	}

	return idp.Flow{State: state, Nonce: secret("nonce"), Verifier: secret("verifier"),
		RedirectURI: d.issuer() + "/callback"}
}

// seal returns a flow as a text that only this project opens.
func (d *Directory) seal(f OAuthFlow) (string, error) {
	text, err := json.Marshal(f)
	if err != nil {
		return "", err
	}

	sealed, err := token.Seal(d.keys.flows, text)
	return base64.RawURLEncoding.EncodeToString(sealed), err
}

// OpenFlow returns the flow of a sealed text: the state of a flow that was opened, or the link to
// open one. It fails with Invalid.
func (d *Directory) OpenFlow(text string, opened bool) (f OAuthFlow, err error) {
	if text == "" {
		return f, fault.New(fault.Invalid, "OAuth state parameter missing").WithCode("bad_oauth_callback")
	}

	sealed, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || len(text) > maxState {
		return f, errState("OAuth callback with invalid state")
	}

	plain, err := token.Open(d.keys.flows, sealed)
	if err != nil || json.Unmarshal(plain, &f) != nil || f.Opened != opened {
		return OAuthFlow{}, errState("OAuth callback with invalid state")
	}

	f.RedirectTo = d.Redirect(f.RedirectTo) // the settings may have changed
	return f, nil
}

func errState(text string) *fault.Error {
	return fault.New(fault.Invalid, "%s", text).WithCode("bad_oauth_state")
}

// Return is a browser that comes back from a provider.
type Return struct {
	Binding            string // value of the flow's cookie
	Code               string
	Person             string // see [idp.Answer]
	Error, Description string // of the provider instead of a code
}

// FinishFlow opens a session for the person who comes back from a provider, or returns the
// authorization code of a PKCE flow. A flow succeeds once, in the browser that began it.
func (d *Directory) FinishFlow(ctx context.Context, f OAuthFlow, in Return, c Client) (Verified, error) {
	bound, ok := token.ParseLink(d.keys.links, bindingPurpose, in.Binding)
	switch {
	case !ok || bound != f.ID:
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
	if err := d.countRequest(ctx, d.checkLimit(), c); err != nil {
		return Verified{}, err
	}

	who, err := d.service.Providers.Exchange(ctx, d.Key(ctx), config, d.protocol(f, ""),
		idp.Answer{Code: in.Code, Person: in.Person})
	if err != nil {
		return Verified{}, d.providerFailure(f.Provider, err)
	}

	var done Verified
	err = d.txFinding(ctx, "saving new user", c, func(ctx context.Context, tx pgx.Tx, admit admission) error {
		if err := spendFlow(ctx, tx, f.ID); err != nil {
			return err
		}

		done, err = d.finish(ctx, tx, f, who, admit, c)
		return err
	})
	if err != nil || done.opened == nil {
		return done, err
	}

	s, err := d.signNew(ctx, *done.opened)
	done.Session = &s

	return done, err
}

// finish opens the session of a person, or creates the authorization code.
func (d *Directory) finish(
	ctx context.Context, tx pgx.Tx, f OAuthFlow, who idp.Identity, admit admission, c Client,
) (Verified, error) {
	user, err := d.userOf(ctx, tx, f.Provider, who, f.Linking, admit, c)
	if err != nil {
		return Verified{}, err
	}

	if f.Challenge.Code != "" {
		code, err := d.createOAuthCode(ctx, tx, f, user, who)
		return Verified{AuthCode: code}, err
	}

	o, err := d.openSession(ctx, tx, user, "oauth", c)
	o.providerTokens = ProviderTokens{ProviderToken: who.AccessToken, ProviderRefreshToken: who.RefreshToken}

	return Verified{opened: &o}, err
}

// createOAuthCode returns the authorization code of a user who has signed in with a provider. The
// provider's tokens wait sealed for its exchange.
func (d *Directory) createOAuthCode(
	ctx context.Context, tx pgx.Tx, f OAuthFlow, user uuid.UUID, who idp.Identity,
) (string, error) {
	var sealed [2][]byte
	for i, text := range []string{who.AccessToken, who.RefreshToken} {
		if text == "" {
			continue
		}

		var err error
		if sealed[i], err = token.Seal(d.keys.providers, []byte(text)); err != nil {
			return "", err
		}
	}

	id := newID()
	_, err := pg.Exec(ctx, tx, `
		insert into auth.flow_state (id, user_id, code_challenge_method, code_challenge, provider_type, authentication_method,
			auth_code_issued_at, provider_access_token, provider_refresh_token)
		values (@id, @user, @method, @challenge, @provider, 'oauth', now(), @access, @refresh)`,
		pgx.StrictNamedArgs{"id": id, "user": user, "method": strings.ToLower(f.Challenge.Method),
			"challenge": f.Challenge.Code, "provider": f.Provider, "access": sealed[0], "refresh": sealed[1]})

	return d.keys.authCode(id), err
}

// openProviderTokens returns the tokens that [Directory.createOAuthCode] sealed.
func (d *Directory) openProviderTokens(f flowState) (opened ProviderTokens, err error) {
	for _, t := range []struct {
		sealed []byte
		to     *string
	}{{f.ProviderAccessToken, &opened.ProviderToken}, {f.ProviderRefreshToken, &opened.ProviderRefreshToken}} {
		if len(t.sealed) == 0 {
			continue
		}

		text, err := token.Open(d.keys.providers, t.sealed)
		if err != nil {
			return opened, fmt.Errorf("open a token of a provider: %w", err)
		}

		*t.to = string(text)
	}

	return opened, nil
}

// spendFlow records that a flow has succeeded. It fails with Invalid if it had before.
func spendFlow(ctx context.Context, q pg.Querier, id uuid.UUID) error {
	n, err := pg.Exec(ctx, q, `insert into auth.spent_flows (id) values (@id) on conflict do nothing`,
		pgx.StrictNamedArgs{"id": id})
	if err == nil && n == 0 {
		return errState("OAuth state was used")
	}

	return err
}

// providerFailure returns the failure of a provider for clients, and logs one that the settings or
// the provider are to blame for. Only the log tells a refused network from a closed port.
func (d *Directory) providerFailure(provider string, err error) error {
	if errors.Is(err, idp.ErrProvider) {
		d.service.Log.Warn("sign-in with an identity provider", "project", d.UUID, "provider", provider, "error", err)
	}

	return errProvider(err)
}

// declined are the codes of providers for a person who did not agree.
var declined = map[string]bool{"access_denied": true, "user_cancelled_authorize": true, "user_cancelled_login": true,
	"consent_required": true, "interaction_required": true, "login_required": true}

// errAnswer is the failure that a provider has sent with the browser, with its code and text.
func errAnswer(code, text string) error {
	word := strings.Map(func(r rune) rune {
		if r < unicode.MaxASCII && (unicode.IsLetter(r) || unicode.IsDigit(r) || r == '_') {
			return r
		}
		return -1
	}, code)
	word = word[:min(len(word), 60)]

	text = strings.Join(strings.FieldsFunc(strings.ToValidUTF8(text, ""), unicode.IsControl), " ")
	if all := []rune(text); len(all) > maxDescription {
		text = string(all[:maxDescription])
	}
	if word == "" {
		word = "server_error"
	}
	if text == "" {
		text = "The provider answers " + word
	}

	if declined[word] {
		return fault.New(fault.Forbidden, "%s", text).WithCode(word)
	}

	return fault.New(fault.Invalid, "%s", text).WithCode(word)
}

// errProvider is the failure of a sign-in by a failure of package idp.
func errProvider(err error) error {
	refused, isRefused := errors.AsType[*idp.RefusedError](err)
	switch {
	case isRefused:
		return fault.New(fault.Invalid, "Unable to exchange external code: %s", refused.Code).
			WithCode("unexpected_failure").WithCause(err)
	case errors.Is(err, idp.ErrUnknown):
		return fault.New(fault.Invalid, "The provider issues no ID tokens").WithCode("validation_failed").WithCause(err)
	case errors.Is(err, idp.ErrNonce):
		return fault.New(fault.Invalid, "Nonces mismatch").WithCode("bad_jwt").WithCause(err)
	case errors.Is(err, idp.ErrIDToken):
		return fault.New(fault.Invalid, "Bad ID token").WithCode("bad_jwt").WithCause(err)
	}

	return fault.New(fault.Invalid, "The provider could not be reached or answers otherwise than agreed").
		WithCode("unexpected_failure").WithCause(err)
}
