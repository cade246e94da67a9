package httpx

import (
	"net/http"
	"strings"
	"unicode/utf8"
)

// unread are the headers that browsers send as they are and whose bytes are not stored.
var unread = map[string]bool{"User-Agent": true, "Referer": true, "Cookie": true}

// HostileText returns the request part whose text PostgreSQL and headers can't hold: NUL, or bytes
// that are not UTF-8. It is "path", "query", a header name, or "" if there is none. Each interface
// refuses such a request with status 400 in its own form, before anything else.
func HostileText(r *http.Request) string {
	switch {
	case !isText(r.URL.Path):
		return "path"
	case !isTextQuery(r):
		return "query"
	}

	for name, values := range r.Header {
		for _, value := range values {
			if !isText(value) && !unread[name] {
				return name
			}
		}
	}

	return ""
}

// isTextQuery reports whether all names and values in a query string are text. It checks malformed
// parts undecoded.
func isTextQuery(r *http.Request) bool {
	query := r.URL.RawQuery
	if !isText(query) {
		return false
	}
	if !strings.Contains(query, "%") {
		return true
	}

	for name, values := range r.URL.Query() {
		if !isText(name) || !isText(strings.Join(values, "")) {
			return false
		}
	}

	return true
}

// isText reports whether a string is UTF-8 without NUL.
func isText(s string) bool { return utf8.ValidString(s) && strings.IndexByte(s, 0) < 0 }
