package rest

import (
	"net/http"
	"strings"
	"testing"
)

// TestContract compares responses with those that clients of the contract expect.
func TestContract(t *testing.T) {
	t.Parallel()

	a := newAPI(t, `
		create type point_2d as (x int, y int);
		create function point() returns point_2d language sql stable as 'select row(10, 5)::point_2d';
		create function two(out a int, out b text) language sql stable as 'select 1, null::text';
		create function project(n int) returns projects language sql stable as 'select * from projects where id = n';
		create function some_record(n int) returns record language sql stable as 'select 1 as one, n as n';
		create function some_records() returns setof record language sql stable as 'select 1 as one union all select 2';
		create function joined(variadic v text[]) returns text language sql immutable as 'select array_to_string(v, '','')';
		create function shout(projects) returns text language sql stable as 'select upper($1.name)';
		create view all_projects as select c.id, p.name from projects p join clients c on c.id = p.client_id;
		create function first_project(clients) returns setof projects rows 1 language sql stable as 'select * from projects where client_id = $1.id order by id';
		grant select on all_projects to authenticated`)

	form := []string{"Content-Type", "application/x-www-form-urlencoded"}
	for _, test := range []struct {
		method, path, body string
		headers            []string
		want               string
	}{
		{"GET", "/rpc/point", "", nil, `{"x":10,"y":5}`},
		{"POST", "/rpc/point", "{}", nil, `{"x":10,"y":5}`},
		{"GET", "/rpc/point?select=y", "", nil, `{"y":5}`},
		{"GET", "/rpc/point?x=eq.9", "", nil, ``},
		{"GET", "/rpc/two", "", nil, `{"a":1,"b":null}`},
		{"GET", "/rpc/two", "", []string{"Accept", "application/vnd.pgrst.array+json;nulls=stripped"}, `{"a":1}`},
		{"GET", "/rpc/project?n=1&select=id,clients(name)", "", nil, `{"id":1,"clients":{"name":"Ada"}}`},
		{"GET", "/rpc/projects_of?client=1&select=id", "", nil, "[{\"id\":1}, \n {\"id\":2}]"},
		{"GET", "/rpc/projects_of?client=1&select=shout&shout=eq.LINUX", "", nil, `[{"shout":"LINUX"}]`},
		{"POST", "/rpc/some_record", `{"n":2}`, nil, `{"one":1,"n":2}`},
		{"GET", "/rpc/some_record?n=3", "", nil, `{"one":1,"n":3}`},
		{"GET", "/rpc/some_records", "", nil, "[{\"one\":1}, \n {\"one\":2}]"},
		{"POST", "/rpc/joined", "v=hi&v=there", form, `"hi,there"`},
		{"POST", "/rpc/joined", "v=hi", form, `"hi"`},
		{"POST", "/rpc/add", "a=1&b=2", form, `3`},
		{"GET", "/projects?select=client_id(name)&id=eq.1", "", nil, `[{"client_id":{"name":"Ada"}}]`},
		{"GET", "/projects?select=projects_client_id_fkey(name)&id=eq.1", "", nil,
			`[{"projects_client_id_fkey":{"name":"Ada"}}]`},
		{"GET", "/clients?select=first_project(name)&id=eq.1", "", nil, `[{"first_project":{"name":"Windows"}}]`},
		{"GET", "/projects?select=clients(first_project(name))&id=in.(1,2)&limit=1", "", nil,
			`[{"clients":{"first_project":{"name":"Windows"}}}]`},
	} {
		got := a.do(test.method, test.path, test.body, test.headers...)
		if got.status != http.StatusOK || (test.want != "" && got.body != test.want) {
			t.Errorf("%s %s %s: got %d %s, want %s", test.method, test.path, test.body, got.status, got.body, test.want)
		}
	}
}

// TestAliases checks that an embedded relation with an alias can still be named by its own name,
// with a warning, unless AliasesOnly is set.
func TestAliases(t *testing.T) {
	t.Parallel()

	a := newAPI(t, "")
	strict := &api{t, New(a.server.Config), a.admin}
	strict.server.Features.AliasesOnly = true

	const ok = `[{"id":1,"c":{"name":"Ada"}}]`
	for _, test := range []struct{ query, warning, strict string }{
		{"select=id,c:clients(name)&c.id=eq.1&id=eq.1", "", ok},
		{"select=id,c:clients(name)&clients.id=eq.1&id=eq.1", "clients (c)",
			`{"code":"PGRST108","details":"Target names are not allowed in filters if they have an alias","hint":"Change 'clients' to 'c' in filters, orders or limits.","message":"'clients' is not an embedded resource in this request"}`},
	} {
		for range 2 { // the second time with the cached plan
			got := a.do("GET", "/projects?"+test.query, "")
			if warning := got.header.Get("Warning"); got.body != ok || (test.warning == "") != (warning == "") ||
				!strings.Contains(warning, test.warning) {
				t.Errorf("%s: got %s, warning %q, want %s, warning %q", test.query, got.body, warning, ok, test.warning)
			}

			if vary := got.header.Values("Vary"); len(vary) != 1 || vary[0] != "Accept, Prefer, Range" {
				t.Errorf("%s: got Vary %q", test.query, vary)
			}
		}

		if got := strict.do("GET", "/projects?"+test.query, ""); got.body != test.strict ||
			got.header.Get("Warning") != "" {
			t.Errorf("%s with AliasesOnly: got %s, want %s", test.query, got.body, test.strict)
		}
	}

	strict.server.Origins = []string{"https://here"}

	if got := strict.do("GET", "/clients", "", "Origin", "https://here").header.Values("Vary"); len(got) != 2 ||
		got[0] != "Origin" {
		t.Errorf("with an origin: got Vary %q", got)
	}

	for _, request := range [][2]string{{"OPTIONS", "/clients"}, {"GET", "/"}, {"POST", "/rpc/nothing"}} {
		if got := a.do(request[0], request[1], "").header.Get("Vary"); got != "Accept, Prefer, Range" {
			t.Errorf("%v: got Vary %q", request, got)
		}
	}
}

// TestLenient checks that sloppy requests are read as meant and quoted as written.
func TestLenient(t *testing.T) {
	t.Parallel()

	a := newAPI(t, `
		create domain "application/openapi+json" as json;
		create function own_root() returns "application/openapi+json" language sql stable as $$ select '{"swagger":"2.0"}'::"application/openapi+json" $$`,
		func(c *Config) { c.Features.Plan = true })

	const unread = `{"code":"PGRST100","details":"unexpected \"(\" expecting \"-\", digit or any non reserved character different from: .,>()","hint":null,` +
		`"message":"\"failed to parse select parameter (body->(<&>))\" (line 1, column 7)"}`
	for _, test := range []struct {
		method, path, body string
		headers            []string
		status             int
		want, kind         string
	}{
		{"GET", "/clients?select=id&name%5B0%5D=ilike.*a*&name%5B1%5D=ilike.*d*&id[]=lt.3", "", nil, 200,
			`[{"id":1}]`, ""},
		{"GET", "/clients?name[0]x=eq.1", "", nil, 400, "PGRST100", ""},
		{"GET", "/rpc/projects_of?client[0]=2&select=id", "", nil, 200, `[{"id":3}]`, ""},
		{"GET", "/clients?select=id&id=in.(%201,2)&order=id", "", nil, 200, "[{\"id\":1}, \n {\"id\":2}]", ""},
		{"GET", "/clients?id=in.(%20,2)", "", nil, 400, `invalid input syntax for type integer: \"\"`, ""},
		{"POST", "/rpc/add", `{"a":1,"b":2}`, []string{"Content-Type", "application/json; $$ odd=parameters $$"},
			200, "3", ""},
		{"POST", "/rpc/add", `{"a":1,"b":2}`, []string{"Content-Type", "Application/JSON;charset=utf-8;charset=utf-8"},
			200, "3", ""},
		{"POST", "/rpc/add", `a=1&b=2`,
			[]string{"Content-Type", "application/x-www-form-urlencoded, application/x-www-form-urlencoded"}, 200, "3",
			""},
		{"GET", "/notes?select=body->(%3C%26%3E)", "", nil, 400, unread, ""},
		{"GET", "/rpc/own_root", "", []string{"Accept", "application/openapi+json"}, 200, `{"swagger":"2.0"}`,
			"application/openapi+json; charset=utf-8"},
		{"GET", "/clients", "", []string{"Accept", `application/vnd.pgrst.plan; for="Application/vnd.pgrst.array"`},
			200, "Seq Scan", `application/vnd.pgrst.plan+text; for="application/json"; charset=utf-8`},
		{"GET", "/clients", "", []string{"Accept", `application/vnd.pgrst.plan+json; for="application/vnd.pgrst.plan"`},
			406, `for=\"application/vnd.pgrst.plan\"`, ""},
	} {
		got := a.do(test.method, test.path, test.body, test.headers...)
		if kind := got.header.Get("Content-Type"); got.status != test.status ||
			!strings.Contains(got.body, test.want) || (test.kind != "" && kind != test.kind) {
			t.Errorf("%s %s %v: got %d %s %s, want %d %s %s", test.method, test.path, test.headers, got.status, kind,
				got.body, test.status, test.kind, test.want)
		}
	}
}
