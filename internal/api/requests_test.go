package api_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/socle-dev/socle/internal/api/apitest"
)

// waitForRequests waits until the platform database has n requests of the project.
func waitForRequests(t *testing.T, a *apitest.API, n int) {
	t.Helper()

	until(t, fmt.Sprintf("%d requests are stored", n), func() bool {
		return apitest.Value[int](a, `select count(*) from platform.requests where project_uuid = $1`, a.Project) >= n
	})
}

func TestListRequests(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	path := "/projects/" + a.Project + "/requests"
	viewer, outsider := a.Member(5), a.OtherUser()
	a.CreateTable("orders")
	a.Get("/tables/absent?a=secret").Want(404)

	refused := viewer.Send("PUT", "/tables/orders/rename", `{"name": "secret"}`).Want(401)
	outsider.Get("/tables/orders").Want(401)
	a.Anonymous().Get("/tables/orders").Want(401)
	a.Get("/projects/" + a.Project).Want(200)
	waitForRequests(t, a, 4)

	r := a.Get(path).Want(200).Content("0.route", "/projects/{projectUUID}").Content("0.method", "GET").
		Content("0.status", 200).
		Content("1.uuid", refused.Header.Get("X-Request-Id")).Content("1.route", "/tables/{tableUUID}/rename").
		Content("1.method", "PUT").
		Content("1.status", 401).Content("1.caller", "user").Content("1.userUuid", viewer.User).
		Content("1.keyUuid", nil).Content("1.client", "127.0.0.1").
		Content("2.status", 404).Content("3.route", "/tables").Content("3.status", 201)
	if r.Metadata("next") != nil || len(values(r, "uuid")) != 4 {
		t.Errorf("got requests of callers without access to the project\n%s", r.Body)
	}

	if d := fmt.Sprint(r.Get("0.duration")); d == "0" || strings.HasPrefix(d, "-") {
		t.Errorf("it took %s microseconds", d)
	}
	if strings.Contains(string(r.Body), "secret") || strings.Contains(string(r.Body), "absent") {
		t.Errorf("a request's values are stored\n%s", r.Body)
	}

	for query, field := range map[string]string{"limit=0": "limit", "limit=101": "limit", "minStatus=99": "minStatus",
		"minStatus=x": "minStatus", "from=yesterday": "from",
		"to=2026-13-01T00:00:00Z": "to", "from=0000-01-01T00:00:00Z": "from", "cursor=x": "cursor",
		"cursor=" + strings.Repeat("_", 32): "cursor", "cursor=" + strings.Repeat("A", 33): "cursor",
		"page=1": "page", "table=books&function=total": "function", "method=" + strings.Repeat("A", 17): "method"} {
		a.Get(path + "?" + query).Want(400).Field(field)
	}

	a.Get(path + "/garbage/explanation").Want(400)

	viewer.Get(path).Want(403)
	outsider.Get(path).Want(404)
}

// TestListRequestsByParts reads a list in parts, across days, with several requests of the same
// time.
func TestListRequestsByParts(t *testing.T) {
	t.Parallel()

	a := apitest.New(t)
	path := "/projects/" + a.Project + "/requests?to=2026-01-01T00:00:00Z&"
	a.Exec(`create table platform_requests.day_20250101 partition of platform.requests for values from ('2025-01-01 00:00+00') to ('2025-01-02 00:00+00')`)
	a.Exec(`create table platform_requests.day_20250102 partition of platform.requests for values from ('2025-01-02 00:00+00') to ('2025-01-03 00:00+00')`)
	a.Exec(`insert into platform.requests (uuid, project_uuid, at, method, route, status, duration, caller)
		select gen_random_uuid(), p.uuid, timestamptz '2025-01-01 22:00+00' + (n / 4) * interval '1 hour', case n % 2 when 0 then 'GET' else 'POST' end,
			'/r/' || n, 200 + n * 10, 7, 'anonymous' from generate_series(0, 19) n, platform.projects p`)

	read := func(query string, limit int) []string {
		t.Helper()

		var all []string
		for cursor := ""; ; {
			r := a.Get(fmt.Sprintf("%s%s&limit=%d&cursor=%s", path, query, limit, cursor)).Want(200)
			got := values(r, "route")
			all = append(all, got...)

			next, more := r.Metadata("next").(string)
			if !more {
				return all
			}

			if len(got) != limit {
				t.Fatalf("got %d items in a part before the last, want %d", len(got), limit)
			}

			cursor = next
		}
	}

	whole := read("", 100)
	if len(whole) != 20 || slices.Contains(whole[:16], "/r/0") {
		t.Fatalf("got %q, want 20 with the oldest last", whole)
	}

	for _, limit := range []int{1, 3, 4, 20} {
		if got := read("", limit); !slices.Equal(got, whole) {
			t.Errorf("in parts of %d: got %q, want %q", limit, got, whole)
		}
	}

	for query, want := range map[string]int{"minStatus=300": 10, "minStatus=300&method=GET": 5, "method=get": 10,
		"method=HEAD": 0, "from=2025-01-02T00:00:00Z": 12, "from=2025-01-02T01:00:00%2B01:00": 12,
		"from=2025-01-03T00:00:00Z": 0} {
		if got := read(query, 3); len(got) != want {
			t.Errorf("%s: got %d, want %d", query, len(got), want)
		}
	}

	other := a.WithProject(a.CreateProject("other"))
	if got := values(other.Get("/projects/"+other.Project+"/requests?to=2026-01-01T00:00:00Z").Want(200),
		"uuid"); len(got) != 0 {
		t.Errorf("got %q of another project", got)
	}

	// Requests are removed by whole days, and with their project.
	until(t, "today's requests are kept", func() bool {
		return apitest.Value[bool](a, `select exists (select from platform.requests where at > $1)`,
			time.Now().Add(-time.Hour))
	})

	a.Delete("/projects/" + a.Project + "?purge=true").Want(200)

	if got := apitest.Value[int](a,
		`select count(*) from platform.requests where project_uuid = $1 and at < '2026-01-01'`, a.Project); got != 0 {
		t.Errorf("got %d requests of a removed project", got)
	}
}
