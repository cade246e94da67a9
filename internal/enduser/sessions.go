package enduser

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/hook"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/token"
)

const (
	maxSessions  = 100              // of a user; a new one ends the oldest beyond
	reuseGrace   = 10 * time.Second // in which tabs may repeat a refresh
	maxUserAgent = 500              // bytes kept
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
	Scope               string        // of the OAuth client
}

const sessionColumns = ` s.id, s.user_id, s.created_at, s.aal, s.not_after, s.refreshed_at, s.refresh_token_counter, s.oauth_client_id,
	coalesce(s.scopes, '') as scope `

// opened is a session without its tokens. They are signed after the commit, since a hook of the
// project may have a part in them.
type opened struct {
	sessionRow
	user    User
	methods []amr  // the latest first
	method  string // of this authentication
	client  Client

	providerTokens ProviderTokens
}

// signIn is [Directory.tx] for a change that opens a session, and signs its tokens.
func (d *Directory) signIn(
	ctx context.Context, change string, f func(ctx context.Context, tx pgx.Tx) (opened, error),
) (Session, error) {
	var o opened
	err := d.tx(ctx, change, func(ctx context.Context, tx pgx.Tx) error {
		var err error
		o, err = f(ctx, tx)
		return err
	})
	if err != nil {
		return Session{}, err
	}

	return d.signNew(ctx, o)
}

// signNew signs the tokens of a session that has been committed. It ends the session if a hook
// fails, since nobody has its tokens.
func (d *Directory) signNew(ctx context.Context, o opened) (Session, error) {
	s, err := d.sign(ctx, o)
	if err == nil {
		return s, nil
	}

	_, deleted := pg.Exec(context.WithoutCancel(ctx), d.q(), `delete from auth.sessions where id = @id`,
		pgx.StrictNamedArgs{"id": o.ID})
	return s, errors.Join(err, deleted)
}

// openSession opens a session of a user, authenticated by a method, and ends the oldest ones beyond
// the limit.
func (d *Directory) openSession(
	ctx context.Context, tx pgx.Tx, id uuid.UUID, method string, c Client,
) (opened, error) {
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
		return opened{}, err
	}

	if _, err := pg.Exec(ctx, tx, `update auth.users set last_sign_in_at = now(), updated_at = now() where id = @id`,
		pgx.StrictNamedArgs{"id": id}); err != nil {
		return opened{}, err
	}

	u, err := userByID(ctx, tx, id) // after triggers of the project
	if err != nil {
		return opened{}, err
	}

	methods := []amr{{Method: method, Timestamp: s.CreatedAt.Unix()}}
	return opened{sessionRow: s, user: u, methods: methods, method: method, client: c}, d.log(ctx, tx, "login", u, c)
}

// addMethod records a method by which the user of a session was authenticated.
func addMethod(ctx context.Context, tx pgx.Tx, session uuid.UUID, method string) error {
	_, err := pg.Exec(ctx, tx, `
		insert into auth.mfa_amr_claims (session_id, authentication_method) values (@session, @method)
		on conflict (session_id, authentication_method) do update set updated_at = now()`,
		pgx.StrictNamedArgs{"session": session, "method": method})
	return err
}

// amr is a method of authentication in an access token.
type amr struct {
	Method    string `json:"method"`
	Timestamp int64  `json:"timestamp"`
}

// claims are the claims of an access token.
type claims struct {
	Issuer       string          `json:"iss"`
	Subject      uuid.UUID       `json:"sub"`
	Audience     string          `json:"aud"`
	ExpiresAt    int64           `json:"exp"`
	IssuedAt     int64           `json:"iat"`
	Email        string          `json:"email"`
	Phone        string          `json:"phone"`
	AppMetadata  json.RawMessage `json:"app_metadata"`
	UserMetadata json.RawMessage `json:"user_metadata"`
	Role         string          `json:"role"`
	AAL          string          `json:"aal"`
	AMR          []amr           `json:"amr"`
	SessionID    uuid.UUID       `json:"session_id"`
	IsAnonymous  bool            `json:"is_anonymous"`
	ClientID     string          `json:"client_id,omitempty"` // of an OAuth client
}

// methodsOf returns the methods by which the user of a session was authenticated.
func methodsOf(ctx context.Context, q pg.Querier, session uuid.UUID) ([]amr, error) {
	return pg.All[amr](ctx, q, `
		select authentication_method as method, floor(extract(epoch from updated_at))::bigint as timestamp
		from auth.mfa_amr_claims where session_id = @session order by updated_at desc, authentication_method`,
		pgx.StrictNamedArgs{"session": session})
}

// sign returns the tokens of a session. It runs outside a transaction, see [Hooks].
func (d *Directory) sign(ctx context.Context, o opened) (Session, error) {
	s, u, now := o.sessionRow, o.user, time.Now()
	expires := now.Add(time.Duration(d.AccessTokenSeconds) * time.Second)
	if s.NotAfter != nil && s.NotAfter.Before(expires) {
		expires = *s.NotAfter
	}

	refreshKey, clientID := d.keys.refresh, ""
	if s.OAuthClientID.Valid {
		refreshKey, clientID = d.keys.clientRefresh, s.OAuthClientID.UUID.String()
	}

	body, end, err := d.customClaims(ctx, o, claims{Issuer: d.issuer(), Subject: u.ID, Audience: u.Aud,
		ExpiresAt: expires.Unix(), IssuedAt: now.Unix(), Email: u.Email, Phone: u.Phone, AppMetadata: u.AppMetadata,
		UserMetadata: u.UserMetadata, Role: u.Role, AAL: s.Aal, AMR: o.methods, SessionID: s.ID,
		IsAnonymous: u.IsAnonymous, ClientID: clientID})
	if err != nil {
		return Session{}, err
	}

	access, err := d.keys.signing.SignJWT(body)
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

// Refresh returns new tokens for a refresh token. For the token before the valid one it returns the
// valid one, since a client can lose the answer. For a few seconds it does so for any older token,
// since several tabs of a browser refresh at once; later an older one ends the session: one of its
// two holders is a thief.
//
// It fails with Invalid for an invalid token, an ended session and a banned user.
func (d *Directory) Refresh(ctx context.Context, text string, c Client) (Session, error) {
	s, _, err := d.refresh(ctx, d.keys.refresh, text, uuid.NullUUID{}, c)
	return s, err
}

// refresh is [Directory.Refresh] for the sessions of an OAuth client, or of the application.
func (d *Directory) refresh(
	ctx context.Context, key []byte, text string, client uuid.NullUUID, c Client,
) (signed Session, scope string, err error) {
	unknown := errRefreshToken("Refresh Token Not Found", "refresh_token_not_found")
	id, generation, ok := token.ParseRefresh(key, text)
	if !ok {
		return Session{}, "", unknown
	}

	for {
		r, err := pg.One[refreshable](ctx, d.q(), `
			select`+userColumns+`, s.id as session_id, s.created_at as session_created_at, s.aal, s.not_after,
				s.refreshed_at,
				s.refresh_token_counter, s.oauth_client_id, coalesce(s.scopes, '') as scope,
				(select json_agg(json_build_object('method', m.authentication_method,
						'timestamp', floor(extract(epoch from m.updated_at))::bigint) order by m.updated_at desc,
							m.authentication_method)
					from auth.mfa_amr_claims m where m.session_id = s.id) as methods
			from auth.sessions s join auth.users u on u.id = s.user_id
			where s.id = @id`, pgx.StrictNamedArgs{"id": id})
		if fault.Is(err, fault.NotFound) || (err == nil && r.OAuthClientID != client) {
			return Session{}, "", unknown
		}
		if err != nil {
			return Session{}, "", err
		}

		s := r.session()
		if refused := d.checkRefresh(s, r.User, int64(generation)); refused != nil {
			return Session{}, "", d.endRefused(ctx, s, r.User, refused, c)
		}

		// The hook is asked before the token is spent: the user stays signed in if it fails.
		o := opened{sessionRow: s, user: r.User, methods: r.Methods, method: "token_refresh", client: c}
		if int64(generation) == s.RefreshTokenCounter {
			o.RefreshTokenCounter++
		}

		signed, err := d.sign(ctx, o)
		if err != nil {
			return Session{}, "", hook.AtRefresh(err)
		}

		if int64(generation) == s.RefreshTokenCounter {
			n, err := pg.Exec(ctx, d.q(), `
				update auth.sessions set refresh_token_counter = @next, refreshed_at = now(), updated_at = now()
				where id = @id and refresh_token_counter = @current`,
				pgx.StrictNamedArgs{"id": id, "current": s.RefreshTokenCounter, "next": s.RefreshTokenCounter + 1})
			if err != nil {
				return Session{}, "", err
			}
			if n == 0 {
				continue // another request has refreshed or ended it meanwhile
			}
		}

		return signed, s.Scope, nil
	}
}

// refreshable is a session with its user and the methods by which it was authenticated.
type refreshable struct {
	User
	SessionID           uuid.UUID
	SessionCreatedAt    time.Time
	Aal                 string
	NotAfter            *time.Time
	RefreshedAt         *time.Time
	RefreshTokenCounter int64
	OAuthClientID       uuid.NullUUID `db:"oauth_client_id"`
	Scope               string
	Methods             []amr
}

func (r refreshable) session() sessionRow {
	return sessionRow{ID: r.SessionID, UserID: r.ID, CreatedAt: r.SessionCreatedAt, Aal: r.Aal, NotAfter: r.NotAfter,
		RefreshedAt: r.RefreshedAt, RefreshTokenCounter: r.RefreshTokenCounter, OAuthClientID: r.OAuthClientID,
		Scope: r.Scope}
}

// endRefused ends a session whose refresh was refused, unless its user is banned for a time. It
// returns the refusal.
func (d *Directory) endRefused(ctx context.Context, s sessionRow, u User, refused error, c Client) error {
	if fault.Of(refused).Code == "user_banned" {
		return refused
	}

	err := d.tx(ctx, "granting user", func(ctx context.Context, tx pgx.Tx) error {
		if _, err := pg.Exec(ctx, tx, `delete from auth.sessions where id = @id`,
			pgx.StrictNamedArgs{"id": s.ID}); err != nil {
			return err
		}

		return d.log(ctx, tx, "token_revoked", u, c)
	})
	if err != nil {
		return err
	}

	return refused
}

// checkRefresh fails unless a session may be refreshed by the token of a generation.
func (d *Directory) checkRefresh(s sessionRow, u User, generation int64) error {
	lastUse := s.CreatedAt
	if s.RefreshedAt != nil {
		lastUse = *s.RefreshedAt
	}

	switch now := time.Now(); {
	case u.IsBanned():
		return errRefreshToken("User Banned", "user_banned")
	case u.DeletedAt != nil:
		return errRefreshToken("Refresh Token Not Found", "refresh_token_not_found")
	case d.SessionSeconds > 0 && now.After(s.CreatedAt.Add(time.Duration(d.SessionSeconds)*time.Second)),
		s.NotAfter != nil && now.After(*s.NotAfter):
		return errRefreshToken("Session Expired", "session_expired")
	case d.SessionInactivitySeconds > 0 &&
		now.After(lastUse.Add(time.Duration(d.SessionInactivitySeconds)*time.Second)):
		return errRefreshToken("Session Expired (Inactivity)", "session_expired")
	case generation == s.RefreshTokenCounter:
		return nil
	case s.OAuthClientID.Valid: // its tokens are valid once
	case generation == s.RefreshTokenCounter-1:
		return nil
	case generation < s.RefreshTokenCounter && s.RefreshedAt != nil && now.Before(s.RefreshedAt.Add(reuseGrace)):
		return nil
	}

	return errRefreshToken("Already Used", "refresh_token_already_used")
}

// Identity is a signed-in user: the subject and the session of an access token. The session is zero
// only where [Directory.Authenticate] says so.
type Identity struct {
	User, Session uuid.UUID
}

// authenticated is the result of [Directory.Authenticate].
type authenticated struct {
	User
	AAL           string
	OAuthClientID uuid.NullUUID `db:"oauth_client_id"`
	Scope         string
}

// Authenticate returns the user of a token whose signature was verified. It fails with Forbidden if
// the user or the session no longer exists. A token without a session needs none.
func (d *Directory) Authenticate(ctx context.Context, who Identity) (User, error) {
	u, err := d.anyAuthenticated(ctx, d.q(), who)
	return u.User, err
}

// authenticate is [Directory.Authenticate] for what only the application itself may do: it refuses
// the sessions of OAuth clients.
func (d *Directory) authenticate(ctx context.Context, q pg.Querier, who Identity) (authenticated, error) {
	u, err := d.anyAuthenticated(ctx, q, who)
	if err == nil && u.OAuthClientID.Valid {
		err = fault.New(fault.Forbidden, "OAuth clients can't change users").WithCode("insufficient_scope")
	}

	return u, err
}

func (d *Directory) anyAuthenticated(ctx context.Context, q pg.Querier, who Identity) (authenticated, error) {
	u, err := pg.One[authenticated](ctx, q, `
		select`+userColumns+`, coalesce(s.aal, '') as aal, s.oauth_client_id, coalesce(s.scopes, '') as scope
		from auth.users u left join auth.sessions s on s.id = @session and s.user_id = u.id
			and (s.not_after is null or s.not_after > now())
		where u.id = @user and u.deleted_at is null`,
		pgx.StrictNamedArgs{"user": who.User, "session": who.Session})
	switch {
	case fault.Is(err, fault.NotFound):
		return u, errUserGone()
	case err != nil:
		return u, err
	case u.AAL == "" && who.Session != uuid.Nil:
		return u, ErrSessionMissing()
	case u.IsBanned():
		return u, fault.New(fault.Forbidden, "User is banned").WithCode("user_banned")
	}

	return u, nil
}

// Scopes of a log-out.
const (
	ScopeGlobal = "global" // all sessions of the user
	ScopeLocal  = "local"  // the session of the request
	ScopeOthers = "others" // all sessions but that of the request
)

// Logout ends sessions of a user.
func (d *Directory) Logout(ctx context.Context, who Identity, scope string, c Client) error {
	return d.tx(ctx, "logging out user", func(ctx context.Context, tx pgx.Tx) error {
		authenticate := d.authenticate
		if scope == ScopeLocal { // of an OAuth client, too
			authenticate = d.anyAuthenticated
		}

		u, err := authenticate(ctx, tx, who)
		if err != nil {
			return err
		}

		if _, err := pg.Exec(ctx, tx, `
			delete from auth.sessions where user_id = @user
				and (@scope = 'global' or @scope = 'local' and id = @session or @scope = 'others' and id <> @session)`,
			pgx.StrictNamedArgs{"user": who.User, "session": who.Session, "scope": scope}); err != nil {
			return err
		}

		return d.log(ctx, tx, "logout", u.User, c)
	})
}
