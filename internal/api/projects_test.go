package api_test

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/socle-dev/socle/internal/api/apitest"
)

func TestCreateProject(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	r := a.Post("/projects",
		`{"name": " Shop ", "description": "Sells things", "status": "deleting", "uuid": "`+apitest.MissingUUID+
			`"}`).Want(201).
		Content("name", "Shop").Content("description", "Sells things").Content("status", "active").
		Content("organizationUuid", a.Organization).
		Content("createdBy", a.User).Content("updatedBy", a.User)

	p := a.WithProject(r.Get("uuid").(string))
	p.CreateTable("orders") // the database exists
	wantEqual(t, p.Get("/projects/"+p.Project), a.Get("/projects/"+p.Project))
	p.Get("/projects/"+p.Project).Want(200).Content("name", "Shop")

	a.Post("/projects", `{"name": "Other", "organization_uuid": "`+a.Organization+`"}`).Want(201).
		Content("description", "")

	admin, developer := a.Member(3), a.Member(4)
	admin.Post("/projects", `{"name": "Of the admin", "organization_uuid": "`+a.Organization+`"}`).Want(201).
		Content("organizationUuid", a.Organization)

	developer.Post("/projects", `{"name": "Theirs", "organization_uuid": "`+a.Organization+`"}`).Want(403).
		Code("forbidden")

	developer.Post("/projects", `{"name": "shop"}`).Want(201) // in the caller's own organization
}

func TestCreateProjectRefuses(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	a.Post("/projects", `{"name": "Shop"}`).Want(201)
	outsider := a.OtherUser()
	for body, fields := range map[string]string{
		`{}`:                              "name",
		`{"name": ""}`:                    "name",
		`{"name": "   "}`:                 "name",
		`{"name": 7}`:                     "name",
		`{"name": "a\u0000"}`:             "name",
		`{"name": "a", "description": 7}`: "description",
		`{"name": "a", "organization_uuid": "x"}`:                             "organization_uuid",
		`{"name": "a", "organization_uuid": "` + apitest.MissingUUID + `"}`:   "organization_uuid",
		`{"name": "a", "organization_uuid": "` + outsider.Organization + `"}`: "organization_uuid",
		`{"name": "` + strings.Repeat("é", 101) + `"}`:                        "name",
		`{"name": "a", "description": "` + strings.Repeat("é", 501) + `"}`:    "description",
	} {
		a.Post("/projects", body).Want(422).Field(fields)
	}

	wantEqual(t, a.Post("/projects", `{"name": "a", "organization_uuid": "`+outsider.Organization+`"}`),
		a.Post("/projects", `{"name": "a", "organization_uuid": "`+apitest.MissingUUID+`"}`))

	a.Post("/projects", `{"name": "sHOP"}`).Want(409).Code("already_exists").Field("name")
	a.Post("/projects", `{`).Want(400).Code("malformed_json")
	a.Anonymous().Post("/projects", `{`).Want(401)
	a.Get("/projects/garbage").Want(400).Field("projectUUID")
	a.Anonymous().Get("/projects/garbage").Want(401)

	if got := values(a.Get("/projects").Want(200), "name"); len(got) != 2 {
		t.Errorf("got projects %q, want the first two", got)
	}
}

func TestProjectNamesConcurrently(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	wantCounts(t, concurrently(5, func(int) *apitest.Reply { return a.Post("/projects", `{"name": "Same"}`) }),
		map[int]int{201: 1, 409: 4})
}

func TestListProjects(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	a.Post("/projects", `{"name": "Zoo"}`).Want(201)
	a.Post("/projects", `{"name": "Art"}`).Want(201)
	outsider := a.OtherUser()

	if got, want := values(a.Get("/projects?sort=name").Want(200), "name"), []string{
		"Art", "Zoo",
	}; !slices.Equal(got[:1], want[:1]) || !slices.Contains(got, "Zoo") {
		t.Errorf("got %q", got)
	}
	if got := values(outsider.Get("/projects").Want(200), "uuid"); len(got) != 1 || got[0] == a.Project {
		t.Errorf("another user: got %q", got)
	}
	if got := values(a.Member(5).Get("/projects").Want(200), "uuid"); !slices.Contains(got, a.Project) {
		t.Errorf("a viewer: got %q", got)
	}

	wantPages(t, a, "/projects", "createdAt", []string{"name", "createdAt", "updatedAt"}, 3)
	a.Anonymous().Get("/projects?page=0").Want(401)
}

func TestPurgeProject(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	f := populate(t, a)
	admin := a.Member(3)
	admin.Delete("/projects/" + a.Project).Want(403).Code("forbidden")
	a.Delete("/projects/garbage").Want(400).Field("projectUUID")
	a.Anonymous().Delete("/projects/" + a.Project).Want(401)
	a.Delete("/projects/" + apitest.MissingUUID).Want(404)

	a.Delete("/projects/" + a.Project + "?purge=yes").Want(400).Field("purge")

	a.Delete("/projects/"+a.Project+"?purge=true").Want(200).Content("uuid", a.Project).Content("status", "deleting")
	a.Get("/projects/" + a.Project).Want(404)
	a.Delete("/projects/" + a.Project + "?purge=true").Want(404)
	a.Post("/projects/"+a.Project+"/restore", "").Want(404)
	a.Get("/tables").Want(401).Code("unknown_project")
	a.Put("/forms/"+f.form+"/fields/"+f.field, `{"label": "x", "type": "text"}`).Want(400).Code("not_found")
	wantGone(t, a)
}

// wantGone fails the test unless nothing is left of the project.
func wantGone(t *testing.T, a *apitest.API) {
	t.Helper()

	name := a.DatabaseName()
	until(t, "the project's database and roles are removed", func() bool {
		return apitest.Value[int](a, `select (select count(*) from pg_database where datname = $1) +
			(select count(*) from pg_roles where rolname like $1 || '%') + (select count(*) from platform.projects where uuid = $2::uuid) +
			(select count(*) from platform.backups where project_uuid = $2::uuid) + (select count(*) from platform.forms where project_uuid = $2::uuid)`,
			name, a.Project) == 0
	})

	for _, remaining := range blobs(t, a) {
		if strings.Contains(remaining, a.Project) {
			t.Errorf("the removed project has left %s", remaining)
		}
	}
}

// TestPurgeBusyProject checks that a purge leaves nothing, in spite of running work in the
// project.
func TestPurgeBusyProject(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	a.CreateTable("orders")
	c := a.Create("/containers", `{"name": "reports"}`)
	content, body := io.Pipe()
	arriving := make(chan int)

	go func() {
		arriving <- a.Do(
			a.Request("POST", "/containers/"+c+"/files", content,
				"Content-Type: multipart/form-data; boundary="+boundary),
		).Status
	}()

	fmt.Fprint(body, namePart("big.bin"), strings.TrimSuffix(filePart("", strings.Repeat("x", 1<<20)), "\r\n"))
	until(t, "the upload is running", func() bool {
		return query[int](t, a, "select count(*) from storage.uploads") == 1
	})

	var deletes [2]int
	concurrently(6, func(i int) *apitest.Reply {
		switch i {
		case 0, 1:
			r := a.Delete("/projects/" + a.Project + "?purge=true")
			deletes[i] = r.Status

			return r
		case 2:
			return a.Post("/backups", `{}`)
		}

		return a.Put("/tables/orders/rename", `{"name": "sales"}`)
	})

	if deletes != [2]int{200, 404} && deletes != [2]int{404, 200} {
		t.Errorf("two concurrent requests: got statuses %v, want 200 and 404", deletes)
	}

	a.Get("/projects/" + a.Project).Want(404)
	fmt.Fprint(body, "\r\n", end)
	body.Close()

	if status := <-arriving; status < 400 {
		t.Errorf("the upload to a deleted project ended with %d", status)
	}

	wantGone(t, a)
}
