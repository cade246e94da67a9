package account

import (
	"context"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/audit"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/token"
)

// Token is a personal access token. Its text is shown once, on creation.
type Token struct {
	UUID         uuid.UUID    `json:"uuid"`
	Name         string       `json:"name"`
	Hint         string       `json:"hint" doc:"First characters of the token."`
	RoleID       Role         `json:"roleId" minimum:"1" maximum:"5" doc:"Highest role of the token: 1 administrator, 2 owner, 3 admin, 4 developer, 5 viewer."`
	ProjectUUIDs *[]uuid.UUID `json:"projectUuids" nullable:"true" doc:"Projects that the token can access; null: all of yours."`
	CreatedAt    time.Time    `json:"createdAt"`
	ExpiresAt    time.Time    `json:"expiresAt"`
	LastUsedAt   *time.Time   `json:"lastUsedAt" doc:"Accurate to ten minutes; null: never."`
}

const tokenColumns = ` t.uuid, t.name, t.hint, t.role as role_id, t.project_uuids, t.created_at, t.expires_at, t.last_used_at `

// NewToken holds a new token's parameters.
type NewToken struct {
	Name      string
	Role      Role
	Projects  []uuid.UUID // nil: all the user's projects
	ExpiresAt time.Time
}

const (
	maxTokens   = 100
	maxTokenTTL = 366 * 24 * time.Hour
)

// CreateToken creates a token for a user and returns its row and its text. It fails with
// Unprocessable if the name is blank, the expiry is past or more than a year away, or a project is
// not one of the user's. It fails with Conflict if the user has a token of that name.
func (s *Service) CreateToken(ctx context.Context, user uuid.UUID, n NewToken) (Token, string, error) {
	n.Name = strings.TrimSpace(n.Name)
	switch now := time.Now(); {
	case n.Name == "":
		return Token{}, "", fault.OnField(fault.Unprocessable, "name", "required", "must not be blank")
	case !n.ExpiresAt.After(now) || n.ExpiresAt.After(now.Add(maxTokenTTL)):
		return Token{}, "", fault.OnField(fault.Unprocessable, "expires_at", "out_of_range",
			"must be in the future, and at most a year from now")
	}

	id, err := uuid.NewV7()
	if err != nil {
		return Token{}, "", err
	}

	text := token.NewAPIKey(token.PersonalPrefix)
	row, err := pg.InTxValue(ctx, s.inTx, func(tx *Service) (Token, error) {
		audit.CreatedUUID(ctx, id)
		if err := tx.requireProjectAccess(ctx, user, n.Projects); err != nil {
			return Token{}, err
		}
		if err := tx.lockUser(ctx, user); err != nil {
			return Token{}, err
		}

		return pg.One[Token](ctx, tx.q, `
			insert into platform.tokens as t (uuid, user_uuid, name, hint, hash, role, project_uuids, expires_at)
			select @id, @user, @name, @hint, @hash, @role, @projects, @expires
			where (select count(*) from platform.tokens where user_uuid = @user) < @max::bigint
			returning`+tokenColumns,
			pgx.StrictNamedArgs{"id": id, "user": user, "name": n.Name,
				"hint": token.Hint(token.PersonalPrefix, text), "hash": token.Hash(text), "role": n.Role,
				"projects": n.Projects, "expires": n.ExpiresAt, "max": maxTokens})
	})
	switch {
	case pg.Violates(err, "tokens_name_key"):
		return row, "", fault.OnField(fault.Conflict, "name", "already_exists",
			"is taken by another token of yours").WithCause(err)
	case fault.Is(err, fault.NotFound):
		return row, "", fault.New(fault.Unprocessable, "you have reached the limit of %d tokens", maxTokens).
			WithCode("quota_exceeded")
	}

	return row, text, err
}

// requireProjectAccess fails with Unprocessable if the user has no access to one of the projects.
func (s *Service) requireProjectAccess(ctx context.Context, user uuid.UUID, projects []uuid.UUID) error {
	unknown, err := pg.Value[int](ctx, s.q, `
		select count(*)::int from unnest(@projects::uuid[]) named where not exists (
			select from platform.projects p join platform.users u on u.uuid = @user
			left join platform.members m on m.organization_uuid = p.organization_uuid and m.user_uuid = u.uuid
			where p.uuid = named and (u.is_administrator or m.role is not null))`,
		pgx.StrictNamedArgs{"projects": projects, "user": user})
	if err != nil {
		return err
	}

	if unknown > 0 {
		return fault.OnField(fault.Unprocessable, "project_uuids", "not_found",
			"must only name projects that you can access")
	}

	return nil
}

// ListTokens returns a page of a user's tokens and the total count. Expired ones stay listed for a
// month.
func (s *Service) ListTokens(ctx context.Context, user uuid.UUID, page pg.Page) ([]Token, int64, error) {
	return pg.List[Token](ctx, s.q, pg.Listing{
		Columns: tokenColumns,
		From:    `platform.tokens t where user_uuid = @user`,
		Sorts:   map[string]string{"name": "t.name", "createdAt": "t.created_at", "expiresAt": "t.expires_at"},
		Tie:     "t.uuid",
	}, page, pgx.StrictNamedArgs{"user": user})
}

// DeleteToken revokes a token. The next request with it is rejected. It fails with NotFound for an
// unknown token.
func (s *Service) DeleteToken(ctx context.Context, user, id uuid.UUID) (Token, error) {
	return pg.InTxValue(ctx, s.inTx, func(tx *Service) (Token, error) {
		return pg.One[Token](ctx, tx.q, `
			delete from platform.tokens t where uuid = @id and user_uuid = @user returning`+tokenColumns,
			pgx.StrictNamedArgs{"id": id, "user": user})
	})
}

// touchToken records that a token was used. The audit log has no entry for it.
func (s *Service) touchToken(ctx context.Context, id uuid.UUID) error {
	_, err := pg.Exec(ctx, s.q, `
		update platform.tokens set last_used_at = now()
		where uuid = @id and (last_used_at is null or last_used_at < now() - interval '10 minutes')`,
		pgx.StrictNamedArgs{"id": id})
	return err
}

// deleteExpiredTokens deletes tokens that expired at least 30 days ago.
func (s *Service) deleteExpiredTokens(ctx context.Context) error {
	_, err := pg.Exec(ctx, s.q, `delete from platform.tokens where expires_at < now() - interval '30 days'`)
	return err
}
