package api_test

import (
	"strings"
	"testing"

	"socle/internal/api/apitest"
)

const withPassword = `{"password": "` + apitest.Password + `"}`

// leave deletes the user's own account.
func leave(a *apitest.API, body string) *apitest.Reply {
	return a.Send("DELETE", "/users/me", body)
}

func TestDeleteAccount(t *testing.T) {
	t.Parallel()

	a := apitest.User(t)
	u := a.SignUp("leaver")
	other := again(t, u)
	leave(u, `{}`).Want(422).Field("password")
	leave(u, `{"password": "wrong"}`).Want(422).Code("wrong_password").Field("password")
	leave(u, `{`).Want(400)
	leave(u.Nobody(), withPassword).Want(401)
	u.Get("/users/me").Want(200)
	leave(u, withPassword).Want(200).Content("uuid", u.User).Content("email", u.Email)
	u.Get("/users/me").Want(401)
	other.Get("/users/me").Want(401)
	u.Nobody().Post("/users/login", logIn(u.Email, apitest.Password)).Want(401)

	if m := mailed(t, a, u.Email, 1); m.Subject != "Your account was deleted" {
		t.Errorf("got %+v", m)
	}
	if n := apitest.Value[int](a, `select count(*)::int from platform.organizations where uuid = $1`,
		u.Organization); n != 0 {
		t.Error("the empty organization stays")
	}

	// Username and address are free again, and their next owner inherits nothing.
	name, _, _ := strings.Cut(u.Email, "@")
	again := a.Nobody().In("").Post("/users", person(name, nil)).Want(201)
	if again.Get("uuid") == u.User || again.Get("organizationUuid") == u.Organization {
		t.Errorf("a new user is the old one: %s", again.Body)
	}

	u.Get("/users/me").Want(401)
}

// TestLastOwnerStays checks that the last owner of a shared organization cannot delete their
// account.
func TestLastOwnerStays(t *testing.T) {
	t.Parallel()

	a := apitest.New(t)
	before := accounts(t, a)
	r := leave(a, withPassword).Want(409).Code("last_owner") // the organization has a project
	if r.Metadata("organizations.0") != a.Organization {
		t.Errorf("got organizations %v, want %s", r.Metadata("organizations"), a.Organization)
	}

	unchanged(t, a, before)
	developer := a.Member(4)
	a.Delete("/projects/" + a.Project).Want(200)
	leave(a, withPassword).Want(409).Code("last_owner") // the organization has another member

	project := a.CreateProject("second")
	developer.Project = project
	made := developer.Create("/containers", `{"name": "made"}`)
	leave(developer, withPassword).Want(200)

	if got := a.In(project).Put("/containers/"+made, `{"description": "kept"}`).Want(200).
		Get("createdBy"); got != developer.User {
		t.Errorf("the container is by %v, want %s", got, developer.User)
	}

	owner := a.Member(2)
	leave(a, withPassword).Want(200)
	owner.In(project).Get("/tables").Want(200)
	leave(owner, withPassword).Want(409).Code("last_owner")
}

func TestDeleteUser(t *testing.T) {
	t.Parallel()

	administrator := apitest.Users(t).SignUp("first")
	user, other := administrator.SignUp("user"), administrator.SignUp("other")
	other.Delete("/users/" + user.User).Want(403)
	same(t, other.Delete("/users/"+apitest.Missing).Want(403), other.Delete("/users/"+user.User))
	administrator.Delete("/users/" + administrator.User).Want(403)
	administrator.Delete("/users/x").Want(400).Field("userUUID")
	administrator.Delete("/users/"+user.User).Want(200).Content("uuid", user.User)
	administrator.Delete("/users/" + user.User).Want(404)
	user.Get("/users/me").Want(401)
	leave(administrator, withPassword).Want(409).Code("last_administrator")
	other.CreateProject("theirs")
	administrator.Delete("/users/" + other.User).Want(409).Code("last_owner")
	administrator.Exec(`update platform.users set is_administrator = true where uuid = $1`, other.User)
	leave(administrator, withPassword).Want(200)
}

// TestDeleteAtOnce checks that owners, each of whom may leave before the others, cannot all leave
// concurrently.
func TestDeleteAtOnce(t *testing.T) {
	t.Parallel()

	a := apitest.New(t)
	owners := []*apitest.API{a, a.Member(2), a.Member(2)}
	wantCounts(t, atOnce(3, func(i int) *apitest.Reply { return leave(owners[i], withPassword) }),
		map[int]int{200: 2, 409: 1})

	administrators := []*apitest.API{a.SignUp("one"), a.SignUp("two"), a.SignUp("three")}
	a.Exec(`update platform.users set is_administrator = uuid in ($1, $2, $3)`, administrators[0].User,
		administrators[1].User, administrators[2].User)

	wantCounts(t, atOnce(3, func(i int) *apitest.Reply { return leave(administrators[i], withPassword) }),
		map[int]int{200: 2, 409: 1})

	u := a.SignUp("twice")
	wantCounts(t, atOnce(6, func(int) *apitest.Reply { return leave(u, withPassword) }), map[int]int{200: 1, 401: 5})

	// A project is created while its organization is deleted: one of the two requests is refused.
	u = a.SignUp("maker")
	got := atOnce(2, func(i int) *apitest.Reply {
		if i == 0 {
			return leave(u, withPassword)
		}
		return u.Post("/projects", `{"name": "late"}`)
	})
	if got[200]+got[201] != 1 {
		t.Errorf("got answers %v, want one that succeeds", got)
	}
}
