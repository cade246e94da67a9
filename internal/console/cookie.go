package console

import (
	"net/http"
	"strings"
)

// cookieName names the cookie with the refresh token. Browsers accept the prefixed name from a
// server with HTTPS only, so nobody on the network can plant a session of their own. The prefix
// __Host- would send the cookie to all paths.
const (
	cookieName       = "socle-console"
	secureCookieName = "__Secure-" + cookieName
)

// cookie returns the cookie for a response, without a value.
func (c *Console) cookie(r *http.Request) *http.Cookie {
	cookie := &http.Cookie{Name: cookieName, Path: Root, HttpOnly: true, SameSite: http.SameSiteStrictMode}
	if c.isSecure(r) {
		cookie.Name, cookie.Secure = secureCookieName, true
	}

	return cookie
}

// clearCookie removes the cookie from the browser.
func (c *Console) clearCookie(w http.ResponseWriter, r *http.Request) {
	cookie := c.cookie(r)
	cookie.MaxAge = -1
	http.SetCookie(w, cookie)
}

// refreshToken returns the request's refresh token, or "".
func (c *Console) refreshToken(r *http.Request) string {
	cookie, err := r.Cookie(c.cookie(r).Name)
	if err != nil {
		return ""
	}

	return cookie.Value
}

// isSecure reports whether the browser reached the console by HTTPS. Behind a proxy the Origin says
// so, which browsers send with each request that is no read, or else the server's public URL.
func (c *Console) isSecure(r *http.Request) bool {
	origin := r.Header.Get("Origin")
	if !strings.HasPrefix(origin, "http://") && !strings.HasPrefix(origin, "https://") {
		origin = c.PublicURL // "null", or none
	}

	return r.TLS != nil || strings.HasPrefix(origin, "https://")
}
