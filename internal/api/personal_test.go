package api_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/socle-dev/socle/internal/api/apitest"
	"github.com/socle-dev/socle/internal/token"
)

// withToken returns a client with a new personal access token, limited to projects if any are
// given.
func withToken(t *testing.T, a *apitest.API, role int, projects ...string) *apitest.API {
	t.Helper()

	only := ""
	if len(projects) > 0 {
		only = `, "project_uuids": ["` + strings.Join(projects, `", "`) + `"]`
	}

	name := fmt.Sprintf("token %d of %d %d", role, len(projects), time.Now().UnixNano())
	other := *a
	other.Token = a.Post("/tokens",
		fmt.Sprintf(`{"name": %q, "role_id": %d, "expires_at": %q%s}`, name, role, tomorrow(), only)).Want(201).
		Metadata("token").(string)

	return &other
}

func TestTokens(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	r := a.Post("/tokens", `{"name": " deploy ", "role_id": 4, "expires_at": "`+tomorrow()+`"}`).Want(201).
		Content("name", "deploy").Content("roleId", 4).Content("projectUuids", nil).Content("lastUsedAt", nil)

	text := r.Metadata("token").(string)
	if !token.IsPersonalToken(text) || !strings.HasPrefix(text, r.Get("hint").(string)) ||
		r.Header.Get("Cache-Control") != "no-store" {
		t.Errorf("got token %q, hint %v, headers %v", text, r.Get("hint"), r.Header)
	}

	bearer := *a
	bearer.Token = text
	bearer.Get("/users/me").Want(200).Content("uuid", a.User)
	bearer.Get("/projects").Want(200).Content("0.uuid", a.Project)
	bearer.CreateTable("made")

	first := a.Get("/tokens").Want(200).Get("0.lastUsedAt")
	if first == nil {
		t.Error("lastUsedAt is not set")
	}

	bearer.Get("/tables").Want(200)
	a.Get("/tokens").Want(200).Content("0.lastUsedAt", first) // not updated on each request
	a.Exec(`update platform.tokens set last_used_at = now() - interval '11 minutes' where user_uuid = $1`, a.User)
	bearer.Get("/tables").Want(200)

	if repeated := a.Get("/tokens").Want(200).Get("0.lastUsedAt"); repeated.(string) <= first.(string) {
		t.Errorf("got lastUsedAt %v, later %v", first, repeated)
	}

	list := a.Get("/tokens?sort=name").Want(200)
	if strings.Contains(string(list.Body), text) || strings.Contains(a.Log.String(), text) {
		t.Error("the token appears in the list or the log")
	}

	a.Exec(`update platform.tokens set expires_at = now() - interval '1 second' where user_uuid = $1`, a.User)
	bearer.Get("/tables").Want(401).Code("token_expired")
	a.Exec(`update platform.tokens set expires_at = now() + interval '1 hour' where user_uuid = $1`, a.User)
	bearer.Get("/tables").Want(200)
	a.Exec(`update platform.users set status = 'suspended' where uuid = $1`, a.User)
	bearer.Get("/tables").Want(401)
	a.Exec(`update platform.users set status = 'active' where uuid = $1`, a.User)
	a.Delete("/tokens/"+r.Get("uuid").(string)).Want(200).Content("name", "deploy")
	bearer.Get("/tables").Want(401).Code("invalid_token")
	a.Delete("/tokens/" + r.Get("uuid").(string)).Want(404)

	outsider := a.SignUp("outsider")
	theirs := outsider.Create("/tokens", `{"name": "deploy", "role_id": 4, "expires_at": "`+tomorrow()+`"}`)
	wantEqual(t, a.Delete("/tokens/"+theirs).Want(404), a.Delete("/tokens/"+apitest.MissingUUID))
}

func TestBadTokens(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	ends := `, "expires_at": "` + tomorrow() + `"`
	theirs := a.OtherUser().CreateProject("theirs")
	for body, field := range map[string]string{
		`{"role_id": 4` + ends + `}`:                                             "name",
		`{"name": " ", "role_id": 4` + ends + `}`:                                "name",
		`{"name": "` + strings.Repeat("x", 101) + `", "role_id": 4` + ends + `}`: "name",
		`{"name": "x"` + ends + `}`:                                              "role_id",
		`{"name": "x", "role_id": 0` + ends + `}`:                                "role_id",
		`{"name": "x", "role_id": 6` + ends + `}`:                                "role_id",
		`{"name": "x", "role_id": "4"` + ends + `}`:                              "role_id",
		`{"name": "x", "role_id": 4}`:                                            "expires_at",
		`{"name": "x", "role_id": 4, "expires_at": null}`:                        "expires_at",
		`{"name": "x", "role_id": 4, "expires_at": "tomorrow"}`:                  "expires_at",
		`{"name": "x", "role_id": 4, "expires_at": "2020-01-01T00:00:00Z"}`:      "expires_at",
		`{"name": "x", "role_id": 4, "expires_at": "2999-01-01T00:00:00Z"}`:      "expires_at",
		`{"name": "x", "role_id": 4, "project_uuids": []` + ends +
			`}`: "project_uuids",
		`{"name": "x", "role_id": 4, "project_uuids": null` + ends +
			`}`: "project_uuids",
		`{"name": "x", "role_id": 4, "project_uuids": ["x"]` + ends +
			`}`: "project_uuids.0",
		`{"name": "x", "role_id": 4, "project_uuids": ["` + apitest.MissingUUID + `"]` + ends +
			`}`: "project_uuids",
		`{"name": "x", "role_id": 4, "project_uuids": ["` + a.Project + `", "` + theirs + `"]` + ends +
			`}`: "project_uuids",
	} {
		a.Post("/tokens", body).Want(422).Field(field)
	}

	a.Post("/tokens", `{`).Want(400)
	a.Delete("/tokens/x").Want(400)
	a.Get("/tokens?sort=hash").Want(400).Field("sort")
	a.Post("/tokens", `{"name": "taken", "role_id": 4`+ends+`}`).Want(201)
	a.Post("/tokens", `{"name": "Taken", "role_id": 4`+ends+`}`).Want(409).Field("name")

	got := concurrently(8, func(int) *apitest.Reply {
		return a.Post("/tokens", `{"name": "race", "role_id": 4`+ends+`}`)
	})
	wantCounts(t, got, map[int]int{201: 1, 409: 7})
	a.Exec(`insert into platform.tokens (uuid, user_uuid, name, hint, hash, role, expires_at)
		select gen_random_uuid(), $1, 'token ' || n, '', gen_random_uuid()::text::bytea, 4, now() from generate_series(1, 97) n`,
		a.User)

	wantCounts(t, concurrently(5, func(i int) *apitest.Reply {
		return a.Post("/tokens", fmt.Sprintf(`{"name": "late %d", "role_id": 4%s}`, i, ends))
	}), map[int]int{201: 1, 422: 4})

	a.Post("/tokens", `{"name": "one more", "role_id": 4`+ends+`}`).Want(422).Code("quota_exceeded")

	// Malformed tokens, which need no query, and unknown ones are refused.
	bearer := withToken(t, a.SignUp("other"), 4)
	text := bearer.Token
	for name, bad := range map[string]string{"cut": text[:len(text)-1], "longer": text + "a",
		"mistyped": strings.Replace(text, text[12:14], "zz", 1), "upper case": strings.ToUpper(text),
		"a key": token.NewAPIKey(token.SecretPrefix), "invented": token.NewAPIKey(token.PersonalPrefix),
		"prefix": token.PersonalPrefix} {
		bearer.Token = bad
		if r := bearer.Get("/users/me"); r.Status != 401 || r.Metadata("code") != "invalid_token" {
			t.Errorf("%s: got %d %s", name, r.Status, r.Body)
		}
	}
}

// TestTokensNotForAccounts checks that no account operation accepts a personal access token of
// any role.
func TestTokensNotForAccounts(t *testing.T) {
	t.Parallel()

	administrator := apitest.Users(t).SignUp("first")
	u := withToken(t, administrator, 1)
	before := accounts(t, administrator)
	taken := []string{"getAccount", "createProject", "listProjects"}
	refused := 0
	for _, o := range operations(t, administrator) {
		if (rights[o.id].minRole != signedIn && o.id != "updateUser") || slices.Contains(taken, o.id) {
			continue
		}

		names := map[string]string{
			"n": "1", "tomorrow": tomorrow(), "userUUID": administrator.User,
			"sessionUUID": apitest.MissingUUID, "tokenUUID": apitest.MissingUUID,
		}
		if r := o.send(u, names, rights[o.id].body); r.Status != o.first(403, 401) ||
			r.Metadata("code") != "token_not_allowed" {
			t.Errorf("%s with a token: got %d %s", o.id, r.Status, r.Body)
		}

		refused++
	}

	if refused < 10 {
		t.Errorf("got %d operations", refused)
	}

	unchanged(t, administrator, before)
	administrator.Get("/users/me").Want(200)
}

// TestTokenRoles checks that a token has the lower of its own role and its user's role, in its
// projects only.
func TestTokenRoles(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	developer := a.Member(4)

	table := func(u *apitest.API) int {
		return u.Post("/tables",
			`{"name": "t`+fmt.Sprint(time.Now().UnixNano())+`", "columns": [{"name": "id", "type": "integer"}]}`).Status
	}
	for _, tt := range []struct {
		who   *apitest.API
		role  int
		table int // status of createTable
		keys  int // status of listKeys, which requires an admin
	}{
		{a, 5, 403, 403}, {a, 4, 201, 403}, {a, 3, 201, 200}, {a, 2, 201, 200}, {a, 1, 201, 200},
		{developer, 5, 403, 403}, {developer, 4, 201, 403}, {developer, 2, 201, 403}, {developer, 1, 201, 403},
	} {
		u := withToken(t, tt.who, tt.role)
		if got := table(u); got != tt.table {
			t.Errorf("role %d: createTable: got %d, want %d", tt.role, got, tt.table)
		}

		if got := u.Get("/projects/" + a.Project + "/keys").Status; got != tt.keys {
			t.Errorf("role %d: listKeys: got %d, want %d", tt.role, got, tt.keys)
		}

		u.Get("/tables").Want(200)
	}

	withToken(t, a, 4).Post("/projects", `{"name": "refused"}`).Want(403)
	withToken(t, a, 3).Post("/projects", `{"name": "made"}`).Want(201)

	other := a.CreateProject("other")
	one := withToken(t, a, 2, a.Project)
	one.Get("/tables").Want(200)
	one.WithProject(other).Get("/tables").Want(401).Code("unknown_project")
	one.Get("/projects/" + other).Want(404)

	if list := one.Get("/projects").Want(200); len(list.Get("").([]any)) != 1 || list.Get("0.uuid") != a.Project {
		t.Errorf("a token of one project: got list %s", list.Body)
	}

	one.Post("/projects", `{"name": "refused"}`).Want(403).Code("token_not_allowed")
	// Changes of the user's rights apply to the token at once.
	u := withToken(t, developer, 2)
	a.Exec(`update platform.members set role = 5 where user_uuid = $1 and organization_uuid = $2`, developer.User,
		a.Organization)

	if got := table(u); got != 403 {
		t.Errorf("after the user's role was lowered: got %d", got)
	}

	a.Exec(`delete from platform.members where user_uuid = $1 and organization_uuid = $2`, developer.User,
		a.Organization)

	u.Get("/tables").Want(401)

	// The token of an administrator needs the administrator role.
	administrator := a.Administrator()
	administrator.Project = a.Project
	if got := table(withToken(t, administrator, 5)); got != 403 {
		t.Errorf("an administrator's token for viewers: got %d", got)
	}

	if got := table(withToken(t, administrator, 1, a.Project)); got != 201 {
		t.Errorf("an administrator's token: got %d", got)
	}

	withToken(t, administrator, 1).Get("/projects/" + other).Want(200)
	withToken(t, administrator, 1, a.Project).Get("/projects/" + other).Want(404)
}
