package account

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/audit"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/token"
)

// Session is a log-in that its refresh tokens renew.
type Session struct {
	UUID       uuid.UUID `json:"uuid"`
	CreatedAt  time.Time `json:"createdAt"`
	LastUsedAt time.Time `json:"lastUsedAt" doc:"When it was last refreshed, once an hour while in use."`
	ExpiresAt  time.Time `json:"expiresAt" doc:"When it ends unless refreshed."`
	Address    string    `json:"address" doc:"Client address of the log-in or the last refresh."`
	UserAgent  string    `json:"userAgent" doc:"User-Agent of the log-in or the last refresh."`
	IsCurrent  bool      `json:"isCurrent" doc:"Whether it is the session of this request."`
}

// sessionColumns requires the argument @current.
const sessionColumns = ` uuid, created_at, refreshed_at as last_used_at, expires_at, address, user_agent, uuid = @current as is_current `

// sessionTTL is a session's lifetime after its log-in or its last refresh.
const sessionTTL = 30 * 24 * time.Hour

// Tokens are a session's credentials.
type Tokens struct {
	Token            string    `json:"token" doc:"JWT for the Authorization header."`
	TokenType        string    `json:"tokenType" enum:"Bearer"`
	ExpiresAt        time.Time `json:"expiresAt"`
	RefreshToken     string    `json:"refreshToken"`
	RefreshExpiresAt time.Time `json:"refreshExpiresAt"`
}

// SignedIn is a user with a session's credentials.
type SignedIn struct {
	User   User
	Tokens Tokens
}

// signIn opens a session for a user, whose password hash was verified. Call it in a transaction.
func (s *Service) signIn(ctx context.Context, client Client, user User, passwordHash string) (SignedIn, error) {
	session, err := s.createSession(ctx, user.UUID, passwordHash, client)
	if err != nil {
		return SignedIn{}, err
	}

	if err := s.rememberNetwork(ctx, client, user); err != nil {
		return SignedIn{}, err
	}

	return s.signedIn(user, session)
}

// signedIn returns a session's tokens.
func (s *Service) signedIn(user User, session refreshableSession) (SignedIn, error) {
	access, claims, err := s.keyring.Load().Sign(user.UUID, session.UUID, time.Now())
	if err != nil {
		return SignedIn{}, err
	}

	return SignedIn{user, Tokens{
		Token:            access,
		TokenType:        "Bearer",
		ExpiresAt:        claims.ExpiresAt,
		RefreshToken:     token.Refresh(s.RefreshKey, session.UUID, uint32(session.Generation)),
		RefreshExpiresAt: session.ExpiresAt,
	}}, nil
}

// createSession opens a session for a user with this password hash. It also deletes expired
// sessions of the user. It fails with Unauthenticated if the password has changed, or the user was
// suspended, since the hash was read. The row lock ensures that no session outlives the password
// that opened it. Call it in a transaction.
func (s *Service) createSession(
	ctx context.Context, user uuid.UUID, passwordHash string, client Client,
) (refreshableSession, error) {
	id, err := uuid.NewV7()
	if err != nil {
		return refreshableSession{}, err
	}

	audit.SetActor(ctx, user)

	session, err := pg.One[refreshableSession](ctx, s.q, `
		with over as (delete from platform.sessions where user_uuid = @user and expires_at < now())
		insert into platform.sessions (uuid, user_uuid, address, user_agent, expires_at)
		select @id, u.uuid, @address, @agent, now() + @life::interval from platform.users u
		where u.uuid = @user and u.password_hash = @password and u.status = 'active'
		for share
		returning uuid, user_uuid, generation, expires_at`,
		pgx.StrictNamedArgs{
			"id": id, "user": user, "password": passwordHash, "address": client.Address,
			"agent": client.Agent, "life": sessionTTL,
		})
	if fault.Is(err, fault.NotFound) {
		err = fault.New(fault.Unauthenticated, "the password was changed").WithCode("invalid_credentials")
	}

	return session, err
}

// refreshableSession holds a refresh token's inputs.
type refreshableSession struct {
	UUID, UserUUID uuid.UUID
	Generation     int32 // the current refresh token's
	ExpiresAt      time.Time
}

// refreshGracePeriod is the grace period of a used refresh token, for a client that retries or that
// lost the response. Both calls get the token that followed it, so one valid token remains.
const refreshGracePeriod = 10 * time.Second

// RefreshSession exchanges a refresh token for the next tokens of its session. It fails with
// Unauthenticated if the token is forged, and as [Service.renewSession] does.
func (s *Service) RefreshSession(ctx context.Context, client Client, refreshToken string) (SignedIn, error) {
	return s.refreshSession(ctx, client, refreshToken, false)
}

// RefreshSharedSession is [Service.RefreshSession] for a refresh token that a browser's tabs share.
// Each tab sends the token that it has seen, in any order. So a refresh within the grace period of
// another one does not use the token up: no tab falls two tokens behind, which would end the
// session.
func (s *Service) RefreshSharedSession(ctx context.Context, client Client, refreshToken string) (SignedIn, error) {
	return s.refreshSession(ctx, client, refreshToken, true)
}

func (s *Service) refreshSession(
	ctx context.Context, client Client, refreshToken string, shared bool,
) (SignedIn, error) {
	id, generation, ok := token.ParseRefresh(s.RefreshKey, refreshToken)
	if !ok {
		return SignedIn{}, errInvalidRefreshToken()
	}

	session, err := s.renewSession(ctx, id, int32(generation), client, shared)
	if err != nil {
		return SignedIn{}, err
	}

	user, err := s.CurrentUser(ctx, session.UserUUID)
	if err != nil {
		return SignedIn{}, err
	}

	return s.signedIn(user, session)
}

func errInvalidRefreshToken() error {
	return fault.New(fault.Unauthenticated, "the refresh token is invalid").WithCode("invalid_token")
}

// renewSession uses up the refresh token of a generation and renews the session. Reuse of an
// older token deletes the session, because the token was stolen. It fails with Unauthenticated
// then, for an unknown or expired session, and for a suspended user. shared is for
// [Service.RefreshSharedSession].
func (s *Service) renewSession(
	ctx context.Context, session uuid.UUID, generation int32, client Client, shared bool,
) (refreshableSession, error) {
	var renewed refreshableSession
	var reused bool
	err := s.inTx(ctx, func(tx *Service) error {
		current, err := pg.One[struct {
			refreshableSession
			JustRefreshed bool
		}](ctx, tx.q, `
			select s.uuid, s.user_uuid, s.generation, s.expires_at, s.refreshed_at > clock_timestamp() - @doubled::interval as just_refreshed
			from platform.sessions s join platform.users u on u.uuid = s.user_uuid
			where s.uuid = @session and s.expires_at > now() and u.status = 'active'
			for update of s`, pgx.StrictNamedArgs{"session": session, "doubled": refreshGracePeriod})
		if err != nil {
			return err
		}

		audit.SetActor(ctx, current.UserUUID)

		switch {
		case current.Generation == generation && current.JustRefreshed && shared:
			renewed = current.refreshableSession
		case current.Generation == generation:
			renewed, err = pg.One[refreshableSession](ctx, tx.q, `
				update platform.sessions
				set generation = generation + 1, refreshed_at = clock_timestamp(), expires_at = now() + @life::interval, address = @address, user_agent = @agent
				where uuid = @session
				returning uuid, user_uuid, generation, expires_at`,
				pgx.StrictNamedArgs{
					"session": session, "life": sessionTTL, "address": client.Address, "agent": client.Agent,
				})
		case current.Generation == generation+1 && current.JustRefreshed:
			renewed = current.refreshableSession
		default:
			reused = true
			_, err = pg.Exec(ctx, tx.q, `delete from platform.sessions where uuid = @session`,
				pgx.StrictNamedArgs{"session": session})
		}

		return err
	})
	if reused && err == nil {
		return renewed, fault.New(fault.Unauthenticated,
			"the refresh token was already used, so its session has ended").
			WithCode("token_reused")
	}
	if fault.Is(err, fault.NotFound) {
		return renewed, errSessionEnded()
	}

	return renewed, err
}

// ListSessions returns a page of the actor's active sessions and the total count.
func (s *Service) ListSessions(ctx context.Context, actor Caller, page pg.Page) ([]Session, int64, error) {
	return pg.List[Session](ctx, s.q, pg.Listing{
		Columns: sessionColumns,
		From:    `platform.sessions where user_uuid = @user and expires_at > now()`,
		Sorts:   map[string]string{"createdAt": "created_at", "lastUsedAt": "refreshed_at"},
		Tie:     "uuid",
	}, page, pgx.StrictNamedArgs{"user": actor.User, "current": actor.Session})
}

// Logout ends the actor's session. It fails with Unauthenticated if the session has ended already.
func (s *Service) Logout(ctx context.Context, actor Caller) (Session, error) {
	session, err := s.DeleteSession(ctx, actor, actor.Session)
	if fault.Is(err, fault.NotFound) {
		err = errSessionEnded()
	}

	return session, err
}

// EndSession ends the session of a refresh token, which may be used up. It fails with
// Unauthenticated if the token is forged or the session has ended already.
func (s *Service) EndSession(ctx context.Context, refreshToken string) (Session, error) {
	id, _, ok := token.ParseRefresh(s.RefreshKey, refreshToken)
	if !ok {
		return Session{}, errInvalidRefreshToken()
	}

	ended, err := pg.InTxValue(ctx, s.inTx, func(tx *Service) (Session, error) {
		ended, err := pg.One[struct {
			Session
			UserUUID uuid.UUID
		}](ctx, tx.q, `
			delete from platform.sessions where uuid = @current and expires_at > now()
			returning user_uuid,`+sessionColumns, pgx.StrictNamedArgs{"current": id})
		if err == nil {
			audit.SetActor(ctx, ended.UserUUID)
		}

		return ended.Session, err
	})
	if fault.Is(err, fault.NotFound) {
		err = errSessionEnded()
	}

	return ended, err
}

// DeleteSession ends one of the actor's sessions. The next request in it is rejected. It fails with
// NotFound for an unknown session.
func (s *Service) DeleteSession(ctx context.Context, actor Caller, id uuid.UUID) (Session, error) {
	return pg.InTxValue(ctx, s.inTx, func(tx *Service) (Session, error) {
		return pg.One[Session](ctx, tx.q, `
			delete from platform.sessions where uuid = @id and user_uuid = @user and expires_at > now()
			returning`+sessionColumns, pgx.StrictNamedArgs{"id": id, "user": actor.User, "current": actor.Session})
	})
}

// DeleteOtherSessions ends all sessions of the actor except the current one and returns them.
func (s *Service) DeleteOtherSessions(ctx context.Context, actor Caller) ([]Session, error) {
	return pg.InTxValue(ctx, s.inTx, func(tx *Service) ([]Session, error) {
		return pg.All[Session](ctx, tx.q, `
			delete from platform.sessions where uuid <> @current and user_uuid = @user
			returning`+sessionColumns, pgx.StrictNamedArgs{"user": actor.User, "current": actor.Session})
	})
}

// endSessions deletes a user's sessions except keep.
func (s *Service) endSessions(ctx context.Context, user, keep uuid.UUID) error {
	_, err := pg.Exec(ctx, s.q, `delete from platform.sessions where user_uuid = @user and uuid <> @keep`,
		pgx.StrictNamedArgs{"user": user, "keep": keep})
	return err
}
