package accounts

import (
	"context"
	"net/http"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/account"
	"github.com/socle-dev/socle/internal/operation"
)

func (s *Server) registerSessions(p *operation.Pipeline) {
	operation.Handle(p, refreshSession, s.refreshSession, nil)
	operation.Handle(p, logout, s.logout, nil)
	operation.Handle(p, listSessions, s.listSessions, nil)
	operation.Handle(p, deleteSession, s.deleteSession, nil)
	operation.Handle(p, deleteOtherSessions, s.deleteOtherSessions, nil)
}

type signedInUser = operation.Answer[account.User, account.Tokens]

// respondSignedIn responds with a session's tokens.
func respondSignedIn(in account.SignedIn, err error) (signedInUser, error) {
	return signedInUser{
		Content:  in.User,
		Metadata: in.Tokens,
		Header:   http.Header{"Authorization": {"Bearer " + in.Tokens.Token}, "Cache-Control": {"no-store"}},
	}, err
}

var refreshSession = operation.Operation{
	ID: "refreshSession", Method: "POST", Path: "/users/refresh",
	Summary: "Refresh a session", Access: operation.Anonymous,
	Errors: []int{400, 401, 422, 500}, Success: http.StatusOK,
	Notes: "Returns the same as a log-in. A refresh token works once. Reusing it ends the session, since it may be " +
		"stolen; within 10 seconds, however, the response repeats the new refresh token, for clients that sent the " +
		"request twice or lost the response.",
}

type refreshSessionInput struct {
	Body struct {
		RefreshToken string `json:"refresh_token" maxLength:"200"`
	}
}

func (s *Server) refreshSession(ctx context.Context, in *refreshSessionInput) (signedInUser, error) {
	return respondSignedIn(s.Accounts.RefreshSession(ctx, operation.ClientOf(ctx), in.Body.RefreshToken))
}

var logout = operation.Operation{
	ID: "logout", Method: "POST", Path: "/users/logout", Summary: "Log out", Access: operation.SignedIn,
	Errors: []int{401, 500}, Success: http.StatusOK,
	Notes: "Ends the session of the request: its access and refresh tokens become invalid.",
}

func (s *Server) logout(ctx context.Context, _ *struct{}) (account.Session, error) {
	return s.Accounts.Logout(ctx, operation.Caller(ctx))
}

var listSessions = operation.Operation{
	ID: "listSessions", Method: "GET", Path: "/sessions", Summary: "List your sessions",
	Access: operation.SignedIn, Errors: operation.SpecifiedErrors,
}

type listSessionsInput struct {
	operation.PageQuery
	Sort string `query:"sort" enum:"createdAt,lastUsedAt" default:"createdAt"`
}

func (s *Server) listSessions(
	ctx context.Context, in *listSessionsInput,
) (operation.Answer[[]account.Session, operation.PageMetadata], error) {
	page := in.By(in.Sort)
	sessions, total, err := s.Accounts.ListSessions(ctx, operation.Caller(ctx), page)
	return operation.ListOf(sessions, page, total), err
}

var deleteSession = operation.Operation{
	ID: "deleteSession", Method: "DELETE", Path: "/sessions/{sessionUUID}", Summary: "End a session",
	Access: operation.SignedIn, Errors: []int{400, 401, 404, 500},
}

type deleteSessionInput struct {
	UUID uuid.UUID `path:"sessionUUID" format:"uuid"`
}

func (s *Server) deleteSession(ctx context.Context, in *deleteSessionInput) (account.Session, error) {
	return s.Accounts.DeleteSession(ctx, operation.Caller(ctx), in.UUID)
}

var deleteOtherSessions = operation.Operation{
	ID: "deleteOtherSessions", Method: "DELETE", Path: "/sessions", Summary: "End all other sessions",
	Access: operation.SignedIn, Errors: []int{401, 500},
	Notes: "The session of the request continues. `content` lists the ended sessions.",
}

func (s *Server) deleteOtherSessions(ctx context.Context, _ *struct{}) ([]account.Session, error) {
	return s.Accounts.DeleteOtherSessions(ctx, operation.Caller(ctx))
}
