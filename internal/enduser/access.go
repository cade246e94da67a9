package enduser

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
)

// Identity is a signed-in user: an access token's subject and session. The session is zero only
// where [Directory.Authenticate] says so.
type Identity struct {
	User, Session uuid.UUID
}

// caller is what [Directory.Authenticate] loads.
type caller struct {
	User
	AAL           string
	OAuthClientID uuid.NullUUID `db:"oauth_client_id"`
	Scope         string
}

// Authenticate returns a verified token's user. It fails with Forbidden if the user or the session
// no longer exists. A token without a session needs none.
func (d *Directory) Authenticate(ctx context.Context, who Identity) (User, error) {
	u, err := d.anyAuthenticated(ctx, d.Rows(), who)
	return u.User, err
}

// authenticate is [Directory.Authenticate] where only the application itself is allowed: it refuses
// OAuth clients' sessions.
func (d *Directory) authenticate(ctx context.Context, q pg.Querier, who Identity) (caller, error) {
	u, err := d.anyAuthenticated(ctx, q, who)
	if err == nil && u.OAuthClientID.Valid {
		err = fault.New(fault.Forbidden, "OAuth clients can't change users").WithCode("insufficient_scope")
	}

	return u, err
}

func (d *Directory) anyAuthenticated(ctx context.Context, q pg.Querier, who Identity) (caller, error) {
	u, err := pg.One[caller](ctx, q, `
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

// Log-out scopes.
const (
	ScopeGlobal = "global" // all the user's sessions
	ScopeLocal  = "local"  // the request's session
	ScopeOthers = "others" // all sessions but the request's
)

// Logout ends a user's sessions.
func (d *Directory) Logout(ctx context.Context, who Identity, scope string, c Client) error {
	return d.Tx(ctx, "logging out user", func(ctx context.Context, tx pgx.Tx) error {
		authenticate := d.authenticate
		if scope == ScopeLocal { // OAuth clients may, too
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

// EndSessions ends all sessions of a user and returns their number. Access tokens stay valid to
// their end in the rows API.
func (d *Directory) EndSessions(ctx context.Context, id uuid.UUID, c Client) (int64, error) {
	var n int64
	err := d.Tx(ctx, "logging out user", func(ctx context.Context, tx pgx.Tx) error {
		u, err := userByID(ctx, tx, id)
		if err != nil {
			return err
		}

		if n, err = endSessions(ctx, tx, id); err != nil {
			return err
		}

		return d.log(ctx, tx, "logout", u, c)
	})

	return n, err
}

func endSessions(ctx context.Context, tx pgx.Tx, id uuid.UUID) (int64, error) {
	return pg.Exec(ctx, tx, `delete from auth.sessions where user_id = @id`, pgx.StrictNamedArgs{"id": id})
}
