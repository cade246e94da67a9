package api_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/socle-dev/socle/internal/api/apitest"
)

// addMember adds a user to an organization, bypassing the server.
func addMember(a *apitest.API, organization string, user *apitest.API, role int) {
	a.Exec(`insert into platform.members (organization_uuid, user_uuid, role) values ($1, $2, $3)`, organization,
		user.User, role)
}

// addOrganizationNames adds an owner's organization and its entities to names.
func addOrganizationNames(names map[string]string, owner *apitest.API) {
	names["organizationUUID"], names["memberUUID"], names["settingName"] = owner.Organization, owner.Member(5).User,
		"organizations_per_user"
	names["invitationUUID"] = owner.Create("/organizations/"+owner.Organization+"/invitations",
		`{"email": "kept@example.com", "role_id": 5}`)
}

// setUpOrganization adds entities of the target's owner to names, for operations that delete them
// or change the caller: an organization, a member or an invitation.
func setUpOrganization(t *testing.T, id string, owner *apitest.API, v matrixCaller, want int, names map[string]string) {
	if id == "acceptInvitation" && v.api.Token != "" {
		host, before := v.api.SignUp("host"), len(mailsTo(t, v.api, v.api.Email))
		host.Post("/organizations/"+host.Organization+"/invitations", `{"email": "`+v.api.Email+`", "role_id": 5}`).
			Want(201)

		names["invitation"] = waitForNextInvitation(t, v.api, v.api.Email, before)
	}

	if id == "previewInvitation" {
		names["invitation"] = waitForInvitation(t, v.api, "kept@example.com")
	}

	if owner == nil || want != 200 {
		return
	}

	switch id {
	case "resendInvitation", "deleteInvitation":
		names["invitationUUID"] = owner.Create("/organizations/"+owner.Organization+"/invitations",
			`{"email": "x`+names["n"]+`@example.com", "role_id": 5}`)
	case "deleteOrganization", "transferOrganization", "leaveOrganization":
		names["organizationUUID"] = owner.Create("/organizations", `{"name": "to go"}`)
		owner.Exec(`insert into platform.members (organization_uuid, user_uuid, role) values ($1, $2, 5)`,
			names["organizationUUID"], names["memberUUID"])

		if id == "leaveOrganization" {
			addMember(owner, names["organizationUUID"], v.api, v.own)
		}
	case "deleteMember":
		names["memberUUID"] = owner.Member(5).User
	}
}

// wantOfAdministrator returns the expected status of an operation for administrators.
func (o operation) wantOfAdministrator(v matrixCaller, at target, done int) int {
	switch {
	case v.name == "anonymous":
		return 401
	case v.name != "administrator":
		return 403
	case at.name == "absent" && strings.Contains(o.path, "{"):
		return 404
	}

	return done
}

// organizationCalls returns the operations on organizations and on the install.
func organizationCalls(a *apitest.API) []call {
	organization := "/organizations/" + a.Organization
	member := organization + "/members/" + apitest.MissingUUID

	return []call{
		{id: "createOrganization", method: "POST", path: "/organizations", body: `{"name": "late"}`},
		{id: "listOrganizations", method: "GET", path: "/organizations"},
		{id: "getOrganization", method: "GET", path: organization},
		{id: "updateOrganization", method: "PUT", path: organization, body: `{"name": "late"}`},
		{id: "deleteOrganization", method: "DELETE", path: organization},
		{id: "listMembers", method: "GET", path: organization + "/members"},
		{id: "updateMember", method: "PUT", path: member, body: `{"role_id": 5}`},
		{id: "deleteMember", method: "DELETE", path: member},
		{id: "leaveOrganization", method: "DELETE", path: organization + "/membership"},
		{id: "transferOrganization", method: "PUT",
			path: organization + "/owner", body: `{"user_uuid": "` + apitest.MissingUUID + `"}`},
		{id: "createInvitation", method: "POST",
			path: organization + "/invitations", body: `{"email": "late@example.com", "role_id": 5}`},
		{id: "listInvitations", method: "GET", path: organization + "/invitations"},
		{id: "resendInvitation",
			method: "POST", path: organization + "/invitations/" + apitest.MissingUUID + "/resend"},
		{id: "deleteInvitation", method: "DELETE", path: organization + "/invitations/" + apitest.MissingUUID},
		{id: "acceptInvitation", method: "POST", path: "/invitations/accept", body: `{"token": "late"}`},
		{id: "listUsers", method: "GET", path: "/admin/users"},
		{id: "getUser", method: "GET", path: "/admin/users/" + a.User},
		{id: "updateStanding", method: "PUT", path: "/admin/users/" + a.User, body: `{"status": "active"}`},
		{id: "resetSecondFactor", method: "DELETE", path: "/admin/users/" + apitest.MissingUUID + "/totp"},
		{id: "listInstanceAudit", method: "GET", path: "/admin/audit"},
		{id: "listSettings", method: "GET", path: "/admin/settings"},
		{id: "updateSetting", method: "PUT", path: "/admin/settings/sign_up", body: `{"value": true}`},
		{id: "resetSetting", method: "DELETE", path: "/admin/settings/sign_up"},
		{id: "listEnvironment", method: "GET", path: "/admin/environment"},
		{id: "listParts", method: "GET", path: "/health/parts"},
	}
}

func TestCreateOrganization(t *testing.T) {
	t.Parallel()

	a := apitest.SharedUser(t)
	path := "/organizations/" + a.Create("/organizations", `{"name": "  Büro \t"}`)
	a.Get(path).Want(200).Content("name", "Büro").Content("roleId", 2)
	a.Get(path+"/members").Want(200).Content("0.userUuid", a.User).Content("0.roleId", 2).Content("0.email", a.Email)
	a.Post("/organizations", `{"name": "Büro"}`).Want(201) // names are not unique

	a.Post("/organizations", `{"name": "  "}`).Want(422).Field("name")
	a.Post("/organizations", `{"name": ""}`).Want(422).Field("name")
	a.Post("/organizations", fmt.Sprintf(`{"name": %q}`, strings.Repeat("ü", 101))).Want(422).Field("name")
	a.Post("/organizations", `{"name": 1}`).Want(422).Field("name")
	a.Post("/organizations", `{"name": "a\u0000b"}`).Want(422).Field("name")
	a.Post("/organizations", `{`).Want(400)
	a.Anonymous().Post("/organizations", `{"name": "x"}`).Want(401)
	a.Get("/organizations/nothing").Want(400)
	a.Get("/organizations/nothing/members").Want(400)
	a.Get("/organizations/" + apitest.MissingUUID).Want(404)
}

func TestOrganizationsAreLimited(t *testing.T) {
	t.Parallel()

	a := apitest.Users(t)
	administrator, user := a.SignUp("first"), a.SignUp("user")
	administrator.Put("/admin/settings/organizations_per_user", `{"value": 5}`).Want(200)

	got := concurrently(20, func(int) *apitest.Reply { return user.Post("/organizations", `{"name": "more"}`) })
	wantCounts(t, got, map[int]int{201: 4, 422: 16})
	user.Post("/organizations", `{"name": "more"}`).Want(422).Code("quota_exceeded")
	administrator.Delete("/admin/settings/organizations_per_user").Want(200)
	user.Post("/organizations", `{"name": "more"}`).Want(201)
}

func TestListOrganizations(t *testing.T) {
	t.Parallel()

	a := apitest.Empty(t)
	administrator, user, other := a.SignUp("first"), a.SignUp("user"), a.SignUp("other")
	user.Create("/organizations", `{"name": "A"}`)
	other.Create("/organizations", `{"name": "B"}`)
	addMember(a, other.Organization, user, 5)

	r := user.Get("/organizations?sort=name&limit=2").Want(200).Content("0.name", "A").Content("0.roleId", 2)
	if got := r.Metadata("total"); fmt.Sprint(got) != "3" {
		t.Errorf("a member of three organizations: got %v", got)
	}

	user.Get("/organizations?scope=all").Want(200).Content("2.roleId", 2)

	if got := values(user.Get("/organizations?scope=all").Want(200), "uuid"); len(got) != 3 {
		t.Errorf("a user: got %v, want only their own", got)
	}
	if got := values(administrator.Get("/organizations?scope=all").Want(200), "uuid"); len(got) != 5 {
		t.Errorf("got %d of all, want 5", len(got))
	}
	if got := values(administrator.Get("/organizations").Want(200), "uuid"); len(got) != 1 {
		t.Errorf("got %d of the administrator's own, want 1", len(got))
	}

	user.Get("/organizations?scope=theirs").Want(400)
	user.Get("/organizations?limit=0").Want(400)
	user.Get("/organizations/" + other.Organization + "/members?sort=password").Want(400)
	user.Get("/organizations/"+other.Organization+"/members?sort=roleId").Want(200).Content("0.userUuid", other.User).
		Content("1.roleId", 5)
}

func TestUpdateOrganization(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	path := "/organizations/" + a.Organization
	a.Put(path, `{"name": " renamed "}`).Want(200).Content("name", "renamed")
	a.Member(3).Put(path, `{"name": "again"}`).Want(200).Content("roleId", 3)
	a.Put(path, `{"name": ""}`).Want(422).Field("name")
	a.Put(path, `{"name": " "}`).Want(422).Field("name")
	a.Put(path, `{}`).Want(422).Field("name")
	a.Put(path, `[]`).Want(400)
	a.Send("PUT", path, `{"name": "late"}`, `If-Match: "old"`).Want(412)
	a.OtherUser().Put(path, `{"name": "mine"}`).Want(404)
	a.Member(4).Put(path, `{"name": "mine"}`).Want(403)
	a.Get(path).Want(200).Content("name", "again")
}

func TestDeleteOrganization(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	own := "/organizations/" + a.Organization
	a.Delete(own).Want(409)
	a.Delete("/projects/" + a.Project).Want(200)
	a.Delete(own).Want(409).Code("own_organization") // the user's own organization stays

	id := a.Create("/organizations", `{"name": "to go"}`)
	path := "/organizations/" + id
	viewer := a.SignUp("viewer")
	addMember(a, id, viewer, 5)

	project := a.Create("/projects", `{"name": "in it", "organization_uuid": "`+id+`"}`)
	a.Delete(path).Want(409).Code("in_use")
	viewer.Delete(path).Want(403)
	a.Delete("/projects/" + project).Want(200)
	a.Delete(path).Want(409).Code("in_use") // the deleted project can be restored
	a.Delete("/projects/" + project + "?purge=true").Want(200)
	a.Send("DELETE", path, "", `If-Match: "old"`).Want(412)
	wantCounts(t, concurrently(20, func(int) *apitest.Reply { return a.Delete(path) }), map[int]int{200: 1, 404: 19})
	viewer.Get(path).Want(404)
	a.Delete("/organizations/nothing").Want(400)
}

// TestDeleteOrganizationDuringCreation checks that a concurrent creation leaves no project
// without an organization.
func TestDeleteOrganizationDuringCreation(t *testing.T) {
	t.Parallel()

	a := apitest.SharedUser(t)
	id := a.Create("/organizations", `{"name": "contested"}`)
	got := concurrently(4, func(i int) *apitest.Reply {
		if i%2 == 0 {
			return a.Delete("/organizations/" + id)
		}
		return a.Post("/projects", fmt.Sprintf(`{"name": "p%d", "organization_uuid": "%s"}`, i, id))
	})

	wantStatuses(t, got, 200, 201, 404, 409, 422)
	remaining := apitest.Value[int](a,
		`select count(*) from platform.projects p where not exists (select from platform.organizations o where o.uuid = p.organization_uuid)`)
	if remaining != 0 {
		t.Errorf("got %d projects without an organization", remaining)
	}
}
