package api_test

import (
	"fmt"
	"testing"

	"github.com/socle-dev/socle/internal/api/apitest"
)

// countOwners returns the number of owners of an organization.
func countOwners(t *testing.T, a *apitest.API, organization string) int {
	t.Helper()

	return apitest.Value[int](a, `select count(*) from platform.members where role = 2 and organization_uuid = $1`,
		organization)
}

func role(n int) string { return fmt.Sprintf(`{"role_id": %d}`, n) }

func TestUpdateMember(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	members := "/organizations/" + a.Organization + "/members/"
	admin, developer := a.Member(3), a.Member(4)
	username := developer.Get("/users/me").Want(200).Get("username")

	developer.CreateTable("t")
	a.Put(members+developer.User, role(5)).Want(200).Content("roleId", 5).Content("username", username)

	// on the next request
	developer.Post("/tables", `{"name": "u", "columns": [{"name": "id", "type": "integer"}]}`).Want(403)
	developer.Get("/tables").Want(200)

	admin.Put(members+developer.User, role(3)).Want(200)
	admin.Put(members+developer.User, role(2)).Want(403) // above the caller's role
	admin.Put(members+admin.User, role(2)).Want(403)
	admin.Put(members+a.User, role(5)).Want(403) // an admin cannot change an owner
	admin.Delete(members + a.User).Want(403)
	admin.Put(members+admin.User, role(5)).Want(200) // a lower role for oneself is allowed
	admin.Put(members+admin.User, role(3)).Want(403)

	a.Put(members+a.User, role(3)).Want(409).Code("last_owner")
	a.Put(members+a.User, role(2)).Want(200)
	a.Put(members+developer.User, role(2)).Want(200)
	developer.Put(members+a.User, role(3)).Want(200)
	a.Put(members+developer.User, role(3)).Want(403)

	for _, body := range []string{
		role(1), role(6), role(0), `{}`, `{"role_id": "3"}`, `{"role_id": 3.0}`, `{"role_id": null}`,
	} {
		a.Put(members+developer.User, body).Want(422).Field("role_id")
	}

	a.Put(members+apitest.MissingUUID, role(6)).Want(404) // access is checked before the fields
	a.Put(members+a.SignUp("outsider").User, role(5)).Want(404)
	a.Put(members+"nobody", role(5)).Want(400)
	a.Put(members+developer.User, `{`).Want(400)
	a.Anonymous().Put(members+developer.User, role(5)).Want(401)
}

func TestDeleteMember(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	members := "/organizations/" + a.Organization + "/members/"
	viewer, admin := a.Member(5), a.Member(3)
	viewer.Get("/tables").Want(200)
	viewer.Delete(members + admin.User).Want(403)
	admin.Delete(members+viewer.User).Want(200).Content("userUuid", viewer.User)
	viewer.Get("/tables").Want(401).Code("unknown_project") // on the next request
	viewer.Get("/projects/" + a.Project).Want(404)
	viewer.Get("/organizations/" + a.Organization).Want(404)
	admin.Delete(members + viewer.User).Want(404)
	a.Delete(members + a.User).Want(409).Code("last_owner")
	a.Delete(members + "nobody").Want(400)
	admin.Delete(members + admin.User).Want(200)
}

func TestLeaveOrganization(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	membership := "/organizations/" + a.Organization + "/membership"
	viewer, admin := a.Member(5), a.Member(3)
	viewer.Delete(membership).Want(200).Content("roleId", 5)
	viewer.Delete(membership).Want(404)
	a.Delete(membership).Want(409).Code("last_owner")
	a.Delete("/organizations/x/membership").Want(400)

	// The former owner of their own organization can leave it, and gets a new one.
	a.Put("/organizations/"+a.Organization+"/owner", `{"user_uuid": "`+admin.User+`"}`).Want(200)
	admin.Delete("/projects/" + a.Project + "?purge=true").Want(200)
	admin.Delete("/organizations/" + a.Organization).Want(409).Code("own_organization")
	a.Delete(membership).Want(200)

	own := a.Post("/projects", `{"name": "in my own"}`).Want(201).Get("organizationUuid").(string)
	a.Get("/organizations/"+own).Want(200).Content("roleId", 2)
	admin.Delete("/organizations/" + a.Organization).Want(200)

	// The default is the oldest owned organization.
	second := a.Create("/organizations", `{"name": "second"}`)
	addMember(a, own, admin, 2)
	admin.Delete("/organizations/" + own + "/members/" + a.User).Want(200)

	if got := a.Post("/projects", `{"name": "in the second"}`).Want(201).Get("organizationUuid"); got != second {
		t.Errorf("got project in %v, want %v", got, second)
	}
}

func TestTransferOrganization(t *testing.T) {
	t.Parallel()

	a := apitest.SharedUser(t)
	administrator, owner := a.Administrator(), a.SignUp("owner")
	successor, admin := owner.Member(5), owner.Member(3)
	path := "/organizations/" + owner.Organization + "/owner"
	to := func(user string) string { return `{"user_uuid": "` + user + `"}` }

	admin.Put(path, to(admin.User)).Want(403)
	owner.Put(path, to(owner.User)).Want(200).Content("roleId", 2)
	owner.Put(path, to(successor.User)).Want(200).Content("userUuid", successor.User).Content("roleId", 2)
	owner.Get("/organizations/"+owner.Organization).Want(200).Content("roleId", 3)
	owner.Put(path, to(owner.User)).Want(403)
	administrator.Put(path, to(owner.User)).Want(200) // an administrator who is not a member loses no role

	if got := countOwners(t, a, owner.Organization); got != 2 {
		t.Errorf("got %d owners, want 2", got)
	}

	successor.Put(path, to(a.SignUp("outsider").User)).Want(422).Field("user_uuid")
	successor.Put(path, to(apitest.MissingUUID)).Want(422).Field("user_uuid")
	successor.Put(path, to("x")).Want(422).Field("user_uuid")
	successor.Put(path, `{}`).Want(422).Field("user_uuid")
	successor.Put(path, `{`).Want(400)
	successor.Put("/organizations/"+apitest.MissingUUID+"/owner", to(successor.User)).Want(404)
}

// TestOwnersConcurrently checks that one owner remains when all owners demote each other and
// themselves concurrently.
func TestOwnersConcurrently(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	path := "/organizations/" + a.Organization
	all := []*apitest.API{a}
	for range 19 {
		all = append(all, a.Member(2))
	}

	got := concurrently(20, func(i int) *apitest.Reply {
		me, next := all[i], all[(i+1)%20]
		switch i % 4 {
		case 0:
			return me.Put(path+"/members/"+next.User, role(5))
		case 1:
			return me.Delete(path + "/members/" + next.User)
		case 2:
			return me.Delete(path + "/membership")
		}

		return me.Put(path+"/members/"+me.User, role(4))
	})

	wantStatuses(t, got, 200, 403, 404, 409)

	if n := countOwners(t, a, a.Organization); n < 1 {
		t.Errorf("got %d owners after statuses %v", n, got)
	}
}

// TestTwoOwnersConcurrently repeats this with two owners: exactly one request succeeds each time.
func TestTwoOwnersConcurrently(t *testing.T) {
	t.Parallel()

	a := apitest.SharedUser(t)
	b := a.SignUp("b")
	for i := range 6 {
		id := a.Create("/organizations", `{"name": "contested"}`)
		addMember(a, id, b, 2)
		members := "/organizations/" + id + "/members/"

		got := concurrently(2, func(n int) *apitest.Reply {
			me, other := a, b
			if n == 1 {
				me, other = b, a
			}

			switch i % 3 {
			case 0:
				return me.Delete(members + other.User)
			case 1:
				return me.Put(members+other.User, role(5))
			}

			return me.Delete("/organizations/" + id + "/membership")
		})

		wantStatuses(t, got, 200, 403, 404, 409)

		if got[200] != 1 || countOwners(t, a, id) != 1 {
			t.Errorf("round %d: got statuses %v and %d owners, want one of each", i, got, countOwners(t, a, id))
		}
	}
}

// TestLastOwnerConstraint checks that a constraint prevents the loss of the last owner in
// any statement.
func TestLastOwnerConstraint(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	viewer := a.Member(5)

	for _, sql := range []string{
		`delete from platform.members where organization_uuid = $1`,
		`update platform.members set role = 3 where organization_uuid = $1`,
		`with gone as (delete from platform.members where organization_uuid = $1 and role = 2 returning 1) select * from gone`,
	} {
		if err := a.TryExec(sql, a.Organization); err == nil {
			t.Errorf("%s succeeded", sql)
		}
	}

	// A transfer within one statement is allowed.
	if err := a.TryExec(`update platform.members set role = case when user_uuid = $2 then 2 else 5 end where organization_uuid = $1`,
		a.Organization, viewer.User); err != nil {
		t.Error(err)
	}
}

// TestTokenRoleOverMembers checks that the role of a token also limits its rights
// over other members.
func TestTokenRoleOverMembers(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	organization := "/organizations/" + a.Organization
	second, viewer := a.Member(2), a.Member(5)
	admin, developer := withToken(t, a, 3), withToken(t, a, 4)
	admin.Put(organization+"/members/"+viewer.User, role(4)).Want(200)
	admin.Put(organization+"/members/"+viewer.User, role(2)).Want(403)
	admin.Delete(organization + "/members/" + second.User).Want(403)
	admin.Post(organization+"/invitations", invitationBody("x@example.com", 2)).Want(403)
	admin.Put(organization+"/owner", `{"user_uuid": "`+viewer.User+`"}`).Want(403)
	developer.Put(organization+"/members/"+viewer.User, role(5)).Want(403)
	withToken(t, a, 2, a.Project).Put(organization, `{"name": "mine"}`).Want(403).Code("token_not_allowed")
}
