package api_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/socle-dev/socle/internal/api/apitest"
)

func TestUpdateUser(t *testing.T) {
	t.Parallel()

	a := apitest.User(t)
	path := "/users/" + a.User
	user := a.Put(path, `{"bio": "one"}`).Want(200).Get("").(map[string]any)
	created := user["createdAt"]

	// Each change keeps the members set before.
	for _, tt := range []struct{ body, member, value string }{
		{`{"username": " Ada_L "}`, "username", "Ada_L"},
		{`{"email": " Ada@example.com"}`, "email", "Ada@example.com"},
		{`{"bio": ""}`, "bio", ""},
		{`{"bio": "two", "unknown": 1}`, "bio", "two"},
		{`{"password": "another one entirely"}`, "bio", "two"},
		{`{"username": "ADA_l"}`, "username", "ADA_l"}, // the user's own name is not a duplicate
	} {
		got := a.Put(path, tt.body).Want(200).Get("").(map[string]any)
		if got["updatedAt"].(string) <= user["updatedAt"].(string) {
			t.Errorf("%s: got updatedAt %v, before %v", tt.body, got["updatedAt"], user["updatedAt"])
		}

		user[tt.member], user["updatedAt"], user["createdAt"] = tt.value, got["updatedAt"], created
		if diff := cmp.Diff(user, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.body, diff)
		}
	}

	a.Anonymous().Post("/users/login", loginBody("ada@example.com", "another one entirely")).Want(200).
		Content("username", "ADA_l")

	a.Anonymous().Post("/users/login", loginBody(a.Email, "another one entirely")).Want(401)
	// The old address is free.
	a.Anonymous().Post("/users", userBody("successor", map[string]any{"email": a.Email})).Want(201)

	all := a.Put(path,
		`{"username": "all", "email": "all@example.com", "bio": "all", "password": "all at the same time"}`).Want(200)
	all.Content("username", "all").Content("email", "all@example.com").Content("bio", "all").Content("roleId", 2)
	a.Put("/users/"+strings.ToUpper(a.User), `{"bio": "upper case"}`).Want(200).Content("uuid", a.User)
}

func TestUpdateUserRefuses(t *testing.T) {
	t.Parallel()

	a := apitest.User(t)
	other := a.SignUp("other")
	a.Put("/users/"+other.User, `{"bio": "mine"}`).Want(401)

	before, path := accounts(t, a), "/users/"+a.User
	taken, _, _ := strings.Cut(other.Email, "@")
	for _, tt := range []struct {
		body, field string
	}{
		{`{"username": "ab"}`, "username"},
		{`{"username": "a b c"}`, "username"},
		{`{"username": "` + strings.ToUpper(taken) + `"}`, "username"},
		{`{"username": "` + taken + `", "bio": "not kept either"}`, "username"},
		{`{"email": "nobody"}`, "email"},
		{`{"email": ""}`, "email"},
		{`{"email": " ` + strings.ToUpper(other.Email) + `"}`, "email"},
		{`{"email": "` + string(rune(other.Email[0])-'!'+'！') + other.Email[1:] + `"}`, "email"}, // full width
		{`{"email": "` + strings.Repeat("a", 300) + `@example.com"}`, "email"},
		{`{"password": ""}`, "password"},
		{`{"password": "seven77"}`, "password"},
		{`{"password": "password1"}`, "password"},
		{`{"password": "` + a.Email + `"}`, "password"},
		{`{"password": "new@example.com", "email": "New@example.com"}`, "password"},
		{`{"password": "` + strings.Repeat("x", 1025) + `"}`, "password"},
		{`{"bio": "` + strings.Repeat("x", 501) + `"}`, "bio"},
		{`{"bio": "a\u0000b"}`, "bio"},
		{`{"bio": null}`, "bio"},
		{`{"bio": 1e400}`, "bio"},
		{`{"username": 9223372036854775808}`, "username"},
		{`{"email": ["x@example.com"]}`, "email"},
		{`{"password": {"$ne": null}}`, "password"},
		{`{"password": true}`, "password"},
	} {
		if r := a.Put(path, tt.body); r.Status != 422 {
			t.Errorf("%.80s: got %d, want 422\n%s", tt.body, r.Status, r.Body)
		} else {
			r.Field(tt.field)
		}
	}

	a.Put(path, `{"username": "x", "email": "x", "password": "x"}`).Want(422).Field("username", "email", "password")

	for _, body := range []string{`{}`, `{"unknown": 1}`, `{"roleId": 1}`, `{"status": "suspended"}`, `{"BIO": "x"}`} {
		a.Put(path, body).Want(422).Code("nothing_to_change").Field()
	}

	// The checks run in this order: credentials, JSON syntax, access to the user, fields.
	anonymous := a.Anonymous()
	anonymous.Put(path, `{`).Want(401)
	anonymous.Put("/users/garbage", `{"bio": 1}`).Want(401)
	a.Put("/users/garbage", `{"bio": 1}`).Want(400).Field("userUUID")
	a.Put("/users/"+other.User, `{`).Want(400).Code("malformed_json")
	a.Put("/users/"+other.User, `{"bio": 1}`).Want(401).Code("not_yourself")
	a.Put("/users/"+other.User, `{}`).Want(401).Code("not_yourself")
	a.Put(path, `{"bio": 1}`).Want(422)

	for _, body := range []string{`{"bio": "theirs"}`, `{"bio": 1}`, `{}`, `{"password": "their new password"}`} {
		wantEqual(t, a.Put("/users/"+other.User, body).Want(401), a.Put("/users/"+apitest.MissingUUID, body))
	}

	unchanged(t, a, before)
	anonymous.Post("/users/login", loginBody(other.Email, apitest.Password)).Want(200)
}

// TestAdministratorUpdatesUser checks that an administrator can change any user, and keeps their
// own session.
func TestAdministratorUpdatesUser(t *testing.T) {
	t.Parallel()

	administrator := apitest.SharedUser(t).Administrator()
	user := administrator.SignUp("user")
	administrator.Put("/users/"+user.User, `{"bio": "theirs", "roleId": 1}`).Want(200).Content("bio", "theirs").
		Content("roleId", 2)

	administrator.Put("/users/"+user.User, `{"bio": 1}`).Want(422).Field("bio")
	administrator.Put("/users/"+apitest.MissingUUID, `{"bio": "x"}`).Want(401).Code("not_yourself")
	administrator.Put("/users/"+apitest.MissingUUID, `{"bio": 1}`).Want(401)
	administrator.Put("/users/"+user.User, `{"password": "set by somebody else"}`).Want(200)
	user.Get("/projects").Want(401)
	administrator.Get("/projects").Want(200)
	user.Anonymous().Post("/users/login", loginBody(user.Email, "set by somebody else")).Want(200)
}

// TestNewPasswordEndsSessions checks that a new password ends all other sessions.
func TestNewPasswordEndsSessions(t *testing.T) {
	t.Parallel()

	a := apitest.SharedUser(t)
	other := a.Anonymous()
	other.Token = a.Anonymous().Post("/users/login", loginBody(a.Email, apitest.Password)).Want(200).
		Metadata("token").(string)

	bystander := a.SignUp("bystander")
	a.Put("/users/"+a.User, `{"bio": "no reason to end anything"}`).Want(200)
	other.Get("/projects").Want(200)
	a.Put("/users/"+a.User, `{"password": "seven77"}`).Want(422)
	other.Get("/projects").Want(200)
	a.Put("/users/"+a.User, `{"password": "another one entirely"}`).Want(200)
	other.Get("/projects").Want(401).Code("invalid_token")
	a.Get("/projects").Want(200)
	bystander.Get("/projects").Want(200)
	a.Anonymous().Post("/users/login", loginBody(a.Email, apitest.Password)).Want(401)
	a.Anonymous().Post("/users/login", loginBody(a.Email, "another one entirely")).Want(200)
}

// TestUsernamesConcurrently checks that one of many concurrent requests gets a username.
func TestUsernamesConcurrently(t *testing.T) {
	t.Parallel()

	a := apitest.SharedUser(t)
	users := []*apitest.API{a.SignUp("one"), a.SignUp("two"), a.SignUp("three"), a.SignUp("four")}

	// Two users who swap names wait for each other, and neither gets the other's name.
	wantCounts(t, concurrently(2, func(i int) *apitest.Reply {
		name, _, _ := strings.Cut(users[1-i].Email, "@")
		return users[i].Put("/users/"+users[i].User, `{"username": "`+name+`"}`)
	}), map[int]int{422: 2})

	for _, body := range []string{`{"username": "the-one-of-` + a.User + `"}`, `{"email": "the-` + a.Email + `"}`} {
		wantCounts(t, concurrently(len(users), func(i int) *apitest.Reply {
			return users[i].Put("/users/"+users[i].User, body)
		}), map[int]int{200: 1, 422: 3})
	}
}
