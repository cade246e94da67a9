package rest

import (
	"net/http"
	"strings"
	"testing"
)

func TestRequests(t *testing.T) {
	t.Parallel()

	a := newAPI(t,
		`create function echo(json) returns json language sql as 'select $1'; create function shout(text) returns text language sql as 'select upper($1)';
		create function size(bytea) returns int language sql as 'select length($1)'`)

	const one = "application/vnd.pgrst.object+json"
	for _, test := range []struct {
		method, path, body string
		headers            []string
		status             int
		want               string   // of the body
		has                []string // headers, name and value
	}{
		{"GET", "/clients?select=id,name&id=eq.2", "", nil, 200, `[{"id":2,"name":"Bob"}]`,
			[]string{"Content-Range", "0-0/*", "Content-Type", jsonType, "Content-Location",
				"/clients?id=eq.2&select=id,name", "Content-Length", "23"}},
		{"GET", "/clients?select=id&order=id.desc&limit=2", "", []string{"Prefer", "count=exact"}, 206,
			"[{\"id\":3}, \n {\"id\":2}]", []string{"Content-Range", "0-1/3", "Preference-Applied", "count=exact"}},
		{"GET", "/clients?select=id&order=id", "", []string{"Range", "1-1", "Prefer", "count=exact"}, 206, `[{"id":2}]`,
			[]string{"Content-Range", "1-1/3"}},
		{"GET", "/clients?offset=9", "", []string{"Prefer", "count=exact"}, 416,
			"An offset of 9 was requested, but there are only 3 rows.", []string{"Content-Range", "*/3"}},
		{"GET", "/clients", "", []string{"Range", "5-1"}, 416, "PGRST103", nil},
		{"HEAD", "/clients", "", []string{"Prefer", "count=exact"}, 200, "", []string{"Content-Range", "0-2/3"}},
		{"GET", "/clients?limit=1", "", []string{"Prefer", "count=planned"}, 206, `"name"`, nil},
		{"GET", "/projects?select=name,clients(name)&id=eq.1", "", nil, 200,
			`[{"name":"Windows","clients":{"name":"Ada"}}]`, nil},
		{"GET", "/clients?select=name,projects(id)&id=eq.2", "", nil, 200, `"projects":[{"id":3}]`, nil},
		{"GET", "/clients?id=eq.2", "", []string{"Accept", one}, 200, `{"id":2,"name":"Bob"}`,
			[]string{"Content-Type", one + "; charset=utf-8"}},
		{"GET", "/clients", "", []string{"Accept", one}, 406, `"details":"The result contains 3 rows"`, nil},
		{"GET", "/clients?id=lt.3", "", []string{"Accept", "text/csv"}, 200, "id,name\n1,Ada\n2,Bob",
			[]string{"Content-Type", "text/csv; charset=utf-8"}},
		{"GET", "/clients", "", []string{"Accept", "text/unknown"}, 406,
			"None of these media types are available: text/unknown", nil},
		{"GET", "/nosuch", "", nil, 404, "PGRST205", []string{"Proxy-Status", "PostgREST; error=PGRST205"}},
		{"GET", "/clients/1", "", nil, 404, "PGRST125", nil},
		{"GET", "/clients?nosuch=eq.1", "", nil, 400, `"code":"42703"`, nil},
		{"GET", "/clients?id=eq.x", "", nil, 400, `"code":"22P02"`, nil},
		{"GET", "/clients?id=0", "", nil, 400, "PGRST100", nil},
		{"GET", "/clients?name=eq.%00", "", nil, 400, `"code"`, nil},
		{"TRACE", "/clients", "", nil, 405, "PGRST117", nil},
		{"GET", "/clients", "", []string{"Accept-Profile", "other"}, 406,
			"Only the following schemas are exposed: public", nil},
		{"GET", "/clients", "", []string{"Prefer", "handling=strict, anything"}, 400,
			"Invalid preferences: anything", nil},
		{"GET", "/", "", nil, 200, `{"swagger":"2.0"`, []string{"Content-Type", openAPIType}},

		{"GET", "/clients?select=id&id=eq.1", "", []string{"Authorization", ""}, 200, `[{"id":1}]`, nil},
		{"GET", "/notes", "", []string{"Authorization", ""}, 401, `"code":"42501"`,
			[]string{"WWW-Authenticate", "Bearer"}},
		{"GET", "/notes?select=body", "", nil, 200, `[{"body":"hers"}]`, nil},
		{"GET", "/notes?select=body", "", []string{"Authorization", "", "Apikey", "authenticated:ben"}, 200,
			`[{"body":"his"}]`, nil},
		{"GET", "/notes?select=id&order=id", "", []string{"Authorization", "bearer service_role:"}, 200,
			"[{\"id\":1}, \n {\"id\":2}]", nil},
		{"POST", "/notes", `{"id":9,"owner":"ben"}`, nil, 403, `"code":"42501"`, nil},
		{"GET", "/clients", "", []string{"Authorization", "Bearer postgres:"}, 401,
			`role \"postgres\" does not exist`, nil},
		{"GET", "/clients", "", []string{"Authorization", `Bearer anon"; --:`}, 401, "does not exist", nil},
		{"GET", "/clients", "", []string{"Authorization", "Bearer "}, 401, "PGRST301", nil},

		{"POST", "/clients", `{"id":10,"name":"Dan"}`, nil, 201, "",
			[]string{"Content-Range", "*/*", "Content-Length", "0"}},
		{"POST", "/clients", `{"id":11,"name":"Eve"}`, []string{"Prefer", "return=headers-only"}, 201, "",
			[]string{"Location", "/clients?id=eq.11"}},
		{"POST", "/clients?select=id", `[{"id":12,"name":"F"},{"id":13,"name":"G"}]`,
			[]string{"Prefer", "return=representation,count=exact"}, 201, "[{\"id\":12}, \n {\"id\":13}]",
			[]string{"Content-Range", "*/2", "Preference-Applied", "return=representation, count=exact"}},
		{"POST", "/clients", "id,name\n20,Hal\n21,\"I,J\"\n",
			[]string{"Content-Type", "text/csv", "Prefer", "return=representation"}, 201, `{"id":21,"name":"I,J"}`,
			nil},
		{"POST", "/clients", "id,name\n22\n", []string{"Content-Type", "text/csv"}, 400,
			"All lines must have same number of fields", nil},
		{"POST", "/clients", "id=23&name=K+L",
			[]string{"Content-Type", "application/x-www-form-urlencoded", "Prefer", "return=representation"}, 201,
			`"name":"K L"`, nil},
		{"POST", "/clients", "x", []string{"Content-Type", "text/plain"}, 400,
			"Content-Type not acceptable: text/plain", nil},
		{"POST", "/clients", `{"id":`, nil, 400, "PGRST102", nil},
		{"POST", "/clients", `{"id":1,"name":"x"}`, nil, 409, `"code":"23505"`, nil},
		{"POST", "/projects", `{"name":"x","client_id":99}`, nil, 409, `"code":"23503"`, nil},
		{"POST", "/projects", `{"name":""}`, nil, 400, `"code":"23514"`, nil},
		{"POST", "/children", `{"id":1,"parent":7}`, nil, 409, `"code":"23503"`, nil},
		{"GET", "/children", "", nil, 200, "[]", []string{"Content-Range", "*/*"}},
		{"POST", "/clients", `{"id":1,"nosuch":1}`, nil, 400, "PGRST204", nil},
		{"POST", "/clients", `[{"id":30,"name":"m"},{"id":31,"name":"n"}]`, []string{"Accept", one}, 406,
			"The result contains 2 rows", nil},
		{"GET", "/clients?id=in.(30,31)", "", nil, 200, "[]", nil},
		{"POST", "/clients", `{"id":1,"name":"Ada L"}`,
			[]string{"Prefer", "resolution=merge-duplicates,return=representation"}, 200, `"Ada L"`,
			[]string{"Preference-Applied", "resolution=merge-duplicates, return=representation"}},
		{"POST", "/clients", `{"id":1,"name":"x"}`,
			[]string{"Prefer", "resolution=ignore-duplicates,return=representation"}, 201, "[]", nil},
		{"PATCH", "/clients?id=eq.3", `{"name":"Cyd"}`, nil, 204, "", []string{"Content-Range", "0-0/*"}},
		{"PATCH", "/clients?id=eq.3&select=name", `{"name":"Cid"}`, []string{"Prefer", "return=representation"}, 200,
			`[{"name":"Cid"}]`, nil},
		{"PATCH", "/clients?id=lt.4", `{"name":"all"}`, []string{"Prefer", "handling=strict, max-affected=2"}, 400,
			"The query affects 3 rows", nil},
		{"GET", "/clients?name=eq.all", "", nil, 200, "[]", nil},
		{"PUT", "/clients?id=eq.40", `{"id":40,"name":"put"}`, []string{"Prefer", "return=representation"}, 201,
			`"put"`, nil},
		{"PUT", "/clients?id=eq.40", `{"id":40,"name":"again"}`, nil, 204, "", nil},
		{"PUT", "/clients?id=eq.41", `{"id":40,"name":"x"}`, nil, 400, "PGRST115", nil},
		{"PUT", "/clients?id=eq.41&limit=1", `{"id":41,"name":"x"}`, nil, 400, "PGRST114", nil},
		{"DELETE", "/clients?id=eq.40", "", []string{"Prefer", "count=exact"}, 204, "",
			[]string{"Content-Range", "*/1"}},
		{"DELETE", "/clients?id=eq.1", "", nil, 409, `"code":"23503"`, nil},

		{"GET", "/rpc/add?a=1&b=2", "", nil, 200, "3", []string{"Content-Range", "0-0/*"}},
		{"POST", "/rpc/add", `{"a":1,"b":2}`, nil, 200, "3", nil},
		{"POST", "/rpc/add", `{"a":1}`, nil, 404, "PGRST202", nil},
		{"DELETE", "/rpc/add", "", nil, 405, "Cannot use the DELETE method on RPC", nil},
		{"POST", "/rpc/add", "a,b\n1,2\n", []string{"Content-Type", "text/csv"}, 200, "3", nil},
		{"POST", "/rpc/add", "a=1&b=2", []string{"Content-Type", "application/x-www-form-urlencoded"}, 200, "3", nil},
		{"POST", "/rpc/echo", "[1, 2]", nil, 200, "[1, 2]", nil},
		{"POST", "/rpc/shout", "hey", []string{"Content-Type", "text/plain"}, 200, `"HEY"`, nil},
		{"POST", "/rpc/size", "\x00\xff", []string{"Content-Type", "application/octet-stream"}, 200, "2", nil},
		{"POST", "/rpc/nothing", "", nil, 204, "", nil},
		{"GET", "/rpc/projects_of?client=1&select=name,clients(name)&order=name&limit=1", "",
			[]string{"Prefer", "count=exact"}, 206, `"name":"Linux"`, []string{"Content-Range", "0-0/2"}},
		{"GET", "/rpc/grow?n=1", "", nil, 405, `"code":"25006"`, nil},
		{"POST", "/rpc/grow", `{"n":3}`, []string{"Prefer", "handling=strict,max-affected=2"}, 400, "PGRST124", nil},
		{"POST", "/rpc/grow?select=id", `{"n":2}`, []string{"Accept", one}, 406, "PGRST116", nil},
		{"GET", "/projects?name=like.p*", "", nil, 200, "[]", nil},
		{"POST", "/rpc/teapot", "", nil, 418,
			`{"code":"PT418","details":"stout","hint":"tip me","message":"short"}`, nil},
		{"POST", "/rpc/pay", "", nil, 402, `{"code":"123","details":"Quota","hint":null,"message":"Payment Required"}`,
			[]string{"X-Powered-By", "Nerd Rage"}},
		{"POST", "/rpc/cookie", "", nil, 299, "1", []string{"Cache-Control", "no-store", "Set-Cookie", "a=1"}},
		{"POST", "/rpc/escape", "", nil, 403, `"code":"42501"`, nil},
		{"GET", "/rpc/setting?name=request.method", "", nil, 200, `"GET"`, nil},
		{"GET", "/rpc/setting?name=request.path", "", nil, 200, `"/rpc/setting"`, nil},
		{"GET", "/rpc/setting?name=request.headers", "", []string{"X-Odd", "a\"b\\c"}, 200,
			`\"x-odd\":\"a\\\"b\\\\c\"`, nil},
		{"GET", "/rpc/setting?name=request.cookies", "", []string{"Cookie", "a=1; b=2"}, 200,
			`"{\"a\":\"1\",\"b\":\"2\"}"`, nil},
		{"GET", "/rpc/setting?name=role", "", nil, 200, `"authenticated"`, nil},
		{"GET", "/rpc/setting?name=TimeZone", "", []string{"Prefer", "timezone=America/Lima"}, 200, `"America/Lima"`,
			[]string{"Preference-Applied", "timezone=America/Lima"}},
		{"OPTIONS", "/clients", "", nil, 200, "", []string{"Allow", "OPTIONS,GET,HEAD,POST,PUT,PATCH,DELETE"}},
		{"OPTIONS", "/rpc/add", "", nil, 200, "", []string{"Allow", "OPTIONS,GET,HEAD,POST"}},
		{"OPTIONS", "/nosuch", "", nil, 404, "PGRST205", nil},
		{"OPTIONS", "/clients", "",
			[]string{"Origin", "https://a.b", "Access-Control-Request-Method", "PATCH",
				"Access-Control-Request-Headers", "apikey"},
			200, "",
			[]string{"Access-Control-Allow-Origin", "*", "Access-Control-Allow-Headers",
				"Authorization, apikey, Accept, Accept-Language, Content-Language"}},
	} {
		got := a.do(test.method, test.path, test.body, test.headers...)
		at := test.method + " " + test.path + " " + test.body
		if got.status != test.status {
			t.Errorf("%s: status %d, want %d: %s", at, got.status, test.status, got.body)
			continue
		}

		if (test.want == "" && got.body != "") || !strings.Contains(got.body, test.want) {
			t.Errorf("%s: body %s, want %s", at, got.body, test.want)
		}

		for i := 0; i < len(test.has); i += 2 {
			if v := got.header.Get(test.has[i]); v != test.has[i+1] {
				t.Errorf("%s: %s: %q, want %q", at, test.has[i], v, test.has[i+1])
			}
		}
	}

	for _, pool := range []string{"authenticated", "service_role"} {
		role, _ := a.server.Auth.Role(pool)
		if s := role.Pool.Stat(); s.NewConnsCount() > 2 {
			t.Errorf("pool of %s: got %d connections opened, want at most 2", pool, s.NewConnsCount())
		}
	}
}

func TestRollback(t *testing.T) {
	t.Parallel()

	a := newAPI(t, "", func(c *Config) { c.Features.TxOverride = true })
	got := a.do("POST", "/clients", `{"id":50,"name":"no"}`, "Prefer", "tx=rollback,return=representation")
	if got.status != http.StatusCreated || !strings.Contains(got.body, `"no"`) ||
		got.header.Get("Preference-Applied") != "return=representation, tx=rollback" {
		t.Errorf("insert with tx=rollback: got %+v", got)
	}

	if got := a.do("POST", "/children", `{"id":1,"parent":7}`, "Prefer",
		"tx=rollback"); got.status != http.StatusConflict {
		t.Errorf("deferred violation with tx=rollback: got %+v, want 409", got)
	}

	for _, path := range []string{"/clients?id=eq.50", "/children"} {
		if got := a.do("GET", path, ""); got.body != "[]" {
			t.Errorf("%s after the rollback: got %s, want []", path, got.body)
		}
	}
}
