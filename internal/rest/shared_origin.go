package rest

import (
	"mime"
	"net/http"
	"slices"
	"strings"

	"github.com/socle-dev/socle/internal/httpx"
)

// Projects of several owners can share an origin. Their user code must not speak for the origin: it
// cannot set headers that affect other responses, the connection, or the state of caches, proxies
// and browsers.

// responseHeaders are the headers that describe one response. User code may set them, and headers
// that begin with X- unless deniedPrefixes has their prefix.
var responseHeaders = []string{
	"Cache-Control", "Content-Disposition", "Content-Encoding", "Content-Language", "Content-Location", "Content-Range",
	"Content-Type", "Deprecation", "Etag", "Expires", "Last-Modified", "Link", "Location", "Pragma", "Retry-After",
	"Sunset", "Total-Count", "Vary", "Warning",
}

// deniedPrefixes are prefixes of headers with an effect on browsers, proxies or this server beyond
// one response.
var deniedPrefixes = []string{
	"X-Accel-", "X-Content-", "X-Dns-Prefetch-Control", "X-Forwarded-", "X-Frame-", "X-Lighttpd-", "X-Litespeed-",
	"X-Permitted-Cross-Domain-", "X-Real-Ip", "X-Reproxy-", "X-Request-Id", "X-Sendfile", "X-Ua-Compatible",
	"X-Webkit-", "X-Xss-Protection",
}

// allowsHeader reports whether user code may set a header, given its canonical name.
func (s *Server) allowsHeader(name string) bool {
	if !s.Features.SharedOrigin {
		return true
	}
	if strings.HasPrefix(name, "X-") {
		return !slices.ContainsFunc(deniedPrefixes, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
	}

	return slices.Contains(responseHeaders, name)
}

// sandboxPolicy is the Content-Security-Policy of active content. Files have the same.
var sandboxPolicy = []string{httpx.Sandbox}

// setSandbox prevents a browser from running active content of the response.
func (s *Server) setSandbox(h http.Header) {
	if s.Features.SharedOrigin && slices.ContainsFunc(h["Content-Type"], isActiveContent) {
		h["Content-Security-Policy"] = sandboxPolicy
	}
}

// isActiveContent reports whether browsers may run code in a content type. They run none in text
// and images.
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
