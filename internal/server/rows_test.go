package server_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/lestrrat-go/jwx/v3/jwa"
	"github.com/lestrrat-go/jwx/v3/jwt"

	"github.com/socle-dev/socle/internal/api/apitest"
)

// titlesProject is a project with a table of titles and its keys.
type titlesProject struct {
	*apitest.API
	t                   *testing.T
	publishable, secret string
}

func newTitlesProject(t *testing.T) titlesProject {
	t.Helper()

	return titlesProjectOf(t, apitest.Shared(t))
}

// titlesProjectOf returns the project of a client, with the table and the keys.
func titlesProjectOf(t *testing.T, a *apitest.API) titlesProject {
	t.Helper()

	a.CreateTable("titles", "title text", "owner text")
	s := titlesProject{API: a, t: t}
	s.publishable = s.key("browser", "publishable")
	s.secret = s.key("server", "secret")

	return s
}

func (s titlesProject) key(name, kind string) string {
	s.t.Helper()

	return s.Post("/projects/"+s.Project+"/keys", fmt.Sprintf(`{"name": %q, "kind": %q}`, name, kind)).Want(201).
		Metadata("key").(string)
}

// token signs a token with the project's secret.
func (s titlesProject) token(claims map[string]any) string {
	s.t.Helper()

	return s.sign(s.Get("/projects/"+s.Project+"/jwt-secret").Want(200).Get("secret").(string), claims)
}

func (s titlesProject) sign(secret string, claims map[string]any) string {
	s.t.Helper()

	made := jwt.New()
	for name, v := range claims {
		if err := made.Set(name, v); err != nil {
			s.t.Fatal(err)
		}
	}

	text, err := jwt.Sign(made, jwt.WithKey(jwa.HS256(), []byte(secret)))
	if err != nil {
		s.t.Fatal(err)
	}

	return string(text)
}

// rows sends a request to the rows API of a project, and returns status and body.
func (s titlesProject) rows(project, method, path, body string, headers ...string) (int, string) {
	s.t.Helper()

	r, err := http.NewRequestWithContext(s.t.Context(), method, s.URL+"/projects/"+project+"/rest/v1"+path,
		strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}

	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}

	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		r.Header.Set(name, value)
	}

	res, err := http.DefaultClient.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer res.Body.Close()

	text, err := io.ReadAll(res.Body)
	if err != nil {
		s.t.Fatal(err)
	}

	return res.StatusCode, strings.TrimSpace(string(text))
}

// want expects a status and a body of a row request; the body "" matches any.
func (s titlesProject) want(status int, want string, method, path, body string, headers ...string) string {
	s.t.Helper()

	got, text := s.rows(s.Project, method, path, body, headers...)
	if got != status || want != "" && text != want {
		s.t.Fatalf("%s %s: got %d %s, want %d %s", method, path, got, text, status, want)
	}

	return text
}

func TestRows(t *testing.T) {
	t.Parallel()

	s := newTitlesProject(t)
	secret := "apikey: " + s.secret
	s.want(201, "", "POST", "/titles",
		`[{"id": 1, "title": "Emma", "owner": "ada"}, {"id": 2, "title": "Persuasion", "owner": "eve"}]`, secret)
	s.want(200, `[{"title":"Emma"}]`, "GET", "/titles?select=title&id=eq.1", "", secret)
	s.want(200, `[{"title":"Emma"}]`, "GET", "/titles?select=title&id=eq.1", "", "Authorization: Bearer "+s.secret)
	s.want(200, `[{"id":2,"title":"Sanditon"}]`, "PATCH", "/titles?id=eq.2&select=id,title", `{"title": "Sanditon"}`,
		secret, "Prefer: return=representation")
	s.want(204, "", "DELETE", "/titles?id=eq.2", "", secret)
	s.want(200, `[{"count":1}]`, "GET", "/titles?select=count", "", secret)

	if text := s.want(404, "", "GET", "/nothing", "", secret); !strings.Contains(text, "PGRST205") {
		t.Errorf("an unknown table: got %s", text)
	}

	s.want(400, "", "GET", "/titles?id=eq.x", "", secret)
	s.want(201, "", "POST", "/titles", `{"id": 3}`, secret)
	s.want(409, "", "POST", "/titles", `{"id": 3}`, secret)
}

// TestRowsAreClosed checks that only the service role can read a new table, until a grant and a
// policy.
func TestRowsAreClosed(t *testing.T) {
	t.Parallel()

	s := newTitlesProject(t)
	anon, user := "apikey: "+s.publishable, "Authorization: Bearer "+
		s.token(map[string]any{"role": "authenticated", "sub": "ada"})

	s.want(201, "", "POST", "/titles",
		`[{"id": 1, "title": "Emma", "owner": "ada"}, {"id": 2, "title": "Persuasion", "owner": "eve"}]`,
		"apikey: "+s.secret)

	for name, header := range map[string]string{"anon": anon, "authenticated": user} {
		for _, request := range [][3]string{
			{"GET", "/titles", ""}, {"POST", "/titles", `{"id": 9}`}, {"PATCH", "/titles?id=eq.1", `{"title": "x"}`},
			{"DELETE", "/titles?id=eq.1", ""},
		} {
			if status, text := s.rows(s.Project, request[0], request[1], request[2], header); status != 401 &&
				status != 403 {
				t.Errorf("%s, %s %s: got %d %s, want 401 or 403", name, request[0], request[1], status, text)
			}
		}
	}

	owner := s.Server.Projects().Open(uuid.MustParse(s.Project)).Owner()
	for _, sql := range []string{"grant select, insert on public.titles to anon, authenticated",
		`create policy own on public.titles for select to authenticated using (owner = current_setting('request.jwt.claims')::json ->> 'sub')`} {
		if _, err := owner.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}

	s.want(200, `[]`, "GET", "/titles", "", anon)
	s.want(200, `[{"title":"Emma"}]`, "GET", "/titles?select=title", "", user)
	s.want(200, `[{"title":"Emma"}]`, "GET", "/titles?select=title", "", user, anon) // headers of a client library

	if status, text := s.rows(s.Project, "POST", "/titles", `{"id": 9, "owner": "ada"}`, user); status != 403 ||
		!strings.Contains(text, "42501") {
		t.Errorf("no policy for inserts: got %d %s", status, text)
	}

	// functions are closed, too
	s.Post("/functions/public",
		`{"name": "answer", "language": "sql", "definition": "select 42", "return_type": "integer"}`).Want(201)

	s.want(200, "42", "GET", "/rpc/answer", "", "apikey: "+s.secret)

	if status, text := s.rows(s.Project, "GET", "/rpc/answer", "", anon); status != 401 && status != 403 {
		t.Errorf("a function without a grant: got %d %s", status, text)
	}
}

// TestWhoMayAskForRows checks that only a project's own keys and tokens are accepted, and that all
// others get the same response for existing and unknown projects.
func TestWhoMayAskForRows(t *testing.T) {
	t.Parallel()

	s := newTitlesProject(t)
	other := titlesProject{API: s.WithProject(s.CreateProject("other")), t: t}
	theirs := other.key("server", "secret")
	now := time.Now()
	for name, header := range map[string]string{
		"nothing":               "X-None: x",
		"an empty key":          "apikey: ",
		"garbage":               "apikey: garbage",
		"a mistyped key":        "apikey: " + s.secret[:len(s.secret)-1] + "9",
		"an unknown key":        "apikey: socle_secret_aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
		"another project's key": "apikey: " + theirs,
		"a stranger's token":    "Authorization: Bearer " + s.OtherUser().Token,
		"another project's":     "Authorization: Bearer " + other.token(map[string]any{"role": "service_role"}),
		"expired": "Authorization: Bearer " +
			s.token(map[string]any{"role": "anon", "exp": now.Add(-time.Hour)}),
		"no role":           "Authorization: Bearer " + s.token(map[string]any{"sub": "ada"}),
		"role postgres":     "Authorization: Bearer " + s.token(map[string]any{"role": "postgres"}),
		"role of the owner": "Authorization: Bearer " + s.token(map[string]any{"role": s.DatabaseName() + "_owner"}),
		"hostile role":      "Authorization: Bearer " + s.token(map[string]any{"role": `anon"; --`}),
		"role in a list":    "Authorization: Bearer " + s.token(map[string]any{"role": []string{"anon"}}),
		"wrong secret": "Authorization: Bearer " +
			s.sign(strings.Repeat("0", 64), map[string]any{"role": "anon"}),
	} {
		status, text := s.rows(s.Project, "GET", "/titles", "", header)
		if status != 401 {
			t.Errorf("%s: got %d %s, want 401", name, status, text)
		}
		if strings.HasPrefix(header, "apikey: ") && header != "apikey: " &&
			!strings.Contains(text, "The key or token is not valid for this project") {
			t.Errorf("%s: got %s, want the error of an invalid key", name, text)
		}

		absent, same := s.rows(apitest.MissingUUID, "GET", "/titles", "", header)
		if absent != 401 {
			t.Errorf("%s, absent project: got %d %s, want 401", name, absent, same)
		}

		var problem struct{ Code, Message string }
		if err := json.Unmarshal([]byte(text), &problem); err != nil || problem.Code == "" {
			t.Errorf("%s: got body %s", name, text)
		}
	}

	if status, _ := s.rows("not-a-uuid", "GET", "/titles", "", "apikey: "+s.secret); status != 401 {
		t.Errorf("project without a UUID: got %d", status)
	}
}

// TestRevokedKey checks that a revoked key and a key of a deleted project are rejected.
func TestRevokedKey(t *testing.T) {
	t.Parallel()

	s := newTitlesProject(t)
	keys := "/projects/" + s.Project + "/keys"
	made := s.Post(keys, `{"name": "short", "kind": "secret"}`).Want(201)
	short := "apikey: " + made.Metadata("key").(string)
	s.want(200, "[]", "GET", "/titles", "", short)
	s.Delete(keys + "/" + made.Get("uuid").(string)).Want(200)

	eventually(t, "the key is refused", func() bool {
		status, _ := s.rows(s.Project, "GET", "/titles", "", short)
		return status == 401
	})

	s.want(200, "[]", "GET", "/titles", "", "apikey: "+s.secret)
	s.Delete("/projects/" + s.Project).Want(200)
	s.want(404, "", "GET", "/titles", "", "apikey: "+s.secret)
	s.want(401, "", "GET", "/titles", "", short)
}

// TestRowsFollowTheSchema checks that DDL takes effect without a notification.
func TestRowsFollowTheSchema(t *testing.T) {
	t.Parallel()

	s := newTitlesProject(t)
	secret := "apikey: " + s.secret
	s.want(201, "", "POST", "/titles", `{"id": 1, "title": "Emma"}`, secret)
	s.want(200, `[{"id":1,"title":"Emma","owner":null}]`, "GET", "/titles", "", secret)
	s.Post("/tables/titles/columns", `{"name": "year", "type": "integer", "defaultValue": "1815"}`).Want(201)
	s.CreateTable("authors", "name text")
	s.want(200, `[]`, "GET", "/authors", "", secret)
	s.want(200, `[{"year":1815}]`, "GET", "/titles?select=year", "", secret)
	s.want(201, "", "POST", "/titles", `{"id": 2, "year": 1818}`, secret)
	s.Put("/tables/titles/rename", `{"name": "books"}`).Want(200)
	s.want(200, "", "GET", "/books", "", secret)
	s.want(404, "", "GET", "/titles", "", secret)
}

// TestSessionsOfRows checks that the session state of a function is reset before the next request.
func TestSessionsOfRows(t *testing.T) {
	t.Parallel()

	s := newTitlesProject(t)
	secret := "apikey: " + s.secret

	define := func(name, body, returns string) {
		t.Helper()

		s.Post("/functions/public",
			fmt.Sprintf(`{"name": %q, "language": "plpgsql", "definition": %q, "return_type": %q}`, name, body,
				returns)).Want(201)
	}

	define("litter",
		`begin perform set_config('app.user', 'ada', false), set_config('statement_timeout', '600000', false), pg_advisory_lock(7); listen gossip; end`, "void")

	define("look", `begin return concat_ws(' ', current_setting('app.user', true), current_setting('statement_timeout'),
		(select count(*) from pg_locks where locktype = 'advisory' and pid = pg_backend_pid()), (select count(*) from pg_listening_channels())); end`, "text")

	s.want(200, "", "POST", "/rpc/look", "{}", secret)

	for range 30 { // more than there are connections
		s.want(204, "", "POST", "/rpc/litter", "{}", secret)

		if text := s.want(200, "", "POST", "/rpc/look", "{}",
			secret); strings.TrimSpace(strings.Trim(text, `"`)) != "0 0 0" {
			t.Fatalf("the session keeps %s from the previous request", text)
		}
	}
}

// TestSessionsThatStay checks that a function that catches its cancellation ends with its session
// after its client has disconnected.
func TestSessionsThatStay(t *testing.T) {
	t.Parallel()

	s := newTitlesProject(t)
	s.Post("/functions/public", `{"name": "stay", "language": "plpgsql", "return_type": "void",
		"definition": "begin loop begin perform pg_sleep(600); exception when query_canceled then null; end; end loop; end"}`).Want(201)

	s.want(200, "", "OPTIONS", "/rpc/stay", "", "apikey: "+s.secret)
	conn := s.ConnectProject()
	stay := func() (n int) {
		t.Helper()

		if err := conn.QueryRow(t.Context(),
			"select count(*) from pg_stat_activity where datname = current_database() and wait_event = 'PgSleep'").
			Scan(&n); err != nil {
			t.Fatal(err)
		}

		return n
	}

	ctx, leave := context.WithCancel(t.Context())
	r, err := http.NewRequestWithContext(ctx, "POST", s.URL+"/projects/"+s.Project+"/rest/v1/rpc/stay", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}

	r.Header.Set("apikey", s.secret)
	gone := make(chan error)
	go func() {
		res, err := http.DefaultClient.Do(r)
		if err == nil {
			_ = res.Body.Close()
		}

		gone <- err
	}()

	eventually(t, "it runs", func() bool { return stay() == 1 })
	leave()

	if err := <-gone; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}

	eventually(t, "it has ended", func() bool { return stay() == 0 })
}

// TestRolesOfRows checks that user code can't switch to a role beyond its login's memberships.
func TestRolesOfRows(t *testing.T) {
	t.Parallel()

	s := newTitlesProject(t)
	s.Post("/functions/public",
		`{"name": "become", "parameters": [{"name": "r", "type": "text"}], "language": "plpgsql", "return_type": "text",
		"definition": "begin perform set_config('role', r, true); return current_user; end"}`).Want(201)

	if _, err := s.Server.Projects().Open(uuid.MustParse(s.Project)).Owner().Exec(t.Context(),
		"grant execute on function public.become(text) to anon"); err != nil {
		t.Fatal(err)
	}

	anon := "apikey: " + s.publishable
	s.want(200, "", "POST", "/rpc/become", `{"r": "anon"}`, anon)

	for _, role := range []string{
		"service_role", "postgres", "socle", s.DatabaseName() + "_owner", s.DatabaseName() + "_service",
		"pg_read_all_data",
	} {
		if status, text := s.rows(s.Project, "POST", "/rpc/become", fmt.Sprintf(`{"r": %q}`, role),
			anon); status < 400 || status >= 500 {
			t.Errorf("anon becomes %s: got %d %s", role, status, text)
		}
	}
}
