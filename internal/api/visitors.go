package api

import (
	"context"
	"net/http"
	"strings"

	"socle/internal/fault"
	"socle/internal/form"
	"socle/internal/platform"
	"socle/internal/token"
)

// publicForm is projectOfForm for an operation that has something for those who fill the form in as well: whoever has a key
// of the project or the form's public link. Pages of any origin may call it.
var publicForm = Access{by: byVisitor, role: platform.Viewer}

// visits reports whether a request comes with something else than a member's token.
func (a Access) visits(r *http.Request) bool {
	_, isKey := keyOf(r)
	return a.by == byVisitor && (isKey || len(r.Header.Values("Authorization")) == 0)
}

// keyOf returns the key that a request has: in the header apikey, or as a bearer token. A member's token beside it counts more.
func keyOf(r *http.Request) (key string, ok bool) {
	bearer := r.Header.Get("Authorization")
	if scheme, text, found := strings.Cut(bearer, " "); found && strings.EqualFold(scheme, "Bearer") &&
		token.IsAPIKey(text) {
		return text, true
	}

	key = r.Header.Get("apikey")
	return key, key != "" && bearer == ""
}

// visitor lets someone into the project of a form who has a key of it or the form's public link. A form that is not there, a key of another
// project and a link that does not hold are answered alike.
func (s *Server) visitor(ctx context.Context, r *http.Request) (platform.Caller, error) {
	refused := fault.New(fault.Unauthenticated,
		"a member's token, a key of the project, or the form's public link is needed").WithCode("invalid_token")

	id := optionalUUID(r.PathValue("formUUID"))
	key, isKey := keyOf(r)
	link := r.URL.Query().Get("link")

	var c platform.Caller
	var err error
	switch {
	case isKey && !token.IsAPIKey(key),
		!isKey && (link == "" || len(link) > longestLink || strings.ContainsRune(link, 0)):
		return c, refused
	case !id.Valid: // what can't be read is told when the parameters are judged
		return c, nil
	case isKey:
		c.Project.UUID, err = s.platform.FormProjectByKey(ctx, id.UUID, key)
	default:
		if c.Project.UUID, err = s.platform.FormProject(ctx, id.UUID); err == nil {
			err = form.CheckLink(ctx, s.projects.Open(c.Project.UUID), id.UUID, link)
		}
	}

	if fault.Is(err, fault.NotFound) {
		return platform.Caller{}, refused.Because(err)
	}

	c.Project.Valid = err == nil
	return c, err
}

const longestLink = 100 // bytes; ours have 26

// fromAnywhere lets pages of any origin read the answer. What opens the form is in the request itself, never in a cookie.
func fromAnywhere(h http.Header) {
	h.Set("Access-Control-Allow-Origin", "*")
	h.Set("Access-Control-Expose-Headers",
		"Accept-Ranges, Content-Disposition, Content-Range, ETag, Idempotency-Replayed, Repr-Digest, Retry-After, X-Request-Id")
}

// preflight answers a browser that asks before it sends a request of another origin's page.
func preflight(method string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		h := w.Header()
		fromAnywhere(h)
		h.Set("Access-Control-Allow-Methods", method)
		h.Set("Access-Control-Allow-Headers",
			"Authorization, Content-Type, Idempotency-Key, If-Match, If-None-Match, If-Range, Range, apikey, X-Client-Info")
		h.Set("Access-Control-Max-Age", "86400")
		w.WriteHeader(http.StatusNoContent)
	}
}
