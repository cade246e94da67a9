package api

import (
	"context"
	"net/http"
	"time"

	"github.com/google/uuid"

	"socle/internal/fault"
	"socle/internal/httpx"
	"socle/internal/operation"
	"socle/internal/platform"
	"socle/internal/token"
)

const refreshTTL = 30 * 24 * time.Hour

func (s *Server) registerSessions() {
	operation.Handle(s.pipeline, refreshSession, s.refreshSession, nil)
	operation.Handle(s.pipeline, logout, s.logout, nil)
	operation.Handle(s.pipeline, listSessions, s.listSessions, nil)
	operation.Handle(s.pipeline, deleteSession, s.deleteSession, nil)
	operation.Handle(s.pipeline, deleteOtherSessions, s.deleteOtherSessions, nil)
}

// tokens has the credentials of a session.
type tokens struct {
	Token            string    `json:"token" doc:"JWT for the Authorization header."`
	TokenType        string    `json:"tokenType" enum:"Bearer"`
	ExpiresAt        time.Time `json:"expiresAt"`
	RefreshToken     string    `json:"refreshToken"`
	RefreshExpiresAt time.Time `json:"refreshExpiresAt"`
}

type signedInUser = Answer[platform.User, tokens]

// signIn creates a session for a user. hash is the password hash that was verified.
func (s *Server) signIn(
	ctx context.Context, store *platform.Store, user platform.User, hash string,
) (signedInUser, error) {
	session, err := store.CreateSession(ctx, user.UUID, hash, clientOf(ctx), refreshTTL)
	if err != nil {
		return signedInUser{}, err
	}

	if err := s.rememberNetwork(ctx, store, user); err != nil {
		return signedInUser{}, err
	}

	return s.signedIn(user, session)
}

// signedIn responds with the tokens of a session.
func (s *Server) signedIn(user platform.User, session platform.RefreshableSession) (signedInUser, error) {
	access, claims, err := s.keys().Sign(user.UUID, session.UUID, time.Now())
	if err != nil {
		return signedInUser{}, err
	}

	return signedInUser{
		Content: user,
		Metadata: tokens{Token: access, TokenType: "Bearer", ExpiresAt: claims.ExpiresAt,
			RefreshToken:     token.Refresh(s.refreshKey, session.UUID, uint32(session.Generation)),
			RefreshExpiresAt: session.ExpiresAt},
		Header: http.Header{"Authorization": {"Bearer " + access}, "Cache-Control": {"no-store"}},
	}, nil
}

// clientOf returns the address and user agent of the client.
func clientOf(ctx context.Context) platform.Client {
	request := httpx.From(ctx)
	return platform.Client{Address: request.Client.String(), Agent: request.UserAgent}
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
	id, generation, ok := token.ParseRefresh(s.refreshKey, in.Body.RefreshToken)
	if !ok {
		return signedInUser{}, fault.New(fault.Unauthenticated, "the refresh token is invalid").
			WithCode("invalid_token")
	}

	session, err := s.platform.RefreshSession(ctx, id, int32(generation), clientOf(ctx), refreshTTL)
	if err != nil {
		return signedInUser{}, err
	}

	user, err := s.currentUser(ctx, session.UserUUID)
	if err != nil {
		return signedInUser{}, err
	}

	return s.signedIn(user, session)
}

var logout = operation.Operation{
	ID: "logout", Method: "POST", Path: "/users/logout", Summary: "Log out", Access: operation.SignedIn,
	Errors: []int{401, 500}, Success: http.StatusOK,
	Notes: "Ends the session of the request: its access and refresh tokens become invalid.",
}

func (s *Server) logout(ctx context.Context, _ *struct{}) (platform.Session, error) {
	c := caller(ctx)
	ended, err := s.platform.DeleteSession(ctx, c.User, c.Session, c.Session)
	if fault.Is(err, fault.NotFound) {
		err = errSessionEnded()
	}

	return ended, err
}

var listSessions = operation.Operation{
	ID: "listSessions", Method: "GET", Path: "/sessions", Summary: "List your sessions",
	Access: operation.SignedIn, Errors: specifiedErrors,
}

type listSessionsInput struct {
	PageQuery
	Sort string `query:"sort" enum:"createdAt,lastUsedAt" default:"createdAt"`
}

func (s *Server) listSessions(
	ctx context.Context, in *listSessionsInput,
) (Answer[[]platform.Session, PageMetadata], error) {
	c, page := caller(ctx), in.By(in.Sort)
	sessions, total, err := s.platform.ListSessions(ctx, c.User, c.Session, page)
	return listOf(sessions, page, total), err
}

var deleteSession = operation.Operation{
	ID: "deleteSession", Method: "DELETE", Path: "/sessions/{sessionUUID}", Summary: "End a session",
	Access: operation.SignedIn, Errors: []int{400, 401, 404, 500},
}

type deleteSessionInput struct {
	UUID uuid.UUID `path:"sessionUUID" format:"uuid"`
}

func (s *Server) deleteSession(ctx context.Context, in *deleteSessionInput) (platform.Session, error) {
	c := caller(ctx)
	return s.platform.DeleteSession(ctx, c.User, c.Session, in.UUID)
}

var deleteOtherSessions = operation.Operation{
	ID: "deleteOtherSessions", Method: "DELETE", Path: "/sessions", Summary: "End all other sessions",
	Access: operation.SignedIn, Errors: []int{401, 500},
	Notes: "The session of the request continues. `content` lists the ended sessions.",
}

func (s *Server) deleteOtherSessions(ctx context.Context, _ *struct{}) ([]platform.Session, error) {
	c := caller(ctx)
	return s.platform.DeleteOtherSessions(ctx, c.User, c.Session)
}
