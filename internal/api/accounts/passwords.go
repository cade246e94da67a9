package accounts

import (
	"context"
	"net/http"

	"github.com/socle-dev/socle/internal/operation"
)

func (s *Server) registerPasswords(p *operation.Pipeline) {
	operation.Handle(p, forgetPassword, s.forgetPassword, nil)
	operation.Handle(p, resetPassword, s.resetPassword, nil)
	operation.Handle(p, changeEmail, s.changeEmail, nil)
	operation.Handle(p, confirmEmail, s.confirmEmail, nil)
}

var forgetPassword = operation.Operation{
	ID: "forgetPassword", Method: "POST", Path: "/users/password/forgot", Summary: "Request a password reset",
	Access: operation.Anonymous, Errors: []int{400, 422, 429, 500}, Success: http.StatusOK,
	Notes: "If the address belongs to a user, mails a link that works once, within an hour. The response does not " +
		"reveal whether it does.",
}

type forgetPasswordInput struct {
	Body struct {
		Email string `json:"email" maxLength:"254"`
	}
}

func (s *Server) forgetPassword(ctx context.Context, in *forgetPasswordInput) (operation.Nothing, error) {
	return operation.Nothing{}, s.Accounts.ForgetPassword(ctx, operation.ClientOf(ctx), in.Body.Email)
}

var resetPassword = operation.Operation{
	ID: "resetPassword", Method: "POST", Path: "/users/password/reset", Summary: "Reset a password",
	Access: operation.Anonymous, Errors: []int{400, 422, 429, 500}, Success: http.StatusOK,
	Notes: "Ends all sessions of the user. A second factor stays unchanged. Failed log-ins from other networks do " +
		"not lock out the network of this request.",
}

type resetPasswordInput struct {
	Body struct {
		Token    string `json:"token" maxLength:"200" doc:"Token from the link in the mail."`
		Password string `json:"password"`
	}
}

func (s *Server) resetPassword(ctx context.Context, in *resetPasswordInput) (operation.Nothing, error) {
	return operation.Nothing{}, s.Accounts.ResetPassword(ctx, operation.ClientOf(ctx), in.Body.Token, in.Body.Password)
}

var changeEmail = operation.Operation{
	ID: "changeEmail", Method: "POST", Path: "/users/me/email", Summary: "Request a change of e-mail address",
	Access: operation.SignedIn, Errors: []int{400, 401, 422, 429, 500}, Success: http.StatusOK,
	Notes: "Mails a link to the new address and a notice to the current one. The address changes when the link is " +
		"opened, within a day.",
}

type changeEmailInput struct {
	Body struct {
		Email    string `json:"email" maxLength:"254"`
		Password string `json:"password" doc:"Your password."`
	}
}

func (s *Server) changeEmail(ctx context.Context, in *changeEmailInput) (operation.Nothing, error) {
	user, client := operation.Caller(ctx).User, operation.ClientOf(ctx)
	return operation.Nothing{}, s.Accounts.ChangeEmail(ctx, client, user, in.Body.Email, in.Body.Password)
}

var confirmEmail = operation.Operation{
	ID: "confirmEmail", Method: "POST", Path: "/users/email/confirm", Summary: "Confirm an e-mail address",
	Access: operation.Anonymous, Errors: []int{400, 409, 422, 500}, Success: http.StatusOK,
}

type confirmEmailInput struct {
	Body struct {
		Token string `json:"token" maxLength:"200" doc:"Token from the link in the mail."`
	}
}

// confirmedEmail is a user's new address.
type confirmedEmail struct {
	Email string `json:"email"`
}

func (s *Server) confirmEmail(ctx context.Context, in *confirmEmailInput) (confirmedEmail, error) {
	email, err := s.Accounts.ConfirmEmail(ctx, operation.ClientOf(ctx), in.Body.Token)
	return confirmedEmail{email}, err
}
