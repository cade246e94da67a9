package rest

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// Caller is who asks, as far as the database is told.
type Caller struct {
	Role   string // "" is the anonymous one
	Claims []byte // a JSON object; nil for no more than the role
}

// caller finds out who asks: by the token after Bearer, or by an API key.
func (s *Server) caller(r *http.Request) (Caller, error) {
	token, given := bearer(r.Header.Get("Authorization"))
	if !given && s.APIKeys {
		token = r.Header.Get("Apikey")
		given = token != ""
	}

	var c Caller
	if given {
		if token == "" {
			return Caller{}, newError(http.StatusUnauthorized, "PGRST301", "Empty JWT is sent in Authorization header")
		}
		if s.Verify == nil {
			return Caller{}, newError(http.StatusInternalServerError, "PGRST300", "Server lacks JWT secret")
		}

		var err error
		if c, err = s.Verify(r.Context(), token); err != nil {
			return Caller{}, err
		}
	}

	if c.Role == "" {
		if s.Anonymous == "" {
			return Caller{}, newError(http.StatusUnauthorized, "PGRST302", "Anonymous access is disabled")
		}
		c.Role = s.Anonymous
	}

	return c, nil
}

// appendClaims appends the claims that the database is told.
func (c *Caller) appendClaims(b []byte) []byte {
	if c.Claims != nil {
		return append(b, c.Claims...)
	}
	return append(appendJSON(append(b, `{"role":`...), c.Role), '}')
}

// asked returns the query string without an API key that the client repeats there, as some do: it is no filter. A key in the query alone
// opens nothing.
func (s *Server) rawQuery(r *http.Request) string {
	const name = "apikey="
	raw := r.URL.RawQuery

	key := r.Header.Get("Apikey")
	if !s.APIKeys || key == "" || !strings.Contains(raw, name) {
		return raw
	}

	return strings.Join(slices.DeleteFunc(strings.Split(raw, "&"), func(pair string) bool {
		value, ok := strings.CutPrefix(pair, name)
		plain, err := url.QueryUnescape(value)

		return ok && err == nil && plain == key
	}), "&")
}

// bearer returns the token of an Authorization header of that scheme.
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

// withRole returns claims in which the member role is the effective one.
func withRole(claims []byte, role string) []byte {
	var members map[string]json.RawMessage
	if json.Unmarshal(claims, &members) != nil {
		return claims
	}

	name := appendJSON(nil, role)
	if string(members["role"]) == string(name) {
		return claims
	}

	members["role"] = name
	out, err := json.Marshal(members)
	if err != nil {
		return claims
	}

	return out
}
