package authapi_test

import (
	"strings"
	"testing"

	"github.com/google/uuid"
)

// TestMalformedIDs checks that access comes first, and then the id of the path.
func TestMalformedIDs(t *testing.T) {
	t.Parallel()

	p := newApp(t, autoconfirm)
	token := p.signUp("ann@example.com").text("access_token")

	for request, key := range map[string]string{
		"POST /factors/x/challenge": token, "POST /factors/x/verify": token, "DELETE /factors/x": token,
		"GET /admin/users/x": p.secret, "DELETE /admin/users/x/factors/" + uuid.NewString(): p.secret,
	} {
		method, path, _ := strings.Cut(request, " ")
		p.send(method, path, "", "").fails(401, "no_authorization")
		p.send(method, path, key, "").fails(404, "validation_failed")
	}
	p.send("GET", "/factors/x/unknown", token, "").fails(404, "not_found")
}
