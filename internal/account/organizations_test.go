package account

import (
	"testing"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/platform"
)

func TestRole(t *testing.T) {
	t.Parallel()

	for _, test := range []struct {
		role, minimum Role
		want          bool
	}{
		{Administrator, Owner, true}, {Owner, Owner, true}, {Admin, Owner, false},
		{Viewer, Developer, false}, {0, Viewer, false},
	} {
		if got := test.role.AtLeast(test.minimum); got != test.want {
			t.Errorf("%s at least %s: got %t, want %t", test.role, test.minimum, got, test.want)
		}
	}

	want(t, Viewer.Require(Developer), fault.Forbidden, "forbidden")
	want(t, Admin.Require(Developer), 0, "")
}

// TestCallers checks a caller's role in the scope of a request: that of their membership, or an
// administrator's, or none.
func TestCallers(t *testing.T) {
	t.Parallel()

	i := newInstall(t)
	ada, bob := i.user("ada"), i.user("bob")
	root, err := i.Service.CreateAdministrator(t.Context(), "root", "root@example.com", secret)
	if err != nil {
		t.Fatal(err)
	}

	i.exec(`update platform.users set password_hash = $1`, cheapHash())
	i.join(ada.OrganizationUUID, bob, Developer)
	project := i.project(ada.OrganizationUUID, "p")
	stranger := i.user("eve")
	for _, test := range []struct {
		user User
		want Role
	}{{ada, Owner}, {bob, Developer}, {root, Administrator}, {stranger, 0}} {
		in := i.login(test.user)
		c := i.in(in, Scope{Project: someUUID(project)})
		if c.Role != test.want || c.Project.Valid != (test.want != 0) {
			t.Errorf("%s: got role %s in project %v, want %s", test.user.Username, c.Role, c.Project, test.want)
		}

		c = i.in(in, Scope{Organization: someUUID(ada.OrganizationUUID)})
		if c.Role != test.want || c.Organization.Valid != (test.want != 0) {
			t.Errorf("%s: got role %s in organization %v, want %s",
				test.user.Username, c.Role, c.Organization, test.want)
		}

		signer, err := i.AuthenticateSigner(t.Context(), test.user.UUID, project)
		if test.want == 0 {
			want(t, err, fault.Unauthenticated, "invalid_signature")
		} else if err != nil || signer.Role != test.want {
			t.Errorf("%s as signer: got role %s, %v, want %s", test.user.Username, signer.Role, err, test.want)
		}
	}
}

// TestUpdateMember checks that members assign and change roles up to their own, that an
// organization keeps an owner, and that a demotion voids invitations above the new role.
func TestUpdateMember(t *testing.T) {
	t.Parallel()

	i := newInstall(t)
	ada, bob, eve := i.user("ada"), i.user("bob"), i.user("eve")
	home := ada.OrganizationUUID
	i.join(home, bob, Admin)
	i.join(home, eve, Viewer)
	update := func(by, of User, role Role) error {
		_, err := i.UpdateMember(t.Context(), home, actor(by), of.UUID, role)
		return err
	}

	want(t, update(eve, eve, Admin), fault.Forbidden, "forbidden")
	want(t, update(bob, eve, Owner), fault.Forbidden, "forbidden")
	want(t, update(bob, ada, Viewer), fault.Forbidden, "forbidden")
	want(t, update(bob, User{UUID: uuid.New()}, Viewer), fault.NotFound, "not_found")
	want(t, update(i.user("stranger"), eve, Viewer), fault.NotFound, "not_found")
	want(t, update(ada, ada, Admin), fault.Conflict, "last_owner")
	want(t, update(bob, eve, Admin), 0, "")

	// A token's ceiling caps the role of its user.
	limited := actor(ada)
	limited.Ceiling = Developer
	_, err := i.UpdateMember(t.Context(), home, limited, eve.UUID, Viewer)
	want(t, err, fault.Forbidden, "forbidden")

	if _, err := i.CreateInvitation(t.Context(), actor(bob), at("home"), home, "new@example.com", Admin); err != nil {
		t.Fatal(err)
	}

	want(t, update(ada, bob, Developer), 0, "")
	if _, total, err := i.ListInvitations(t.Context(), home,
		pg.Page{Number: 1, Limit: 10, Sort: "email"}); err != nil || total != 0 {
		t.Errorf("got %d invitations, %v, want none after the demotion", total, err)
	}
}

// TestTransferOrganization checks that the owner becomes an admin, and may then leave: every user
// keeps an organization of their own.
func TestTransferOrganization(t *testing.T) {
	t.Parallel()

	i := newInstall(t)
	ada, bob := i.user("ada"), i.user("bob")
	home := ada.OrganizationUUID
	_, err := i.TransferOrganization(t.Context(), home, actor(ada), bob.UUID)
	want(t, err, fault.Unprocessable, "not_found")
	_, err = i.LeaveOrganization(t.Context(), home, actor(ada))
	want(t, err, fault.Conflict, "last_owner")
	_, err = i.LeaveOrganization(t.Context(), home, actor(bob))
	want(t, err, fault.NotFound, "not_found")

	i.join(home, bob, Viewer)
	m, err := i.TransferOrganization(t.Context(), home, actor(ada), bob.UUID)
	if err != nil || m.RoleID != Owner {
		t.Errorf("got role %s, %v, want %s", m.RoleID, err, Owner)
	}
	if m, err := i.GetMember(t.Context(), home, ada.UUID); err != nil || m.RoleID != Admin {
		t.Errorf("former owner: got role %s, %v, want %s", m.RoleID, err, Admin)
	}

	_, err = i.DeleteMember(t.Context(), home, actor(ada), bob.UUID)
	want(t, err, fault.Forbidden, "forbidden")
	_, err = i.LeaveOrganization(t.Context(), home, actor(ada))
	want(t, err, 0, "")

	after, err := i.GetUser(t.Context(), ada.UUID)
	if err != nil || after.OrganizationUUID == home || after.RoleID != Owner {
		t.Errorf("got organization %s with role %s, %v, want a new one", after.OrganizationUUID, after.RoleID, err)
	}
}

// TestOrganizations checks the limit of organizations, names, and what keeps one from being
// deleted.
func TestOrganizations(t *testing.T) {
	t.Parallel()

	i := newInstall(t)
	ada, bob := i.user("ada"), i.user("bob")
	i.exec(`insert into platform.settings (name, value, updated_by) values ('organizations_per_user', '2', gen_random_uuid())`)
	_, err := i.CreateOrganization(t.Context(), ada.UUID, "  ")
	want(t, err, fault.Unprocessable, "invalid_length")
	second, err := i.CreateOrganization(t.Context(), ada.UUID, " second ")
	if err != nil || second.Name != "second" || second.RoleID != Owner {
		t.Fatalf("got %v, %v, want second, owned", second, err)
	}
	_, err = i.CreateOrganization(t.Context(), ada.UUID, "third")
	want(t, err, fault.Unprocessable, "quota_exceeded")

	_, err = i.GetOrganization(t.Context(), second.UUID, bob.UUID)
	want(t, err, fault.NotFound, "not_found")
	_, err = i.RenameOrganization(t.Context(), second.UUID, actor(bob), "mine")
	want(t, err, fault.NotFound, "not_found")
	i.join(second.UUID, bob, Developer)
	_, err = i.RenameOrganization(t.Context(), second.UUID, actor(bob), "mine")
	want(t, err, fault.Forbidden, "forbidden")

	_, err = i.DeleteOrganization(t.Context(), ada.OrganizationUUID, actor(ada))
	want(t, err, fault.Conflict, "own_organization")
	project := i.project(second.UUID, "p")
	_, err = i.DeleteOrganization(t.Context(), second.UUID, actor(ada))
	want(t, err, fault.Conflict, "in_use")
	i.exec(`delete from platform.projects where uuid = $1`, project)
	_, err = i.DeleteOrganization(t.Context(), second.UUID, actor(ada))
	want(t, err, 0, "")
}

// TestOrganizationForProject checks who may create a project where.
func TestOrganizationForProject(t *testing.T) {
	t.Parallel()

	i := newInstall(t)
	ada, bob := i.user("ada"), i.user("bob")
	i.join(ada.OrganizationUUID, bob, Developer)
	limited := actor(ada)
	limited.Projects = []uuid.UUID{uuid.New()}
	unknown := uuid.New()
	for name, test := range map[string]struct {
		actor Caller
		named *uuid.UUID
		kind  fault.Kind
		code  string
	}{
		"own":              {actor(ada), nil, 0, ""},
		"named":            {actor(ada), &ada.OrganizationUUID, 0, ""},
		"developer":        {actor(bob), &ada.OrganizationUUID, fault.Forbidden, "forbidden"},
		"other's":          {actor(ada), &bob.OrganizationUUID, fault.Unprocessable, "not_found"},
		"unknown":          {actor(ada), &unknown, fault.Unprocessable, "not_found"},
		"limited to some":  {limited, nil, fault.Forbidden, "token_not_allowed"},
		"token of viewers": {Caller{User: ada.UUID, Ceiling: Viewer}, nil, fault.Forbidden, "forbidden"},
	} {
		got, err := i.OrganizationForProject(t.Context(), test.actor, test.named)
		want(t, err, test.kind, test.code)
		if err == nil && got != ada.OrganizationUUID {
			t.Errorf("%s: got %s, want %s", name, got, ada.OrganizationUUID)
		}
	}
}

// TestAccountOf checks that promotion makes no owner accountable. Founding an organization, joining
// as an owner and creating a project as one do.
func TestAccountOf(t *testing.T) {
	t.Parallel()

	i := newInstall(t)
	ada, bob, eve := i.user("ada"), i.user("bob"), i.user("eve")
	organization := ada.OrganizationUUID
	i.join(organization, bob, Viewer)
	i.join(organization, eve, Owner)

	check := func(step string, want uuid.UUID) {
		t.Helper()

		got, err := pg.Value[uuid.UUID](t.Context(), i.q, `select platform.account_of($1)`, organization)
		if err != nil || got != want {
			t.Errorf("%s: got account %v, %v, want %v", step, got, err, want)
		}
	}
	setRole := func(actor, user User, role Role) {
		t.Helper()

		caller := i.caller(i.login(actor))
		if _, err := i.UpdateMember(t.Context(), organization, caller, user.UUID, role); err != nil {
			t.Fatal(err)
		}
	}

	check("founded", ada.UUID)
	setRole(ada, bob, Owner)
	setRole(ada, ada, Admin)
	check("the founder is no owner any more", eve.UUID)

	setRole(eve, eve, Developer)
	check("the only owner was promoted", organization)

	setRole(bob, bob, Owner)
	check("the promoted owner keeps the role", organization)

	if _, err := i.Store.CreateProject(t.Context(), bob.UUID,
		platform.NewProject{Name: "p", Organization: organization}); err != nil {
		t.Fatal(err)
	}
	check("the promoted owner creates a project", bob.UUID)

	setRole(bob, eve, Owner)
	setRole(bob, bob, Viewer)
	check("the next owner was promoted again", organization)
}
