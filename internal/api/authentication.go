package api

import (
	"context"
	"net/http"
	"strings"
	"time"

	"socle/internal/fault"
	"socle/internal/platform"
	"socle/internal/token"
)

// authenticateBearer identifies the caller by the request's bearer token.
func (s *Server) authenticateBearer(
	ctx context.Context, r *http.Request, scope platform.Scope,
) (platform.Caller, error) {
	values := r.Header.Values("Authorization")
	if len(values) != 1 {
		return platform.Caller{}, fault.New(fault.Unauthenticated,
			"exactly one Authorization header with a bearer token is required").WithCode("invalid_token")
	}

	scheme, text, ok := strings.Cut(values[0], " ")
	if !ok || !strings.EqualFold(scheme, "Bearer") {
		return platform.Caller{}, fault.New(fault.Unauthenticated, "the Authorization header must hold a bearer token").
			WithCode("invalid_token")
	}

	if strings.HasPrefix(text, token.PersonalPrefix) {
		if !token.IsPersonalToken(text) {
			return platform.Caller{}, fault.New(fault.Unauthenticated, "the personal access token is invalid").
				WithCode("invalid_token")
		}

		return s.platform.AuthenticateToken(ctx, token.Hash(text), scope)
	}

	claims, err := s.keys().Verify(text, time.Now())
	if err != nil {
		return platform.Caller{}, err
	}

	return s.platform.Authenticate(ctx, claims.User, claims.Session, scope)
}
