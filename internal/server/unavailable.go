package server

import (
	"net/http"
	"strings"
)

// unavailable has the APIs in a Supabase project that Socle lacks or has elsewhere, by the path
// after the project. Their clients show the message.
var unavailable = []struct{ path, message string }{
	{"graphql/v1", "There is no GraphQL. The rows API at rest/v1 embeds related rows in one request: " +
		"select=title,author(name)."},
	{"analytics/v1", "There is no interface of Supabase's logs. GET /projects/{projectUUID}/requests lists requests."},
	{"pg", "There is no interface of Supabase's console. The platform API has tables, columns and SQL: see /docs."},
	{"rest", "The rows API is at rest/v1. It takes a key of the project, which socle keys create or " +
		"POST /projects/{projectUUID}/keys creates, or a token of the project's users."},
}

// findUnavailable returns the message about the API that a path belongs to; "" if there is none.
func findUnavailable(path string) string {
	after, ok := strings.CutPrefix(path, "/projects/")
	if !ok {
		return ""
	}

	_, rest, _ := strings.Cut(after, "/")
	for _, u := range unavailable {
		if rest == u.path || strings.HasPrefix(rest, u.path+"/") {
			return u.message
		}
	}

	return ""
}

const apiVersion = "X-Supabase-Api-Version"

// serveUnavailable responds in the format that Supabase's clients expect, to pages from any origin.
// They take 501 for a network failure, without a message.
func serveUnavailable(w http.ResponseWriter, r *http.Request, message string) {
	h := w.Header()
	h.Set("Access-Control-Allow-Origin", "*")
	h.Set("Access-Control-Expose-Headers", apiVersion)
	h.Set(apiVersion, "2024-01-01") // since then, the error code is the member code

	if r.Method == http.MethodOptions {
		h.Set("Access-Control-Allow-Methods", "GET, POST, PUT, PATCH, DELETE, HEAD")
		h.Set("Access-Control-Allow-Headers", "*, Authorization")
		w.WriteHeader(http.StatusNoContent)

		return
	}

	writeJSON(w, http.StatusNotFound, map[string]string{"code": "not_available", "message": message})
}
