package enduser

import (
	"context"
	"encoding/json"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
)

// SecretKey derives a project's secret key for a purpose.
func (d *Directory) SecretKey(purpose string) []byte { return d.db.EndUserKey(purpose) }

// Owner returns the user in an application's session. It fails like [Directory.Authenticate], and
// with Forbidden for an OAuth client's session.
func (d *Directory) Owner(ctx context.Context, tx pgx.Tx, who Identity) (User, error) {
	u, err := d.authenticate(ctx, tx, who)
	return u.User, err
}

// Grantor is a signed-in user who decides about an OAuth client.
type Grantor struct {
	User    User
	AAL     string          // session level
	Methods json.RawMessage // authentication methods, as in access tokens
}

// Grantor returns the user in an application's session. It fails with Forbidden like
// [Directory.Authenticate], for an OAuth client's session, and if a user with a second factor has
// not used it.
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

// ClientSession is an OAuth client's session without its tokens.
type ClientSession struct{ unsignedSession }

// User returns the session's user.
func (s ClientSession) User() User { return s.unsignedSession.user }

// SessionID returns the session's id.
func (s ClientSession) SessionID() uuid.UUID { return s.ID }

// clientMethod is the authentication method in an OAuth client's session.
const clientMethod = "oauth_provider/authorization_code"

// OpenClientSession opens a session for an OAuth client. It keeps level and methods from the
// session in which the user has granted it. It fails for a user who may not sign in.
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

// SignClientSession returns a committed session's tokens. It ends the session if a hook fails.
func (d *Directory) SignClientSession(ctx context.Context, s ClientSession) (Session, error) {
	return d.signNew(ctx, s.unsignedSession)
}

// RefreshClientSession is [Directory.Refresh] for an OAuth client's session. Its refresh tokens are
// valid once: a second use ends the session. Another client's token is not found.
func (d *Directory) RefreshClientSession(
	ctx context.Context, text string, client uuid.UUID, c Client,
) (s Session, scope string, err error) {
	return d.refresh(ctx, d.keys.clientRefreshKey, text, someUUID(client), c)
}

// ScopedUser is a user, and what the token's holder may know.
type ScopedUser struct {
	User  User
	Scope string // scope granted to the OAuth client; "": a session of the application
}

// ScopedUser returns a token's user and its session's scope. It fails like
// [Directory.Authenticate].
func (d *Directory) ScopedUser(ctx context.Context, who Identity) (ScopedUser, error) {
	u, err := d.anyAuthenticated(ctx, d.Rows(), who)
	return ScopedUser{User: u.User, Scope: u.Scope}, err
}
