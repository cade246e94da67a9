package httpx

import (
	"net/http"
	"strings"
)

// traceID returns the trace ID of the header traceparent (W3C Trace Context, version 00), or "" if
// there is none or it is not valid.
func traceID(h http.Header) string {
	given := h["Traceparent"]
	if len(given) != 1 {
		return ""
	}

	parts := strings.Split(given[0], "-")
	if len(parts) != 4 || parts[0] != "00" || !isHex(parts[1], 32) || !isHex(parts[2], 16) || !isHex(parts[3], 2) {
		return ""
	}

	return parts[1]
}

// isHex reports whether text is n lower-case hexadecimal digits. IDs of zeros only are not valid.
func isHex(text string, n int) bool {
	zeros := n > 2 && strings.Trim(text, "0") == ""
	return len(text) == n && !zeros && strings.Trim(text, "0123456789abcdef") == ""
}
