package operation

import (
	"context"
	"net/http"
	"strings"

	"github.com/socle-dev/socle/internal/account"
	"github.com/socle-dev/socle/internal/fault"
)

// authenticateBearer identifies the caller by the request's bearer token.
func (p *Pipeline) authenticateBearer(
	ctx context.Context, r *http.Request, scope account.Scope,
) (account.Caller, error) {
	token, err := BearerToken(r)
	if err != nil {
		return account.Caller{}, err
	}

	return p.config.Bearer(ctx, token, scope)
}

// BearerToken returns the request's bearer token. It fails with Unauthenticated if there is none.
func BearerToken(r *http.Request) (string, error) {
	values := r.Header.Values("Authorization")
	if len(values) != 1 {
		return "", fault.New(fault.Unauthenticated,
			"exactly one Authorization header with a bearer token is required").WithCode("invalid_token")
	}

	scheme, text, ok := strings.Cut(values[0], " ")
	if !ok || !strings.EqualFold(scheme, "Bearer") {
		return "", fault.New(fault.Unauthenticated, "the Authorization header must hold a bearer token").
			WithCode("invalid_token")
	}

	return text, nil
}
