package httpx

import (
	"net/http"
	"strings"
)

// AcceptsCoding reports whether the client decodes a content coding, such as gzip. It has to name
// the coding: clients that accept any do not mean to.
func AcceptsCoding(r *http.Request, coding string) bool {
	for _, header := range r.Header.Values("Accept-Encoding") {
		for entry := range strings.SplitSeq(header, ",") {
			name, weight, _ := strings.Cut(strings.ToLower(strings.ReplaceAll(entry, " ", "")), ";")
			isRefused := weight != "" && strings.Trim(weight, "q=0.") == "" // q=0, q=0.000
			if name == coding && !isRefused {
				return true
			}
		}
	}

	return false
}
