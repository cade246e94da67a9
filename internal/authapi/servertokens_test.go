package authapi_test

import (
	"maps"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/lestrrat-go/jwx/v3/jwa"
	"github.com/lestrrat-go/jwx/v3/jwt"
)

// TestServerTokens reads a user by a token that the application's server has signed, which has no
// session.
func TestServerTokens(t *testing.T) {
	t.Parallel()

	p := newApp(t, autoconfirm)
	secret := p.Get("/projects/" + p.Project + "/jwt-secret").Want(200).Get("secret").(string)
	sign := func(claims map[string]any) string {
		t.Helper()

		all := map[string]any{"role": "authenticated", "exp": time.Now().Add(time.Hour).Unix()}
		maps.Copy(all, claims)
		token := jwt.New()
		for name, value := range all {
			if err := token.Set(name, value); err != nil {
				t.Fatal(err)
			}
		}

		signed, err := jwt.Sign(token, jwt.WithKey(jwa.HS256(), []byte(secret)))
		if err != nil {
			t.Fatal(err)
		}
		return string(signed)
	}

	ann := p.signUp("ann@example.com").text("user.id")
	token := sign(map[string]any{"sub": ann})
	p.send("GET", "/user", token, "").want(200).equal("email", "ann@example.com")
	p.send("GET", "/user", sign(map[string]any{"sub": ann, "session_id": uuid.NewString()}), "").
		fails(403, "session_not_found")
	p.send("GET", "/user", sign(map[string]any{"sub": uuid.NewString()}), "").fails(403, "user_not_found")

	// A change needs a session.
	p.send("PUT", "/user", token, `{"data":{"a":1}}`).fails(403, "session_not_found")
	p.send("PUT", "/user", sign(map[string]any{"sub": ann, "session_id": uuid.Nil.String()}), `{"data":{"a":1}}`).
		fails(403, "session_not_found")

	p.send("PUT", "/admin/users/"+ann, p.secret, `{"ban_duration":"1h"}`).want(200)
	p.send("GET", "/user", token, "").fails(403, "user_banned")
}
