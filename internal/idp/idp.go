// Package idp signs people in with identity providers, by OpenID Connect and by OAuth 2.0.
//
// It owns the providers' protocols: authorization URLs, code exchange, ID token claims, profile
// members. It has no rows and no sessions: package enduser maps a person to an application's user.
package idp

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"net/url"
	"slices"
	"strings"

	"github.com/socle-dev/socle/internal/cache"
	"github.com/socle-dev/socle/internal/fair"
	"github.com/socle-dev/socle/internal/outbound"
)

// Config is a provider as a project uses it.
type Config struct {
	Name           string // preset, or custom: and any word for OpenID Connect
	ClientID       string
	OtherClientIDs []string // also accepted as ID token audience, such as mobile apps
	Secret         string
	URL            string // issuer, or root of an own instance; "": the preset's
	Scopes         string // in addition to the preset's, separated by spaces
	SkipNonce      bool   // accept ID tokens without a nonce, from mobile apps whose library hides it
}

// Provider failures. Their causes are for logs.
var (
	ErrUnknown  = errors.New("unknown provider")
	ErrProvider = errors.New("provider answers otherwise than agreed")
	ErrIDToken  = errors.New("ID token is invalid")
	ErrNonce    = errors.New("nonces mismatch")
)

// RefusedError reports that a provider refuses a code. It is an [ErrProvider].
type RefusedError struct{ Code string } // code by RFC 6749, such as invalid_client

func (e *RefusedError) Error() string { return "provider refuses the code: " + e.Code }

// Unwrap returns [ErrProvider].
func (e *RefusedError) Unwrap() error { return ErrProvider }

// Client talks to providers. It is safe for concurrent use.
type Client struct {
	out       *outbound.Client
	documents *cache.Cache[string, []byte] // by address
}

// New returns a client that sends its requests by out.
func New(out *outbound.Client) *Client {
	return &Client{out: out, documents: cache.New[string, []byte](cache.Limits{Entries: maxEntries})}
}

// Flow is a sign-in under way. Its secrets are unknown to anyone but the browser that began it.
type Flow struct {
	State       string
	Nonce       string // expected in the ID token
	Verifier    string // PKCE verifier, 43 to 128 characters
	RedirectURI string
}

// Answer is a browser's return from the provider.
type Answer struct {
	Code   string
	Person string // name as JSON, which Apple's page sends with a person's first sign-in
}

// Identity is a person at a provider.
type Identity struct {
	Subject       string
	Email         string
	EmailVerified bool           // by the provider
	Data          map[string]any // profile, with Supabase Auth's member names
	AccessToken   string
	RefreshToken  string
}

// reservedParameters are authorization request parameters that an application can't set.
var reservedParameters = []string{"client_id", "client_secret", "redirect_uri", "response_type",
	"response_mode", "scope", "scopes", "state", "nonce", "code_challenge", "code_challenge_method", "request",
	"request_uri", "provider", "redirect_to", "apikey", "skip_http_redirect", "link", "registration"}

const (
	maxParameters = 20
	maxParameter  = 1000 // bytes
)

// AuthCodeURL returns the address at the provider where the browser is sent. The application's
// parameters may ask for more scopes and set others, such as prompt.
func (c *Client) AuthCodeURL(
	ctx context.Context, tenant fair.Key, config Config, f Flow, parameters url.Values,
) (string, error) {
	p, err := c.provider(ctx, tenant, config)
	if err != nil {
		return "", err
	}

	u, err := url.Parse(p.authURL)
	if err != nil {
		return "", errors.Join(ErrProvider, err)
	}

	q := u.Query()
	for name := range parameters {
		value := parameters.Get(name)
		isShort := len(q) < maxParameters && len(name)+len(value) <= maxParameter
		if isShort && !slices.Contains(reservedParameters, name) {
			q.Set(name, value)
		}
	}

	scopes := parameters.Get("scopes")
	if len(scopes) > maxParameter {
		scopes = ""
	}

	q.Set("response_type", "code")
	q.Set("client_id", config.ClientID)
	q.Set("redirect_uri", f.RedirectURI)
	q.Set("state", f.State)
	q.Set("scope", joinScopes(p.scopes, config.Scopes, scopes))
	if p.issuer != "" && !p.noNonce {
		q.Set("nonce", f.Nonce)
	}
	if p.pkce {
		sum := sha256.Sum256([]byte(f.Verifier))
		q.Set("code_challenge", base64.RawURLEncoding.EncodeToString(sum[:]))
		q.Set("code_challenge_method", "S256")
	}
	if p.formPost {
		q.Set("response_mode", "form_post")
	}

	u.RawQuery = q.Encode()
	return u.String(), nil
}

// joinScopes returns scopes without repetition. Commas separate them too.
func joinScopes(lists ...string) string {
	var all []string
	for _, list := range lists {
		for _, scope := range strings.FieldsFunc(list, func(r rune) bool { return r == ' ' || r == ',' || r == '+' }) {
			if !slices.Contains(all, scope) {
				all = append(all, scope)
			}
		}
	}

	return strings.Join(all, " ")
}

// PostsForm reports whether a provider answers by a form on its page, to which browsers send only
// cookies with SameSite=None.
func PostsForm(name string) bool { return presets[name].formPost }

// Exchange returns the person who has come back from the provider. It fails with ErrProvider, a
// [*RefusedError] if the provider refuses the code, ErrIDToken and ErrNonce.
func (c *Client) Exchange(
	ctx context.Context, tenant fair.Key, config Config, f Flow, answer Answer,
) (Identity, error) {
	p, err := c.provider(ctx, tenant, config)
	if err != nil {
		return Identity{}, err
	}

	t, err := c.token(ctx, tenant, config, p, f, answer.Code)
	if err != nil {
		return Identity{}, err
	}

	var who Identity
	if p.issuer == "" {
		who, err = p.profile(api{root: p.apiURL, token: t.AccessToken, secret: config.Secret,
			get: func(path string, to any) error {
				return c.getJSON(ctx, tenant, p.apiURL+path, t.AccessToken, to)
			}})
	} else {
		who, err = c.personOf(ctx, tenant, config, p, f, t, answer.Person)
	}
	if err != nil {
		return Identity{}, err
	}
	if who.Subject == "" {
		return Identity{}, errors.Join(ErrProvider, errors.New("the profile has no id"))
	}

	who.AccessToken, who.RefreshToken = t.AccessToken, t.RefreshToken
	return who, nil
}

// personOf returns the person in an ID token, with the userinfo endpoint's profile if the token has
// no address, and with the answer's name if neither has one.
func (c *Client) personOf(
	ctx context.Context, tenant fair.Key, config Config, p provider, f Flow, t tokens, person string,
) (Identity, error) {
	idToken, err := c.verify(ctx, tenant, config, p, t.IDToken)
	switch {
	case err != nil:
		return Identity{}, err
	case !p.noNonce && !equal(idToken.text("nonce"), f.Nonce):
		return Identity{}, ErrNonce
	case !idToken.matchesAccessToken(t.AccessToken):
		return Identity{}, errors.Join(ErrIDToken, errors.New("at_hash"))
	}

	if idToken.text("email") == "" && p.userInfoURL != "" {
		var more claims
		if err := c.getJSON(ctx, tenant, p.userInfoURL, t.AccessToken, &more); err != nil {
			return Identity{}, err
		}
		if more.text("sub") != idToken.text("sub") {
			return Identity{}, errors.Join(ErrIDToken, errors.New("userinfo is of another subject"))
		}

		for name, value := range more {
			if _, ok := idToken[name]; !ok {
				idToken[name] = value
			}
		}
	}

	idToken.addName(person)
	return idToken.identity(config.Name), nil
}

// Given is an ID token that an application has from a provider itself.
type Given struct {
	IDToken     string
	AccessToken string // "": unknown
	Nonce       string // its SHA-256 in hex is the nonce in the token
}

// Verify returns the person in an ID token that an application passes on. It fails with ErrIDToken,
// ErrNonce, ErrUnknown for a provider without ID tokens, and ErrProvider. A text that is no ID
// token costs no request.
func (c *Client) Verify(ctx context.Context, tenant fair.Key, config Config, g Given) (Identity, error) {
	if err := checkToken(g.IDToken); err != nil {
		return Identity{}, err
	}

	p, err := c.provider(ctx, tenant, config)
	if err != nil {
		return Identity{}, err
	}
	if p.issuer == "" {
		return Identity{}, ErrUnknown
	}

	idToken, err := c.verify(ctx, tenant, config, p, g.IDToken)
	if err != nil {
		return Identity{}, err
	}
	if g.AccessToken != "" && !idToken.matchesAccessToken(g.AccessToken) {
		return Identity{}, errors.Join(ErrIDToken, errors.New("at_hash"))
	}
	if !config.SkipNonce && !idToken.matchesNonce(g.Nonce) {
		return Identity{}, ErrNonce
	}

	who := idToken.identity(config.Name)
	who.AccessToken = g.AccessToken
	if who.Subject == "" {
		return Identity{}, errors.Join(ErrIDToken, errors.New("no subject"))
	}

	return who, nil
}
