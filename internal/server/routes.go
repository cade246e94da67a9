package server

import (
	"encoding/json"
	"maps"
	"net/http"
	"strings"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/authapi"
	"github.com/socle-dev/socle/internal/config"
	"github.com/socle-dev/socle/internal/console"
	"github.com/socle-dev/socle/internal/httpx"
	"github.com/socle-dev/socle/internal/operation"
	"github.com/socle-dev/socle/internal/web"
)

// routes returns the root handler. It dispatches to the project interfaces, the console, the pages,
// the server's own few paths, and the platform API for all others.
func (s *Server) routes() http.Handler {
	keys := s.services.Accounts.JWKS
	handlers := map[string]http.HandlerFunc{
		"/healthz": func(w http.ResponseWriter, _ *http.Request) {
			writeJSON(w, http.StatusOK, map[string]string{"status": "alive"})
		},
		"/readyz": s.ready,
		"/.well-known/jwks.json": func(w http.ResponseWriter, _ *http.Request) {
			writeBytes(w, jsonType, keys())
		},
	}
	maps.Copy(handlers, docsHandlers())

	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.gateway.Serve(w, r, metadataPath(r.URL.EscapedPath())) {
			return
		}

		if console.Serves(r.URL.Path) {
			s.console.ServeHTTP(w, r)
			return
		}

		if page := s.pages.Handler(r); page != nil {
			page.ServeHTTP(w, r)
			return
		}

		if message := findUnavailable(r.URL.Path); message != "" {
			serveUnavailable(w, r, message)
			return
		}

		h, ok := handlers[r.URL.Path]
		if !ok {
			s.serveAPI(w, r)
			return
		}

		request := httpx.From(r.Context())
		request.Route, request.Probe = "GET "+r.URL.Path, strings.HasSuffix(r.URL.Path, "z")

		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			operation.RespondFailure(w, r, http.StatusMethodNotAllowed, "method_not_allowed",
				"the path takes GET, HEAD")

			return
		}

		h(w, r)
	})
}

// serveAPI serves an operation. A browser that asks for none gets a page.
func (s *Server) serveAPI(w http.ResponseWriter, r *http.Request) {
	reads := r.Method == http.MethodGet || r.Method == http.MethodHead
	if reads && web.WantsHTML(r) && !s.api.Serves(r) {
		s.pages.NotFound(w, r)
		return
	}

	s.api.ServeHTTP(w, r)
}

// metadataPath returns the path where a project serves its metadata, given the one that RFC 8414
// defines, with the well-known part before the issuer's path. It returns any other path unchanged.
func metadataPath(path string) string {
	for _, name := range []string{"/.well-known/oauth-authorization-server", "/.well-known/openid-configuration"} {
		if issuer, ok := strings.CutPrefix(path, name); ok && strings.HasSuffix(issuer, authapi.Prefix) {
			return issuer + name
		}
	}

	return path
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	body, err := json.Marshal(v)
	if err != nil {
		panic("server: " + err.Error())
	}

	w.Header().Set("Content-Type", jsonType)
	w.WriteHeader(status)
	_, _ = w.Write(append(body, '\n')) // fails only if the client has disconnected
}

func writeBytes(w http.ResponseWriter, contentType string, body []byte) {
	w.Header().Set("Content-Type", contentType)
	_, _ = w.Write(body)
}

// newHandler returns the root handler.
func (s *Server) newHandler(c config.Config) http.Handler {
	return httpx.Wrap(s.metrics.instrument(s.routes()), httpx.Config{Log: s.log,
		TrustedProxies: c.TrustedProxies, Slow: c.SlowRequest, Panicked: s.api.ServePanic,
		Answered: func(a httpx.Finished) {
			if a.Project != uuid.Nil {
				s.readiness.observe(a.Status)
			}
			s.requests.Record(a)
		}})
}
