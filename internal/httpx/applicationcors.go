package httpx

import "net/http"

const (
	applicationHeaders = "authorization, apikey, content-type, x-client-info, x-supabase-api-version, accept-profile, " +
		"content-profile, prefer, range, x-upsert, x-metadata, cache-control, x-region, x-retry-count, traceparent, " +
		"tracestate, baggage, tus-resumable, upload-length, upload-metadata, upload-offset, upload-defer-length, x-signature, " +
		"x-http-method-override, x-request-id, x-socle-as"
	applicationExposed = "content-range, content-location, location, link, x-total-count, x-supabase-api-version, " +
		"x-relay-error, sb-request-id, etag, x-sb-error-code, retry-after, tus-resumable, tus-version, tus-extension, " +
		"tus-max-size, upload-offset, upload-length, upload-defer-length, upload-metadata, upload-expires"
)

// ApplicationCORS sets the CORS headers and answers preflight requests, without a key. It reports
// whether it has written the response. Credentials are in headers, never in cookies, so any origin
// may call.
func ApplicationCORS(w http.ResponseWriter, r *http.Request) bool {
	h := w.Header()
	if r.Header.Get("Origin") != "" {
		h.Set("Access-Control-Allow-Origin", "*")
		h.Set("Access-Control-Expose-Headers", applicationExposed)
	}

	if r.Method != http.MethodOptions {
		return false
	}

	h.Set("Access-Control-Allow-Methods", "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS")
	h.Set("Access-Control-Allow-Headers", applicationHeaders)
	h.Set("Access-Control-Max-Age", "86400")
	w.WriteHeader(http.StatusNoContent)

	return true
}
