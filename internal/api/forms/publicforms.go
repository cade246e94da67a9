package forms

import (
	"context"
	"net/http"
	"strings"

	"github.com/socle-dev/socle/internal/account"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/operation"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/token"
)

// apiKeyOf returns a request's API key, from the bearer token or the header apikey. The header does
// not count beside another bearer token.
func apiKeyOf(r *http.Request) (key string, ok bool) {
	bearer := r.Header.Get("Authorization")
	if scheme, text, found := strings.Cut(bearer, " "); found && strings.EqualFold(scheme, "Bearer") &&
		token.IsAPIKey(text) {
		return text, true
	}

	key = r.Header.Get("apikey")
	return key, key != "" && bearer == ""
}

// AuthenticateRespondent admits a respondent to a form's project by an API key or by the form's
// public link. An unknown form, another project's key and an invalid link fail alike. ok is false
// if the request has a member's token instead.
func (s *Server) AuthenticateRespondent(
	ctx context.Context, r *http.Request,
) (c account.Caller, ok bool, err error) {
	key, isKey := apiKeyOf(r)
	if !isKey && len(r.Header.Values("Authorization")) > 0 {
		return c, false, nil
	}

	refused := fault.New(fault.Unauthenticated,
		"a member's token, a key of the project, or the form's public link is required").WithCode("invalid_token")

	id := operation.OptionalUUID(r.PathValue("formUUID"))
	link := r.URL.Query().Get("link")

	switch {
	case isKey && !token.IsAPIKey(key),
		!isKey && (link == "" || len(link) > maxLinkLength || !pg.Storable(link)):
		return c, true, refused
	case !id.Valid: // binding the parameters reports the malformed UUID
		return c, true, nil
	case isKey:
		c.Project.UUID, err = s.Submissions.ProjectByKey(ctx, id.UUID, key)
	default:
		c.Project.UUID, err = s.Submissions.ProjectByLink(ctx, id.UUID, link)
	}

	if fault.Is(err, fault.NotFound) {
		return account.Caller{}, true, refused.WithCause(err)
	}

	c.Project.Valid = err == nil
	return c, true, err
}

const maxLinkLength = 100 // bytes; generated links have 26
