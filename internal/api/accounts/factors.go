package accounts

import (
	"context"
	"net/http"

	"github.com/socle-dev/socle/internal/account"
	"github.com/socle-dev/socle/internal/operation"
)

func (s *Server) registerFactors(p *operation.Pipeline) {
	operation.Handle(p, getSecondFactor, s.getSecondFactor, nil)
	operation.Handle(p, createSecondFactor, s.createSecondFactor, nil)
	operation.Handle(p, confirmSecondFactor, s.confirmSecondFactor, nil)
	operation.Handle(p, deleteSecondFactor, s.deleteSecondFactor, nil)
}

var getSecondFactor = operation.Operation{
	ID: "getSecondFactor", Method: "GET", Path: "/users/me/totp", Summary: "Get your second factor",
	Access: operation.SignedIn, Errors: []int{401, 404, 500},
}

func (s *Server) getSecondFactor(ctx context.Context, _ *struct{}) (account.FactorState, error) {
	return s.Accounts.GetSecondFactor(ctx, operation.Caller(ctx).User)
}

var createSecondFactor = operation.Operation{
	ID: "createSecondFactor", Method: "POST", Path: "/users/me/totp", Summary: "Create a second factor",
	Access: operation.SignedIn, Errors: []int{400, 401, 409, 422, 429, 500},
	Notes: "Add the secret to an authenticator app, by hand or as a QR code of `url`. The second factor takes " +
		"effect after confirmSecondFactor.",
}

type createSecondFactorInput struct {
	Body struct {
		Password string `json:"password" doc:"Your password."`
	}
}

func (s *Server) createSecondFactor(
	ctx context.Context, in *createSecondFactorInput,
) (operation.Answer[account.NewFactor, struct{}], error) {
	f, err := s.Accounts.CreateSecondFactor(ctx, operation.ClientOf(ctx), operation.Caller(ctx).User, in.Body.Password)
	return operation.Secret(f, struct{}{}), err
}

var confirmSecondFactor = operation.Operation{
	ID: "confirmSecondFactor", Method: "POST", Path: "/users/me/totp/confirm", Summary: "Confirm your second factor",
	Access: operation.SignedIn, Errors: []int{400, 401, 404, 409, 422, 429, 500},
	Success: http.StatusOK,
	Notes: "From now on, log-ins require a `code`: from the app, or one of the recovery codes. The recovery codes " +
		"are shown only in this response; each works once.",
}

type confirmSecondFactorInput struct {
	Body struct {
		Code string `json:"code" maxLength:"64" doc:"Six digits from the app."`
	}
}

// recoveryList is shown once.
type recoveryList struct {
	RecoveryCodes []string `json:"recoveryCodes"`
}

func (s *Server) confirmSecondFactor(
	ctx context.Context, in *confirmSecondFactorInput,
) (operation.Answer[recoveryList, struct{}], error) {
	codes, err := s.Accounts.ConfirmSecondFactor(ctx, operation.ClientOf(ctx), operation.Caller(ctx).User, in.Body.Code)
	return operation.Secret(recoveryList{codes}, struct{}{}), err
}

var deleteSecondFactor = operation.Operation{
	ID: "deleteSecondFactor", Method: "DELETE", Path: "/users/me/totp", Summary: "Delete your second factor",
	Access: operation.SignedIn, Errors: []int{400, 401, 404, 422, 429, 500},
	Notes: "`code` is a code from the app or a recovery code. An unconfirmed second factor needs no code.",
}

// proof confirms an irreversible change to the user's account.
type proof struct {
	Password string `json:"password" doc:"Your password."`
	Code     string `json:"code,omitempty" maxLength:"64" doc:"Code from the app or a recovery code, if you have a second factor."`
}

type deleteSecondFactorInput struct{ Body proof }

func (s *Server) deleteSecondFactor(ctx context.Context, in *deleteSecondFactorInput) (operation.Nothing, error) {
	user, client := operation.Caller(ctx).User, operation.ClientOf(ctx)
	return operation.Nothing{}, s.Accounts.DeleteSecondFactor(ctx, client, user, account.Proof(in.Body))
}
