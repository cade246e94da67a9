package server_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/api/apitest"
)

// TestRequestsOfRows checks that logged requests to the rows API name table, failure, role and end
// user, and the key or token, and contain no value of the query and the body.
func TestRequestsOfRows(t *testing.T) {
	t.Parallel()

	s := newTitlesProject(t)
	const canary, user = "canary", "0199a000-0000-7000-8000-00000000000a"
	list := func(filter string) []any {
		return s.Get("/projects/" + s.Project + "/requests?limit=100&route=/rest/v1" + filter).Want(200).Get("").([]any)
	}
	token := "Authorization: Bearer " + s.token(map[string]any{"role": "authenticated", "sub": user})
	s.want(200, "[]", "GET", "/titles?title=eq.canary&select=id", "", "apikey: "+s.secret)
	s.want(401, "", "POST", "/titles", `{"id": "canary"}`, "apikey: garbage")
	s.want(403, "", "GET", "/titles", "", token)
	s.want(404, "", "POST", "/rpc/absent", `{"a": "canary"}`, token)
	s.want(400, "", "GET", "/titles?id=eq.canary", "", "apikey: "+s.secret)
	s.want(200, "", "OPTIONS", "/titles", "", "apikey: "+s.secret)

	var rows []any
	eventually(t, "the requests are kept", func() bool {
		rows = list("")
		return len(rows) == 5
	})

	var got []string
	for _, row := range rows {
		r := row.(map[string]any)
		got = append(got, fmt.Sprint(r["method"], " ", r["route"], " ", r["query"], " ", r["status"], " ",
			r["errorCode"], " ",
			r["caller"], " ", r["role"], " ", r["endUserUuid"] == user, " ", r["keyName"], " ", r["rows"]))
	}

	want := []string{
		"GET /rest/v1/titles id=eq.… 400 22P02 key service_role false server <nil>",
		"POST /rest/v1/rpc/absent <nil> 404 PGRST202 token authenticated true <nil> <nil>",
		"GET /rest/v1/titles <nil> 403 42501 token authenticated true <nil> <nil>",
		"POST /rest/v1/titles <nil> 401 PGRST301 anonymous <nil> false <nil> <nil>",
		"GET /rest/v1/titles title=eq.…&select=id 200 <nil> key service_role false server 0",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if text := fmt.Sprint(rows); strings.Contains(text, canary) || strings.Contains(text, s.secret) {
		t.Errorf("logged requests contain values: %s", text)
	}

	for filter, want := range map[string]int{"&table=titles": 4, "&table=title": 0, "&function=absent": 1,
		"&status=4xx": 4,
		"&status=403": 1, "&endUserUuid=" + user: 2, "&code=42501": 1, "&role=service_role": 2, "&method=post": 2} {
		if got := len(list(filter)); got != want {
			t.Errorf("%s: got %d requests, want %d", filter, got, want)
		}
	}
}

// TestExplainRequest explains a refusal and an empty answer, before and after a grant.
func TestExplainRequest(t *testing.T) {
	t.Parallel()

	s := newTitlesProject(t)
	path := "/projects/" + s.Project + "/requests"
	token := "Authorization: Bearer " + s.token(map[string]any{"role": "authenticated"})
	find := func(filter string) string {
		var id string
		eventually(t, "the request is kept", func() bool {
			all, _ := s.Get(path + "?table=titles" + filter).Want(200).Get("").([]any)
			if len(all) > 0 {
				id, _ = all[0].(map[string]any)["uuid"].(string)
			}
			return id != ""
		})

		return path + "/" + id + "/explanation"
	}

	s.want(403, "", "GET", "/titles?id=eq.7", "", token)
	refused := find("&status=403")
	r := s.Get(refused).Want(200).Content("table", "titles").Content("role", "authenticated").
		Content("statement", `select * from "titles" where id = …`).
		Content("causes.0.text", "authenticated lacks select on titles.")
	if command, _ := r.Get("causes.0.command").(string); !strings.HasPrefix(command, "socle grants update titles") {
		t.Errorf("got the command %q", command)
	}

	s.Put("/tables/titles/grants", `{"grants": [{"role": "authenticated", "privileges": ["select"]}]}`).Want(200)
	s.Get(refused).Want(200).Content("privileges.0", "select")

	s.want(200, "[]", "GET", "/titles", "", token)
	s.Get(find("&status=200")).Want(200).
		Content("causes.0.text", "No policy of titles lets authenticated select rows, so every row is hidden.")

	s.Get(path + "/" + apitest.MissingUUID + "/explanation").Want(404)
	s.Get(path + "/x/explanation").Want(400)
}

// TestRequestsAtShutdown checks that a stopping server writes its queue.
func TestRequestsAtShutdown(t *testing.T) {
	t.Parallel()

	a := apitest.New(t)
	count := func() (n int) {
		conn, err := pgx.Connect(t.Context(), string(a.Config.DatabaseURL))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close(t.Context())

		if err := conn.QueryRow(t.Context(), `select count(*) from platform.requests where project_uuid = $1`,
			a.Project).Scan(&n); err != nil {
			t.Fatal(err)
		}

		return n
	}

	t.Run("served", func(t *testing.T) {
		c := a.Config
		c.DataDir = t.TempDir()
		second := apitest.Start(t, c)
		second.Token, second.Project = a.Token, a.Project

		for range 20 {
			second.Get("/tables").Want(200)
		}
	})

	if got := count(); got < 20 {
		t.Errorf("got %d logged requests after the stop, want 20", got)
	}
}
