package api_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/socle-dev/socle/internal/api/apitest"
	"github.com/socle-dev/socle/internal/config"
)

func TestListUsers(t *testing.T) {
	t.Parallel()

	a := apitest.Empty(t)
	administrator := a.SignUp("first")
	ann, bob := a.SignUp("Ann"), a.SignUp("bob")

	search := func(query string) []string {
		t.Helper()

		return values(administrator.Get("/admin/users?"+query).Want(200), "uuid")
	}

	for query, want := range map[string][]string{
		"search=ANN":                {ann.User},
		"search=ann-2%40EXAMPLE":    {ann.User},
		"search=" + bob.User:        {bob.User},
		"search=%25":                {}, // not a wildcard
		"search=_":                  {},
		"search=%20bob%20":          {bob.User},
		"sort=username&order=desc":  {administrator.User, bob.User, ann.User},
		"sort=email&limit=1&page=2": {bob.User},
		"status=suspended":          {},
		"status=active&search=.com": {administrator.User, ann.User, bob.User},
	} {
		if got := search(query); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: got %v, want %v", query, got, want)
		}
	}

	administrator.Get("/admin/users/"+ann.User).Want(200).Content("email", ann.Email).Content("roleId", 2)
	administrator.Get("/admin/users/" + apitest.MissingUUID).Want(404)
	administrator.Get("/admin/users/ann").Want(400)
	administrator.Get("/admin/users?status=gone").Want(400)
	administrator.Get("/admin/users?search=" + strings.Repeat("x", 255)).Want(400)
	ann.Get("/admin/users").Want(403)
	ann.Get("/admin/users/" + ann.User).Want(403)
	a.Get("/admin/users").Want(401)

	for _, r := range []*apitest.Reply{
		administrator.Get("/admin/users"), administrator.Get("/admin/users/" + ann.User),
	} {
		if strings.Contains(string(r.Body), "argon") || strings.Contains(string(r.Body), "ash\"") {
			t.Errorf("a response contains a password hash: %s", r.Body)
		}
	}
}

func TestUpdateStanding(t *testing.T) {
	t.Parallel()

	a := apitest.Users(t)
	administrator, user := a.SignUp("first"), a.SignUp("user")
	path := "/admin/users/" + user.User
	administrator.Put(path, `{"status": "suspended"}`).Want(200).Content("status", "suspended")
	user.Get("/organizations").Want(401).Code("invalid_token") // on the next request
	a.Post("/users/login", `{"email": "`+user.Email+`", "password": "`+apitest.Password+`"}`).Want(401)
	administrator.Put(path, `{"status": "active"}`).Want(200).Content("status", "active")
	user.Get("/organizations").Want(401) // earlier sessions stay ended

	r := a.Post("/users/login", `{"email": "`+user.Email+`", "password": "`+apitest.Password+`"}`).Want(200)
	user.Token = r.Metadata("token").(string)

	user.Put(path, `{"is_administrator": true}`).Want(403)
	administrator.Send("PUT", path, `{"status": "suspended"}`, `If-Match: "old"`).Want(412)
	administrator.Put(path, `{"is_administrator": true}`).Want(200).Content("roleId", 1)
	user.Get("/admin/users").Want(200)
	user.Put("/admin/users/"+administrator.User, `{"status": "suspended", "is_administrator": true}`).Want(200)
	administrator.Get("/admin/users").Want(401)
	user.Put(path, `{"is_administrator": false}`).Want(409).Code("last_administrator")
	user.Put(path, `{"status": "suspended"}`).Want(409).Code("last_administrator")
	user.Put(path, `{"bio": "x"}`).Want(422).Code("nothing_to_change")
	user.Put(path, `{"status": "gone"}`).Want(422).Field("status")
	user.Put(path, `{"is_administrator": "yes"}`).Want(422).Field("is_administrator")
	user.Put("/admin/users/"+apitest.MissingUUID, `{"status": "gone"}`).Want(404)
	user.Put("/admin/users/"+apitest.MissingUUID, `{}`).Want(404)
	user.Put("/admin/users/x", `{"status": "active"}`).Want(400)
	user.Put(path, `{`).Want(400)
}

// TestAdministratorsConcurrently checks that one administrator remains when all suspend each other
// and step down concurrently.
func TestAdministratorsConcurrently(t *testing.T) {
	t.Parallel()

	a := apitest.Users(t)
	all := []*apitest.API{a.SignUp("first")}
	for range 19 {
		next := a.SignUp("next")
		a.Exec(`update platform.users set is_administrator = true where uuid = $1`, next.User)
		all = append(all, next)
	}

	got := concurrently(20, func(i int) *apitest.Reply {
		if i%2 == 0 {
			return all[i].Put("/admin/users/"+all[(i+1)%20].User, `{"status": "suspended"}`)
		}
		return all[i].Put("/admin/users/"+all[i].User, `{"is_administrator": false}`)
	})

	wantStatuses(t, got, 200, 401, 403, 409)

	// The last two against each other, until one remains.
	for range 20 {
		got := concurrently(2, func(i int) *apitest.Reply {
			return all[i*2].Put("/admin/users/"+all[2-i*2].User, `{"status": "suspended"}`)
		})
		wantStatuses(t, got, 200, 401, 403, 409)
	}

	remaining := apitest.Value[int](a,
		`select count(*) from platform.users where is_administrator and status = 'active'`)
	if remaining < 1 {
		t.Errorf("got %d active administrators after statuses %v", remaining, got)
	}
}

func TestSettings(t *testing.T) {
	t.Parallel()

	a := apitest.Users(t)
	administrator := a.SignUp("first")
	set := func(name, value string) *apitest.Reply {
		return administrator.Put("/admin/settings/"+name, `{"value": `+value+`}`)
	}

	administrator.Get("/admin/settings").Want(200).Content("0.name", "sign_up").Content("0.value", true).
		Content("0.default", true).
		Content("0.updatedAt", nil).Content("1.type", "integer").Content("1.minimum", 1)
	set("organizations_per_user", "7").Want(200).Content("value", 7).Content("default", 20).
		Content("updatedBy", administrator.User)
	administrator.Get("/admin/settings").Want(200).Content("1.value", 7)
	administrator.Delete("/admin/settings/organizations_per_user").Want(200).Content("value", 20).
		Content("updatedBy", nil)

	administrator.Delete("/admin/settings/organizations_per_user").Want(200)

	for name, values := range map[string][]string{
		"sign_up": {"1", `"true"`, "null", "[]", "{}", `"closed"`},
		"organizations_per_user": {"0", "-1", "100001", "1.0", "1e3", `"7"`, "true", "null",
			"9223372036854775808", "[7]"},
	} {
		for _, v := range values {
			set(name, v).Want(422).Field("value")
		}
	}

	administrator.Put("/admin/settings/sign_up", `{}`).Want(422).Field("value")
	administrator.Put("/admin/settings/nothing", `{}`).Want(404)
	administrator.Put("/admin/settings/sign_up", `{`).Want(400)
	set("nothing", "1").Want(404)
	set(strings.Repeat("x", 101), "1").Want(400)
	administrator.Delete("/admin/settings/nothing").Want(404)
	administrator.Delete("/admin/settings/" + strings.Repeat("x", 101)).Want(400)

	wantCounts(t, concurrently(20, func(i int) *apitest.Reply {
		return set("organizations_per_user", fmt.Sprint(i+1))
	}),
		map[int]int{200: 20})
}

// TestInvalidSettings checks that a setting of another release, or an invalid one, affects
// only itself.
func TestInvalidSettings(t *testing.T) {
	t.Parallel()

	a := apitest.New(t)
	administrator := a.SignUp("second")
	a.Exec(`update platform.users set is_administrator = true where uuid = $1`, administrator.User)
	a.Exec(`insert into platform.settings (name, value, updated_by) values ('of_tomorrow', '{"a": 1}', gen_random_uuid()),
		('max_upload_size', '"large"', gen_random_uuid()), ('sign_up', '[true]', gen_random_uuid()), ('organizations_per_user', '1', gen_random_uuid())`)

	administrator.Get("/admin/settings").Want(200).Content("0.value", true).Content("0.updatedBy", nil).
		Content("1.value", 1)

	a.SignUp("another")

	c := a.Create("/containers", `{"name": "files"}`)
	upload(a, c, "a.txt", "hello").Want(201)
	a.Post("/organizations", `{"name": "more"}`).Want(422).Code("quota_exceeded")
	administrator.Put("/admin/settings/max_upload_size", `{"value": 4}`).Want(200)
	upload(a, c, "b.txt", "hello").Want(413).Code("too_large").Field("file")
	upload(a, c, "b.txt", "four").Want(201)
}

// TestSignUpSetting checks that the setting overrides the environment and applies to the next
// request.
func TestSignUpSetting(t *testing.T) {
	t.Parallel()

	a := apitest.Empty(t, func(c *config.Config) { c.SignUp = false })
	administrator := a.SignUp("first")
	body := func(name string) string {
		return fmt.Sprintf(`{"username": %q, "email": "%s@example.com", "password": %q}`, name, name, apitest.Password)
	}

	a.Post("/users", body("one")).Want(400).Code("sign_up_closed")
	administrator.Get("/admin/settings").Want(200).Content("0.value", false).Content("0.default", false)
	administrator.Put("/admin/settings/sign_up", `{"value": true}`).Want(200).Content("default", false)
	a.Post("/users", body("one")).Want(201)
	administrator.Delete("/admin/settings/sign_up").Want(200).Content("value", false)
	a.Post("/users", body("two")).Want(400).Code("sign_up_closed")
}

func TestProjectsPerOrganization(t *testing.T) {
	t.Parallel()

	a := apitest.Users(t)
	administrator, user := a.SignUp("first"), a.SignUp("user")
	administrator.Put("/admin/settings/projects_per_organization", `{"value": 1}`).Want(200)
	user.CreateProject("one")
	user.Post("/projects", `{"name": "two"}`).Want(422).Code("quota_exceeded")
}

// TestProjectsPerUser checks that projects count to the owner of longest standing, over all
// organizations, and that further owners do not multiply the limit.
func TestProjectsPerUser(t *testing.T) {
	t.Parallel()

	a := apitest.Users(t)
	administrator, user, friend := a.SignUp("first"), a.SignUp("user"), a.SignUp("friend")
	administrator.Put("/admin/settings/projects_per_user", `{"value": 2}`).Want(200)

	second := user.Post("/organizations", `{"name": "second"}`).Want(201).Get("uuid").(string)
	a.Exec(`insert into platform.members (organization_uuid, user_uuid, role) values ($1, $2, 2)`, second, friend.User)

	create := func(by *apitest.API, organization, name string) *apitest.Reply {
		return by.Post("/projects", fmt.Sprintf(`{"name": %q, "organization_uuid": %q}`, name, organization))
	}

	user.CreateProject("one")
	wantCounts(t, concurrently(4, func(i int) *apitest.Reply {
		return create([]*apitest.API{user, friend}[i%2], second, fmt.Sprint(i))
	}), map[int]int{201: 1, 422: 3})

	create(user, second, "three").Want(422).Code("quota_exceeded")
	friend.CreateProject("of my own")

	a.Exec(`update platform.members set role = 3 where organization_uuid = $1 and user_uuid = $2`, second, user.User)
	user.CreateProject("now that the organization counts to the friend")
	create(friend, second, "three").Want(422).Code("quota_exceeded")

	for i := range 3 {
		administrator.CreateProject(fmt.Sprint(i))
	}
}

// TestRetention checks that the retention settings apply to all expiring data.
func TestRetention(t *testing.T) {
	t.Parallel()

	a := apitest.New(t)
	a.Exec(`update platform.users set is_administrator = true where uuid = $1`, a.User)
	set := func(name, value string) *apitest.Reply {
		return a.Put("/admin/settings/"+name, `{"value": `+value+`}`)
	}

	for _, name := range []string{"deleted_project_days", "request_days"} {
		for _, v := range []string{"0", "3651", "1.5", `"7"`, "null"} {
			set(name, v).Want(422).Field("value")
		}
	}

	set("request_days", "1").Want(200).Content("default", 7)

	for _, day := range []time.Time{time.Now().UTC().AddDate(0, 0, -3), time.Now().UTC().AddDate(0, 0, -1)} {
		a.Exec(fmt.Sprintf(`create table platform_requests.day_%s partition of platform.requests for values from ('%s 00:00+00') to ('%s 00:00+00')`,
			day.Format("20060102"), day.Format(time.DateOnly), day.AddDate(0, 0, 1).Format(time.DateOnly)))
	}

	days := func() int {
		return apitest.Value[int](a, `select count(*) from pg_inherits where inhparent = 'platform.requests'::regclass`)
	}
	before := days()

	if err := a.Server.Services().Queue.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}

	if got := days(); got != before-1 {
		t.Errorf("got %d days of %d, want one less", got, before)
	}

	set("deleted_project_days", "30").Want(200).Content("default", 7)

	for ago, want := range map[string]int{"29 days": 200, "31 days": 404} {
		p := a.CreateProject("kept " + ago)
		path := "/projects/" + p
		a.Delete(path).Want(200)
		a.Exec(`update platform.projects set deleted_at = now() - $1::interval where uuid = $2`, ago, p)
		a.RunMaintenance()
		a.Post(path+"/restore", "").Want(want)
	}
}

func TestListEnvironment(t *testing.T) {
	t.Parallel()

	a := apitest.SharedUser(t)
	r := a.Administrator().Get("/admin/environment").Want(200)
	shown := map[string]string{}
	for i, name := range values(r, "name") {
		shown[name] = values(r, "value")[i]
	}

	if shown["SOCLE_RATE_LIMIT"] != "off" || shown["SOCLE_DATABASE_URL"] != "[redacted]" {
		t.Errorf("got %v", shown)
	}
	if strings.Contains(string(r.Body), string(a.Config.DatabaseURL)) {
		t.Errorf("a secret is listed: %s", r.Body)
	}

	a.Get("/admin/environment?x=1").Want(403)
}

func TestListParts(t *testing.T) {
	t.Parallel()

	a := apitest.Users(t)
	administrator := a.SignUp("first")
	r := administrator.Get("/health/parts").Want(200)
	for i, name := range values(r, "name") {
		got, want := values(r, "status")[i], "ok"
		switch name {
		case "mail":
			want = "degraded" // no mail server is configured
		case "storage":
			want = got // depends on the disk of the machine
		}

		if got != want {
			t.Errorf("%s is %s, want %s: %s", name, got, want, r.Body)
		}
	}

	a.Exec(`update platform.signing_keys set created_at = now() - interval '400 days'`)
	a.Exec(`insert into river.river_job (state, kind, args, max_attempts, finalized_at) values ('discarded', 'backup', '{}', 1, now())`)
	r = administrator.Get("/health/parts").Want(200)
	statuses := map[string]string{}
	for i, name := range values(r, "name") {
		statuses[name] = values(r, "status")[i]
	}

	if statuses["signingKeys"] != "degraded" || statuses["queue"] != "degraded" || r.Metadata("status") != "degraded" {
		t.Errorf("got parts %v with an old key and a failed job: %s", statuses, r.Body)
	}

	a.Exec(`alter table river.river_job rename to gone`)
	r = administrator.Get("/health/parts").Want(200)
	if r.Metadata("status") != "down" || strings.Contains(string(r.Body), "river") {
		t.Errorf("got %s", r.Body)
	}

	a.Exec(`alter table river.gone rename to river_job`)
	a.SignUp("user").Get("/health/parts").Want(403)
}
