package accounts

import (
	"context"
	"net/http"
	"time"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/account"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/operation"
)

func (s *Server) registerTokens(p *operation.Pipeline) {
	operation.Handle(p, createToken, s.createToken, nil)
	operation.Handle(p, listTokens, s.listTokens, nil)
	operation.Handle(p, deleteToken, s.deleteToken, nil)
}

// tokenMetadata has a new token, which is shown once.
type tokenMetadata struct {
	Token string `json:"token" doc:"The token. It is shown only in this response."`
}

var createToken = operation.Operation{
	ID: "createToken", Method: "POST", Path: "/tokens", Summary: "Create a personal access token",
	Access: operation.SignedIn, Errors: []int{400, 401, 409, 422, 500},
	Notes: "Use it as an access token: `Authorization: Bearer socle_pat_…`. It permits what both its own role and " +
		"the user's role permit; if it names projects, in these projects only. It never grants access to the " +
		"user's account: password, address, sessions, tokens, second factor, deletion.",
	Example: `{"name": "laptop", "role_id": 3, "expires_at": "2027-01-01T00:00:00Z"}`,
}

type createTokenInput struct {
	Body struct {
		Name         string      `json:"name" minLength:"1" maxLength:"100"`
		RoleID       int         `json:"role_id" minimum:"1" maximum:"5" doc:"Maximum role: 1 administrator, 2 owner, 3 admin, 4 developer, 5 viewer."`
		ExpiresAt    string      `json:"expires_at" format:"date-time" maxLength:"40" doc:"Expiration time, at most one year from now."`
		ProjectUUIDs []uuid.UUID `json:"project_uuids,omitempty" minItems:"1" maxItems:"100" doc:"Projects that the token is limited to. Default: all of the user's."`
	}
}

func (s *Server) createToken(
	ctx context.Context, in *createTokenInput,
) (operation.Answer[account.Token, tokenMetadata], error) {
	expires, err := time.Parse(time.RFC3339, in.Body.ExpiresAt)
	if err != nil {
		return operation.Answer[account.Token, tokenMetadata]{}, fault.OnField(fault.Unprocessable, "expires_at",
			"invalid_format", "must be an RFC 3339 time such as 2026-11-21T05:20:00Z")
	}

	token, text, err := s.Accounts.CreateToken(ctx, operation.Caller(ctx).User, account.NewToken{Name: in.Body.Name,
		Role:     account.Role(in.Body.RoleID),
		Projects: in.Body.ProjectUUIDs, ExpiresAt: expires})
	return operation.Answer[account.Token, tokenMetadata]{
		Content:  token,
		Metadata: tokenMetadata{text},
		Header:   http.Header{"Cache-Control": {"no-store"}},
	}, err
}

var listTokens = operation.Operation{
	ID: "listTokens", Method: "GET", Path: "/tokens", Summary: "List your personal access tokens",
	Access: operation.SignedIn, Errors: operation.SpecifiedErrors,
}

type listTokensInput struct {
	operation.PageQuery
	Sort string `query:"sort" enum:"name,createdAt,expiresAt" default:"createdAt"`
}

func (s *Server) listTokens(
	ctx context.Context, in *listTokensInput,
) (operation.Answer[[]account.Token, operation.PageMetadata], error) {
	page := in.By(in.Sort)
	tokens, total, err := s.Accounts.ListTokens(ctx, operation.Caller(ctx).User, page)
	return operation.ListOf(tokens, page, total), err
}

var deleteToken = operation.Operation{
	ID: "deleteToken", Method: "DELETE", Path: "/tokens/{tokenUUID}", Summary: "Revoke a personal access token",
	Access: operation.SignedIn, Errors: []int{400, 401, 404, 500},
}

type deleteTokenInput struct {
	UUID uuid.UUID `path:"tokenUUID" format:"uuid"`
}

func (s *Server) deleteToken(ctx context.Context, in *deleteTokenInput) (account.Token, error) {
	return s.Accounts.DeleteToken(ctx, operation.Caller(ctx).User, in.UUID)
}
