package idp_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/socle-dev/socle/internal/fair"
	"github.com/socle-dev/socle/internal/idp"
	"github.com/socle-dev/socle/internal/outbound"
)

// profiles are responses as the providers document them, and what they say about a person.
var profiles = map[string]struct {
	tokenPath, path, body string
	query                 string // of the request for the profile
	want                  idp.Identity
}{
	"gitlab": {
		tokenPath: "/oauth/token", path: "/api/v4/user",
		body: `{"id":1,"username":"john_smith","email":"john@example.com","name":"John Smith","state":"active",
			"avatar_url":"http://localhost:3000/uploads/user/avatar/1/index.jpg","web_url":"http://localhost:3000/john_smith",
			"confirmed_at":"2012-05-23T09:05:22Z","two_factor_enabled":true,"external":false}`,
		want: idp.Identity{Subject: "1", Email: "john@example.com", EmailVerified: true, Data: map[string]any{
			"name": "John Smith", "full_name": "John Smith", "user_name": "john_smith",
			"preferred_username": "john_smith",
			"avatar_url":         "http://localhost:3000/uploads/user/avatar/1/index.jpg",
			"picture":            "http://localhost:3000/uploads/user/avatar/1/index.jpg"}},
	},
	"discord": {
		tokenPath: "/api/oauth2/token", path: "/api/users/@me",
		body: `{"id":"80351110224678912","username":"nelly","discriminator":"0","global_name":"Nelly",
			"avatar":"8342729096ea3675442027381ff50dfe","verified":true,"email":"nelly@example.com","flags":64,"banner":null}`,
		want: idp.Identity{Subject: "80351110224678912", Email: "nelly@example.com", EmailVerified: true,
			Data: map[string]any{
				"name": "Nelly", "full_name": "Nelly", "user_name": "nelly", "preferred_username": "nelly",
				"avatar_url": "https://cdn.discordapp.com/avatars/80351110224678912/8342729096ea3675442027381ff50dfe.png",
				"picture":    "https://cdn.discordapp.com/avatars/80351110224678912/8342729096ea3675442027381ff50dfe.png"}},
	},
	"discord without a name": {
		tokenPath: "/api/oauth2/token", path: "/api/users/@me",
		body: `{"id":"1","username":"nelly","global_name":null,"avatar":null,"verified":false,"email":"nelly@example.com"}`,
		want: idp.Identity{Subject: "1", Email: "nelly@example.com", Data: map[string]any{"name": "nelly",
			"full_name": "nelly", "user_name": "nelly", "preferred_username": "nelly"}},
	},
	"facebook": {
		tokenPath: "/oauth/access_token", path: "/me",
		// appsecret_proof is the HMAC-SHA256 of the access token under the secret, by OpenSSL.
		query: "fields=id,name,email,picture&appsecret_proof=f789f13e161fc2bfae511164ea0bcbb742cbd3339c88e8c34865b3e5e2e51e08",
		body: `{"id":"10221234567890123","name":"Ann Lee","email":"ann\u0040example.com","picture":{"data":{"height":50,
			"is_silhouette":false,"url":"https://platform-lookaside.fbsbx.com/platform/profilepic/?asid=1","width":50}}}`,
		want: idp.Identity{Subject: "10221234567890123", Email: "ann@example.com", EmailVerified: true,
			Data: map[string]any{"name": "Ann Lee", "full_name": "Ann Lee",
				"avatar_url": "https://platform-lookaside.fbsbx.com/platform/profilepic/?asid=1",
				"picture":    "https://platform-lookaside.fbsbx.com/platform/profilepic/?asid=1"}},
	},
	"facebook by phone": {
		tokenPath: "/oauth/access_token", path: "/me", body: `{"id":"2","name":"Ben"}`,
		want: idp.Identity{Subject: "2", Data: map[string]any{"name": "Ben", "full_name": "Ben"}},
	},
}

func TestProfiles(t *testing.T) {
	t.Parallel()

	for name, test := range profiles {
		var asked string
		mux := http.NewServeMux()
		mux.HandleFunc("POST "+test.tokenPath, func(w http.ResponseWriter, r *http.Request) {
			if r.FormValue("client_id") != "id" || r.FormValue("client_secret") != "secret" ||
				r.FormValue("code") != "code" {
				t.Errorf("%s: the code is exchanged with %v", name, r.Form)
			}
			_, _ = w.Write([]byte(`{"access_token":"access","refresh_token":"refresh","token_type":"bearer"}`))
		})
		mux.HandleFunc("GET "+test.path, func(w http.ResponseWriter, r *http.Request) {
			asked = r.URL.RawQuery
			if r.Header.Get("Authorization") != "Bearer access" {
				t.Errorf("%s: the profile is read with %q", name, r.Header.Get("Authorization"))
			}
			_, _ = w.Write([]byte(test.body))
		})

		server := httptest.NewServer(mux)
		t.Cleanup(server.Close)

		provider, _, _ := strings.Cut(name, " ")
		got, err := idp.New(outbound.New(loopback)).Exchange(t.Context(), fair.Key{},
			idp.Config{Name: provider, ClientID: "id", Secret: "secret", URL: server.URL}, flow,
			idp.Answer{Code: "code"})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}

		want := test.want
		want.AccessToken, want.RefreshToken = "access", "refresh"
		want.Data["sub"], want.Data["provider_id"] = want.Subject, want.Subject
		want.Data["email_verified"], want.Data["phone_verified"] = want.EmailVerified, false
		if want.Email != "" {
			want.Data["email"] = want.Email
		}
		delete(got.Data, "iss")
		if diff := cmp.Diff(got, want); diff != "" {
			t.Errorf("%s: got (-), want (+):\n%s", name, diff)
		}
		if test.query != "" && asked != test.query {
			t.Errorf("%s: the profile is asked for with %s, want %s", name, asked, test.query)
		}
	}
}
