package server_test

import (
	"encoding/json"
	"math/rand/v2"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/lestrrat-go/jwx/v3/jwa"

	"github.com/socle-dev/socle/internal/api/apitest"
)

// TestRowsOfPausedProject checks that a paused or deleted project answers so at once to callers
// with valid credentials, and reveals nothing to others.
func TestRowsOfPausedProject(t *testing.T) {
	t.Parallel()

	s := newTitlesProject(t)
	key, user := "apikey: "+s.secret, "Authorization: Bearer "+s.token(map[string]any{"role": "authenticated"})
	member := "Authorization: Bearer " + s.Token
	own := "Authorization: Bearer " + s.signer(jwa.ES256(), "own").sign(`{"role":"authenticated"}`)
	s.want(201, "", "POST", "/titles", `{"id": 1, "title": "Emma"}`, key)
	s.Post("/projects/"+s.Project+"/pause", "").Want(200)

	refused := func(status int, code string) {
		t.Helper()

		for _, header := range []string{key, user, own, "apikey: " + s.publishable, member} {
			if got, text := s.rows(s.Project, "GET", "/titles", "", header); got != status ||
				!strings.Contains(text, code) {
				t.Errorf("got %d %s, want %d %s", got, text, status, code)
			}
		}
	}

	refused(409, `"code":"project_paused"`)

	for _, header := range []string{"X-None: x", "apikey: garbage", "Authorization: Bearer " + s.OtherUser().Token} {
		status, text := s.rows(s.Project, "GET", "/titles", "", header)
		if absent, same := s.rows(apitest.MissingUUID, "GET", "/titles", "", header); status != 401 || absent != 401 ||
			text != same {
			t.Errorf("%s: got %d %s, for an absent project %d %s", header, status, text, absent, same)
		}
	}

	s.Post("/projects/"+s.Project+"/resume", "").Want(200)
	s.want(200, `[{"title":"Emma"}]`, "GET", "/titles?select=title", "", key)
	s.Delete("/projects/" + s.Project).Want(200)
	refused(404, `"code":"project_deleted"`)

	if status, text := s.rows(s.Project, "GET", "/titles", "", "apikey: garbage"); status != 401 {
		t.Errorf("anonymous request to a deleted project: got %d %s", status, text)
	}

	s.Post("/projects/"+s.Project+"/restore", "").Want(200)
	s.want(200, `[{"title":"Emma"}]`, "GET", "/titles?select=title", "", key)
}

// TestRowsPausedElsewhere checks that a server without the notification looks up the project when
// its database is closed, and answers as the pausing server.
func TestRowsPausedElsewhere(t *testing.T) {
	t.Parallel()

	s := newTitlesProject(t)
	key := "apikey: " + s.secret
	database := s.DatabaseName()
	s.Exec(`update platform.projects set status = 'paused' where uuid = $1`, s.Project)
	s.Exec(`alter database ` + database + ` connection limit 0`)
	s.Exec(`select pg_terminate_backend(pid) from pg_stat_activity where datname = $1 and usename <> current_user`,
		database)

	for _, method := range []string{"PATCH", "GET"} {
		if got, text := s.rows(s.Project, method, "/titles?id=eq.0", `{"title": "x"}`, key); got != 409 ||
			!strings.Contains(text, "project_paused") {
			t.Errorf("%s: got %d %s, want 409", method, got, text)
		}
	}
}

// TestKilledProjectChange kills the server while a project's state changes. The next start must
// complete the change or not, without a project in between.
func TestKilledProjectChange(t *testing.T) {
	t.Parallel()

	p, c := startInstalled(t)
	for range crashesOr(t, 1) {
		for _, change := range []string{
			"POST /pause", "POST /resume", "DELETE ", "POST /restore", "DELETE ?purge=true",
		} {
			made := c.want(t, 201, "POST", "/projects", `{"name": "short-lived"}`)["uuid"].(string)
			mine, path := c, "/projects/"+made
			mine.project = made
			mine.want(t, 201, "POST", "/tables", `{"name": "kept", "columns": [{"name": "id", "type": "integer"}]}`)

			switch change {
			case "POST /resume":
				mine.want(t, 200, "POST", path+"/pause", "")
			case "POST /restore":
				mine.want(t, 200, "DELETE", path, "")
			}

			method, suffix, _ := strings.Cut(change, " ")
			answered := make(chan int)
			go func() { answered <- mine.send(t, method, path+suffix, "").status }()

			<-time.After(time.Duration(rand.IntN(40_000)) * time.Microsecond)
			p.signal(syscall.SIGKILL)
			p.wait()

			done := <-answered == 200
			p = serve(t, p.dir)
			c, mine = c.at(p), mine.at(p)
			mine.wantBeforeOrAfter(t, change, done)
			mine.send(t, "DELETE", path+"?purge=true", "") // a project being purged no longer exists
			eventually(t, "the project is gone", func() bool {
				return mine.send(t, "POST", path+"/restore", "").status == 404
			})
		}
	}

	if names := c.projects(t, ""); len(names) != 1 {
		t.Errorf("got projects %v, want only the first", names)
	}
}

// projects returns the names of the projects in a status, by UUID. The status "" means active or
// paused.
func (c client) projects(t *testing.T, status string) map[string]string {
	t.Helper()

	path := "/projects"
	if status != "" {
		path += "?status=" + status
	}

	var list struct{ Content []struct{ UUID, Name string } }
	if err := json.Unmarshal(c.send(t, "GET", path, "").body, &list); err != nil {
		t.Fatal(err)
	}

	names := map[string]string{}
	for _, p := range list.Content {
		names[p.UUID] = p.Name
	}

	return names
}

// wantBeforeOrAfter checks that the project is in the state before or after a change, and works as
// that state says. An acknowledged change must be complete. It makes an existing project active
// again.
func (c client) wantBeforeOrAfter(t *testing.T, change string, acknowledged bool) {
	t.Helper()

	after := map[string]string{
		"POST /pause": "paused", "POST /resume": "active", "DELETE ": "deleted", "POST /restore": "active",
	}[change]

	before := map[string]string{"POST /resume": "paused", "POST /restore": "deleted"}[change]
	if before == "" {
		before = "active"
	}

	var got string
	for _, status := range []string{"active", "paused", "deleted"} {
		if _, ok := c.projects(t, status)[c.project]; ok {
			got = status
		}
	}

	if got != after && (got != before || acknowledged) {
		t.Errorf("%s: acknowledged: %t, and the project is %q", change, acknowledged, got)
	}

	path := "/projects/" + c.project
	switch got {
	case "paused":
		c.want(t, 409, "POST", path+"/pause", "")
		c.want(t, 200, "POST", path+"/resume", "")
	case "deleted":
		c.want(t, 401, "GET", "/tables", "")
		c.want(t, 200, "POST", path+"/restore", "")
	case "":
		return
	}

	c.want(t, 200, "GET", "/tables/kept", "")
}
