package accounts

import (
	"context"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/account"
	"github.com/socle-dev/socle/internal/operation"
)

func (s *Server) registerAccounts(p *operation.Pipeline) {
	operation.Handle(p, deleteAccount, s.deleteAccount, nil)
	operation.Handle(p, deleteUser, s.deleteUser, nil)
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

func (s *Server) deleteAccount(ctx context.Context, in *deleteAccountInput) (account.User, error) {
	return s.Accounts.DeleteAccount(ctx, operation.ClientOf(ctx), operation.Caller(ctx).User, account.Proof(in.Body))
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

func (s *Server) deleteUser(ctx context.Context, in *deleteUserInput) (account.User, error) {
	return s.Accounts.DeleteUser(ctx, operation.Caller(ctx), in.UUID)
}
