package operation

import "net/http"

// allowAnyOrigin permits pages from any origin to read the response. Credentials are in the request
// itself, never in a cookie.
func allowAnyOrigin(h http.Header) {
	h.Set("Access-Control-Allow-Origin", "*")
	h.Set("Access-Control-Expose-Headers",
		"Accept-Ranges, Content-Disposition, Content-Range, ETag, Idempotency-Replayed, Repr-Digest, Retry-After, "+
			"X-Request-Id")
}

// preflight responds to a CORS preflight request.
func preflight(method string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		h := w.Header()
		allowAnyOrigin(h)
		h.Set("Access-Control-Allow-Methods", method)
		h.Set("Access-Control-Allow-Headers",
			"Authorization, Content-Type, Idempotency-Key, If-Match, If-None-Match, If-Range, Range, apikey, "+
				"X-Client-Info")
		h.Set("Access-Control-Max-Age", "86400")
		w.WriteHeader(http.StatusNoContent)
	}
}
