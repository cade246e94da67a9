package rest

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// Caller is the identity that the database sees.
type Caller struct {
	Role    string // "" means anonymous
	Claims  []byte // JSON object; nil means the role only
	Subject string // claim sub, "" if it is no text
	Session string // claim session_id, "" if it is no text

	// HideCredentials hides the request's credentials from user code, which otherwise finds them in
	// request.headers and request.cookies.
	HideCredentials bool
	// BeforeWrite is called once, before a transaction that is not read-only. Its failure refuses
	// the request. nil admits every request.
	BeforeWrite func(ctx context.Context) error
}

// caller authenticates a request by its bearer token or API key.
func (s *Server) caller(r *http.Request) (Caller, error) {
	token, given := bearer(r.Header.Get("Authorization"))
	if !given && s.Auth.APIKeys {
		token = r.Header.Get("Apikey")
		given = token != ""
	}

	var c Caller
	if given {
		if token == "" {
			return Caller{}, newError(http.StatusUnauthorized, "PGRST301", "Empty JWT is sent in Authorization header")
		}
		if s.Auth.Verify == nil {
			return Caller{}, newError(http.StatusInternalServerError, "PGRST300", "Server lacks JWT secret")
		}

		var err error
		if c, err = s.Auth.Verify(r, token); err != nil {
			return Caller{}, err
		}
	}

	if c.Role == "" {
		if s.Auth.Anonymous == "" {
			return Caller{}, newError(http.StatusUnauthorized, "PGRST302", "Anonymous access is disabled")
		}
		c.Role = s.Auth.Anonymous
	}

	return c, nil
}

// appendClaims appends request.jwt.claims.
func (c *Caller) appendClaims(b []byte) []byte {
	if c.Claims != nil {
		return append(b, c.Claims...)
	}
	return append(appendJSON(append(b, `{"role":`...), c.Role), '}')
}

// rawQuery returns the query string without an API key. Some clients repeat the key of the header
// there; it is not a filter. A key in the query string alone is ignored.
func (s *Server) rawQuery(r *http.Request) string {
	const name = "apikey="
	raw := r.URL.RawQuery

	key := r.Header.Get("Apikey")
	if !s.Auth.APIKeys || key == "" || !strings.Contains(raw, name) {
		return raw
	}

	return strings.Join(slices.DeleteFunc(strings.Split(raw, "&"), func(pair string) bool {
		value, ok := strings.CutPrefix(pair, name)
		plain, err := url.QueryUnescape(value)

		return ok && err == nil && plain == key
	}), "&")
}

// bearer returns the token of an Authorization header with the scheme Bearer.
func bearer(header string) (token string, given bool) {
	const scheme = "bearer"
	if len(header) < len(scheme) || !strings.EqualFold(header[:len(scheme)], scheme) {
		return "", false
	}

	rest := header[len(scheme):]
	if rest != "" && rest[0] != ' ' {
		return "", false
	}

	return strings.TrimSpace(rest), true
}
