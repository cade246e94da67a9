package operation

import (
	"context"
	"testing"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/account"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/platform"
)

func TestProjectAccess(t *testing.T) {
	t.Parallel()

	f := newFixture(t)
	f.declare("GET", "/header", Project(account.Developer))
	f.declare("GET", "/path/{projectUUID}", ProjectInPath(account.Developer))
	f.declare("GET", "/form/{formUUID}", ProjectOfForm(account.Developer))
	f.declare("GET", "/paused/{projectUUID}", ProjectInPath(account.Developer).OrPaused())
	f.declare("GET", "/deleted/{projectUUID}", ProjectInPath(account.Developer).OrDeleted())

	header, id := "X-Project: "+projectUUID.String(), projectUUID.String()
	paths := []string{"/path/" + id, "/form/" + id, "/paused/" + id, "/deleted/" + id}

	f.as(account.Developer)
	f.send("GET", "/header", "", header).want(200, "")
	for _, path := range paths {
		f.send("GET", path, "").want(200, "")
		f.send("GET", path, "", "Authorization: ").want(401, "invalid_token")
		f.send("GET", path, "", "Authorization: Bearer expired").want(401, "invalid_token")
	}

	f.as(account.Viewer)
	f.send("GET", "/header", "", header).want(403, "forbidden")
	f.send("GET", paths[0], "").want(403, "forbidden")

	f.caller.Project.Valid = false
	f.send("GET", "/header", "", header).want(401, "unknown_project").field("X-Project", "unknown_project")
	f.send("GET", paths[0], "").want(404, "not_found")
	f.send("GET", paths[1], "").want(404, "not_found")

	f.as(account.Developer)
	f.caller.Status = platform.Paused
	f.send("GET", paths[0], "").want(409, "project_paused")
	f.send("GET", paths[2], "").want(200, "")
	f.send("GET", paths[3], "").want(409, "project_paused")

	f.caller.Status = platform.Deleted
	f.send("GET", paths[0], "").want(404, "not_found")
	f.send("GET", paths[2], "").want(404, "not_found")
	f.send("GET", paths[3], "").want(200, "")
}

// TestScope checks that each access looks up the role in the target that the request names.
func TestScope(t *testing.T) {
	t.Parallel()

	f := newFixture(t)
	f.as(account.Owner)
	f.caller.Organization = f.caller.Project
	f.declare("GET", "/header", Project(account.Viewer))
	f.declare("GET", "/path/{projectUUID}", ProjectInPath(account.Viewer))
	f.declare("GET", "/form/{formUUID}", ProjectOfForm(account.Viewer))
	f.declare("GET", "/public/{projectUUID}", PublicProject(account.Viewer))
	f.outside("/organization/{organizationUUID}", OrganizationInPath(account.Viewer))
	f.outside("/me", SignedIn)

	id, given := projectUUID.String(), uuid.NullUUID{UUID: projectUUID, Valid: true}
	for path, want := range map[string]account.Scope{
		"/header":              {Project: given},
		"/path/" + id:          {Project: given},
		"/path/x":              {},
		"/form/" + id:          {Form: given},
		"/public/" + id:        {Project: given},
		"/organization/" + id:  {Organization: given},
		"/organization/a" + id: {},
		"/me":                  {},
	} {
		f.send("GET", path, "", "X-Project: "+id)
		if f.scope != want {
			t.Errorf("%s: got scope %+v, want %+v", path, f.scope, want)
		}
	}
}

// outside registers an operation outside of projects.
func (f *fixture) outside(path string, access Access) {
	Handle(f.Pipeline, Operation{ID: "get", Method: "GET", Path: path, Access: access, Errors: allErrors},
		func(ctx context.Context, _ *noInput) (uuid.UUID, error) { return Caller(ctx).User, nil }, nil)
}

func TestAccessOutsideProjects(t *testing.T) {
	t.Parallel()

	f := newFixture(t)
	f.outside("/anonymous", Anonymous)
	f.outside("/optional", OptionalUser)
	f.outside("/signed-in", SignedIn)
	f.outside("/or-token", SignedInOrToken)
	f.outside("/administrator", Administrator)
	f.outside("/organizations/{organizationUUID}", OrganizationInPath(account.Admin))

	organization := "/organizations/" + projectUUID.String()
	session := account.Caller{User: userUUID}
	token := account.Caller{User: userUUID, ByToken: true}
	limited := account.Caller{User: userUUID, ByToken: true, Projects: []uuid.UUID{projectUUID}}
	administrator := account.Caller{User: userUUID, Administrator: true}
	admin := account.Caller{User: userUUID, Role: account.Admin,
		Organization: uuid.NullUUID{UUID: projectUUID, Valid: true}}
	viewer := admin
	viewer.Role = account.Viewer

	for _, tt := range []struct {
		path   string
		caller account.Caller
		status int
		code   string
	}{
		{"/anonymous", limited, 200, ""},
		{"/optional", limited, 200, ""},
		{"/signed-in", session, 200, ""},
		{"/signed-in", token, 403, "token_not_allowed"},
		{"/or-token", limited, 200, ""},
		{"/administrator", session, 403, "forbidden"},
		{"/administrator", administrator, 200, ""},
		{"/administrator", limited, 403, "token_not_allowed"},
		{organization, admin, 200, ""},
		{organization, viewer, 403, "forbidden"},
		{organization, session, 404, "not_found"},
		{organization, limited, 403, "token_not_allowed"},
	} {
		f.caller = tt.caller
		f.send("GET", tt.path, "").want(tt.status, tt.code)
	}

	f.caller = session
	if got := f.send("GET", "/anonymous", "").Content; got != uuid.Nil.String() {
		t.Errorf("an anonymous operation knows the caller %v", got)
	}
	for headers, want := range map[string]string{
		"Authorization: ": uuid.Nil.String(), "Authorization: Bearer expired": uuid.Nil.String(),
		"Authorization: Bearer valid": userUUID.String(),
	} {
		if got := f.send("GET", "/optional", "", headers).want(200, "").Content; got != want {
			t.Errorf("%s: got caller %v, want %s", headers, got, want)
		}
	}
}

func TestPublicAccess(t *testing.T) {
	t.Parallel()

	f := newFixture(t)
	f.declare("GET", "/projects/{projectUUID}", PublicProject(account.Viewer))
	f.declare("GET", "/forms/{formUUID}", PublicForm)
	f.declare("GET", "/signed/{projectUUID}", ProjectInPath(account.Viewer).OrSigned())

	path := "/projects/" + projectUUID.String()
	f.send("GET", path, "", "Authorization: ").want(200, "")
	f.send("GET", path, "", "Authorization: Bearer expired").want(401, "invalid_token")
	f.send("GET", "/projects/"+userUUID.String(), "", "Authorization: ").want(404, "not_found")

	f.store.statuses[projectUUID] = platform.Paused
	f.send("GET", path, "", "Authorization: ").want(404, "not_found") // its state is no one's business

	f.as(account.Viewer)
	f.caller.Status = platform.Paused
	f.send("GET", path, "").want(409, "project_paused")

	form := "/forms/" + projectUUID.String()
	f.send("GET", form, "", "Authorization: ").want(401, "invalid_token")
	f.respondent = true
	a := f.send("GET", form, "", "Authorization: ").want(200, "")
	if got := a.Header().Get("Access-Control-Allow-Origin"); got != "*" {
		t.Errorf("got Access-Control-Allow-Origin %q", got)
	}

	f.as(account.Viewer)
	f.send("GET", "/signed/"+projectUUID.String()+"?signature=x", "", "Authorization: ").want(200, "")
	f.send("GET", "/signed/"+projectUUID.String(), "", "Authorization: ").want(401, "invalid_token")
}

// TestExplainInternal checks that the failure of a request in a project that was paused or deleted
// meanwhile says so.
func TestExplainInternal(t *testing.T) {
	t.Parallel()

	f := newFixture(t)
	internal, ctx := fault.New(fault.Unavailable, "connection refused"), t.Context()
	member := context.WithValue(ctx, callerKey{}, account.Caller{Role: account.Viewer})
	inPath, public := ProjectInPath(account.Viewer), PublicProject(account.Viewer)

	for _, tt := range []struct {
		name   string
		access Access
		status string
		ctx    context.Context
		want   string
	}{
		{"active", inPath, platform.Active, member, "unavailable"},
		{"paused", inPath, platform.Paused, member, "project_paused"},
		{"paused accepted", inPath.OrPaused(), platform.Paused, member, "unavailable"},
		{"deleted", inPath, platform.Deleted, member, "not_found"},
		{"deleted accepted", inPath.OrDeleted(), platform.Deleted, member, "unavailable"},
		{"public, member", public, platform.Paused, member, "project_paused"},
		{"public, anonymous", public, platform.Paused, ctx, "not_found"},
	} {
		f.store.statuses[projectUUID] = tt.status
		explained := tt.access.explainInternal(tt.ctx, f.Pipeline, projectUUID, internal)
		if got := fault.Of(explained).CodeWord(); got != tt.want {
			t.Errorf("%s: got %s, want %s", tt.name, got, tt.want)
		}
	}

	invalid := fault.New(fault.Invalid, "no")
	if got := inPath.explainInternal(ctx, f.Pipeline, projectUUID, invalid); got != error(invalid) {
		t.Errorf("got %v, want another failure unchanged", got)
	}
}
