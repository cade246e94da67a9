package accounts

import (
	"context"
	"net/http"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/account"
	"github.com/socle-dev/socle/internal/operation"
)

func (s *Server) registerUsers(p *operation.Pipeline) {
	operation.Handle(p, createUser, s.createUser, nil)
	operation.Handle(p, login, s.login, nil)
	operation.Handle(p, updateUser, s.updateUser, s.mayUpdateUser)
	operation.Handle(p, getAccount, s.getAccount, nil)
}

var createUser = operation.Operation{
	ID: "createUser", Method: "POST", Path: "/users", Summary: "Create a user",
	Access: operation.OptionalUser, Specified: true, Errors: []int{400, 429, 500},
	Notes: "Creates a personal organization for the user and signs the user in. The first user of an instance " +
		"becomes its administrator if the request comes directly from the machine that runs the server, or carries " +
		"the set-up token that the server printed. If sign-up is closed, only that user, invited users, and users " +
		"created by an administrator with a bearer token are accepted.",
	Example: `{"username": "ada", "email": "ada@example.com", "password": "correct horse battery"}`,
}

type createUserInput struct {
	Body struct {
		Username   string `json:"username" doc:"3 to 100 letters, digits, _ or -."`
		Email      string `json:"email" maxLength:"254"`
		Password   string `json:"password"`
		Bio        string `json:"bio,omitempty" maxLength:"500"`
		SetupToken string `json:"setup_token,omitempty" maxLength:"100"`

		InvitationToken string `json:"invitation_token,omitempty" maxLength:"200" doc:"Token from the link in an invitation to this address."`
	}
}

func (s *Server) createUser(ctx context.Context, in *createUserInput) (signedInUser, error) {
	caller, client := operation.Caller(ctx), operation.ClientOf(ctx)
	return respondSignedIn(s.Accounts.SignUp(ctx, caller, client, account.SignUp(in.Body)))
}

var login = operation.Operation{
	ID: "login", Method: "POST", Path: "/users/login", Summary: "Log in", Access: operation.Anonymous,
	Specified: true, Errors: []int{400, 401, 429, 500}, Success: http.StatusOK,
	Notes: "The access token is in the metadata and in the Authorization header of the response. If the user has a " +
		"second factor, the correct password without `code` fails with 401, `second_factor_required`.",
}

type loginInput struct {
	Body struct {
		Email    string `json:"email"`
		Password string `json:"password"`
		Code     string `json:"code,omitempty" maxLength:"64" doc:"Code of the user's second factor, if any: six digits from the app, or a recovery code."`
	}
}

func (s *Server) login(ctx context.Context, in *loginInput) (signedInUser, error) {
	return respondSignedIn(s.Accounts.Login(ctx, operation.ClientOf(ctx), account.Credentials(in.Body)))
}

var updateUser = operation.Operation{
	ID: "updateUser", Method: "PUT", Path: "/users/{userUUID}", Summary: "Update a user",
	Access: operation.SignedIn, Specified: true, Errors: operation.SpecifiedBodyErrors,
	Notes: "Users can update themselves; administrators can update anyone. Omitted members stay unchanged. A new " +
		"password ends all other sessions of the user.",
	Example: `{"bio": "Writes about engines."}`,
}

type updateUserInput struct {
	UUID uuid.UUID `path:"userUUID" format:"uuid"`
	Body struct {
		Username *string `json:"username,omitempty" doc:"3 to 100 letters, digits, _ or -."`
		Email    *string `json:"email,omitempty" maxLength:"254"`
		Password *string `json:"password,omitempty"`
		Bio      *string `json:"bio,omitempty" maxLength:"500"`
	}
}

func (s *Server) mayUpdateUser(ctx context.Context, in *updateUserInput) error {
	return s.Accounts.CheckUserUpdate(ctx, operation.Caller(ctx), in.UUID)
}

func (s *Server) updateUser(ctx context.Context, in *updateUserInput) (account.User, error) {
	return s.Accounts.UpdateUser(ctx, operation.Caller(ctx), in.UUID, account.UserUpdate(in.Body))
}

var getAccount = operation.Operation{
	ID: "getAccount", Method: "GET", Path: "/users/me", Summary: "Get your account",
	Access: operation.OwnAccount, Errors: []int{401, 500},
}

func (s *Server) getAccount(ctx context.Context, _ *struct{}) (account.User, error) {
	return *operation.Caller(ctx).Account, nil
}
