package enduser

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/token"
)

const (
	maxSessions  = 100 // per user; a new one ends the oldest beyond
	maxUserAgent = 500 // bytes
)

// Session is the response to a log-in or a refresh.
type Session struct {
	AccessToken  string `json:"access_token"`
	TokenType    string `json:"token_type"`
	ExpiresIn    int    `json:"expires_in"` // seconds
	ExpiresAt    int64  `json:"expires_at"` // seconds since 1970
	RefreshToken string `json:"refresh_token"`
	User         User   `json:"user"`

	ProviderTokens

	id uuid.UUID
}

// ProviderTokens are the tokens of an identity provider, which only the first response has.
type ProviderTokens struct {
	ProviderToken        string `json:"provider_token,omitempty"`
	ProviderRefreshToken string `json:"provider_refresh_token,omitempty"`
}

// sessionRow is a row of auth.sessions.
type sessionRow struct {
	ID                  uuid.UUID
	UserID              uuid.UUID
	CreatedAt           time.Time
	Aal                 string
	NotAfter            *time.Time
	RefreshedAt         *time.Time
	RefreshTokenCounter int64
	OAuthClientID       uuid.NullUUID `db:"oauth_client_id"` // OAuth client that has the tokens; null: the application
	Scope               string        // scope granted to the OAuth client
}

const sessionColumns = ` s.id, s.user_id, s.created_at, s.aal, s.not_after, s.refreshed_at, s.refresh_token_counter, s.oauth_client_id,
	coalesce(s.scopes, '') as scope `

// unsignedSession is a session without its tokens. They are signed after the commit, since a hook
// of the project may have a part in them.
type unsignedSession struct {
	sessionRow
	user    User
	methods []amr  // the latest first
	method  string // method of this authentication
	client  Client

	providerTokens ProviderTokens
}

// checkSignIn fails if a user is banned or deleted.
func (d *Directory) checkSignIn(ctx context.Context, tx pgx.Tx, id uuid.UUID) error {
	u, err := userByID(ctx, tx, id)
	switch {
	case err != nil:
		return err
	case u.DeletedAt != nil:
		return errUserNotFound()
	case u.IsBanned():
		return errBanned()
	}

	return nil
}

// signIn is [Directory.Tx] for a change that opens a session, and signs its tokens.
func (d *Directory) signIn(
	ctx context.Context, change string, f func(ctx context.Context, tx pgx.Tx) (unsignedSession, error),
) (Session, error) {
	var o unsignedSession
	err := d.Tx(ctx, change, func(ctx context.Context, tx pgx.Tx) error {
		var err error
		o, err = f(ctx, tx)
		return err
	})
	if err != nil {
		return Session{}, err
	}

	return d.signNew(ctx, o)
}

// openSession opens a session of a user, authenticated by a method, and ends the oldest ones beyond
// the limit.
func (d *Directory) openSession(
	ctx context.Context, tx pgx.Tx, id uuid.UUID, method string, c Client,
) (unsignedSession, error) {
	var notAfter *time.Time
	if d.SessionSeconds > 0 {
		end := time.Now().Add(time.Duration(d.SessionSeconds) * time.Second)
		notAfter = &end
	}

	var address *string
	if c.Address.IsValid() {
		text := c.Address.String()
		address = &text
	}

	s, err := pg.One[sessionRow](ctx, tx, `
		with old as (
			delete from auth.sessions where id in (
				select id from auth.sessions where user_id = @user order by created_at desc offset @most)
		), method as (
			insert into auth.mfa_amr_claims (session_id, authentication_method) values (@id, @method)
		)
		insert into auth.sessions as s (id, user_id, not_after, user_agent, ip)
		values (@id, @user, @end, left(@agent, @agent_size), @address::text::inet)
		returning`+sessionColumns,
		pgx.StrictNamedArgs{"id": newID(), "user": id, "end": notAfter, "agent": c.Agent, "agent_size": maxUserAgent,
			"address": address, "most": maxSessions - 1, "method": method})
	if err != nil {
		return unsignedSession{}, err
	}

	if _, err := pg.Exec(ctx, tx, `update auth.users set last_sign_in_at = now(), updated_at = now() where id = @id`,
		pgx.StrictNamedArgs{"id": id}); err != nil {
		return unsignedSession{}, err
	}

	u, err := userByID(ctx, tx, id) // after triggers of the project
	if err != nil {
		return unsignedSession{}, err
	}

	methods := []amr{{Method: method, Timestamp: s.CreatedAt.Unix()}}
	return unsignedSession{sessionRow: s, user: u, methods: methods, method: method, client: c},
		d.log(ctx, tx, "login", u, c)
}

// addMethod records a method by which the user of a session was authenticated.
func addMethod(ctx context.Context, tx pgx.Tx, session uuid.UUID, method string) error {
	_, err := pg.Exec(ctx, tx, `
		insert into auth.mfa_amr_claims (session_id, authentication_method) values (@session, @method)
		on conflict (session_id, authentication_method) do update set updated_at = now()`,
		pgx.StrictNamedArgs{"session": session, "method": method})
	return err
}

// methodsOf returns the methods by which the user of a session was authenticated.
func methodsOf(ctx context.Context, q pg.Querier, session uuid.UUID) ([]amr, error) {
	return pg.All[amr](ctx, q, `
		select authentication_method as method, floor(extract(epoch from updated_at))::bigint as timestamp
		from auth.mfa_amr_claims where session_id = @session order by updated_at desc, authentication_method`,
		pgx.StrictNamedArgs{"session": session})
}

// signNew signs the tokens of a session that has been committed. It ends the session if a hook
// fails, since nobody has its tokens.
func (d *Directory) signNew(ctx context.Context, o unsignedSession) (Session, error) {
	s, err := d.sign(ctx, o)
	if err == nil {
		return s, nil
	}

	_, failure := pg.Exec(context.WithoutCancel(ctx), d.Rows(), `delete from auth.sessions where id = @id`,
		pgx.StrictNamedArgs{"id": o.ID})
	return s, errors.Join(err, failure)
}

// sign returns the tokens of a session. It runs outside a transaction, see [Directory.ask].
func (d *Directory) sign(ctx context.Context, o unsignedSession) (Session, error) {
	s, u, now := o.sessionRow, o.user, time.Now()
	expires := now.Add(time.Duration(d.AccessTokenSeconds) * time.Second)
	if s.NotAfter != nil && s.NotAfter.Before(expires) {
		expires = *s.NotAfter
	}

	refreshKey, clientID := d.keys.refreshKey, ""
	if s.OAuthClientID.Valid {
		refreshKey, clientID = d.keys.clientRefreshKey, s.OAuthClientID.UUID.String()
	}

	body, end, err := d.customClaims(ctx, claims{Issuer: d.Issuer(), Subject: u.ID, Audience: u.Aud,
		ExpiresAt: expires.Unix(), IssuedAt: now.Unix(), Email: u.Email, Phone: u.Phone, AppMetadata: u.AppMetadata,
		UserMetadata: u.UserMetadata, Role: u.Role, AAL: s.Aal, AMR: o.methods, SessionID: s.ID,
		IsAnonymous: u.IsAnonymous, ClientID: clientID}, o.method, o.client)
	if err != nil {
		return Session{}, err
	}

	access, err := d.keys.signingKey.SignJWT(body)
	if err != nil {
		return Session{}, err
	}

	return Session{
		AccessToken:  access,
		TokenType:    "bearer",
		ExpiresIn:    int(end - now.Unix()),
		ExpiresAt:    end,
		RefreshToken: token.Refresh(refreshKey, s.ID, uint32(s.RefreshTokenCounter)),
		User:         u,

		ProviderTokens: o.providerTokens,

		id: s.ID,
	}, nil
}
