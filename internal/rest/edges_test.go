package rest

import (
	"strings"
	"testing"
)

// TestEdges checks rare cases of the contract.
func TestEdges(t *testing.T) {
	t.Parallel()

	a := newAPI(t, `
		create domain "image/png" as bytea;
		create function image() returns "image/png" language sql as $$ select '\x89504e47'::"image/png" $$;
		create domain "text/xml" as xml;
		create function page() returns "text/xml" language sql as $$ select E'\n<a/>'::xml $$;
		create function pages_step(state "text/xml", next anyelement) returns "text/xml" language sql as $$ select E'\n<a/>'::xml $$;
		create aggregate pages(anyelement) (sfunc = pages_step, stype = "text/xml");
		create function whole(json) returns json language sql as 'select $1';
		create function words(text) returns text language sql as 'select $1';
		create function either(json) returns int language sql as 'select 1';
		create function either(jsonb) returns int language sql as 'select 2';
		create function optional() returns int language sql stable as 'select 1';
		create function optional(text default 'a') returns int language sql stable as 'select 2';
		create function lonely(text default 'a') returns text language sql stable as 'select $1';
		create table empty (id int primary key); grant all on empty to authenticated;`,
		func(c *Config) { c.Features.Plan, c.Features.ServerTiming = true, true })

	long := strings.Repeat("1", maxContentLocation)
	for _, test := range []struct {
		method, path, body string
		headers            []string
		status             int
		want               string
	}{
		{"GET", "/rpc/image", "", []string{"Accept", `application/vnd.pgrst.plan; for="image/png"`}, 200, "cost="},
		{"GET", "/rpc/page", "", []string{"Accept", "text/xml"}, 200, "<a/>"},
		{"GET", "/clients", "", []string{"Accept", "text/xml"}, 200, "<a/>"},
		{"POST", "/rpc/whole", `{"": 1}`, nil, 200, `{"": 1}`},
		{"POST", "/rpc/words", `{"": "a"}`, nil, 200, `"{\"\": \"a\"}"`},
		{"GET", "/rpc/words?=a", "", nil, 400, "PGRST100"},
		{"POST", "/rpc/either", `{"a": 1}`, nil, 300, "PGRST203"},
		{"POST", "/rpc/either", `{"": 1}`, nil, 300, "PGRST203"},
		{"POST", "/rpc/either", `"text"`, nil, 300, "PGRST203"},
		{"POST", "/rpc/optional", `{}`, nil, 300, "optional(), public.optional( => text)"},
		{"GET", "/rpc/optional", "", nil, 300, "PGRST203"},
		{"GET", "/rpc/lonely", "", nil, 200, `"a"`},
		{"GET", "/clients?name=eq." + long, "", nil, 200, "[]"},
	} {
		r := a.do(test.method, test.path, test.body, test.headers...)
		if r.status != test.status || !strings.Contains(r.body, test.want) {
			t.Errorf("%s %.40s %s: got %d %s, want %d %s", test.method, test.path, test.body, r.status, r.body,
				test.status, test.want)
		}

		if strings.HasPrefix(r.body, "\n") {
			t.Errorf("%s: the body begins with a newline", test.path)
		}
		if strings.Contains(test.path, long) && r.header.Get("Content-Location") != "" {
			t.Errorf("%d bytes of Content-Location", len(r.header.Get("Content-Location")))
		}
	}

	for _, path := range []string{"/", "/clients", "/rpc/add"} {
		if r := a.do("OPTIONS", path, ""); r.status != 200 || r.header.Get("Server-Timing") == "" ||
			r.header.Get("Content-Length") != "0" {
			t.Errorf("OPTIONS %s: got %d %v", path, r.status, r.header)
		}
	}

	r := a.do("GET", "/empty", "", "Prefer", "count=estimated")
	if got := r.header.Get("Content-Range"); r.status != 200 || got != "*/0" {
		t.Errorf("estimated count of an empty table: got %d %s, want 200 */0", r.status, got)
	}
}
