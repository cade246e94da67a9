package rest

import (
	"net/http"
	"slices"
	"strings"
)

// exposedHeaders are the response headers that scripts of other origins can read.
const exposedHeaders = "Content-Encoding, Content-Location, Content-Range, Content-Type, Date, " +
	"Location, Server, Transfer-Encoding, Range-Unit"

// cors sets the CORS headers and answers preflight requests. It reports whether it has written the
// response.
func (s *Server) cors(w http.ResponseWriter, r *http.Request) bool {
	origin := r.Header.Get("Origin")
	if origin == "" {
		return false
	}

	h := w.Header()
	switch {
	case len(s.Origins) == 0:
		h.Set("Access-Control-Allow-Origin", "*")
	case slices.Contains(s.Origins, origin):
		h.Set("Access-Control-Allow-Origin", origin)
		h.Set("Access-Control-Allow-Credentials", "true")
		h.Add("Vary", "Origin")
	default:
		h.Add("Vary", "Origin")
		return false
	}

	if r.Method != http.MethodOptions || r.Header.Get("Access-Control-Request-Method") == "" {
		exposed := exposedHeaders
		if s.Features.Transactions {
			exposed += ", Idempotency-Replayed, Retry-After"
		}
		if s.Replicas != nil {
			exposed += ", " + PositionHeader
		}
		h.Set("Access-Control-Expose-Headers", exposed)
		return false
	}

	headers := []string{"Authorization"}
	for _, name := range strings.Split(strings.Join(r.Header.Values("Access-Control-Request-Headers"), ","), ",") {
		if name = strings.TrimSpace(name); name != "" && !slices.Contains(headers, name) {
			headers = append(headers, name)
		}
	}

	h.Set("Access-Control-Allow-Methods", "GET, POST, PATCH, PUT, DELETE, OPTIONS, HEAD")
	h.Set("Access-Control-Allow-Headers",
		strings.Join(append(headers, "Accept", "Accept-Language", "Content-Language"), ", "))
	h.Set("Access-Control-Max-Age", "86400")
	h.Set("Content-Length", "0")
	w.WriteHeader(http.StatusOK)

	return true
}
