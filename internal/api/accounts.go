package api

import (
	"context"

	"github.com/google/uuid"

	"socle/internal/account"
	"socle/internal/fault"
	"socle/internal/operation"
	"socle/internal/platform"
)

func (s *Server) registerAccounts() {
	operation.Handle(s.pipeline, deleteAccount, s.deleteAccount, nil)
	operation.Handle(s.pipeline, deleteUser, s.deleteUser, nil)
}

const deletionNotes = "Ends the user's sessions and memberships, and deletes organizations without another member " +
	"or project. Entities that the user created remain, with the user's UUID. Fails while an organization with " +
	"projects or other members has no other owner (`last_owner`, with `organizations` in `metadata`), or the " +
	"instance has no other administrator (`last_administrator`)."

var deleteAccount = operation.Operation{
	ID: "deleteAccount", Method: "DELETE", Path: "/users/me", Summary: "Delete your account",
	Access: operation.SignedIn, Errors: []int{400, 401, 409, 422, 429, 500},
	Notes: deletionNotes,
}

type deleteAccountInput struct{ Body proof }

func (s *Server) deleteAccount(ctx context.Context, in *deleteAccountInput) (platform.User, error) {
	user, err := s.confirmPassword(ctx, in.Body.Password)
	if err != nil {
		return platform.User{}, err
	}

	spend, err := s.checkSecondFactor(ctx, user.UUID, in.Body.Code)
	if err != nil {
		return platform.User{}, err
	}

	deleted, err := s.removeUser(ctx, spend, user.UUID)
	if fault.Is(err, fault.NotFound) {
		err = errSessionEnded()
	}

	return deleted, err
}

var deleteUser = operation.Operation{
	ID: "deleteUser", Method: "DELETE", Path: "/users/{userUUID}", Summary: "Delete a user",
	Access: operation.SignedIn, Errors: []int{400, 401, 403, 404, 409, 500},
	Notes: "Only for administrators of the instance, and only for other users; `DELETE /users/me` deletes the " +
		"caller. " +
		deletionNotes,
}

type deleteUserInput struct {
	UUID uuid.UUID `path:"userUUID" format:"uuid"`
}

func (s *Server) deleteUser(ctx context.Context, in *deleteUserInput) (platform.User, error) {
	c := caller(ctx)
	if !c.Administrator || c.User == in.UUID {
		return platform.User{}, fault.New(fault.Forbidden,
			"deleting another user needs an administrator of the instance")
	}

	return s.removeUser(ctx, nil, in.UUID)
}

func (s *Server) removeUser(ctx context.Context, spend spendCode, id uuid.UUID) (platform.User, error) {
	var user platform.User
	err := s.withSecondFactor(ctx, spend, id, func(tx *platform.Store) error {
		var err error
		if user, err = tx.DeleteUser(ctx, id); err != nil {
			return err
		}

		return s.mails.Send(ctx, tx, account.Mail{
			Template: "account-deleted",
			To:       user.Email,
			Data:     map[string]string{"username": user.Username},
		})
	})

	return user, err
}
