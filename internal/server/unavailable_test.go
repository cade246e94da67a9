package server

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestFindUnavailable(t *testing.T) {
	t.Parallel()

	for path, want := range map[string]string{
		"/projects/x/graphql/v1":        "There is no GraphQL.",
		"/projects/x/graphql/v1/":       "There is no GraphQL.",
		"/projects/x/functions/v1/hi":   "",
		"/projects/x/analytics/v1/x":    "There is no interface of Supabase's logs.",
		"/projects/x/pg/tables":         "There is no interface of Supabase's console.",
		"/projects/x/pgx":               "",
		"/projects/x/realtime/v1":       "",
		"/projects/x/storage/v1/bucket": "",
		"/projects/x/auth/v1/signup":    "",
		"/projects/x/rest":              "The rows API is at rest/v1.",
		"/projects/x/rest-settings":     "",
		"/storage/v1/bucket":            "",
		"/projects":                     "",
	} {
		if got := findUnavailable(path); !strings.HasPrefix(got, want) || (want == "") != (got == "") {
			t.Errorf("%s: got %q, want %q", path, got, want)
		}
	}
}

func TestServeUnavailable(t *testing.T) {
	t.Parallel()

	for method, want := range map[string]int{http.MethodPost: 404, http.MethodOptions: 204} {
		w := httptest.NewRecorder()
		serveUnavailable(w, httptest.NewRequest(method, "/", nil), "not yet")
		if w.Code != want || w.Header().Get("Access-Control-Allow-Origin") != "*" ||
			(want == 404) != (w.Body.String() == `{"code":"not_available","message":"not yet"}`+"\n") {
			t.Errorf("%s: got %d, %v, %q", method, w.Code, w.Header(), w.Body)
		}
	}
}
