package api_test

import (
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/api/apitest"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/projectdb"
)

func TestUpdateProject(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	a.Post("/projects", `{"name": "Taken"}`).Want(201)
	admin, path := a.Member(3), "/projects/"+a.Project
	created := a.Get(path).Want(200)

	r := admin.Put(path, `{"name": " Shop "}`).Want(200).Content("name", "Shop").Content("description", "").
		Content("createdBy", a.User).
		Content("updatedBy", admin.User).Content("createdAt", created.Get("createdAt")).Content("status", "active").
		Content("deletedAt", nil)
	if r.Get("updatedAt").(string) <= created.Get("updatedAt").(string) {
		t.Errorf("updatedAt is unchanged\n%s", r.Body)
	}

	a.Put(path, `{"description": "Sells things", "status": "paused", "organizationUuid": "`+apitest.MissingUUID+
		`", "deletedAt": "2020-01-01T00:00:00Z"}`).
		Want(200).Content("name", "Shop").Content("description", "Sells things").Content("status", "active").
		Content("organizationUuid", a.Organization)

	a.Put(path, `{"name": "SHOP"}`).Want(200).Content("name", "SHOP")

	for body, fields := range map[string]string{
		`{}`:                  "",
		`{"name": ""}`:        "name",
		`{"name": "  "}`:      "name",
		`{"name": 7}`:         "name",
		`{"name": "a\u0000"}`: "name",
		`{"name": "` + strings.Repeat("é", 101) + `"}`:        "name",
		`{"description": "` + strings.Repeat("é", 501) + `"}`: "description",
	} {
		a.Put(path, body).Want(422).Field(strings.Fields(fields)...)
	}

	a.Put(path, `{"name": "tAKEN"}`).Want(409).Code("already_exists").Field("name")
	a.Put(path, `{`).Want(400).Code("malformed_json")
	a.Member(4).Put(path, `{"name": "x"}`).Want(403)
	a.OtherUser().Put(path, `{"name": "x"}`).Want(404)
	a.Anonymous().Put(path, `{"name": "x"}`).Want(401)
	a.Put("/projects/"+apitest.MissingUUID, `{"name": ""}`).Want(404)

	tag := a.Get(path).Want(200).Header.Get("ETag")
	a.Send("PUT", path, `{"name": "Newer"}`, "If-Match: "+tag).Want(200).Content("name", "Newer")
	a.Send("PUT", path, `{"name": "Older"}`, "If-Match: "+tag).Want(412)
	a.Send("DELETE", path, "", "If-Match: "+tag).Want(412)
	a.Post(path+"/pause", "").Want(200)
	a.Send("DELETE", path, "", "If-Match: "+tag).Want(412)
	a.Send("DELETE", path, "", "If-Match: "+a.Get(path).Want(200).Header.Get("ETag")).Want(200).
		Content("status", "deleted")
}

func TestRenameProjectsConcurrently(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	projects := []string{a.Project, a.CreateProject("b"), a.CreateProject("c"), a.CreateProject("d")}
	wantCounts(t, concurrently(4, func(i int) *apitest.Reply {
		return a.Put("/projects/"+projects[i], `{"name": "One"}`)
	}),
		map[int]int{200: 1, 409: 3})
}

func TestListProjectsFiltered(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	for _, name := range []string{"Shop 100%", "shop_floor", "Workshop", "Zoo"} {
		a.Post("/projects", `{"name": `+quoted(name)+`}`).Want(201)
	}

	other := a.SignUp("other")
	other.Post("/projects", `{"name": "Shop of another"}`).Want(201)
	a.Exec(`insert into platform.members (organization_uuid, user_uuid, role) values ($1, $2, 5)`,
		other.Organization, a.User)

	for query, want := range map[string]string{
		"search=SHOP": "Shop 100%,Shop of another,Workshop,shop_floor",
		"search=%25":  "Shop 100%",
		"search=_":    "shop_floor",
		"search=%5C":  "",
		"search=shop&organizationUuid=" + a.Organization: "Shop 100%,Workshop,shop_floor",
		"organizationUuid=" + other.Organization:         "Shop of another",
		"organizationUuid=" + apitest.MissingUUID:        "",
		"search=zoo&status=active":                       "Zoo",
		"search=zoo&status=paused":                       "",
		"search=zoo&status=deleted":                      "",
	} {
		got := values(a.Get("/projects?"+query).Want(200), "name")
		slices.Sort(got)

		if strings.Join(got, ",") != want {
			t.Errorf("%s: got %q, want %q", query, got, want)
		}
	}

	for query, field := range map[string]string{"status=creating": "status",
		"organizationUuid=x": "organizationUuid", "search=%00": "search",
		"search=" + strings.Repeat("a", 101): "search", "status=active&status=paused": "status"} {
		a.Get("/projects?" + query).Want(400).Field(field)
	}
}

// connectAsOwner connects to the project's database as its owner, with the password derived from
// the secret key, and returns the error.
func connectAsOwner(t *testing.T, a *apitest.API) error {
	t.Helper()

	secret, err := a.Config.LoadSecretKey()
	if err != nil {
		t.Fatal(err)
	}

	server, err := pg.PrimaryPoolConfig(string(a.Config.DatabaseURL), 1)
	if err != nil {
		t.Fatal(err)
	}

	r := projectdb.NewRegistry(projectdb.Config{Server: server, Secret: secret, Names: a.Server.Projects().Names,
		Connections: 1, Log: slog.New(slog.DiscardHandler)})

	owner := r.Open(uuid.MustParse(a.Project)).Owner()
	defer owner.Close()

	conn, err := pgx.ConnectConfig(t.Context(), owner.Config().ConnConfig)
	if err != nil {
		return err
	}

	return conn.Close(t.Context())
}

// TestPauseProject checks that a paused project refuses access to its data, and that the data is
// complete after it resumes.
func TestPauseProject(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	f := populate(t, a)
	before, path := databaseState(t, a), "/projects/"+a.Project

	if err := connectAsOwner(t, a); err != nil {
		t.Fatalf("the owner can't connect: %v", err)
	}

	session := a.ConnectProject()
	a.Post(path+"/resume", "").Want(409).Code("not_paused")
	a.Post(path+"/restore", "").Want(409).Code("not_deleted")

	for _, change := range []string{"pause", "resume", "restore"} {
		a.Post("/projects/garbage/"+change, "").Want(400).Field("projectUUID")
	}

	a.Get("/projects/garbage/openapi.json").Want(400).Field("projectUUID")
	a.Member(4).Post(path+"/pause", "").Want(403)

	admin, viewer := a.Member(3), a.Member(5)
	admin.Post(path+"/pause", "").Want(200).Content("status", "paused").Content("updatedBy", admin.User)

	if err := session.Ping(t.Context()); err == nil {
		t.Error("an earlier session is still valid")
	}

	if err := connectAsOwner(t, a); pg.State(err) != "53300" {
		t.Errorf("the owner connects to a paused project: %v", err)
	}

	names, n := parameterNames(f, "orders"), 0
	for _, o := range operations(t, a) {
		n++
		names["n"], names["functionName"] = fmt.Sprint(n), "one"

		open := slices.Contains([]string{"getProject", "deleteProject", "restoreProject", "resumeProject"}, o.id)
		if open || o.project() == "" || rights[o.id].minRole == 1 {
			continue
		}

		o.send(a, names, rights[o.id].body).Want(o.first(409, 422, 400)).Code("project_paused")

		if o.first(404) != 0 && o.first(409) == 0 {
			t.Errorf("%s declares 404 and no 409", o.id)
		}
		if o.id != "readFile" {
			o.send(viewer, names, rights[o.id].body) // the client checks that the response is declared
		}
	}

	a.Anonymous().Get(address(a, f.container, "a.txt")).Want(404) // anonymous callers learn nothing
	a.OtherUser().Get(path).Want(404)
	a.Get(path).Want(200).Content("status", "paused")

	if got := values(a.Get("/projects?status=paused").Want(200), "uuid"); !slices.Equal(got, []string{a.Project}) {
		t.Errorf("got paused projects %q", got)
	}
	if got := values(a.Get("/projects").Want(200), "uuid"); !slices.Contains(got, a.Project) {
		t.Errorf("got %q in all", got)
	}

	a.Member(4).Post(path+"/resume", "").Want(403)

	a.Post(path+"/resume", "").Want(200).Content("status", "active").Content("updatedBy", a.User)
	a.Get("/tables/orders").Want(200)

	if after := databaseState(t, a); after != before {
		t.Errorf("the pause changed\n%s\ninto\n%s", before, after)
	}

	if err := connectAsOwner(t, a); err != nil {
		t.Errorf("the owner can't connect again: %v", err)
	}
}

// project returns the place of the project in a request: "header", "path" or "form", or "" for an
// operation without a project.
func (o operation) project() string {
	switch {
	case o.header:
		return "header"
	case strings.Contains(o.path, "{projectUUID}"):
		return "path"
	case strings.Contains(o.path, "{formUUID}"):
		return "form"
	}

	return ""
}

// TestDeleteProject checks that a deleted project is hidden from all callers, and complete after a
// restore.
func TestDeleteProject(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	f := populate(t, a)
	before, path := databaseState(t, a), "/projects/"+a.Project
	name := a.Get(path).Want(200).Get("name").(string)
	admin := a.Member(3)
	admin.Delete(path).Want(403)

	if at := a.Delete(path).Want(200).Content("status", "deleted").Content("updatedBy", a.User).
		Get("deletedAt"); at == nil {
		t.Error("got deletedAt null")
	}

	for _, c := range append(f.calls(), f.formCalls()...) {
		if r := c.send(a); (r.Status != 401 && r.Status != 404 && r.Status != 400) ||
			r.Metadata("code") == "project_paused" {
			t.Errorf("%s: got %d %s", c.id, r.Status, r.Body)
		}
	}

	wantEqual(t, a.Get(path), a.Get("/projects/"+apitest.MissingUUID))
	wantEqual(t, a.Get("/tables"), a.WithProject(apitest.MissingUUID).Get("/tables"))
	a.Put(path, `{"name": "x"}`).Want(404)
	a.Post(path+"/pause", "").Want(404)
	a.Post(path+"/resume", "").Want(404)
	a.Delete(path).Want(404)
	a.Anonymous().Get(address(a, f.container, "a.txt")).Want(404)

	if err := connectAsOwner(t, a); pg.State(err) != "53300" {
		t.Errorf("the owner connects to a deleted project: %v", err)
	}
	if got := values(admin.Get("/projects?status=deleted").Want(200), "uuid"); !slices.Equal(got, []string{a.Project}) {
		t.Errorf("got deleted projects %q", got)
	}
	if got := values(a.Get("/projects").Want(200), "uuid"); slices.Contains(got, a.Project) {
		t.Errorf("got %q in all", got)
	}

	taker := a.Post("/projects", `{"name": `+quoted(name)+`}`).Want(201).Get("uuid").(string)
	a.Post(path+"/restore", "").Want(409).Code("already_exists").Field("name")
	a.Get(path).Want(404)

	if err := connectAsOwner(t, a); pg.State(err) != "53300" {
		t.Errorf("the owner connects after a restore that failed: %v", err)
	}

	a.Put("/projects/"+taker, `{"name": "Another"}`).Want(200)
	admin.Post(path+"/restore", "").Want(403)
	a.OtherUser().Post(path+"/restore", "").Want(404)
	a.Post(path+"/restore", "").Want(200).Content("status", "active").Content("name", name).Content("deletedAt", nil)
	a.Post(path+"/restore", "").Want(409).Code("not_deleted")

	if after := databaseState(t, a); after != before {
		t.Errorf("deleting and restoring changed\n%s\ninto\n%s", before, after)
	}

	a.Anonymous().Get(address(a, f.container, "a.txt")).Want(404) // not public

	a.Delete(path).Want(200)
	a.Delete(path+"?purge=true").Want(200).Content("status", "deleting")
	wantGone(t, a)
}

// TestDeletedProjectExpires checks that a deleted project is removed after the retention time, and
// not before.
func TestDeletedProjectExpires(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	populate(t, a)
	other := a.WithProject(a.CreateProject("other"))
	a.Delete("/projects/" + a.Project).Want(200)
	a.Delete("/projects/" + other.Project).Want(200)
	a.Exec(
		`update platform.projects set deleted_at = now() - case when uuid = $1 then interval '7 days' else interval '6 days 23 hours' end where uuid in ($1, $2)`,
		a.Project, other.Project)

	a.RunMaintenance()
	wantGone(t, a)
	a.Post("/projects/"+a.Project+"/restore", "").Want(404)
	a.Post("/projects/"+other.Project+"/restore", "").Want(200)
	other.CreateTable("kept")
}

// TestProjectDatabaseMissing checks that a project without its database can be paused and deleted,
// and that a resume does not create an empty one.
func TestProjectDatabaseMissing(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	path := "/projects/" + a.Project
	a.Exec("drop database " + pg.Quote(a.DatabaseName()) + " with (force)")
	a.Post(path+"/pause", "").Want(200)
	wantUnavailable(t, "resumeProject", a.Post(path+"/resume", ""))
	a.Get(path).Want(200).Content("status", "paused")
	a.Delete(path).Want(200)
	wantUnavailable(t, "restoreProject", a.Post(path+"/restore", ""))
	a.Delete(path + "?purge=true").Want(200)
	wantGone(t, a)
}

// TestProjectStatesConcurrently checks that one of many concurrent changes of the same kind
// succeeds, and that the last change determines the state.
func TestProjectStatesConcurrently(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	a.CreateTable("orders")
	path := "/projects/" + a.Project
	for range 2 {
		wantCounts(t, concurrently(5, func(int) *apitest.Reply { return a.Post(path+"/pause", "") }),
			map[int]int{200: 1, 409: 4})

		wantCounts(t, concurrently(5, func(int) *apitest.Reply { return a.Post(path+"/resume", "") }),
			map[int]int{200: 1, 409: 4})

		wantCounts(t, concurrently(5, func(int) *apitest.Reply { return a.Delete(path) }), map[int]int{200: 1, 404: 4})
		wantCounts(t, concurrently(5, func(int) *apitest.Reply { return a.Post(path+"/restore", "") }),
			map[int]int{200: 1, 409: 4})

		wantStatuses(t, concurrently(8, func(i int) *apitest.Reply {
			if i%2 == 0 {
				return a.Post(path+"/pause", "")
			}
			return a.Post(path+"/resume", "")
		}), 200, 409)

		wantStatuses(t, concurrently(8, func(i int) *apitest.Reply {
			switch i % 4 {
			case 0:
				return a.Delete(path)
			case 1:
				return a.Post(path+"/restore", "")
			case 2:
				return a.Post(path+"/resume", "")
			}

			return a.Post(path+"/pause", "")
		}), 200, 404, 409)

		a.Delete(path)
		a.Post(path+"/restore", "").Want(200)
		a.Get("/tables/orders").Want(200)

		if err := connectAsOwner(t, a); err != nil {
			t.Fatalf("the owner can't connect to an active project: %v", err)
		}
	}
}

// TestPauseBusyProject checks that a pause ends running work in a project without a 500.
func TestPauseBusyProject(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	a.CreateTable("orders")
	c := a.Create("/containers", `{"name": "reports"}`)
	for range 2 {
		content, body := io.Pipe()
		arriving := make(chan *apitest.Reply)
		go func() {
			arriving <- a.Do(
				a.Request("POST", "/containers/"+c+"/files", content,
					"Content-Type: multipart/form-data; boundary="+boundary),
			)
		}()

		fmt.Fprint(body, namePart("big.bin"), strings.TrimSuffix(filePart("", strings.Repeat("x", 1<<20)), "\r\n"))
		until(t, "the upload is running", func() bool {
			return query[int](t, a, "select count(*) from storage.uploads") > 0
		})

		counts := concurrently(12, func(i int) *apitest.Reply {
			switch i % 4 {
			case 0:
				return a.Post("/projects/"+a.Project+"/pause", "")
			case 1:
				return a.Put("/tables/orders/rename", `{"name": "orders"}`)
			case 2:
				return a.Post("/tables/orders/columns", fmt.Sprintf(`{"name": "c%d", "type": "text"}`, i))
			}

			return a.Get("/tables")
		})

		wantStatuses(t, counts, 200, 201, 400, 409, 422)
		fmt.Fprint(body, "\r\n", end)
		body.Close()
		(<-arriving).Want(409).Code("project_paused")
		a.Post("/projects/"+a.Project+"/resume", "").Want(200)
		a.Get("/tables/orders").Want(200)
		execute(t, a,
			"delete from storage.uploads; alter table public.orders drop column if exists c2, drop column if exists c6, drop column if exists c10")
	}

	if got := query[int](t, a, "select count(*) from storage.files"); got != 0 {
		t.Errorf("got %d files of truncated uploads, want none", got)
	}
}

// TestProjectLimit checks that an organization has at most a hundred projects, also with concurrent
// requests. Deleted projects count until they are removed.
func TestProjectLimit(t *testing.T) {
	t.Parallel()

	a := apitest.New(t)
	a.Exec(`insert into platform.projects (uuid, organization_uuid, name, status, schema_version, created_by, updated_by)
		select gen_random_uuid(), $1, 'made ' || n, 'active', 1000, $2, $2 from generate_series(1, 98) n`,
		a.Organization, a.User)

	wantCounts(t, concurrently(5, func(i int) *apitest.Reply {
		return a.Post("/projects", fmt.Sprintf(`{"name": "late %d"}`, i))
	}), map[int]int{201: 1, 422: 4})

	a.Post("/projects", `{"name": "one more"}`).Want(422).Code("quota_exceeded")
	a.Delete("/projects/" + a.Project).Want(200)
	a.Post("/projects", `{"name": "one more"}`).Want(422).Code("quota_exceeded")
	a.Delete("/projects/" + a.Project + "?purge=true").Want(200)
	a.Post("/projects", `{"name": "one more"}`).Want(201)
	a.SignUp("other").CreateProject("elsewhere")
}

// TestAnonymousReadsOfPausedProject checks that anonymous access to a public container ends when
// another server pauses or removes the project, in spite of the open connections of this server.
func TestAnonymousReadsOfPausedProject(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	c := a.Create("/containers", `{"name": "reports", "is_public": true}`)
	put(a, c, "a.txt", "hello").Want(200)
	file, database := address(a, c, "a.txt"), pgx.Identifier{a.DatabaseName()}.Sanitize()
	for _, status := range []string{"paused", "deleted"} {
		a.Anonymous().Get(file).Want(200)
		a.Exec(
			`update platform.projects set status = $1, closed = true, deleted_at = case when $1 = 'deleted' then now() end
			where uuid = $2`, status, a.Project, // closed: a background job leaves the database to this test
		)

		execute(t, a, "alter database "+database+" connection limit 0")
		execute(t, a,
			"select pg_terminate_backend(pid, 5000) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()")

		a.Anonymous().Get(file).Want(404)
		a.OtherUser().Get(file).Want(404)
		execute(t, a, "alter database "+database+" connection limit -1")
		a.Exec(`update platform.projects set status = 'active', closed = false, deleted_at = null where uuid = $1`, a.Project)
	}

	a.Anonymous().Get(file).Want(200)
	a.Put("/containers/"+c, `{"is_public": false}`).Want(200)
	a.Anonymous().Get(file).Want(404)
	a.Anonymous().Get(strings.Replace(file, a.Project, apitest.MissingUUID, 1)).Want(404)
}
