package platform

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"socle/internal/fault"
	"socle/internal/pg"
)

// UserFilter narrows a list of users. The zero value selects all users.
type UserFilter struct {
	Search string // part of a user name or an address, case-insensitive, or a whole UUID
	Status string // active or suspended
}

// ListUsers returns a page of the users of the install and the total count.
func (s *Store) ListUsers(ctx context.Context, f UserFilter, page pg.Page) ([]User, int64, error) {
	const found = `
		from platform.users u
		where (@status = '' or u.status = @status)
		and (@search = '' or strpos(u.username_folded, @search) > 0 or strpos(u.email_folded, @search) > 0 or u.uuid::text = @search)`

	args := pgx.StrictNamedArgs{"search": fold(f.Search), "status": f.Status}
	total, err := pg.Value[int64](ctx, s.q, `select count(*)`+found, args)
	if err != nil {
		return nil, 0, err
	}

	users, err := pg.All[User](ctx, s.q, `select `+userColumns+found+page.Clause(map[string]string{
		"username": "u.username_folded", "email": "u.email_folded",
		"createdAt": "u.created_at", "updatedAt": "u.updated_at"}, "u.uuid"), args)
	return users, total, err
}

// Standing holds the fields of a user that only an administrator may change. Nil fields are left
// unchanged.
type Standing struct {
	Status          *string // active or suspended
	IsAdministrator *bool
}

// UpdateUserAsAdmin changes a user's standing. Suspending a user deletes all their sessions. It
// fails with NotFound for an unknown user, and with Conflict if the install would lose its last
// active administrator.
func (s *Store) UpdateUserAsAdmin(ctx context.Context, id uuid.UUID, standing Standing) (User, error) {
	var user User
	err := s.InTx(ctx, func(tx *Store) error {
		n, err := pg.Exec(ctx, tx.q, `
			update platform.users
			set status = coalesce(@status, status), is_administrator = coalesce(@administrator, is_administrator), updated_at = now()
			where uuid = @id`,
			pgx.StrictNamedArgs{"id": id, "status": standing.Status, "administrator": standing.IsAdministrator})
		switch {
		case pg.Violates(err, "users_last_administrator"):
			return fault.New(fault.Conflict, "the instance would have no active administrator").
				WithCode("last_administrator").WithCause(err)
		case err != nil:
			return err
		case n == 0:
			return fault.New(fault.NotFound, "there is no such user")
		}

		if user, err = tx.GetUser(ctx, id); err != nil || user.Status == "active" {
			return err
		}

		return tx.endSessions(ctx, id, uuid.Nil)
	})

	return user, err
}
