package account

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
)

// UserFilter narrows a list of users. The zero value selects all users.
type UserFilter struct {
	Search string // part of a user name or an address, case-insensitive, or a whole UUID
	Status string // active or suspended
}

// ListUsers returns a page of the install's users and the total count.
func (s *Service) ListUsers(ctx context.Context, f UserFilter, page pg.Page) ([]User, int64, error) {
	const found = `platform.users u
		where (@status = '' or u.status = @status)
		and (@search = '' or strpos(u.username_folded, @search) > 0 or strpos(u.email_folded, @search) > 0 or u.uuid::text = @search)`

	return pg.List[User](ctx, s.q, pg.Listing{
		Columns: userColumns,
		From:    found,
		Sorts: map[string]string{
			"username": "u.username_folded", "email": "u.email_folded",
			"createdAt": "u.created_at", "updatedAt": "u.updated_at",
		},
		Tie: "u.uuid",
	}, page, pgx.StrictNamedArgs{"search": fold(f.Search), "status": f.Status})
}

// Standing holds the fields of a user that only an administrator may change. Nil fields are left
// unchanged.
type Standing struct {
	Status          *string // active or suspended
	IsAdministrator *bool
}

// UpdateStanding changes a user's standing. Suspending a user deletes all their sessions. It voids
// the invitations that the user could no longer send. It fails with NotFound for an unknown user,
// with Unprocessable if nothing is to change, and with Conflict if the install would lose its last
// active administrator.
func (s *Service) UpdateStanding(ctx context.Context, id uuid.UUID, standing Standing) (User, error) {
	if standing == (Standing{}) {
		if _, err := s.GetUser(ctx, id); err != nil {
			return User{}, err
		}

		return User{}, fault.NothingToChange()
	}

	return pg.InTxValue(ctx, s.inTx, func(tx *Service) (User, error) {
		n, err := pg.Exec(ctx, tx.q, `
			update platform.users
			set status = coalesce(@status, status), is_administrator = coalesce(@administrator, is_administrator), updated_at = now()
			where uuid = @id`,
			pgx.StrictNamedArgs{"id": id, "status": standing.Status, "administrator": standing.IsAdministrator})
		switch {
		case pg.Violates(err, "users_last_administrator"):
			return User{}, fault.New(fault.Conflict, "the instance would have no active administrator").
				WithCode("last_administrator").WithCause(err)
		case err != nil:
			return User{}, err
		case n == 0:
			return User{}, fault.New(fault.NotFound, "there is no such user")
		}

		if err := tx.voidInvitations(ctx, id); err != nil {
			return User{}, err
		}

		user, err := tx.GetUser(ctx, id)
		if err != nil || user.Status == "active" {
			return user, err
		}

		return user, tx.endSessions(ctx, id, uuid.Nil)
	})
}
