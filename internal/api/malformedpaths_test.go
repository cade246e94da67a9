package api_test

import (
	"strings"
	"testing"

	"github.com/socle-dev/socle/internal/api/apitest"
)

// TestMalformedPaths: an identifier in a path that can't be one is a fault of the request's form.
func TestMalformedPaths(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	project, long := "/projects/"+a.Project, strings.Repeat("x", 256)
	for _, c := range []struct{ method, path, body string }{
		{"GET", "/schedules/" + long, ""}, {"PUT", "/schedules/" + long, `{"active": false}`},
		{"DELETE", "/schedules/" + long, ""}, {"POST", "/schedules/" + long + "/run", ""},
		{"POST", "/vault-secrets", "{"},
		{"GET", "/webhooks/x", ""}, {"PUT", "/webhooks/x", `{"ordered": true}`}, {"DELETE", "/webhooks/x", ""},
		{"POST", "/webhooks/x/test", ""}, {"POST", "/webhooks/x/secret", ""},
		{"POST", "/webhooks/x/replay", `{"from": "2026-01-01T00:00:00Z"}`},
		{"GET", "/webhooks/x/deliveries/y", ""}, {"POST", "/webhooks/x/deliveries/y/retry", ""},
	} {
		if r := a.Send(c.method, project+c.path, c.body); r.Status != 400 {
			t.Errorf("%s %.40s: got %d, want 400\n%s", c.method, c.path, r.Status, r.Body)
		}
	}
}
