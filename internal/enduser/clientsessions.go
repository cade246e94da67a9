package enduser

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/ratelimit"
	"github.com/socle-dev/socle/internal/token"
)

// OAuthServer is the setting of the project's own OAuth 2.1 server, which package oauth is.
type OAuthServer struct {
	Enabled                  bool   `json:"enabled,omitempty"`
	AllowDynamicRegistration bool   `json:"allow_dynamic_registration,omitempty" doc:"Anyone may register a client."`
	AuthorizationPath        string `json:"authorization_path,omitempty" maxLength:"200" doc:"Path of the application's consent page below site_url. Empty: a page of this server."`
}

// Tx runs f in a transaction of the auth login, with a context that bounds its time. change is its
// name in the error of a failing trigger.
func (d *Directory) Tx(ctx context.Context, change string, f func(ctx context.Context, tx pgx.Tx) error) error {
	return d.tx(ctx, change, f)
}

// Rows executes statements on schema auth that run no user code, outside a transaction.
func (d *Directory) Rows() pg.Querier { return d.q() }

// SecretKey derives a secret key of the project for a purpose.
func (d *Directory) SecretKey(purpose string) []byte { return d.db.EndUserKey(purpose) }

// Issuer returns the issuer of the project's tokens, the base address of its auth interface.
func (d *Directory) Issuer() string { return d.issuer() }

// CountRequest counts a request from a network. It fails with TooMany.
func (d *Directory) CountRequest(ctx context.Context, l ratelimit.Limit, c Client) error {
	return d.countRequest(ctx, l, c)
}

// Owner returns the user of a session of the application. It fails like [Directory.Authenticate],
// and with Forbidden for a session of an OAuth client.
func (d *Directory) Owner(ctx context.Context, tx pgx.Tx, who Identity) (User, error) {
	u, err := d.authenticate(ctx, tx, who)
	return u.User, err
}

// Grantor is a signed-in user who decides about an OAuth client.
type Grantor struct {
	User    User
	AAL     string          // level of the session
	Methods json.RawMessage // by which the user was authenticated, as in access tokens
}

// Grantor returns the user of a session of the application. It fails with Forbidden like
// [Directory.Authenticate], for a session of an OAuth client, and if a user with a second factor
// has not used it.
func (d *Directory) Grantor(ctx context.Context, tx pgx.Tx, who Identity) (Grantor, error) {
	u, err := d.authenticate(ctx, tx, who)
	if err != nil {
		return Grantor{}, err
	}
	if hasVerifiedFactor(u.User) && u.AAL != "aal2" {
		return Grantor{}, fault.New(fault.Forbidden, "AAL2 required to decide about an OAuth client").
			WithCode("insufficient_aal")
	}

	methods, err := methodsOf(ctx, tx, who.Session)
	if err != nil {
		return Grantor{}, err
	}

	text, err := json.Marshal(methods)
	return Grantor{User: u.User, AAL: u.AAL, Methods: text}, err
}

// ClientGrant is what a user has granted an OAuth client.
type ClientGrant struct {
	User    uuid.UUID
	Client  uuid.UUID
	Scope   string
	AAL     string
	Methods json.RawMessage // see [Grantor]
}

// ClientSession is a session of an OAuth client without its tokens.
type ClientSession struct{ opened }

// User returns the user of the session.
func (s ClientSession) User() User { return s.opened.user }

// SessionID returns the id of the session.
func (s ClientSession) SessionID() uuid.UUID { return s.ID }

// clientMethod is the method of authentication of an OAuth client's session.
const clientMethod = "oauth_provider/authorization_code"

// OpenClientSession opens a session of an OAuth client. It keeps level and methods of the session
// in which the user has granted it. It fails for a user who may not sign in.
func (d *Directory) OpenClientSession(
	ctx context.Context, tx pgx.Tx, g ClientGrant, c Client,
) (ClientSession, error) {
	if err := d.checkSignIn(ctx, tx, g.User); err != nil {
		return ClientSession{}, err
	}

	o, err := d.openSession(ctx, tx, g.User, clientMethod, c)
	if err != nil {
		return ClientSession{}, err
	}

	if o.sessionRow, err = pg.One[sessionRow](ctx, tx, `
		update auth.sessions s set oauth_client_id = @client, scopes = @scope, aal = @aal where s.id = @id
		returning`+sessionColumns,
		pgx.StrictNamedArgs{"id": o.ID, "client": g.Client, "scope": g.Scope, "aal": g.AAL}); err != nil {
		return ClientSession{}, err
	}

	if _, err := pg.Exec(ctx, tx, `
		insert into auth.mfa_amr_claims (session_id, authentication_method, created_at, updated_at)
		select @id, m ->> 'method', to_timestamp((m ->> 'timestamp')::bigint), to_timestamp((m ->> 'timestamp')::bigint)
		from jsonb_array_elements(@methods::jsonb) m on conflict do nothing`,
		pgx.StrictNamedArgs{"id": o.ID, "methods": string(g.Methods)}); err != nil {
		return ClientSession{}, err
	}

	o.methods, err = methodsOf(ctx, tx, o.ID)
	return ClientSession{o}, err
}

// SignClientSession returns the tokens of a session that has been committed. It ends the session if
// a hook fails.
func (d *Directory) SignClientSession(ctx context.Context, s ClientSession) (Session, error) {
	return d.signNew(ctx, s.opened)
}

// RefreshClientSession is [Directory.Refresh] for a session of an OAuth client. Its refresh tokens
// are valid once: a second use ends the session. One of another client is not found.
func (d *Directory) RefreshClientSession(
	ctx context.Context, text string, client uuid.UUID, c Client,
) (s Session, scope string, err error) {
	return d.refresh(ctx, d.keys.clientRefresh, text, someUUID(client), c)
}

// ScopedUser is a user, and what the holder of the token may know.
type ScopedUser struct {
	User  User
	Scope string // of the OAuth client; "" for a session of the application
}

// ScopedUser returns the user of a token and the scope of its session. It fails like
// [Directory.Authenticate].
func (d *Directory) ScopedUser(ctx context.Context, who Identity) (ScopedUser, error) {
	u, err := d.anyAuthenticated(ctx, d.q(), who)
	return ScopedUser{User: u.User, Scope: u.Scope}, err
}

// idTokenKeys are the keys that sign ID tokens for OAuth clients, the current one first. They are
// not those of access tokens: an ID token opens no interface of the project.
func (d *Directory) idTokenKeys() ([]token.Key, error) {
	seed := d.SecretKey("signing keys of ID tokens")
	var all []token.Key
	for generation := d.KeyGeneration; generation > 0 && generation > d.KeyGeneration-2; generation-- {
		k, err := token.DeriveSigningKey(seed, fmt.Sprint("generation ", generation))
		if err != nil {
			return nil, err
		}

		all = append(all, k)
	}

	return all, nil
}

// SignIDToken returns an ID token with these claims, signed by a key of [Directory.PublishedKeys].
func (d *Directory) SignIDToken(claims any) (string, error) {
	text, err := json.Marshal(claims)
	if err != nil {
		return "", err
	}

	keys, err := d.idTokenKeys()
	if err != nil {
		return "", err
	}

	return keys[0].SignJWT(text)
}

// PublishedKeys returns the public keys of access tokens, and those of ID tokens if the OAuth
// server is on, as JSON Web Keys.
func (d *Directory) PublishedKeys() ([]json.RawMessage, error) {
	all, err := d.PublicKeys()
	if err != nil || !d.OAuthServer.Enabled {
		return all, err
	}

	keys, err := d.idTokenKeys()
	if err != nil {
		return nil, err
	}

	for _, k := range keys {
		text, err := k.PublicJWK()
		if err != nil {
			return nil, err
		}

		all = append(all, text)
	}

	return all, nil
}

// isPath reports whether a text is a path of a URL without query and fragment.
func isPath(text string) bool {
	u, err := url.Parse(text)
	return err == nil && strings.HasPrefix(text, "/") && u.Host == "" && u.Scheme == "" &&
		!strings.ContainsAny(text, "?#\\ ") && text == u.EscapedPath()
}
