package api

import (
	"context"
	"net/http"
	"strings"

	"github.com/socle-dev/socle/internal/account"
	"github.com/socle-dev/socle/internal/fault"
)

// authenticateBearer identifies the caller by the request's bearer token.
func (s *Server) authenticateBearer(
	ctx context.Context, r *http.Request, scope account.Scope,
) (account.Caller, error) {
	values := r.Header.Values("Authorization")
	if len(values) != 1 {
		return account.Caller{}, fault.New(fault.Unauthenticated,
			"exactly one Authorization header with a bearer token is required").WithCode("invalid_token")
	}

	scheme, text, ok := strings.Cut(values[0], " ")
	if !ok || !strings.EqualFold(scheme, "Bearer") {
		return account.Caller{}, fault.New(fault.Unauthenticated, "the Authorization header must hold a bearer token").
			WithCode("invalid_token")
	}

	return s.accounts.Authenticate(ctx, text, scope)
}
