package server_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/lestrrat-go/jwx/v3/jwa"

	"github.com/socle-dev/socle/internal/api/apitest"
)

// notesProject is a project whose end users have notes and a bucket of files, each their own.
type notesProject struct {
	titlesProject
	files files
	grace string // UUID of an end user with a note and a file
	token string // access token of a session of grace
}

const notesSchema = `
	create table notes (id int generated always as identity, owner uuid default auth.uid(), text text);
	alter table notes enable row level security;
	grant select, insert, update, delete on notes to authenticated, service_role;
	create policy own on notes to authenticated using (owner = auth.uid()) with check (owner = auth.uid());
	insert into notes (owner, text) values (gen_random_uuid(), 'other');
	create function claims() returns json stable language sql as $$ select current_setting('request.jwt.claims')::json $$;
	create function sent() returns text stable language sql as $$
		select current_setting('request.headers') || current_setting('request.cookies') $$;
	create function note() returns void volatile language sql as $$ insert into notes (text) values ('called') $$;
	create function custom_access_token(event jsonb) returns jsonb language sql as $$
		select jsonb_set(event, '{claims,plan}', '"pro"') $$;
	grant execute on function claims(), sent(), note() to authenticated, service_role`

func newNotesProject(t *testing.T) notesProject {
	t.Helper()

	a := apitest.Shared(t)
	p := notesProject{titlesProject: titlesProject{API: a, t: t}}
	p.publishable, p.secret = p.key("browser", "publishable"), p.key("server", "secret")
	p.files = files{t, a.URL + "/projects/" + a.Project + "/storage/v1", p.secret}
	p.run(notesSchema)
	p.run(storagePolicies)

	project := "/projects/" + a.Project
	a.Put(project+"/auth-settings",
		`{"hooks": {"custom_access_token": "pg-functions://postgres/public/custom_access_token"}}`).Want(200)
	p.grace = a.Create(project+"/end-users",
		`{"email": "grace@example.com", "password": "correct horse battery", "is_confirmed": true}`)
	a.Post("/containers", `{"name":"avatars"}`).Want(201)

	eventually(t, "the hook is known", func() bool {
		status, text := p.auth("/token?grant_type=password",
			`{"email": "grace@example.com", "password": "correct horse battery"}`)
		var session struct {
			Token string `json:"access_token"`
		}
		if err := json.Unmarshal([]byte(text), &session); err != nil || status != 200 {
			t.Fatalf("log in: got %d %s", status, text)
		}

		p.token = session.Token
		return claimsOf(t, p.token)["plan"] == "pro"
	})

	p.want(201, "", "POST", "/notes", `{"text": "own"}`, "Authorization: Bearer "+p.token)
	p.files.want(200, "", "POST", "/object/avatars/"+p.grace+"/a.txt", "own", "Authorization: Bearer "+p.token)

	return p
}

// auth sends a request of an end user.
func (p notesProject) auth(path, body string) (int, string) {
	f := p.files
	f.root = strings.TrimSuffix(f.root, "/storage/v1") + "/auth/v1"
	res, text := f.send("POST", path, body, "apikey: "+p.publishable, "Content-Type: application/json")

	return res.StatusCode, text
}

// personal creates a personal access token of a client, for the projects, or for all without any.
func (p notesProject) personal(a *apitest.API, role int, projects ...string) string {
	p.t.Helper()

	body := map[string]any{"name": uuid.NewString(), "role_id": role, "expires_at": time.Now().Add(time.Hour)}
	if len(projects) > 0 {
		body["project_uuids"] = projects
	}

	text, err := json.Marshal(body)
	if err != nil {
		p.t.Fatal(err)
	}

	return a.Post("/tokens", string(text)).Want(201).Metadata("token").(string)
}

// claimsOf returns a token's claims.
func claimsOf(t *testing.T, token string) map[string]any {
	t.Helper()

	text, err := base64.RawURLEncoding.DecodeString(strings.Split(token, ".")[1])
	var claims map[string]any
	if err == nil {
		err = json.Unmarshal(text, &claims)
	}
	if err != nil {
		t.Fatal(err)
	}

	return claims
}

// TestMembersInRowsAndFiles sends requests for rows and files with tokens of the platform: by role,
// method and the header X-Socle-As.
func TestMembersInRowsAndFiles(t *testing.T) {
	t.Parallel()

	p := newNotesProject(t)
	developer, viewer := p.Member(4), p.Member(5)
	user, unknown := "user:"+p.grace, "user:"+uuid.NewString()
	own, all := `[{"text":"own"}]`, `{"text":"other"}`
	file := "/object/avatars/" + p.grace

	tokens := map[string]string{
		"owner": p.Token, "developer": developer.Token, "viewer": viewer.Token, "stranger": p.OtherUser().Token,
		"administrator": p.Administrator().Token, "token": p.personal(developer, 4),
		"viewing token": p.personal(developer, 5), "limited token": p.personal(developer, 4, p.Project),
		"foreign token": p.personal(developer, 4, developer.WithProject("").CreateProject("elsewhere")),
		"end user":      p.token, "publishable": p.publishable, "secret": p.secret,
	}

	const rows, objects = "rows", "files"
	for _, c := range []struct {
		who, as, api, method, path, body string
		status                           int
		want                             string
	}{
		// reads
		{"owner", "", rows, "GET", "/notes?select=text", "", 200, all},
		{"developer", "", rows, "GET", "/notes?select=text", "", 200, all},
		{"developer", "service_role", rows, "GET", "/notes?select=text", "", 200, all},
		{"viewer", "", rows, "GET", "/notes?select=text", "", 200, all},
		{"administrator", "", rows, "GET", "/notes?select=text", "", 200, all},
		{"token", "", rows, "GET", "/notes?select=text", "", 200, all},
		{"viewing token", "", rows, "GET", "/notes?select=text", "", 200, all},
		{"limited token", "", rows, "GET", "/notes?select=text", "", 200, all},
		{"developer", user, rows, "GET", "/notes?select=text", "", 200, own},
		{"developer", strings.ToUpper(user[:5]) + p.grace, rows, "GET", "/notes", "", 400, "invalid_as"},
		{"developer", "user:" + strings.ToUpper(p.grace), rows, "GET", "/notes?select=text", "", 200, own},
		{"viewer", user, rows, "GET", "/notes?select=text", "", 200, own},
		{"developer", "anon", rows, "GET", "/notes", "", 401, "permission denied for table notes"},
		{"viewer", "anon", rows, "HEAD", "/notes", "", 401, ""},
		{"developer", user, rows, "POST", "/rpc/claims", "{}", 200, `"plan":"pro"`},
		{"viewer", user, rows, "POST", "/rpc/claims", "{}", 200, p.grace},
		{"viewer", "", rows, "GET", "/rpc/claims", "", 200, `{"role":"service_role"}`},
		{"viewer", "", rows, "GET", "/rpc/note", "", 405, "read-only transaction"},
		{"developer", "", objects, "GET", file + "/a.txt", "", 200, "own"},
		{"viewer", "", objects, "GET", file + "/a.txt", "", 200, "own"},
		{"viewer", user, objects, "POST", "/object/list/avatars", `{"prefix": "` + p.grace + `"}`, 200, "a.txt"},
		{"viewer", "", objects, "POST", strings.Replace(file, "/object", "/object/sign", 1) + "/a.txt",
			`{"expiresIn": 60}`, 200, "token="},
		{"developer", "anon", objects, "GET", file + "/a.txt", "", 400, "Object not found"},
		{"token", user, objects, "GET", file + "/a.txt", "", 200, "own"},

		// writes
		{"viewer", "", rows, "POST", "/notes", `{"text": "x"}`, 403, "requires the role of developer"},
		{"viewer", user, rows, "POST", "/notes", `{"text": "x"}`, 403, "requires the role of developer"},
		{"viewer", "", rows, "PATCH", "/notes?id=gt.0", `{"text": "x"}`, 403, "requires the role of developer"},
		{"viewer", user, rows, "DELETE", "/notes?id=gt.0", "", 403, "requires the role of developer"},
		{"viewer", "", rows, "POST", "/rpc/note", "{}", 403, "requires the role of developer"},
		{"viewing token", "", rows, "POST", "/notes", `{"text": "x"}`, 403, "requires the role of developer"},
		{"viewer", "", objects, "POST", file + "/b.txt", "x", 400, "requires the role of developer"},
		{"viewer", user, objects, "PUT", file + "/a.txt", "x", 400, "requires the role of developer"},
		{"viewer", "", objects, "DELETE", file + "/a.txt", "", 400, "requires the role of developer"},
		{"viewer", "", objects, "POST", "/bucket", `{"name": "b"}`, 400, "requires the role of developer"},
		{"developer", user, rows, "POST", "/notes", `{"text": "by grace"}`, 201, ""},
		{"developer", "anon", rows, "POST", "/notes", `{"text": "x"}`, 401, "permission denied"},
		{"developer", user, rows, "POST", "/notes", `{"owner": "` + uuid.NewString() + `"}`, 403, "row-level security"},
		{"developer", "", rows, "PATCH", "/notes?text=eq.by grace", `{"text": "changed"}`, 204, ""},
		{"developer", "", rows, "POST", "/rpc/note", "{}", 204, ""},
		{"token", user, rows, "DELETE", "/notes?text=eq.changed", "", 204, ""},
		{"administrator", "", rows, "DELETE", "/notes?text=eq.called", "", 204, ""},
		{"developer", user, objects, "POST", file + "/b.txt", "x", 200, "b.txt"},
		{"developer", user, objects, "POST", "/object/avatars/elsewhere/b.txt", "x", 400, "row-level security"},
		{"developer", "anon", objects, "DELETE", file + "/b.txt", "", 400, ""},
		{"developer", "", objects, "DELETE", file + "/b.txt", "", 200, "Successfully deleted"},

		// refusals
		{"stranger", "", rows, "GET", "/notes", "", 401, "not valid for this project"},
		{"stranger", user, rows, "GET", "/notes", "", 401, "not valid for this project"},
		{"foreign token", "", rows, "GET", "/notes", "", 401, "not valid for this project"},
		{"stranger", "", objects, "GET", "/bucket", "", 400, "Project not found"},
		{"foreign token", "anon", objects, "GET", "/bucket", "", 400, "Project not found"},
		{"developer", unknown, rows, "GET", "/notes", "", 400, "names no end user"},
		{"developer", unknown, objects, "GET", "/bucket", "", 400, "names no end user"},
		{"developer", "user:grace@example.com", rows, "GET", "/notes", "", 400, "invalid_as"},
		{"developer", "authenticated", objects, "GET", "/bucket", "", 400, "must be anon"},
		{"developer", "user:{" + p.grace + "}", rows, "GET", "/notes", "", 400, "invalid_as"},
		{"publishable", "anon", rows, "GET", "/notes", "", 400, "as_not_allowed"},
		{"secret", user, rows, "GET", "/notes", "", 400, "as_not_allowed"},
		{"end user", user, rows, "GET", "/notes", "", 400, "as_not_allowed"},
		{"secret", user, objects, "GET", "/bucket", "", 400, "needs an access token of a platform user"},
		{"end user", "anon", objects, "GET", "/bucket", "", 400, "needs an access token of a platform user"},
		{"developer", user, objects, "GET", "/object/public/avatars/a.txt", "", 400, "takes no credentials"},
	} {
		headers := []string{"Authorization: Bearer " + tokens[c.who]}
		if c.as != "" {
			headers = append(headers, "X-Socle-As: "+c.as)
		}

		var status int
		var text string
		if c.api == rows {
			status, text = p.rows(p.Project, c.method, strings.ReplaceAll(c.path, " ", "%20"), c.body, headers...)
		} else {
			if strings.HasPrefix(c.body, "{") {
				headers = append(headers, "Content-Type: application/json")
			}
			var res *http.Response
			res, text = p.files.send(c.method, c.path, c.body, headers...)
			status = res.StatusCode
		}
		if status != c.status || !strings.Contains(text, c.want) {
			t.Errorf("%s as %q, %s: %s %s: got %d %s, want %d %s", c.who, c.as, c.api, c.method, c.path, status, text,
				c.status, c.want)
		}
	}

	// Clients repeat a key in apikey.
	p.files.want(200, "own", "GET", file+"/a.txt", "", "apikey: "+p.publishable,
		"Authorization: Bearer "+tokens["token"])
	text := p.want(200, "", "GET", "/notes?select=text", "", "apikey: "+p.publishable,
		"Authorization: Bearer "+tokens["token"])
	if !strings.Contains(text, all) {
		t.Errorf("a personal token beside a key: got %s, want all rows", text)
	}

	p.checkMemberAudit(developer)
	p.checkMemberRequests(developer)
}

// checkMemberAudit checks the audit entries of a developer's changes of rows and files.
func (p notesProject) checkMemberAudit(developer *apitest.API) {
	p.t.Helper()

	var got []string
	log := "/projects/" + p.Project + "/audit?limit=100"
	p.Get(log).Want(200) // chains the entries, whose actions the filter knows then
	for _, action := range []string{"changeRows", "callFunction", "changeFiles"} {
		for _, entry := range p.Get(log + "&action=" + action + "&actor=" + developer.User).Want(200).Get("").([]any) {
			e := entry.(map[string]any)
			text := fmt.Sprint(action, " ", e["method"], " ", e["target"], " ", e["as"])
			text = strings.ReplaceAll(strings.ReplaceAll(text, p.grace, "grace"), "/projects/"+p.Project, "")
			got = append(got, text)
			if e["via"] == "" || e["request"] == "" {
				p.t.Errorf("got %v, want a session and a request", e)
			}
		}
	}
	slices.Sort(got)

	want := []string{
		"callFunction POST /rest/v1/rpc/note service_role",
		"changeFiles DELETE /storage/v1/object/avatars/grace/b.txt anon",
		"changeFiles DELETE /storage/v1/object/avatars/grace/b.txt service_role",
		"changeFiles POST /storage/v1/object/avatars/elsewhere/b.txt user:grace",
		"changeFiles POST /storage/v1/object/avatars/grace/b.txt user:grace",
		"changeRows DELETE /rest/v1/notes user:grace",
		"changeRows PATCH /rest/v1/notes service_role",
		"changeRows POST /rest/v1/notes anon",
		"changeRows POST /rest/v1/notes user:grace",
		"changeRows POST /rest/v1/notes user:grace",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		p.t.Errorf("audit entries (-want +got)\n%s", diff)
	}
}

// checkMemberRequests checks that the request log names the member, the role and the end user.
func (p notesProject) checkMemberRequests(developer *apitest.API) {
	p.t.Helper()

	for filter, want := range map[string]string{
		"&method=DELETE&route=/rest/v1/notes":     "user authenticated true",
		"&method=GET&route=/rest/v1&role=anon":    "user anon false",
		"&method=PATCH":                           "user service_role false",
		"&method=POST&route=/rest/v1/rpc/claims":  "user authenticated true",
		"&method=POST&route=/storage/v1/object/a": "user authenticated true",
	} {
		eventually(p.t, "the request is kept: "+filter, func() bool {
			rows := p.Get("/projects/" + p.Project + "/requests?userUuid=" + developer.User + filter).Want(200).
				Get("").([]any)
			if len(rows) == 0 {
				return false
			}

			r := rows[0].(map[string]any)
			if got := fmt.Sprint(r["caller"], " ", r["role"], " ", r["endUserUuid"] == p.grace); got != want {
				p.t.Fatalf("%s: got %s, want %s", filter, got, want)
			}

			return true
		})
	}
}

// TestMemberClaims compares what the database sees of a member who acts as an end user with what it
// sees of that end user.
func TestMemberClaims(t *testing.T) {
	t.Parallel()

	p := newNotesProject(t)
	claims := func(headers ...string) map[string]any {
		var all map[string]any
		if err := json.Unmarshal([]byte(p.want(200, "", "GET", "/rpc/claims", "", headers...)), &all); err != nil {
			t.Fatal(err)
		}

		// A session has these.
		maps.DeleteFunc(all, func(name string, _ any) bool {
			return slices.Contains([]string{"exp", "iat", "session_id", "amr"}, name)
		})

		return all
	}

	member := "Authorization: Bearer " + p.Token
	want := claims("Authorization: Bearer " + p.token)
	if diff := cmp.Diff(want, claims(member, "X-Socle-As: user:"+p.grace)); diff != "" || want["plan"] != "pro" {
		t.Errorf("claims of the end user (-want +got)\n%s", diff)
	}
	if diff := cmp.Diff(claims("apikey: "+p.secret), claims(member)); diff != "" {
		t.Errorf("claims of a member and of a secret key (-key +member)\n%s", diff)
	}

	// User code of the project must not take over the member's session.
	for name, headers := range map[string][]string{
		"session":        {member, "Cookie: a=" + p.Token, "apikey: " + p.publishable},
		"personal token": {"Authorization: Bearer " + p.personal(p.API, 4), "X-Socle-As: user:" + p.grace},
		"apikey":         {"apikey: " + p.Token},
	} {
		text := strings.ToLower(p.want(200, "", "GET", "/rpc/sent", "", headers...))
		for _, secret := range []string{p.Token, "socle_pat_", "authorization", "apikey", "bearer"} {
			if strings.Contains(text, strings.ToLower(secret)) {
				t.Errorf("%s: user code sees %s in %s", name, secret, text)
			}
		}
	}
	text := p.want(200, "", "GET", "/rpc/sent", "", "Authorization: Bearer "+p.token)
	if !strings.Contains(text, p.token) {
		t.Errorf("got %s, want the end user's token, as PostgREST shows it", text)
	}
}

// TestTokensOfOtherIssuers sends tokens of the platform and of a project to each other, forged ones
// among them.
func TestTokensOfOtherIssuers(t *testing.T) {
	t.Parallel()

	s := newTitlesProject(t)
	own := s.signer(jwa.ES256(), "own")

	// The project claims the platform's public keys as its own.
	var set struct{ Keys []json.RawMessage }
	_, text := files{t: t, root: s.URL}.send("GET", "/.well-known/jwks.json", "")
	if err := json.Unmarshal([]byte(text), &set); err != nil || len(set.Keys) == 0 {
		t.Fatalf("got %s: %v", text, err)
	}
	s.Post("/projects/"+s.Project+"/jwt-keys", string(set.Keys[0])).Want(201)
	service := own.sign(`{"role":"service_role"}`)
	eventually(t, "the new keys are known", func() bool {
		status, _ := s.rows(s.Project, "GET", "/titles", "", "Authorization: Bearer "+service)
		return status == 200
	})

	header, payload, _ := strings.Cut(s.Token, ".")
	payload, signature, _ := strings.Cut(payload, ".")
	claims, err := base64.RawURLEncoding.DecodeString(payload)
	if err != nil {
		t.Fatal(err)
	}

	head, err := base64.RawURLEncoding.DecodeString(header)
	if err != nil {
		t.Fatal(err)
	}

	secret := []byte(s.Get("/projects/" + s.Project + "/jwt-secret").Want(200).Get("secret").(string))
	var names struct{ Kid string }
	if err := json.Unmarshal(head, &names); err != nil {
		t.Fatal(err)
	}

	noSignature := compact(`{"alg":"none","typ":"at+jwt"}`, string(claims), "")
	foreignSignature := compact(`{"alg":"none","typ":"at+jwt","kid":"`+names.Kid+`"}`, string(claims), signature)
	bySecret := signed(t, jwa.HS256(), secret, string(claims), "typ", "at+jwt", "kid", names.Kid)
	manyAudiences := own.sign(`{"role":"service_role","aud":["authenticated","socle-platform"]}`)
	forged := signed(t, jwa.ES256(), own.private, string(claims), "kid", names.Kid, "typ", "at+jwt")
	asEndUser := signed(t, jwa.ES256(), own.private, `{"role":"authenticated","sub":"`+s.User+`"}`, "typ", "at+jwt")
	for name, c := range map[string]struct {
		token   string
		status  int
		headers []string
	}{
		"platform":                       {s.Token, 200, nil},
		"no algorithm":                   {noSignature, 401, nil},
		"no algorithm, platform's key":   {foreignSignature, 401, nil},
		"secret of the project":          {signed(t, jwa.HS256(), secret, string(claims), "typ", "at+jwt"), 401, nil},
		"secret, kid of the platform":    {bySecret, 401, nil},
		"key of the project":             {own.sign(string(claims), "typ", "at+jwt"), 401, nil},
		"key, kid of the platform":       {forged, 401, nil},
		"header of the platform":         {header + forged[strings.IndexByte(forged, '.'):], 401, nil},
		"audience among others":          {manyAudiences, 401, nil},
		"stranger, platform's key taken": {s.OtherUser().Token, 401, nil},
		"end user with a member's UUID":  {asEndUser, 403, nil}, // authenticated, without privileges
		"the same, as service":           {asEndUser, 400, []string{"X-Socle-As: service_role"}},
	} {
		headers := append([]string{"Authorization: Bearer " + c.token}, c.headers...)
		if status, text := s.rows(s.Project, "GET", "/titles", "", headers...); status != c.status {
			t.Errorf("%s: got %d %s, want %d", name, status, text, c.status)
		}
	}

	// The platform API takes no token of a project.
	for name, token := range map[string]string{
		"secret key": s.secret, "own key": own.sign(string(claims)),
		"secret":              signed(t, jwa.HS256(), secret, string(claims)),
		"kid of the platform": forged, "end user": asEndUser,
	} {
		caller := *s.API
		caller.Token = token
		if got := caller.Get("/projects/" + s.Project); got.Status != 401 {
			t.Errorf("%s: the platform API answers %d, want 401", name, got.Status)
		}
	}
}

// TestMembersLeave checks that a session and a membership that end are noticed.
func TestMembersLeave(t *testing.T) {
	t.Parallel()

	s := newTitlesProject(t)
	leaver, former := s.Member(4), s.Member(4)
	status := func(a *apitest.API) int {
		status, _ := s.rows(s.Project, "GET", "/titles", "", "Authorization: Bearer "+a.Token)
		return status
	}
	if status(leaver) != 200 || status(former) != 200 {
		t.Fatal("a developer reads no rows")
	}

	leaver.WithProject("").Post("/users/logout", "").Want(200)
	s.Delete("/organizations/" + s.Organization + "/members/" + former.User).Want(200)
	eventually(t, "the session is refused", func() bool { return status(leaver) == 401 })
	eventually(t, "the former member is refused", func() bool { return status(former) == 401 })

	s.Post("/projects/"+s.Project+"/pause", "").Want(200)
	for _, c := range []struct {
		who  *apitest.API
		want string
	}{{s.API, "The project is paused"}, {former, "not valid for this project"}} {
		if _, text := s.rows(s.Project, "GET", "/titles", "", "Authorization: Bearer "+c.who.Token, "X-Socle-As: user:"+
			c.who.User); !strings.Contains(text, c.want) {
			t.Errorf("got %s, want %s", text, c.want)
		}
	}
}
