package api_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/socle-dev/socle/internal/api/apitest"
)

// TestScope sends the operations of a project with other projects, parents and callers. The cases
// share two populated projects of one owner. Only the last two change them.
func TestScope(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	other := populate(t, a.WithProject(a.CreateProject("other")))
	f := populate(t, a) // with a table orders and IDs of its own

	for _, tt := range []struct {
		name string
		run  func(t *testing.T, f, other fixture)
	}{
		{"X-Project", invalidProjectHeaders},
		{"another tenant", otherTenant},
		{"entities of another project", entitiesOfOtherProject},
		{"mixed parents", mixedParents},
		{"a viewer", callsOfViewer},
		{"another project in the body", otherProjectInBody},
		{"a developer", callsOfDeveloper},
		{"the same project in the body", sameProjectInBody},
	} {
		t.Run(tt.name, func(t *testing.T) { tt.run(t, f.withT(t), other.withT(t)) })
	}
}

// withT returns the fixture for a subtest.
func (f fixture) withT(t *testing.T) fixture {
	f.API, f.t = f.WithT(t), t

	return f
}

// wantUnchanged fails the test unless the database of the project is as before.
func wantUnchanged(t *testing.T, a *apitest.API, before string) {
	t.Helper()

	if after := databaseState(t, a); after != before {
		t.Errorf("a refused request changed\n%s\ninto\n%s", before, after)
	}
}

// rotation returns the next items of a list in turn. Operations that share one rule each check some
// of its cases, and together all.
func rotation[T any](all []T) func(n int) []T {
	next := 0
	return func(n int) []T {
		var turn []T
		for range n {
			turn = append(turn, all[next%len(all)])
			next++
		}

		return turn
	}
}

// invalidProjectHeaders covers invalid values of X-Project, for each operation that takes it.
func invalidProjectHeaders(t *testing.T, f, _ fixture) {
	before := databaseState(t, f.API)
	garbage := []string{
		"", "garbage", "' or 1=1 --", "{" + f.Project + "}", strings.ReplaceAll(f.Project, "-", ""),
		f.Project + "," + f.Project, strings.Repeat("a", 10_000),
	}
	invalid := rotation(garbage)

	for i, c := range f.calls() {
		values := invalid(2)
		if i == 0 {
			values = garbage
		}

		for _, value := range values {
			c.send(f.WithProject(""), "X-Project: "+value).Want(400).Field("X-Project")
		}

		c.send(f.WithProject("")).Want(400).Code("invalid_value").Field("X-Project")
		twice := f.Request(c.method, c.path, strings.NewReader(c.body),
			"Content-Type: multipart/form-data; boundary="+boundary)

		twice.Header.Add("X-Project", f.Project)
		f.Do(twice).Want(400).Field("X-Project")
		c.send(f.WithProject(apitest.MissingUUID)).Want(401).Code("unknown_project").Field("X-Project")
	}

	wantUnchanged(t, f.API, before)
}

// otherTenant checks that every operation treats another tenant's project as missing.
func otherTenant(t *testing.T, f, _ fixture) {
	outsider := f.OtherUser()
	before := databaseState(t, f.API)

	for _, c := range f.calls() {
		wantEqual(t, c.send(outsider).Want(401), c.send(f.WithProject(apitest.MissingUUID)))
	}

	for _, c := range f.formCalls() {
		missing := c
		missing.path = strings.ReplaceAll(c.path, f.form, apitest.MissingUUID)
		wantEqual(t, c.send(outsider), missing.send(f.API))
	}

	wantEqual(t, outsider.Get("/projects/"+f.Project).Want(404), f.Get("/projects/"+apitest.MissingUUID))
	wantEqual(t, outsider.Delete("/projects/"+f.Project).Want(404), f.Delete("/projects/"+apitest.MissingUUID))
	wantUnchanged(t, f.API, before)
}

// entitiesOfOtherProject checks that entities of another project are treated as missing, even if it
// has the same owner.
func entitiesOfOtherProject(t *testing.T, a, b fixture) {
	execute(t, b.API, "create table public.secrets ()")

	oid := query[uint32](t, b.API, "select 'public.secrets'::regclass::oid")
	before := databaseState(t, b.API)

	pairs := []struct{ method, path, body string }{
		{"PUT", "/containers/" + b.container, `{"description": "mine"}`},
		{"GET", "/containers/" + b.container + "/files", ""},
		{"GET", "/backups/" + b.backup, ""},
		{"PUT", "/tables/" + b.tableUUID + "/rename", `{"name": "mine"}`},
		{"GET", "/tables/" + b.tableUUID, ""},
		{"GET", "/containers/" + b.container + "/files/" + b.file + "/download", ""},
	}
	for _, p := range pairs {
		missing := p.path
		for _, id := range []string{b.container, b.backup, b.tableUUID, b.file} {
			missing = strings.ReplaceAll(missing, id, apitest.MissingUUID)
		}

		wantEqual(t, a.Send(p.method, p.path, p.body), a.Send(p.method, missing, p.body))
	}

	a.Put("/tables/public.secrets/rename", `{"name": "mine"}`).Want(400).Code("not_found")
	a.Put("/tables/"+decimal(oid)+"/rename", `{"name": "mine"}`).Want(400)
	a.Post("/tables/secrets/columns", `{"name": "mine", "type": "text"}`).Want(400).Code("not_found")
	wantUnchanged(t, b.API, before)
}

// mixedParents checks that an entity is found only below its own parent.
func mixedParents(t *testing.T, f, b fixture) {
	form, container := f.Create("/forms", `{"name": "Other"}`), f.Create("/containers", `{"name": "other"}`)
	before := databaseState(t, f.API)

	f.Put("/forms/"+form+"/fields/"+f.field, `{"label": "Mine", "type": "text"}`).Want(400).Code("not_found")
	f.Put("/forms/"+f.form+"/fields/"+b.field, `{"label": "Mine", "type": "text"}`).Want(400).Code("not_found")
	f.Get("/containers/" + container + "/files/" + f.file + "/download").Want(404)
	f.Get("/containers/" + f.container + "/files/" + b.file + "/download").Want(404)
	f.Put("/tables/orders/rename", `{"name": "mine", "projectUUID": "`+b.Project+`"}`).Want(422).Field("projectUUID")
	wantUnchanged(t, f.API, before)
}

// callsOfViewer checks that a viewer can read, and not write.
func callsOfViewer(t *testing.T, f, _ fixture) {
	viewer := f.Member(5)
	before := databaseState(t, f.API)
	specified := []string{"createColumn", "renameTable", "updateField", "updateContainer", "deleteFunction"}
	for _, c := range append(f.calls(), f.formCalls()...) {
		r := c.send(viewer)
		switch {
		case c.minRole == 5:
			r.Want(200)
		case slices.Contains(specified, c.id):
			r.Want(401).Code("forbidden")
		default:
			r.Want(403).Code("forbidden")
		}
	}

	wantUnchanged(t, f.API, before)
}

// callsOfDeveloper checks that a developer can write.
func callsOfDeveloper(t *testing.T, f, _ fixture) {
	developer := f.Member(4)
	for _, c := range append(f.calls(), f.formCalls()...) {
		if r := c.send(developer); r.Status > 201 {
			t.Errorf("%s by a developer: got %d\n%s", c.id, r.Status, r.Body)
		}
	}
}

// jsonCalls returns the operations with a JSON body.
func (f fixture) jsonCalls() []call {
	return slices.DeleteFunc(slices.Concat(f.calls(), f.formCalls(), f.visitorCalls()), func(c call) bool {
		return !strings.HasPrefix(c.body, "{")
	})
}

// withProject returns the call with a JSON value as projectUUID in its body.
func (c call) withProject(value string) call {
	c.body = strings.TrimSuffix(`{"projectUUID": `+value+", "+strings.TrimSpace(c.body[1:]), ", }")
	c.body = strings.TrimSuffix(c.body, "}") + "}"

	return c
}

// otherProjectInBody checks that a body cannot name another project.
func otherProjectInBody(t *testing.T, f, other fixture) {
	before := databaseState(t, f.API)
	garbage := []string{quoted(apitest.MissingUUID), `"garbage"`, `""`, "7", "null", "[]"}
	invalid := rotation(garbage)

	for i, c := range f.jsonCalls() {
		values := invalid(2)
		if i == 0 {
			values = garbage
		}

		for _, id := range append(values, quoted(other.Project)) {
			if r := c.withProject(id).send(f.API); r.Status != 422 {
				t.Errorf("%s with projectUUID %s: got %d, want 422\n%s", c.id, id, r.Status, r.Body)
			} else {
				r.Field("projectUUID")
			}
		}
	}

	wantUnchanged(t, f.API, before)
}

// sameProjectInBody checks that a body can repeat the project. It uses the project that no call has
// changed yet.
func sameProjectInBody(t *testing.T, _, f fixture) {
	for _, c := range f.jsonCalls() {
		if r := c.withProject(quoted(strings.ToUpper(f.Project))).send(f.API); r.Status > 201 {
			t.Errorf("%s with its own projectUUID: got %d\n%s", c.id, r.Status, r.Body)
		}
	}
}
