package platform

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"socle/internal/audit"
	"socle/internal/fault"
	"socle/internal/pg"
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

// Client is the origin of a request in a session: its address and its User-Agent.
type Client struct{ Address, Agent string }

// CreateSession opens a session for a user with this password hash. It also deletes expired
// sessions of the user. It fails with Unauthenticated if the password has changed, or the user was
// suspended, since the hash was read. The row lock ensures that no session outlives the password
// that opened it.
func (s *Store) CreateSession(
	ctx context.Context, user uuid.UUID, passwordHash string, client Client, ttl time.Duration,
) (RefreshableSession, error) {
	id, err := uuid.NewV7()
	if err != nil {
		return RefreshableSession{}, err
	}

	audit.SetActor(ctx, user)

	opened, err := txValue(ctx, s, func(tx *Store) (RefreshableSession, error) {
		return pg.One[RefreshableSession](ctx, tx.q, `
		with over as (delete from platform.sessions where user_uuid = @user and expires_at < now())
		insert into platform.sessions (uuid, user_uuid, address, user_agent, expires_at)
		select @id, u.uuid, @address, @agent, now() + @life::interval from platform.users u
		where u.uuid = @user and u.password_hash = @password and u.status = 'active'
		for share
		returning uuid, user_uuid, generation, expires_at`,
			pgx.StrictNamedArgs{
				"id": id, "user": user, "password": passwordHash, "address": client.Address,
				"agent": client.Agent, "life": ttl,
			})
	})
	if fault.Is(err, fault.NotFound) {
		err = fault.New(fault.Unauthenticated, "the password was changed").WithCode("invalid_credentials")
	}

	return opened, err
}

// RefreshableSession holds the inputs of a refresh token.
type RefreshableSession struct {
	UUID, UserUUID uuid.UUID
	Generation     int32 // of the current refresh token
	ExpiresAt      time.Time
}

// refreshGracePeriod is the grace period of a used refresh token, for a client that retries or that
// lost the response. Both calls get the token that followed it, so one valid token remains.
const refreshGracePeriod = 10 * time.Second

// RefreshSession uses up the refresh token of a generation and renews the session. Reuse of an
// older token deletes the session, because the token was stolen. It fails with Unauthenticated
// then, for an unknown or expired session, and for a suspended user.
func (s *Store) RefreshSession(
	ctx context.Context, session uuid.UUID, generation int32, client Client, ttl time.Duration,
) (RefreshableSession, error) {
	var renewed RefreshableSession
	var reused bool
	err := s.InTx(ctx, func(tx *Store) error {
		current, err := pg.One[struct {
			RefreshableSession
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
		case current.Generation == generation:
			renewed, err = pg.One[RefreshableSession](ctx, tx.q, `
				update platform.sessions
				set generation = generation + 1, refreshed_at = clock_timestamp(), expires_at = now() + @life::interval, address = @address, user_agent = @agent
				where uuid = @session
				returning uuid, user_uuid, generation, expires_at`,
				pgx.StrictNamedArgs{"session": session, "life": ttl, "address": client.Address, "agent": client.Agent})
		case current.Generation == generation+1 && current.JustRefreshed:
			renewed = current.RefreshableSession
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
		return renewed, fault.New(fault.Unauthenticated, "the session has ended").WithCode("invalid_token")
	}

	return renewed, err
}

// ListSessions returns a page of a user's active sessions and the total count. current is the
// session of the request.
func (s *Store) ListSessions(ctx context.Context, user, current uuid.UUID, page pg.Page) ([]Session, int64, error) {
	total, err := pg.Value[int64](ctx, s.q,
		`select count(*) from platform.sessions where user_uuid = @user and expires_at > now()`,
		pgx.StrictNamedArgs{"user": user})
	if err != nil {
		return nil, 0, err
	}

	sessions, err := pg.All[Session](ctx, s.q,
		`select`+sessionColumns+`from platform.sessions where user_uuid = @user and expires_at > now()`+
			page.Clause(map[string]string{"createdAt": "created_at", "lastUsedAt": "refreshed_at"}, "uuid"),
		pgx.StrictNamedArgs{"user": user, "current": current})
	return sessions, total, err
}

// DeleteSession ends a session of a user. The next request in it is rejected. It fails with
// NotFound for an unknown session.
func (s *Store) DeleteSession(ctx context.Context, user, current, id uuid.UUID) (Session, error) {
	return txValue(ctx, s, func(tx *Store) (Session, error) {
		return pg.One[Session](ctx, tx.q, `
			delete from platform.sessions where uuid = @id and user_uuid = @user and expires_at > now()
			returning`+sessionColumns, pgx.StrictNamedArgs{"id": id, "user": user, "current": current})
	})
}

// DeleteOtherSessions ends all sessions of a user except the current one and returns them.
func (s *Store) DeleteOtherSessions(ctx context.Context, user, current uuid.UUID) ([]Session, error) {
	return txValue(ctx, s, func(tx *Store) ([]Session, error) {
		return pg.All[Session](ctx, tx.q, `
			delete from platform.sessions where uuid <> @current and user_uuid = @user
			returning`+sessionColumns, pgx.StrictNamedArgs{"user": user, "current": current})
	})
}

// endSessions deletes all sessions of a user except keep.
func (s *Store) endSessions(ctx context.Context, user, keep uuid.UUID) error {
	_, err := pg.Exec(ctx, s.q, `delete from platform.sessions where user_uuid = @user and uuid <> @keep`,
		pgx.StrictNamedArgs{"user": user, "keep": keep})
	return err
}
