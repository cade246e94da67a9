package httpx

import "net/http"

// Paths answers GET and HEAD requests for exactly these paths. Unlike [http.ServeMux] it never
// redirects to a canonical path.
type Paths map[string]http.HandlerFunc

// ServeHTTP answers a request.
func (p Paths) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	answer, ok := p[r.URL.Path]
	if !ok {
		http.NotFound(w, r)
		return
	}

	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "only GET and HEAD are allowed", http.StatusMethodNotAllowed)

		return
	}

	answer(w, r)
}
