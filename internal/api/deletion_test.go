package api_test

import (
	"strings"
	"testing"

	"github.com/socle-dev/socle/internal/api/apitest"
)

const passwordBody = `{"password": "` + apitest.Password + `"}`

// deleteAccount deletes the user's own account.
func deleteAccount(a *apitest.API, body string) *apitest.Reply {
	return a.Send("DELETE", "/users/me", body)
}

func TestDeleteAccount(t *testing.T) {
	t.Parallel()

	a := apitest.SharedUser(t)
	u := a.SignUp("leaver")
	other := newSession(t, u)
	deleteAccount(u, `{}`).Want(422).Field("password")
	deleteAccount(u, `{"password": "wrong"}`).Want(422).Code("wrong_password").Field("password")
	deleteAccount(u, `{`).Want(400)
	deleteAccount(u.Anonymous(), passwordBody).Want(401)
	u.Get("/users/me").Want(200)
	deleteAccount(u, passwordBody).Want(200).Content("uuid", u.User).Content("email", u.Email)
	u.Get("/users/me").Want(401)
	other.Get("/users/me").Want(401)
	u.Anonymous().Post("/users/login", loginBody(u.Email, apitest.Password)).Want(401)

	if m := waitForMail(t, a, u.Email, 1); m.Subject != "Your account was deleted" {
		t.Errorf("got %+v", m)
	}
	if n := apitest.Value[int](a, `select count(*)::int from platform.organizations where uuid = $1`,
		u.Organization); n != 0 {
		t.Error("the empty organization still exists")
	}

	// Username and address are free again, and their next owner inherits nothing.
	name, _, _ := strings.Cut(u.Email, "@")
	repeated := a.Anonymous().WithProject("").Post("/users", userBody(name, nil)).Want(201)
	if repeated.Get("uuid") == u.User || repeated.Get("organizationUuid") == u.Organization {
		t.Errorf("a new user has the old UUID: %s", repeated.Body)
	}

	u.Get("/users/me").Want(401)
}

// TestDeleteLastOwner checks that the last owner of a shared organization cannot delete their
// account.
func TestDeleteLastOwner(t *testing.T) {
	t.Parallel()

	a := apitest.New(t)
	before := accounts(t, a)
	r := deleteAccount(a, passwordBody).Want(409).Code("last_owner") // the organization has a project
	if r.Metadata("organizations.0") != a.Organization {
		t.Errorf("got organizations %v, want %s", r.Metadata("organizations"), a.Organization)
	}

	unchanged(t, a, before)
	developer := a.Member(4)
	a.Delete("/projects/" + a.Project).Want(200)
	deleteAccount(a, passwordBody).Want(409).Code("last_owner") // the organization has another member

	project := a.CreateProject("second")
	developer.Project = project
	created := developer.Create("/containers", `{"name": "made"}`)
	deleteAccount(developer, passwordBody).Want(200)

	if got := a.WithProject(project).Put("/containers/"+created, `{"description": "kept"}`).Want(200).
		Get("createdBy"); got != developer.User {
		t.Errorf("got container of %v, want %s", got, developer.User)
	}

	owner := a.Member(2)
	deleteAccount(a, passwordBody).Want(200)
	owner.WithProject(project).Get("/tables").Want(200)
	deleteAccount(owner, passwordBody).Want(409).Code("last_owner")
}

func TestDeleteUser(t *testing.T) {
	t.Parallel()

	administrator := apitest.Users(t).SignUp("first")
	user, other := administrator.SignUp("user"), administrator.SignUp("other")
	other.Delete("/users/" + user.User).Want(403)
	wantEqual(t, other.Delete("/users/"+apitest.MissingUUID).Want(403), other.Delete("/users/"+user.User))
	administrator.Delete("/users/" + administrator.User).Want(403)
	administrator.Delete("/users/x").Want(400).Field("userUUID")
	administrator.Delete("/users/"+user.User).Want(200).Content("uuid", user.User)
	administrator.Delete("/users/" + user.User).Want(404)
	user.Get("/users/me").Want(401)
	deleteAccount(administrator, passwordBody).Want(409).Code("last_administrator")
	other.CreateProject("theirs")
	administrator.Delete("/users/" + other.User).Want(409).Code("last_owner")
	administrator.Exec(`update platform.users set is_administrator = true where uuid = $1`, other.User)
	deleteAccount(administrator, passwordBody).Want(200)
}

// TestDeleteConcurrently checks that owners, each of whom may leave before the others, cannot all
// leave concurrently.
func TestDeleteConcurrently(t *testing.T) {
	t.Parallel()

	a := apitest.New(t)
	owners := []*apitest.API{a, a.Member(2), a.Member(2)}
	wantCounts(t, concurrently(3, func(i int) *apitest.Reply { return deleteAccount(owners[i], passwordBody) }),
		map[int]int{200: 2, 409: 1})

	administrators := []*apitest.API{a.SignUp("one"), a.SignUp("two"), a.SignUp("three")}
	a.Exec(`update platform.users set is_administrator = uuid in ($1, $2, $3)`, administrators[0].User,
		administrators[1].User, administrators[2].User)

	wantCounts(t, concurrently(3, func(i int) *apitest.Reply { return deleteAccount(administrators[i], passwordBody) }),
		map[int]int{200: 2, 409: 1})

	u := a.SignUp("twice")
	wantCounts(t, concurrently(6, func(int) *apitest.Reply { return deleteAccount(u, passwordBody) }),
		map[int]int{200: 1, 401: 5})

	// A project is created while its organization is deleted: one of the two requests is refused.
	u = a.SignUp("maker")
	got := concurrently(2, func(i int) *apitest.Reply {
		if i == 0 {
			return deleteAccount(u, passwordBody)
		}
		return u.Post("/projects", `{"name": "late"}`)
	})
	if got[200]+got[201] != 1 {
		t.Errorf("got statuses %v, want one success", got)
	}
}
