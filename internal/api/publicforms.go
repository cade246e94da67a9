package api

import (
	"context"
	"net/http"
	"strings"

	"socle/internal/account"
	"socle/internal/fault"
	"socle/internal/form"
	"socle/internal/platform"
	"socle/internal/token"
)

// publicForm is [projectOfForm] for an operation that respondents may call too, with a key of the
// project or the form's public link. It permits any origin.
var publicForm = Access{kind: kindPublicForm, role: platform.Viewer}

// isRespondent reports whether a request has no member's token.
func (a Access) isRespondent(r *http.Request) bool {
	_, isKey := apiKeyOf(r)
	return a.kind == kindPublicForm && (isKey || len(r.Header.Values("Authorization")) == 0)
}

// apiKeyOf returns the API key of a request, from its bearer token or from the header apikey. The
// header does not count beside another bearer token.
func apiKeyOf(r *http.Request) (key string, ok bool) {
	bearer := r.Header.Get("Authorization")
	if scheme, text, found := strings.Cut(bearer, " "); found && strings.EqualFold(scheme, "Bearer") &&
		token.IsAPIKey(text) {
		return text, true
	}

	key = r.Header.Get("apikey")
	return key, key != "" && bearer == ""
}

// authenticateRespondent admits a respondent to the project of a form by an API key or by the
// form's public link. An unknown form, a key of another project and an invalid link fail alike.
func (s *Server) authenticateRespondent(ctx context.Context, r *http.Request) (account.Caller, error) {
	refused := fault.New(fault.Unauthenticated,
		"a member's token, a key of the project, or the form's public link is required").WithCode("invalid_token")

	id := optionalUUID(r.PathValue("formUUID"))
	key, isKey := apiKeyOf(r)
	link := r.URL.Query().Get("link")

	var c account.Caller
	var err error
	switch {
	case isKey && !token.IsAPIKey(key),
		!isKey && (link == "" || len(link) > maxLinkLength || strings.ContainsRune(link, 0)):
		return c, refused
	case !id.Valid: // binding the parameters reports the malformed UUID
		return c, nil
	case isKey:
		c.Project.UUID, err = s.platform.FormProjectByKey(ctx, id.UUID, key)
	default:
		if c.Project.UUID, err = s.platform.FormProject(ctx, id.UUID); err == nil {
			err = form.CheckLink(ctx, s.projects.Open(c.Project.UUID), id.UUID, link)
		}
	}

	if fault.Is(err, fault.NotFound) {
		return account.Caller{}, refused.WithCause(err)
	}

	c.Project.Valid = err == nil
	return c, err
}

const maxLinkLength = 100 // bytes; generated links have 26

// allowAnyOrigin permits pages of any origin to read the response. Credentials are in the request
// itself, never in a cookie.
func allowAnyOrigin(h http.Header) {
	h.Set("Access-Control-Allow-Origin", "*")
	h.Set("Access-Control-Expose-Headers",
		"Accept-Ranges, Content-Disposition, Content-Range, ETag, Idempotency-Replayed, Repr-Digest, Retry-After, "+
			"X-Request-Id")
}

// preflight responds to a CORS preflight request.
func preflight(method string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		h := w.Header()
		allowAnyOrigin(h)
		h.Set("Access-Control-Allow-Methods", method)
		h.Set("Access-Control-Allow-Headers",
			"Authorization, Content-Type, Idempotency-Key, If-Match, If-None-Match, If-Range, Range, apikey, "+
				"X-Client-Info")
		h.Set("Access-Control-Max-Age", "86400")
		w.WriteHeader(http.StatusNoContent)
	}
}
