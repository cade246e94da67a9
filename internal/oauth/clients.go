package oauth

import (
	"context"
	"crypto/subtle"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/enduser"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/token"
	"github.com/socle-dev/socle/internal/weburl"
)

// Methods by which a client authenticates at the token endpoint.
const (
	authNone  = "none"
	authBasic = "client_secret_basic"
	authPost  = "client_secret_post"
)

// Client types.
const (
	public       = "public"
	confidential = "confidential"
)

var (
	authMethods = []string{authBasic, authPost, authNone}
	grantTypes  = []string{grantCode, grantRefresh}
)

// Client bounds.
const (
	maxRedirectURIs = 10
	maxClientName   = 200  // bytes
	maxURI          = 2048 // bytes
)

// Client is an application that may ask users for access.
type Client struct {
	ID                      uuid.UUID `json:"client_id"`
	ClientSecret            string    `json:"client_secret,omitempty" db:"-"` // set for a new client, or a regenerated secret
	ClientType              string    `json:"client_type"`
	RedirectURIs            []string  `json:"redirect_uris" db:"redirect_uris"`
	TokenEndpointAuthMethod string    `json:"token_endpoint_auth_method"`
	GrantTypes              []string  `json:"grant_types"`
	ResponseTypes           []string  `json:"response_types" db:"-"`
	ClientName              string    `json:"client_name,omitempty"`
	ClientURI               string    `json:"client_uri,omitempty" db:"client_uri"`
	LogoURI                 string    `json:"logo_uri,omitempty" db:"logo_uri"`
	RegistrationType        string    `json:"registration_type"`
	CreatedAt               time.Time `json:"created_at"`
	UpdatedAt               time.Time `json:"updated_at"`

	SecretHash []byte `json:"-"`
}

const clientColumns = ` c.id, c.client_type, c.redirect_uris, c.token_endpoint_auth_method, c.grant_types, c.client_name, c.client_uri,
	c.logo_uri, c.registration_type, c.created_at, c.updated_at, c.client_secret_hash as secret_hash `

// Registration has a new or changed client's members. nil ones stay unchanged.
type Registration struct {
	RedirectURIs            *[]string `json:"redirect_uris"`
	ClientType              *string   `json:"client_type"`
	TokenEndpointAuthMethod *string   `json:"token_endpoint_auth_method"`
	GrantTypes              *[]string `json:"grant_types"`
	ResponseTypes           *[]string `json:"response_types"`
	ClientName              *string   `json:"client_name"`
	ClientURI               *string   `json:"client_uri"`
	LogoURI                 *string   `json:"logo_uri"`
}

// validate fails with Invalid for a member that breaks a rule.
func (r *Registration) validate() error {
	if r.RedirectURIs != nil {
		if n := len(*r.RedirectURIs); n == 0 || n > maxRedirectURIs {
			return errInvalid("redirect_uris must have 1 to %d items", maxRedirectURIs)
		}
		for _, uri := range *r.RedirectURIs {
			if rule := checkRedirectURI(uri); rule != "" {
				return errInvalid("invalid redirect_uri %q: %s", uri, rule)
			}
		}
	}
	if r.TokenEndpointAuthMethod != nil && !slices.Contains(authMethods, *r.TokenEndpointAuthMethod) {
		return errInvalid("token_endpoint_auth_method must be one of %s", strings.Join(authMethods, ", "))
	}
	if r.ClientType != nil && *r.ClientType != public && *r.ClientType != confidential {
		return errInvalid("client_type must be public or confidential")
	}
	if r.GrantTypes != nil {
		unknown := func(t string) bool { return !slices.Contains(grantTypes, t) }
		if slices.ContainsFunc(*r.GrantTypes, unknown) || !slices.Contains(*r.GrantTypes, grantCode) ||
			len(*r.GrantTypes) > len(grantTypes) {
			return errInvalid("grant_types must be authorization_code, or that and refresh_token")
		}
	}
	if r.ResponseTypes != nil && !slices.Equal(*r.ResponseTypes, []string{"code"}) {
		return errInvalid("response_types must be code")
	}
	if r.ClientName != nil && !isLabel(*r.ClientName) {
		return errInvalid("client_name must have at most %d bytes, without line breaks and other control characters",
			maxClientName)
	}

	for name, uri := range map[string]*string{"client_uri": r.ClientURI, "logo_uri": r.LogoURI} {
		if uri != nil && *uri != "" && !isWebURI(*uri) {
			return errInvalid("%s must be an http or https URL of at most %d bytes", name, maxURI)
		}
	}

	return nil
}

// typeAndMethod returns a new client's type and authentication method. Each follows from the other,
// and a client that names neither is confidential.
func (r *Registration) typeAndMethod() (kind, method string, err error) {
	switch {
	case r.TokenEndpointAuthMethod != nil:
		method = *r.TokenEndpointAuthMethod
		kind = typeOf(method)
	case r.ClientType != nil && *r.ClientType == public:
		kind, method = public, authNone
	default:
		kind, method = confidential, authBasic
	}

	if r.ClientType != nil && *r.ClientType != kind {
		err = errInvalid("client_type %s does not fit token_endpoint_auth_method %s", *r.ClientType, method)
	}

	return kind, method, err
}

// typeOf returns the type that goes with an authentication method.
func typeOf(method string) string {
	if method == authNone {
		return public
	}
	return confidential
}

// isLabel reports whether a text fits into a sentence on the consent page. Line breaks and
// characters that turn the direction would let a client write whole sentences there.
func isLabel(text string) bool {
	return len(text) <= maxClientName && !strings.ContainsFunc(text, func(r rune) bool {
		return unicode.IsControl(r) || unicode.In(r, unicode.Zl, unicode.Zp, unicode.Bidi_Control)
	})
}

func isWebURI(text string) bool {
	u, err := url.Parse(text)
	return err == nil && (u.Scheme == "https" || u.Scheme == "http") && u.Host != "" && len(text) <= maxURI
}

// checkRedirectURI returns the rule that a redirect URI breaks, or "". http is for loopback hosts,
// an app's scheme is named by a domain or followed by a host. Browsers read the text as [url.Parse]
// does: the consent page shows its host to the user.
func checkRedirectURI(text string) string {
	u, err := weburl.Parse(text)
	switch {
	case err != nil:
		return "must be an absolute URL as browsers show it, of a page or an app"
	case len(text) > maxURI:
		return "must have at most 2048 bytes"
	case strings.Contains(text, "#"):
		return "must not have a fragment"
	case strings.ContainsFunc(text, func(c rune) bool { return c >= 0x7f || strings.ContainsRune(`*"<>`, c) }):
		return "must be ASCII without quotes and wildcards"
	case u.Scheme == "http" && !isLoopback(u.Host):
		return "must be https, but for localhost"
	case !u.IsWeb() && !strings.Contains(u.Scheme, ".") && !hasHost(u.Rest):
		return "must have a host"
	}

	return ""
}

// hasHost reports whether an app's address has a host.
func hasHost(rest string) bool {
	after, ok := strings.CutPrefix(rest, "//")
	return ok && strings.IndexAny(after+"/", "/?") > 0
}

func isLoopback(host string) bool {
	address, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return host == "localhost" || (err == nil && address.IsLoopback())
}

// Register creates a client at anyone's request. It fails with Forbidden unless the settings allow
// it.
func (s *Server) Register(ctx context.Context, r Registration, c enduser.Client) (Client, error) {
	if !s.OAuthServer.AllowDynamicRegistration {
		return Client{}, fault.New(fault.Forbidden, "Dynamic client registration is not enabled").
			WithCode("oauth_dynamic_client_registration_disabled")
	}
	if err := s.CountRequest(ctx, registerLimit, c); err != nil {
		return Client{}, err
	}

	return s.createClient(ctx, r, "dynamic", c)
}

// CreateClient creates a client at an administrator's request.
func (s *Server) CreateClient(ctx context.Context, r Registration, c enduser.Client) (Client, error) {
	return s.createClient(ctx, r, "manual", c)
}

func (s *Server) createClient(ctx context.Context, r Registration, kind string, c enduser.Client) (Client, error) {
	if r.RedirectURIs == nil {
		return Client{}, errInvalid("redirect_uris is required")
	}
	if err := r.validate(); err != nil {
		return Client{}, err
	}

	clientType, method, err := r.typeAndMethod()
	if err != nil {
		return Client{}, err
	}

	secret, hash := newSecret(clientType)
	if r.GrantTypes == nil {
		r.GrantTypes = &grantTypes
	}

	var client Client
	err = s.Tx(ctx, "creating OAuth client", func(ctx context.Context, tx pgx.Tx) error {
		// Concurrent requests may exceed the bound by their number, which the network limit bounds.
		client, err = pg.One[Client](ctx, tx, `
			insert into auth.oauth_clients as c (id, client_secret_hash, registration_type, client_type,
				token_endpoint_auth_method, redirect_uris, grant_types, client_name, client_uri, logo_uri)
			select @id, @hash, @kind, @type, @method, @uris::text[], @grants::text[], coalesce(@name, ''),
				coalesce(@uri, ''), coalesce(@logo, '')
			where (select count(*) from auth.oauth_clients where registration_type = @kind) < @most::bigint
			returning`+clientColumns,
			pgx.StrictNamedArgs{"id": uuid.New(), "hash": hash, "kind": kind, "type": clientType, "method": method,
				"uris": *r.RedirectURIs, "grants": *r.GrantTypes, "name": r.ClientName, "uri": r.ClientURI,
				"logo": r.LogoURI, "most": maxClients})
		if fault.Is(err, fault.NotFound) {
			return fault.New(fault.Unprocessable, "A project has at most %d such OAuth clients", maxClients).
				WithCode("too_many_oauth_clients")
		}
		if err != nil {
			return err
		}

		return s.logClient(ctx, tx, "oauth_client_created", client.ID, c)
	})

	client.ClientSecret = secret
	return client.complete(), err
}

// newSecret returns a secret and its hash, none for a public client.
func newSecret(clientType string) (secret string, hash []byte) {
	if clientType == public {
		return "", nil
	}

	secret = token.NewSecret()
	return secret, token.Hash(secret)
}

// complete sets the members that no column has.
func (c Client) complete() Client {
	c.ResponseTypes = []string{"code"}
	return c
}

func errClientNotFound() error {
	return fault.New(fault.NotFound, "OAuth client not found").WithCode("oauth_client_not_found")
}

// GetClient returns a client.
func (s *Server) GetClient(ctx context.Context, id uuid.UUID) (Client, error) {
	c, err := pg.One[Client](ctx, s.Rows(), `select`+clientColumns+`from auth.oauth_clients c where c.id = @id`,
		pgx.StrictNamedArgs{"id": id})
	if fault.Is(err, fault.NotFound) {
		err = errClientNotFound()
	}

	return c.complete(), err
}

// ListClients returns a page of clients, the newest first, and the total count.
func (s *Server) ListClients(ctx context.Context, page, perPage int) ([]Client, int64, error) {
	clients, err := pg.All[Client](ctx, s.Rows(), `
		select`+clientColumns+`from auth.oauth_clients c order by c.created_at desc, c.id limit @limit offset @offset`,
		pgx.StrictNamedArgs{"limit": perPage, "offset": int64(page-1) * int64(perPage)})
	if err != nil {
		return nil, 0, err
	}

	for i, c := range clients {
		clients[i] = c.complete()
	}

	total, err := pg.Value[int64](ctx, s.Rows(), `select count(*) from auth.oauth_clients`, pgx.StrictNamedArgs{})
	return clients, total, err
}

// UpdateClient changes a client.
func (s *Server) UpdateClient(ctx context.Context, id uuid.UUID, r Registration, c enduser.Client) (Client, error) {
	if r == (Registration{}) {
		return Client{}, errInvalid("No fields provided for update")
	}
	if err := r.validate(); err != nil {
		return Client{}, err
	}

	var client Client
	err := s.Tx(ctx, "updating OAuth client", func(ctx context.Context, tx pgx.Tx) error {
		current, err := pg.One[Client](ctx, tx,
			`select`+clientColumns+`from auth.oauth_clients c where c.id = @id for update`,
			pgx.StrictNamedArgs{"id": id})
		if fault.Is(err, fault.NotFound) {
			return errClientNotFound()
		}
		if err != nil {
			return err
		}

		if r.ClientType != nil && *r.ClientType != current.ClientType {
			return errInvalid("client_type can't be changed")
		}
		if m := r.TokenEndpointAuthMethod; m != nil && typeOf(*m) != current.ClientType {
			return errInvalid("token_endpoint_auth_method %s does not fit client_type %s", *m, current.ClientType)
		}

		client, err = pg.One[Client](ctx, tx, `
			update auth.oauth_clients c set redirect_uris = coalesce(@uris::text[], redirect_uris),
				grant_types = coalesce(@grants::text[], grant_types), client_name = coalesce(@name, client_name),
				client_uri = coalesce(@uri, client_uri), logo_uri = coalesce(@logo, logo_uri),
				token_endpoint_auth_method = coalesce(@method, token_endpoint_auth_method), updated_at = now()
			where c.id = @id
			returning`+clientColumns,
			pgx.StrictNamedArgs{"id": id, "uris": r.RedirectURIs, "grants": r.GrantTypes, "name": r.ClientName,
				"uri": r.ClientURI, "logo": r.LogoURI, "method": r.TokenEndpointAuthMethod})
		if err != nil {
			return err
		}

		return s.logClient(ctx, tx, "oauth_client_updated", id, c)
	})

	return client.complete(), err
}

// RegenerateSecret replaces a confidential client's secret.
func (s *Server) RegenerateSecret(ctx context.Context, id uuid.UUID, c enduser.Client) (Client, error) {
	secret, hash := newSecret(confidential)

	var client Client
	err := s.Tx(ctx, "updating OAuth client", func(ctx context.Context, tx pgx.Tx) error {
		var err error
		client, err = pg.One[Client](ctx, tx, `
			update auth.oauth_clients c set client_secret_hash = @hash, updated_at = now()
			where c.id = @id and c.client_type = 'confidential'
			returning`+clientColumns, pgx.StrictNamedArgs{"id": id, "hash": hash})
		if fault.Is(err, fault.NotFound) {
			if _, unknown := s.GetClient(ctx, id); unknown != nil {
				return unknown
			}
			return errInvalid("Cannot regenerate secret for public client")
		}
		if err != nil {
			return err
		}

		return s.logClient(ctx, tx, "oauth_client_secret_regenerated", id, c)
	})

	client.ClientSecret = secret
	return client.complete(), err
}

// DeleteClient deletes a client with its sessions and users' grants.
func (s *Server) DeleteClient(ctx context.Context, id uuid.UUID, c enduser.Client) error {
	return s.Tx(ctx, "deleting OAuth client", func(ctx context.Context, tx pgx.Tx) error {
		n, err := pg.Exec(ctx, tx, `delete from auth.oauth_clients where id = @id`, pgx.StrictNamedArgs{"id": id})
		if err == nil && n == 0 {
			err = errClientNotFound()
		}
		if err != nil {
			return err
		}

		return s.logClient(ctx, tx, "oauth_client_deleted", id, c)
	})
}

// logClient records a client's change for the project's developers.
func (s *Server) logClient(ctx context.Context, tx pgx.Tx, action string, id uuid.UUID, c enduser.Client) error {
	return s.LogAction(ctx, tx, map[string]any{"action": action, "log_type": "oauth", "client_id": id}, c)
}

// Credentials are a client's credentials at the token endpoint.
type Credentials struct {
	ID     string
	Secret string
	Method string // by which the secret was sent
}

// AuthenticateClient returns the client with these credentials. It fails with Unauthenticated, code
// invalid_client.
func (s *Server) AuthenticateClient(ctx context.Context, in Credentials) (Client, error) {
	errCredentials := fault.New(fault.Unauthenticated, "Invalid client credentials").WithCode("invalid_client")

	id, err := uuid.Parse(in.ID)
	if err != nil {
		return Client{}, errCredentials
	}

	c, err := s.GetClient(ctx, id)
	switch {
	case fault.Is(err, fault.NotFound):
		return Client{}, errCredentials
	case err != nil:
		return Client{}, err
	case in.Method != c.TokenEndpointAuthMethod:
		return Client{}, fault.New(fault.Unauthenticated, "The client must authenticate by %s",
			c.TokenEndpointAuthMethod).WithCode("invalid_client")
	case c.ClientType == confidential && subtle.ConstantTimeCompare(token.Hash(in.Secret), c.SecretHash) != 1:
		return Client{}, errCredentials
	}

	return c, nil
}
