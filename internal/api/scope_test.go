package api_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/socle-dev/socle/internal/api/apitest"
)

// TestProjectHeader covers valid and invalid values of X-Project, for each operation that takes it.
func TestProjectHeader(t *testing.T) {
	t.Parallel()

	f := populate(t, apitest.Shared(t))
	before := databaseState(t, f.API)
	for _, c := range f.calls() {
		for name, value := range map[string]string{
			"empty": "", "garbage": "garbage", "SQL": "' or 1=1 --", "braces": "{" + f.Project + "}",
			"no hyphens": strings.ReplaceAll(f.Project, "-", ""), "list": f.Project + "," + f.Project,
			"long": strings.Repeat("a", 10_000),
		} {
			r := c.send(f.WithProject(""), "X-Project: "+value)
			if r.Status != 400 {
				t.Errorf("%s with %s as X-Project: got %d, want 400", c.id, name, r.Status)
				continue
			}

			r.Field("X-Project")
		}

		c.send(f.WithProject("")).Want(400).Code("invalid_value").Field("X-Project")
		twice := f.Request(c.method, c.path, strings.NewReader(c.body),
			"Content-Type: multipart/form-data; boundary="+boundary)

		twice.Header.Add("X-Project", f.Project)
		f.Do(twice).Want(400).Field("X-Project")
		c.send(f.WithProject(apitest.MissingUUID)).Want(401).Code("unknown_project").Field("X-Project")
	}

	if after := databaseState(t, f.API); after != before {
		t.Errorf("a refused request changed\n%s\ninto\n%s", before, after)
	}
}

// TestOtherTenant checks that every operation treats another tenant's project as missing.
func TestOtherTenant(t *testing.T) {
	t.Parallel()

	f := populate(t, apitest.Shared(t))
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

	if after := databaseState(t, f.API); after != before {
		t.Errorf("another user changed\n%s\ninto\n%s", before, after)
	}
}

// TestEntitiesOfOtherProject checks that entities of another project are treated as missing, even
// if it has the same owner.
func TestEntitiesOfOtherProject(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	b := populate(t, a.WithProject(a.CreateProject("other")))
	populate(t, a) // with a table orders and IDs of its own
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

	if after := databaseState(t, b.API); after != before {
		t.Errorf("another project changed\n%s\ninto\n%s", before, after)
	}
}

// TestMixedParents checks that an entity is found only below its own parent.
func TestMixedParents(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	f := populate(t, a)
	form, container := a.Create("/forms", `{"name": "Other"}`), a.Create("/containers", `{"name": "other"}`)
	b := populate(t, a.WithProject(a.CreateProject("other")))
	before := databaseState(t, a)

	a.Put("/forms/"+form+"/fields/"+f.field, `{"label": "Mine", "type": "text"}`).Want(400).Code("not_found")
	a.Put("/forms/"+f.form+"/fields/"+b.field, `{"label": "Mine", "type": "text"}`).Want(400).Code("not_found")
	a.Get("/containers/" + container + "/files/" + f.file + "/download").Want(404)
	a.Get("/containers/" + f.container + "/files/" + b.file + "/download").Want(404)
	a.Put("/tables/orders/rename", `{"name": "mine", "projectUUID": "`+b.Project+`"}`).Want(422).Field("projectUUID")

	if after := databaseState(t, a); after != before {
		t.Errorf("a refused request changed\n%s\ninto\n%s", before, after)
	}
}

// TestProjectInBody checks that a body can repeat the project, and not name another one.
func TestProjectInBody(t *testing.T) {
	t.Parallel()

	f := populate(t, apitest.Shared(t))
	other := f.CreateProject("other")
	for _, c := range slices.Concat(f.calls(), f.formCalls(), f.visitorCalls()) {
		if !strings.HasPrefix(c.body, "{") {
			continue
		}

		with := func(id string) *apitest.Reply {
			c := c
			c.body = strings.TrimSuffix(`{"projectUUID": `+id+", "+strings.TrimSpace(c.body[1:]), ", }")
			c.body = strings.TrimSuffix(c.body, "}") + "}"

			return c.send(f.API)
		}

		for _, id := range []string{quoted(other), quoted(apitest.MissingUUID), `"garbage"`, `""`, "7", "null", "[]"} {
			if r := with(id); r.Status != 422 {
				t.Errorf("%s with projectUUID %s: got %d, want 422\n%s", c.id, id, r.Status, r.Body)
			} else {
				r.Field("projectUUID")
			}
		}

		if r := with(quoted(strings.ToUpper(f.Project))); r.Status > 201 {
			t.Errorf("%s with its own projectUUID: got %d\n%s", c.id, r.Status, r.Body)
		}
	}
}

// TestMinimumRole checks that a viewer can read, and a developer write.
func TestMinimumRole(t *testing.T) {
	t.Parallel()

	f := populate(t, apitest.Shared(t))
	viewer, developer := f.Member(5), f.Member(4)
	before := databaseState(t, f.API)
	specified := []string{"createColumn", "renameTable", "updateField", "updateContainer", "deleteFunction"}
	calls := append(f.calls(), f.formCalls()...)
	for _, c := range calls {
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

	if after := databaseState(t, f.API); after != before {
		t.Errorf("a viewer changed\n%s\ninto\n%s", before, after)
	}

	for _, c := range calls {
		if r := c.send(developer); r.Status > 201 {
			t.Errorf("%s by a developer: got %d\n%s", c.id, r.Status, r.Body)
		}
	}
}
