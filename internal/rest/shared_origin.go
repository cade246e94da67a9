package rest

import (
	"mime"
	"net/http"
	"slices"
	"strings"
)

// Where projects of several owners share an origin, their code must not speak for it: what a header would change of other
// answers, of the connection, of a cache's or proxy's or browser's view of the origin is not for it to set.

// ownHeaders are the headers that code of a confined project may set, beside those that begin with X- and are not in
// foreignHeaders: what describes its own answer.
var responseHeaders = []string{
	"Cache-Control", "Content-Disposition", "Content-Encoding", "Content-Language", "Content-Location", "Content-Range",
	"Content-Type", "Deprecation", "Etag", "Expires", "Last-Modified", "Link", "Location", "Pragma", "Retry-After",
	"Sunset", "Total-Count", "Vary", "Warning",
}

// foreignHeaders begin the names of headers that browsers, proxies or this server give a meaning beyond one answer.
var deniedPrefixes = []string{
	"X-Accel-", "X-Content-", "X-Dns-Prefetch-Control", "X-Forwarded-", "X-Frame-", "X-Lighttpd-", "X-Litespeed-",
	"X-Permitted-Cross-Domain-", "X-Real-Ip", "X-Reproxy-", "X-Request-Id", "X-Sendfile", "X-Ua-Compatible",
	"X-Webkit-", "X-Xss-Protection",
}

// maySet reports whether code of the database may set a header, by its canonical name.
func (s *Server) allowsHeader(name string) bool {
	if !s.SharedOrigin {
		return true
	}
	if strings.HasPrefix(name, "X-") {
		return !slices.ContainsFunc(deniedPrefixes, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
	}

	return slices.Contains(responseHeaders, name)
}

// sandbox is the policy of answers that a browser could run: what files have, too.
var sandboxPolicy = []string{"default-src 'none'; sandbox"}

// confine has a browser that shows the answer run nothing of it.
func (s *Server) setSandbox(h http.Header) {
	if s.SharedOrigin && slices.ContainsFunc(h["Content-Type"], isActiveContent) {
		h["Content-Security-Policy"] = sandboxPolicy
	}
}

// active reports whether a browser may run code in content of a type: it does not in what it shows as text or as a picture.
func isActiveContent(kind string) bool {
	if kind == jsonType { // nearly always
		return false
	}

	media, _, err := mime.ParseMediaType(kind)
	if err != nil {
		return true
	}

	switch media {
	case "application/json", "application/octet-stream", "text/csv", "text/plain", "image/png", "image/jpeg",
		"image/gif", "image/webp", "image/avif":
		return false
	}

	return !strings.HasSuffix(media, "+json")
}
