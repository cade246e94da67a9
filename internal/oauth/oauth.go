package oauth

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/enduser"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/projectdb"
	"github.com/socle-dev/socle/internal/ratelimit"
)

const (
	requestTTL = 10 * time.Minute   // lifetime of a pending authorization
	codeTTL    = 5 * time.Minute    // lifetime of a code
	retention  = 24 * time.Hour     // kept to notice a second use of the code
	unusedTTL  = 7 * 24 * time.Hour // lifetime of a dynamically registered client that nobody uses

	maxPending = 5000 // authorizations per project; the oldest make room
	maxClients = 1000 // clients per project, registered in one way
)

// Network limits.
var (
	authorizeLimit = ratelimit.Limit{Name: "oauth authorize", Most: 100, Window: 5 * time.Minute}
	registerLimit  = ratelimit.Limit{Name: "oauth register", Most: 10, Window: 5 * time.Minute}
)

// Server is a project's OAuth server under its current settings. It is safe for concurrent use.
type Server struct{ *enduser.Directory }

// Of returns a project's OAuth server. It fails with NotFound if the project has none.
func Of(d *enduser.Directory) (*Server, error) {
	if !d.OAuthServer.Enabled {
		return nil, fault.New(fault.NotFound, "OAuth server is disabled").WithCode("feature_disabled")
	}

	return &Server{d}, nil
}

// Scopes are the scopes that a client can ask for.
var Scopes = []string{"openid", "profile", "email", "phone"}

// defaultScope is for a request without one.
const defaultScope = "email"

// Metadata returns the server's metadata by OpenID Connect and RFC 8414. A project without the
// OAuth server has one too, by which programs find its keys.
func Metadata(d *enduser.Directory) map[string]any {
	issuer := d.Issuer()
	m := map[string]any{
		"issuer":                                issuer,
		"authorization_endpoint":                issuer + "/oauth/authorize",
		"token_endpoint":                        issuer + "/oauth/token",
		"userinfo_endpoint":                     issuer + "/oauth/userinfo",
		"jwks_uri":                              issuer + "/.well-known/jwks.json",
		"scopes_supported":                      Scopes,
		"response_types_supported":              []string{"code"},
		"response_modes_supported":              []string{"query"},
		"grant_types_supported":                 grantTypes,
		"subject_types_supported":               []string{"public"},
		"id_token_signing_alg_values_supported": []string{"ES256"},
		"token_endpoint_auth_methods_supported": authMethods,
		"code_challenge_methods_supported":      []string{"S256"},
		"claims_supported": []string{"sub", "aud", "iss", "exp", "iat", "auth_time", "nonce", "at_hash", "email",
			"email_verified", "phone_number", "phone_number_verified", "name", "picture", "preferred_username",
			"updated_at"},
		"authorization_response_iss_parameter_supported": true,
	}
	if d.OAuthServer.Enabled && d.OAuthServer.AllowDynamicRegistration {
		m["registration_endpoint"] = issuer + "/oauth/clients/register"
	}

	return m
}

// consentURL returns the address where a user decides about a pending authorization: the
// application's page, or this server's.
func (s *Server) consentURL(authorization string) string {
	query := "?authorization_id=" + authorization
	if path := s.OAuthServer.AuthorizationPath; path != "" {
		return strings.TrimRight(s.SiteURL, "/") + path + query
	}

	return strings.TrimSuffix(s.Issuer(), "/auth/v1") + "/oauth/consent" + query
}

// Subject returns the subject for OAuth servers. Rows are swept whether a project's server is on or
// not.
func Subject(users *enduser.Service) projectdb.Subject {
	return projectdb.Subject{Schema: "auth", Sweep: func(ctx context.Context, p *projectdb.Project) error {
		d, err := users.Open(ctx, p.UUID)
		if err != nil {
			return fault.Ignore(err, fault.NotFound)
		}

		return Sweep(ctx, d)
	}}
}

// Sweep deletes expired authorizations, and clients that registered themselves and have no user.
func Sweep(ctx context.Context, d *enduser.Directory) error {
	_, err := pg.Exec(ctx, d.Rows(), `
		delete from auth.oauth_authorizations where created_at < now() - @age::interval`,
		pgx.StrictNamedArgs{"age": retention})
	_, clientErr := pg.Exec(ctx, d.Rows(), `
		delete from auth.oauth_clients c
		where c.registration_type = 'dynamic' and c.created_at < now() - @age::interval
			and not exists (select from auth.oauth_consents o where o.client_id = c.id)
			and not exists (select from auth.sessions s where s.oauth_client_id = c.id)
			and not exists (select from auth.oauth_authorizations a where a.client_id = c.id)`,
		pgx.StrictNamedArgs{"age": unusedTTL})

	return errors.Join(err, clientErr)
}

func errInvalid(format string, args ...any) *fault.Error {
	return fault.New(fault.Invalid, format, args...).WithCode("validation_failed")
}

// errOAuth returns a failure with an RFC 6749 code.
func errOAuth(code, format string, args ...any) *fault.Error {
	return fault.New(fault.Invalid, format, args...).WithCode(code)
}
