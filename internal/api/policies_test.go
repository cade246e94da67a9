package api_test

import (
	"fmt"
	"testing"

	"github.com/socle-dev/socle/internal/api/apitest"
)

func TestCreatePolicy(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	a.CreateTable("orders", "owner uuid")
	a.CreateTable("members")

	const path = "/tables/orders/policies"
	a.Post(path,
		`{"name": "read", "command": "select", "roles": ["anon", "authenticated"], "using": "exists (select from members m where m.id = orders.id)"}`).Want(201).
		Content("command", "select").Content("permissive", true).Content("withCheck", nil).Content("roles.0", "anon")
	a.Post(path, `{"name": "add", "command": "insert", "roles": ["authenticated"], "with_check": "id > 0"}`).Want(201).
		Content("using", nil).Content("withCheck", "(id > 0)")

	for _, body := range []string{
		`{"name": "open", "roles": ["anon"], "using": "true"`,
		`{"name": "open", "command": "update", "roles": ["authenticated", "public"], "using": "true"`,
		`{"name": "open", "command": "insert", "roles": ["anon"], "with_check": "true"`,
		`{"name": "open", "command": "delete", "roles": ["public"], "using": "true"`,
	} {
		a.Post(path, body+`}`).Want(422).Code("confirmation_required").Field("confirm")
		a.Post(path, body+`, "confirm": true}`).Want(201)
		a.Delete(path + "/open").Want(200)
	}

	a.Post(path, `{"name": "narrow", "roles": ["public"], "permissive": false, "using": "id < 100"}`).Want(201).
		Content("permissive", false)

	a.Post(path, `{"name": "read", "roles": ["authenticated"], "using": "true"}`).Want(409).
		Code("already_exists").Field("name")

	if got := fmt.Sprint(values(a.Get(path).Want(200), "name")); got != "[add narrow read]" {
		t.Errorf("got %s", got)
	}

	before := a.Get(path).Body

	for _, text := range hostileExpressions {
		a.Post(path, `{"name": "x", "roles": ["authenticated"], "using": `+quoted(text)+`}`).Want(422).Field("using")
		a.Post(path, `{"name": "x", "roles": ["authenticated"], "command": "insert", "with_check": `+quoted(text)+`}`).
			Want(422).Field("with_check")
		a.Put(path+"/narrow", `{"using": `+quoted(text)+`, "confirm": true}`).Want(422).Field("using")
	}

	r := a.Post(path, `{"name": "x", "roles": ["authenticated"], "using": "true\n and nope"}`).Want(422).
		Code("unknown_name").Field("using")
	if got := fmt.Sprint(r.Metadata("postgres.message"), r.Metadata("postgres.sqlstate"),
		r.Metadata("postgres.position"), r.Metadata("postgres.line"),
		r.Metadata("postgres.column")); got != `column "nope" does not exist427031126` {
		t.Errorf("got %s", got)
	}

	for body, field := range map[string]string{
		`{"roles": ["anon"], "using": "true"}`:                                                                  "name",
		`{"name": "x;y", "roles": ["authenticated"], "using": "true"}`:                                          "name",
		`{"name": "x", "using": "true"}`:                                                                        "roles",
		`{"name": "x", "roles": [], "using": "true"}`:                                                           "roles",
		`{"name": "x", "roles": ["postgres"], "using": "true"}`:                                                 "roles.0",
		`{"name": "x", "roles": ["authenticated"], "command": "truncate", "using": "true"}`:                     "command",
		`{"name": "x", "roles": ["authenticated"], "command": "insert", "using": "true"}`:                       "using",
		`{"name": "x", "roles": ["authenticated"], "command": "insert"}`:                                        "with_check",
		`{"name": "x", "roles": ["authenticated"], "command": "select", "using": "true", "with_check": "true"}`: "with_check",
	} {
		a.Post(path, body).Want(422).Field(field)
	}

	if after := a.Get(path).Body; string(after) != string(before) {
		t.Errorf("a refused request changed %s into %s", before, after)
	}

	a.Post("/tables/missing/policies", `{}`).Want(404)
	a.Post("/tables/auth.users/policies", `{}`).Want(400)
	a.Get("/tables/auth.users/policies").Want(400)
}

func TestUpdatePolicy(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	a.CreateTable("orders")
	asOwner(t, a, `create policy "own; drop" on public.orders to authenticated using (id > 0)`)

	const path = "/tables/orders/policies/own"
	a.Put("/tables/orders/policies/own;%20drop", `{"name": "own"}`).Want(200).Content("name", "own").
		Content("using", "(id > 0)")

	a.Put(path, `{"roles": ["anon"]}`).Want(422).Field("confirm")
	a.Put(path, `{"roles": ["anon"], "confirm": true}`).Want(200).Content("roles.0", "anon")
	a.Put(path, `{"using": "true"}`).Want(422).Field("confirm")
	a.Put(path, `{"roles": ["authenticated"], "using": "id > 1", "with_check": "id > 2"}`).Want(200).
		Content("using", "(id > 1)").Content("withCheck", "(id > 2)")

	a.Put(path, `{}`).Want(422)
	a.Put(path, `{"name": "x;"}`).Want(422).Field("name")
	a.Put("/tables/orders/policies/nope", `{"using": "true"}`).Want(404)
	a.Put("/tables/auth.users/policies/nope", `{"using": "true"}`).Want(400)
	a.Post("/tables/orders/policies", `{"name": "other", "roles": ["authenticated"], "using": "true"}`).Want(201)
	a.Put(path, `{"name": "other"}`).Want(409).Field("name")
	a.Delete("/tables/orders/policies/nope").Want(404)
	a.Delete("/tables/auth.users/policies/nope").Want(400)

	counts := concurrently(10, func(int) *apitest.Reply { return a.Delete(path) })
	wantCounts(t, counts, map[int]int{200: 1, 404: 9})
}

func TestUpdateGrants(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	asOwner(t, a, "create schema app; create table app.orders (id serial primary key)")

	const path = "/tables/app.orders/grants"
	r := a.Get(path).Want(200)
	if got := fmt.Sprint(values(r, "role"), values(r, "privileges")); got !=
		"[public anon authenticated service_role] [[] [] [] [delete insert references select trigger truncate update]]" {
		t.Errorf("got %s", got)
	}

	a.Put(path, `{"grants": [{"role": "anon", "privileges": ["select", "insert"]}]}`).Want(422).
		Code("confirmation_required").Field("confirm")
	a.Put(path, `{"grants": [{"role": "public", "privileges": ["delete"]}]}`).Want(422).Field("confirm")
	r = a.Put(path,
		`{"grants": [{"role": "anon", "privileges": ["select", "insert"]}, {"role": "authenticated", "privileges": ["update", "insert"]}], "confirm": true}`).Want(200)
	if got := fmt.Sprint(values(r, "privileges")); got !=
		"[[] [insert select] [insert update] [delete insert references select trigger truncate update]]" {
		t.Errorf("got %s", got)
	}

	execute(t, a,
		`alter table app.orders disable row level security; set role anon; insert into app.orders default values`)

	r = a.Put(path,
		`{"grants": [{"role": "anon", "privileges": ["select"]}, {"role": "service_role", "privileges": ["truncate"]}]}`).Want(200)
	if got := fmt.Sprint(values(r, "privileges")); got != "[[] [select] [insert update] [truncate]]" {
		t.Errorf("got %s", got)
	}

	r = a.Put(path, `{"grants": [{"role": "anon", "privileges": []}]}`).Want(200)
	if got := fmt.Sprint(values(r, "privileges")); got != "[[] [] [insert update] [truncate]]" {
		t.Errorf("got %s", got)
	}

	for body, field := range map[string]string{
		`{}`:             "grants",
		`{"grants": []}`: "grants",
		`{"grants": [{"role": "postgres", "privileges": []}]}`:                                 "grants.0.role",
		`{"grants": [{"role": "anon"}]}`:                                                       "grants.0.privileges",
		`{"grants": [{"role": "anon", "privileges": ["select; drop table x"]}]}`:               "grants.0.privileges.0",
		`{"grants": [{"role": "anon", "privileges": ["truncate"]}], "confirm": true}`:          "grants.0.privileges.0",
		`{"grants": [{"role": "anon", "privileges": []}, {"role": "anon", "privileges": []}]}`: "grants.1.role",
		`{"grants": [{"role": "anon", "privileges": []}], "confirm": "yes"}`:                   "confirm",
	} {
		a.Put(path, body).Want(422).Field(field)
	}

	a.Put("/tables/missing/grants", `{}`).Want(404)
	a.Put("/tables/auth.users/grants", `{}`).Want(400)
	a.Get("/tables/auth.users/grants").Want(400)
}

// TestUpdateGrantsConcurrently grants privileges on two tables of a schema without the usage
// privilege for the role.
func TestUpdateGrantsConcurrently(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	asOwner(t, a,
		"create schema app; create table app.t0 (); create table app.t1 (); create table app.t2 (); create table app.t3 ()")

	counts := concurrently(8, func(i int) *apitest.Reply {
		return a.Put(fmt.Sprintf("/tables/app.t%d/grants", i%4),
			`{"grants": [{"role": "anon", "privileges": ["select"]}]}`)
	})

	wantCounts(t, counts, map[int]int{200: 8})
}

func TestUpdateDefaultPrivileges(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	path := "/projects/" + a.Project + "/default-privileges"
	a.Get(path).Want(200).Content("mode", "closed")

	for body, field := range map[string]string{
		`{}`:                                     "mode",
		`{"mode": "open"}`:                       "mode",
		`{"mode": "closed", "existing": "true"}`: "existing",
	} {
		a.Put(path, body).Want(422).Field(field)
	}

	a.Put(path, `{"mode": `).Want(400)
	a.Get("/projects/x/default-privileges").Want(400)
	a.Get(path).Want(200).Content("mode", "closed")
}
