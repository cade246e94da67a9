package enduser

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/hook"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/token"
)

const reuseGrace = 10 * time.Second // time in which tabs may repeat a refresh

// Refresh returns new tokens for a refresh token. For the token before the valid one it returns the
// valid one, since a client can lose the answer. For a few seconds it does so for any older token,
// since several tabs of a browser refresh at once; later an older one ends the session: one of its
// two holders is a thief.
//
// It fails with Invalid for an invalid token, an ended session and a banned user.
func (d *Directory) Refresh(ctx context.Context, text string, c Client) (Session, error) {
	s, _, err := d.refresh(ctx, d.keys.refreshKey, text, uuid.NullUUID{}, c)
	return s, err
}

// refresh is [Directory.Refresh] for an OAuth client's sessions, or the application's.
func (d *Directory) refresh(
	ctx context.Context, key []byte, text string, client uuid.NullUUID, c Client,
) (tokens Session, scope string, err error) {
	notFound := errRefreshToken("Refresh Token Not Found", "refresh_token_not_found")
	id, generation, ok := token.ParseRefresh(key, text)
	if !ok {
		return Session{}, "", notFound
	}

	for {
		r, err := pg.One[refreshRow](ctx, d.Rows(), `
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
			return Session{}, "", notFound
		}
		if err != nil {
			return Session{}, "", err
		}

		s := r.session()
		if refusal := d.checkRefresh(s, r.User, int64(generation)); refusal != nil {
			return Session{}, "", d.endRefused(ctx, s, r.User, refusal, c)
		}

		// The hook is asked before the token is spent: the user stays signed in if it fails.
		o := unsignedSession{sessionRow: s, user: r.User, methods: r.Methods, method: "token_refresh", client: c}
		if int64(generation) == s.RefreshTokenCounter {
			o.RefreshTokenCounter++
		}

		tokens, err := d.sign(ctx, o)
		if err != nil {
			return Session{}, "", hook.AtRefresh(err)
		}

		if int64(generation) == s.RefreshTokenCounter {
			n, err := pg.Exec(ctx, d.Rows(), `
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

		return tokens, s.Scope, nil
	}
}

// refreshRow is a session with its user and the methods by which it was authenticated.
type refreshRow struct {
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

func (r refreshRow) session() sessionRow {
	return sessionRow{ID: r.SessionID, UserID: r.ID, CreatedAt: r.SessionCreatedAt, Aal: r.Aal, NotAfter: r.NotAfter,
		RefreshedAt: r.RefreshedAt, RefreshTokenCounter: r.RefreshTokenCounter, OAuthClientID: r.OAuthClientID,
		Scope: r.Scope}
}

// checkRefresh fails unless a session may be refreshed by a generation's token.
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

// endRefused ends a session whose refresh was refused, unless its user is banned for a time. It
// returns the refusal.
func (d *Directory) endRefused(ctx context.Context, s sessionRow, u User, refusal error, c Client) error {
	if fault.Of(refusal).Code == "user_banned" {
		return refusal
	}

	err := d.Tx(ctx, "granting user", func(ctx context.Context, tx pgx.Tx) error {
		if _, err := pg.Exec(ctx, tx, `delete from auth.sessions where id = @id`,
			pgx.StrictNamedArgs{"id": s.ID}); err != nil {
			return err
		}

		return d.log(ctx, tx, "token_revoked", u, c)
	})
	if err != nil {
		return err
	}

	return refusal
}
