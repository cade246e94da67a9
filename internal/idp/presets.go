package idp

import (
	"context"
	"errors"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/socle-dev/socle/internal/fair"
)

// preset is a provider's fixed part: an OpenID Connect issuer, whose discovery document has the
// rest, or OAuth 2.0 addresses and a function that reads the profile.
type preset struct {
	issuer   string
	needsURL bool // each installation has its own issuer
	scopes   string
	formPost bool // the scopes make the provider answer by a form
	noNonce  bool // ID tokens lack the request's nonce, against the specification

	authURL, tokenURL, apiURL string // relative to root
	root, apiRoot             string
	pkce                      bool
	profile                   func(api) (Identity, error)
}

const openID = "openid email profile"

var presets = map[string]preset{
	"google":        {issuer: "https://accounts.google.com", scopes: openID},
	"apple":         {issuer: "https://appleid.apple.com", scopes: "openid email name", formPost: true},
	"azure":         {issuer: "https://login.microsoftonline.com/common/v2.0", scopes: openID},
	"linkedin_oidc": {issuer: "https://www.linkedin.com/oauth", scopes: openID, noNonce: true},
	"slack_oidc":    {issuer: "https://slack.com", scopes: openID},
	"keycloak":      {needsURL: true, scopes: openID},

	"github": {root: "https://github.com", authURL: "/login/oauth/authorize", tokenURL: "/login/oauth/access_token",
		apiRoot: "https://api.github.com", apiURL: "/api/v3", scopes: "user:email", pkce: true, profile: github},
	"gitlab": {root: "https://gitlab.com", authURL: "/oauth/authorize", tokenURL: "/oauth/token",
		apiRoot: "https://gitlab.com/api/v4", apiURL: "/api/v4", scopes: "read_user", pkce: true, profile: gitlab},
	"discord": {root: "https://discord.com", authURL: "/oauth2/authorize", tokenURL: "/api/oauth2/token",
		apiRoot: "https://discord.com/api", apiURL: "/api", scopes: "identify email", pkce: true, profile: discord},
	"facebook": {root: "https://www.facebook.com", authURL: "/dialog/oauth", tokenURL: "/oauth/access_token",
		apiRoot: "https://graph.facebook.com", scopes: "email", profile: facebook},
}

// customName matches provider names without a preset.
var customName = regexp.MustCompile(`^custom:[a-z0-9][a-z0-9_-]{0,49}$`)

// Presets returns the known providers' names, sorted.
func Presets() []string { return slices.Sorted(maps.Keys(presets)) }

// Known reports whether name belongs to a preset or a custom provider.
func Known(name string) bool {
	_, ok := presets[name]
	return ok || customName.MatchString(name)
}

// NeedsURL reports whether a provider has no address unless the settings have one.
func NeedsURL(name string) bool {
	p, ok := presets[name]
	return !ok || p.needsURL
}

// provider is a preset with its addresses.
type provider struct {
	preset
	authURL, tokenURL, apiURL string
	userInfoURL, keysURL      string
	basicAuth                 bool // the secret goes into the Authorization header
}

// provider returns a configuration's provider. OpenID Connect providers are discovered.
func (c *Client) provider(ctx context.Context, tenant fair.Key, config Config) (provider, error) {
	base, ok := presets[config.Name]
	if !ok {
		if !customName.MatchString(config.Name) {
			return provider{}, ErrUnknown
		}
		base = preset{needsURL: true, scopes: openID}
	}

	root := strings.TrimSuffix(config.URL, "/")
	if base.profile != nil {
		p := provider{preset: base, authURL: base.root + base.authURL, tokenURL: base.root + base.tokenURL,
			apiURL: base.apiRoot}
		if config.Name == "facebook" {
			p.tokenURL = base.apiRoot + base.tokenURL
		}
		if root != "" {
			p.authURL, p.tokenURL, p.apiURL = root+base.authURL, root+base.tokenURL, root+base.apiURL
		}

		return p, nil
	}

	p := provider{preset: base}
	if p.issuer = base.issuer; root != "" {
		p.issuer = root
	}
	if p.issuer == "" {
		return p, errors.Join(ErrProvider, errors.New("the provider has no URL"))
	}

	d, err := c.discover(ctx, tenant, p.issuer, config.Name == "azure")
	if err != nil {
		return p, err
	}

	p.issuer, p.authURL, p.tokenURL = d.Issuer, d.AuthorizationEndpoint, d.TokenEndpoint
	p.userInfoURL, p.keysURL = d.UserInfoEndpoint, d.KeysURL
	p.pkce = slices.Contains(d.ChallengeMethods, "S256")
	p.basicAuth = d.TokenAuthMethods == nil || slices.Contains(d.TokenAuthMethods, "client_secret_basic")

	return p, nil
}
